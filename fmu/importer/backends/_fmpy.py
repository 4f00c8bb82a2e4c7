"""FMUs run through FMPy's own objects: FMI 1.0, 2.0 and 3.0, co-simulation and model exchange.

Model exchange is integrated by FMPy's CVode from one communication point to the next, with the
inputs held; events in between are found and handled there.
"""

from __future__ import annotations

import contextlib
import math
import struct
import warnings
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_int
from typing import Any

from ....blocks.external._external_block import EndOfRun
from ....errors import BiellaError, BiellaWarning, FmuError
from ....scheduler.engine._engine import (
    Instance,
    ProcessState,
    keep_float_control,
    restore_float_control,
)
from .._archive import Folder, provide_binary, require_single_instance
from .._interface import Description, Interface
from .._options import Options
from .._variables import BINARY, BOOLEAN, INTEGER, REAL, STRING, Group, Scalar
from ._called import AbstractCalledFmu, AbstractSnapshots, Values

_ERROR, _FATAL = 3, 4
_DISCARD, _LAST_SUCCESSFUL_TIME, _TERMINATED = 2, 2, 3  # numbers of FMI 2.0
_LARGEST_EXACT = 1 << 53  # up to which every integer is a double
_LARGEST_EVENTS = 1000  # at one instant
_TOLERANCE = 1e-8
_HEAD = struct.Struct(
    "<?d"
)  # of a saved state: whether initializing; when it ended the run, or NaN


class FmpyFmu(AbstractCalledFmu):
    """An FMU that FMPy runs; made by `Fmu` with backend="fmpy"."""

    def __init__(
        self,
        description: Description,
        interface: Interface,
        input_values: Mapping[str, list[float]],
        options: Options,
    ) -> None:
        super().__init__(description, interface, input_values, options)
        model = description.model
        flags = model.coSimulation
        if flags is None and model.modelExchange is None:
            raise FmuError(
                f"{self.external_name} uses scheduled execution, which is not supported."
            )
        states = flags is not None and flags.canGetAndSetFMUstate and flags.canSerializeFMUstate
        self.can_serialize = bool(states)

    def open(self, instance: Instance, number: int) -> FmpySession:
        """Unpack the FMU."""
        return FmpySession(self, Values(instance, number, self))


class FmpySession(AbstractSnapshots):
    """An instance of FMPy's."""

    saved_on_request = True

    def __init__(self, block: FmpyFmu, values: Values) -> None:
        super().__init__()
        self.block, self.values = block, values
        self.model = block.description.model
        self.portable = block.can_serialize
        self.fmu: Any = None
        archive = block.description.archive
        self.folder = Folder.acquire(archive)
        kind = self.model.coSimulation or self.model.modelExchange
        require_single_instance(kind, self.folder, block.external_name)
        with contextlib.suppress(FmuError):  # FMPy reports a missing binary when it is loaded
            provide_binary(self.folder.path, archive, kind.modelIdentifier)
        interface = block.interface
        direct = {name for _, name in interface.feedthrough(block.description)}
        self.inputs = _Table(interface.inputs)
        self.direct = _Table(interface.inputs, lambda group: group.name in direct)
        self.outputs = _Table(interface.outputs)
        self.parameters = _Table(
            interface.parameters, lambda group: group.first.name in interface.given, starts=True
        )
        self.structural = _Table(interface.parameters, structural=True)
        self.tunable = _Table([g for g in interface.parameters if g.first.variability == "tunable"])
        self.solver: Any = None
        self.next_event: float | None = None
        self.tuned: Any = None
        self.inexact: set[str] = set()
        self.worst_status = 0

    def start(self, t: float) -> None:
        """Make an instance, set its parameters and enter initialization mode."""
        from fmpy.simulation import instantiate_fmu

        self._end()
        self.ended = None
        if self.worst_status < _FATAL:
            self.worst_status = 0
        options = self.block.options
        # No logger of ours: FMPy has one place for all of a process, which would outlive this one.
        self.fmu = self._try(
            instantiate_fmu,
            str(self.folder.path),
            self.model,
            debug_logging=options.logging,
        )
        if self._version("1"):
            _correct_results(self.fmu)
        self.initializing = True
        tolerance = options.tolerance or None
        if self._version("2"):
            self._try(self.fmu.setupExperiment, tolerance=tolerance, startTime=t)
        if self.structural.rows:
            self._try(self.fmu.enterConfigurationMode)
            self.structural.write(self._try, self.fmu, self.values.parameters)
            self._try(self.fmu.exitConfigurationMode)
        self._set_parameters()
        if self._version("2"):
            self._try(self.fmu.enterInitializationMode)
        elif self._version("3"):
            self._try(self.fmu.enterInitializationMode, tolerance=tolerance, startTime=t)
        self.tuned = self.values.tunable
        self._first_time = t

    def output(self, t: float) -> None:
        """Set the inputs with direct feedthrough and read the outputs."""
        if self.initializing and self._version("1"):  # has no initialization mode
            self._set(self.inputs)
            self._leave_initialization()
        if self.ended is None:  # after that nothing may be set
            self._tune()
            if not self.block.description.model.coSimulation and not self.initializing:
                self._try(self.fmu.setTime, t)
            self._set(self.direct)
        values = self.outputs.read(self._try, self.fmu)
        for scalar, place in self.outputs.texts:
            get = self.fmu.getString if scalar.type == STRING else self.fmu.getBinary
            (text,) = self._try(get, [scalar.reference])
            values[place] = self.values.number(place, text, scalar.type)
        self._warn_of_inexact(values)
        self.values.set_outputs([float(value) for value in values])

    def begin(self, t: float) -> bool:
        """End the initialization; return whether it had not ended before."""
        if not self.initializing:
            return False
        self._tune()
        self._set(self.inputs)
        self._leave_initialization()
        return True

    def advance(self, t: float, dt: float) -> None:
        """Take a step."""
        self.begin(t)
        if self.ended is not None:
            raise self._end_of_run(self.ended)
        self._tune()
        self._set(self.inputs)
        substeps = self.block.options.substeps
        h = dt / substeps
        for k in range(substeps):
            now, end = t + k * h, t + (k + 1) * h
            if self.model.coSimulation is None:
                reached = self._integrate(now, end)
            elif self._version("3"):
                reached = self._step_fmi3(now, h)
            else:
                reached = self._step(now, h)
            if reached is None:
                continue
            # What it gives at the end of the whole step is still a sample.
            if k + 1 < substeps or reached < end - 1e-6 * h:
                raise self._end_of_run(reached)
            self.ended = reached

    def save(self) -> bytes:
        """Return the FMU's state."""
        if not self.portable:
            raise BiellaError(f"{self.block.external_name} cannot serialize its state.")
        state = self._get_state()
        data = bytes(self._try(self.fmu.serializeFMUState, state))
        self._free_state(state)
        return _HEAD.pack(self.initializing, math.nan if self.ended is None else self.ended) + data

    def restore(self, state: bytes) -> None:
        """Go back to a saved state."""
        handle = self._try(self.fmu.deserializeFMUState, state[_HEAD.size :])
        self._set_state(handle)
        self._free_state(handle)
        self.initializing, ended = _HEAD.unpack_from(state)
        self.ended = None if math.isnan(ended) else ended

    def _get_state(self) -> Any:
        return self._try(self.fmu.getFMUState)

    def _set_state(self, state: Any) -> None:
        self._try(self.fmu.setFMUState, state)
        self.tuned = None

    def _free_state(self, state: Any) -> None:
        self._try(self.fmu.freeFMUState, state)

    def close(self) -> None:
        """End the instance and take its folder away."""
        with ProcessState():
            self._end()
        self.folder.release()

    # -- the parts of a life

    def _version(self, major: str) -> bool:
        return self.block.description.version.startswith(major)

    def _leave_initialization(self) -> None:
        exchange = self.model.coSimulation is None
        if self._version("1") and exchange:
            self._try(self.fmu.setTime, self._first_time)
            self._note_event(self._try(self.fmu.initialize)[-2:])
        elif self._version("1"):
            self._try(self.fmu.initialize, tStart=self._first_time)
        else:
            self._try(self.fmu.exitInitializationMode)
        self.initializing = False
        if exchange:
            if not self._version("1") and self._handle_event(enter=False):
                self.ended = self._first_time
            self.held = self.values.inputs
            self.solver = self._make_solver(self._first_time)

    def _end_of_run(self, t: float) -> EndOfRun:
        return EndOfRun(
            f"{self.block.external_name}: it requested the end of the simulation at t = {t:.9g}"
        )

    def _step(self, t: float, h: float) -> float | None:
        """Take a step of FMI 1.0 or 2.0; return when the FMU ended the simulation, if it did."""
        try:
            promise = [self._promises_no_return(t)] if self._version("2") else []
            self._try(self.fmu.doStep, t, h, *promise)
        except FmuError as error:
            if not self._version("2") or getattr(error.__cause__, "status", None) != _DISCARD:
                raise
            try:
                if not self.fmu.getBooleanStatus(_TERMINATED):
                    raise error
                reached = float(self.fmu.getRealStatus(_LAST_SUCCESSFUL_TIME))
            except FmuError:
                raise
            except Exception:  # it does not answer: then it has not said that it ended
                raise error from error.__cause__
            return reached if t < reached <= t + 1.000001 * h else t
        return None

    def _step_fmi3(self, t: float, h: float) -> float | None:
        """Take a step of FMI 3.0, in parts if the FMU returns early."""
        end, part = t + h, h
        while True:
            _, ended, early, reached = self._try(
                self.fmu.doStep, t, part, self._promises_no_return(t)
            )
            reached = reached if t < reached <= t + 1.000001 * h else (t if ended else end)
            if ended:
                return float(reached)
            if not early or reached >= end - 1e-9 * h:
                return None
            t = float(reached)
            part = end - t

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
            input=_HeldState(),
            startTime=t,
            maxStep=float("inf"),
            relativeTolerance=self.block.options.tolerance or _TOLERANCE,
        )

    def _integrate(self, t: float, end: float) -> float | None:
        """Go from `t` to `end`: inputs may jump at `t`, then from event to event.

        Returns when the FMU ended the simulation, if it did.
        """
        self._try(self.fmu.setTime, t)
        if (self.values.inputs != self.held).any():
            self.held = self.values.inputs
            if self._handle_event(enter=True):
                return t
            self._try(self.solver.reset, t)
        events = 0
        while end - t > 1e-12 * max(1.0, abs(end)):
            stop = end if self.next_event is None else min(end, max(self.next_event, t))
            timed = self.next_event is not None and stop >= self.next_event
            before, found = t, False
            if stop > t:
                found, _, t = self._try(self.solver.step, t, stop)
            self._try(self.fmu.setTime, t)
            asked, ended = self._completed_step()
            if ended:
                return t
            if found or timed or asked:
                if self._handle_event(enter=True):
                    return t
                self._try(self.solver.reset, t)
                events = events + 1 if t == before else 0
                if events > _LARGEST_EVENTS:
                    raise FmuError(
                        f"{self.block.external_name} has an infinite sequence of events at t = "
                        f"{t:.9g} s."
                    )
        return None

    def _completed_step(self) -> tuple[bool, bool]:
        """Return whether the FMU requests an event, and whether it ended the simulation."""
        if not self.model.modelExchange.needsCompletedIntegratorStep:
            return False, False
        answer = self._try(self.fmu.completedIntegratorStep)
        return (bool(answer[0]), bool(answer[1])) if isinstance(answer, tuple) else (answer, False)

    def _handle_event(self, enter: bool) -> bool:
        """Update the discrete states until they stay; return whether the FMU ended the simulation.

        One that did is left in event mode, where its outputs can be read.
        """
        fmu = self.fmu
        if self._version("1"):
            while not (answer := self._try(fmu.eventUpdate))[0]:
                pass
            self._note_event(answer[-2:])
            return bool(answer[3])
        if enter:
            self._try(fmu.enterEventMode)
            self._set(self.inputs)
        update = fmu.updateDiscreteStates if self._version("3") else fmu.newDiscreteStates
        needed = True
        while needed:
            needed, ended, _, _, defined, when = self._try(update)
            self._note_event((defined, when))
            if ended:
                return True
        self._try(fmu.enterContinuousTimeMode)
        return False

    def _note_event(self, answer: tuple[Any, Any]) -> None:
        self.next_event = float(answer[1]) if answer[0] else None

    def _end(self) -> None:
        """End the instance with the calls that its state allows.

        After an error it is only freed. After a fatal one nothing of it is called: FMUs may have
        freed their memory then, as those of PythonFMU3 have, and the library stays loaded.
        """
        if self.fmu is None:
            return
        self.solver = None
        if self.worst_status < _FATAL:
            try:
                self._free_snapshots()
                if not self.initializing and self.worst_status < _ERROR:
                    self.fmu.terminate()
            except Exception:
                pass  # the error that ended the run was reported
        self._forget_snapshots()
        if self.worst_status < _FATAL:
            self.fmu.freeInstance()
        self.fmu = None

    # -- values

    def _set(self, table: _Table) -> None:
        values = self.values.inputs
        table.write(self._try, self.fmu, values)
        for scalar, place in table.texts:
            text = self.values.text(values[place], scalar.type)
            put = self.fmu.setString if scalar.type == STRING else self.fmu.setBinary
            if text is not None:
                self._try(put, [scalar.reference], [text])

    def _set_parameters(self) -> None:
        self.parameters.write(self._try, self.fmu, self.values.parameters)
        strings, binaries = self.block.interface.strings, self.block.interface.binaries
        if strings:
            texts = [t for some in strings.values() for t in _as_list(some)]
            self._try(self.fmu.setString, list(strings), texts)
        if binaries:
            data = [value for some in binaries.values() for value in some]
            self._try(self.fmu.setBinary, list(binaries), data)

    def _tune(self) -> None:
        now = self.values.tunable
        if self.tuned is None or (now != self.tuned).any():
            self.tunable.write(self._try, self.fmu, now)
            self.tuned = now

    def _try(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call FMPy; errors name the FMU. FMPy prints the messages of the FMU."""
        if self.worst_status >= _FATAL:
            raise FmuError(
                f"{self.block.external_name} had a fatal error before, after which none of its "
                f"functions may be called. Compile the diagram again to make a new instance."
            )
        control = keep_float_control()
        try:
            return call(*arguments, **named)
        except BiellaError:
            raise
        except Exception as error:
            self.worst_status = max(self.worst_status, getattr(error, "status", 0))
            raise FmuError(f"{self.block.external_name}, run by FMPy: {error}") from error
        finally:
            restore_float_control(control)

    def _warn_of_inexact(self, values: Sequence[float]) -> None:
        """Warn once for each 64-bit integer that is not exact in a signal, which is a double."""
        for place, name in self.outputs.wide:
            value = values[place]
            if (
                abs(value) > _LARGEST_EXACT
                and name not in self.inexact
                and int(float(value)) != value
            ):
                self.inexact.add(name)
                warnings.warn(
                    f"`{name}` of {self.block.external_name} is {value}, which is rounded to "
                    f"{float(value):.0f}: signals represent integers exactly only up to 2^53.",
                    BiellaWarning,
                    stacklevel=2,
                )


def _correct_results(fmu: Any) -> None:
    """Let functions of FMI 1.0 return a status: FMPy 0.3.32 declares strings, and crashes."""
    for name in ("fmi1InitializeSlave", "fmi1DoStep"):
        function = getattr(fmu, "_functions", {}).get(name)
        if function is not None:
            function.restype = c_int


class _HeldState:
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
        structural: bool = False,
    ) -> None:
        self.rows: dict[str, tuple[list[tuple[Scalar, int]], type]] = {}
        self.wide: list[tuple[int, str]] = []
        self.texts: list[tuple[Scalar, int]] = []
        """Strings and binaries, which are not among the rows."""
        self.count = sum(group.width for group in groups)
        self.starts: dict[int, list[float]] = {}
        place = 0
        for group in groups:
            used = (group.first.causality == "structuralParameter") == structural
            for scalar in group.scalars:
                if scalar.type in (STRING, BINARY) and wanted(group):
                    self.texts.append((scalar, place))
                elif used and (wanted(group) or starts):
                    kind = {REAL: float, INTEGER: int, BOOLEAN: bool}[scalar.type]
                    scalars, _ = self.rows.setdefault(scalar.fmi_type, ([], kind))
                    scalars.append((scalar, place))
                    if scalar.fmi_type in ("Int64", "UInt64"):
                        names = enumerate(scalar.element_names, place)
                        self.wide += [(where, name) for where, name in names]
                    own = scalar.starts() if starts and not wanted(group) else None
                    if own is not None:
                        self.starts[place] = own
                place += scalar.size

    def write(self, attempt: Callable[..., Any], fmu: Any, values: Any) -> None:
        """Set the FMU's variables from `values`; those that are at their own start are left."""
        for name, (scalars, kind) in self.rows.items():
            references: list[int] = []
            chosen: list[Any] = []
            for scalar, place in scalars:
                own = [float(value) for value in values[place : place + scalar.size]]
                if self.starts.get(place) != own:
                    references.append(scalar.reference)
                    chosen += [kind(scalar.check_range(value)) for value in own]
            if references:
                put = getattr(fmu, f"set{_for_version(fmu, name)}")
                attempt(put, references, chosen)

    def read(self, attempt: Callable[..., Any], fmu: Any) -> list[Any]:
        """Return the values of the FMU's variables."""
        values: list[Any] = [0.0] * self.count
        for name, (scalars, _) in self.rows.items():
            get = getattr(fmu, f"get{_for_version(fmu, name)}")
            references = [scalar.reference for scalar, _ in scalars]
            count = sum(scalar.size for scalar, _ in scalars)
            sized = () if count == len(references) else (count,)  # only FMI 3.0 has arrays
            found = list(attempt(get, references, *sized))
            for scalar, place in scalars:
                values[place : place + scalar.size] = found[: scalar.size]
                del found[: scalar.size]
        return values


def _as_list(texts: Any) -> Sequence[str]:
    return [texts] if isinstance(texts, str) else texts


def _for_version(fmu: Any, fmi_type: str) -> str:
    """Return the name under which FMPy gets and sets a type."""
    if fmi_type != "Enumeration":
        return fmi_type
    return "Int64" if hasattr(fmu, "getInt64") else "Integer"
