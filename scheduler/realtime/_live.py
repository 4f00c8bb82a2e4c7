"""`LiveRun`: handle to a running real-time simulation.

Two threads serve it: one is inside the engine's real-time loop, without the interpreter's lock; the
other takes rows and input log from it and records them. Changes go to the loop through a pipe and
take effect at the start of a tick.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from ...blocks.external._asynchronous import AbstractAsynchronous
from ...blocks.external._external_input import RECEIVED, RealTime
from ...errors import (
    BiellaError,
    BiellaWarning,
    BlockError,
    DeviceError,
    OverrunError,
    name_list,
    suggest,
)
from ..compile.plan._plan import Plan, PortInfo, read_value, slots_of
from ..engine._engine import DIAGNOSTIC_RUN, DIAGNOSTIC_START, Instance
from ..results._captures import declare_captures, read_captures
from ..results._coupling_report import read_couplings, warn_of_created_energy
from ..results._result import Result
from ..results._signals import ResultError
from ..run._preflight import TICKS, warn_of_unstable_coupling
from ..run._simulate import choose_signals, count_ticks, describe_run
from . import _live_exit as live_exit
from ._realtime_report import RealtimeReport
from ._watch import Page
from ._worker import Worker
from .log._log_recorder import AbstractLogRecorder, Hdf5LogRecorder, MemoryLogRecorder
from .loop._pace import (
    CLOCK_DEVICE,
    CLOCK_FREE,
    CLOCK_WALL,
    END_CANCEL,
    END_DEVICE,
    END_NAMES,
    END_OVERRUN,
    END_STOP,
    END_TIME,
    ENTER_OVERRIDE,
    ENTER_RELEASE,
    ENTER_SET,
    ENTRY,
    FROM_LIVE,
    FROM_WORKER,
    OVERRUN_POLICIES,
    TIMING_SIGNALS,
    Histogram,
    InputLog,
    Mailbox,
    Pace,
    Pipe,
    Probe,
)

if TYPE_CHECKING:
    from ..binding._bind import OpenBinding

_COMMANDS = 4096
_OVERRIDES = 1024  # values, as in scheduler/realtime/loop/probe.c
_INPUT_LOG_ENTRIES = 1 << 17
_PIPE_BYTES = 64 << 20
_PIPE_SECONDS = 10.0
_DRAIN_SECONDS = 0.02
_SWITCH_SECONDS = 5e-4
_SHOW_SECONDS = 0.1
_GAPS_SHOWN = 3


class LiveRun:
    """Handle to a running real-time simulation; also a context manager.

    ``run["pid.kp"] = 3`` sets a parameter or an input of the diagram at the next tick;
    ``run["pid.kp"]`` returns its present setting. The run is stopped at the end of a ``with``
    block.

    Attributes
    ----------
    plan
        The compiled diagram.
    """

    def __init__(
        self,
        plan: Plan,
        options: Mapping[str, Any],
        *,
        binding: OpenBinding | None = None,
        parameters: Mapping[str, Any] | None = None,
        spin: float = 0.0,
        privileges: Any = None,
        profile: bool = False,
        compiled_with: Mapping[str, Any] | None = None,
        input_log: InputLog | None = None,
        ticks: int | None = None,
        slow: Mapping[str, AbstractAsynchronous] | None = None,
    ) -> None:
        self.plan = plan
        self._options = dict(options)
        self._devices = {device.name: device for device in binding.devices} if binding else {}
        self._fed = {
            tie.port: tie.device
            for tie in (binding.check.channel_maps if binding else ())
            if tie.incoming
        }
        self._privileges = privileges
        self._grants: list[Any] = []
        self._known: dict[str, Any] = {}  # what was set, by path
        self._overridden: dict[str, PortInfo] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()  # the loop has ended
        self._settled = threading.Event()  # and all is recorded
        self._status = 0
        self._asked = ""  # by whom the run was asked to end
        self._failure: BaseException | None = None
        self._result: Result | None = None
        self._reported = False  # whether the failure was raised
        self._loss = ""  # what was not recorded, and why
        self._warned = False  # of that
        self._waiting = False
        self._last_frame: npt.NDArray[np.float64] | None = None
        self._closed = False
        self._page: Page | None = None
        self._shown_at = 0.0
        self._outer = ExitStack()

        ports = choose_signals(plan, self._options["record"])
        self._pace = self._make_pace(spin)
        with ExitStack() as stack:
            self._instance = stack.enter_context(Instance(plan))
            first = self._set_first(parameters or {}, input_log)
            self._ticks = self._count_ticks() if ticks is None else ticks
            if input_log is None:
                ahead = TICKS if self._ticks < 0 else self._ticks
                warn_of_unstable_coupling(plan, ahead, parameters, stacklevel=4)
            self._recorder = self._make_recorder(ports, binding, compiled_with or {})
            stack.callback(self._recorder.close)
            self._recorder.append_input_log(first, 0)
            self._probe = stack.enter_context(Probe(self._instance, profile=profile))
            self._open_pipes(stack, ports, input_log)
            self._workers: list[Worker] = []
            for path, block in (slow or {}).items():
                self._workers.append(Worker(self, path, block))
                stack.callback(self._workers[-1].close)
            self._stack = stack.pop_all()
        self._pace.write_ages([(worker.age_slot, worker.since_slot) for worker in self._workers])
        self._loop = threading.Thread(target=self._run_loop, name="biella loop", daemon=True)
        self._writer = threading.Thread(target=self._write, name="biella recorder", daemon=True)

    # Public interface.

    @property
    def running(self) -> bool:
        """Whether the run has not ended; true while it is paused."""
        return not self._over.is_set()

    @property
    def until(self) -> float | None:
        """End time in s; None if the run continues until it is stopped."""
        return None if self._ticks < 0 else self.plan.start_time + self._ticks * self.plan.step

    @property
    def tick(self) -> int:
        """Number of completed ticks."""
        return int(self._pace.done)

    @property
    def time(self) -> float:
        """The diagram's time in s."""
        return self.plan.start_time + self.tick * self.plan.step

    @property
    def result(self) -> Result:
        """Recorded signals; available after the end of the run, for any reason of the end."""
        self._settled.wait()
        if self._result is None:
            self._raise()
        return self._result

    def __setitem__(self, path: str, value: npt.ArrayLike) -> None:
        plan = self.plan
        if path in plan.parameters:
            parameter = plan.parameters[path]
            if (
                path.rpartition(".")[2] == RECEIVED
                and path.rpartition(".")[0] in self._external_inputs()
            ):
                raise BiellaError(
                    f"`{path}` is what comes from outside: override a signal instead, such as "
                    f"run.override({self._external_inputs()[path.rpartition('.')[0]]!r}, …)."
                )
            if not parameter.tunable:
                raise BiellaError(
                    f"`{path}` counts only when a run starts: give it to "
                    f"`run_realtime` in parameters=…"
                )
        if path in self._fed:
            raise BiellaError(
                f"`{path}` comes from the device `{self._fed[path]}`, whose next frame would set "
                f"it again: override the output of a block behind it instead."
            )
        where, shape = plan.find_settable(path)
        values = read_value(path, value, shape, self._first_values[where])
        self._command(ENTER_SET, range(where.start, where.stop), values)
        self._known[path] = values.reshape(shape) if shape not in ((), (1,)) else float(values[0])

    def __getitem__(self, path: str) -> float | npt.NDArray[np.float64]:
        if path in self._known:
            known = self._known[path]
            return known.copy() if isinstance(known, np.ndarray) else known
        if path in self.plan.parameters:
            where, shape = self.plan.find_settable(path)
            values = self._first_values[where]
            return float(values[0]) if shape == () else values.reshape(shape).copy()
        return self.latest(path)

    def latest(self, path: str) -> float | npt.NDArray[np.float64]:
        """Return the newest value of any signal, recorded or not: a number, or an array."""
        port = self.plan.find_signal(path)
        frame = self._newest_frame()
        if not self._gives(port) and port.path not in self.plan.inputs:
            raise BiellaError(
                f"`{port.path}` tells of a coupling, and is recorded, but not shown live."
            )
        values = self._values_in(frame, port.slot, port.width)
        return float(values[0]) if port.width == 1 else values

    def override(self, path: str, value: npt.ArrayLike) -> None:
        """Override a signal with `value` from the next tick on, in place of its block's output."""
        port = self.plan.find_signal(path)
        if port.path in self.plan.inputs:
            self[port.path] = value
            return
        if not self._gives(port):
            raise BiellaError(f"`{port.path}` is the output of no block, and stays as it is.")
        values = np.broadcast_to(np.asarray(value, dtype=np.float64), (port.width,))
        if not np.isfinite(values).all():
            raise BiellaError(f"`{path}` must be finite, got {value!r}.")
        total = sum(other.width for other in {**self._overridden, port.path: port}.values())
        if total > _OVERRIDES:
            raise BiellaError(
                f"with `{path}` {total} values would be overridden, but {_OVERRIDES} can be: "
                f"release some first. Overridden: {name_list(self._overridden)}."
            )
        self._command(ENTER_OVERRIDE, range(port.slot, port.slot + port.width), values)
        self._overridden[port.path] = port

    def release(self, path: str | None = None) -> None:
        """Release one override, or all; a sampled block updates its output at its next hit."""
        if path is None:
            ports = list(self._overridden.values())
        else:
            port = self.plan.find_signal(path)
            if port.path not in self._overridden:
                raise BiellaError(
                    f"`{path}` is not overridden. Overridden: {name_list(self._overridden)}."
                )
            ports = [port]
        for port in ports:
            slots = range(port.slot, port.slot + port.width)
            self._command(ENTER_RELEASE, slots, np.zeros(port.width))
            del self._overridden[port.path]

    def pause(self) -> None:
        """Pause the simulated time at the next tick; devices receive safe values meanwhile."""
        self._pace.pause = 1

    def resume(self) -> None:
        """Resume after a pause; all deadlines are shifted by its length."""
        self._pace.pause = 0

    def wait(self, timeout: float | None = None) -> Result:
        """Wait for the end and return the result; Ctrl-C, SIGTERM and SIGHUP end the run safely.

        Raises
        ------
        BlockError, OverrunError, DeviceError
            If the run was not ended by the end time, a Stop block or the user. `result` of the
            error, or of the run, holds the recorded signals.
        ResultError
            If no row was recorded, such as on a full disk.
        TimeoutError
            If the run has not ended after `timeout` seconds.

        Warns
        -----
        BiellaWarning
            If rows or entries of the input log were not recorded; the text contains their number,
            time and cause. ``result.info["recording"]`` has the same text.
        """
        try:
            self._waiting = True
            if not self._settled.wait(timeout):
                raise TimeoutError(f"the run still goes on after {timeout:g} s.")
        except KeyboardInterrupt:
            self._end("interrupted by Ctrl-C")
            self._settled.wait()
        finally:
            self._waiting = False
        live_exit.restore_signals()
        if self._failure is not None:
            self._raise()
        self._warn_of_loss(stacklevel=3)
        return self.result

    def stop(self) -> Result:
        """End the run safely at the next tick and return the result; see `wait`."""
        self._end("stopped")
        return self.wait()

    def report(self) -> RealtimeReport:
        """Return timing statistics of the run so far; they print as tables."""
        with self._lock:
            if self._result is None and not self._closed:
                return RealtimeReport(self._describe(), self.plan.name)
        return self.result.realtime_report()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._end("stopped")
        self._settled.wait()
        live_exit.restore_signals()
        if self._failure is not None and kind is None and not self._reported:
            self._raise()
        self._warn_of_loss(stacklevel=3)

    def __repr__(self) -> str:
        state = "running" if self.running else f"over: {self._pace.reason}"
        return f"<LiveRun of {self.plan.name!r}, t = {self.time:.6g} s, {state}>"

    # Setup.

    def _make_pace(self, spin: float) -> Pace:
        options, pace = self._options, Pace()
        name = options["clock"]
        if name.startswith("device:"):
            wanted = name.removeprefix("device:")
            if wanted not in self._devices:
                close = suggest(wanted, self._devices)
                raise BiellaError(
                    f"there is no device `{wanted}` to be the clock.{close} "
                    f"Devices: {name_list(self._devices)}."
                )
            pace.clock, pace.pacer = CLOCK_DEVICE, list(self._devices).index(wanted)
        elif name in ("wall", "free"):
            pace.clock = CLOCK_WALL if name == "wall" else CLOCK_FREE
        else:
            raise BiellaError(f"clock is `wall`, `free` or `device:NAME`, got {name!r}.")
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
            raise BiellaError(f"spin is a time in s before each deadline, got {spin}.")
        if options["warmup_ticks"] < 0:
            raise BiellaError(f"warmup_ticks is a number of ticks, got {options['warmup_ticks']}.")
        pace.factor, pace.spin = options["factor"], round(1e9 * spin)
        pace.warmup_ticks = options["warmup_ticks"]
        if options["overrun"] == "stop" and options["max_consecutive_overruns"] is None:
            options["max_overruns"] = options["max_overruns"] or 0
        for limit in ("max_overruns", "max_consecutive_overruns"):
            setattr(pace, limit, -1 if options[limit] is None else options[limit])
        if options["every"] < 1:
            raise BiellaError(f"every must be at least 1, got {options['every']}.")
        for block in self.plan.blocks:
            if block.type == RealTime.__name__:
                slot = self.plan.parameters[f"{block.path}.{RECEIVED}"].slot
                for number in range(len(TIMING_SIGNALS)):
                    pace.timing[number] = slot + number
        pace.use_devices([device.handle or 0 for device in self._devices.values()])
        return pace

    def _set_first(self, parameters: Mapping[str, Any], input_log: InputLog | None) -> InputLog:
        """Set the initial parameters and inputs; return them as entries of the input log."""
        instance = self._instance
        self._parameter_count = int(instance.layout.parameters)
        before = instance.values[: self._parameter_count].copy()
        for path, value in parameters.items():
            instance.set(path, value)
        if input_log is not None:
            early = input_log[input_log["tick"] < 0]
            instance.values[early["slot"]] = early["value"]
            instance.touch()
            for number in range(len(TIMING_SIGNALS)):  # the input log tells them
                self._pace.timing[number] = -1
        instance.initialize()
        instance.warn(DIAGNOSTIC_START, stacklevel=4)
        self._first_values = instance.values[: self._parameter_count].copy()
        changed = np.flatnonzero(before.view(np.int64) != self._first_values.view(np.int64))
        entries = np.zeros(len(changed), dtype=ENTRY)
        entries["tick"], entries["slot"], entries["from"] = -1, changed, FROM_LIVE
        entries["value"] = self._first_values[changed]
        return entries

    def _count_ticks(self) -> int:
        until = self._options["until"]
        if until is None:
            return -1
        return count_ticks(until, self._instance.time, self.plan.step)

    def _make_recorder(
        self, ports: list[PortInfo], binding: OpenBinding | None, compiled_with: Mapping[str, Any]
    ) -> AbstractLogRecorder:
        plan, out = self.plan, self._options["out"]
        info = describe_run(plan) | {"compiled_with": dict(compiled_with)}
        if binding is not None:
            info["binding"] = binding.describe()
        signals = [port.signal for port in ports]
        if out is None:
            return MemoryLogRecorder(signals, plan.aliases, info, plan=plan.data)
        triggers = declare_captures(plan)
        return Hdf5LogRecorder(out, signals, plan.aliases, info, triggers, plan=plan.data)

    def _open_pipes(
        self, stack: ExitStack, ports: list[PortInfo], input_log: InputLog | None
    ) -> None:
        pace, every = self._pace, self._options["every"]
        slots = slots_of(ports)
        row = np.dtype((np.float64, 1 + len(slots)))
        seconds = _PIPE_SECONDS * pace.factor / (self.plan.step * every)
        capacity = int(max(64, min(_PIPE_BYTES // row.itemsize, seconds)))
        self._rows = Pipe(row, capacity)
        stack.callback(self._rows.close)
        pace.record(self._rows, slots, every)
        longest = max(self._instance.layout.parameters, self._instance.layout.signals)
        self._commands = Pipe(ENTRY, max(_COMMANDS, longest))  # a change goes in as a whole
        stack.callback(self._commands.close)
        self._input_log = Pipe(ENTRY, _INPUT_LOG_ENTRIES)
        stack.callback(self._input_log.close)
        pace.commands, pace.input_log = self._commands.handle, self._input_log.handle
        layout = self._instance.layout
        self._mailbox = Mailbox(1 + layout.parameters + layout.signals - self._frame_first)
        stack.callback(self._mailbox.close)
        pace.post_latest(self._mailbox, self._frame_first)
        if input_log is not None:
            pace.replay_from(input_log[input_log["tick"] >= 0])

    def _keep(self, stack: ExitStack) -> None:
        """Store the resources to close after the run: the devices."""
        self._outer = stack

    def _begin(self) -> None:
        live_exit.watch(self)
        self._began = time.perf_counter()
        try:
            self._writer.start()
            self._loop.start()
            for worker in self._workers:
                worker.start()
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """End a partly started run, for which the caller has no handle."""
        self._end("it could not be started")
        if not _has_begun(self._loop):
            self._over.set()
        if not _has_begun(self._writer):
            self._write()
        self._settled.wait()

    def _external_inputs(self) -> dict[str, str]:
        """Blocks that represent external inputs, with one signal of each."""
        return {
            block.path: block.outputs[0].path
            for block in self.plan.blocks
            if block.type in ("ExternalInput", RealTime.__name__) and block.outputs
        }

    # The real-time thread and the recorder thread.

    def _run_loop(self) -> None:
        try:
            with self._privileged(), _short_turns(bool(self.plan.python_blocks)):
                self._status = self._pace.run(self._instance, self._ticks)
        except BaseException as error:
            self._failure = error
        finally:
            self._over.set()

    @contextlib.contextmanager
    def _privileged(self) -> Iterator[None]:
        if self._privileges is None and self._pace.clock != CLOCK_WALL:
            yield
            return
        from ..host._privileges import Privileges, hold

        with hold(self._privileges or Privileges()) as grants:
            self._grants = grants
            yield

    def _write(self) -> None:
        try:
            self._page = _open_page(self.plan, self._frame_first)
            while not self._over.wait(_DRAIN_SECONDS):
                self._drain()
                self._show()
            self._drain()
            self._finish()
        except BaseException as error:
            self._failure = self._failure or error
            self._end(f"the recorder failed: {error}")
        finally:
            self._over.wait()  # the loop works on what is closed here
            try:
                if self._page is not None:
                    self._page.close()
                self._last_frame = self._mailbox.take()
                for worker in self._workers:
                    worker.wait()
                with self._lock:
                    self._closed = True
                    self._stack.close()
                self._outer.close()
            except BaseException as error:
                self._failure = self._failure or error
            live_exit.forget(self)
            self._settled.set()

    def _drain(self) -> None:
        """Record pending rows; entries of a tick reach the input log before the tick completes."""
        ticks = int(self._pace.done)
        rows = self._rows.pull()
        if len(rows):
            rows[:, 0] = self.plan.start_time + rows[:, 0] * self.plan.step
            self._recorder.take(rows)
        self._recorder.append_input_log(self._input_log.pull(), ticks)

    def _show(self) -> None:
        """Update the monitors ten times per second."""
        now = time.monotonic()
        if self._page is None or now < self._shown_at + _SHOW_SECONDS:
            return
        self._shown_at = now
        frame = self._mailbox.take()
        if frame is not None:
            self._page.write(frame)

    def _finish(self) -> None:
        """Create the result from the recorded rows."""
        instance, info = self._instance, self._recorder.info
        self._recorder.settle()
        info["wall_time"] = time.perf_counter() - self._began
        info["ticks"] = int(self._pace.done)
        info["stopped"] = self._stopped()
        if self.plan.couplings:
            info["couplings"] = read_couplings(instance)
        info["realtime"] = report = self._describe()
        if report["rows_lost"] or report["entries_lost"]:
            info["recording"] = self._loss = self._describe_loss(report)
        self._recorder.captures = read_captures(instance)
        self._result = self._recorder.close()
        self._handle_status()
        instance.warn(DIAGNOSTIC_RUN)
        warn_of_created_energy(instance)

    def _handle_status(self) -> None:
        """Store the error that ended the run, if `wait` must raise it."""
        failure: BiellaError | None = None
        if self._pace.end == END_OVERRUN:
            failure = OverrunError(
                f"the run was ended at t = {self.time:.9g} s: {self._pace.reason}."
            )
        elif self._pace.end == END_DEVICE:
            failure = DeviceError(
                f"the run was ended at t = {self.time:.9g} s: {self._pace.reason}."
                f"{self._advise_on_loss()}"
            )
        elif isinstance(self._failure, BlockError):
            failure = self._failure  # of a worker
        elif self._status < 0:
            try:
                self._instance.check(self._status)
            except BlockError as error:
                failure = error
        if failure is None and self._failure is None and self._loss and not self._rows_recorded():
            failure = ResultError(self._loss)
        if failure is not None:
            failure.result = self._result  # type: ignore[attr-defined]
            self._failure = failure

    def _describe_loss(self, report: Mapping[str, Any]) -> str:
        """Describe the extent of the recording, the missing rows and the cause."""
        recorder, lost, entries = self._recorder, report["rows_lost"], report["entries_lost"]
        texts = []
        if lost:
            kept = recorder.rows_kept
            start, step = self.plan.start_time, self.plan.step
            gaps = [gap for gap in report["gaps"] if gap["of"] == "rows"]
            spans = [
                f"t = {start + gap['first'] * step:.9g} to {start + gap['last'] * step:.9g} s"
                for gap in gaps[:_GAPS_SHOWN]
            ]
            if len(gaps) > _GAPS_SHOWN:
                spans.append(f"{len(gaps) - _GAPS_SHOWN} more gaps")
            texts.append(
                f"{kept} of {kept + lost} rows are recorded {recorder.place}; lost: "
                f"{', '.join(spans)}."
            )
        if entries:
            texts.append(
                f"{entries} entries of the input log are lost: the run can be replayed up to its "
                f"first gap only."
            )
        cause = recorder.trouble or "The recorder was too slow."
        texts.append(f"{cause} Free some space, record fewer signals, or not every tick.")
        if recorder.left_alone and not recorder.rows_kept:
            texts.append(f"`{recorder.left_alone}` still has the earlier recording.")
        return " ".join(texts)

    def _rows_recorded(self) -> int:
        return 0 if self._result is None else self._result.length

    def _warn_of_loss(self, stacklevel: int) -> None:
        if self._loss and not self._warned:
            self._warned = True
            warnings.warn(self._loss, BiellaWarning, stacklevel=stacklevel)

    def _advise_on_loss(self) -> str:
        """Return advice for a device from which no frame was ever received."""
        counts = list(self._devices.values())[self._pace.lost_device].counts
        if counts["frames"] or not counts["losses"]:
            return ""
        if counts["corrupt"]:
            return (
                " What came was no frame of its inputs: do the baud rate, and the number of "
                "channels, agree with the device's?"
            )
        return (
            " It was never heard: is it switched on, and at the address that the binding has? With "
            "on_loss = 'hold' or 'safe' a run goes on and waits for it."
        )

    def _stopped(self) -> str | None:
        end = self._pace.end
        if end == END_TIME or (end == END_CANCEL and self._asked == "stopped" and self._ticks < 0):
            return None
        if end == END_STOP:
            return self._instance.stop_reason()
        why = self._asked if end == END_CANCEL else self._pace.reason
        return f"{why} at t = {self.time:.9g} s"

    def _describe(self) -> dict[str, Any]:
        """Return the report as plain data."""
        pace, options = self._pace, self._options
        gaps = [{"of": of, "first": first, "last": last} for of, first, last in pace.listed_gaps]
        start, step = self.plan.start_time, self.plan.step
        gaps += [
            {"of": "rows", "first": round((a - start) / step), "last": round((b - start) / step)}
            for a, b in self._recorder.dropped
        ]
        over = self._over.is_set()
        blocks = {path: times.summary() for path, times in self._probe.times().items()}
        return {
            **{
                name: options[name]
                for name in ("clock", "factor", "every", "overrun", "warmup_ticks")
            },
            "max_overruns": options["max_overruns"],
            "max_consecutive_overruns": options["max_consecutive_overruns"],
            "ticks": int(pace.done),
            "end": END_NAMES[pace.end],
            "why": (self._asked if pace.end == END_CANCEL else pace.reason) if over else "",
            "lateness": Histogram.of(pace.lateness).summary(),
            "execution": Histogram.of(pace.execution).summary(),
            "overruns": pace.overruns,
            "overruns_in_warmup": pace.overruns_in_warmup,
            "skipped": pace.skipped,
            "overrun_ticks": [list(item) for item in pace.listed_overruns],
            "gaps": gaps,
            "rows_lost": pace.rows_lost + self._recorder.rows_dropped,
            "entries_lost": pace.entries_lost + self._recorder.entries_dropped,
            "entries_rejected": pace.entries_rejected,
            "recorder": self._recorder.trouble,
            "blocks": blocks,
            "devices": {name: dict(device.counts) for name, device in self._devices.items()},
            "workers": {
                worker.path: {
                    "results": worker.count,
                    "skipped": worker.skipped,
                    "behind": worker.behind,
                }
                for worker in self._workers
            },
            "privileges": [[grant.granted, str(grant)] for grant in self._grants],
        }

    # Communication between the threads.

    def _fail(self, path: str, error: BaseException) -> None:
        """End the run because a worker cannot continue."""
        kind, when = type(error).__name__, f"at t = {self.time:.9g} s"
        failure = BlockError(
            f"`{path}` raised {kind} in its worker {when}: {error}.",
            path=path,
            time=self.time,
            tick=self.tick,
        )
        failure.__cause__ = error
        if self.running:  # otherwise it came too late to matter
            self._failure = self._failure or failure
            self._end(str(failure).rstrip("."))

    def _enter(self, slots: range, values: npt.ArrayLike) -> None:
        """Pass the result of a worker to the real-time thread."""
        with contextlib.suppress(BiellaError):  # the run may be over
            self._command(ENTER_SET, slots, values, FROM_WORKER)

    def _command(
        self, kind: int, slots: range, values: npt.ArrayLike, origin: int = FROM_LIVE
    ) -> None:
        if not self.running:
            raise BiellaError(
                f"the run is over: {self._pace.reason}. Nothing can be changed any more."
            )
        entries = np.zeros(len(slots), dtype=ENTRY)
        entries["slot"], entries["value"] = list(slots), values
        entries["kind"], entries["from"] = kind, origin
        with self._lock:
            while not self._closed and not self._commands.push(entries):
                if self._over.wait(self.plan.step):
                    return

    @cached_property
    def _frame_first(self) -> int:
        """The slot with which frames begin: inputs of the diagram and defaults precede signals."""
        plan = self.plan
        read = [port.slot for block in plan.blocks for port in block.inputs]
        read += [port.slot for port in plan.inputs.values()]
        return min([*read, self._parameter_count])

    def _gives(self, port: PortInfo) -> bool:
        """Return whether a block has this output."""
        return any(port in block.outputs for block in self.plan.blocks)

    def _values_in(
        self, frame: npt.NDArray[np.float64], slot: int, width: int
    ) -> npt.NDArray[np.float64]:
        place = 1 + slot - self._frame_first
        return frame[place : place + width].copy()

    def _newest_frame(self) -> npt.NDArray[np.float64]:
        while (frame := self._mailbox.take()) is None:
            if self._settled.is_set() or self._over.wait(1e-3):
                self._settled.wait()
                break
        frame = self._last_frame if frame is None else frame
        if frame is None:
            if self._failure is not None:
                self._raise()
            raise BiellaError(f"the run was over before its first tick: {self._pace.reason}.")
        return frame

    def _end(self, why: str) -> None:
        if self.running and not self._asked:
            self._asked = why
        self._pace.cancel = 1

    def _abandon(self) -> None:
        """Detach the handle in a forked child; the run continues in the parent only."""
        why = f"it goes on in process {os.getppid()}, which has started it; this is a forked copy"
        self._lock = threading.Lock()  # the threads that held these do not exist here
        self._over, self._settled = threading.Event(), threading.Event()
        self._pace.reason = why
        self._mailbox.abandon()
        self._failure = BiellaError(f"the run cannot be used here: {why}.")
        self._reported = True  # not raised at the end of a with block
        self._closed = True
        self._stack.pop_all()  # not closed: devices, FMUs and files are the parent's
        self._outer.pop_all()
        self._instance.abandon()
        self._over.set()
        self._settled.set()

    def _raise(self) -> NoReturn:
        assert self._failure is not None
        self._reported = True
        raise self._failure


def _open_page(plan: Plan, first: int) -> Page | None:
    """Open the monitoring page; the run continues without one if that fails."""
    try:
        return Page(plan, first)
    except (OSError, BiellaError):
        return None


def _has_begun(thread: threading.Thread) -> bool:
    """Return whether a thread has been started, even if Ctrl-C interrupted its start."""
    for _ in range(100):
        if thread.ident is not None:
            return True
        time.sleep(1e-3)
    return False


@contextlib.contextmanager
def _short_turns(needed: bool) -> Iterator[None]:
    """Shorten the thread switch interval: other threads may hold the interpreter for 5 ms."""
    before = sys.getswitchinterval()
    if needed:
        sys.setswitchinterval(min(before, _SWITCH_SECONDS))
    try:
        yield
    finally:
        if needed:
            sys.setswitchinterval(before)
