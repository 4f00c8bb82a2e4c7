"""Setup of a live run: its clock and limits, initial values, recorder and pipes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...blocks.external._external_input import RECEIVED, RealTime
from ...errors import BiellaError, name_list, suggest
from ..compile.plan._plan import Plan, PortInfo, slots_of
from ..engine._engine import DIAGNOSTIC_START, Instance
from ..results._signals import Signal
from ..results.events._captures import declare_captures
from ..results.events._events import EVENT, list_event_sources
from ..run._simulate import describe_run
from ._history import History
from .log._code_hashes import hash_code
from .log._log_recorder import (
    AbstractLogRecorder,
    Hdf5LogRecorder,
    HistoryLogRecorder,
    MemoryLogRecorder,
)
from .loop._pace import (
    CLOCK_DEVICE,
    CLOCK_FREE,
    CLOCK_WALL,
    ENTRY,
    FROM_LIVE,
    OVERRUN_POLICIES,
    TIMING_SIGNALS,
    InputLog,
    Mailbox,
    Pace,
    Pipe,
)
from .safety._limits import set_limits

if TYPE_CHECKING:
    from ..binding._bind import OpenBinding

_COMMANDS = 4096
_INPUT_LOG_ENTRIES = 1 << 17
_EVENTS = 1 << 16
_PIPE_BYTES = 64 << 20
_PIPE_SECONDS = 10.0


def make_pace(plan: Plan, options: dict[str, Any], devices: Mapping[str, Any], spin: float) -> Pace:
    """Return the settings of the real-time loop; completes the limits of overruns in `options`."""
    pace = Pace()
    name = options["clock"]
    if name.startswith("device:"):
        wanted = name.removeprefix("device:")
        if wanted not in devices:
            close = suggest(wanted, devices)
            raise BiellaError(
                f"there is no device `{wanted}` to use as the clock.{close} "
                f"Devices: {name_list(devices)}."
            )
        pace.clock, pace.pacer = CLOCK_DEVICE, list(devices).index(wanted)
    elif name in ("wall", "free"):
        pace.clock = CLOCK_WALL if name == "wall" else CLOCK_FREE
    else:
        raise BiellaError(f"clock must be `wall`, `free` or `device:NAME`, got {name!r}.")
    if options["overrun"] not in OVERRUN_POLICIES:
        raise BiellaError(
            f"unknown overrun policy {options['overrun']!r}."
            f"{suggest(str(options['overrun']), OVERRUN_POLICIES)} "
            f"Policies: {name_list(OVERRUN_POLICIES)}."
        )
    pace.overrun = OVERRUN_POLICIES.index(options["overrun"])
    if not options["factor"] > 0.0:
        raise BiellaError(f"factor must be positive, got {options['factor']}.")
    if not 0.0 <= spin < math.inf:
        raise BiellaError(f"spin must be a time in s, 0 or more, got {spin}.")
    if options["warmup_ticks"] < 0:
        raise BiellaError(f"warmup_ticks must be 0 or more, got {options['warmup_ticks']}.")
    pace.factor, pace.spin = options["factor"], round(1e9 * spin)
    pace.warmup_ticks = options["warmup_ticks"]
    if options["overrun"] == "stop" and options["max_consecutive_overruns"] is None:
        options["max_overruns"] = options["max_overruns"] or 0
    for limit in ("max_overruns", "max_consecutive_overruns"):
        setattr(pace, limit, -1 if options[limit] is None else options[limit])
    if options["on_log_failure"] not in ("continue", "stop"):
        raise BiellaError(
            f"on_log_failure must be `continue` or `stop`, got {options['on_log_failure']!r}."
        )
    if not 0.0 <= options["log_age"] < math.inf:
        raise BiellaError(f"log_age must be a time in s, 0 or more, got {options['log_age']}.")
    if options["every"] < 1:
        raise BiellaError(f"every must be at least 1, got {options['every']}.")
    for block in plan.blocks:
        if block.type == RealTime.__name__:
            slot = plan.parameters[f"{block.path}.{RECEIVED}"].slot
            for number in range(len(TIMING_SIGNALS)):
                pace.timing[number] = slot + number
    pace.use_devices([device.handle or 0 for device in devices.values()])
    set_limits(pace, plan, options, devices.values())
    return pace


def set_first_values(
    instance: Instance,
    pace: Pace,
    parameters: Mapping[str, Any],
    input_log: InputLog | None,
    *,
    is_timed: bool = False,
) -> InputLog:
    """Set the initial parameters and inputs; return them as entries of the input log.

    `is_timed`: whether timing signals are measured although there is an input log.
    """
    count = int(instance.layout.parameters)
    before = instance.values[:count].copy()
    for path, value in parameters.items():
        instance.set(path, value)
    if input_log is not None:
        early = input_log[input_log["tick"] < 0]
        instance.values[early["slot"]] = early["value"]
        instance.touch()
        for number in range(len(TIMING_SIGNALS)):  # the input log tells them
            if not is_timed:
                pace.timing[number] = -1
    instance.initialize()
    instance.warn(DIAGNOSTIC_START, stacklevel=4)
    first = instance.values[:count].copy()
    changed = np.flatnonzero(before.view(np.int64) != first.view(np.int64))
    entries = np.zeros(len(changed), dtype=ENTRY)
    entries["tick"], entries["slot"], entries["from"] = -1, changed, FROM_LIVE
    entries["value"] = first[changed]
    return entries


def make_recorder(
    instance: Instance,
    out: Any,
    signals: list[Signal],
    binding: OpenBinding | None,
    compiled_with: Mapping[str, Any],
    options: Mapping[str, Any],
    history: History,
) -> AbstractLogRecorder:
    """Return the recorder of rows and input log: in memory, or in the file `out`.

    In memory the rows of `history` are enough, if there is one.
    """
    plan, sources = instance.plan, list_event_sources(instance)
    info = describe_run(plan) | {"compiled_with": dict(compiled_with), "code": hash_code(plan)}
    if binding is not None:
        info["binding"] = binding.describe()
    if out is None and history.capacity:
        return HistoryLogRecorder(
            history, plan.aliases, info, plan=plan.data, event_sources=sources
        )
    if out is None:
        return MemoryLogRecorder(signals, plan.aliases, info, plan=plan.data, event_sources=sources)
    triggers = declare_captures(plan)
    return Hdf5LogRecorder(
        out,
        signals,
        plan.aliases,
        info,
        triggers,
        plan=plan.data,
        event_sources=sources,
        age=options["log_age"],
        sync=options["log_sync"],
    )


@dataclass(frozen=True)
class Pipes:
    """Connections between the real-time loop and the other threads.

    Attributes
    ----------
    rows, input_log, events
        From the loop to the recorder.
    commands
        To the loop: changes of parameters and inputs, overrides.
    mailbox
        The newest values of all signals: a frame.
    frame_first
        The slot with which frames begin: inputs of the diagram and defaults precede signals.
    signals_end, counters_first
        The slot after the last signal, and that of the first counter of the solver, which follows
        it in frames.
    """

    rows: Pipe
    input_log: Pipe
    events: Pipe
    commands: Pipe
    mailbox: Mailbox
    frame_first: int
    signals_end: int
    counters_first: int

    def place(self, slot: int) -> int:
        """Return where the value of a slot is in frames."""
        if slot >= self.counters_first:
            slot += self.signals_end - self.counters_first
        return 1 + slot - self.frame_first


def open_pipes(
    stack: ExitStack,
    instance: Instance,
    pace: Pace,
    ports: list[PortInfo],
    every: int,
    input_log: InputLog | None,
) -> Pipes:
    """Open the pipes and connect them to the loop; `input_log` is replayed."""
    plan, layout = instance.plan, instance.layout
    slots = slots_of(ports)
    row = np.dtype((np.float64, 1 + len(slots)))
    seconds = _PIPE_SECONDS * pace.factor / (plan.step * every)
    capacity = int(max(64, min(_PIPE_BYTES // row.itemsize, seconds)))
    rows = Pipe(row, capacity)
    stack.callback(rows.close)
    pace.record(rows, slots, every)
    longest = max(layout.parameters, layout.signals)
    commands = Pipe(ENTRY, max(_COMMANDS, longest))  # a change goes in as a whole
    stack.callback(commands.close)
    entries = Pipe(ENTRY, _INPUT_LOG_ENTRIES)
    stack.callback(entries.close)
    pace.commands, pace.input_log = commands.handle, entries.handle
    events = Pipe(EVENT, max(_EVENTS, 4 * int(layout.events)) if layout.events else 1)
    stack.callback(events.close)
    pace.push_events(events)
    first = _find_frame_first(plan, int(layout.parameters))
    end = int(layout.parameters + layout.signals)
    mailbox = Mailbox(1 + end - first + layout.diagnostics)
    stack.callback(mailbox.close)
    pace.post_latest(mailbox, first)
    if input_log is not None:
        pace.replay_from(input_log[input_log["tick"] >= 0])
    counters = end + int(layout.states + layout.memory)
    return Pipes(rows, entries, events, commands, mailbox, first, end, counters)


def _find_frame_first(plan: Plan, parameter_count: int) -> int:
    read = [port.slot for block in plan.blocks for port in block.inputs]
    read += [port.slot for port in plan.inputs.values()]
    return min([*read, parameter_count])
