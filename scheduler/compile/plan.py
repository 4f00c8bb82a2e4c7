"""`Plan`: a compiled diagram as plain data. Its bytes are what the engine loads and an FMU carries.

The layout is that of ``scheduler/engine/plan.c``; the two files change together. All that the
engine needs is in binary sections; section ``META`` is for people and for Python: names, units,
text.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...blocks.core.ports import Kind, main_output
from ...errors import BiellaError, PlanError, name_list, suggest
from ..results.signals import Signal

if TYPE_CHECKING:
    from ...blocks.external.foreign import ForeignBlock
    from ...blocks.external.python import PythonBlock
    from ..engine.engine import Instance

MAGIC = b"biellaP\n"
VERSION = 2
_HEAD = struct.Struct("<8sIIQQ")
_SECTION = struct.Struct("<4sIQQ")
_META_KEYS = {"name", "step", "start", "solver", "blocks", "inputs", "outputs", "loops"}
BLOCK_RECORD = np.dtype([
    (name, "<i4")
    for name in (
        "kernel", "rate", "guard", "u_first", "u_count", "y_first", "y_count", "x_first", "x_count",
        "z_first", "z_count", "unused", "p_first", "p_count", "i_first", "i_count",
    )
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class PortInfo:
    """A port of the plan: where its values lie and what they mean."""

    path: str
    slot: int
    width: int
    unit: str | None
    kind: Kind
    doc: str = ""
    sampled: bool = False

    @property
    def signal(self) -> Signal:
        """The same, as a recorder wants it."""
        return Signal(self.path, self.width, self.unit, self.kind, self.sampled)


def slots_of(ports: Iterable[PortInfo]) -> list[int]:
    """Return where all values of ports lie, one port after the other."""
    return [port.slot + k for port in ports for k in range(port.width)]


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """A parameter of the plan."""

    path: str
    slot: int
    shape: tuple[int, ...]
    unit: str | None
    doc: str
    tunable: bool

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return int(np.prod(self.shape, dtype=int))


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """A block of the plan."""

    path: str
    type: str
    rate: str
    inputs: tuple[PortInfo, ...]
    outputs: tuple[PortInfo, ...]
    parameters: tuple[ParameterInfo, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """An immutable compiled diagram.

    Attributes
    ----------
    data
        The bytes that the engine loads; equal diagrams give equal bytes.
    python_blocks
        Blocks that run in this process, by number; a plan that has any cannot be saved.
    foreign
        Blocks that need something else than the plan, such as the file of an FMU, by number;
        likewise.
    stiff
        Of blocks that answer stiffly, by path: a number to perturb and an output to watch, for the
        check of unstable exchanges before a run. It is not saved.
    """

    data: bytes
    python_blocks: Mapping[int, PythonBlock]
    foreign: Mapping[int, ForeignBlock] = field(default_factory=dict)
    stiff: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @cached_property
    def sections(self) -> dict[str, bytes]:
        """The raw sections by tag."""
        return read_sections(self.data)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """What section META says."""
        try:
            meta = json.loads(self.sections["META"])
        except (ValueError, RecursionError):
            raise PlanError("its description cannot be read.") from None
        if not isinstance(meta, dict) or not meta.keys() >= _META_KEYS:
            raise PlanError("its description is not complete.")
        return meta

    @property
    def name(self) -> str:
        """The diagram's name."""
        return str(self.meta["name"])

    @property
    def step(self) -> float:
        """The base step in seconds."""
        return float(self.meta["step"])

    @property
    def start_time(self) -> float:
        """Time of the first tick in seconds."""
        return float(self.meta["start"])

    @property
    def solver(self) -> str:
        """How continuous states are integrated."""
        return str(self.meta["solver"])

    @cached_property
    def hash(self) -> str:
        """A digest of the content, the same on every run."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def blocks(self) -> tuple[BlockInfo, ...]:
        """The blocks, as numbered."""
        return tuple(_block_info(item) for item in self.meta["blocks"])

    @property
    def block_records(self) -> npt.NDArray[Any]:
        """The engine's own table of blocks."""
        return np.frombuffer(self.sections["BLKS"], dtype=BLOCK_RECORD)

    @cached_property
    def inputs(self) -> dict[str, PortInfo]:
        """Inputs of the whole diagram."""
        return {item[0]: PortInfo(*item) for item in self.meta["inputs"]}

    @cached_property
    def outputs(self) -> dict[str, PortInfo]:
        """Outputs of the whole diagram, by their name in it."""
        return {item[0]: PortInfo(*item) for item in self.meta["outputs"]}

    @cached_property
    def signals(self) -> dict[str, PortInfo]:
        """Every output of every block, the diagram's own inputs, what couplings tell; by path."""
        found = {port.path: port for block in self.blocks for port in block.outputs}
        told = (PortInfo(*port) for item in self.couplings for port in item["ports"])
        return found | self.inputs | {port.path: port for port in told}

    @property
    def couplings(self) -> list[dict[str, Any]]:
        """The blocks with steps of their own that are advanced together, and how."""
        return list(self.meta.get("couplings", []))

    @property
    def exchanges(self) -> list[dict[str, Any]]:
        """The powers between blocks that exchange held signals once a step."""
        return list(self.meta.get("exchanges", []))

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Other names of signals: a block's, of its main output; the diagram's own outputs."""
        short = {}
        rerouted: dict[str, str] = self.meta.get("rerouted", {})
        for block in self.blocks:
            paths = [rerouted.get(port.path, port.path) for port in block.outputs]
            paths = [path for path in paths if path.startswith(f"{block.path}.")]
            names = [path[len(block.path) + 1 :] for path in paths]
            main = main_output(names)
            if main is not None:
                short[block.path] = paths[names.index(main)]
        by_slot = {port.slot: path for path, port in self.signals.items()}
        return short | {name: by_slot[port.slot] for name, port in self.outputs.items()}

    @cached_property
    def parameters(self) -> dict[str, ParameterInfo]:
        """Every parameter, by path."""
        return {p.path: p for block in self.blocks for p in block.parameters}

    @cached_property
    def loops(self) -> list[list[str]]:
        """The algebraic loops, each as the ports around it."""
        return [list(loop) for loop in self.meta["loops"]]

    def find_signal(self, path: str) -> PortInfo:
        """Return the signal at `path`, or raise an error that lists what there is."""
        path = self.aliases.get(path, path)
        if path not in self.signals:
            names = [*self.signals, *self.aliases]
            raise BiellaError(
                f"there is no signal `{path}`.{suggest(path, names)} "
                f"Signals: {name_list(self.signals)}."
            )
        return self.signals[path]

    def find_settable(self, path: str) -> tuple[slice, tuple[int, ...]]:
        """Return where the numbers of a parameter or an input lie, and their shape."""
        if path in self.parameters:
            item = self.parameters[path]
            return slice(item.slot, item.slot + item.size), item.shape
        if path in self.inputs:
            port = self.inputs[path]
            return slice(port.slot, port.slot + port.width), (port.width,)
        names = [*self.parameters, *self.inputs]
        raise BiellaError(
            f"there is no parameter or input `{path}`.{suggest(path, names)} "
            f"Parameters: {name_list(self.parameters)}. Inputs: {name_list(self.inputs)}."
        )

    @property
    def first_values(self) -> npt.NDArray[np.float64]:
        """What parameters and inputs are at the start, by slot."""
        return np.frombuffer(self.sections["PARA"], dtype="<f8")

    def start(self, parameters: Mapping[str, Any] | None = None) -> Instance:
        """Load the plan into the engine and initialise it."""
        from ..engine.engine import REMARK_START, Instance

        instance = Instance(self)
        try:
            for path, value in (parameters or {}).items():
                instance.set(path, value)
            instance.initialise()
            instance.warn(REMARK_START)
        except BaseException:
            instance.close()
            raise
        return instance

    def name_foreign(self) -> str:
        """Return the foreign blocks as text, for a message that refuses them."""
        return ", ".join(
            f"`{self.blocks[n].path}` ({block.foreign_name})" for n, block in self.foreign.items()
        )

    def report(self) -> str:
        """Return the schedule in execution order, with rates, and the loops."""
        from .schedule_report import report_plan

        return report_plan(self)

    def amended(self, *, parameters: Mapping[str, Any], notes: Mapping[str, Any]) -> Plan:
        """Return the plan with other values of parameters, and with `notes` added to its META."""
        values = self.first_values.copy()
        for path, value in parameters.items():
            item = self.parameters[path]
            place = values[item.slot : item.slot + item.size]
            place[:] = read_value(path, value, item.shape, place)
        described = json.dumps({**self.meta, **notes}, ensure_ascii=False, separators=(",", ":"))
        changed = {"META": described.encode(), "PARA": values.tobytes()}
        sections: dict[str, npt.NDArray[Any] | bytes] = {}
        for tag, element, raw in _directory(self.data):
            raw = changed.get(tag, raw)
            sections[tag] = raw if element == 1 else np.frombuffer(raw, dtype=f"V{element}")
        return replace(self, data=write_sections(sections))

    def save(self, path: str | Path) -> None:
        """Write the plan to a file."""
        if self.foreign:
            raise BiellaError(f"a plan cannot be saved with {self.name_foreign()} in it.")
        if self.python_blocks:
            raise BiellaError(
                "a plan with Python blocks cannot be saved: "
                + ", ".join(f"`{self.blocks[n].path}`" for n in self.python_blocks)
                + ". Write them as an Expression or with native blocks."
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
            raise PlanError(f"`{path}` is not a plan of this version: {error}") from None
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


def read_value(
    path: str, value: Any, shape: tuple[int, ...], before: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return `value` as the numbers of a parameter or an input, or raise an error that names it.

    They must be finite if those `before` are: some parameters, such as limits, may be infinite.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise BiellaError(f"`{path}` wants numbers, got {value!r}.") from None
    if array.size != before.size:
        wanted = f"{before.size} numbers of shape {shape}" if shape else "one number"
        comma = " Decimals have a point, not a comma." if isinstance(value, tuple) else ""
        raise BiellaError(f"`{path}` wants {wanted}, got {array.size}: {value!r}.{comma}")
    if not np.isfinite(array).all() and np.isfinite(before).all():
        raise BiellaError(f"`{path}` must be finite, got {value!r}.")
    return array.ravel()


def read_sections(data: bytes) -> dict[str, bytes]:
    """Split a plan file into its sections."""
    sections = {tag: raw for tag, _, raw in _directory(data)}
    if "META" not in sections:
        raise PlanError("it has no description.")
    return sections


def _directory(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Yield the tag, the size of an element and the bytes of each section."""
    if len(data) < _HEAD.size or data[:8] != MAGIC:
        raise PlanError("it does not start as a plan does.")
    _, version, count, _, size = _HEAD.unpack_from(data)
    if version != VERSION:
        raise PlanError(f"it has format {version}, this biella reads format {VERSION}.")
    if size != len(data) or count > (len(data) - _HEAD.size) // _SECTION.size:
        raise PlanError(f"it should have {size} bytes and has {len(data)}: truncated?")
    for n in range(count):
        tag, element, offset, length = _SECTION.unpack_from(data, _HEAD.size + n * _SECTION.size)
        if offset + element * length > len(data):
            raise PlanError("a section ends outside the file.")
        yield tag.decode("ascii", "replace"), element, data[offset : offset + element * length]


def fnv1a(data: bytes) -> int:
    """Return the hash that the engine checks; it guards against accidents, not against attacks."""
    from ..engine.engine import hash_bytes

    return hash_bytes(data)


def _block_info(item: list[Any]) -> BlockInfo:
    path, type_name, rate, inputs, outputs, parameters = item
    return BlockInfo(
        path,
        type_name,
        rate,
        tuple(PortInfo(*port) for port in inputs),
        tuple(PortInfo(*port) for port in outputs),
        tuple(ParameterInfo(p[0], p[1], tuple(p[2]), *p[3:]) for p in parameters),
    )
