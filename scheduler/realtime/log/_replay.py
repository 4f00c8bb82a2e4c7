"""`replay`: run a recorded run again, with no device present, to the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....errors import BiellaError, PlanError, name_list
from ...binding._check import check_binding
from ...binding._rig import Binding, read_binding
from ...compile._flatten import flatten
from ...compile.diagram._diagram import Diagram
from ...compile.plan._plan import BlockInfo, Plan
from ...results._result import Result
from ...results._signals import ResultError
from .._live import LiveRun
from .._start import OPTIONS, stand_ins
from ..loop._pace import ENTER_SET, InputLog
from ._code_hashes import check_code, check_table

_SHOWN = 8
Rows = npt.NDArray[np.intp]
_EXTERNAL_KERNELS = ("python", "fmu")


def replay(
    log: Result | str | Path,
    diagram: Diagram | Plan | None = None,
    *,
    bind: str | Path | Mapping[str, object] | Binding | None = None,
    allow_changed_code: bool = False,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    record: Sequence[str] | None = None,
    every: int | None = None,
    out: str | Path | None = None,
) -> Result:
    """Repeat a real-time run from its log: all signals are reproduced bit for bit.

    Device inputs, timing signals and manual changes are applied at the same
    ticks. Signals that were not recorded can be recorded in the replay.

    Parameters
    ----------
    log
        A result of `run_realtime`, or its HDF5 file, including one of a killed process.
    diagram
        The diagram that was run. Without Python blocks and FMUs it is optional: the plan
        in the log is run.
    bind
        The binding of the run. It is needed only if it names FMUs or drivers of other packages:
        code is never loaded by a name in a log.
    allow_changed_code
        Replay also if the FMUs or Python blocks of the diagram have another hash than those of the
        run; the result may then differ.
    parameters
        Values that replace those of the run from start to end: recorded changes of these
        parameters are omitted. Replay is open-loop: all other external inputs, including those
        of devices, are played back from the log.
    record, every
        As of `simulate`; by default what the log has.
    out
        An HDF5 file to stream to.

    Raises
    ------
    BiellaError
        If the diagram or its code differs from what was run; the message lists the differences.
    """
    if not isinstance(log, Result):
        log = Result.from_hdf5(log)
    if log.log is None:
        raise ResultError(
            "this result has no input log, so it cannot be replayed: only real-time runs have "
            "one, see "
            "`biella.run_realtime`."
        )
    if out is not None and log.is_stored_in(out):
        raise ResultError(f"`{out}` is the log that is replayed: write the result to another file.")
    plan = _find_plan(log, diagram, bind, allow_changed_code)
    report: dict[str, Any] = log.info.get("realtime") or {}
    ticks = log.log.ticks
    if ticks != report.get("ticks"):
        ticks = max(0, ticks - 1)  # what the log does not end with may be there in part
    elif report["end"] in ("stop", "error"):
        ticks += 1  # the tick that ended the run
    run = LiveRun(
        plan,
        {
            **OPTIONS,
            "clock": "free",
            "record": list(log) if record is None else record,
            "every": report.get("every", 1) if every is None else every,
            "out": out,
        },
        parameters=parameters,
        compiled_with=log.info.get("compiled_with", {}),
        input_log=_leave_out(log.log.input_log, plan, parameters or {}),
        ticks=ticks,
    )
    run._begin()
    return run.wait()


def _leave_out(input_log: InputLog, plan: Plan, parameters: Mapping[str, Any]) -> InputLog:
    """Return an input log without changes of these parameters."""
    places = [plan.parameters[path] for path in parameters if path in plan.parameters]
    slots = [place.slot + k for place in places for k in range(place.size)]
    kept: InputLog = input_log[
        ~((input_log["kind"] == ENTER_SET) & np.isin(input_log["slot"], slots))
    ]
    return kept


def find_differences(first: Result, second: Result) -> list[str]:
    """Return the signals of `first` whose bits are not those of `second`, at common times.

    A log may have gaps and end before the other; any other time that only it has is a difference.
    """
    common, mine, theirs = np.intersect1d(first.t, second.t, True, return_indices=True)
    if len(common) != np.count_nonzero(first.t <= second.t[-1]):
        return ["time"]
    stretches = _stretches(mine, theirs)
    return [
        path
        for path in first
        if path not in second
        or any(
            first.read(path, a).tobytes() != second.read(path, b).tobytes() for a, b in stretches
        )
    ] + ["events"] * _events_differ(first, second)


def _events_differ(first: Result, second: Result) -> bool:
    """Return whether the events within the time of `first` are not those of `second`.

    Up to the last row: later events may be missing in a log of a killed process.
    """
    if not (first.length and second.length):
        return False
    end = min(first.t[-1], second.t[-1])
    logs = [result.events.log for result in (first, second)]
    logs = [log[log["time"] <= end] for log in logs]
    if not logs[0].size and not first.events.blocks:
        return False  # a recording without events
    shared = min(map(len, logs)) if first.events.truncated or second.events.truncated else None
    return bool(logs[0][:shared].tobytes() != logs[1][:shared].tobytes())


def _stretches(mine: Rows, theirs: Rows) -> list[tuple[slice, slice]]:
    """Return rows that follow each other in both."""
    breaks = np.flatnonzero((np.diff(mine) != 1) | (np.diff(theirs) != 1)) + 1
    return [
        (slice(int(a[0]), int(a[-1]) + 1), slice(int(b[0]), int(b[-1]) + 1))
        for a, b in zip(np.split(mine, breaks), np.split(theirs, breaks), strict=True)
        if len(a)
    ]


def _find_plan(
    log: Result, diagram: Diagram | Plan | None, bind: Any, allow_changed_code: bool
) -> Plan:
    assert log.log is not None
    recorded = Plan(log.log.plan, {})
    try:
        _ = recorded.meta
    except PlanError as error:
        raise PlanError(
            f"the log cannot be replayed, because its plan is not valid for this version: {error} "
            f"Replay it with that release, or run the diagram again. The recorded signals can "
            f"still be read."
        ) from None
    if diagram is None:
        if any(kernel.startswith(_EXTERNAL_KERNELS) for kernel in recorded.kernels):
            raise BiellaError(
                "the run has Python blocks or FMUs, which are not in the log: pass its diagram."
            )
        return recorded
    plan = diagram if isinstance(diagram, Plan) else _compile_again(diagram, log.info, bind)
    if not allow_changed_code:
        check_code(plan, log.info.get("code") or {})
    if plan.hash != recorded.hash:
        changes = list(describe_changes(recorded, plan))
        if not changes and allow_changed_code and plan.external:
            return plan  # the hash of an FMU is in the plan
        changes = changes or ["the difference is in a table, a program or the order of blocks."]
        shown = "".join(f"\n  - {text}" for text in changes[:_SHOWN])
        if len(changes) > _SHOWN:
            shown += f"\n  … {len(changes) - _SHOWN} more"
        raise BiellaError(
            f"this is not the diagram that was run, so its log cannot be replayed:{shown}\n"
            f"To replay with other parameters, use the original diagram with parameters={{…}} "
            f"or --set."
        )
    return plan


def _compile_again(diagram: Diagram, info: dict[str, object], bind: Any) -> Plan:
    """Compile a diagram as for the run: with the same stand-ins, but no device.

    `bind` is the user's binding; that of the log is used only if it names no code.
    """
    options: dict[str, Any] = {**info.get("compiled_with", {})}  # type: ignore[dict-item]
    flat = flatten(diagram)
    options |= {**stand_ins(flat, diagram.start_time), "flat": flat}
    bound: Any = info.get("binding")
    if bound:
        if bind is None:
            check_table(bound["table"])
            file = Path(bound["file"]) if bound["file"] else None
            bind = read_binding(bound["table"], file)
        check = check_binding(diagram, bind, **options)
        if check.plan is not None:
            return check.plan
        for key in ("replace", "extra", "reroute"):
            options[key] = {**options.get(key, {}), **getattr(check, key)}
    return diagram.compile(**options)


def describe_changes(before: Plan, now: Plan) -> Iterator[str]:
    """Yield the differences between two plans, one sentence each."""
    for name in ("name", "step", "start_time", "solver"):
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            yield f"its {name.replace('_', ' ')} was {old!r} and is {new!r}."
    olds = {block.path: block for block in before.blocks}
    news = {block.path: block for block in now.blocks}
    if gone := [path for path in olds if path not in news]:
        yield f"removed blocks: {name_list(gone)}."
    if added := [path for path in news if path not in olds]:
        yield f"added blocks: {name_list(added)}."
    sources_before, sources_now = _sources(before), _sources(now)
    for path, old in olds.items():
        if path in news:
            yield from _block_changes(old, news[path], sources_before, sources_now)
    yield from _parameter_changes(before, now)
    if [*before.inputs] != [*now.inputs]:
        yield f"its inputs were {name_list(before.inputs)} and are {name_list(now.inputs)}."


def _sources(plan: Plan) -> dict[int, str]:
    return {port.slot: path for path, port in plan.signals.items()}


def _block_changes(
    old: BlockInfo, new: BlockInfo, sources_before: dict[int, str], sources_now: dict[int, str]
) -> Iterator[str]:
    if old.type != new.type:
        yield f"`{old.path}` was {old.type} and is {new.type}."
        return
    if old.rate != new.rate:
        yield f"`{old.path}` ran {old.rate} and runs {new.rate}."
    for one, other in zip(old.inputs, new.inputs, strict=False):
        was, now = sources_before.get(one.slot), sources_now.get(other.slot)
        if was != now:
            yield f"`{one.path}` was connected to {was or 'nothing'} and is to {now or 'nothing'}."


def _parameter_changes(before: Plan, now: Plan) -> Iterator[str]:
    values = [plan.first_values for plan in (before, now)]
    for path, old in before.parameters.items():
        new = now.parameters.get(path)
        if new is None:
            continue
        was = values[0][old.slot : old.slot + old.size]
        is_ = values[1][new.slot : new.slot + new.size]
        if was.tobytes() != is_.tobytes():
            yield f"`{path}` was {_show(was)} and is {_show(is_)}."


def _show(values: Any) -> str:
    if len(values) == 1:
        return f"{values[0]:.9g}"
    shown = [f"{value:.6g}" for value in values[:4]] + ["…"] * (len(values) > 4)
    return f"[{', '.join(shown)}]"
