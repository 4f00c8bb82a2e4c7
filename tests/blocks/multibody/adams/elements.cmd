! Every kind of object that is read, in inches, pounds and radians; seed of the fuzzer.
defaults units length=inch mass=pound_mass force=pound_force time=second angle=rad
defaults units orientation_type=body321
if condition = (! db_exists(".colors.RED"))
color create color_name=.colors.RED red_component=1.0
end
model create model_name=all
variable create variable_name=.all.k real_value=(2.0(newton/mm)) units="stiffness"
variable set variable_name=.all.n integer_value=3
defaults model part_name=ground
point create point_name=hp location=1, 2, 3
marker create marker_name=base location=0, 0, 0
marker create marker_name=side location=(LOC_RELATIVE_TO({0, 0, 10}, hp)) orientation=0, 90d, 0
floating_marker create floating_marker_name=.all.ground.float
part create rigid_body name_and_position part_name=bar location=10, 0, 0
defaults coordinate_system default_coordinate_system=bar
marker create marker_name=cm location=0, 0, 0
marker create marker_name=end location=-10, 0, 0
marker create marker_name=tip location=10, 0, 0 orientation=(ORI_RELATIVE_TO({0, 0, 90d}, base))
marker create marker_name=skew location=10, 0, 0 orientation=0, 1.5707963267948966, 0
part create rigid_body mass_properties part_name=bar mass=4 center_of_mass_marker=cm &
   ixx=20 iyy=300 izz=310 ixy=1 iyz=0 izx=-1
defaults coordinate_system default_coordinate_system=ground
part create rigid_body name_and_position part_name=rod location=20, 0, 0
marker create marker_name=.all.rod.cm location=5, 0, 0 relative_to=.all.rod
marker create marker_name=.all.rod.i location=0, 0, 0 relative_to=.all.rod
part create rigid_body mass_properties part_name=rod mass=1 center_of_mass_marker=.all.rod.cm &
   inertia_marker=.all.rod.i ixx=5 iyy=30 izz=30
part create rigid_body name_and_position part_name=loose location=0, 40, 0
marker create marker_name=.all.loose.cm location=0, 0, 0 relative_to=.all.loose
part create rigid_body mass_properties part_name=loose mass=1 center_of_mass_marker=.all.loose.cm &
   ixx=5 iyy=5 izz=5
part create rigid_body initial_velocity part_name=loose wz=0.5 vy=2 no_vx=true
constraint create joint revolute joint_name=hinge i_marker_name=bar.end j_marker_name=ground.base &
   friction_enabled=no
constraint create joint universal joint_name=cross i_marker_name=rod.i j_marker_name=bar.skew
constraint create primitive_joint inline jprim_name=line i_marker_name=loose.cm &
   j_marker_name=ground.base
constraint attributes constraint_name=line active=off
force create element_like rotational_spring_damper spring_damper_name=twist i_marker_name=bar.end &
   j_marker_name=ground.base stiffness=50 damping=1 preload=2 displacement_at_preload=0.1
force create element_like translational_spring_damper spring_damper_name=coil &
   i_marker_name=rod.cm j_marker_name=ground.side stiffness=(.all.k) displacement_at_preload=20
force create element_like bushing bushing_name=rubber i_marker_name=loose.cm &
   j_marker_name=ground.side stiffness=10, 10, 10 damping=1, 1, 1 tstiffness=5, 5, 5 &
   tdamping=1, 1, 1 force_preload=0, 0, 0 torque_preload=0, 0, 0
force create direct single_component_force single_component_force_name=pull &
   type_of_freedom=translational i_marker_name=bar.tip j_marker_name=ground.side action_only=off &
   function="-0.5*(DM(bar.tip, ground.side) - 20) - 0.01*VR(bar.tip, ground.side)"
force create direct single_component_force single_component_force_name=motor &
   type_of_freedom=rotational i_marker_name=bar.end j_marker_name=ground.base &
   function="STEP(time, 0, 0, 0.1, .all.n) - 0.1*WZ(bar.end, ground.base)"
force create direct general_force general_force_name=wind i_marker_name=loose.cm &
   j_floating_marker_name=.all.ground.float ref_marker_name=ground.side &
   x_force_function="SHF(time, 0, 1, 6, 0, 0)" y_force_function="0" z_torque_function="0.1"
ude create instance instance_name=.all.spring definition_name=.MDI.Forces.spring
variable modify variable_name=.all.spring.i_marker object_value=(.all.loose.cm)
variable modify variable_name=.all.spring.j_marker object_value=(.all.bar.cm)
variable modify variable_name=.all.spring.stiffness_coefficient real_value=(eval(.all.k/10))
variable modify variable_name=.all.spring.free_length_mode string_value="Design_Length"
force create element_like beam beam_name=beam length=1
force attributes force_name=beam active=off
force create body gravitational gravity_field_name=g z_component_gravity=-386.09
