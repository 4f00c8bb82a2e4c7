! Slider-crank of Oldani, section 4.1: crank 1 m, rod 2 m, at 45 degrees; in mm, kg, N, s, degrees.
!
!-------------------------- Default Units for Model ---------------------------!
!
defaults units  &
   length = mm  &
   angle = deg  &
   force = newton  &
   mass = kg  &
   time = sec
!
defaults units  &
   coordinate_system_type = cartesian  &
   orientation_type = body313
!
defaults attributes  &
   inheritance = bottom_up  &
   icon_visibility = on  &
   size_of_icons = 50.0
!
model create  &
   model_name = slider_crank
!
view erase
!
material create  &
   material_name = .slider_crank.steel  &
   adams_id = 1  &
   density = 7.801E-06  &
   youngs_modulus = 2.07E+05  &
   poissons_ratio = 0.29
!
! ****** Ground Part ******
!
defaults model  &
   part_name = ground
!
defaults coordinate_system  &
   default_coordinate_system = .slider_crank.ground
!
marker create  &
   marker_name = .slider_crank.ground.pivot  &
   adams_id = 1  &
   location = 0.0, 0.0, 0.0  &
   orientation = 180.0d, 90.0d, 180.0d
!
marker create  &
   marker_name = .slider_crank.ground.rail  &
   adams_id = 2  &
   location = 0.0, 0.0, 0.0  &
   orientation = 90.0d, 90.0d, 0.0d
!
part create rigid_body mass_properties  &
   part_name = .slider_crank.ground  &
   material_type = .slider_crank.steel
!
part attributes  &
   part_name = .slider_crank.ground  &
   name_visibility = off
!
!----------------------------------- crank ------------------------------------!
!
defaults coordinate_system  &
   default_coordinate_system = .slider_crank.ground
!
part create rigid_body name_and_position  &
   part_name = .slider_crank.crank  &
   adams_id = 2  &
   location = 353.553390593274, 0.0, 353.553390593274  &
   orientation = 0.0d, 0.0d, 0.0d
!
defaults coordinate_system  &
   default_coordinate_system = .slider_crank.crank
!
marker create  &
   marker_name = .slider_crank.crank.cm  &
   adams_id = 3  &
   location = 0.0, 0.0, 0.0  &
   orientation = 0.0d, 0.0d, 0.0d
!
marker create  &
   marker_name = .slider_crank.crank.center  &
   adams_id = 4  &
   location = 0.0, 0.0, 0.0  &
   orientation = 180.0d, 90.0d, 180.0d
!
marker create  &
   marker_name = .slider_crank.crank.foot  &
   adams_id = 5  &
   location = -353.55339, 0.0, -353.55339  &
   orientation = 180.0d, 90.0d, 180.0d
!
marker create  &
   marker_name = .slider_crank.crank.pin  &
   adams_id = 6  &
   location = 353.55339, 0.0, 353.55339  &
   orientation = 180.0d, 90.0d, 180.0d
!
part create rigid_body mass_properties  &
   part_name = .slider_crank.crank  &
   mass = 1.0  &
   center_of_mass_marker = .slider_crank.crank.cm  &
   ixx = 1.0E+05  &
   iyy = 1.0E+05  &
   izz = 1.0E+05  &
   ixy = 0.0  &
   izx = 0.0  &
   iyz = 0.0
!
geometry create shape link  &
   link_name = .slider_crank.crank.LINK_1  &
   i_marker = .slider_crank.crank.foot  &
   j_marker = .slider_crank.crank.pin  &
   width = 40.0  &
   depth = 20.0
!
part attributes  &
   part_name = .slider_crank.crank  &
   color = RED  &
   name_visibility = off
!
!------------------------------------ rod -------------------------------------!
!
defaults coordinate_system  &
   default_coordinate_system = .slider_crank.ground
!
part create rigid_body name_and_position  &
   part_name = .slider_crank.rod  &
   adams_id = 3  &
   location = 1642.52113, 0.0, 353.55339  &
   orientation = 0.0d, 0.0d, 0.0d
!
defaults coordinate_system  &
   default_coordinate_system = .slider_crank.rod
!
marker create  &
   marker_name = .slider_crank.rod.cm  &
   adams_id = 7  &
   location = 0.0, 0.0, 0.0  &
   orientation = 0.0d, 0.0d, 0.0d
!
marker create  &
   marker_name = .slider_crank.rod.pin  &
   adams_id = 8  &
   location = -935.41435, 0.0, 353.55339  &
   orientation = 180.0d, 90.0d, 180.0d
!
marker create  &
   marker_name = .slider_crank.rod.wrist  &
   adams_id = 9  &
   location = 935.41435, 0.0, -353.55339  &
   orientation = 180.0d, 90.0d, 180.0d
!
part create rigid_body mass_properties  &
   part_name = .slider_crank.rod  &
   mass = 2.0  &
   center_of_mass_marker = .slider_crank.rod.cm  &
   inertia_marker = .slider_crank.rod.cm  &
   ixx = 2.0E+05  &
   iyy = 2.0E+05  &
   izz = 2.0E+05
!
!----------------------------------- slider -----------------------------------!
!
defaults coordinate_system  &
   default_coordinate_system = .slider_crank.ground
!
part create rigid_body name_and_position  &
   part_name = .slider_crank.slider  &
   adams_id = 4  &
   location = 2577.93547, 0.0, 0.0  &
   orientation = 0.0d, 0.0d, 0.0d
!
defaults coordinate_system  &
   default_coordinate_system = .slider_crank.slider
!
marker create  &
   marker_name = .slider_crank.slider.cm  &
   adams_id = 10  &
   location = 0.0, 0.0, 0.0  &
   orientation = 0.0d, 0.0d, 0.0d
!
marker create  &
   marker_name = .slider_crank.slider.wrist  &
   adams_id = 11  &
   location = 0.0, 0.0, 0.0  &
   orientation = 180.0d, 90.0d, 180.0d
!
marker create  &
   marker_name = .slider_crank.slider.shoe  &
   adams_id = 12  &
   location = 0.0, 0.0, 0.0  &
   orientation = 90.0d, 90.0d, 0.0d
!
part create rigid_body mass_properties  &
   part_name = .slider_crank.slider  &
   mass = 4.0  &
   center_of_mass_marker = .slider_crank.slider.cm  &
   ixx = 3.0E+05  &
   iyy = 3.0E+05  &
   izz = 3.0E+05
!
!----------------------------------- Joints -----------------------------------!
!
constraint create joint revolute  &
   joint_name = .slider_crank.main  &
   adams_id = 1  &
   i_marker_name = .slider_crank.crank.foot  &
   j_marker_name = .slider_crank.ground.pivot
!
constraint attributes  &
   constraint_name = .slider_crank.main  &
   name_visibility = off
!
constraint create joint revolute  &
   joint_name = .slider_crank.crank_pin  &
   adams_id = 2  &
   i_marker_name = .slider_crank.rod.pin  &
   j_marker_name = .slider_crank.crank.pin
!
constraint create joint revolute  &
   joint_name = .slider_crank.wrist_pin  &
   adams_id = 3  &
   i_marker_name = .slider_crank.slider.wrist  &
   j_marker_name = .slider_crank.rod.wrist
!
constraint create joint cylindrical  &
   joint_name = .slider_crank.slide  &
   adams_id = 4  &
   i_marker_name = .slider_crank.slider.shoe  &
   j_marker_name = .slider_crank.ground.rail
!
!----------------------------------- Forces -----------------------------------!
!
force create direct single_component_force  &
   single_component_force_name = .slider_crank.motor  &
   adams_id = 1  &
   type_of_freedom = rotational  &
   i_marker_name = .slider_crank.crank.center  &
   j_marker_name = .slider_crank.crank.center  &
   action_only = on  &
   function = ""
!
force create body gravitational  &
   gravity_field_name = gravity  &
   x_component_gravity = 0.0  &
   y_component_gravity = 0.0  &
   z_component_gravity = -9806.65
!
simulation script create  &
   sim_script_name = .slider_crank.Last_Sim  &
   commands =   &
              "simulation single_run transient type=auto_select end_time=5.0 step_size=5.0E-04"
!
!---------------------------- Function definitions ----------------------------!
!
force modify direct single_component_force  &
   single_component_force_name = .slider_crank.motor  &
   function = "1.0E+04"
!
!--------------------------- Expression definitions ---------------------------!
!
defaults coordinate_system  &
   default_coordinate_system = ground
!
geometry modify shape link  &
   link_name = .slider_crank.crank.LINK_1  &
   width = (4.0cm)  &
   depth = (2.0cm)
!
material modify  &
   material_name = .slider_crank.steel  &
   density = (7801.0(kg/meter**3))
!
model display  &
   model_name = slider_crank
