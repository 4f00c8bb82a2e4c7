/* The multibody kernel's insides.
 *
 * A mechanism is a tree of links, each moved by one elementary joint against its parent, plus closures: rows of
 * constraints between markers. A joint of the description (cylindrical, planar, …) is a short chain of elementary
 * ones; only the last link of such a chain carries the body. The links are numbered from the ground outwards.
 *
 * All vectors of a link are in world axes and refer to the link's origin, so that moving a quantity from one link
 * to another is a shift, never a rotation.
 *
 * Symbols: q coordinates (a spherical joint has a quaternion), v speeds, M(q) v' + Jᵀ λ = Q, Φ(q, t) = 0, J = ∂Φ̇/∂v,
 * c = J̇ v + ∂/∂t …, so that Φ̈ = J v' + c. The tables of integers are written by blocks/multibody/plant/_tree.py. */
#ifndef BIELLA_MULTIBODY_H
#define BIELLA_MULTIBODY_H

#include <stdbool.h>
#include <stddef.h>

#include "blocks/bearings/film.h"
#include "blocks/core/kernel/kernel.h"
#include "blocks/multibody/kernel/vector.h"

enum { MB_FIXED, MB_REVOLUTE, MB_PRISMATIC, MB_SPHERICAL };           /* elementary joints, about or along z */
enum { MB_ROW_POINT, MB_ROW_D1, MB_ROW_D2, MB_ROW_DISTANCE,                              /* base constraints */
       MB_ROW_DRIVER, MB_ROW_DRIVEN_LENGTH, MB_ROW_DRIVEN_ANGLE, /* of a tree coordinate; of a measure */
       MB_ROW_COUPLING,                                          /* of two coordinates, in a closure of its own */
       MB_ROW_TOUCH, MB_ROW_SLIP, MB_ROW_KINDS };                /* of a rigid contact: the last rows, in pairs; A is its force */

/* Integers of one record in each table. */
enum { MB_LINK_PARENT, MB_LINK_TYPE, MB_LINK_Q, MB_LINK_V, MB_LINK_BODY, MB_LINK_BASE, MB_LINK_TURN,
       MB_LINK_TIP, MB_LINK_END_TURN, MB_LINK_FIELDS };
enum { MB_MARKER_LINK, MB_MARKER_PLACE, MB_MARKER_FRAME, MB_MARKER_LAW_X, MB_MARKER_LAW_Y, MB_MARKER_LAW_Z, MB_MARKER_FIELDS };
/* Where the numbers of a body and of a marker lie among the parameters. */
enum { MB_AT_MASS_OF, MB_AT_INERTIA_OF, MB_AT_COM_OF, MB_AT_POSITION_OF, MB_AT_ROTATION_OF, MB_AT_VELOCITY_OF, MB_AT_SPIN_OF,
       MB_BODY_FIELDS };
enum { MB_ROW_TYPE, MB_ROW_I, MB_ROW_J, MB_ROW_A, MB_ROW_B, MB_ROW_VALUE, MB_ROW_FIELDS };
enum { MB_CUT_ROW, MB_CUT_ROWS, MB_CUT_PATH, MB_CUT_PATHS, MB_CUT_PAIR, MB_CUT_J, MB_CUT_FIELDS };
enum { MB_PATH_V, MB_PATH_LINK, MB_PATH_AXIS, MB_PATH_SIDE, MB_PATH_FIELDS };
/* P: the first of its numbers, its input port, or the first word of its program. N, OF: points of a table and its variable, words of a
   program, or the input ports of rate and acceleration (-1: none, 0 all the time). SHIFT: whether a quarter turn is added. */
enum { MB_LAW_TYPE, MB_LAW_P, MB_LAW_N, MB_LAW_OF, MB_LAW_SHIFT, MB_LAW_FIELDS };
enum { MB_LAW_CONSTANT, MB_LAW_LINEAR, MB_LAW_SINE, MB_LAW_INPUT, MB_LAW_TABLE, MB_LAW_FORMULA };
enum { MB_OF_TIME, MB_OF_PLACE, MB_OF_RATE };
/* ALONG: the axis of a length, or that of an angle, which is of OF from START. */
enum { MB_MEASURE_TYPE, MB_MEASURE_I, MB_MEASURE_J, MB_MEASURE_ALONG, MB_MEASURE_OF, MB_MEASURE_START, MB_MEASURE_FIELDS };
enum { MB_LENGTH, MB_ANGLE };
/* When measures were last kept; and of the angle that differed the most from its prediction by how much, when, and which. */
enum { MB_TURNED_AT, MB_TURNED_OFF, MB_TURNED_WHEN, MB_TURNED_WHICH, MB_TURNED_SIZE };
/* I, J: markers, or the numbers of a joint's coordinate in q and in v; I below zero is measure -1 - I. LAW: the first of one law, or of three:
   components of a load; stiffness, damping and actuator of a spring. P: other numbers. EXTRA: axes of a load, components of a spring, the measured
   angle of a planar bushing; for a coordinate its sign in the tree, ±2 where the tree is a quarter turn ahead.
   A bearing: journal I, bush J, LAW its model, EXTRA its options, P nine numbers.
   A contact: pin I, hole J, LAW one of MB_CONTACT_… and above MB_CONTACT_WEAR_SHIFT how many sections of its hole wear, EXTRA its number
   among the contacts, P MB_PLAY_… and then MB_WEAR_…. JointFriction: LAW its record. */
enum { MB_FORCE_TYPE, MB_FORCE_I, MB_FORCE_J, MB_FORCE_P, MB_FORCE_LAW, MB_FORCE_EXTRA, MB_FORCE_FIELDS };
enum { MB_FORCE, MB_TORQUE, MB_SPRING, MB_BUSHING, MB_BEARING, MB_CONTACT, MB_JOINT_SPRING, MB_FRICTION, MB_END_STOP, MB_JOINT_EFFORT, MB_JOINT_FRICTION, MB_COUPLING, MB_FORCE_TYPES };
enum { MB_AXES_WORLD, MB_AXES_BODY, MB_AXES_MARKER };
/* Friction from the reaction of a joint. SLIDE, TURN: its coordinates as numbers in v with their signs, or measures with sign 0. REACTION: the
   number of its link or closure, MARKER that of its second body, below zero if the tree runs the other way. MIDDLE: the marker about which
   couples tilt it. P: coefficient, smoothing speed, diameter, length; of the last two a plane has one. */
enum { MB_RUB_KIND, MB_RUB_SLIDE, MB_RUB_SLIDE_SIGN, MB_RUB_TURN, MB_RUB_TURN_SIGN, MB_RUB_REACTION, MB_RUB_MARKER, MB_RUB_MIDDLE, MB_RUB_P,
       MB_RUB_FIELDS };
enum { MB_RUB_REVOLUTE, MB_RUB_PRISMATIC, MB_RUB_CYLINDRICAL, MB_RUB_KINDS };
/* What takes part in sharing loads among redundant joints, joints before drivers: REACTION is the number of its link or closure, I and J are the
   markers of the joint, P its two stiffnesses or -1. There are none where no reaction is used. */
enum { MB_JOINT_REACTION, MB_JOINT_I, MB_JOINT_J, MB_JOINT_P, MB_JOINT_FIELDS };
/* Of redundant joints: L of blocks/multibody/kernel/constraints/share.c, redundant rows at the start, steps since the last sample; and of the output that owes the most to the
   rule: how much in N, in its own unit, of how much, when, and which. */
enum { MB_SHARED_LENGTH, MB_SHARED_REDUNDANT, MB_SHARED_STEPS, MB_SHARED_WORST, MB_SHARED_PART, MB_SHARED_WHOLE, MB_SHARED_TIME, MB_SHARED_OUTPUT,
       MB_SHARED_SIZE };
/* Of laws that prescribe motion: when they were last looked at, one of MB_JUMP_FOUND, …; of jumps of their value and of their rate how many, and of the largest its size, when
   and which. */
enum { MB_JUMP_COUNT, MB_JUMP_SIZE, MB_JUMP_WHEN, MB_JUMP_WHICH, MB_JUMP_FIELDS };
enum { MB_JUMP_FOUND, MB_JUMP_BEGUN, MB_JUMP_STEPPED }; /* the initial state; with inputs as they are then; and a step was taken */
enum { MB_JUMP_LAST, MB_JUMP_STAGE, MB_JUMP_PLACE, MB_JUMP_RATE = MB_JUMP_PLACE + MB_JUMP_FIELDS, MB_JUMPS_SIZE = MB_JUMP_RATE + MB_JUMP_FIELDS };
/* A joint's coordinate, or its speed where RATE is not 0, that the initial state keeps. INDEX: its number in q, or its measure where SIGN is 0;
   V: its number in v; SIGN as of a force on a coordinate; P: its value. */
enum { MB_KEEP_RATE, MB_KEEP_INDEX, MB_KEEP_V, MB_KEEP_SIGN, MB_KEEP_P, MB_KEEP_FIELDS };
enum { MB_OUT_TYPE, MB_OUT_INDEX, MB_OUT_AXIS, MB_OUT_FIELDS };
enum { MB_OUT_POSITION, MB_OUT_QUATERNION, MB_OUT_VELOCITY, MB_OUT_ANGULAR_VELOCITY, MB_OUT_ACCELERATION,
       MB_OUT_ANGULAR_ACCELERATION, MB_OUT_COORDINATE, MB_OUT_SPEED, MB_OUT_JOINT_ACCELERATION, MB_OUT_REACTION_FORCE,
       MB_OUT_REACTION_TORQUE, MB_OUT_DRIVER_EFFORT, MB_OUT_KINETIC, MB_OUT_POTENTIAL, MB_OUT_CLOSURE,
       MB_OUT_ITERATIONS, MB_OUT_RESIDUAL, MB_OUT_CONVERGED, MB_OUT_POWER,
       MB_OUT_ELEMENT, MB_OUT_ELEMENT_POWER, MB_OUT_ELEMENT_ENERGY, /* of the force INDEX; AXIS says which of its quantities */
       MB_OUT_DRIVER_POWER, MB_OUT_WEIGHT_ENERGY, MB_OUT_ENERGY,    /* of the row INDEX; of all elements whose energy is of the kind AXIS */
       MB_OUT_CLOSURE_RATE, MB_OUT_JOINT_CLOSURE, MB_OUT_JOINT_CLOSURE_RATE, /* of the link or closure INDEX */
       MB_OUT_TYPES };
/* Kinds of energy that elements store. */
enum { MB_ENERGY_NONE, MB_ENERGY_ELASTIC, MB_ENERGY_CONTACT, MB_ENERGY_KINDS };
/* What is shown of a bearing, as MB_OUT_AXIS. */
enum { MB_FILM_OFFSET, MB_FILM_FORCE, MB_FILM_ECCENTRICITY, MB_FILM_TORQUE, MB_FILM_THICKNESS, MB_FILM_PRESSURE, MB_FILM_POWER_LOSS,
       MB_FILM_THIN, MB_FILM_ROUNDS, MB_FILM_QUANTITIES };
/* Options of a bearing are below the shift; above it 1 + the first of the two rows that hold it, or 0 for a force. */
enum { MB_BEARING_NUMBERS = 9, MB_BEARING_ROW_SHIFT = 9 };
/* Of bearings that rows hold: rounds in the last step, steps that did not settle, when first, and by how much at worst. */
enum { MB_CARRIED_ROUNDS, MB_CARRIED_FAILURES, MB_CARRIED_FIRST, MB_CARRIED_WORST, MB_CARRIED_SIZE };
/* Of films: the time of the last step, how many steps there were; in how many of them accelerations were compared with the change of
   velocities, how many times these differed, when first, and in which force at last. */
enum { MB_FILMS_TIME, MB_FILMS_STEPS, MB_FILMS_COMPARED, MB_FILMS_UNRESOLVED, MB_FILMS_FIRST, MB_FILMS_FORCE, MB_FILMS_SIZE,
       MB_FILM_MEMORY = BL_THINNED_SIZE + 6 }; /* of each, BL_THINNED_…, velocity and acceleration before a comparison */
/* How surfaces of a contact press, what is shown of it, and what it remembers. */
enum { MB_CONTACT_HUNT_CROSSLEY, MB_CONTACT_LANKARANI_NIKRAVESH, MB_CONTACT_RIGID, MB_CONTACT_LAWS };
enum { MB_CONTACT_OFFSET, MB_CONTACT_GAP, MB_CONTACT_FORCE, MB_CONTACT_NORMAL_FORCE, MB_CONTACT_ANGLE, MB_CONTACT_ANGLE_ON_PIN,
       MB_CONTACT_SLIP, MB_CONTACT_TOUCHES, MB_SHOWN_IMPACTS, MB_SHOWN_IMPULSE, MB_SHOWN_SLIDING, MB_SHOWN_SLIDING_WORK,
       MB_SHOWN_WEAR, MB_SHOWN_WORN_VOLUME, MB_SHOWN_CONTACT_LOSS, MB_CONTACT_QUANTITIES };
/* The numbers of a contact, from MB_FORCE_P on. */
enum { MB_PLAY_CLEARANCE, MB_PLAY_PIN_RADIUS, MB_PLAY_FRICTION, MB_PLAY_SLIP_SPEED, MB_PLAY_STIFFNESS, MB_PLAY_EXPONENT, MB_PLAY_DAMPING,
       MB_PLAY_RESTITUTION = MB_PLAY_DAMPING, MB_PLAY_SLOWEST, MB_PLAY_RIGID_RESTITUTION = MB_PLAY_SLIP_SPEED,
       MB_PLAY_RIGID_TANGENTIAL };
/* And after those of its law, if its hole wears. Sections are few enough for a map, and enough for a hole to be round. */
enum { MB_WEAR_COEFFICIENT, MB_WEAR_HARDNESS, MB_WEAR_LENGTH, MB_WEAR_NUMBERS };
enum { MB_CONTACT_WEAR_SHIFT = 4, MB_WEAR_FEWEST = 36, MB_WEAR_MOST = 3600 };
/* When it began; of rigid ones how they touch, how often they were hit, the sum of impulses, how far they slid, ∫ N |slip| dt, and how often
   friction was left out. */
enum { MB_CONTACT_BEGAN, MB_CONTACT_MODE, MB_CONTACT_IMPACTS, MB_CONTACT_IMPULSE, MB_CONTACT_SLIDING, MB_CONTACT_SLIDING_WORK,
       MB_CONTACT_PARADOXES, MB_CONTACT_MEMORY };
enum { MB_FLIES, MB_SLIDES, MB_STICKS, MB_SLIDES_BACK = -1 }; /* modes: slip along t, none, against t */
/* What is shown of rubbing, and of the power of the whole, as MB_OUT_AXIS. */
enum { MB_JOINT_FRICTION_FORCE, MB_JOINT_FRICTION_TORQUE, MB_JOINT_FRICTION_LOAD, MB_JOINT_FRICTION_POWER_LOSS, MB_JOINT_FRICTION_QUANTITIES };
enum { MB_POWER_IN, MB_POWER_LOSS, MB_EFFICIENCY, MB_POWER_QUANTITIES };

/* The head of the integers. */
enum { MB_LINKS, MB_NQ, MB_NV, MB_BODIES, MB_MARKERS, MB_ROWS, MB_CUTS, MB_PATHS, MB_PAIRS, MB_JACOBIAN, MB_LAWS, MB_FORCES,
       MB_OUTPUTS, MB_NONZEROS, MB_MEASURES, MB_WORDS, MB_NAMES, MB_MASS_ENTRIES, MB_CONTACTS, MB_JOINT_FRICTIONS, MB_JOINTS, MB_MOVERS, MB_KEEPS, MB_INTERNAL, MB_INTEGRATOR, MB_SUBSTEPS, MB_PLANAR, MB_GRAVITY, MB_SETTINGS,
       MB_AT_LINKS, MB_AT_BODIES, MB_AT_MARKERS, MB_AT_ROWS, MB_AT_CUTS, MB_AT_PATHS, MB_AT_PAIRS, MB_AT_LAWS, MB_AT_FORCES, MB_AT_OUTPUTS, MB_AT_MEASURES, MB_AT_WORDS,
       MB_AT_MASS, MB_AT_PERMUTATION, MB_AT_ROW_START, MB_AT_COLUMN_OF, MB_AT_SLOT_OF, MB_AT_COLUMN_START, MB_AT_ROW_OF, MB_AT_NAMES,
       MB_AT_JOINT_FRICTIONS, MB_AT_JOINTS, MB_AT_MOVERS, MB_AT_KEEPS, MB_HEAD };

/* Settings, in this order among the parameters. */
enum { MB_ALPHA, MB_TOLERANCE, MB_RADIUS, MB_SETTINGS_COUNT };

enum { MB_RK4, MB_IMPLICIT, MB_INTEGRATORS }; /* of internal steps */

typedef struct {
    double R[9], p[3];          /* of the joint frame in the parent link */
    double base[3];             /* where its branch of the tree starts on the ground */
    double R_body[9], p_body[3]; /* of the body frame in the link */
    double mass, com[3], inertia[9]; /* in the link's axes, inertia about the center of mass */
} mb_link_data;

typedef struct {
    double R[9], p[3]; /* in its link */
} mb_marker_data;

/* A body as the parameters give it. */
typedef struct {
    double mass, com[3], inertia[9], R[9], p[3], v[3], w[3];
} mb_body_data;

typedef struct {
    double R[9], p[3], r[3], axis[3]; /* pose in the world; origin from the parent's; joint axis */
    double local[3];                  /* origin from the base of its branch */
    double w[3], v[3];                /* angular velocity, velocity of the origin */
    double wd[3], vd[3];              /* their derivatives; from the velocities alone until accelerations are known */
    double c[3], inertia[9];          /* center of mass from the origin; inertia about it, in world axes */
    double F[3], N[3];                /* wrench at the origin */
    double mass, first[3], second[9]; /* of all outboard: mass, mass × center, inertia about the origin */
} mb_link_state;

/* What a closure's row does: a force F at the second marker, -F at the first, and couples on their two links. */
typedef struct {
    double F[3], N_i[3], N_j[3];
    double size; /* of what the row's value is the difference of: rounding makes eps times as much */
} mb_row_state;

/* Where the two markers of a closure are: in the world, and from the bases of their branches. The second leave out the place of the
   mechanism, so that what they tell is as exact far from the origin as near it; d, from the first marker to the second, is found so. */
typedef struct {
    double P_i[3], P_j[3], local_i[3], local_j[3], d[3], R_i[9], R_j[9];
} mb_cut_state;

/* What implicit steps need. `rate` is v'; `mean` the averaged acceleration of generalized-α. */
typedef struct {
    double *flags, *rate, *mean, *lambda, *inputs, *stiffness, *damping;      /* memory: nv, rows, inputs, nv × nv */
    double *matrix, *pivots, *u, *change, *direction;                         /* work space: nv × nv, nv */
    double *q_start, *q_moved, *v_start, *rate_start, *mean_start, *lambda_start;
} mb_implicit;

/* ITERATIONS and RESIDUAL are those of Newton in the last step, HALVED says that it did not converge as a whole. */
enum { MB_IMPLICIT_STARTED, MB_IMPLICIT_FRESH, MB_IMPLICIT_ITERATIONS, MB_IMPLICIT_RESIDUAL, MB_IMPLICIT_HALVED, MB_IMPLICIT_FLAGS };
enum { MB_IMPLICIT_LARGEST = 300 }; /* speeds: the matrix is full */
#define MB_SMALLEST_PART (1.0 / 1024.0) /* of an implicit step that does not converge as a whole */

/* What a rigid contact is judged by: N and `spare` are infinite where it flies. */
typedef struct {
    double gap, closing, N, spare;
} mb_event_functions;
enum { MB_AT_FROM, MB_AT_MIDDLE, MB_AT_END, MB_AT_TO, MB_EVENT_TIMES };

/* A rigid contact as it is. `closing` and `outwards` are the rates of |c|, `bias` what of `outwards` no joint adds; `spare` is μ N - |T|. */
typedef struct {
    double mode, before, touched;                        /* one of MB_FLIES …; when a step began; whether it touched before an impact */
    double stopped, tries, slippery;                     /* whether slip just ended; ways to touch so far; whether friction is left out */
    double gap, closing, bias, outwards, slip, slip_bias, slipping, N, T, spare;
    double tolerance, located, speed_rounding, speed_floor, rate_rounding;
    double passed[2];                                    /* impulses through it by unit impulses on the contact that is hit */
    double slid, worked, slid_start, worked_start;       /* in the step that is tried, and their rates at its start */
    mb_event_functions at[MB_EVENT_TIMES];
} mb_rigid;

/* Axes of a bearing, from its middle to the marker that its reaction is about, and what couples press: 2 / length, 2 / width. */
typedef struct {
    double x[3], y[3], z[3], arm[3], tilt, twist;
} mb_joint_friction_frame;

/* What friction from reactions needs, all of it work space; see rubbing.c. */
typedef struct {
    double *load;                      /* of each: the normal load that is found */
    double *slide, *turn;              /* of each: its efforts for a load of 1 N */
    double *base, *response;           /* MB_RUB_PARTS of each reaction without friction; and what a load of 1 N in each adds to them */
    double *acceleration, *lambda;     /* of each: what a load of 1 N does, nv and rows */
    double *force, *no_bias;           /* nv, rows */
    mb_joint_friction_frame *frame;
    mb_link_state *still;              /* the links at rest */
} mb_joint_friction;
enum { MB_RUB_PARTS = 5 };

/* What a null vector does to a joint: force and moment, scaled; or to a row. */
typedef struct {
    int32_t vector, next; /* next of the list, or -1 */
    double effect[6];
} mb_share_entry;

/* Of blocks/multibody/kernel/constraints/share.c: the first five are memory, the others work space. */
typedef struct {
    double *order;                         /* rows and columns of pivots at the start, as exchanges; 2 rows */
    double *row_scale, *row_unit;          /* rows each */
    double *column_unit, *joint_scale;     /* nv; 2 for each joint */
    double *matrix;                        /* J, rows × nv */
    double *basis, *gram;                  /* null vectors of Jᵀ one after the other, and AᵀA: rows × rows each */
    double *right;                         /* rows */
    double *place, *wrench;                /* 3 for each joint, its second marker; 6 for each link */
    mb_share_entry *entries;               /* rows × (joints + rows) */
    int32_t *row_at, *column_at;           /* orders of elimination: rows, nv */
    int32_t *lists, *joint_of, *reached;   /* of each joint and row its last entry; of each link its joint; joints that a vector reaches */
    int32_t count, entry_count, reached_count; /* null vectors, entries, joints that were reached */
} mb_sharing;

/* Work space of the initial state; see start.c. `size` is that of the mechanism, in m; `looks` counts
   the poses that were looked at. */
typedef struct {
    double *q, *step, *pulled, *last, *still;                            /* nq, nv */
    double *open;                                                        /* two of each body */
    double *rows, *replies, *matrix;                                     /* of kept values: C, A⁻¹ Cᵀ, S */
    double *error, *share, *scale, *order, *decided;                     /* one for each */
    double size, looks;
} mb_start;

typedef struct {
    const int32_t *head, *links, *markers, *rows, *cuts, *paths, *pairs, *laws, *forces, *outputs, *mass_slots;
    const int32_t *permutation, *row_start, *column_of, *slot_of, *column_start, *row_of;
    const int32_t *bodies, *measures, *words, *names, *joint_frictions, *joints, *movers, *keeps;
    const double *p, *const *u, *const *u1, *const *u2;
    const double *settings;
    double gravity[3];
    double since; /* when the inputs were taken that a internal step holds; else they are those of the time */
    const unsigned char *held; /* of each input port, whether it was taken at the last tick, `tick_age` earlier than that; may be NULL */
    double tick_age;
    bool solved; /* whether accelerations and multipliers are those of the present state */
    int32_t torn; /* the force that is a bearing that was found without a film, or -1 */
    int32_t jammed; /* the force that is a rigid contact that cannot move, or -1 */
    int32_t rigid_count;
    double whole; /* s: a whole own step */
    int32_t endless; /* the rubbing whose load was found to have no end, or -1 */
    int32_t link_count, nq, nv, body_count, marker_count, row_count, cut_count, nonzeros, keep_count;

    mb_link_data *data;
    mb_marker_data *marker_data;
    mb_body_data *body;
    mb_link_state *link;
    mb_row_state *row_state;
    mb_cut_state *cut_state;
    double *phi, *phi_rate, *bias, *lambda, *alpha, *row_work; /* one for each row */
    double *jacobian;                                /* one block for each closure: rows × path */
    double *force;                                   /* generalized forces, nv */
    double *acceleration, *step, *residual, *work;   /* nv each */
    double *mass_diagonal, *mass_off;                /* M on the pattern of the factor */
    double *k_diagonal, *k_off, *pivot, *factor;     /* K, and its factors: L by columns */
    double *articulated;                             /* 34 for each link */
    double *status;                                  /* iterations, residual, converged */
    double *turns, *turn_rates;                      /* of each measure, its value and rate after the last step */
    double *turned;                                  /* MB_TURNED_…, if there are measures */
    double *told;                                    /* what mb_watch_step has seen */
    double *contacts;                                /* MB_CONTACT_MEMORY for each contact */
    double *wear;                                    /* of holes that wear; see blocks/multibody/kernel/constraints/wear.c */
    double *joint_friction;                                 /* what frictions do, and the equations for normal forces */
    mb_rigid *rigid;                                 /* one for each contact; only rigid ones have it */
    double *thinned;                                 /* of films: MB_FILMS_…, then MB_FILM_MEMORY for each */
    double *offset, *carried, *way;                  /* of each row, what a bearing adds to a point; see blocks/multibody/kernel/constraints/bearing_constraint.c */
    double *kept;                                    /* work space for q and v, and v once more */
    double *pushed;                                  /* work space for the power of one element: 6 of each link, nv */
    double *own;                                     /* q and v of a block with its own step, and its work space */
    mb_implicit implicit;
    mb_joint_friction rub;
    mb_sharing share;
    double *shared;                                  /* MB_SHARED_…, if there are joints */
    double *moved, *jumps;                           /* of each mover its law and two derivatives after the last step; MB_JUMP_… */
    mb_start start;
} mb_view;

enum { MB_STATUS_ITERATIONS, MB_STATUS_RESIDUAL, MB_STATUS_CONVERGED, MB_STATUS_CLOSURE, MB_STATUS_COUNT };

static inline bool mb_in_range(int32_t value, int64_t low, int64_t end) { return value >= low && value < end; }
static inline bool mb_is_driver(int32_t row_type) { return row_type >= MB_ROW_DRIVER && row_type <= MB_ROW_DRIVEN_ANGLE; }

/* Of steps that were too coarse: whether the last was, how many, when first; of the worst how bad, when, and which joint was open by
   how much; the largest lever of a singular position; and the liveliest motion so far. */
enum { MB_MONITOR_STEP_TOO_LARGE, MB_MONITOR_COUNT, MB_MONITOR_FIRST, MB_MONITOR_PART, MB_MONITOR_TIME, MB_MONITOR_JOINT, MB_MONITOR_LENGTH, MB_MONITOR_ANGLE, MB_MONITOR_LEVER,
       MB_MONITOR_FASTEST, MB_MONITOR_SIZE };

enum { MB_INIT_LIMIT = 60, MB_STEP_LIMIT = 6 }; /* iterations of a projection */

/* Where everything lies; the same walk gives the sizes of memory and work space. */
void mb_open(const bl_block *b, mb_view *m, int64_t *memory, int64_t *scratch);

/* tree.c */
void mb_prepare(mb_view *m);
bool mb_body_sound(const mb_body_data *body);
void mb_pose_from_bodies(mb_view *m, double *q, double *v);
void mb_positions(mb_view *m, const double *q);
void mb_inertias(mb_view *m);
void mb_velocities(mb_view *m, const double *v);
void mb_mass(mb_view *m);
void mb_bias_forces(mb_view *m, double *force);
void mb_tree_accelerations(mb_view *m, double *acceleration);
void mb_set_accelerations(mb_view *m, const double *acceleration);
void mb_coordinate_rates(const mb_view *m, const double *q, const double *v, double *rates);
void mb_move(const mb_view *m, double *q, const double *step);

/* blocks/multibody/kernel/constraints/closure.c */
void mb_rows_position(mb_view *m, double t, const double *q);
void mb_rows_velocity(mb_view *m, double t, const double *v);
void mb_rows_jacobian(mb_view *m);
void mb_jacobian_times(const mb_view *m, const double *x, double *out);
void mb_add_jacobian_transposed(const mb_view *m, const double *rows, double scale, double *out);

/* factor.c */
void mb_weigh_rows(mb_view *m);
void mb_build_k(mb_view *m);
int mb_factor(mb_view *m);
void mb_solve(const mb_view *m, double *x);
void mb_mass_times(const mb_view *m, const double *x, double *out);

/* laws.c */
/* Whether evaluating a law is safe. */
bool mb_law_check(const bl_block *b, const int32_t *law, int64_t *words_used);
/* A law of time, and its first two derivatives. */
double mb_law(const mb_view *m, int32_t law, double t, double *rate, double *second);
/* The value of a law of time, of a length or coordinate x and of its rate v. */
double mb_coefficient(const mb_view *m, int32_t law, double t, double x, double v);

/* blocks/multibody/kernel/constraints/measure.c */
void mb_marker_axes(const mb_view *m, int32_t marker, double *R);
/* Adds to P, V and A what the laws of a marker do to it: along the axes of its body, seen from a body that turns; V and A may be NULL. */
void mb_marker_laws(const mb_view *m, int32_t marker, double t, double *P, double *V, double *A);
/* A marker's place with what its laws do, its velocity and acceleration; V and A may be NULL. */
void mb_marker_motion(const mb_view *m, int32_t marker, double t, double *P, double *V, double *A);
/* The axis along or about which it is measured, in world axes, and whether the body of its first marker carries that. */
void mb_measure_axis(const mb_view *m, int32_t measure, double *axis);
bool mb_measure_axis_on_first(const mb_view *m, int32_t measure);
double mb_measure(const mb_view *m, int32_t measure, double t);
double mb_measure_rate(const mb_view *m, int32_t measure, double t, double *second);
void mb_measure_push(const mb_view *m, int32_t measure, double t, double effort);
/* Starts, and at the end of each step keeps, what angles are unwrapped by. */
void mb_start_measures(mb_view *m, double t, const double *q, const double *v);
void mb_keep_turns(mb_view *m, double t, const double *q, const double *v);

/* load.c */
/* What an element of a mechanism does: one entry for each kind of force, in elements/. NULL where it does not have it. `force` is its record.
   Those on a joint coordinate have the numbers of that in I, J and EXTRA; `named` ones have a name for messages. */
typedef struct {
    int64_t contacts;
} mb_tally; /* elements so far whose records must be numbered */
enum { MB_SHOWN_POWER = -1 };
typedef struct {
    bool on_coordinate, named;
    int energy_kind; /* MB_ENERGY_… */
    /* Whether its integers keep all later operations within their arrays. */
    bool (*check)(const bl_block *b, const int32_t *force, mb_tally *tally);
    /* Whether its numbers, which may be set, make sense; and says why there is no going on. */
    bool (*sound)(const mb_view *m, const int32_t *force);
    int (*refuse)(const bl_block *b, const mb_view *m, int32_t number, double t);
    /* Starts what it keeps in memory, and keeps it up after each whole step, at the poses of its end. */
    void (*start)(const mb_view *m, const int32_t *force, double t);
    void (*keep)(mb_view *m, const int32_t *force, double t);
    /* Adds what it does to the links' F and N, and to the efforts on coordinates of the tree. */
    void (*load)(mb_view *m, const int32_t *force, double t, const double *q, const double *v, double *joint_force);
    /* In J, what it stores. In W, what it puts into the mechanism, of what is counted as power_in; what it turns into heat; and what it does to the
       bodies in all, where that is not the power of its load. */
    double (*energy)(const mb_view *m, const int32_t *force, double t, const double *q);
    double (*source)(const mb_view *m, const int32_t *force, double t, const double *q, const double *v);
    double (*loss)(mb_view *m, const int32_t *force, double t, const double *q, const double *v);
    double (*power)(mb_view *m, const int32_t *force, double t, const double *q, const double *v);
    /* Its outputs: how many values `what` has, -1 for none; whether that, or MB_SHOWN_POWER, needs accelerations; and their values. An error says
       what is wrong by `refuse`. */
    int32_t (*width)(const int32_t *force, int32_t what);
    bool (*needs_solution)(const int32_t *force, int32_t what);
    int (*show)(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what, double *y);
} mb_element;
extern const mb_element *const mb_elements[MB_FORCE_TYPES];
static inline const mb_element *mb_element_of(const int32_t *force) { return mb_elements[force[MB_FORCE_TYPE]]; }
static inline const int32_t *mb_force_record(const mb_view *m, int32_t number) { return m->forces + number * MB_FORCE_FIELDS; }
static inline int32_t mb_element_number(const mb_view *m, const int32_t *force) { return (int32_t)((force - m->forces) / MB_FORCE_FIELDS); }
/* Two markers in I and J; a coordinate; `count` numbers from P on; `count` laws from LAW on. */
bool mb_check_markers(const bl_block *b, const int32_t *force);
bool mb_check_coordinate(const bl_block *b, const int32_t *force);
bool mb_check_numbers(const bl_block *b, const int32_t *force, int64_t count);
bool mb_check_laws(const bl_block *b, const int32_t *force, int64_t count);

/* A force F at P and a couple N on the body of marker j, and the opposite on that of i. */
typedef struct {
    int32_t i, j;
    double P[3], F[3], N[3];
} mb_pair;
/* A row that ties joint coordinates instead of markers, alone in its closure. Its operations take the number of the closure. */
typedef struct {
    bool (*check)(const bl_block *b, const int32_t *row);
    void (*place)(mb_view *m, int32_t cut, double t, const double *q); /* Φ and its size */
    void (*rate)(mb_view *m, int32_t cut, double t, const double *v);  /* Φ̇ and c */
    double (*slope)(const mb_view *m, int32_t cut, const int32_t *path); /* ∂Φ̇/∂v of one of its speeds */
    int (*pairs)(const mb_view *m, int32_t cut, mb_pair *pairs);       /* up to two, by which Φ moves bodies that no effort of the tree moves */
    bool (*turns)(const mb_view *m, int32_t cut);                      /* whether Φ is an angle */
    /* Chooses the turn that its angles start in, before drivers and kept values do, and after. */
    void (*start_turns)(const mb_view *m, int32_t cut, double t, double *q);
    void (*follow_turns)(const mb_view *m, int32_t cut, double t, double *q);
} mb_coordinate_row;
extern const mb_coordinate_row *const mb_coordinate_rows[MB_ROW_KINDS];
/* That of a closure, or NULL where it is between two markers. */
static inline const mb_coordinate_row *mb_coordinate_row_of(const mb_view *m, int32_t cut) {
    return mb_coordinate_rows[m->rows[m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW] * MB_ROW_FIELDS + MB_ROW_TYPE]];
}

/* Adds a force at P and a couple to the link of a marker; either may be NULL. */
void mb_push(const mb_view *m, int32_t marker, const double *P, const double *F, const double *N);
/* A coordinate of a joint from that of the tree, by its sign of MB_FORCE_EXTRA. */
double mb_coordinate(int32_t sign, double q);
/* Chooses the turn that angles start in, of the tree and measured: that of their driver; else between -π and π, also if the tree is a quarter turn ahead. */
void mb_start_turns(const mb_view *m, double t, double *q);
void mb_add_loads(mb_view *m, double t, const double *q, const double *v, double *joint_force);
/* What the load of an element does to the bodies, in W. */
double mb_pushed_power(mb_view *m, const int32_t *force, double t, const double *q, const double *v);
/* After each whole step, at the poses of its end. */
void mb_keep_elements(mb_view *m, double t, const double *q, const double *v);
/* A joint coordinate that an element acts on, its rate, and the effort that it puts on it. */
typedef double (*mb_effort)(const mb_view *m, const int32_t *force, double t, double x, double v);
double mb_joint_coordinate(const mb_view *m, const int32_t *force, double t, const double *q);
double mb_joint_rate(const mb_view *m, const int32_t *force, double t, const double *v);
void mb_push_coordinate(const mb_view *m, const int32_t *force, double t, const double *q, const double *v, mb_effort effort, double *joint_force);
/* Stiffness, damping and actuator of a spring are three laws of t, x and v in a row; P is where it is free. It stores by a constant stiffness. */
double mb_spring_effort(const mb_view *m, const int32_t *force, double t, double x, double v);
double mb_spring_energy(const mb_view *m, const int32_t *force, double x);
/* A marker's place and velocity, as fixed on its link; link -1 is the ground. */
void mb_marker_place(const mb_view *m, int32_t marker, double *P);
void mb_marker_velocity(const mb_view *m, int32_t marker, const double *P, double *velocity);

/* blocks/multibody/elements/bearing.c */
/* A film as it is: seen from the axes R of the bush at P. */
typedef struct {
    bl_film_bearing bearing;
    bl_film_motion motion;
    bl_film_load load;
    double R[9], P[3];
} mb_film;
bl_film_bearing mb_bearing_read(const mb_view *m, const int32_t *force);
/* All of a film but its load. */
void mb_bearing_see(const mb_view *m, const int32_t *force, double t, mb_film *film);
int mb_bearing_evaluate(const mb_view *m, const int32_t *force, double t, mb_film *film);
/* Numbers in memory about films that were too thin, or too stiff for the steps: none without films. */
int64_t mb_thinned_memory(const int32_t *forces, int32_t count);
/* Starts, and goes on after each accepted step: counts films that are below their limits, or not resolved, at q and v. */
void mb_start_thinned(const mb_view *m, double t);
void mb_count_thinned(mb_view *m, double t, const double *q, const double *v);
/* Of all bearings, as a part of the clearance, at the present poses; infinite without any. */
double mb_thinnest_film(const mb_view *m, double t);
/* How far to move for differences, in m or rad: little enough for every film and contact. */
double mb_difference(const mb_view *m);

/* blocks/multibody/elements/clearance.c */
/* Where the surfaces are nearest: place P on the pin, directions n outwards and t across, pin less hole; N and T as the pin feels them,
   against n and t. `approach` is the rate of -gap, and `slope` what of it a motion along n makes: 1 in a round hole. `offset` is in axes of
   the hole, all else in those of the world. */
typedef struct {
    double P[3], n[3], t[3], offset[3], gap, approach, slope, slip, N, T;
    bool touches;
} mb_contact;
/* How many numbers its law has. */
int32_t mb_contact_numbers(const int32_t *force);
bool mb_contact_sound(const mb_view *m, const int32_t *force);
void mb_contact_see(const mb_view *m, const int32_t *force, double t, mb_contact *at);
void mb_contact_press(const mb_view *m, const int32_t *force, mb_contact *at);
/* What friction and damping turn into heat, of a contact whose N and T are known. */
double mb_contact_loss(const mb_view *m, const int32_t *force, const mb_contact *at);

/* blocks/multibody/kernel/constraints/wear.c */
/* Into how many sections a hole is divided that wears; 0 if it does not. */
int32_t mb_wear_sections(const int32_t *force);
int64_t mb_wear_memory(const int32_t *forces, int32_t count);
/* Gap, its slope and the direction of the contact, for an offset of the pin in axes of the hole. */
void mb_wear_see(const mb_view *m, const int32_t *force, const double *offset, double *gap, double *slope, double *n);
void mb_wear_start(const mb_view *m, const int32_t *force, double t);
/* Wears the hole by what N and slip did since it was last told. */
void mb_wear_keep(const mb_view *m, const int32_t *force, double t, const mb_contact *at);
/* The depth of each section, and the volume of them all. */
void mb_wear_show(const mb_view *m, const int32_t *force, double *y);
double mb_worn_volume(const mb_view *m, const int32_t *force);

/* blocks/multibody/kernel/constraints/rigid_contact.c */
bool mb_rigid_check(const bl_block *b);
/* The number of the first of its two rows, and what belongs to a row. */
int32_t mb_rigid_row(const mb_view *m, int32_t number);
mb_rigid *mb_rigid_of(const mb_view *m, int32_t row);
/* Modes from memory, and back. */
void mb_rigid_load(mb_view *m);
void mb_rigid_store(mb_view *m);
/* Whether a row is a constraint at present. */
bool mb_row_holds(const mb_view *m, int32_t row);
void mb_rigid_place(mb_view *m, int32_t row, const double *d);
void mb_rigid_rate(mb_view *m, int32_t row, const double *d, const double *dd, const double *ddd);
int mb_rigid_rub(mb_view *m);
void mb_rigid_note(mb_view *m);
/* Whether its surfaces slide with friction. */
bool mb_rigid_rubs(const mb_view *m, int32_t row);
double mb_rigid_rounding(const mb_view *m);
/* As mb_accelerations, with modes of contacts that fit. */
int mb_rigid_balance(mb_view *m, double t, const double *q, const double *v);
/* Impacts, then the balance. */
int mb_rigid_settle(mb_view *m, double t, double *q, double *v);
int32_t mb_rigid_start(mb_view *m, double t, double *q, double *v);
/* Leaves friction out of all contacts, from here to the end of the step. */
void mb_rigid_leave_friction(mb_view *m);
/* Adds what the step in hand did to the sums in memory. */
void mb_rigid_count(mb_view *m, int32_t number);
void mb_rigid_force(const mb_view *m, int32_t force_number, mb_contact *at);

/* blocks/multibody/kernel/steps/events.c */
int mb_rigid_advance(bl_block *b, mb_view *m, double t, double h);

/* multibody.c */
/* Puts what a step gave back on the constraints, and keeps what is told of a step that is accepted. */
int mb_close_step(mb_view *m, double t, double *x);
void mb_note_step(mb_view *m, double t, double h, const double *x);
/* What the constraint of a joint does to the body of its second marker, and about that; see there. Needs the wrenches of mb_find_wrenches. */
void mb_reaction(const mb_view *m, int32_t index, int32_t marker, double *F, double *N);
/* Takes out of a wrench on link `last`, the end of the chain of a joint, what acts along the coordinates of the joint. */
void mb_take_out_efforts(const mb_view *m, int32_t last, double *F, double *N);
/* Finds the wrenches through tree joints, and shares loads among redundant joints; needs accelerations. */
void mb_find_wrenches(mb_view *m, double t, const double *q, const double *v);
/* Applies the multipliers of all closures but drivers of the tree as forces on the links. */
void mb_push_multipliers(const mb_view *m);
/* blocks/multibody/kernel/constraints/bearing_constraint.c */
/* The first of the two rows that hold a bearing, or -1: it acts by force, or is none. */
int32_t mb_bearing_row(const int32_t *force);
bool mb_bearing_rows_check(const int32_t *force, const int32_t *rows, int64_t row_count, bool planar);
/* Puts journals that rows hold where their films carry the multipliers. Returns 0 if one cannot. */
int mb_carry_bearings(mb_view *m, double t, double *q, double *v);
void mb_diagnose_carried(const bl_block *b, const mb_view *m);

/* rubbing.c */
bool mb_joint_friction_check(const bl_block *b, const int32_t *joint_friction);
/* Whether its numbers, which may be set, are those of a bearing. */
bool mb_joint_friction_sound(const mb_view *m, int32_t number);
/* Adds to the solution without friction what friction does; needs K factored where there are rows. Returns whether there is a solution. */
bool mb_rub(mb_view *m, double t, const double *v);

/* coupling.c */
/* ∂Φ/∂x of the first coordinate of a coupling. */
double mb_coupling_factor(const mb_view *m, int32_t row);

/* blocks/multibody/kernel/constraints/share.c */
bool mb_joint_check(const bl_block *b, const int32_t *joint);
/* Sets L and looks for redundant rows in the pose q. */
void mb_share_start(mb_view *m, double t, const double *q);
/* Finds the null vectors at the present poses; needs J. */
void mb_share_prepare(mb_view *m);
/* Puts multipliers and the wrenches through the links to those of minimum norm; needs both, and mb_share_prepare at these poses. */
void mb_share(mb_view *m);
/* The row whose multiplier an output is, but for a factor, or -1. */
int32_t mb_effort_row(const mb_view *m, const int32_t *out);
/* Looks, now or every few steps, how much of the outputs follows from the rule. */
void mb_sample_shared(mb_view *m, double t, const double *q, const double *v, bool now);

/* blocks/multibody/kernel/steps/jumps.c */
/* Starts, and after each step does, the watch over laws that prescribe motion. */
void mb_start_movers(mb_view *m, double t);
void mb_watch_movers(mb_view *m, double t);
/* Once, when inputs are known: whether they prescribe another motion than the initial state was found for. Then it is found again; in any
   case that is noted, in memory, so that a state which is restored is not found again. */
bool mb_begin_movers(mb_view *m, double t);
void mb_begun_movers(mb_view *m);

/* power.c */
/* MB_POWER_IN, …; needs accelerations. */
double mb_power(mb_view *m, double t, const double *q, const double *v, int32_t what);
/* Of all elements, or of those of one kind of energy; of weight, and of both. */
double mb_stored_energy(const mb_view *m, double t, const double *q, int kind);
double mb_weight_energy(const mb_view *m);
double mb_potential_energy(const mb_view *m, double t, const double *q);
/* The rate of a driven coordinate is that of its law; the effort on it is -λ. */
double mb_driver_power(const mb_view *m, int32_t row, double t);

/* dynamics.c */
/* Solves M v' + Jᵀ λ = m->force, J v' + m->bias = 0 with K factored, to the tolerance times the largest of v' or of `least`. Returns the
   iterations; `change` is the last of v'. */
int mb_solve_rows(mb_view *m, double least, double *change);
/* Poses and rows at (t, q). */
void mb_update_positions(mb_view *m, double t, const double *q);
int mb_accelerations(mb_view *m, double t, const double *q, const double *v);
int mb_project(mb_view *m, double t, double *q, double *v, int limit);
/* Poses, velocities, Φ and Φ̇ at (t, q, v). */
void mb_kinematics(mb_view *m, double t, const double *q, const double *v);
/* K and its factors at the present poses. */
int mb_refactor(mb_view *m);
/* step = -K⁻¹ Jᵀ w Φ: with the weights of K, of all that would take out nearly all of Φ the one least in the metric of M. */
void mb_closing_step(mb_view *m, const double *weights, double *step);

/* How far the rows are open, as parts of the lengths that they compare. */
double mb_openness(const mb_view *m);

/* start.c */
enum { MB_START_FOUND, MB_START_OPEN, MB_START_MISSED };
/* The initial state. OPEN: the joints do not close, m->kept has what is nearest to it; MISSED: the kept value `missed` cannot be had. */
int mb_start_state(mb_view *m, double t, double *q, double *v, int32_t *missed);
const int32_t *mb_keep_record(const mb_view *m, int32_t n);
/* Whether a kept coordinate is an angle, and what it or its rate is in a state. */
bool mb_keep_turns_about(const mb_view *m, int32_t n);
double mb_kept_now(mb_view *m, int32_t n, double t, const double *q, const double *v);
/* The angle of a rotation, in rad. */
double mb_turn_angle(const double *Q);
/* The diagonal of the box around the given pose, in m. */
double mb_given_size(const mb_view *m);
/* For each body, whether rows and kept coordinates, or speeds, leave its center of mass and its axes a freedom: 1 or 0. */
void mb_find_freedom(mb_view *m, double t, const double *q, bool rate, double *open);

/* diagnostics.c */
bool mb_names_check(const int32_t *names, int64_t count, int64_t wanted);
void mb_close_best(mb_view *m, double t, double *q, const double *v);
/* Say why there is no going on, and return BL_ERROR_BLOCK. */
int mb_fail_assembly(bl_block *b, mb_view *m, double t, const double *q, const double *v);
/* The kept value `number` cannot be had: the state has another. */
int mb_fail_kept(bl_block *b, mb_view *m, int32_t number, double t, const double *q, const double *v);
int mb_fail_factor(bl_block *b, const mb_view *m, double t);
int mb_fail_body(const bl_block *b, const mb_view *m, int32_t number);
int mb_fail_bearing(const bl_block *b, const mb_view *m, int32_t number, double t);
int mb_fail_contact(const bl_block *b, const mb_view *m, int32_t number);
int mb_fail_outside(const bl_block *b, const mb_view *m, int32_t number, double t);
int mb_fail_events(const bl_block *b, const mb_view *m, double t, double h, int count);
int mb_fail_joint_friction(const bl_block *b, const mb_view *m, int32_t number, double t);
int mb_fail_step(bl_block *b, mb_view *m, double t, double h, const double *q, const double *v);
int mb_fail_implicit(bl_block *b, mb_view *m, double t, double h, const double *q, const double *v);
void mb_watch_step(mb_view *m, double t, double h, const double *q, const double *v);
/* A body's given velocities at the origin of its link, less those that the link has. */
void mb_velocity_gap(const mb_view *m, int32_t l, double *turn, double *move);
/* What the initial state (q, v) has otherwise than given. */
void mb_diagnose_start(bl_block *b, mb_view *m, double t, const double *q, const double *v);
void mb_diagnose_films(const bl_block *b, const mb_view *m);
void mb_diagnose_run(bl_block *b, mb_view *m);

/* blocks/multibody/kernel/steps/implicit.c */
/* `part` is that of a whole own step which h is. */
int mb_implicit_advance(bl_block *b, mb_view *m, double t, double h, double part, double *q, double *v);

#endif
