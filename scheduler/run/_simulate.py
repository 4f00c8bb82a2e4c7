"""`simulate`: run a diagram offline, at full speed."""

from __future__ import annotations

import contextlib
import ctypes
import math
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from ... import __version__ as VERSION
from ..._deprecation import renamed_keywords
from ...errors import BiellaError, BlockError, name_list, suggest
from ..compile.diagram._diagram import Diagram
from ..compile.diagram._solver_options import Tolerance
from ..compile.plan._described import thaw
from ..compile.plan._plan import Plan, PortInfo
from ..engine._engine import DIAGNOSTIC_RUN, DIAGNOSTIC_START, Instance
from ..engine._library import contract, engine_build
from ..realtime import _live_exit as live_exit
from ..results._coupling_report import (
    read_couplings,
    warn_of_created_energy,
    warn_of_exceeded,
    warn_of_failures,
)
from ..results._recorder import AbstractRecorder, Hdf5Recorder, MemoryRecorder
from ..results._result import Result
from ..results.events._captures import declare_captures, read_captures
from ..results.events._event_log import EventBuffer
from ..results.events._events import list_event_sources
from ._error_sampling import Sampler, confirm_errors, warn_of_errors, why_not
from ._preflight import warn_of_unstable_coupling
from ._progress import Progress
from ._texts import TEXTS, read_texts

_LARGEST_IN_MEMORY = 2 << 30  # bytes
_CHUNK_SECONDS = 0.05
_CHUNK_BYTES = 8 << 20


@renamed_keywords(hold="extrapolation")
def simulate(
    diagram: Diagram | Plan,
    until: float,
    step: float | None = None,
    solver: str | None = None,
    record: Sequence[str] | None = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    *,
    every: int = 1,
    out: str | Path | None = None,
    checkpoint: bytes | None = None,
    keep_state: bool | None = None,
    progress: bool = True,
    coupling: str | None = None,
    extrapolation: int | None = None,
    coupling_tolerance: float | None = None,
    estimate_error: int = 0,
    tolerance: Tolerance | None = None,
    events: str | None = None,
    error_estimate: bool | Literal["whole"] = True,
) -> Result:
    """Run `diagram` from its start to the time `until` and return the recorded signals.

    Parameters
    ----------
    until
        End time in seconds; the last tick is the one nearest to it.
    step, solver
        Instead of the diagram's own.
    record
        Paths such as ``"pid"``, ``"plant.speed"``, ``"filter.*"``, or ``"solver.*"`` for the
        counts of the solver. By default the signals of the
        diagram's Scope and Record blocks; without such blocks, all signals (``["*"]``).
    parameters
        Values by path for parameters and for inputs of the diagram.
    every
        Record every n-th tick only.
    out
        An HDF5 file to stream to, for runs that do not fit into memory. An earlier result is
        overwritten; any other file is an error.
    checkpoint
        A state to continue from: ``result.checkpoint`` of an earlier run, or `Instance.save`.
    keep_state
        Whether ``result.checkpoint`` holds the state at the end of the run. By default it does,
        unless the diagram contains FMUs of other tools.
    progress
        Show a progress bar on a terminal when the run takes more than two seconds.
    coupling, extrapolation, coupling_tolerance
        Coupling of blocks with an internal solver, in place of the diagram's options. Options that
        `Diagram.couple` sets for single blocks remain.
    estimate_error
        Estimate the error of coupling, not of the solver, at every n-th tick, for
        `Result.coupling_report` and as signals ``coupling.<output>.error``; each such tick costs as
        much as seven.
    tolerance, events
        Error control of the solver and location of events, instead of the diagram's own.
    error_estimate
        Estimate the error of fixed steps, for `Result.error_estimate`, and warn if that of a signal
        exceeds 1e-3 of its range. Runs of more than 512 ticks are sampled; "whole" repeats them as
        a whole, which costs two runs more. The results are the same with and without it.

    Returns
    -------
    Result
        Also after Ctrl-C or a Stop block; ``result.info["stopped"]`` is then the reason.

    Raises
    ------
    DiagramError
        If the diagram is invalid.
    BlockError
        If a block fails; ``error.result`` holds the signals recorded until then.

    Warns
    -----
    BiellaWarning
        If a block reports a problem that does not end the run, such as a step that is too large
        for a mechanism; if the estimated error of a signal exceeds 1e-3 of its range; if ticks were
        finished without locating events or without error control; if the diagram is stiff for
        ``dopri5``.
    """
    plan = plan_of(
        diagram,
        step,
        solver,
        coupling,
        extrapolation,
        estimate_error,
        tolerance,
        events,
        coupling_tolerance,
    )
    return run_plan(
        plan,
        until,
        record,
        parameters,
        every=every,
        out=out,
        checkpoint=checkpoint,
        keep_state=keep_state,
        progress=progress,
        error_estimate=error_estimate,
    )


def run_plan(
    plan: Plan,
    until: float,
    record: Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    every: int = 1,
    out: str | Path | None = None,
    checkpoint: bytes | None = None,
    keep_state: bool | None = None,
    progress: bool = True,
    error_estimate: bool | Literal["whole"] = False,
) -> Result:
    """Run a plan once; see `_simulate`."""
    ports = choose_signals(plan, record)
    if every < 1:
        raise BiellaError(f"every must be at least 1, got {every}.")
    if error_estimate not in (False, True, "whole"):
        raise BiellaError(f"error_estimate must be True, False or 'whole', got {error_estimate!r}.")

    def start(instance: Instance) -> None:
        for path, value in (parameters or {}).items():
            instance.set(path, value)
        instance.initialize()
        if checkpoint is not None:
            instance.restore(checkpoint)
            for path, value in (parameters or {}).items():
                instance.set(path, value)

    with Instance(plan) as instance:
        start(instance)
        if checkpoint is None:
            with contextlib.suppress(BiellaError):  # the run reports it
                instance.evaluate()  # initialization ends when outputs at the start are known
            instance.warn(DIAGNOSTIC_START, stacklevel=3)
        ticks = count_ticks(until, instance.time, plan.step)
        if checkpoint is None:
            warn_of_unstable_coupling(plan, ticks, parameters, stacklevel=3)
        recorder = _make_recorder(instance, ports, ticks // every + 2, out)
        sampler = None
        if error_estimate:
            reason = why_not(plan, ticks)
            recorder.info["error_estimate"] = reason
            sampler = None if reason else Sampler(instance, ticks, error_estimate == "whole")
        with sampler or contextlib.nullcontext():
            result = _run(instance, ticks, ports, recorder, every, progress, keep_state, sampler)
        instance.warn(DIAGNOSTIC_RUN, stacklevel=3)
        confirm_errors(result, plan, ticks, start)
        if out is not None:
            result.store_error_estimate()
        warn_of_errors(result, plan, stacklevel=3)
        return result


def count_ticks(until: float, now: float, step: float) -> int:
    """Return the whole number of ticks from `now` to `until`."""
    if not math.isfinite(until):
        raise BiellaError(f"`until` must be a time in s, got {until}.")
    ticks = round((until - now) / step)
    if ticks < 0:
        raise BiellaError(f"the end time, {until:g} s, is before the start time, {now:g} s.")
    return ticks


def choose_signals(plan: Plan, record: Sequence[str] | None) -> list[PortInfo]:
    """Return the signals that `record` names, each once; wildcards and buses are allowed."""
    if record is None:
        everything = ["*"] if plan.signals else []  # an FMU may have no outputs
        record = [name for view in plan.meta["scopes"] for name in view["signals"]] or everything
    if isinstance(record, str):
        record = [record]
    chosen: dict[str, PortInfo] = {}
    for pattern in record:
        if any(mark in pattern for mark in "*?"):
            matching = [path for path in plan.signals if fnmatchcase(path, pattern)]
            elements = plan.bus_elements
            matching += [path for name, path in elements.items() if fnmatchcase(name, pattern)]
            if pattern.startswith("solver."):
                matching += [path for path in plan.solver_signals if fnmatchcase(path, pattern)]
            if matching and all(plan.find_signal(path).kind in TEXTS for path in matching):
                continue  # their last values are in the info of the result
            if not matching:
                raise BiellaError(
                    f"no signal matches `{pattern}`.{suggest(pattern, plan.signals)} "
                    f"Signals: {name_list(plan.signals)}."
                )
        else:
            elements = plan.bus_elements
            matching = [path for name, path in elements.items() if name.startswith(f"{pattern}.")]
            if not matching or pattern in plan.aliases:
                matching = [plan.find_signal(pattern).path]
        for path in matching:
            port = plan.find_signal(path)
            if port.kind not in TEXTS:
                chosen[path] = port
            elif not any(mark in pattern for mark in "*?"):
                raise BiellaError(
                    f"`{path}` is a {port.kind}, which cannot be recorded: "
                    f"result.info['{'strings' if port.kind == 'string' else 'binaries'}'] has its "
                    f"last value."
                )
    return list(chosen.values())


def make_record(
    ports: Sequence[PortInfo], capacity: int, every: int
) -> tuple[contract.bl_record, Any, Any]:
    """Return a record for the engine, its rows, and the objects to keep alive during its use."""
    picks = np.array([p.slot + k for p in ports for k in range(p.width)], dtype=np.int64)
    rows = np.empty((capacity, 1 + picks.size))
    record = contract.bl_record(
        pick=picks.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)),
        count=picks.size,
        every=every,
        out=rows.ctypes.data_as(ctypes.POINTER(ctypes.c_double)),
        capacity=capacity,
        rows=0,
    )
    return record, rows, picks


def plan_of(
    diagram: Diagram | Plan,
    step: float | None,
    solver: str | None,
    coupling: str | None,
    extrapolation: int | None,
    estimate_error: int,
    tolerance: Tolerance | None = None,
    events: str | None = None,
    coupling_tolerance: float | None = None,
) -> Plan:
    """Compile a diagram with these options; a plan has its own already."""
    if isinstance(diagram, Diagram):
        return diagram.compile(
            step=step,
            solver=solver,
            coupling=coupling,
            extrapolation=extrapolation,
            coupling_tolerance=coupling_tolerance,
            estimate_error=estimate_error,
            tolerance=tolerance,
            events=events,
        )
    if not isinstance(diagram, Plan):
        raise BiellaError(f"simulate requires a Diagram or a Plan, got {diagram!r}.")
    if any(option is not None for option in (step, solver, tolerance, events)):
        raise BiellaError(
            "the step and the solver of a Plan are fixed: simulate the Diagram instead."
        )
    options = (coupling, extrapolation, coupling_tolerance)
    if any(option is not None for option in options) or estimate_error:
        raise BiellaError("the coupling of a Plan is fixed: simulate the Diagram instead.")
    return diagram


def describe_run(plan: Plan) -> dict[str, object]:
    """Return the metadata of a run that its result will contain."""
    return {
        "diagram": plan.name,
        "step": plan.step,
        "solver": plan.solver,
        "plan_hash": plan.hash,
        "biella": VERSION,
        "engine": engine_build(),
        "stopped": None,
        "scopes": [thaw(view) for view in plan.meta["scopes"] if view["labels"]],
        "together": [
            block.path
            for block, record in zip(plan.blocks, plan.block_records, strict=True)
            if record["x_count"]
        ],
    }


def _make_recorder(
    instance: Instance, ports: list[PortInfo], rows: int, out: str | Path | None
) -> AbstractRecorder:
    plan, sources = instance.plan, list_event_sources(instance)
    signals = [port.signal for port in ports]
    info = describe_run(plan)
    if out is not None:
        return Hdf5Recorder(
            out, signals, plan.aliases, info, declare_captures(plan), event_sources=sources
        )
    size = 8 * rows * (1 + sum(port.width for port in ports))
    if size > _LARGEST_IN_MEMORY:
        raise BiellaError(
            f"recording {len(ports)} signals would take {size / 1e9:.1f} GB of memory. Choose "
            f"fewer (record=[…]), fewer ticks (every=10), or stream to a file (out='run.h5')."
        )
    return MemoryRecorder(signals, plan.aliases, info, event_sources=sources)


def _run(
    instance: Instance,
    ticks: int,
    ports: list[PortInfo],
    recorder: AbstractRecorder,
    every: int,
    progress: bool,
    keep_state: bool | None,
    sampler: Sampler | None,
) -> Result:
    run = instance.run if sampler is None else sampler.run
    columns = 1 + sum(port.width for port in ports)
    capacity = max(64, min(_CHUNK_BYTES // (8 * columns), ticks // every + 2))
    record, rows, _keep = make_record(ports, capacity, every)
    events = EventBuffer(instance, record)
    before, located = instance.solver_counts, instance.event_counts[0]
    fallbacks = instance.fallback_marks
    recorder.events.describe = instance.describe_event
    began = time.perf_counter()
    first = instance.tick
    failure: BaseException | None = None
    stopped = False
    with recorder, _Interrupt() as interrupt:
        try:
            with Progress(
                ticks,
                instance.plan.name,
                step=instance.plan.step,
                show_after=2.0 if progress else float("inf"),
            ) as bar:
                chunk, left = 256, ticks
                while left > 0 and not stopped and not interrupt.seen:
                    chunk_began = time.perf_counter()
                    done, stopped = run(min(chunk, left), record)
                    left -= done
                    _drain(recorder, record, rows, events)
                    bar.advance(done)
                    took = time.perf_counter() - chunk_began
                    if took < _CHUNK_SECONDS:
                        chunk *= 2
                    elif took > 4 * _CHUNK_SECONDS:
                        chunk = max(1, chunk // 2)
                if not stopped and instance.tick % every == 0:
                    instance.record_now(record)
        except (BlockError, KeyboardInterrupt) as error:
            failure = error
        _drain(recorder, record, rows, events)
        recorder.events.total = instance.event_counts[0] - located
        recorder.info["solver_counts"] = {
            name: count - before[name] for name, count in instance.solver_counts.items()
        }
        recorder.captures = read_captures(instance)
        recorder.info["wall_time"] = time.perf_counter() - began
        recorder.info["ticks"] = instance.tick - first
        recorder.info |= read_texts(instance)
        reports = {
            instance.plan.blocks[number].path: block.isolation
            for number, block in instance.plan.external.items()
            if block.isolation is not None
        }
        if reports:
            recorder.info["isolation"] = reports
        if instance.plan.couplings:
            recorder.info["couplings"] = read_couplings(instance)
        if stopped:
            recorder.info["stopped"] = instance.stop_reason()
        elif interrupt.seen or isinstance(failure, KeyboardInterrupt):
            recorder.info["stopped"] = f"interrupted at t = {instance.time:.9g} s"
        elif failure is not None:
            recorder.info["stopped"] = str(failure)
    result = recorder.close()
    samples = sampler.finish() if sampler is not None else None
    excluded = sampler.list_excluded_events() if sampler is not None else {}
    if samples is not None and excluded and not samples.done.any():
        reason = "; ".join(f"`{path}`: {text}" for path, text in excluded.items())
        result.info["error_estimate"] = f"not estimated: no tick could be repeated ({reason})"
        samples = None
    result.error_samples = samples
    if keep_state is not False and (failure is None or isinstance(failure, KeyboardInterrupt)):
        result.checkpoint = instance.checkpoint(bool(keep_state))
    if isinstance(failure, BlockError):
        failure.result = result
        raise failure
    instance.warn_of_fallbacks(fallbacks, stacklevel=5)
    if instance.plan.couplings:
        warn_of_failures(read_couplings(instance))
        warn_of_exceeded(read_couplings(instance))
    warn_of_created_energy(instance)
    return result


class _Interrupt:
    """Defers a first Ctrl-C to the end of a tick; a second one acts immediately."""

    def __init__(self) -> None:
        self.seen = False

    def __enter__(self) -> Self:
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if self._before in (signal.default_int_handler, live_exit.on_interrupt):
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before in (signal.default_int_handler, live_exit.on_interrupt):
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.seen:
            raise KeyboardInterrupt
        self.seen = True
        if self._before is live_exit.on_interrupt:
            live_exit.end_all()


def _drain(
    recorder: AbstractRecorder, record: contract.bl_record, rows: Any, events: EventBuffer
) -> None:
    recorder.events.append(events.take())
    if record.rows:
        recorder.append(rows[: record.rows])
        record.rows = 0
