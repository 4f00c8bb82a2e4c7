"""FMUs whose binary the engine calls directly: the block, and the FMU loaded into an engine."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from ctypes import c_char_p, c_int64, c_uint32
from pathlib import Path
from typing import Any

from ...blocks.core._block import NativeBlock
from ...blocks.core._ports import EVERY_TICK, Rate, periodic
from ...blocks.core._vectors import make_record
from ...blocks.external._external_block import EXPORT_BLOCKER, ExternalBlock
from ...errors import BiellaError, FmuError
from ...scheduler.engine._engine import OK, Instance
from ...scheduler.engine._library import contract, library
from ..standards._terminal_ports import TerminalBlock
from ._archive import Folder, find_binary, require_single_instance
from ._clocks import Clock, active_clocks, encode_clocks
from ._interface import Description, Interface
from ._kinds import interface_of
from ._options import Options
from ._variables import HOST_TYPES, Scalar


class EngineFmu(TerminalBlock, NativeBlock, ExternalBlock):
    """A co-simulation FMU whose binary the engine calls directly; made by `Fmu`."""

    kernel = "fmu2"
    builtin = ""
    """Path of a library within the engine."""
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
        self.can_save = bool(flags.canGetAndSetFMUstate)
        self.can_roll_back = self._can_roll_back()
        self.takes_any_step = bool(getattr(flags, "canHandleVariableCommunicationStepSize", True))
        self.can_serialize = self.can_save and bool(flags.canSerializeFMUstate)
        self.can_be_repeated = not flags.canBeInstantiatedOnlyOncePerProcess
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

    @property
    def code_digest(self) -> str:
        return self.description.archive.digest

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
                    contract.HOST_CAN_SAVE * self.can_save
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
                is_direct = int(group.name in direct)
                numbers += self._records(s, is_direct, is_input=True, is_port=True)
        for group in self.interface.outputs:
            for s in group.scalars:
                numbers += self._records(s, is_port=True)
        for s in self._settable():
            always = contract.HOST_ALWAYS if s.name in self.interface.given else 0
            numbers += self._records(s, contract.HOST_STRUCTURAL if _is_structural(s) else always)
        return numbers + encode_clocks(
            self._clocks(), [*self.interface.inputs, *self.interface.outputs]
        )

    def _clocks(self) -> list[Clock]:
        """Return the clocks that the engine activates or looks at."""
        label = self.description.archive.path.name
        used = self.options.event_mode
        return active_clocks(self.description.clocks.values(), label) if used else []

    def _settable(self) -> list[Scalar]:
        return [s for group in self.interface.parameters for s in group.scalars]

    def _records(
        self, scalar: Scalar, *more: int, is_input: bool = False, is_port: bool = False
    ) -> list[int]:
        """Return the records of a variable, one for each of its values."""
        otherwise = contract.HOST_INT64 if self.is_fmi3 else contract.HOST_INTEGER
        kind = HOST_TYPES.get(scalar.fmi_type, otherwise)  # otherwise an enumeration
        if is_port and (scalar.clocks or scalar.fmi_type == "Clock"):
            kind |= contract.HOST_CLOCKED
        elif is_input and self._is_discrete(scalar):
            kind |= contract.HOST_DISCRETE
        first = [_signed(scalar.reference), kind, *more]
        following = [first[0], kind | contract.HOST_CONTINUES, *more]
        return first + following * (scalar.size - 1)

    @property
    def value_names(self) -> list[str]:
        """The names of all values, in the order of the records."""
        groups = [*self.interface.inputs, *self.interface.outputs, *self.interface.parameters]
        names = [name for group in groups for s in group.scalars for name in s.element_names]
        return [*names, *(clock.name for clock in self._clocks())]

    def _can_roll_back(self) -> bool:
        return self.can_save

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
        self.portable = block.can_serialize
        self.folder: Folder | None = None
        if block.builtin:
            self._attach(block, Path(block.builtin))
            return
        binary = find_binary(archive, block.flags.modelIdentifier)
        self.folder = Folder.acquire(archive)
        if not instance.is_shadow:  # which makes no instance of the FMU
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
        resources = (self.folder.path if self.folder else Path("/")) / "resources"
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
        if self.folder:
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
