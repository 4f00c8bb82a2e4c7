"""The commands of Adams View: those that are read, ignored and refused, and abbreviations.

Words and names of parameters may be abbreviated as long as only one known one starts with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ....errors import DiagramError, name_list, suggest
from ._file import Command, Given
from ._units import choose

Verdict = Literal["read", "look", "ignore", "refuse"]

COMMON = ("adams_id", "comments")
"""Parameters without meaning for the motion that every command has."""

_POSE = ("location", "orientation", "relative_to")
_ENDS = ("i_marker_name", "j_marker_name")
_ON_PARTS = ("i_part_name", "j_part_name", *_POSE)
# Sizes and coefficients of friction act only with friction_enabled, which is refused.
_FRICTION = (
    "delta_v", "maximum_deformation", "mu_dyn_rot", "mu_stat_rot", "mu_dyn_trans",
    "mu_stat_trans", "max_friction_rot", "max_friction_trans", "preload_radial", "preload_axial",
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
            f"constraint create primitive_joint {kind}": ("jprim_name", *_ENDS)
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
    "analysis", "animation", "clip_plane", "color", "curve", "data_element", "defaults attributes",
    "defaults command_file", "defaults force_scaling", "defaults geometry",
    "defaults orient_axis_and_plane", "defaults names",
    "executive_control set", "feature", "geometry", "group create",
    "group modify", "hardcopy", "interface", "language", "library", "list_info", "macro",
    "marker attributes", "material", "measure", "mdi", "model attributes", "model display",
    "model verify", "numeric_results", "output_control", "panel", "plot", "point attributes",
    "floating_marker attributes", "plugin", "print", "property_file", "result_set", "results",
    "simulation", "spreadsheet", "string", "study", "undo", "units", "view", "window",
    "data_element attributes", "xy_plots",
)  # fmt: skip
"""Commands of appearance, plots, results, materials and settings of the analysis."""

REFUSED: Mapping[str, str] = {
    "assembly": "assemblies are not read",
    "contact": "contacts are not read: add one in Python, with System.contact",
    "constraint copy": "",
    "constraint create complex_joint": "add a coupling in Python, with System.coupling or gear",
    "constraint modify complex_joint": "add a coupling in Python, with System.coupling or gear",
    "constraint create general_motion": "use motion_generator on a joint",
    "constraint modify general_motion": "use motion_generator on a joint",
    "constraint create higher_pair_contact": "add a constraint in Python: see Curves",
    "constraint modify higher_pair_contact": "add a constraint in Python: see Curves",
    "constraint create joint convel": "constant-velocity joints are not there",
    "constraint modify joint convel": "constant-velocity joints are not there",
    "constraint create joint rackpin": "use a revolute and a translational, and System.rack",
    "constraint modify joint rackpin": "use a revolute and a translational, and System.rack",
    "constraint create joint screw": "use a cylindrical, and System.screw in Python",
    "constraint modify joint screw": "use a cylindrical, and System.screw in Python",
    "constraint create user_defined": "",
    "constraint modify user_defined": "",
    "constraint delete": "",
    "entity modify": "",
    "entity delete": "",
    "executive_control create": "sensors stop or change a run",
    "executive_control modify": "sensors stop or change a run",
    "file": "other files are not opened: export the model as one command file",
    "force copy": "",
    "force create body contact": "contacts are not read: add one in Python",
    "force create body modal_force": "flexible bodies are not there",
    "force create direct multi_point_force": "",
    "force create element_like beam": "beams are not read",
    "force create element_like field": "fields are not read",
    "force modify body contact": "contacts are not read: add one in Python",
    "force modify body modal_force": "flexible bodies are not there",
    "force modify direct multi_point_force": "",
    "force modify element_like beam": "beams are not read",
    "force modify element_like field": "fields are not read",
    "force delete": "",
    "marker copy": "",
    "marker delete": "",
    "model copy": "",
    "model merge": "",
    "move": "write the new location and orientation",
    "part copy": "",
    "part create equation": "equations are not read",
    "part create external_system": "",
    "part create flexible_body": "flexible bodies are not there",
    "part create point_mass": "make it a rigid_body with mass and inertia",
    "part delete": "",
    "part merge": "",
    "part modify equation": "equations are not read",
    "part modify external_system": "",
    "part modify flexible_body": "flexible bodies are not there",
    "part modify point_mass": "make it a rigid_body with mass and inertia",
    "point delete": "",
    "variable delete": "",
    **dict.fromkeys(
        ("break", "continue", "else", "elseif", "end", "for", "if", "return", "while"),
        "loops and branches of scripts are not read: run the script in Adams View and export the "
        "model",
    ),
}
"""Commands that change the motion and are not read, with advice."""


@dataclass(slots=True)
class _Branch:
    below: dict[str, _Branch] = field(default_factory=dict)
    verdict: Verdict | None = None
    path: str = ""


def _plant() -> _Branch:
    root = _Branch()
    tables: tuple[tuple[Verdict, Iterable[str]], ...] = (
        ("read", READ), ("read", ("model modify",)), ("look", LOOKS), ("ignore", IGNORED),
        ("refuse", REFUSED),
    )  # fmt: skip
    for verdict, paths in tables:
        for path in paths:
            at = root
            for word in path.split():
                at = at.below.setdefault(word, _Branch())
            at.verdict, at.path = verdict, path
    return root


_ROOT = _plant()


def find_command(command: Command) -> tuple[Verdict, str]:
    """Return what to do with a command, and its words in full.

    Raises
    ------
    DiagramError
        If no command starts so, or several do.
    """
    at = _ROOT
    said: list[str] = []
    for word in command.words:
        if not at.below:
            if at.verdict in ("ignore", "refuse"):
                break
            raise DiagramError(f"`{word.text[:60]}` follows the command `{' '.join(said)}`.")
        if at.verdict in ("ignore", "refuse") and word.text.lower() not in at.below:
            break
        name = choose_word(" ".join(said), word.text, at.below)
        at = at.below[name]
        said.append(name)
    if at.verdict is None:
        raise DiagramError(
            f"the command `{' '.join(said)}` is not complete: it goes on with "
            f"{name_list(sorted(at.below), limit=20)}."
        )
    return at.verdict, at.path


def choose_word(said: str, given: str, known: Mapping[str, object]) -> str:
    """Return the word of a command that `given` is or abbreviates."""
    word = given.lower()
    if word in known:
        return word
    found = sorted(name for name in known if name.startswith(word))
    after = f" after `{said}`" if said else ""
    if len(found) > 1:
        raise DiagramError(f"`{given}`{after} may mean {name_list(found)}: write more of it.")
    if found:
        return found[0]
    raise DiagramError(
        f"there is no command `{given[:60]}`{after} that is known here.{suggest(word, known)}"
    )


def name_parameters(path: str, command: Command) -> dict[str, Given]:
    """Return the parameters of a command by full name, without those that mean nothing here."""
    known = READ.get(path, ())
    passed = (*COMMON, *PASSED.get(path, ()))
    found: dict[str, Given] = {}
    problems = []
    for given in command.given:
        try:
            name = choose(f"a parameter of `{path}`", given.name, (*known, *passed))
        except DiagramError as error:
            problems += [f"{given.place}: {text}" for text in error.problems]
            continue
        if name in found:
            problems.append(
                f"{given.place}: `{name}` is given already: see {found[name].place.split(', ')[1]}."
            )
        found[name] = given
    if problems:
        raise DiagramError(problems)
    return {name: given for name, given in found.items() if name in known}
