"""Checking a binding against a diagram: all that is wrong, together, before anything moves."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..._services import find_service
from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import Port
from ...blocks.core._units import Unit, equivalent
from ...blocks.external._external_input import ExternalInput
from ...errors import BiellaError, BiellaWarning, DiagramError, name_list, suggest
from ..compile._compiler import outline_flat, read_settings
from ..compile._flatten import FlatDiagram, flatten
from ..compile._model import Model, Outline
from ..compile.diagram._diagram import Diagram
from ..devices._native import MOST_VALUES, DeviceContext, count_values
from ..results._files import find_recording_target
from ..results._result_file import is_result_file
from ..results._signals import ResultError
from ._bindable import BlockPorts, list_blocks, port_of
from ._channel_maps import ChannelMap, ChannelMaps, element_of, start_of
from ._rig import Binding, BlockEntry, DeviceEntry, SignalEntry, read_binding

STATUS = (
    Port("age", kind="integer", doc="ticks since the newest frame"),
    Port("alive", kind="boolean", doc="whether a frame was received within the timeout"),
    Port(
        "delay",
        kind="integer",
        doc=("ticks from sending a value to receiving a frame that acknowledges it"),
    ),
)
"""The signals that every device has."""

_RESERVED = ("realtime", "coupling")


@dataclass(slots=True)
class BindingReport:
    """What `check_binding` found.

    Attributes
    ----------
    problems
        What keeps the binding from being used; empty if nothing does.
    warnings
        Issues that do not prevent the run.
    ties
        The bound blocks, signals and channels.
    fmus
        Blocks that are replaced by an FMU, and its file.
    plan
        The diagram with stand-ins for the real parts; None if there are problems.
    """

    binding: Binding
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    channel_maps: list[ChannelMap] = field(default_factory=list)
    fmus: dict[str, str] = field(default_factory=dict)
    replace: dict[str, AbstractBlock] = field(default_factory=dict)
    extra: dict[str, AbstractBlock] = field(default_factory=dict)
    reroute: dict[str, tuple[str, str]] = field(default_factory=dict)
    plan: Model | None = None


def check_binding(
    diagram: Diagram, binding: Binding | str | Path | Mapping[str, Any], **compile_options: Any
) -> BindingReport:
    """Compare a binding with a diagram; nothing is opened.

    The diagram is checked as it would be simulated: that gives the width, the unit and the kind of
    every port. Without problems the bound diagram is compiled.

    Raises
    ------
    BindingError
        If a file is not TOML. All other problems are in the returned report.
    """
    if not isinstance(binding, Binding):
        binding = read_binding(binding)
    check = BindingReport(binding, list(binding.problems))
    changes = ("replace", "extra", "reroute")
    plain = {k: v for k, v in compile_options.items() if k not in changes}
    plain["flat"] = plain.get("flat") or flatten(diagram)
    try:
        plan = _outline(diagram, **plain)
    except DiagramError as error:
        check.problems += [f"the diagram is not valid: {text}" for text in error.problems]
        return check
    _Checker(diagram, plan, check, compile_options.get("extra") or {}).check()
    if check.problems:
        return check
    for key in changes:
        plain[key] = {**(compile_options.get(key) or {}), **getattr(check, key)}
    try:
        check.plan = diagram.compile(**plain)
    except DiagramError as error:
        check.problems += [
            f"the diagram with this binding is not valid: {text}" for text in error.problems
        ]
    return check


def _outline(diagram: Diagram, *, flat: FlatDiagram, **options: Any) -> Outline:
    """Check a diagram as it would be simulated and return what it consists of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiellaWarning)  # they come again for the bound diagram
        return outline_flat(flat, read_settings(diagram, **options))


class _Checker:
    """Goes through a binding and adds to a `BindingReport`."""

    def __init__(
        self,
        diagram: Diagram,
        plan: Outline,
        check: BindingReport,
        extra: Mapping[str, AbstractBlock],
    ) -> None:
        self.plan, self.found = plan, check
        self.reserved = {*_RESERVED, *extra}
        self.binding = check.binding
        self.blocks = dict(list_blocks(diagram, plan))
        self.channel_maps = ChannelMaps(self.say)
        self.taken: dict[str, list[Port]] = {}
        """Outputs that devices replace, as ports of added sources."""
        self.named = _list_named(self.binding)

    def say(self, table: str, key: str, text: str) -> None:
        self.found.problems.append(f"{f'[{table}] {key}'.rstrip()}: {text}")

    def check(self) -> None:
        self._check_out()
        for entry in self.binding.devices.values():
            self._check_driver(entry)
        self._check_lines()
        for block in self.binding.blocks.values():
            self._check_block(block)
        for signal in self.binding.signals.values():
            self._check_signal(signal)
        for entry in self.binding.devices.values():
            self._check_use(entry)
            self._add_status(entry)
        self.found.channel_maps += self.channel_maps.channel_maps

    def _check_out(self) -> None:
        """Find a file that a recording would not replace before the run does."""
        out = self.binding.run.get("out")
        if out is None:
            return
        try:
            find_recording_target(out, is_result_file)
        except ResultError as error:
            self.say("run", "out", str(error))

    def _check_driver(self, entry: DeviceEntry) -> None:
        name = entry.name
        if name in self.blocks or name in self.plan.inputs:
            self.say(
                f"devices.{name}",
                "",
                "a block of the diagram has the name of this device, and the signals of the device "
                f"({name}.age, …) would have it too: rename the device.",
            )
        if name in self.reserved:
            self.say(
                f"devices.{name}",
                "",
                "the name is reserved for signals of the run: rename the device.",
            )
        for side in ("receive", "send"):
            if (count := count_values(getattr(entry, side))) > MOST_VALUES:
                text = f"has {count} values, but a device has at most {MOST_VALUES}."
                self.say(f"devices.{name}", side, text)
                return
        broken = (f"[devices.{name}]", f"[devices.{name}.")
        if entry.driver is None or any(p.startswith(broken) for p in self.binding.problems):
            return  # a driver is only asked about what can be read
        around = DeviceContext(self.binding.folder, self.plan.step, self.plan.start_time)
        try:
            found = entry.driver.check(entry, around)
        except Exception as error:
            found = [("", f"the driver `{entry.driver.name}` cannot be loaded: {error}")]
        for key, text in found:
            self.say(f"devices.{name}", key, text)

    def _check_lines(self) -> None:
        """Check that each port has one device, and that timeouts are not shorter than a tick."""
        owners: dict[object, str] = {}
        period = self.plan.step / self.binding.run.get("factor", 1.0)
        for name, entry in self.binding.devices.items():
            if entry.driver is not None and entry.driver.name in ("serial", "text"):
                port = entry.options["port"]
                if port is not None and (owner := owners.setdefault(port, name)) != name:
                    text = f"is that of `{owner}` already: give one device all of its channels."
                    self.say(f"devices.{name}", "port", text)
            if 0 < entry.timeout < period:
                self.found.warnings.append(
                    f"[devices.{name}] timeout: {entry.timeout:g} s are less than a tick, "
                    f"{period:g} s: it is lost after a few ticks without a frame."
                )

    # Blocks.

    def _check_block(self, entry: BlockEntry) -> None:
        where = f"blocks.{entry.path}"
        ports = self.blocks.get(entry.path)
        if ports is None:
            hint = suggest(entry.path, self.blocks)
            self.say(
                where,
                "",
                f"there is no block `{entry.path}`.{hint} Blocks: {name_list(self.blocks)}.",
            )
            return
        for other in self.binding.blocks:
            if entry.path.startswith(f"{other}."):
                self.say(where, "", f"it is part of `{other}`, which is replaced as a whole.")
        if entry.fmu is not None:
            self._check_fmu(entry, ports, where)
        elif entry.device is not None:
            device = self._find_device(entry.device, where, "device")
            if device is not None:
                self._check_device_block(entry, ports, device, where)

    def _find_device(self, name: str, where: str, key: str) -> DeviceEntry | None:
        device = self.binding.devices.get(name)
        if device is None:
            known = self.binding.devices
            self.say(
                where, key,
                f"there is no device `{name}`.{suggest(name, known)} Devices: {name_list(known)}.",
            )  # fmt: skip
        return device

    def _check_device_block(
        self, entry: BlockEntry, ports: BlockPorts, device: DeviceEntry, where: str
    ) -> None:
        for side, given in (("inputs", entry.inputs), ("outputs", entry.outputs)):
            # Inputs of the block are outputs to the device, and vice versa.
            incoming = side == "outputs"
            channels = device.receive if incoming else device.send
            own = ports.find(side)
            for name in given:
                if name not in own:
                    self.say(
                        where, side,
                        f"`{entry.path}` has no {side[:-1]} `{name}`.{suggest(name, own)} "
                        f"{side.capitalize()}: {name_list(own)}.",
                    )  # fmt: skip
            for port in own.values():
                names = given.get(port.name, (port.name,) if port.name in channels else ())
                if names:
                    self.channel_maps.map_channel(
                        port, f"{entry.path}.{port.name}", device, incoming, names, where, side
                    )
                elif incoming and port.name in ports.read:
                    self.say(
                        where, side,
                        f"output `{port.name}` of `{entry.path}` has no source: assign a "
                        f"channel of `{device.name}`. Channels from it: {name_list(channels)}.",
                    )  # fmt: skip
                elif not incoming and port.name in ports.fed:
                    self.found.warnings.append(
                        f"[{where}]: input `{port.name}` is not sent on any channel of "
                        f"`{device.name}`."
                    )
        starts = {
            port.name: [start_of(c, k) for c, k in mapping.elements]
            for port in ports.outputs
            for mapping in self.channel_maps.channel_maps
            if mapping.port == f"{entry.path}.{port.name}" and mapping.incoming
        }
        try:
            self.found.replace[entry.path] = ExternalInput(
                ports.inputs, ports.outputs, start=starts, rate=ports.rate
            )
        except DiagramError as error:
            self.say(where, "", str(error))

    def _check_fmu(self, entry: BlockEntry, ports: BlockPorts, where: str) -> None:
        Fmu = find_service("Fmu")
        assert entry.fmu is not None
        file = self.binding.folder / entry.fmu
        try:
            whole = Fmu(file)
        except BiellaError as error:
            self.say(where, "fmu", str(error))
            return
        missing = False
        for side in ("inputs", "outputs"):
            own, its = ports.find(side), {port.name: port for port in getattr(whole, side)}
            for name, port in own.items():
                if name not in its:
                    missing = True
                    self.say(
                        where, "fmu",
                        f"`{entry.path}` has the {side[:-1]} `{name}`, but {entry.fmu} has not."
                        f"{suggest(name, its)} {side.capitalize()} of the FMU: {name_list(its)}.",
                    )  # fmt: skip
                else:
                    self._check_fmu_port(entry, port, its[name], where)
            if left := [name for name in its if name not in own]:
                what = "keep their start values" if side == "inputs" else "are not used"
                self.found.warnings.append(
                    f"[{where}]: {side} of {entry.fmu} that `{entry.path}` has not "
                    f"{what}: {name_list(left)}."
                )
        if missing:
            return
        ins, outs = list(ports.find("inputs")), list(ports.find("outputs"))
        try:
            block = Fmu(file, inputs=ins, outputs=outs, **entry.options)
            self.found.replace[entry.path] = block
            self.found.fmus[entry.path] = entry.fmu
        except BiellaError as error:
            self.say(where, "", str(error))

    def _check_fmu_port(self, entry: BlockEntry, port: Port, its: Port, where: str) -> None:
        path = f"{entry.path}.{port.name}"
        if port.width != its.width:
            text = f"`{path}` has {port.width} values, but in {entry.fmu} it has {its.width}."
            self.say(where, "fmu", text)
        ours, theirs = port.unit, its.unit
        if isinstance(ours, Unit) and isinstance(theirs, Unit) and not equivalent(ours, theirs):
            self.say(where, "fmu", f"`{path}` is in {ours}, but in {entry.fmu} in {theirs}.")

    # Single signals.

    def _check_signal(self, entry: SignalEntry) -> None:
        device = self._find_device(entry.device, "signals", entry.path)
        if device is None:
            return
        names = [element_of(name)[0] for name in entry.channels]
        comes = [name in device.receive for name in names]
        goes = [name in device.send for name in names]
        if all(comes) and all(goes):
            self.say(
                "signals", entry.path,
                f"`{device.name}` has both an input and an output {name_list(names)}: rename one.",
            )  # fmt: skip
            return
        incoming = all(comes) or not any(goes)
        path = self.plan.aliases.get(entry.path, entry.path)
        if path not in self.plan.signals:
            self._unknown_signal(entry)
            return
        info = self.plan.signals[path]
        port = port_of(info, path)
        if incoming:
            self._take_over(port, path, device, entry)
        else:
            self.channel_maps.map_channel(
                port, path, device, False, entry.channels, "signals", entry.path
            )

    def _unknown_signal(self, entry: SignalEntry) -> None:
        names = [*self.plan.signals, *self.plan.aliases]
        owner, _, port = entry.path.rpartition(".")
        hint = suggest(entry.path, names)
        if owner in self.blocks and port in self.blocks[owner].find("inputs"):
            hint = " It is an input: name the output that feeds it."
        self.say(
            "signals", entry.path,
            f"there is no signal `{entry.path}`.{hint} Signals: {name_list(self.plan.signals)}.",
        )  # fmt: skip

    def _take_over(self, port: Port, path: str, device: DeviceEntry, entry: SignalEntry) -> None:
        for block in self.binding.blocks.values():
            if path.startswith(f"{block.path}."):
                self.say(
                    "signals", entry.path,
                    f"`{block.path}` is replaced by [blocks.{block.path}] already.",
                )  # fmt: skip
                return
        if path in self.found.reroute or any(
            mapping.port == path and mapping.incoming for mapping in self.channel_maps.channel_maps
        ):
            self.say("signals", entry.path, f"`{path}` is already provided by a device.")
            return
        if path not in self.plan.inputs and path.startswith("coupling."):
            self.say(
                "signals",
                entry.path,
                f"`{path}` is a diagnostic signal of a coupling and cannot be replaced.",
            )
            return
        mapping = self.channel_maps.map_channel(
            port, path, device, True, entry.channels, "signals", entry.path
        )
        if mapping is not None and path not in self.plan.inputs:
            self.found.reroute[path] = (device.name, path)
            self.taken.setdefault(device.name, []).append(port)

    # Devices as a whole.

    def _check_use(self, entry: DeviceEntry) -> None:
        where = f"devices.{entry.name}"
        if entry.name not in self.named:
            self.say(
                where, "", "it is not used: refer to it in [blocks.…] or [signals], or remove it."
            )
            return
        for side, channels in (("receive", entry.receive), ("send", entry.send)):
            for channel in channels.values():
                free = [
                    name
                    for name in channel.element_names
                    if (entry.name, side, name) not in self.channel_maps.used
                ]
                named = self.named[entry.name]
                free = [name for name in free if not {name, channel.name} & named]
                if not free or channel.unused:
                    continue
                if side == "send":
                    self.say(
                        f"{where}.send.{channel.name}", "",
                        f"nothing is sent on {name_list(free)}. Bind it, or set unused = true "
                        f"to send its safe value.",
                    )  # fmt: skip
                else:
                    self.found.warnings.append(
                        f"[{where}.receive.{channel.name}]: {name_list(free)} is received but "
                        f"not used."
                    )

    def _add_status(self, entry: DeviceEntry) -> None:
        """Add a source for the status of the device and for the outputs that it replaces."""
        ports = self.taken.get(entry.name, [])
        starts = {
            mapping.port: [start_of(c, k) for c, k in mapping.elements]
            for mapping in self.channel_maps.channel_maps
            if mapping.port in self.found.reroute
            and mapping.device == entry.name
            and mapping.incoming
        }
        self.found.extra[entry.name] = ExternalInput(outputs=[*STATUS, *ports], start=starts)


def _list_named(binding: Binding) -> dict[str, set[str]]:
    """Return the devices that anything names, and what is named of each, rightly or not."""
    named: dict[str, set[str]] = {}
    for block in binding.blocks.values():
        if block.device is not None:
            channels = [*block.inputs.values(), *block.outputs.values()]
            named.setdefault(block.device, set()).update(*channels)
    for signal in binding.signals.values():
        named.setdefault(signal.device, set()).update(signal.channels)
    clock, _, pacer = str(binding.run.get("clock")).partition(":")
    if clock == "device":
        named.setdefault(pacer, set())
    return named
