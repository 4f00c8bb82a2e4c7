/* What the kinds of friction share: joints that stick, and normal loads that follow from reactions. */
#ifndef BIELLA_MULTIBODY_FRICTION_H
#define BIELLA_MULTIBODY_FRICTION_H

#include "blocks/multibody/kernel/multibody.h"

/* What a joint with a stick mode does. One that yields is held by others that stick, and has its largest effort; only where there is
   friction from reactions. The sign is that of the rate against which the effort acts. */
enum { MB_HOLDS, MB_SLIPS, MB_YIELDS };

/* stiction.c: records of friction with a stick mode, of both kinds. */
bool mb_has_stick_mode(const int32_t *force);
/* MB_HOLDS, …, and the direction: 1, -1, or 0 for one that holds. */
int mb_stick_mode(const mb_view *m, const int32_t *force);
double mb_stick_direction(const mb_view *m, const int32_t *force);
void mb_set_stick_mode(const mb_view *m, const int32_t *force, int mode, double direction);
/* The next record after `force` of a joint that holds, or the first; NULL: no other. */
const int32_t *mb_next_holding(const mb_view *m, const int32_t *force);
/* Response of the mechanism at rest to a unit effort; needs K factored. */
void mb_stick_respond(mb_view *still, const int32_t *force, double t);
/* Pushes a unit effort on the links, or into still->force. Returns whether it acts on links. */
bool mb_stick_push(mb_view *still, const int32_t *force, double t);
/* Adds what the efforts in m->stick.right do to the solution, and keeps them. */
void mb_stick_apply(mb_view *m);
/* Second derivative of its coordinate, at a solution. */
double mb_stick_second(const mb_view *m, const int32_t *force, double t);
/* Speeds up to this are rounding. */
double mb_stick_still(const mb_view *m, const double *v);
/* The largest effort with which a joint holds, and how far it is from sliding, at a solution. */
double mb_stick_limit(const mb_view *m, const int32_t *force);
double mb_stick_spare(const mb_view *m, const int32_t *force, double t, const double *v);
/* Of the joints that hold, the one that is furthest beyond its limit, or that constraints move; NULL: none. */
const int32_t *mb_stick_find_sliding(const mb_view *m, double t, const double *v);
/* Whether a joint that slides has reversed, or is about to; at a solution. */
bool mb_stick_stops(const mb_view *m, const int32_t *force, double t, const double *v);
/* Whether friction stops a joint that has reversed within a step. At a dead center it does not: that would stop the mechanism, too.
   Needs K factored. */
bool mb_stick_can_stop(mb_view *m, const int32_t *force, double t, const double *v);
/* Accelerations up to this are rounding. */
double mb_stick_rounding(const mb_view *m);
/* The acceleration with which constraints move a joint that holds, which no effort changes: a driver, or a dead center. Else 0. */
double mb_stick_forced(const mb_view *m, const int32_t *force, double t);

/* joint_friction.c */
const int32_t *mb_joint_friction_record(const mb_view *m, int32_t number);
/* By which the force of the surfaces acts on the coordinate: a radius, or 1. */
double mb_joint_friction_lever(const mb_view *m, int32_t number);
/* Whether it acts at present, for a load of 1 N. */
bool mb_has_joint_friction(const mb_view *m, int32_t number);
/* The reactions of all joints with friction due to what acts on `still` and its response to it, MB_JOINT_FRICTION_PARTS of each. */
void mb_joint_friction_reactions(mb_view *still, double *parts);

/* joint_stiction.c: efforts for a load of 1 N, by the modes. */
void mb_set_dry_efforts(const mb_view *m);
double mb_joint_stiction_limit(const mb_view *m, const int32_t *force);
/* The same for a load of 1 N. */
double mb_joint_stiction_strength(const mb_view *m, const int32_t *force);

/* sticking.c: mechanisms with friction from reactions and joints with a stick mode. */
/* Takes the joints that hold into the reactions without friction, and into what a load of 1 N in each joint adds to them. */
void mb_eliminate_sticking(mb_view *m, mb_view *still, double t);
/* Adds what the joints that hold do, once the loads are known. */
void mb_add_sticking(mb_view *m);
/* Solves for efforts that change the rates of joints that hold by m->stick.right, which they replace; where joints hold the same motion, those
   of minimum norm. */
void mb_solve_sticking(mb_view *m);
/* As mb_settle_stiction. */
int mb_settle_sticking(mb_view *m, double t, const double *q, double *v, bool *changed);

#endif
