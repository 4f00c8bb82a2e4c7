"""The commands of Adams View that are read, ignored and refused, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

COMMON = ("adams_id", "comments")
"""Parameters without meaning for the motion that every command has."""

_POSE = ("location", "orientation", "relative_to")
_ENDS = ("i_marker_name", "j_marker_name")
_ON_PARTS = ("i_part_name", "j_part_name", *_POSE)
# Sizes and coefficients of friction act only with friction_enabled, which is refused.
_FRICTION = (
    "delta_v", "maximum_deformation", "mu_dyn_rot", "mu_stat_rot", "mu_dyn_trans",
    "mu_stat_trans", "max_friction_rot", "max_friction_trans", "max_fric_rot", "max_fric_trans",
    "no_rotational_ic", "no_translational_ic", "no_angular_velocity_ic", "no_velocity_ic",
    "preload_radial", "preload_axial",
    "inner_radius", "outer_radius", "pin_radius", "ball_radius", "height", "width",
    "preload_x", "preload_y",
)  # fmt: skip
_SPRING = ("spring_damper_name", *_ENDS, "stiffness", "damping", "preload",
           "displacement_at_preload")  # fmt: skip
_VECTOR = ("i_marker_name", "j_floating_marker_name", "j_part_name", "ref_marker_name")
_FORCES = tuple(f"{axis}_force_function" for axis in "xyz")
_TORQUES = tuple(f"{axis}_torque_function" for axis in "xyz")

JOINTS = ("revolute", "translational", "cylindrical", "spherical", "universal", "hooke", "fixed",
          "planar")  # fmt: skip
PRIMITIVES = ("inline", "inplane", "at_point", "atpoint", "parallel_axis", "perpendicular",
              "orientation")  # fmt: skip


def _both(path: str) -> Iterable[str]:
    """Return a command that creates, and the one that modifies."""
    yield path
    yield path.replace(" create", " modify", 1)


def _list_read() -> Mapping[str, tuple[str, ...]]:
    created = {
        "model create": ("model_name",),
        "part create rigid_body name_and_position": (
            "part_name", *_POSE, "ground_part",
        ),
        "part create rigid_body mass_properties": (
            "part_name", "mass", "center_of_mass_marker", "inertia_marker", "ixx", "iyy", "izz",
            "ixy", "iyz", "izx", "ixz", "material_type", "density",
        ),
        "part create rigid_body initial_velocity": (
            "part_name", "vm", "wm", *(what + axis for what in ("v", "w", "no_v", "no_w")
                                       for axis in "xyz"),
        ),
        "marker create": ("marker_name", *_POSE),
        "floating_marker create": ("floating_marker_name", "part_name", *_POSE),
        "point create": ("point_name", "location", "relative_to"),
        **{
            f"constraint create joint {kind}": (
                "joint_name", *_ENDS, *_ON_PARTS, "friction_enabled",
            )
            for kind in JOINTS
        },
        **{
            f"constraint create primitive_joint {kind}": ("jprim_name", *_ENDS, *_ON_PARTS)
            for kind in PRIMITIVES
        },
        "constraint create motion_generator": (
            "motion_name", "joint_name", "type_of_freedom", *_ENDS, "axis", "function",
            "time_derivative",
        ),
        "force create element_like translational_spring_damper": _SPRING,
        "force create element_like rotational_spring_damper": _SPRING,
        "force create element_like bushing": (
            "bushing_name", *_ENDS, "stiffness", "damping", "force_preload", "tstiffness",
            "tdamping", "torque_preload",
        ),
        "force create direct single_component_force": (
            "single_component_force_name", "type_of_freedom", *_ENDS, "action_only", "function",
        ),
        "force create direct force_vector": ("force_vector_name", *_VECTOR, *_FORCES),
        "force create direct torque_vector": ("torque_vector_name", *_VECTOR, *_TORQUES),
        "force create direct general_force": (
            "general_force_name", *_VECTOR, *_FORCES, *_TORQUES,
        ),
        "force create body gravitational": (
            "gravity_field_name", *(f"{axis}_component_gravity" for axis in "xyz"),
        ),
        "variable create": (
            "variable_name", "real_value", "integer_value", "string_value", "object_value",
        ),
    }  # fmt: skip
    found = {path: known for create, known in created.items() for path in _both(create)}
    found["variable set"] = created["variable create"]
    found["defaults units"] = (
        "length", "mass", "force", "time", "angle", "coordinate_system_type", "orientation_type",
    )  # fmt: skip
    found["defaults model"] = ("model_name", "part_name")
    found["defaults coordinate_system"] = ("default_coordinate_system",)
    found["ude create instance"] = ("instance_name", "definition_name")
    found["ude modify instance"] = ("instance_name",)
    return found


READ = _list_read()
"""Commands that are read, with the parameters that mean something."""

PASSED: Mapping[str, tuple[str, ...]] = {
    "model create": ("title", "fit_to_view", "view_name", "assembly_model"),
    "model modify": ("title",),
    "part create rigid_body name_and_position": ("exact_coordinates", "view_name", "group_name"),
    "part modify rigid_body name_and_position": ("exact_coordinates", "view_name", "group_name"),
    "marker create": ("node_id", "preserve_location"),
    "marker modify": ("node_id", "preserve_location"),
    "defaults units": ("frequency", "axis_labels"),
    "defaults model": (
        "view_name", "analysis_name", "object_name", "entity_name", "marker_name",
    ),
    "ude create instance": ("location", "orientation", "relative_to"),
    **{path: _FRICTION for path in READ if " joint " in path},
    **{
        f"variable {what}": (
            "units", "range", "use_range", "use_allowed_values", "allowed_values", "delta_type",
            "sensitivity_function", "index",
        )
        for what in ("create", "modify", "set")
    },
}  # fmt: skip
"""Parameters of these commands that do not change the motion."""

LOOKS = {
    "constraint attributes": "constraint_name",
    "force attributes": "force_name",
    "part attributes": "part_name",
    "entity attributes": "entity_name",
    "ude attributes": "instance_name",
    "group attributes": "group_name",
}
"""Commands of appearance, of which ``active = off`` is read; with the parameter of the name."""

IGNORED = (
    "analysis", "animation", "check_messages", "colors", "color", "contour_plot", "clearance",
    "data_element", "debug", "display_attributes", "executive_control attributes",
    "executive_control deactivate", "executive_control set", "exit", "feature",
    *(f"file {form}" for form in (
        "parasolid", "render", "shell", "stereo_lithography", "wavefront", "geometry",
    )),
    "floating_marker attributes", "function", "geometry", "graphic_results", "group create",
    "group empty", "group modify", "hardcopy", "help", "highlight", "hotspots", "info_window",
    "interface", "language", "library", "list_info", "macro", "marker attributes", "material",
    "mdi", "measure", "measure_display", "model assemble", "model attributes", "model display",
    "model generate_ids", "model verify", "multi_run_analysis", "notes", "numeric_results",
    "optimize", "output_control", "panel", "part display", "pause", "plot3d", "plotcurve3d",
    "plot", "plugin", "point attributes", "property_file", "ptemplate", "quit", "report",
    "results", "result_set", "runtime_function", "section", "simulation", "snapshot", "stereo",
    "stop", "submit", "time", "ude auto_connect", "ude build", "ude connect", "undo", "units",
    "variable save", "vibration", "view", "xy_plot", "xy_plots",
    *(f"defaults {what}" for what in (
        "adams_output", "analysis", "animation_settings", "attributes", "command_file", "contact",
        "container", "expert_fields", "file_cache_purge", "force_graphics", "force_scaling",
        "function_references", "geometry", "graphics", "hardcopy", "icon_naming", "interface",
        "lights", "name_generation", "names", "note_attributes", "orient_axis_and_plane", "page",
        "page_attributes", "plot", "plot_builder", "plotting", "plt_attributes",
        "prompting_level", "report", "results", "solver", "sprintf_precision", "stereo",
        "vector_plots", "view",
    )),
)  # fmt: skip
"""Commands of appearance, plots, results, materials and settings of the analysis."""

_IN_PYTHON = "add it in Python"
_NO_COUPLINGS = "add it in Python, with System.coupling or gear"
_CREATED = {
    "constraint create complex_joint": _NO_COUPLINGS,
    "constraint create general_constraint": "add it in Python, with System.constraint",
    "constraint create higher_pair_contact": "add it in Python: see Curves",
    "constraint create joint convel": "constant-velocity joints are not there",
    "constraint create joint general": "",
    "constraint create joint rackpin": "use a revolute and a translational, and System.rack",
    "constraint create joint rigid": "",
    "constraint create joint screw": "use a cylindrical, and System.screw in Python",
    "constraint create primitive_joint point_point": "use System.distance in Python",
    "constraint create user_defined": _IN_PYTHON,
    "executive_control create sensor": "sensors stop or change a run",
    "force create direct fe_load": "flexible bodies are not there",
    "force create direct modal_force": "flexible bodies are not there",
    "force create direct multi_point_force": _IN_PYTHON,
    "force create element_like beam": "beams are not read",
    "force create element_like field": _IN_PYTHON,
    "force create element_like friction": "add it in Python, with System.friction",
    "part create elastic_body": "flexible bodies are not there",
    "part create equation": "equations are not read",
    "part create external_system": "",
    "part create fe_part": "flexible bodies are not there",
    "part create flexible_body": "flexible bodies are not there",
    "part create fly_wheel": "",
    "part create new_ground": "",
    "part create particle": "",
    "part create point_mass": "make it a rigid_body with mass and inertia",
    "part create stress_body": "",
    "ude create definition": "",
}
REFUSED: Mapping[str, str] = {
    **{path: advice for create, advice in _CREATED.items() for path in _both(create)},
    "assembly": "assemblies are not read",
    "contact": "contacts are not read: add one in Python, with System.contact",
    "file": "other files are not opened: export the model as one command file",
    "move": "write the new location and orientation",
    "symmetry_relation": "",
    "vflex": "flexible bodies are not there",
    **{
        f"{what} {verb}": ""
        for what in ("constraint", "entity", "floating_marker", "force", "group", "marker", "model",
                     "part", "point", "ude")
        for verb in ("copy", "delete")
    },
    **dict.fromkeys(
        ("entity modify", "executive_control copy", "executive_control delete", "group objects",
         "model merge", "part merge", "ude disassemble", "ude disconnect", "ude replace",
         "ude sync", "variable delete", "variable restore"),
        "",
    ),
    **dict.fromkeys(
        ("for", "while", "int", "break", "continue", "return"),
        "loops of scripts are not read: run the script in Adams View and export the model",
    ),
}  # fmt: skip
"""Commands that change the motion and are not read, with advice."""

BRANCHES = ("if", "else", "elseif", "end")
"""Words of branches, which are ignored as long as only ignored commands depend on them."""
