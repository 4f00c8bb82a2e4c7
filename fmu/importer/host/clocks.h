/* Clocks of FMUs of FMI 3.0: what clocks.c and the files that run FMUs share.
 *
 * An input clock that is based on time is activated at its instants, in event mode: clocked inputs are set, clocked outputs are read while
 * it is active, and the next update of discrete states ends the activation. Between activations, clocked outputs are held. Output
 * clocks, which the FMU triggers, are looked at before every update. A triggered input clock is activated at each
 * tick at which the signal of its port is true or, if that signal is a clock of another FMU, whenever this clock is active: network.h. */
#ifndef BIELLA_CLOCKS_H
#define BIELLA_CLOCKS_H

#include <stdbool.h>

#include "fmu/importer/host/host.h"

/* After the parameters, the integers of a block with clocks have their number; for each clock its reference, kind, interval and shift, which
   are doubles; then for each clocked variable the number of its first value, inputs before outputs, and
   the clocks that activate it, two words of a bit for each. */
enum { HOST_CLOCK_FIELDS = 6, HOST_CLOCKED_FIELDS = 3, HOST_LARGEST_CLOCKS = 64 };
enum {
    HOST_CLOCK_CONSTANT, /* interval and shift are those of the description */
    HOST_CLOCK_SET,      /* the same, and the FMU is told the interval */
    HOST_CLOCK_ASKED,    /* the FMU gives them in initialization mode, */
    HOST_CLOCK_TUNABLE,  /* and a new interval in any event */
    HOST_CLOCK_CHANGING, /* the FMU gives the interval to the next activation in each one, */
    HOST_CLOCK_COUNTDOWN, /* or in any event */
    HOST_CLOCK_TRIGGERED, /* from outside */
    HOST_CLOCK_OUTPUT,
    HOST_CLOCK_KINDS
};

typedef struct bl_fmu_clocks bl_fmu_clocks;

/* Whether the integers after the parameters, `count` of them, are sound; `value_count`: of inputs and outputs. */
int bl_clocks_check(const int32_t *integers, int64_t count, int64_t value_count);
/* NULL in *clocks if there are none. Returns whether there was memory. */
int bl_clocks_open(const bl_block *b, bl_fmu_clocks **clocks);
void bl_clocks_close(bl_fmu_clocks *clocks);
/* Finds the functions of the FMU. Returns the name of one that is missing, or NULL. */
const char *bl_clocks_find(bl_fmu_clocks *clocks, void *library);

/* At the end of initialization mode, t. */
int bl_clocks_begin(bl_fmu_host *f, double t);
/* The time that the FMU has reached: a coupling evaluates outputs at the end of a step also before it is taken. */
double bl_clocks_reached(const bl_fmu_host *f);
void bl_clocks_reach(bl_fmu_host *f, double t);
/* The next instant of a clock; infinity: none. */
double bl_clocks_next(const bl_fmu_host *f);
bool bl_clocks_due(const bl_fmu_host *f, double t);
/* In event mode: activates the clocks that are due at t and are not active yet. */
int bl_clocks_activate(bl_fmu_host *f, double t);
/* In event mode: sets the inputs and reads the outputs of active clocks. With `reports`, output clocks are noted as events. */
int bl_clocks_exchange(const bl_block *b, bl_fmu_host *f, double t, bool reports);
/* Which output clocks are active, a bit for each; and notes them as events. */
uint64_t bl_clocks_ticking(const bl_fmu_clocks *clocks);
void bl_clocks_note(const bl_block *b, const bl_fmu_clocks *clocks, uint64_t ticking, double t);
/* After an update of discrete states. */
int bl_clocks_update(bl_fmu_host *f, double t);
/* Writes the outputs that are held, and whether clocks have been active since the last tick. */
void bl_clocks_show(const bl_fmu_host *f);
/* The signals that bl_clocks_show writes, and these again: those of the tick, after a network has shown others to its members. */
void bl_clocks_note_shown(const bl_fmu_host *f);
void bl_clocks_show_noted(const bl_fmu_host *f);
/* Before a step from t: clocks have not been active since, and those whose signals are true are activated at t. */
void bl_clocks_trigger(const bl_block *b, bl_fmu_host *f, double t);
/* All that a saved state has to hold. */
size_t bl_clocks_state_count(const bl_fmu_clocks *clocks);
double *bl_clocks_state(bl_fmu_clocks *clocks);
void bl_clocks_forget(bl_fmu_clocks *clocks);
/* The name of an output clock whose event has this number. */
const char *bl_clocks_name(const bl_fmu_host *f, int32_t event);
enum { FIRST_CLOCK_EVENT = 2 };

/* For a network. Whether a clock of the FMU is a port; the place of the signal of a clock, given or taken; NULL: it is no such port. */
bool bl_clocks_are_ports(const bl_fmu_host *f);
int32_t bl_clocks_count(const bl_fmu_host *f);
const double *bl_clocks_given(const bl_fmu_host *f, int32_t clock);
const double *bl_clocks_taken(const bl_block *b, const bl_fmu_host *f, int32_t clock);
/* Another FMU activates the clock: its signal no longer does. */
void bl_clocks_connect(bl_fmu_host *f, int32_t clock);
bool bl_clocks_is_active(const bl_fmu_host *f, int32_t clock);
/* Makes the clock due at t. */
void bl_clocks_request(bl_fmu_host *f, int32_t clock, double t);
/* The parts of bl_clocks_exchange. An output clock stays active until the update: an FMU may report an activation only once. */
int bl_clocks_look(const bl_block *b, bl_fmu_host *f, double t);
int bl_clocks_set_inputs(const bl_block *b, bl_fmu_host *f, double t);
int bl_clocks_get_outputs(bl_fmu_host *f, double t);

#endif
