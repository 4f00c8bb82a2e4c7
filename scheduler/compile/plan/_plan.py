"""`Plan`: a compiled diagram as plain data. Its bytes are what the engine loads and an FMU carries.

The layout is that of ``scheduler/engine/plan.c``; the two files change together. All that the
engine needs is in binary sections; section ``META`` is for people and for Python: names, units,
text.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from ...._deprecation import deprecated_alias
from ....blocks.core._ports import KINDS
from ....errors import BiellaError, PlanError
from ...engine._engine import DIAGNOSTIC_START, Instance
from ...engine._library import contract
from ._checksum import fnv1a
from ._described import (
    AbstractDescribed,
    BlockInfo,
    ParameterInfo,
    PortInfo,
    freeze,
    read_value,
    slots_of,
)
from ._schedule_report import report_plan

if TYPE_CHECKING:
    from ....blocks.external._external_block import ExternalBlock
    from ....blocks.external._python import PythonBlock

__all__ = [
    "BLOCK_RECORD",
    "BlockInfo",
    "ParameterInfo",
    "Plan",
    "PortInfo",
    "fnv1a",
    "read_arrays",
    "read_sections",
    "read_value",
    "slots_of",
    "write_sections",
]

MAGIC = b"biellaP\n"
VERSION = contract.BL_PLAN_VERSION
_RELEASES = {1: "biella 0.1"}
"""Earlier formats, and the release that reads them."""
_HEAD = struct.Struct("<8sIIQQ")
_SECTION = struct.Struct("<4sIQQ")
_ELEMENTS = (
    {tag: "<f8" for tag in ("TIME", "SOLV", "PARA", "CTOL")}
    | {tag: "<i8" for tag in ("SIZE", "RATE")}
    | {tag: "u1" for tag in ("META", "KERN", "PATH", "NOTE", "TYPN")}
)
"""Types of the elements of sections; all others have 32-bit integers."""
_META_KEYS = {"name", "step", "start", "solver", "blocks", "inputs", "outputs", "loops"}
_BLOCK_FIELDS = {
    "kernel": contract.BLOCK_KERNEL,
    "rate": contract.BLOCK_RATE,
    "guard": contract.BLOCK_GUARD,
    "u_first": contract.BLOCK_U,
    "u_count": contract.BLOCK_U_COUNT,
    "y_first": contract.BLOCK_Y,
    "y_count": contract.BLOCK_Y_COUNT,
    "x_first": contract.BLOCK_X,
    "x_count": contract.BLOCK_X_COUNT,
    "z_first": contract.BLOCK_Z,
    "z_count": contract.BLOCK_Z_COUNT,
    "unused": contract.BLOCK_UNUSED,
    "p_first": contract.BLOCK_P,
    "p_count": contract.BLOCK_P_COUNT,
    "i_first": contract.BLOCK_I,
    "i_count": contract.BLOCK_I_COUNT,
}
BLOCK_RECORD = np.dtype(
    {
        "names": list(_BLOCK_FIELDS),
        "formats": ["<i4"] * len(_BLOCK_FIELDS),
        "offsets": [4 * number for number in _BLOCK_FIELDS.values()],
        "itemsize": 4 * contract.BLOCK_FIELDS,
    }
)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(AbstractDescribed):
    """An immutable compiled diagram, as bytes; a `Model` also holds their sources.

    Attributes
    ----------
    data
        The bytes that the engine loads; equal diagrams have equal bytes.
    python_blocks
        Blocks that run in this process, by number; a plan that has any cannot be saved.
    external
        Blocks that need something else than the plan, such as the file of an FMU, by number;
        likewise.
    """

    data: bytes
    python_blocks: Mapping[int, PythonBlock]
    external: Mapping[int, ExternalBlock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("python_blocks", "external"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __repr__(self) -> str:
        from ...notebook._plan import describe_plan

        return describe_plan(self)

    def _repr_html_(self) -> str:
        from ...notebook._plan import show_plan

        return show_plan(self)

    @cached_property
    def sections(self) -> Mapping[str, bytes]:
        """The raw sections by tag."""
        return MappingProxyType(read_sections(self.data))

    @cached_property
    def meta(self) -> Mapping[str, Any]:
        """Content of the section META."""
        try:
            meta = json.loads(self.sections["META"])
        except (ValueError, RecursionError):
            raise PlanError("its description cannot be read.") from None
        if not isinstance(meta, dict) or not meta.keys() >= _META_KEYS:
            raise PlanError("its description is not complete.")
        frozen: Mapping[str, Any] = freeze(meta)
        return frozen

    @cached_property
    def hash(self) -> str:
        """A digest of the content, the same on every run."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def tick_rates(self) -> npt.NDArray[np.int64]:
        """Period and offset, in ticks, of each rate that a block record may name."""
        return np.frombuffer(self.sections["RATE"], dtype="<i8").reshape(-1, 2)

    @property
    def kernels(self) -> list[str]:
        """Name of the kernel of each block."""
        names = self.sections["KERN"].decode(errors="replace").split("\0")
        return [names[number] for number in self.block_records["kernel"].tolist()]

    @property
    def block_records(self) -> npt.NDArray[Any]:
        """The engine's own table of blocks."""
        return np.frombuffer(self.sections["BLKS"], dtype=BLOCK_RECORD)

    @property
    def first_values(self) -> npt.NDArray[np.float64]:
        """Initial values of parameters and inputs, by slot."""
        return np.frombuffer(self.sections["PARA"], dtype="<f8")

    def open(self) -> Instance:
        """Load the plan into the engine; it is not initialized yet."""
        return Instance(self)

    def instantiate(self, parameters: Mapping[str, npt.ArrayLike] | None = None) -> Instance:
        """Load the plan into the engine and initialize it."""
        instance = self.open()
        try:
            for path, value in (parameters or {}).items():
                instance.set(path, value)
            instance.initialize()
            instance.warn(DIAGNOSTIC_START)
        except BaseException:
            instance.close()
            raise
        return instance

    start = deprecated_alias(instantiate, "Plan.start", "Plan.instantiate")

    def name_external(self, numbers: Collection[int] | None = None) -> str:
        """Return the external blocks, or some of them, as text, for a message that rejects them."""
        return ", ".join(
            f"`{self.blocks[n].path}` ({block.external_name})"
            for n, block in self.external.items()
            if numbers is None or n in numbers
        )

    def report(self) -> str:
        """Return the schedule in execution order, with rates, and the loops."""
        return report_plan(self)

    def with_values(self, parameters: Mapping[str, Any]) -> Self:
        """Return the plan with other values of parameters to start with."""
        values = self.first_values.copy()
        for path, value in parameters.items():
            item = self.parameters[path]
            place = values[item.slot : item.slot + item.size]
            place[:] = read_value(path, value, item.shape, place)
        return self._with_sections({"PARA": values})

    def with_variables(self, local: Sequence[PortInfo], arrays: Sequence[tuple[int, int]]) -> Self:
        """Return the plan with more variables for FMI.

        Parameters
        ----------
        local
            Signals whose elements are appended to the table, as local variables.
        arrays
            First variable and number of elements of each array.
        """
        sections: dict[str, npt.NDArray[Any] | bytes] = {}
        if local:
            rows = [
                (port.slot + k, KINDS.index(port.kind), contract.BL_LOCAL)
                for port in local
                for k in range(port.width)
            ]
            table = np.frombuffer(self.sections["VARS"], dtype="<i4")
            sections["VARS"] = np.concatenate([table, np.array(rows, dtype="<i4").ravel()])
        if arrays:
            sections["ARRS"] = np.array(arrays, dtype="<i4").ravel()
        return self._with_sections(sections) if sections else self

    def with_types(
        self,
        types: Sequence[tuple[int, int]],
        names: Sequence[str],
        starts: Mapping[int, Sequence[float]],
    ) -> Self:
        """Return the plan with types and names of variables, for FMI 3.0.

        Parameters
        ----------
        types
            First variable and type, ``BL_USUAL_TYPE`` …, of each, in the order of the table.
        names
            The name of each.
        starts
            Values to start with, by first variable.
        """
        table = np.frombuffer(self.sections["VARS"], dtype="<i4").reshape(-1, 3)
        values = self.first_values.copy()
        for first, start in starts.items():
            slot = int(table[first, 0])
            values[slot : slot + len(start)] = start
        return self._with_sections(
            {
                "PARA": values,
                "TYPE": np.array(types, dtype="<i4").ravel(),
                "TYPN": b"".join(name.encode() + b"\0" for name in names),
            }
        )

    def with_kind(self, kinds: int) -> Self:
        """Return the plan for an FMU of other kinds: a sum of ``BL_OFFERS_…``."""
        return self._with_sections({"KIND": np.array([kinds], dtype="<i4")})

    def with_clocks(self, rates: Sequence[int]) -> Self:
        """Return the plan for an FMU whose clocks are these rates, by number."""
        return self._with_sections({"CLKS": np.array(rates, dtype="<i4")})

    def _with_sections(self, changed: Mapping[str, npt.NDArray[Any] | bytes]) -> Self:
        sections: dict[str, npt.NDArray[Any] | bytes] = {
            tag: raw if element == 1 else np.frombuffer(raw, dtype=f"V{element}")
            for tag, element, raw in _directory(self.data)
        }
        return replace(self, data=write_sections(sections | dict(changed)))

    def save(self, path: str | Path) -> None:
        """Write the plan to a file."""
        if self.external:
            raise BiellaError(f"a plan that contains {self.name_external()} cannot be saved.")
        if self.python_blocks:
            raise BiellaError(
                "a plan with Python blocks cannot be saved: "
                + ", ".join(f"`{self.blocks[n].path}`" for n in self.python_blocks)
                + ". Replace them by an Expression or by native blocks."
            )
        Path(path).write_bytes(self.data)

    @staticmethod
    def load(path: str | Path) -> Plan:
        """Read a plan from a file; the engine checks it when it is started."""
        path = Path(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise PlanError(f"cannot read the plan `{path}`: {error.strerror}.") from error
        plan = Plan(data, {})
        try:
            _ = plan.meta
        except PlanError as error:
            raise PlanError(f"`{path}` is not a valid plan for this version: {error}") from None
        return plan


def write_sections(sections: Mapping[str, npt.NDArray[Any] | bytes]) -> bytes:
    """Assemble a plan file from its sections."""
    directory, body = [], []
    offset = _HEAD.size + _SECTION.size * len(sections)
    for tag, content in sections.items():
        raw = content if isinstance(content, bytes) else np.ascontiguousarray(content).tobytes()
        element = 1 if isinstance(content, bytes) else content.dtype.itemsize
        padding = -offset % 8
        offset += padding
        directory.append(_SECTION.pack(tag.encode(), element, offset, len(raw) // element))
        body.append(b"\0" * padding + raw)
        offset += len(raw)
    rest = b"".join([*directory, *body])
    size = _HEAD.size + len(rest)
    return _HEAD.pack(MAGIC, VERSION, len(sections), fnv1a(rest), size) + rest


def read_sections(data: bytes) -> dict[str, bytes]:
    """Split a plan file into its sections."""
    sections = {tag: raw for tag, _, raw in _directory(data)}
    if "META" not in sections:
        raise PlanError("it has no description.")
    return sections


def read_arrays(sections: Mapping[str, bytes]) -> dict[str, npt.NDArray[Any]]:
    """Return copies of sections as arrays, which `write_sections` takes."""
    return {
        tag: np.frombuffer(raw, _ELEMENTS.get(tag, "<i4")).copy() for tag, raw in sections.items()
    }


def _directory(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Yield the tag, the size of an element and the bytes of each section."""
    if len(data) < _HEAD.size or data[:8] != MAGIC:
        raise PlanError("it does not start with the signature of a plan.")
    _, version, count, _, size = _HEAD.unpack_from(data)
    if version != VERSION:
        release = _RELEASES.get(version, "a later release of biella")
        raise PlanError(
            f"it has format {version}, readable by {release}; this version reads format {VERSION}."
        )
    if size != len(data) or count > (len(data) - _HEAD.size) // _SECTION.size:
        raise PlanError(f"it has {len(data)} bytes instead of {size}; it may be truncated.")
    for n in range(count):
        tag, element, offset, length = _SECTION.unpack_from(data, _HEAD.size + n * _SECTION.size)
        if offset + element * length > len(data):
            raise PlanError("a section ends outside the file.")
        yield tag.decode("ascii", "replace"), element, data[offset : offset + element * length]
