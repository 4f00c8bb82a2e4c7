/* SUNDIALS CVODE on a right-hand side in C, without Python in between.
 *
 * Built together with the right-hand side (initial_value_problems.py), and linked at run time with the libraries inside the package
 * scikit-sundae. The package has no headers: what is used of the interface of SUNDIALS 7 is declared here. */
#include <stddef.h>

typedef struct sun_context *SUNContext;
typedef struct sun_vector *N_Vector;
typedef struct sun_matrix *SUNMatrix;
typedef struct sun_linear *SUNLinearSolver;
typedef int sunindextype; /* as in the package's py_config.pxi, which is checked before */

int SUNContext_Create(int comm, SUNContext *context);
int SUNContext_Free(SUNContext *context);
int SUNContext_ClearErrHandlers(SUNContext context);
N_Vector N_VNew_Serial(sunindextype length, SUNContext context);
double *N_VGetArrayPointer(N_Vector v);
void N_VDestroy(N_Vector v);
SUNMatrix SUNDenseMatrix(sunindextype rows, sunindextype columns, SUNContext context);
void SUNMatDestroy(SUNMatrix a);
SUNLinearSolver SUNLinSol_Dense(N_Vector y, SUNMatrix a, SUNContext context);
int SUNLinSolFree(SUNLinearSolver solver);
void *CVodeCreate(int method, SUNContext context);
int CVodeInit(void *memory, int (*f)(double, N_Vector, N_Vector, void *), double t, N_Vector y);
int CVodeSStolerances(void *memory, double relative, double absolute);
int CVodeSetMaxNumSteps(void *memory, long steps);
int CVodeSetStopTime(void *memory, double end);
int CVodeSetLinearSolver(void *memory, SUNLinearSolver solver, SUNMatrix a);
int CVode(void *memory, double end, N_Vector y, double *reached, int task);
int CVodeGetNumRhsEvals(void *memory, long *count);
int CVodeGetNumLinRhsEvals(void *memory, long *count);
int CVodeGetNumLinSolvSetups(void *memory, long *count);
void CVodeFree(void **memory);

void right_hand_side(double t, const double *x, double *dx);
enum { ADAMS = 1, BDF = 2, NORMAL = 1 };

static int evaluate(double t, N_Vector y, N_Vector slope, void *data) {
    (void)data;
    right_hand_side(t, N_VGetArrayPointer(y), N_VGetArrayPointer(slope));
    return 0;
}

/* From 0 to `end`. A stiff problem: BDF with dense factors. Otherwise: Adams' methods, by Newton's iteration as well, which is
   the default. counts: evaluations, those for Jacobians included; factorizations. Returns CVODE's status. */
int run_cvode(int n, double *x, double end, double relative, double absolute, int stiff, long *counts) {
    SUNContext context = NULL;
    if (SUNContext_Create(0, &context) != 0) return -1000;
    SUNContext_ClearErrHandlers(context);
    N_Vector y = N_VNew_Serial(n, context);
    double *values = N_VGetArrayPointer(y);
    for (int i = 0; i < n; i++) values[i] = x[i];
    SUNMatrix matrix = SUNDenseMatrix(n, n, context);
    SUNLinearSolver linear = SUNLinSol_Dense(y, matrix, context);
    void *memory = CVodeCreate(stiff ? BDF : ADAMS, context);
    int status = CVodeInit(memory, evaluate, 0.0, y);
    if (status == 0) status = CVodeSStolerances(memory, relative, absolute);
    if (status == 0) status = CVodeSetMaxNumSteps(memory, 10000000);
    if (status == 0) status = CVodeSetStopTime(memory, end);
    if (status == 0) status = CVodeSetLinearSolver(memory, linear, matrix);
    double reached = 0.0;
    if (status == 0) status = CVode(memory, end, y, &reached, NORMAL);
    long own = 0, differences = 0;
    CVodeGetNumRhsEvals(memory, &own);
    CVodeGetNumLinRhsEvals(memory, &differences);
    CVodeGetNumLinSolvSetups(memory, &counts[1]);
    counts[0] = own + differences;
    for (int i = 0; i < n; i++) x[i] = values[i];
    CVodeFree(&memory);
    SUNLinSolFree(linear);
    SUNMatDestroy(matrix);
    N_VDestroy(y);
    SUNContext_Free(&context);
    return status;
}
