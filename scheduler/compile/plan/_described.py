"""Description of a compiled diagram: its blocks, ports, parameters and signals by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ....blocks.core._ports import Kind, main_output
from ....errors import BiellaError, name_list, suggest
from ...results._signals import Signal


@dataclass(frozen=True, slots=True)
class PortInfo:
    """A port of the plan: the slots and the meaning of its values."""

    path: str
    slot: int
    width: int
    unit: str | None
    kind: Kind
    doc: str = ""
    sampled: bool = False
    names: tuple[str, ...] = ()
    """Of an enumeration: the names of its values, from 1 on."""

    @property
    def signal(self) -> Signal:
        """The port as a signal of a recorder."""
        return Signal(self.path, self.width, self.unit, self.kind, self.sampled, tuple(self.names))


def slots_of(ports: Iterable[PortInfo]) -> list[int]:
    """Return the slots of all values of ports, in order."""
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
        """Number of elements."""
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


def freeze(value: Any) -> Any:
    """Return plain data as read-only mappings and tuples; tuples are taken as they are."""
    if isinstance(value, dict):
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Return a copy of frozen data as dicts and lists, for a result that its owner may change."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


class AbstractDescribed(ABC):
    """Something that is described by the content of section META of a plan."""

    @property
    @abstractmethod
    def meta(self) -> Mapping[str, Any]:
        """The description as plain, read-only data."""

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
    def blocks(self) -> tuple[BlockInfo, ...]:
        """The blocks, as numbered."""
        return tuple(_block_info(item) for item in self.meta["blocks"])

    @cached_property
    def inputs(self) -> Mapping[str, PortInfo]:
        """Inputs of the whole diagram."""
        return MappingProxyType({item[0]: PortInfo(*item) for item in self.meta["inputs"]})

    @cached_property
    def outputs(self) -> Mapping[str, PortInfo]:
        """Outputs of the whole diagram, by their name in it."""
        return MappingProxyType({item[0]: PortInfo(*item) for item in self.meta["outputs"]})

    @cached_property
    def signals(self) -> Mapping[str, PortInfo]:
        """Every block output, diagram input and diagnostic signal of a coupling, by path."""
        found = {port.path: port for block in self.blocks for port in block.outputs}
        diagnostic = (PortInfo(*port) for item in self.couplings for port in item["ports"])
        found |= self.inputs
        return MappingProxyType(found | {port.path: port for port in diagnostic})

    @cached_property
    def solver_signals(self) -> Mapping[str, PortInfo]:
        """What the solver counts, as signals by path: recorded only where they are named."""
        ports = (PortInfo(*item) for item in self.meta.get("solver_signals", ()))
        return MappingProxyType({port.path: port for port in ports})

    @property
    def couplings(self) -> tuple[Mapping[str, Any], ...]:
        """The blocks with an internal solver that are advanced together, and how."""
        return tuple(self.meta.get("couplings", ()))

    @property
    def multirate(self) -> Mapping[str, Any]:
        """The blocks that take substeps, how many, and the slow blocks whose outputs they read
        interpolated; empty if no block does."""
        found: Mapping[str, Any] = self.meta.get("multirate", {})
        return found

    @property
    def exchanges(self) -> tuple[Mapping[str, Any], ...]:
        """The powers between blocks that exchange held signals once a step."""
        return tuple(self.meta.get("exchanges", ()))

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """Other names of signals: a block's, of its main output; elements of buses; the diagram's
        own outputs."""
        short = dict(self.meta.get("buses", {}))
        rerouted: Mapping[str, str] = self.meta.get("rerouted", {})
        for block in self.blocks:
            paths = [rerouted.get(port.path, port.path) for port in block.outputs]
            paths = [path for path in paths if path.startswith(f"{block.path}.")]
            names = [path[len(block.path) + 1 :] for path in paths]
            main = main_output(names)
            if main is not None:
                short[block.path] = paths[names.index(main)]
        by_slot = {port.slot: path for path, port in self.signals.items()}
        outputs = {name: by_slot[port.slot] for name, port in self.outputs.items()}
        return MappingProxyType(short | outputs)

    @cached_property
    def bus_elements(self) -> Mapping[str, str]:
        """Elements of buses, by their names: the paths of their signals."""
        elements = dict(self.meta.get("buses", {}))
        elements |= {name: self.aliases[name] for name in self.outputs if "." in name}
        return MappingProxyType(elements | {name: name for name in self.inputs if "." in name})

    @cached_property
    def parameters(self) -> Mapping[str, ParameterInfo]:
        """Every parameter, by path."""
        return MappingProxyType({p.path: p for block in self.blocks for p in block.parameters})

    @cached_property
    def loops(self) -> tuple[tuple[str, ...], ...]:
        """The algebraic loops, each as the ports around it."""
        return tuple(tuple(loop) for loop in self.meta["loops"])

    def find_signal(self, path: str) -> PortInfo:
        """Return the signal at `path`, or raise an error that lists the valid names."""
        path = self.aliases.get(path, path)
        if path not in self.signals and path in self.solver_signals:
            return self.solver_signals[path]
        if path not in self.signals:
            names = [*self.signals, *self.aliases, *self.solver_signals]
            raise BiellaError(
                f"there is no signal `{path}`.{suggest(path, names)} "
                f"Signals: {name_list(self.signals)}."
            )
        return self.signals[path]

    def find_settable(self, path: str) -> tuple[slice, tuple[int, ...]]:
        """Return the slots of a parameter or an input, and its shape."""
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


def _block_info(item: tuple[Any, ...]) -> BlockInfo:
    path, type_name, rate, inputs, outputs, parameters = item
    return BlockInfo(
        path,
        type_name,
        rate,
        tuple(PortInfo(*port) for port in inputs),
        tuple(PortInfo(*port) for port in outputs),
        tuple(ParameterInfo(p[0], p[1], tuple(p[2]), *p[3:]) for p in parameters),
    )


def read_value(
    path: str, value: Any, shape: tuple[int, ...], before: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return `value` as the numbers of a parameter or an input, or raise an error that names it.

    They must be finite if those `before` are: some parameters, such as limits, may be infinite,
    but none becomes NaN.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise BiellaError(f"`{path}` expects numbers, got {value!r}.") from None
    if array.size != before.size:
        wanted = f"{before.size} numbers of shape {shape}" if shape else "one number"
        comma = (
            " The decimal separator is a point, not a comma." if isinstance(value, tuple) else ""
        )
        raise BiellaError(f"`{path}` expects {wanted}, got {array.size}: {value!r}.{comma}")
    if not np.isfinite(array).all() and np.isfinite(before).all():
        raise BiellaError(f"`{path}` must be finite, got {value!r}.")
    if np.isnan(array).any() and not np.isnan(before).any():
        raise BiellaError(f"`{path}` must be a number, got {value!r}.")
    return array.ravel()
