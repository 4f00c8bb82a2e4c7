/* The diagrams of workloads/works.py in C: the bounds between which any engine for block diagrams lies.
 *
 * written out: one function computes the derivatives; what a code generator would leave.
 * table:       an array of {function pointer, data} executed in order over one flat array of signals
 *              in each stage of RK4; the least that an interpreter of diagrams has to do.
 *
 * The parameters KP, KI, KD, N, LIMIT, C, K, LINE_PAIRS, LINE_GAIN, LINE_START come from workloads/works.py
 * through -D, so that they are written in one place.
 */

enum { PID_STATES = 4, PID_BLOCKS = 16, LINE_BLOCKS = 2 * LINE_PAIRS + 1, MAX_STATES = 128 };

/* Written out. */

enum { I, D, V, X };

static double clip(double u, double low, double high) { return u < low ? low : u > high ? high : u; }

static void pid_derivatives(double t, const double *x, double *dx) {
    const double err = (t >= 0.0 ? 1.0 : 0.0) - x[X];
    const double n = N * (KD * err - x[D]);
    const double sat = clip(KP * err + x[I] + n, -LIMIT, LIMIT);
    dx[I] = KI * err;
    dx[D] = n;
    dx[V] = sat - C * x[V] - K * x[X];
    dx[X] = x[V];
}

/* Runs `ticks` steps of `h` from rest; returns the output. */
double pid_written_out(long ticks, double h) {
    double x[PID_STATES] = {0};
    for (long tick = 0; tick < ticks; tick++) {
        const double t = (double)tick * h;
        double k1[PID_STATES], k2[PID_STATES], k3[PID_STATES], k4[PID_STATES], y[PID_STATES];
        pid_derivatives(t, x, k1);
        for (int s = 0; s < PID_STATES; s++) y[s] = x[s] + 0.5 * h * k1[s];
        pid_derivatives(t + 0.5 * h, y, k2);
        for (int s = 0; s < PID_STATES; s++) y[s] = x[s] + 0.5 * h * k2[s];
        pid_derivatives(t + 0.5 * h, y, k3);
        for (int s = 0; s < PID_STATES; s++) y[s] = x[s] + h * k3[s];
        pid_derivatives(t + h, y, k4);
        for (int s = 0; s < PID_STATES; s++) x[s] += h / 6.0 * (k1[s] + 2.0 * k2[s] + 2.0 * k3[s] + k4[s]);
    }
    return x[X];
}

/* Table of function pointers. */

struct block {
    void (*output)(const struct block *b, double t, const double *x, double *signals);
    void (*derivative)(const struct block *b, const double *signals, double *dx);
    double a, b, c;  /* gain; or signs of a sum; or limits; or time, before, after of a step */
    int in[3];       /* indices of signals */
    int out;         /* index of a signal */
    int state;       /* index of a state */
};

static void step_output(const struct block *b, double t, const double *x, double *signals) {
    (void)x;
    signals[b->out] = t >= b->a ? b->c : b->b;
}

static void gain_output(const struct block *b, double t, const double *x, double *signals) {
    (void)t, (void)x;
    signals[b->out] = b->a * signals[b->in[0]];
}

static void sum2_output(const struct block *b, double t, const double *x, double *signals) {
    (void)t, (void)x;
    signals[b->out] = b->a * signals[b->in[0]] + b->b * signals[b->in[1]];
}

static void sum3_output(const struct block *b, double t, const double *x, double *signals) {
    (void)t, (void)x;
    signals[b->out] = b->a * signals[b->in[0]] + b->b * signals[b->in[1]] + b->c * signals[b->in[2]];
}

static void saturation_output(const struct block *b, double t, const double *x, double *signals) {
    (void)t, (void)x;
    signals[b->out] = clip(signals[b->in[0]], b->a, b->b);
}

static void integrator_output(const struct block *b, double t, const double *x, double *signals) {
    (void)t;
    signals[b->out] = x[b->state];
}

static void integrator_derivative(const struct block *b, const double *signals, double *dx) {
    dx[b->state] = signals[b->in[0]];
}

static void evaluate(const struct block *table, int blocks, int states, double t, const double *x, double *signals,
                     double *dx) {
    const struct block *end = table + blocks;
    for (const struct block *b = table; b < end; b++) b->output(b, t, x, signals);
    end = table + states;
    for (const struct block *b = table; b < end; b++) b->derivative(b, signals, dx);
}

/* Exported, and so compiled without knowledge of what is in the table. The blocks with a state come
   first: their outputs need no inputs. */
void run_table(const struct block *table, int blocks, double *signals, int states, double *x, long ticks, double h) {
    double k1[MAX_STATES], k2[MAX_STATES], k3[MAX_STATES], k4[MAX_STATES], y[MAX_STATES];
    for (long tick = 0; tick < ticks; tick++) {
        const double t = (double)tick * h;
        evaluate(table, blocks, states, t, x, signals, k1);
        for (int s = 0; s < states; s++) y[s] = x[s] + 0.5 * h * k1[s];
        evaluate(table, blocks, states, t + 0.5 * h, y, signals, k2);
        for (int s = 0; s < states; s++) y[s] = x[s] + 0.5 * h * k2[s];
        evaluate(table, blocks, states, t + 0.5 * h, y, signals, k3);
        for (int s = 0; s < states; s++) y[s] = x[s] + h * k3[s];
        evaluate(table, blocks, states, t + h, y, signals, k4);
        for (int s = 0; s < states; s++) x[s] += h / 6.0 * (k1[s] + 2.0 * k2[s] + 2.0 * k3[s] + k4[s]);
    }
}

double pid_table(long ticks, double h) {
    enum { i, d, v, x, ref, err, kp, ki, kd, lag, n, pid, sat, damping, stiffness, force, signals_n };
    const struct block table[PID_BLOCKS] = {
        {integrator_output, integrator_derivative, 0, 0, 0, {ki}, i, I},
        {integrator_output, integrator_derivative, 0, 0, 0, {n}, d, D},
        {integrator_output, integrator_derivative, 0, 0, 0, {force}, v, V},
        {integrator_output, integrator_derivative, 0, 0, 0, {v}, x, X},
        {step_output, 0, 0, 0, 1, {0}, ref, 0},
        {sum2_output, 0, 1, -1, 0, {ref, x}, err, 0},
        {gain_output, 0, KP, 0, 0, {err}, kp, 0},
        {gain_output, 0, KI, 0, 0, {err}, ki, 0},
        {gain_output, 0, KD, 0, 0, {err}, kd, 0},
        {sum2_output, 0, 1, -1, 0, {kd, d}, lag, 0},
        {gain_output, 0, N, 0, 0, {lag}, n, 0},
        {sum3_output, 0, 1, 1, 1, {kp, i, n}, pid, 0},
        {saturation_output, 0, -LIMIT, LIMIT, 0, {pid}, sat, 0},
        {gain_output, 0, C, 0, 0, {v}, damping, 0},
        {gain_output, 0, K, 0, 0, {x}, stiffness, 0},
        {sum3_output, 0, 1, -1, -1, {sat, damping, stiffness}, force, 0},
    };
    double signals[signals_n] = {0}, states[PID_STATES] = {0};
    run_table(table, PID_BLOCKS, signals, PID_STATES, states, ticks, h);
    return states[X];
}

double line_table(long ticks, double h) {
    enum { source = 2 * LINE_PAIRS };
    struct block table[LINE_BLOCKS];
    double signals[LINE_BLOCKS] = {0}, states[LINE_PAIRS];
    table[LINE_PAIRS] = (struct block){step_output, 0, 0, 1, 1, {0}, source, 0};
    for (int p = 0; p < LINE_PAIRS; p++) {
        const int gain = LINE_PAIRS + p, before = p ? p - 1 : source;
        table[p] = (struct block){integrator_output, integrator_derivative, 0, 0, 0, {gain}, p, p};
        table[gain + 1] = (struct block){gain_output, 0, LINE_GAIN, 0, 0, {before}, gain, 0};
        states[p] = LINE_START;
    }
    run_table(table, LINE_BLOCKS, signals, LINE_PAIRS, states, ticks, h);
    return states[LINE_PAIRS - 1];
}
