"""FMUs run through FMPy's own objects: FMI 1.0, 2.0 and 3.0, co-simulation and model exchange.

Model exchange is integrated by FMPy's CVode from one communication point to the next, with the
inputs held; events in between are found and handled there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import BiellaError, FmuError
from ..scheduler.engine import Instance
from .archive import Folder
from .importer import Options
from .in_python import AbstractCalledFmu, Values
from .interface import BOOLEAN, INTEGER, REAL, Description, Group, Interface

_LARGEST_EVENTS = 1000  # at one instant
_TOLERANCE = 1e-8


class FmpyFmu(AbstractCalledFmu):
    """An FMU that FMPy runs; made by `Fmu` with backend="fmpy"."""

    def __init__(
        self,
        description: Description,
        interface: Interface,
        input_values: Mapping[str, float],
        options: Options,
    ) -> None:
        super().__init__(description, interface, input_values, options)
        model = description.model
        flags = model.coSimulation
        if flags is None and model.modelExchange is None:
            raise FmuError(
                f"{self.foreign_name} is for scheduled execution, which nothing here runs."
            )
        states = flags is not None and flags.canGetAndSetFMUstate and flags.canSerializeFMUstate
        self.can_roll_back = False
        if description.version == "2.0" and flags is not None and flags.canGetAndSetFMUstate:
            self.to_roll_back = "backend='engine'"
        self.can_serialise = bool(states and description.version == "2.0")

    def open(self, instance: Instance, number: int) -> FmpySession:
        """Unpack the FMU."""
        return FmpySession(self, Values(instance, number, self))


class FmpySession:
    """An instance of FMPy's."""

    def __init__(self, block: FmpyFmu, values: Values) -> None:
        self.block, self.values = block, values
        self.model = block.description.model
        self.portable = block.can_serialise
        self.fmu: Any = None
        self.folder = Folder.acquire(block.description.archive)
        interface = block.interface
        direct = {name for _, name in interface.feedthrough(block.description)}
        self.inputs = _Table(interface.inputs)
        self.direct = _Table(interface.inputs, lambda group: group.name in direct)
        self.outputs = _Table(interface.outputs)
        self.parameters = _Table(
            interface.parameters, lambda group: group.first.name in interface.given, starts=True
        )
        self.tunable = _Table([g for g in interface.parameters if g.first.variability == "tunable"])
        self.solver: Any = None
        self.next_event: float | None = None
        self.initialising = False

    def start(self, t: float) -> None:
        """Make an instance, set its parameters and enter initialisation mode."""
        from fmpy.simulation import instantiate_fmu

        self._end()
        options = self.block.options
        # No logger of ours: FMPy has one place for all of a process, which would outlive this one.
        self.fmu = self._try(
            instantiate_fmu,
            str(self.folder.path),
            self.model,
            debug_logging=options.logging,
        )
        self.initialising = True
        tolerance = options.tolerance or None
        if self._version("2"):
            self._try(self.fmu.setupExperiment, tolerance=tolerance, startTime=t)
        self._set_parameters()
        if self._version("2"):
            self._try(self.fmu.enterInitializationMode)
        elif self._version("3"):
            self._try(self.fmu.enterInitializationMode, tolerance=tolerance, startTime=t)
        self.tuned = self.values.tunable
        self._first_time = t

    def output(self, t: float) -> None:
        """Set what reaches the outputs at once and read them."""
        if self.initialising and self._version("1"):  # has no initialisation mode
            self._set(self.inputs)
            self._leave_initialisation()
        self._tune()
        if not self.block.description.model.coSimulation and not self.initialising:
            self._try(self.fmu.setTime, t)
        self._set(self.direct)
        values = self.outputs.read(self._try, self.fmu)
        self.values.set_outputs(values)

    def advance(self, t: float, dt: float) -> None:
        """Take a step."""
        self._tune()
        self._set(self.inputs)
        if self.initialising:
            self._leave_initialisation()
        h = dt / self.block.options.substeps
        for k in range(self.block.options.substeps):
            if self.model.coSimulation is not None:
                self._try(
                    self.fmu.doStep, currentCommunicationPoint=t + k * h, communicationStepSize=h
                )
            else:
                self._integrate(t + k * h, t + (k + 1) * h)

    def save(self) -> bytes:
        """Return the FMU's state."""
        if not self.portable:
            raise BiellaError(f"{self.block.foreign_name} cannot serialise its state.")
        state = self._try(self.fmu.getFMUstate)
        data = bytes(self._try(self.fmu.serializeFMUstate, state))
        self._try(self.fmu.freeFMUstate, state)
        return bytes([self.initialising]) + data

    def restore(self, state: bytes) -> None:
        """Go back to a saved state."""
        handle = self._try(self.fmu.deSerializeFMUstate, state[1:])
        self._try(self.fmu.setFMUstate, handle)
        self._try(self.fmu.freeFMUstate, handle)
        self.initialising = bool(state[0])

    def close(self) -> None:
        """End the instance and take its folder away."""
        self._end()
        self.folder.release()

    # -- the parts of a life

    def _version(self, major: str) -> bool:
        return self.block.description.version.startswith(major)

    def _leave_initialisation(self) -> None:
        exchange = self.model.coSimulation is None
        if self._version("1") and exchange:
            self._try(self.fmu.setTime, self._first_time)
            self._note_event(self._try(self.fmu.initialize)[-2:])
        elif self._version("1"):
            self._try(self.fmu.initialize, tStart=self._first_time)
        else:
            self._try(self.fmu.exitInitializationMode)
        self.initialising = False
        if exchange:
            if not self._version("1"):
                self._handle_event(enter=False)
            self.held = self.values.inputs
            self.solver = self._make_solver(self._first_time)

    def _make_solver(self, t: float) -> Any:
        from fmpy.sundials import CVodeSolver

        fmu, names = self.fmu, {"1": "getNominalContinuousStates"}
        nominals = names.get(self.block.description.version[0], "getNominalsOfContinuousStates")
        slopes = "getContinuousStateDerivatives" if self._version("3") else "getDerivatives"
        return self._try(
            CVodeSolver,
            nx=self.model.numberOfContinuousStates,
            nz=self.model.numberOfEventIndicators,
            get_x=fmu.getContinuousStates,
            set_x=fmu.setContinuousStates,
            get_dx=getattr(fmu, slopes),
            get_z=fmu.getEventIndicators,
            get_nominals=getattr(fmu, nominals),
            set_time=fmu.setTime,
            input=_Held(),
            startTime=t,
            maxStep=float("inf"),
            relativeTolerance=self.block.options.tolerance or _TOLERANCE,
        )

    def _integrate(self, t: float, end: float) -> None:
        """Go from `t` to `end`: inputs may jump at `t`, then from event to event."""
        self._try(self.fmu.setTime, t)
        if (self.values.inputs != self.held).any():
            self.held = self.values.inputs
            self._handle_event(enter=True)
            self._try(self.solver.reset, t)
        events = 0
        while end - t > 1e-12 * max(1.0, abs(end)):
            stop = end if self.next_event is None else min(end, max(self.next_event, t))
            timed = self.next_event is not None and stop >= self.next_event
            before, found = t, False
            if stop > t:
                found, _, t = self._try(self.solver.step, t, stop)
            self._try(self.fmu.setTime, t)
            asked = self._completed_step()
            if found or timed or asked:
                self._handle_event(enter=True)
                self._try(self.solver.reset, t)
                events = events + 1 if t == before else 0
                if events > _LARGEST_EVENTS:
                    raise FmuError(
                        f"{self.block.foreign_name} has event after event at t = {t:.9g} s."
                    )

    def _completed_step(self) -> bool:
        if not self.model.modelExchange.needsCompletedIntegratorStep:
            return False
        answer = self._try(self.fmu.completedIntegratorStep)
        return bool(answer[0] if isinstance(answer, tuple) else answer)

    def _handle_event(self, enter: bool) -> None:
        """Update the discrete states until they stay."""
        fmu = self.fmu
        if self._version("1"):
            while not (answer := self._try(fmu.eventUpdate))[0]:
                pass
            self._note_event(answer[-2:])
            return
        if enter:
            self._try(fmu.enterEventMode)
            self._set(self.inputs)
        update = fmu.updateDiscreteStates if self._version("3") else fmu.newDiscreteStates
        needed = True
        while needed:
            needed, ended, _, _, defined, when = self._try(update)
            self._note_event((defined, when))
            if ended:
                raise FmuError(f"{self.block.foreign_name} ended the simulation at an event.")
        self._try(fmu.enterContinuousTimeMode)

    def _note_event(self, answer: tuple[Any, Any]) -> None:
        self.next_event = float(answer[1]) if answer[0] else None

    def _end(self) -> None:
        if self.fmu is None:
            return
        self.solver = None
        try:
            if not self.initialising:
                self.fmu.terminate()
        except Exception:
            pass  # it has failed before, and that was told
        self.fmu.freeInstance()
        self.fmu = None

    # -- values

    def _set(self, table: _Table) -> None:
        table.write(self._try, self.fmu, self.values.inputs)

    def _set_parameters(self) -> None:
        self.parameters.write(self._try, self.fmu, self.values.parameters)
        strings = self.block.interface.strings
        if strings:
            self._try(self.fmu.setString, list(strings), list(strings.values()))

    def _tune(self) -> None:
        now = self.values.tunable
        if (now != self.tuned).any():
            self.tunable.write(self._try, self.fmu, now)
            self.tuned = now

    def _try(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call FMPy; what it raises says which FMU. FMPy itself prints what the FMU says."""
        try:
            return call(*arguments, **named)
        except BiellaError:
            raise
        except Exception as error:
            raise FmuError(f"{self.block.foreign_name}, run by FMPy: {error}") from error


class _Held:
    """Inputs that stay as they are while CVode works."""

    def apply(self, *_: Any, **__: Any) -> None:
        """Do nothing."""


class _Table:
    """References by type, and where the values are among those of the block."""

    def __init__(
        self,
        groups: Sequence[Group],
        wanted: Callable[[Group], bool] = lambda group: True,
        starts: bool = False,
    ) -> None:
        self.rows: dict[str, tuple[list[int], list[int], type]] = {}
        self.count = sum(len(group.scalars) for group in groups)
        self.starts: dict[int, float] = {}
        place = 0
        for group in groups:
            own = group.starts() if starts else None
            for k, scalar in enumerate(group.scalars):
                if wanted(group) or starts:
                    kind = {REAL: float, INTEGER: int, BOOLEAN: bool}[scalar.type]
                    references, places, _ = self.rows.setdefault(scalar.fmi_type, ([], [], kind))
                    references.append(scalar.reference)
                    places.append(place)
                    if own is not None and not wanted(group):
                        self.starts[place] = own[k]
                place += 1

    def write(self, attempt: Callable[..., Any], fmu: Any, values: Any) -> None:
        """Set the FMU's variables from `values`; those that are at their own start are left."""
        for name, (references, places, kind) in self.rows.items():
            pairs = [
                (reference, kind(values[place]))
                for reference, place in zip(references, places, strict=True)
                if self.starts.get(place) != values[place]
            ]
            if pairs:
                put = getattr(fmu, f"set{_for_version(fmu, name)}")
                attempt(put, [r for r, _ in pairs], [v for _, v in pairs])

    def read(self, attempt: Callable[..., Any], fmu: Any) -> list[float]:
        """Return the values of the FMU's variables."""
        values = [0.0] * self.count
        for name, (references, places, _) in self.rows.items():
            get = getattr(fmu, f"get{_for_version(fmu, name)}")
            for place, value in zip(places, attempt(get, references), strict=True):
                values[place] = float(value)
        return values


def _for_version(fmu: Any, fmi_type: str) -> str:
    """Return the name under which FMPy gets and sets a type."""
    if fmi_type != "Enumeration":
        return fmi_type
    return "Int64" if hasattr(fmu, "getInt64") else "Integer"
