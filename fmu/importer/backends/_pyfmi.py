"""FMUs run through PyFMI's own objects: co-simulation of FMI 1.0 and 2.0, for cross-checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....blocks.external._external_block import EndOfRun
from ....errors import BiellaError, FmuError
from ....scheduler.engine._engine import (
    Instance,
    ProcessState,
    keep_float_control,
    restore_float_control,
)
from .._interface import Description, Interface
from .._options import Options
from .._variables import Group, text_places
from ._called import AbstractCalledFmu, AbstractSnapshots, Values

_WARNING, _DISCARD = 1, 2
_LAST_SUCCESSFUL_TIME, _TERMINATED = 2, 3  # kinds of status in FMI 2.0


class PyfmiFmu(AbstractCalledFmu):
    """A co-simulation FMU that PyFMI runs; made by `Fmu` with backend="pyfmi"."""

    def __init__(
        self,
        description: Description,
        interface: Interface,
        input_values: Mapping[str, list[float]],
        options: Options,
    ) -> None:
        super().__init__(description, interface, input_values, options)
        self.can_serialize = False
        try:
            import pyfmi  # noqa: F401
        except ImportError as error:
            raise FmuError(
                "backend='pyfmi' requires PyFMI, which is not installed: `conda install -c "
                "conda-forge pyfmi`. backend='fmpy' requires only FMPy."
            ) from error
        if description.model.coSimulation is None or description.version.startswith("3"):
            raise FmuError(
                f"backend='pyfmi' runs co-simulation FMUs of FMI 1.0 and 2.0, and "
                f"{self.external_name} is not one. Use backend='fmpy'."
            )

    def open(self, instance: Instance, number: int) -> PyfmiSession:
        """Load the FMU; PyFMI unpacks it for itself."""
        return PyfmiSession(self, Values(instance, number, self))


class PyfmiSession(AbstractSnapshots):
    """An instance of PyFMI's."""

    portable = False
    saved_on_request = True

    def __init__(self, block: PyfmiFmu, values: Values) -> None:
        super().__init__()
        self.block, self.values = block, values
        self.fmu: Any = None
        self.tuned: Any = None
        self.failed = False
        self.first = block.description.version.startswith("1")
        direct = {name for _, name in block.interface.feedthrough(block.description)}
        self.input_names = _names(block.interface.inputs)
        self.direct = [
            (n, name)
            for n, (name, group) in enumerate(_named_groups(block.interface.inputs))
            if group in direct
        ]
        self.output_names = _names(block.interface.outputs)
        self.text_inputs = text_places(block.interface.inputs)
        self.text_outputs = text_places(block.interface.outputs)
        self.parameters = [
            (s.name, None if s.name in block.interface.given else start)
            for group in block.interface.parameters
            for s, start in zip(group.scalars, _starts(group), strict=True)
        ]

    def start(self, t: float) -> None:
        """Make an instance, set its parameters and enter initialization mode."""
        import pyfmi

        self.close()
        self.ended, self.failed = None, False
        path, options = self.block.description.archive.path, self.block.options
        level = 7 if options.logging else 2
        self.fmu = self._try(pyfmi.load_fmu, str(path), kind="CS", log_level=level)
        if not self.first:
            self._try(
                self.fmu.setup_experiment,
                tolerance_defined=options.tolerance > 0,
                tolerance=options.tolerance,
                start_time=t,
            )
        for (name, start), value in zip(self.parameters, self.values.parameters, strict=True):
            if start is None or start != value:
                self._try(self.fmu.set, name, value)
        strings = {s.reference: n for n, s in self.block.description.scalars.items()}
        for reference, text in self.block.interface.strings.items():
            self._try(self.fmu.set, strings[reference], text)
        if not self.first:
            self._try(self.fmu.enter_initialization_mode)
        self.initializing = True
        self._start = t
        self.tuned = self.values.tunable

    def output(self, t: float) -> None:
        """Set the inputs with direct feedthrough and read the outputs."""
        if self.initializing and self.first:
            self._leave_initialization()
        self._tune()
        values = self.values.inputs
        for n, name in self.direct if self.ended is None else ():  # after that nothing may be set
            self._set(name, values[n], n in self.text_inputs)
        read = self._try(self.fmu.get, self.output_names) if self.output_names else []
        self.values.set_outputs([
            self.values.number(n, value[0]) if n in self.text_outputs else float(value[0])
            for n, value in enumerate(read)
        ])  # fmt: skip

    def begin(self, t: float) -> bool:
        """End the initialization; return whether it had not ended before."""
        if not self.initializing:
            return False
        self._tune()
        self._set_inputs()
        self._leave_initialization()
        return True

    def advance(self, t: float, dt: float) -> None:
        """Take a step."""
        self.begin(t)
        if self.ended is not None:
            raise self._end_of_run(self.ended)
        self._tune()
        self._set_inputs()
        substeps = self.block.options.substeps
        h = dt / substeps
        for k in range(substeps):
            now, end = t + k * h, t + (k + 1) * h
            reached = self._step(now, h)
            if reached is None:
                continue
            # What it gives at the end of the whole step is still a sample.
            if k + 1 < substeps or reached < end - 1e-6 * h:
                raise self._end_of_run(reached)
            self.ended = reached

    def _step(self, t: float, h: float) -> float | None:
        """Take a step; return when the FMU ended the simulation, if it did."""
        status = self._try(self.fmu.do_step, t, h, self._promises_no_return(t))
        if status <= _WARNING:
            return None
        failed = FmuError(f"{self.block.external_name}: do_step of PyFMI returned {status}.")
        self.failed = status != _DISCARD
        if self.first or self.failed:
            raise failed
        try:
            if not self.fmu.get_boolean_status(_TERMINATED):
                raise failed
            reached = float(self.fmu.get_real_status(_LAST_SUCCESSFUL_TIME))
        except FmuError:
            raise
        except Exception as error:  # it does not answer: then it has not ended the simulation
            raise failed from error
        return reached if t < reached <= t + 1.000001 * h else t

    def _end_of_run(self, t: float) -> EndOfRun:
        return EndOfRun(
            f"{self.block.external_name}: it requested the end of the simulation at t = {t:.9g}"
        )

    def _get_state(self) -> Any:
        return self._try(self.fmu.get_fmu_state)

    def _set_state(self, state: Any) -> None:
        self._try(self.fmu.set_fmu_state, state)
        self.tuned = None

    def _free_state(self, state: Any) -> None:
        self._try(self.fmu.free_fmu_state, state)

    def save(self) -> bytes:
        """Raise: serialized states of PyFMI are objects, not bytes."""
        raise BiellaError(f"{self.block.external_name}, run by PyFMI, cannot be saved.")

    def restore(self, state: bytes) -> None:
        """Refuse."""
        raise BiellaError(f"{self.block.external_name}, run by PyFMI, cannot be restored.")

    def close(self) -> None:
        """End the instance."""
        with ProcessState():
            if self.fmu is not None and not self.failed:  # after an error it may only be freed
                self._free_snapshots()
                if not self.initializing:
                    self._try(self.fmu.terminate)
            self._forget_snapshots()
            self.fmu = None  # PyFMI frees it, and its folder

    def _tune(self) -> None:
        """Set tunable parameters that were changed from outside."""
        if self.ended is not None:
            return
        now = self.values.tunable
        names = [name for name, _ in self.parameters[: len(now)]]
        for k, name in enumerate(names):
            if self.tuned is None or self.tuned[k] != now[k]:
                self._try(self.fmu.set, name, now[k])
        self.tuned = now

    def _set_inputs(self) -> None:
        for n, (name, value) in enumerate(zip(self.input_names, self.values.inputs, strict=True)):
            self._set(name, value, n in self.text_inputs)

    def _set(self, name: str, value: float, is_text: bool) -> None:
        """Set an input; a string that nothing was written to keeps its start value."""
        text = self.values.text(value) if is_text else None
        if text is not None or not is_text:
            self._try(self.fmu.set, name, text if is_text else value)

    def _leave_initialization(self) -> None:
        if self.first:
            self._try(self.fmu.initialize, start_time=self._start)
        else:
            self._try(self.fmu.exit_initialization_mode)
        self.initializing = False

    def _try(self, call: Any, *arguments: Any, **named: Any) -> Any:
        control = keep_float_control()
        try:
            return call(*arguments, **named)
        except Exception as error:
            raise FmuError(f"{self.block.external_name}, run by PyFMI: {error}") from error
        finally:
            restore_float_control(control)


def _starts(group: Group) -> Sequence[float | None]:
    return group.starts() or [None] * len(group.scalars)


def _names(groups: list[Group]) -> list[str]:
    return [scalar.name for group in groups for scalar in group.scalars]


def _named_groups(groups: list[Group]) -> list[tuple[str, str]]:
    return [(scalar.name, group.name) for group in groups for scalar in group.scalars]
