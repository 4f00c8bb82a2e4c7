"""`Fmu`: an FMU from another tool as a block of a diagram."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from ctypes import c_char_p, c_int64, c_uint32
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt

from ...blocks.core._block import AbstractBlock, NativeBlock
from ...blocks.core._ports import EVERY_TICK, Rate, periodic
from ...blocks.core._vectors import make_record
from ...blocks.external._external_block import EXPORT_BLOCKER, ExternalBlock
from ...errors import BiellaError, DiagramError, FmuError
from ...scheduler.engine._engine import OK, Instance
from ...scheduler.engine._library import contract, library
from ._archive import Folder, find_binary, read_archive, require_single_instance
from ._feedthrough import override_feedthrough
from ._interface import (
    Description,
    Interface,
    check_period,
    choose_interface,
    read_description,
    resize,
    warn_of_findings,
)
from ._kinds import Kind, check_exchange, choose_kind, interface_of, is_exchange
from ._options import Options
from ._variables import HOST_TYPES, Scalar

_FAILURES = ("logStatusDiscard", "logStatusError", "logStatusFatal")  # names that FMI gives
_BACKENDS = ("engine", "fmpy", "pyfmi")


def Fmu(
    path: str | Path,
    *,
    kind: Kind | None = None,
    instance_name: str | None = None,
    period: float | None = None,
    substeps: int = 1,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    feedthrough: bool | Mapping[str, bool | str | Sequence[str]] | None = None,
    tolerance: float | None = None,
    backend: Literal["engine", "fmpy", "pyfmi"] = "engine",
    event_mode: bool | None = None,
    isolate: bool = False,
    timeout: float | None = None,
    logging: bool | Sequence[str] = False,
    validate: bool = True,
) -> AbstractBlock:
    """Return a block that runs the FMU at `path`, for co-simulation or model exchange.

    Its ports are the FMU's inputs and outputs, with their units; elements ``name[i]`` make one
    vector port ``name``. Its parameters are the FMU's, settable by name like those of every block.
    An input that is not connected keeps its start value.

    Parameters
    ----------
    path
        The file. It is unpacked to a temporary folder, which is deleted after the run.
    kind
        ``"cs"``: co-simulation, the FMU solves its equations itself and takes one step per period.
        ``"me"``: model exchange, the solver of the diagram integrates the states of the FMU, and
        its events are located with those of the diagram. By default co-simulation if the FMU
        supports it.
    instance_name
        Instance name passed to the FMU; by default the name of the file.
    period
        Communication step in seconds; by default the step size of the FMU's default experiment,
        else the base step of the diagram.
    substeps
        Number of steps that the FMU takes per period.
    parameters
        Values by name: parameters, start values of inputs and states, strings, bytes for binaries.
        Structural parameters of FMI 3.0 determine the sizes of arrays, and so the widths of ports.
    inputs, outputs
        Variables that become ports. An output may be any numeric variable of the FMU, including a
        parameter, which remains settable.
    feedthrough
        Direct feedthrough, if the FMU declares it wrongly: for an output the inputs that it depends
        on at the same instant, as in ``{"y": ["u"], "z": []}``; True or False for all outputs.
        Outputs that are not named keep what the FMU declares.
    tolerance
        Relative tolerance passed to the FMU, for its internal solver.
    backend
        ``"engine"``: the engine calls the FMU's binary directly; FMI 2.0 and 3.0.
        ``"fmpy"`` or ``"pyfmi"``: through the objects of that library, which are slower but also
        support other versions of FMI.
    event_mode
        Handle the events of an FMI 3.0 FMU in event mode: its steps end at its events, and changes
        of discrete inputs are events. By default only FMUs with clocks, which require it; others
        handle events internally.
    isolate
        Run the FMU in a separate process: a crash ends the run with an error that reports it.
    timeout
        Time limit of one call in seconds, with `isolate`; the process is then killed.
    logging
        Print the FMU's messages to stderr immediately: all of them, or the listed categories.
    validate
        Check the model description against the FMI standard. One warning lists violations that do
        not prevent a run; False suppresses it.

    Raises
    ------
    FmuError
        If the file cannot be read, is not safe to unpack, or cannot run here.
    """
    if backend not in _BACKENDS:
        raise DiagramError(f"`backend` must be one of {', '.join(_BACKENDS)}; got {backend!r}.")
    if timeout is not None and not isolate:
        raise DiagramError(
            "timeout requires isolate=True: a call within this process cannot be interrupted."
        )
    check_period(period, substeps)
    archive = read_archive(path)
    description = resize(read_description(archive, validate), parameters or {})
    description = choose_kind(description, kind)
    if validate:
        warn_of_findings(description, stacklevel=2)
    options = Options(
        instance_name or archive.path.stem,
        period if period is not None else description.step_size,
        substeps,
        tolerance or 0.0,
        _categories(description, logging),
        bool(logging),
        _uses_events(description, event_mode),
    )
    exchanges = backend == "engine" and is_exchange(description)
    if exchanges:
        check_exchange(description, period, substeps, isolate)
    interface, input_values = choose_interface(description, inputs, outputs, parameters or {})
    interface = override_feedthrough(interface, description, feedthrough)
    block: AbstractBlock
    if backend == "fmpy":
        from .backends._fmpy import FmpyFmu

        block = FmpyFmu(description, interface, input_values, options)
    elif backend == "pyfmi":
        from .backends._pyfmi import PyfmiFmu

        block = PyfmiFmu(description, interface, input_values, options)
    else:
        check_runnable(description)
        if exchanges:
            from ._exchange import ExchangeFmu

            return ExchangeFmu(description, interface, input_values, options)
        block = EngineFmu(description, interface, input_values, options)
    if not isolate:
        return block
    from .backends._isolated import IsolatedFmu, Isolation

    return IsolatedFmu(block, input_values, Isolation(backend, timeout))


def _categories(description: Description, logging: bool | Sequence[str]) -> list[str]:
    """Return the log categories to enable in the FMU; by default those of failures."""
    if isinstance(logging, bool):
        known = {category.name for category in description.model.logCategories}
        return [] if logging else [name for name in _FAILURES if name in known]
    return [logging] if isinstance(logging, str) else list(logging)


def _uses_events(description: Description, wanted: bool | None) -> bool:
    """Return whether event mode is used; raise an error if the FMU has none."""
    flags = description.model.coSimulation
    has = description.version.startswith("3") and flags is not None and bool(flags.hasEventMode)
    if wanted and not has:
        raise FmuError(
            f"{description.archive.path.name} has no event mode: event_mode=True requires "
            f'hasEventMode="true" in the description of a co-simulation FMU of FMI 3.0.'
        )
    return has and (description.has_clocks if wanted is None else wanted)


def check_runnable(description: Description) -> None:
    """Reject an FMU that the engine cannot run directly, and name the backend that can."""
    label = description.archive.path.name
    if not description.version.startswith(("2.", "3.")):
        raise FmuError(
            f"{label} is FMI {description.version}: the engine supports FMI 2.0 and 3.0. Use "
            f"backend='fmpy'."
        )
    if interface_of(description) is None:
        raise FmuError(f"{label} supports scheduled execution only, which biella does not run.")
    find_binary(description.archive, interface_of(description).modelIdentifier)


class EngineFmu(NativeBlock, ExternalBlock):
    """A co-simulation FMU whose binary the engine calls directly; made by `Fmu`."""

    kernel = "fmu2"
    has_internal_solver = shows_parameters = True
    export_blocker = EXPORT_BLOCKER

    def __init__(
        self,
        description: Description,
        interface: Interface,
        input_values: Mapping[str, list[float]],
        options: Options,
    ) -> None:
        self.description, self.interface, self.options = description, interface, options
        self.external_name = f"the FMU `{description.archive.path.name}`"
        flags = self.flags = interface_of(description)
        self.can_roll_back = bool(flags.canGetAndSetFMUstate)
        self.takes_any_step = bool(getattr(flags, "canHandleVariableCommunicationStepSize", True))
        self.can_serialize = self.can_roll_back and bool(flags.canSerializeFMUstate)
        self.is_fmi3 = description.version.startswith("3")
        interpolates = getattr(flags, "canInterpolateInputs", False)
        self.interpolates = bool(interpolates) and not self.is_fmi3
        # An FMU without input interpolation follows its inputs in several substeps.
        self.takes_input_derivatives = self.interpolates or options.substeps > 1
        pairs = self._pairs()
        super().__init__(
            inputs=interface.ports(interface.inputs, input_values),
            outputs=interface.ports(interface.outputs, {}),
            parameters=interface.block_parameters(),
            states=self._states(),
            rate=self._rate(),
            feedthrough=pairs,
            integers=self._integers({name for _, name in pairs}),
            kernel=self._kernel(),
        )

    def __str__(self) -> str:
        return f"Fmu({self.description.archive.path.name!r})"

    def _integers(self, direct: set[str]) -> list[int]:
        """Write the table that ``host.h`` describes."""
        flags = self.flags
        digest = bytes.fromhex(self.description.archive.digest)
        numbers = make_record(
            contract.HOST_HEAD,
            {
                contract.HOST_FLAGS: (
                    contract.HOST_CAN_SAVE * self.can_roll_back
                    + contract.HOST_CAN_SERIALIZE * self.can_serialize
                    + contract.HOST_CAN_INTERPOLATE * self.interpolates
                    + contract.HOST_NEEDS_TOOL * bool(flags.needsExecutionTool)
                    + contract.HOST_GIVES_DERIVATIVES * bool(flags.providesDirectionalDerivative)
                    + contract.HOST_HAS_EVENTS * self.options.event_mode
                    + contract.HOST_IS_CONFIGURED * any(_is_structural(s) for s in self._settable())
                ),
                contract.HOST_SUBSTEPS: self.options.substeps,
                contract.HOST_PARAMETERS: sum(g.width for g in self.interface.parameters),
                contract.HOST_TUNABLE: self.interface.tunable,
                contract.HOST_INDICATORS: self._indicators(),
                contract.HOST_DIGEST: int.from_bytes(digest[:4], "little", signed=True),
                contract.HOST_DIGEST + 1: int.from_bytes(digest[4:8], "little", signed=True),
            },
        )
        for group in self.interface.inputs:
            for s in group.scalars:
                numbers += self._records(s, int(group.name in direct), is_input=True)
        for group in self.interface.outputs:
            for s in group.scalars:
                numbers += self._records(s)
        for s in self._settable():
            always = contract.HOST_ALWAYS if s.name in self.interface.given else 0
            numbers += self._records(s, contract.HOST_STRUCTURAL if _is_structural(s) else always)
        return numbers

    def _settable(self) -> list[Scalar]:
        return [s for group in self.interface.parameters for s in group.scalars]

    def _records(self, scalar: Scalar, *more: int, is_input: bool = False) -> list[int]:
        """Return the records of a variable, one for each of its values."""
        otherwise = contract.HOST_INT64 if self.is_fmi3 else contract.HOST_INTEGER
        kind = HOST_TYPES.get(scalar.fmi_type, otherwise)  # otherwise an enumeration
        if is_input and self._is_discrete(scalar):
            kind |= contract.HOST_DISCRETE
        first = [_signed(scalar.reference), kind, *more]
        following = [first[0], kind | contract.HOST_CONTINUES, *more]
        return first + following * (scalar.size - 1)

    @property
    def value_names(self) -> list[str]:
        """The names of all values, in the order of the records."""
        groups = [*self.interface.inputs, *self.interface.outputs, *self.interface.parameters]
        return [name for group in groups for s in group.scalars for name in s.element_names]

    def _kernel(self) -> str:
        return f"fmu{3 if self.is_fmi3 else 2}{'_rollback' * self.can_roll_back}"

    def _rate(self) -> Rate:
        return periodic(self.options.period, otherwise=EVERY_TICK)

    def _states(self) -> int:
        """Return the number of continuous states that the engine integrates."""
        return 0

    def _indicators(self) -> int:
        """Return the number of event indicators that the engine observes."""
        return 0

    def _is_discrete(self, scalar: Scalar) -> bool:
        """Whether an input may only change in event mode."""
        return self.options.event_mode and scalar.variability != "continuous"

    def _pairs(self) -> list[tuple[str, str]]:
        """Return the pairs (output, input) with direct feedthrough."""
        return self.interface.feedthrough(self.description)

    def open(self, instance: Instance, number: int) -> AttachedFmu:
        """Unpack the FMU and load its binary into a running plan."""
        return AttachedFmu(self, instance, number)


def _is_structural(scalar: Scalar) -> bool:
    return scalar.causality == "structuralParameter"


def _signed(reference: int) -> int:
    """Return a value reference as a signed 32-bit integer of the plan."""
    return reference - (1 << 32) if reference >= 1 << 31 else reference


class AttachedFmu:
    """An FMU that is loaded into a running engine."""

    saved_on_request = True

    def __init__(self, block: EngineFmu, instance: Instance, number: int) -> None:
        self.library, self.instance, self.number = library(), instance, number
        archive = block.description.archive
        binary = find_binary(archive, block.flags.modelIdentifier)
        self.portable = block.can_serialize
        self.folder = Folder.acquire(archive)
        require_single_instance(block.flags, self.folder, block.external_name)
        try:
            path = self.folder.path.joinpath(*binary.split("/"))
            self._attach(block, path)
        except BaseException:
            self.folder.release()
            raise

    def _attach(self, block: EngineFmu, binary: Path) -> None:
        options, strings, binaries = (
            block.options,
            block.interface.strings,
            block.interface.binaries,
        )
        texts = [
            t for some in strings.values() for t in ([some] if isinstance(some, str) else some)
        ]
        data = [value for some in binaries.values() for value in some]
        names = block.value_names if block.is_fmi3 else []
        resources = self.folder.path / "resources"
        source = contract.bl_fmu_source(
            file=block.description.archive.path.name.encode(),
            library=str(binary).encode(),
            name=options.name.encode(),
            guid=(block.description.model.guid or "").encode(),
            resources=(f"{resources}{os.sep}" if block.is_fmi3 else resources.as_uri()).encode(),
            string_references=(c_uint32 * len(strings))(*strings),
            string_reference_count=len(strings),
            strings=_texts(texts),
            string_count=len(texts),
            binary_references=(c_uint32 * len(binaries))(*binaries),
            binary_reference_count=len(binaries),
            binaries=_bytes(data),
            binary_sizes=(c_int64 * len(data))(*map(len, data)),
            binary_count=len(data),
            names=_texts(names),
            name_count=len(names),
            tolerance=options.tolerance,
            stop_time=float("nan"),
            logging=int(options.logging),
            log_categories=_texts(options.categories),
            log_category_count=len(options.categories),
        )
        status = self.library.bl_attach_fmu(self.instance.handle, self.number, source)
        if status != OK:
            raise FmuError(f"{self._message()}.")

    @property
    def messages(self) -> list[str]:
        """The last messages of the FMU, oldest first."""
        text: bytes = self.library.bl_fmu_messages(self.instance.handle, self.number)
        return text.decode(errors="replace").splitlines()

    def save(self) -> bytes:
        """Return the FMU's state."""
        size = self.library.bl_fmu_state_size(self.instance.handle, self.number)
        if size < 0:
            raise BiellaError(f"{self._message()}.")
        buffer = ctypes.create_string_buffer(size)
        if self.library.bl_fmu_save(self.instance.handle, self.number, buffer, size) != OK:
            raise BiellaError(f"{self._message()}.")
        return buffer.raw

    def restore(self, state: bytes) -> None:
        """Restore a saved state."""
        handle = self.instance.handle
        if self.library.bl_fmu_restore(handle, self.number, state, len(state)) != OK:
            raise BiellaError(f"{self._message()}.")

    def close(self) -> None:
        """Delete the unpacked folder if no other block uses the file."""
        self.folder.release()

    def _message(self) -> str:
        text: bytes = self.library.bl_message(self.instance.handle)
        return text.decode(errors="replace")


def _bytes(values: Sequence[bytes]) -> Any:
    pointer = ctypes.POINTER(ctypes.c_uint8)
    return (pointer * len(values))(
        *(ctypes.cast(ctypes.c_char_p(value), pointer) for value in values)
    )


def _texts(texts: Iterable[str]) -> Any:
    encoded = [text.encode() for text in texts]
    return (c_char_p * len(encoded))(*encoded)
