"""Binding: connect blocks and signals of a diagram to real devices.

`check_binding` compares a ``rig.toml`` with a diagram; `open_binding` compiles the diagram with
stand-ins for the real parts and opens the devices.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ...blocks.external._external_input import RECEIVED
from ...errors import BindingError
from ..compile.diagram._diagram import Diagram
from ..compile.plan._plan import Plan
from ..devices._native import Device, DeviceContext
from ..devices._options import show
from ..results._result import Result
from ._channel_maps import ChannelMap
from ._check import BindingReport, check_binding
from ._report import list_channel_maps
from ._rig import Binding, read_binding

__all__ = [
    "Binding",
    "BindingReport",
    "OpenBinding",
    "check_binding",
    "open_binding",
    "read_binding",
]


class OpenBinding:
    """A diagram with its devices open; a context manager.

    Attributes
    ----------
    plan
        The diagram, compiled with stand-ins for the real parts.
    devices
        Open devices in the order of the binding.
    run
        Content of the table ``[run]``.
    check
        Report of the bound blocks, signals and channels.
    """

    def __init__(self, check: BindingReport, plan: Plan, devices: list[Device]) -> None:
        self.check = check
        self.plan = plan
        self.devices = devices
        self.run: dict[str, Any] = dict(check.binding.run)
        self._owner = os.getpid()
        atexit.register(self.close)

    def describe(self) -> dict[str, Any]:
        """Return the bound blocks, signals and channels as plain data for a log."""
        file = self.check.binding.file
        return {
            "file": str(file.resolve()) if file else None,
            "table": _plain(self.check.binding.table),
            "devices": {device.name: device.describe() for device in self.devices},
            "channel_maps": list_channel_maps(self.check),
        }

    def close(self) -> None:
        """Close all devices; those with drivers in Python are made safe first."""
        atexit.unregister(self.close)
        if os.getpid() == self._owner:  # not in a forked child: the parent uses them
            _close_all(self.devices)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_binding(
    diagram: Diagram, binding: Binding | str | Path | Mapping[str, Any], **compile_options: Any
) -> OpenBinding:
    """Check a binding, compile the diagram with it and open the devices, in this order.

    Parameters
    ----------
    binding
        A file, its content as dictionaries, or the return value of `read_binding`.
    compile_options
        See `biella.scheduler.compile._compiler.compile_diagram`; their `replace` and `extra` are
        applied too.

    Raises
    ------
    BindingError
        With all problems of the binding; no device has been opened.
    DeviceError
        If a device cannot be opened; devices opened before it are closed.
    """
    check = check_binding(diagram, binding, **compile_options)
    plan = check.plan
    if plan is None:
        raise BindingError(check.problems, check.binding.name)
    devices: list[Device] = []
    around = DeviceContext(check.binding.folder, plan.step, plan.start_time)
    try:
        for entry in check.binding.devices.values():
            assert entry.driver is not None  # or there was a problem
            devices.append(entry.driver.open(entry, around))
            _map_device(devices[-1], plan, check)
    except BaseException:
        _close_all(devices)
        raise
    return OpenBinding(check, plan, devices)


def _plain(item: Any) -> Any:
    """Return a value that a file can hold: in Python, a recording may be a `Result`."""
    if isinstance(item, Result):
        return show(item)
    return {key: _plain(inner) for key, inner in item.items()} if isinstance(item, dict) else item


def _close_all(devices: list[Device]) -> None:
    """Close every device, even if closing another one fails."""
    first: BaseException | None = None
    for device in devices:
        try:
            device.close()
        except BaseException as error:
            first = first or error
    if first is not None:
        raise first


def _map_device(device: Device, plan: Plan, check: BindingReport) -> None:
    slots: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for mapping in check.channel_maps:
        if mapping.device == device.name:
            first = _slot_of(plan, mapping, check)
            for k, name in enumerate(mapping.names):
                slots[mapping.incoming][name] = first + k
    status = plan.parameters[f"{device.name}.{RECEIVED}"].slot
    device.map_channel(slots[True], slots[False], (status, status + 1, status + 2))


def _slot_of(plan: Plan, mapping: ChannelMap, check: BindingReport) -> int:
    """Return the slot of a port's first value, or of the values from a device."""
    if not mapping.incoming:
        for block in plan.blocks:
            for port in block.inputs:
                if port.path == mapping.port and block.path in check.replace:
                    return port.slot
        return plan.find_signal(mapping.port).slot
    if mapping.port in plan.inputs:
        return plan.inputs[mapping.port].slot
    if mapping.port in check.reroute:
        owner, name = check.reroute[mapping.port]
        outputs = check.extra[owner].outputs
    else:
        owner, name = _split_port(mapping.port, check.replace)
        outputs = check.replace[owner].outputs
    first = plan.parameters[f"{owner}.{RECEIVED}"].slot
    for output in outputs:
        if output.name == name:
            return first
        assert isinstance(output.width, int)  # of an ExternalInput block
        first += output.width
    raise AssertionError(mapping.port)


def _split_port(path: str, owners: Mapping[str, object]) -> tuple[str, str]:
    """Split a port's path at the end of the longest block path that it begins with."""
    owner = max((o for o in owners if path.startswith(f"{o}.")), key=len)
    return owner, path[len(owner) + 1 :]
