/* All elements that a mechanism may have, one line each, by MB_FORCE, …; and rows that tie joint coordinates. */
#include "blocks/multibody/kernel/multibody.h"

extern const mb_element mb_element_force, mb_element_torque, mb_element_spring, mb_element_bushing, mb_element_bearing,
    mb_element_clearance_revolute, mb_element_torsional_spring, mb_element_friction, mb_element_stop,
    mb_element_joint_load, mb_element_joint_friction, mb_element_coupling, mb_element_stiction,
    mb_element_joint_stiction, mb_element_push, mb_element_point_force, mb_element_touch, mb_element_touches,
    mb_element_spherical_friction, mb_element_worn, mb_element_touch_rigid;
extern const mb_coordinate_row mb_row_driver, mb_row_coupling, mb_row_formula, mb_row_roll;

const mb_element *const mb_elements[MB_FORCE_TYPES] = {
    [MB_FORCE] = &mb_element_force,
    [MB_TORQUE] = &mb_element_torque,
    [MB_SPRING] = &mb_element_spring,
    [MB_BUSHING] = &mb_element_bushing,
    [MB_BEARING] = &mb_element_bearing,
    [MB_CONTACT] = &mb_element_clearance_revolute,
    [MB_JOINT_SPRING] = &mb_element_torsional_spring,
    [MB_FRICTION] = &mb_element_friction,
    [MB_END_STOP] = &mb_element_stop,
    [MB_JOINT_EFFORT] = &mb_element_joint_load,
    [MB_JOINT_FRICTION] = &mb_element_joint_friction,
    [MB_COUPLING] = &mb_element_coupling,
    [MB_STICTION] = &mb_element_stiction,
    [MB_JOINT_STICTION] = &mb_element_joint_stiction,
    [MB_PUSH] = &mb_element_push,
    [MB_POINT_FORCE] = &mb_element_point_force,
    [MB_TOUCH] = &mb_element_touch,
    [MB_TOUCHES] = &mb_element_touches,
    [MB_SPHERICAL_FRICTION] = &mb_element_spherical_friction,
    [MB_WORN] = &mb_element_worn,
    [MB_TOUCH_RIGID] = &mb_element_touch_rigid,
};

const mb_coordinate_row *const mb_coordinate_rows[MB_ROW_KINDS] = {
    [MB_ROW_DRIVER] = &mb_row_driver,
    [MB_ROW_COUPLING] = &mb_row_coupling,
    [MB_ROW_FORMULA] = &mb_row_formula,
    [MB_ROW_ROLL] = &mb_row_roll,
};
