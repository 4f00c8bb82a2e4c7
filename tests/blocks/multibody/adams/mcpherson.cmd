! McPherson suspension of Oldani, section 4.2, on a plate that moves vertically (listing A.4).
! Written by hand: abbreviated words, design variables, points, and markers in axes of their parts.
! mm, kg, N, s, degrees.

def units length=mm mass=kg force=newton time=second angle=degrees
model create model=mcpherson

variable create variable=.mcpherson.rate_spring real=42.2 units="stiffness"
variable create variable=.mcpherson.rate_tire  real=(.mcpherson.rate_spring*1000/211)
variable create variable=.mcpherson.c_damper   real=(2700.0(newton-second/meter))
variable create variable=.mcpherson.amplitude  real=(3.0cm)

! ---- chassis (ground) ----
defaults model part_name=ground
marker create marker=arm    loc=270.0, -5.0, -10.0   ori=88.9390883097358, 92.1207331225582, 0.0
point  create point=hp7     loc=470.0, 60.0, 90.0
point  create point=hp4     loc=(46.0cm), -180.0, 470.0
marker create marker=rack   loc=(LOC_RELATIVE_TO({0, 0, 0}, hp7))
marker create marker=tower  loc=(LOC_RELATIVE_TO({0, 0, 0}, .mcpherson.ground.hp4))
marker create marker=guide  loc=452.0, -410.0, -330.0

! ---- lower arm ----
part create rigid name part=lower_arm loc=416.2012549, -168.540764, -27.081527958 &
   ori=0d, 0d, 0d
defaults coordinate_system default=lower_arm
marker create marker=cm     loc=0, 0, 0
marker create marker=inner  loc=-146.201255, 163.540764, 17.081528 &
   ori=88.9390883097358, 92.1207331225582, 0.0
marker create marker=outer  loc=33.798745, -161.459236, -12.918472
part create rigid mass part=lower_arm mass=4.6 center=cm ixx=1e5 iyy=1e5 izz=1e5

! ---- strut with upright ----
defaults coordinate_system default=ground
part create rigid name part=strut loc=463.0090362, -279.6688292, 164.1816967
defaults coordinate_system default=strut
marker create marker=cm       loc=0, 0, 0
marker create marker=lower    loc=-13.009036, -50.331171, -204.181697
marker create marker=hub      loc=-11.009036, -130.331171, -144.181697  ori=90d, 90d, 0d
marker create marker=steering loc=96.990964, -20.331171, -104.181697
marker create marker=upper    loc=-3.009036, 99.668829, 305.818303 &
   ori=176.1859251657096, 16.4239627104795, 0.0
part create rigid mass part=strut mass=12.1 center=.mcpherson.strut.cm &
   ixx=2.5e5 iyy=2.5e5 izz=2.5e5

! ---- tie rod: markers by relative_to ----
defaults coordinate_system default=ground
part create rigid name part=tie_rod loc=515.0, -120.0, 75.0
marker create marker=.mcpherson.tie_rod.cm loc=0, 0, 0 relative_to=.mcpherson.tie_rod
marker create marker=outer loc=45.0, -180.0, -15.0 relative_to=tie_rod
marker create marker=inner loc=-45.0, 180.0, 15.0  relative_to=tie_rod
part create rigid mass part=tie_rod mass=1.0 center=.mcpherson.tie_rod.cm &
   ixx=1e5 iyy=1e5 izz=1e5

! ---- wheel ----
part create rigid name part=wheel loc=452.0, -410.0, 20.0
defaults coordinate_system default=wheel
marker create marker=center loc=0, 0, 0  ori=90d, 90d, 0d
part create rigid mass part=wheel mass=(25000(gram)) center=.mcpherson.wheel.center &
   ixx=1e5 iyy=1e5 izz=1e5

! ---- top mount ----
defaults coordinate_system default=ground
part create rigid name part=top_mount loc=460.0, -180.0, 470.0
defaults coordinate_system default=top_mount
marker create marker=center loc=0, 0, 0  ori=176.1859251657096, 16.4239627104795, 0.0
part create rigid mass part=top_mount mass=1.0 center=.mcpherson.top_mount.center &
   ixx=1e5 iyy=1e5 izz=1e5

! ---- plate of the road ----
defaults coordinate_system default=ground
part create rigid name part=plate loc=452.0, -410.0, -430.0
defaults coordinate_system default=plate
marker create marker=cm   loc=0, 0, 0
marker create marker=road loc=0, 0, 100.0
part create rigid mass part=plate mass=0.01 center=.mcpherson.plate.cm ixx=100 iyy=100 izz=100

! ---- joints: I is on the body farther from the ground ----
constraint create joint revolute    joint=arm_pivot  i_marker=lower_arm.inner j_marker=.mcpherson.ground.arm
constraint create joint revolute    joint=hub        i_marker=wheel.center    j_marker=strut.hub
constraint create joint spherical   joint=ball_joint i_marker=strut.lower     j_marker=lower_arm.outer
constraint create joint spherical   joint=tie_rod_outer i_marker=tie_rod.outer j_marker=strut.steering
constraint create joint spherical   joint=tie_rod_inner i_marker=tie_rod.inner j_marker=.mcpherson.ground.rack
constraint create joint spherical   joint=top_ball   i_marker=top_mount.center j_marker=.mcpherson.ground.tower
constraint create joint cylindrical joint=damper_rod i_marker=top_mount.center j_marker=strut.upper
constraint create joint trans       joint=lift       i_marker=plate.road      j_marker=ground.guide

! ---- spring and damper, tire, and the motion of the road ----
force create element trans spring=suspension i_marker=strut.lower j_marker=top_mount.center &
   stiffness=(.mcpherson.rate_spring) damping=(.mcpherson.c_damper) &
   preload=0 displacement=481.5
force create element trans spring=tire i_marker=plate.road j_marker=wheel.center &
   stiffness=(eval(.mcpherson.rate_tire)) damping=80.0 displacement=350.0
constraint create motion motion=bump joint=lift type=trans &
   function="(.mcpherson.amplitude)*SIN(", "5*PI*time)"
force create body grav gravity=gravity x=0 y=0 z=-9806.65
