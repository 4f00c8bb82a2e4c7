"""`run_realtime`: run a diagram in real time, with its devices; see `LiveRun`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._deprecation import deprecated_alias, renamed_keywords
from ...blocks.core._block import AbstractBlock
from ...blocks.external._asynchronous import AbstractAsynchronous
from ...blocks.external._external_input import RealTime
from ...errors import BiellaError
from ..binding._bind import OpenBinding, open_binding
from ..binding._rig import Binding, read_binding
from ..compile._flatten import FlatDiagram, flatten
from ..compile.diagram._diagram import Diagram
from ..compile.diagram._solver_options import Tolerance
from ..compile.plan._plan import Plan
from ..results._files import find_recording_target
from ..results._result_file import is_result_file
from ._live import LiveRun
from ._worker import find_slow_blocks, stand_in

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..host._privileges import Privileges

TIMING_NAME = "realtime"

OPTIONS: dict[str, Any] = {
    "until": None,
    "clock": "wall",
    "factor": 1.0,
    "overrun": "skip",
    "max_overruns": None,
    "max_consecutive_overruns": None,
    "warmup_ticks": 0,
    "watchdog": None,
    "max_stall": None,
    "on_trip": "latch",
    "guard": False,
    "record": None,
    "every": 1,
    "out": None,
    "log_age": 1.0,
    "log_sync": False,
    "on_log_failure": "continue",
}
"""Valid keys of the table ``[run]`` of a binding, with their default values."""


@renamed_keywords(
    tolerated="max_overruns", tolerated_in_a_row="max_consecutive_overruns", grace="warmup_ticks"
)
def run_realtime(
    diagram: Diagram | Plan,
    until: float | None = None,
    *,
    clock: str | None = None,
    bind: str | Path | Mapping[str, object] | Binding | None = None,
    factor: float | None = None,
    record: Sequence[str] | None = None,
    every: int | None = None,
    out: str | Path | None = None,
    log_age: float | None = None,
    log_sync: bool | None = None,
    on_log_failure: str | None = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    step: float | None = None,
    solver: str | None = None,
    tolerance: Tolerance | None = None,
    events: str | None = None,
    overrun: str | None = None,
    max_overruns: int | None = None,
    max_consecutive_overruns: int | None = None,
    warmup_ticks: int | None = None,
    watchdog: float | None = None,
    max_stall: float | None = None,
    on_trip: str | None = None,
    guard: bool | None = None,
    spin: float = 0.0,
    privileges: Privileges | None = None,
    profile: bool = False,
) -> LiveRun:
    """Start a real-time run and return its handle immediately.

    Parameters
    ----------
    until
        End time of the diagram in seconds; by default the run continues until it is stopped.
    clock
        ``"wall"``; ``"device:NAME"``: each frame of that device is a tick; or ``"free"``: as fast
        as possible.
    bind
        A file such as ``rig.toml`` that assigns blocks and signals to devices.
    factor
        Simulated seconds for each second of the wall clock.
    record, every, out, parameters, step, solver, tolerance, events
        As of `simulate`.
    log_age
        Seconds after which recorded rows and inputs are in the file `out`, readable after the
        process was killed; 1 by default.
    log_sync
        Wait for the disk whenever the file is written, so that a loss of power costs no more than a
        killed process. By default the operating system chooses when.
    on_log_failure
        If the file cannot be written: ``"continue"``, the run goes on without these rows, or
        ``"stop"``, it ends with safe values.
    overrun
        Reaction to a tick that ends after the next deadline. ``"skip"``: missed deadlines are
        dropped, and simulated time falls behind accordingly. ``"catch_up"``: ticks run back to back
        until the deadlines are met again. ``"slip"``: the next tick begins immediately, and all
        later deadlines move. ``"stop"``: the run ends; after tolerated overruns it catches up.
    max_overruns, max_consecutive_overruns
        Number of overruns that do not end the run; by default unlimited, with ``"stop"`` none. In a
        row, a tick that misses several deadlines counts as often.
    warmup_ticks
        Ticks at the start whose overruns do not count.
    watchdog
        Seconds that a tick may take. Then a thread in C sends the safe values of all devices, until
        they echo them, and the run is latched: see `LiveRun.latched`. By default, for a run that
        sends values to devices, 1 s or 10 periods, whichever is longer; with ``overrun="stop"``
        0.25 s instead of 1 s. 0: no limit.
    max_stall
        Seconds that a tick may begin late or take, and that the process or the computer may be
        suspended. Beyond, safe values are sent instead of live ones, and the run is latched. The
        default is that of ``watchdog``.
    on_trip
        ``"latch"``: after a trip of ``watchdog`` or ``max_stall`` the run stands still until
        `LiveRun.rearm`; ``"stop"``: it ends with an `OverrunError`.
    guard
        Whether another process guards the run: it sends the safe values if the process of the run
        dies or stops. Always so below ``biella guard``. Linux only.
    spin
        Seconds of busy waiting before each deadline; it occupies a processor.
    privileges
        Privileges to request from the system for punctual ticks: a `Privileges` of
        `biella.realtime`. By default, with the wall clock, exact timers, which need no permission.
    profile
        Measure the time of each block.

    Raises
    ------
    DiagramError, BindingError, DeviceError
        If the diagram or the binding is invalid, or a device is not available; no output was sent.
    ResultError
        If `out` names a file that is not a recording, or another run records to it.

    Examples
    --------
    >>> with run_realtime(diagram(), until=10.0) as run:
    ...     run["pid.kp"] = 3.0
    ...     result = run.wait()
    """
    given = {
        "until": until,
        "clock": clock,
        "factor": factor,
        "overrun": overrun,
        "max_overruns": max_overruns,
        "max_consecutive_overruns": max_consecutive_overruns,
        "warmup_ticks": warmup_ticks,
        "watchdog": watchdog,
        "max_stall": max_stall,
        "on_trip": on_trip,
        "guard": guard,
        "record": record,
        "every": every,
        "out": out,
        "log_age": log_age,
        "log_sync": log_sync,
        "on_log_failure": on_log_failure,
    }
    compile_options = {
        "step": step,
        "solver": solver,
        "tolerance": tolerance,
        "events": events,
    }
    return start_run(
        diagram,
        given,
        compile_options,
        bind=bind,
        parameters=parameters,
        spin=spin,
        privileges=privileges,
        profile=profile,
    )


def start_run(
    diagram: Diagram | Plan,
    given: Mapping[str, Any],
    compile_options: Mapping[str, Any],
    *,
    bind: Any = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    spin: float = 0.0,
    privileges: Privileges | None = None,
    profile: bool = False,
    edit: Callable[[FlatDiagram], FlatDiagram] | None = None,
    history: int = 0,
    states: int = 0,
    paused: bool = False,
) -> LiveRun:
    """Start a run as `run_realtime` does, with some of the options in `OPTIONS`.

    Parameters
    ----------
    edit
        A change of the flattened diagram before it is compiled.
    history, states, paused
        As of `LiveRun`.
    """
    out = given.get("out")
    if out is not None:
        find_recording_target(out, is_result_file)  # before any device is opened
    with ExitStack() as stack:
        flat = flatten(diagram) if isinstance(diagram, Diagram) else None
        flat = edit(flat) if edit is not None and flat is not None else flat
        plan, binding = _prepare(diagram, flat, bind, dict(compile_options), out)
        if binding is not None:
            stack.enter_context(binding)
        said = binding.run if binding is not None else {}
        options = {
            name: given[name] if given.get(name) is not None else said.get(name, default)
            for name, default in OPTIONS.items()
        }
        run = LiveRun(
            plan,
            options,
            binding=binding,
            parameters=parameters or {},
            spin=spin,
            privileges=privileges,
            profile=profile,
            compiled_with={key: value for key, value in compile_options.items() if value},
            slow=_choose_slow(flat, binding),
            history=history,
            states=states,
            paused=paused,
        )
        run._keep(stack.pop_all())
    run._begin()
    return run


start = deprecated_alias(run_realtime, "biella.start", "biella.run_realtime")


def _prepare(
    diagram: Diagram | Plan,
    flat: FlatDiagram | None,
    bind: Any,
    options: dict[str, Any],
    out: str | Path | None,
) -> tuple[Plan, OpenBinding | None]:
    if isinstance(diagram, Plan):
        if bind is not None:
            raise BiellaError("a Plan cannot be bound to devices: run the Diagram instead.")
        if any(value is not None for value in options.values()):
            raise BiellaError(
                "the step and the solver of a Plan are fixed: run the Diagram instead."
            )
        return diagram, None
    if flat is None:
        raise BiellaError(f"run_realtime requires a Diagram or a Plan, got {diagram!r}.")
    options = {**options, **stand_ins(flat, diagram.start_time), "flat": flat}
    if bind is None:
        return diagram.compile(**options), None
    if out is not None:  # what the binding names instead is not used, so it is not checked
        bind = bind if isinstance(bind, Binding) else read_binding(bind)
        run = {key: value for key, value in bind.run.items() if key != "out"}
        bind = dataclasses.replace(bind, run=run)
    binding = open_binding(diagram, bind, **options)
    return binding.plan, binding


def _choose_slow(
    flat: FlatDiagram | None, binding: OpenBinding | None
) -> dict[str, AbstractAsynchronous]:
    """Return the blocks that workers compute: those that are not devices."""
    if flat is None:
        return {}
    real = binding.check.replace if binding is not None else {}
    return {path: block for path, block in find_slow_blocks(flat).items() if path not in real}


def stand_ins(flat: FlatDiagram, start: float) -> dict[str, dict[str, AbstractBlock]]:
    """Return the blocks that a real-time run adds to or replaces in a diagram, for `compile`.

    `start` is the time of the first tick in s.
    """
    timed = any(isinstance(item.block, RealTime) for item in flat.blocks)
    return {
        "extra": {} if timed else {TIMING_NAME: RealTime()},
        "replace": {
            path: stand_in(block, start, path) for path, block in find_slow_blocks(flat).items()
        },
    }
