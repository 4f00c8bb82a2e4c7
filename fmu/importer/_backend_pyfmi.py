"""FMUs run through PyFMI's own objects: co-simulation of FMI 1.0 and 2.0, for cross-checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import BiellaError, FmuError
from ...scheduler.engine._engine import (
    Instance,
    ProcessState,
    keep_float_control,
    restore_float_control,
)
from ._backend_python import AbstractCalledFmu, Values
from ._interface import Description, Interface
from ._options import Options
from ._variables import Group

_WARNING = 1


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
        self.can_roll_back = False
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


class PyfmiSession:
    """An instance of PyFMI's."""

    portable = False
    saved_on_request = True

    def __init__(self, block: PyfmiFmu, values: Values) -> None:
        self.block, self.values = block, values
        self.fmu: Any = None
        self.first = block.description.version.startswith("1")
        self.initializing = False
        direct = {name for _, name in block.interface.feedthrough(block.description)}
        self.input_names = _names(block.interface.inputs)
        self.direct = [
            (n, name)
            for n, (name, group) in enumerate(_named_groups(block.interface.inputs))
            if group in direct
        ]
        self.output_names = _names(block.interface.outputs)
        self.parameters = [
            (s.name, None if s.name in block.interface.given else start)
            for group in block.interface.parameters
            for s, start in zip(group.scalars, _starts(group), strict=True)
        ]

    def start(self, t: float) -> None:
        """Make an instance, set its parameters and enter initialization mode."""
        import pyfmi

        self.close()
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

    def output(self, t: float) -> None:
        """Set the inputs with direct feedthrough and read the outputs."""
        if self.initializing and self.first:
            self._leave_initialization()
        values = self.values.inputs
        for n, name in self.direct:
            self._try(self.fmu.set, name, values[n])
        read = self._try(self.fmu.get, self.output_names) if self.output_names else []
        self.values.set_outputs([float(value[0]) for value in read])

    def begin(self, t: float) -> bool:
        """End the initialization; return whether it had not ended before."""
        if not self.initializing:
            return False
        self._set_inputs()
        self._leave_initialization()
        return True

    def advance(self, t: float, dt: float) -> None:
        """Take a step."""
        self.begin(t)
        self._set_inputs()
        h = dt / self.block.options.substeps
        for k in range(self.block.options.substeps):
            status = self._try(self.fmu.do_step, t + k * h, h, True)
            if status > _WARNING:
                raise FmuError(f"{self.block.external_name}: do_step of PyFMI returned {status}.")

    def save(self) -> bytes:
        """Raise: serialized states of PyFMI are objects, not bytes."""
        raise BiellaError(f"{self.block.external_name}, run by PyFMI, cannot be saved.")

    def restore(self, state: bytes) -> None:
        """Refuse."""
        raise BiellaError(f"{self.block.external_name}, run by PyFMI, cannot be restored.")

    def close(self) -> None:
        """End the instance."""
        with ProcessState():
            if self.fmu is not None and not self.initializing:
                self._try(self.fmu.terminate)
            self.fmu = None  # PyFMI frees it, and its folder

    def _set_inputs(self) -> None:
        for name, value in zip(self.input_names, self.values.inputs, strict=True):
            self._try(self.fmu.set, name, value)

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
