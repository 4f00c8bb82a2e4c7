"""`LiveRun`: handle to a running real-time simulation.

A run has two threads (`_live_threads`): the real-time loop of the engine, which runs without the
interpreter lock, and the recorder of rows and input log. Changes are passed to the loop through a
pipe and take effect at the start of a tick.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from ...blocks.external._asynchronous import AbstractAsynchronous
from ...blocks.external._external_input import RECEIVED, RealTime
from ...errors import (
    BiellaError,
    BiellaWarning,
    BlockError,
    name_list,
)
from ..compile.plan._plan import Plan, PortInfo, read_value
from ..engine._engine import Instance
from ..results._result import Result
from ..run._preflight import TICKS, warn_of_unstable_coupling
from ..run._simulate import choose_signals, count_ticks
from . import _live_exit as live_exit
from ._history import History
from ._live_end import describe
from ._live_setup import make_pace, make_recorder, open_pipes, set_first_values
from ._live_threads import has_begun, record, run_loop
from ._realtime_report import RealtimeReport
from ._worker import Worker
from .log._saved_states import SavedStates
from .loop._pace import (
    CLOCK_DEVICE,
    CLOCK_FREE,
    CLOCK_WALL,
    ENTER_OVERRIDE,
    ENTER_RELEASE,
    ENTER_SET,
    ENTRY,
    FROM_LIVE,
    FROM_WORKER,
    InputLog,
    Probe,
)
from .safety._guard import VARIABLE as GUARD_VARIABLE
from .safety._guard import Guard
from .safety._limits import describe_latch, warn_of_python_drivers

if TYPE_CHECKING:
    from ..binding._bind import OpenBinding
    from .log._branch import Past

_LARGEST_STEP = 1_000_000  # ticks
_OVERRIDES = 1024  # values, as in scheduler/realtime/loop/probe.c
_PATIENCE = 5.0  # s that a change waits for room
_PAUSED_PATIENCE = (
    0.2  # s that `latest` waits for the first tick of a paused run, which may be under way
)


class LiveRun:
    """Handle to a running real-time simulation; also a context manager.

    ``run["pid.kp"] = 3`` sets a parameter or an input of the diagram at the next tick;
    ``run["pid.kp"]`` returns its present setting. The run is stopped at the end of a ``with``
    block. At least 4096 changed values can wait for a tick; a change without room waits for 5 s,
    and is then a `BiellaError` and not made.

    Attributes
    ----------
    plan
        The compiled diagram.
    history
        The newest rows, for readers during the run; empty unless room was asked for.
    states
        The newest saved states, from which the run can be repeated; none unless room was asked for.
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
        history: int = 0,
        states: int = 0,
        past: Past | None = None,
        paused: bool = False,
    ) -> None:
        self.plan = plan
        self._options = dict(options)
        self._devices = {device.name: device for device in binding.devices} if binding else {}
        self._fed = {
            tie.port: tie.device
            for tie in (binding.check.channel_maps if binding else ())
            if tie.incoming
        }
        self._binding = binding
        self._fatal: frozenset[int] = frozenset()  # signals whose default action is deferred
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
        self._outer = ExitStack()

        ports = choose_signals(plan, self._options["record"])
        self._pace = make_pace(plan, self._options, self._devices, spin)
        self._pace.pause = int(paused)
        with ExitStack() as stack:
            self._instance = stack.enter_context(Instance(plan))
            repeated = past.input_log if past is not None else input_log
            first = set_first_values(
                self._instance,
                self._pace,
                parameters or {},
                repeated,
                is_timed=past is not None,
            )
            count = int(self._instance.layout.parameters)
            self._first_values = self._instance.values[:count].copy()
            self._ticks = self._count_ticks() if ticks is None else ticks
            if repeated is None:
                ahead = TICKS if self._ticks < 0 else self._ticks
                warn_of_unstable_coupling(plan, ahead, parameters, stacklevel=4)
            signals = [port.signal for port in ports]
            self.history = History(signals, plan.step * self._options["every"], history)
            self._recorder = make_recorder(
                self._instance,
                self._options["out"],
                signals,
                binding,
                compiled_with or {},
                self._options,
                self.history,
            )
            self._recorder.events.describe = self._instance.describe_event
            stack.callback(self._recorder.close)
            self._recorder.append_input_log(first, 0)
            self.states = SavedStates(states)
            self._probe = stack.enter_context(Probe(self._instance, profile=profile))
            self._pipes = open_pipes(
                stack, self._instance, self._pace, ports, self._options["every"], input_log
            )
            self.states.open(stack, self._instance, self._pace)
            if past is not None:
                past.resume(self)
            self._workers: list[Worker] = []
            for path, block in (slow or {}).items():
                self._workers.append(Worker(self, path, block))
                stack.callback(self._workers[-1].close)
            if self._devices and (self._options["guard"] or GUARD_VARIABLE in os.environ):
                guard = Guard(self._devices.values())
                stack.callback(guard.close)
                self._pace.guard = guard.handle
                guard.warn(stacklevel=3)
            self._stack = stack.pop_all()
        self._pace.write_ages([(worker.age_slot, worker.since_slot) for worker in self._workers])
        self._loop = threading.Thread(target=run_loop, args=[self], name="biella loop", daemon=True)
        self._writer = threading.Thread(
            target=record, args=[self], name="biella recorder", daemon=True
        )

    # Public interface.

    @property
    def running(self) -> bool:
        """Whether the run has not ended; true while it is paused."""
        return not self._over.is_set()

    @property
    def latched(self) -> str:
        """Why the run is latched: it stands still, and its devices get their safe values.

        Empty if it is not. `rearm` or `stop` end that state; see ``watchdog`` and ``max_stall`` of
        `run_realtime`.
        """
        return describe_latch(self._pace)

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
                    f"`{path}` is an external input and cannot be set: override a signal "
                    f"instead, such as "
                    f"run.override({self._external_inputs()[path.rpartition('.')[0]]!r}, …)."
                )
            if not parameter.tunable:
                raise BiellaError(
                    f"`{path}` is fixed after the start of a run: pass it to `run_realtime` in "
                    f"parameters=…"
                )
        if path in self._fed:
            raise BiellaError(
                f"`{path}` is received from the device `{self._fed[path]}`, whose next frame "
                f"would overwrite it: override the output of a downstream block instead."
            )
        where, shape = plan.find_settable(path)
        values = read_value(path, value, shape, self._first_values[where])
        self._command(ENTER_SET, range(where.start, where.stop), values)
        self._known[path] = values.reshape(shape) if shape not in ((), (1,)) else float(values[0])

    def _set_inputs(self, values: Mapping[str, float]) -> None:
        """Set inputs of the diagram, each a number, at one and the same tick."""
        slots = [self.plan.inputs[path].slot for path in values]
        self._command(ENTER_SET, slots, list(values.values()))
        self._known.update(values)

    def __getitem__(self, path: str) -> float | npt.NDArray[np.float64]:
        if path in self._known or path in self.plan.parameters:
            return self._setting(path)
        return self.latest(path)

    def _setting(self, path: str) -> float | npt.NDArray[np.float64]:
        """Return what a parameter or an input was set to; else its value at the start."""
        if path in self._known:
            known = self._known[path]
            return known.copy() if isinstance(known, np.ndarray) else known
        where, shape = self.plan.find_settable(path)
        values = self._first_values[where]
        return float(values[0]) if shape == () else values.reshape(shape).copy()

    def latest(self, path: str, timeout: float = 5.0) -> float | npt.NDArray[np.float64]:
        """Return the newest value of any signal, recorded or not: a number, or an array.

        Before the first tick, an input of the diagram has its initial value. Other signals have
        none: it is waited for, for `timeout` seconds, but not by a paused run.

        Raises
        ------
        BiellaError
            If there is no such signal, or the first tick is not finished in time.
        """
        port = self.plan.find_signal(path)
        frame = self._pipes.mailbox.take()
        if frame is None and port.path in self.plan.inputs and self.running:
            initial = np.atleast_1d(self._setting(port.path))
            return float(initial[0]) if port.width == 1 else initial
        frame = self._newest_frame(timeout)
        if not (
            self._gives(port)
            or port.path in self.plan.inputs
            or port.path in self.plan.solver_signals
        ):
            raise BiellaError(
                f"`{port.path}` is a diagnostic signal of a coupling: it is recorded, but not "
                f"available during the run."
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
            raise BiellaError(
                f"`{port.path}` is not the output of a block and cannot be overridden."
            )
        try:
            values = np.broadcast_to(np.asarray(value, dtype=np.float64), (port.width,))
        except (TypeError, ValueError):
            raise BiellaError(f"`{path}` expects {port.width} numbers, got {value!r}.") from None
        if not np.isfinite(values).all():
            raise BiellaError(f"`{path}` must be finite, got {value!r}.")
        total = sum(other.width for other in {**self._overridden, port.path: port}.values())
        if total > _OVERRIDES:
            raise BiellaError(
                f"with `{path}` {total} values would be overridden, but the limit is "
                f"{_OVERRIDES}: release some first. Overridden: {name_list(self._overridden)}."
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

    @property
    def factor(self) -> float:
        """Simulated seconds for each second of the wall clock; 0 is as fast as possible.

        A change takes effect at the next tick: deadlines are counted anew from then on.
        """
        return 0.0 if self._pace.clock == CLOCK_FREE else float(self._pace.factor)

    @factor.setter
    def factor(self, value: float) -> None:
        if not 0.0 <= value < math.inf:
            raise BiellaError(f"factor must be 0 or more, got {value!r}.")
        if self._pace.clock != CLOCK_WALL:
            raise BiellaError(
                f"the clock of the run is `{self._options['clock']}`: it has no factor."
            )
        if self._devices and value != 1.0:
            raise BiellaError("a run with devices keeps real time: its factor stays 1.")
        self._pace.factor = value

    def step(self, ticks: int = 1) -> None:
        """Let a paused run make some ticks, and pause again."""
        if type(ticks) is not int or not 1 <= ticks <= _LARGEST_STEP:
            raise BiellaError(
                f"the number of ticks is a whole number from 1 to {_LARGEST_STEP}, got {ticks!r}."
            )
        if self._devices:
            raise BiellaError(
                "a run with devices cannot be stepped: they get safe values while it is paused."
            )
        if not self._pace.pause:
            raise BiellaError("the run is not paused: call pause() first.")
        with self._lock:
            self._pace.steps = (self._pace.steps + ticks + (1 << 31)) % (1 << 32) - (1 << 31)

    def pause(self) -> None:
        """Pause the simulated time at the next tick; devices receive safe values meanwhile."""
        self._pace.pause = 1

    def resume(self) -> None:
        """Resume after a pause; all deadlines are shifted by its length."""
        self._pace.pause = 0

    def rearm(self) -> None:
        """Continue a latched run: live values are sent again, and all deadlines are shifted.

        If a tick has still not finished, the run continues as soon as it has.
        """
        number = int(self._pace.latches)
        if not self.latched:
            raise BiellaError("the run is not latched.")
        self._pace.rearm = number  # not a later latch, whose reason the caller does not know

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
            time and cause. ``result.info["recording"]`` has the same text. As of `simulate`, if
            ticks were finished without locating events or without error control.
        """
        try:
            self._waiting = True
            if not self._settled.wait(timeout):
                raise TimeoutError(f"the run has not ended after {timeout:g} s.")
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
                return RealtimeReport(describe(self), self.plan.name)
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
        if self.running and self.latched:
            state = f"latched: {self.latched}"
        return f"<LiveRun of {self.plan.name!r}, t = {self.time:.6g} s, {state}>"

    # Setup.

    def _count_ticks(self) -> int:
        until = self._options["until"]
        if until is None:
            return -1
        return count_ticks(until, self._instance.time, self.plan.step)

    def _keep(self, stack: ExitStack) -> None:
        """Store the resources to close after the run: the devices."""
        self._outer = stack

    def _begin(self) -> None:
        warn_of_python_drivers(self.plan, self._devices.values(), stacklevel=3)
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
        if not has_begun(self._loop):
            self._over.set()
        if has_begun(self._writer):
            self._writer.join()
        else:
            record(self)

    def _external_inputs(self) -> dict[str, str]:
        """Blocks that represent external inputs, with one signal of each."""
        return {
            block.path: block.outputs[0].path
            for block in self.plan.blocks
            if block.type in ("ExternalInput", RealTime.__name__) and block.outputs
        }

    def _warn_of_loss(self, stacklevel: int) -> None:
        if self._loss and not self._warned:
            self._warned = True
            warnings.warn(self._loss, BiellaWarning, stacklevel=stacklevel)

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
        """Pass the result of a worker to the real-time thread, however long it takes."""
        with contextlib.suppress(BiellaError):  # the run may be over
            self._command(ENTER_SET, slots, values, FROM_WORKER, patience=math.inf)

    def _command(
        self,
        kind: int,
        slots: Sequence[int],
        values: npt.ArrayLike,
        origin: int = FROM_LIVE,
        patience: float | None = None,
    ) -> None:
        """Pass a change to the real-time thread: all of it, or nothing and an error."""
        if not self.running:
            raise BiellaError(
                f"the run has ended: {self._pace.reason}. Parameters and signals can no longer "
                f"be changed."
            )
        entries = np.zeros(len(slots), dtype=ENTRY)
        entries["slot"], entries["value"] = list(slots), values
        entries["kind"], entries["from"] = kind, origin
        patience = _PATIENCE if patience is None else patience
        limit = time.monotonic() + patience
        while True:
            with self._lock:  # not while it waits: others report and step
                if self._closed or self._pipes.commands.push(entries):
                    return
            if self._over.wait(min(self.plan.step, _PAUSED_PATIENCE)):
                return
            if time.monotonic() >= limit:
                raise BiellaError(
                    f"the change was not made: {self._pipes.commands.capacity} values already "
                    f"wait for the next tick, and for {patience:g} s none has begun: "
                    f"{self._describe_progress()}."
                )

    def _describe_progress(self) -> str:
        """Return what the run waits for, if it makes no ticks."""
        if self.latched:
            return f"the run is latched ({self.latched})"
        if self._pace.pause:
            return "the run is paused: call step() or resume()"
        if self._pace.clock == CLOCK_DEVICE:
            name = list(self._devices)[self._pace.pacer]
            return f"it waits for a frame of the device `{name}`, its clock"
        return f"tick {self.tick} has not ended"

    def _gives(self, port: PortInfo) -> bool:
        """Return whether a block has this output."""
        return any(port in block.outputs for block in self.plan.blocks)

    def _values_in(
        self, frame: npt.NDArray[np.float64], slot: int, width: int
    ) -> npt.NDArray[np.float64]:
        place = self._pipes.place(slot)
        return frame[place : place + width].copy()

    def _newest_frame(self, timeout: float) -> npt.NDArray[np.float64]:
        began = time.monotonic()
        while (frame := self._pipes.mailbox.take()) is None:
            patience = min(timeout, _PAUSED_PATIENCE) if self._pace.pause else timeout
            if not self._over.is_set() and time.monotonic() - began > patience:
                raise BiellaError(
                    f"no signal has a value before the first tick: {self._describe_progress()}."
                )
            if self._settled.is_set() or self._over.wait(1e-3):
                self._settled.wait()
                break
        frame = self._last_frame if frame is None else frame
        if frame is None:
            if self._failure is not None:
                self._raise()
            raise BiellaError(f"the run ended before its first tick: {self._pace.reason}.")
        return frame

    def _end(self, why: str) -> None:
        if self.running and not self._asked:
            self._asked = why
        self._pace.cancel = 1

    def _leave_behind(self) -> None:
        """Let the process end although a tick does not: the watchdog keeps using the devices."""
        self._stack.pop_all()
        self._outer.pop_all()
        if self._binding is not None:
            atexit.unregister(self._binding.close)

    def _abandon(self) -> None:
        """Detach the handle in a forked child; the run continues in the parent only."""
        why = f"it continues in process {os.getppid()}, which started it; this process is a fork"
        self._lock = threading.Lock()  # the threads that held these do not exist here
        self._over, self._settled = threading.Event(), threading.Event()
        self._pace.reason = why
        self._pipes.mailbox.abandon()
        self._failure = BiellaError(f"the run cannot be used in this process: {why}.")
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
