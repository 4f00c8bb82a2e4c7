"""End of a live run: its result, the error or lost rows to report, and its timing statistics."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import BiellaError, BlockError, DeviceError, OverrunError
from ..engine._engine import DIAGNOSTIC_RUN
from ..results._coupling_report import (
    read_couplings,
    warn_of_created_energy,
    warn_of_exceeded,
)
from ..results._signals import ResultError
from ..results.events._captures import read_captures
from .loop._pace import (
    END_CANCEL,
    END_DEVICE,
    END_NAMES,
    END_OVERRUN,
    END_STOP,
    END_TIME,
    Histogram,
)

if TYPE_CHECKING:
    from ._live import LiveRun

_GAPS_SHOWN = 3
_STOPPED = "it was stopped"
"""Reason of a canceled run in ``pace.c`` if it knows no signal."""


def finish(run: LiveRun) -> None:
    """Create the result from the recorded rows."""
    instance, info = run._instance, run._recorder.info
    run._recorder.settle()
    info["wall_time"] = time.perf_counter() - run._began
    info["ticks"] = int(run._pace.done)
    info["stopped"] = _stopped(run)
    info["solver_counts"] = instance.solver_counts
    run._recorder.events.total = instance.event_counts[0]
    if run.plan.couplings:
        info["couplings"] = read_couplings(instance)
    info["realtime"] = report = describe(run)
    if report["rows_lost"] or report["entries_lost"]:
        info["recording"] = run._loss = _describe_loss(run, report)
    run._recorder.captures = read_captures(instance)
    run._result = run._recorder.close()
    _handle_status(run)
    instance.warn(DIAGNOSTIC_RUN)
    instance.warn_of_fallbacks({})
    warn_of_created_energy(instance)
    if run.plan.couplings:
        warn_of_exceeded(read_couplings(instance))


def _handle_status(run: LiveRun) -> None:
    """Store the error that ended the run, if `wait` must raise it."""
    failure: BiellaError | None = None
    if run._pace.end == END_OVERRUN:
        failure = OverrunError(f"the run was ended at t = {run.time:.9g} s: {run._pace.reason}.")
    elif run._pace.end == END_DEVICE:
        failure = DeviceError(
            f"the run was ended at t = {run.time:.9g} s: {run._pace.reason}.{_advise_on_loss(run)}"
        )
    elif isinstance(run._failure, BlockError):
        failure = run._failure  # of a worker
    elif run._status < 0:
        try:
            run._instance.check(run._status)
        except BlockError as error:
            failure = error
    if failure is None and run._failure is None and run._loss and not _rows_recorded(run):
        failure = ResultError(run._loss)
    if failure is not None:
        failure.result = run._result  # type: ignore[attr-defined]
        run._failure = failure


def _describe_loss(run: LiveRun, report: Mapping[str, Any]) -> str:
    """Describe the extent of the recording, the missing rows and the cause."""
    recorder, lost, entries = run._recorder, report["rows_lost"], report["entries_lost"]
    texts = []
    if lost:
        kept = recorder.rows_kept
        start, step = run.plan.start_time, run.plan.step
        gaps = [gap for gap in report["gaps"] if gap["of"] == "rows"]
        spans = [
            f"t = {start + gap['first'] * step:.9g} to {start + gap['last'] * step:.9g} s"
            for gap in gaps[:_GAPS_SHOWN]
        ]
        if len(gaps) > _GAPS_SHOWN:
            spans.append(f"{len(gaps) - _GAPS_SHOWN} more gaps")
        texts.append(
            f"{kept} of {kept + lost} rows are recorded {recorder.place}; lost: {', '.join(spans)}."
        )
    if entries:
        texts.append(
            f"{entries} entries of the input log are lost: the run can be replayed only up to "
            f"the first gap."
        )
    cause = recorder.trouble or "The recorder was too slow."
    texts.append(f"{cause} Free disk space, record fewer signals, or increase `every`.")
    if recorder.left_alone and not recorder.rows_kept:
        texts.append(f"`{recorder.left_alone}` still contains the earlier recording.")
    return " ".join(texts)


def _rows_recorded(run: LiveRun) -> int:
    return 0 if run._result is None else run._result.length


def _advise_on_loss(run: LiveRun) -> str:
    """Return advice for a device from which no frame was ever received."""
    counts = list(run._devices.values())[run._pace.lost_device].counts
    if counts["frames"] or not counts["losses"]:
        return ""
    if counts["unauthenticated"]:
        return " The received frames have no valid tag: check that both sides have the same key."
    if counts["corrupt"]:
        return (
            " The received data are not valid frames: check the baud rate and the number of "
            "channels."
        )
    return (
        " No frame was ever received: check that the device is switched on and that its "
        "address in the binding is correct. With on_loss = 'hold' or 'safe' the run continues "
        "and waits for the device."
    )


def _stopped(run: LiveRun) -> str | None:
    end = run._pace.end
    if end == END_TIME or (end == END_CANCEL and run._asked == "stopped" and run._ticks < 0):
        return None
    if end == END_STOP:
        return run._instance.stop_reason()
    why = _explain(run)
    return f"{why} at t = {run.time:.9g} s"


def _list_row_gaps(spans: list[tuple[int, int]], every: int) -> list[dict[str, Any]]:
    """Return gaps of rows; those that follow each other are one."""
    gaps: list[dict[str, Any]] = []
    for first, last in sorted(spans):
        if gaps and first <= gaps[-1]["last"] + every:
            gaps[-1]["last"] = last
        else:
            gaps.append({"of": "rows", "first": first, "last": last})
    return gaps


def _explain(run: LiveRun) -> str:
    """Return who or what has ended the run, or why.

    A signal may have come before Python knew, or be noted in C after the loop has seen that Python
    stops the run: then Python knows it.
    """
    if run._pace.end == END_CANCEL and run._asked and run._pace.reason == _STOPPED:
        return run._asked
    return run._pace.reason


def _count_solver_work(run: LiveRun) -> dict[str, int]:
    """Return the counters of the solver; during the run those of the newest frame.

    The engine's own are written by the real-time thread.
    """
    if run._over.is_set():
        return run._instance.solver_counts
    frame = run._pipes.mailbox.take()
    return {
        name.partition(".")[2]: 0 if frame is None else int(frame[run._pipes.place(port.slot)])
        for name, port in run.plan.solver_signals.items()
    }


def describe(run: LiveRun) -> dict[str, Any]:
    """Return the timing statistics so far, as plain data."""
    pace, options = run._pace, run._options
    gaps = [{"of": of, "first": first, "last": last} for of, first, last in pace.listed_gaps]
    start, step = run.plan.start_time, run.plan.step
    gaps += _list_row_gaps(
        [(round((a - start) / step), round((b - start) / step)) for a, b in run._recorder.dropped],
        options["every"],
    )
    over = run._over.is_set()
    lateness = Histogram.of(pace.lateness)
    blocks = {path: times.summary() for path, times in run._probe.times().items()}
    return {
        **{name: options[name] for name in ("clock", "factor", "every", "overrun", "warmup_ticks")},
        "max_overruns": options["max_overruns"],
        "max_consecutive_overruns": options["max_consecutive_overruns"],
        **{name: options[name] for name in ("watchdog", "max_stall", "on_trip")},
        "guarded": bool(pace.guard),
        "latched": run.latched,
        "latches": int(pace.latches),
        "safe_confirmed": {name: device.is_confirmed for name, device in run._devices.items()},
        "ticks": int(pace.done),
        "end": END_NAMES[pace.end],
        "why": _explain(run) if over else "",
        "lateness": lateness.summary() | {"bins": lateness.list_bins()},
        "execution": Histogram.of(pace.execution).summary(),
        "overruns": pace.overruns,
        "overruns_in_warmup": pace.overruns_in_warmup,
        "skipped": pace.skipped,
        "overrun_ticks": [list(item) for item in pace.listed_overruns],
        "gaps": gaps,
        "rows_lost": pace.rows_lost + run._recorder.rows_dropped,
        "entries_lost": pace.entries_lost + run._recorder.entries_dropped,
        "entries_rejected": pace.entries_rejected,
        "recorder": run._recorder.trouble,
        "log_age": run._recorder.worst_age,
        "blocks": blocks,
        "solver": _count_solver_work(run),
        "devices": {name: dict(device.counts) for name, device in run._devices.items()},
        "workers": {
            worker.path: {
                "results": worker.count,
                "skipped": worker.skipped,
                "behind": worker.behind,
            }
            for worker in run._workers
        },
        "privileges": [[grant.granted, str(grant)] for grant in run._grants],
    }


def describe_briefly(run: LiveRun) -> dict[str, Any]:
    """Return how the run is, as plain data, without what takes long to gather."""
    with run._lock:  # they are closed after `_closed` is set
        devices = [] if run._closed else _list_devices(run)
    return _describe_state(run, devices)


def _describe_state(run: LiveRun, devices: list[dict[str, Any]]) -> dict[str, Any]:
    pace = run._pace
    return {
        "paused": bool(pace.pause),
        "factor": run.factor,
        "overruns": int(pace.overruns),
        "lateness_p99": 1e-9 * Histogram.of(pace.lateness).percentile(0.99),
        "reason": _explain(run) if run._over.is_set() else "",
        "failed": run._failure is not None,
        "overridden": list(run._overridden),
        "devices": devices,
    }


def describe_timing(run: LiveRun) -> dict[str, Any]:
    """Return lateness and execution times of the ticks so far with their histograms, in s."""

    def take(counted: Any) -> dict[str, Any]:
        copy = Histogram.of(counted)
        figures = copy.summary()
        return {"bars": copy.bars(), **{name: figures[name] for name in ("p50", "p99", "max")}}

    pace = run._pace
    return {
        "ticks": int(pace.done),
        "period": run.plan.step / run.factor if run.factor else None,
        "lateness": take(pace.lateness),
        "execution": take(pace.execution),
    }


_MARKS = 20  # ten times a second


def describe_for_watch(run: LiveRun) -> dict[str, Any]:
    """Return what processes that watch a run are told besides its signals.

    The recorder asks, which closes the devices itself: it need not wait for who sets values.
    """
    total, events = run._recorder.events.read_newest(0, _MARKS)
    return {
        **_describe_state(run, _list_devices(run)),
        "timing": describe_timing(run),
        "events": {"total": total, "newest": [list(event) for event in events]},
    }


def _list_devices(run: LiveRun) -> list[dict[str, Any]]:
    devices = []
    for name, device in run._devices.items():
        state, age = device.standing
        devices.append(
            {
                "name": name,
                "driver": device.entry.driver.name if device.entry.driver else "",
                "state": state,
                "age": age,
                "confirmed": device.is_confirmed,
                **device.counts,
            }
        )
    return devices
