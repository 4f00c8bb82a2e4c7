"""`Plant`: a mechanism as a block of a diagram, whose numbers can be set before a run by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from ...._deprecation import renamed_value
from ....errors import DiagramError
from ...core._block import NativeBlock
from ...core._ports import CONTINUOUS, EVERY_TICK, Parameter, Port
from ...core._stiffness import MULTIRATE_RK4
from ..analysis._given_pose import check_pose
from ..elements._push import Push
from ._initial import Initial, read_initial
from ._outputs import Catalog, Shown, find_record, list_outputs
from ._state_names import name_states
from ._tables import Tables

if TYPE_CHECKING:
    from ..system._system import System

_LARGEST_IMPLICIT = 300


class Plant(NativeBlock):
    """A mechanism as a block: forces in, motion out.

    Made by `System.block`. Inputs are the `Input` laws of the mechanism and the parameters
    named in `inputs`; drivers and moving markers also have inputs for rate and acceleration, see
    `Input`. ``force`` and ``torque`` of a joint are those of the ideal joint on its second body, in
    world axes, about its marker there; efforts on its coordinates are not included.
    The effort of a driver is its output ``effort``. The potential energy is that of weight, of
    springs with a constant stiffness, of stops, bushings and contacts; actuators and springs whose
    stiffness is a law store none.

    In mode ``"continuous"`` the states are the coordinates and speeds of a tree of joints. Loops
    are closed exactly after every step.

    Parameters
    ----------
    system
        The mechanism.
    inputs
        Paths of parameters to use as inputs, such as ``"motor.torque"``; see `System.inputs`.
    outputs
        Paths of the outputs; `System.outputs` lists all of them.
    mode
        ``"continuous"``: integrated by the solver of the diagram, with strong coupling to stiff
        neighbors. ``"internal"``: integrated by its internal solver, with the inputs held over each
        period.
    integrator
        Of its internal solver. ``"rk4"``: classical Runge–Kutta, the most accurate if it is
        stable; see `System.largest_stable_step`. ``"implicit"``: generalized-α of order two,
        stable with stiff forces at any step. A step that does not converge is subdivided as needed;
        below 1/1024 of the step the run stops.
    substeps
        Internal steps in each period.
    spectral_radius
        Of implicit steps, between 0 and 1: amplification per step of oscillations in the limit of
        high frequency. 1 is the trapezoidal rule, without numerical damping; 0 damps most.
    initial
        Joint coordinates and speeds prescribed in the initial state, by path, such as
        ``{"main.angle": 0.6, "main.speed": 10}``, in m, rad, m/s, rad/s. The remaining state
        is the one nearest to the given state, see `System.assemble`. The values are parameters:
        ``main.initial_angle``, ``main.initial_speed``.
    check
        Whether to assemble the pose immediately, so that joints that cannot be closed raise an
        error here and not at the start of a run.
    """

    kernel = "multibody"
    caches = frozenset({"largest_step", "contact_time", "doubt"})

    def __init__(
        self,
        system: System,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        *,
        mode: Literal["continuous", "internal"] = "continuous",
        integrator: Literal["rk4", "implicit"] = "rk4",
        substeps: int = 1,
        spectral_radius: float = 0.8,
        initial: Initial | None = None,
        check: bool = True,
    ) -> None:
        self._made_with = {
            "inputs": list(inputs), "mode": mode, "integrator": integrator, "substeps": substeps,
            "spectral_radius": spectral_radius, "initial": initial,
        }  # fmt: skip
        system.validate()
        kept = read_initial(system, initial)
        if check:
            check_pose(system, inputs, initial)
        mode = renamed_value("mode", mode, {"own_step": "internal"})
        if mode not in ("continuous", "internal"):
            raise DiagramError(f"`mode` is 'continuous' or 'internal', got {mode!r}.")
        if not isinstance(substeps, int) or substeps < 1:
            raise DiagramError(f"`substeps` is a whole number, at least 1; got {substeps!r}.")
        own = mode == "internal"
        radius = _read_integrator(integrator, own, spectral_radius)
        _check_rigid_contacts(system, own, radius is not None)
        _check_stiction(system)
        if own:
            self.has_internal_solver = self.takes_input_derivatives = True
        self.memory_holds = not own  # results of init, and the turn counts of angles
        self.system = system
        self.added_outputs: tuple[str, ...] = ()  # by `with_outputs`
        self.gravity = system.gravity
        self.substeps = substeps if own else 1
        self.largest_step: float | None = None  # of RK4 where it is stable, once asked for
        self.contact_time = math.inf  # of the shortest contact in a clearance, with it
        self.doubt: str | None = None  # about friction and films, once asked for
        self._own, self._explicit = own, radius is None
        tables = Tables(system, list(inputs), own, substeps, radius, kept)
        if radius is not None and tables.tree.nv > _LARGEST_IMPLICIT:
            raise DiagramError(
                f"`{system.name}` has {tables.tree.nv} speeds: implicit steps take up to "
                f"{_LARGEST_IMPLICIT}, because their matrix is full. Take integrator='rk4'."
            )
        shown, integers = _write(tables, list(outputs))
        _check_names(system, tables.input_names, shown)
        direct = [
            (item.port.name, name)
            for item in shown
            for name in tables.input_names
            if name in item.inputs
        ]
        super().__init__(
            inputs=tables.input_ports,
            outputs=[item.port for item in shown],
            parameters=_apart(tables.parameters, shown),
            rate=EVERY_TICK if own else CONTINUOUS,
            kernel="multibody_internal" if own else None,
            feedthrough=direct,
            states=0 if own else tables.tree.nq + tables.tree.nv,
            integers=integers,
        )
        self.state_names = () if own else name_states(tables.tree)
        self.rate_ports = {
            self.input_index[name]: self.input_index[rate]
            for name, rate in tables.laws.rates.items()
        }

    def with_outputs(self, outputs: Sequence[str]) -> Plant:
        """Return the same block with more outputs after its own ones."""
        have = [port.name for port in self.outputs]
        more = [path for path in outputs if path not in have]
        made: Any = self._made_with
        plant = Plant(self.system, outputs=[*have, *more], check=False, **made)
        return plant.copy_with(added_outputs=(*self.added_outputs, *more))

    def with_push(self) -> tuple[Plant, Push]:
        """Return the same block with a `Push` as its last element, and the push."""
        system = self.system
        taken = {*system.parts, *(port.name.partition(".")[0] for port in self.inputs)}
        name = next(name for n in count(1) if (name := f"push{n if n > 1 else ''}") not in taken)
        push = Push(name, system)
        pushed = copy(system)
        pushed._parts = {**system.parts, name: push}
        made: Any = self._made_with
        outputs = [port.name for port in self.outputs]
        plant = Plant(pushed, outputs=outputs, check=False, **made)
        return plant.copy_with(added_outputs=self.added_outputs), push

    def describe_missing_port(self, port: str) -> str:
        """Return where to name an output or a parameter of the mechanism that is not yet a port."""
        if port in list_outputs(self.system):
            return f" The mechanism has it: name it in System.block(outputs=[…, {port!r}])."
        if port in self.system.parameters():
            return (
                f" It is a number of the mechanism: name it in System.block(inputs=[…, {port!r}]); "
                f"print(system.inputs()) lists those that can be inputs."
            )
        return ""

    def warn_of_step(self, step: float, solver: str) -> str:
        """Return warnings of steps that are unstable or miss contacts, and of elements in doubt."""
        from ..analysis._stability import warn_of_step

        if self.doubt is None:
            self.doubt = self._warn_of_doubt()
        rk4 = self._explicit and (self._own or solver in ("rk4", MULTIRATE_RK4))
        multirate = not self._own and solver == MULTIRATE_RK4
        coarse = warn_of_step(self, step / self.substeps, rk4, multirate)
        return " ".join(filter(None, (self.doubt, coarse)))

    def _warn_of_doubt(self) -> str:
        doubts = [element.doubt() for element in self.system.elements]
        if any(element.follows_reaction_of for element in self.system.elements):
            from ..analysis._joint_friction import (
                warn_of_doubt,  # takes as long to import as all the rest
            )

            doubts.append(warn_of_doubt(self.system))
        return " ".join(filter(None, doubts))


def _write(tables: Tables, paths: Sequence[str]) -> tuple[list[Shown], list[int]]:
    """Return the outputs of a mechanism, and its integers."""
    shown: list[Shown] = []

    def show() -> list[list[int]]:
        catalog = Catalog(tables)
        shown.extend(catalog.find(path) for path in paths)
        return [list(item.record) for item in shown]

    return shown, tables.write(show, lambda path: find_record(tables, path))


def _read_integrator(integrator: str, own: bool, radius: float) -> float | None:
    """Return the spectral radius of implicit steps, None for the others."""
    if integrator not in ("rk4", "implicit"):
        raise DiagramError(f"`integrator` is 'rk4' or 'implicit', got {integrator!r}.")
    if not 0.0 <= radius <= 1.0:
        raise DiagramError(f"`spectral_radius` is between 0 and 1, got {radius!r}.")
    if integrator == "rk4":
        return None
    if not own:
        raise DiagramError(
            "integrator='implicit' has an internal solver: set mode='internal' too. In mode "
            "'continuous' the solver of the diagram integrates; choose it there."
        )
    return float(radius)


def list_output_ports(system: System) -> list[Port]:
    """Return a port for every path of `list_outputs`."""
    system.validate()
    shown, _ = _write(Tables(system, [], True, 1, None), list_outputs(system))
    return [item.port for item in shown]


def list_input_ports(system: System) -> tuple[list[Port], list[Port]]:
    """Return the inputs that always exist, and those with every parameter named as an input."""
    system.validate()
    plain = Tables(system, [], True, 1, None)
    _write(plain, [])
    all_named = Tables(system, plain.laws.constants, True, 1, None)
    _write(all_named, [])
    return plain.input_ports, all_named.input_ports


def _check_names(system: System, inputs: Sequence[str], shown: Sequence[Shown]) -> None:
    for item in shown:
        if item.port.name in inputs:
            raise DiagramError(
                f"`{item.port.name}` of `{system.name}` is an input and an output: give the input "
                f"another name, with the law Input(…)."
            )


def _apart(parameters: Sequence[Parameter], shown: Sequence[Shown]) -> list[Parameter]:
    """Return parameters with other names where an output has theirs.

    The actuator of a spring, ``tire.force``, is ``tire.actuator_force`` beside the output.
    """
    names = {item.port.name for item in shown}
    found = []
    for item in parameters:
        owner, _, what = item.name.rpartition(".")
        name = f"{owner}.actuator_{what}" if item.name in names else item.name
        found.append(Parameter(name, item.value, item.unit, item.doc, item.tunable, item.hidden))
    return found


def _check_stiction(system: System) -> None:
    name = next((element.name for element in system.elements if element.sticks), None)
    if name is None:
        return
    rigid = next((e.name for e in system.elements if e.is_rigid), None)
    if rigid is not None:
        raise DiagramError(
            f"friction `{name}` sticks and `{rigid}` has a RigidContact: they are not solved "
            f"together. Take a smoothing_speed instead of static friction for `{name}`, or a "
            f"compliant contact such as HuntCrossley for `{rigid}`."
        )


def _check_rigid_contacts(system: System, own: bool, implicit: bool) -> None:
    rigid = next((element.name for element in system.elements if element.is_rigid), None)
    if rigid is None:
        return
    joint_friction = next((e.name for e in system.elements if e.follows_reaction_of), None)
    if joint_friction is not None:
        raise DiagramError(
            f"`{rigid}` has a RigidContact and `{joint_friction}` is friction from reactions: "
            f"they are "
            f"not solved together. Take a compliant contact such as HuntCrossley, or friction with "
            f"a given coulomb=…."
        )
    held = next((element.name for element in system.elements if element.row_count), None)
    if held is not None:
        raise DiagramError(
            f"`{rigid}` has a RigidContact and `{held}` is a bearing held by a constraint: they "
            f"are not solved together. Take a compliant contact such as HuntCrossley, or "
            f"coupling='force' for the bearing."
        )
    if not own or implicit:
        wanted = "mode='internal'" if not own else "integrator='rk4'"
        raise DiagramError(
            f"`{rigid}` has a RigidContact, whose impacts lie within steps: they are found by own "
            f"steps of Runge–Kutta only. Say {wanted}, or take a compliant contact such as "
            f"HuntCrossley."
        )
