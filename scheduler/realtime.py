"""Paced runs: the same plan, held to the wall clock by the engine."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, byref, c_double, c_int, c_int32, c_int64, c_void_p
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import BiellaError, name_list, suggest
from .captures import read_captures
from .diagram import Diagram
from .engine import REMARK_RUN, REMARK_START, Instance, Record
from .plan import Plan, PortInfo
from .recorder import MemoryRecorder
from .result import Result
from .simulate import choose_signals, make_record

Nanoseconds = npt.NDArray[np.int64]


class _Pace(ctypes.Structure):
    """Mirrors bl_pace."""

    _fields_ = [
        ("inbox", c_void_p),
        ("inbox_slots", POINTER(c_int64)),
        ("inbox_count", c_int64),
        ("outbox", c_void_p),
        ("outbox_slots", POINTER(c_int64)),
        ("outbox_count", c_int64),
        ("frame", POINTER(c_double)),
        ("factor", c_double),
        ("lateness_ns", POINTER(c_int64)),
        ("execution_ns", POINTER(c_int64)),
        ("overruns", c_int64),
        ("cancel", POINTER(c_int32)),
    ]


@dataclass(frozen=True, slots=True)
class PacedRun:
    """What a paced run gives.

    Attributes
    ----------
    result
        The recorded signals.
    lateness_ns, execution_ns
        For each tick: how late it began, and how long it took.
    overruns
        Number of ticks that ended after the next one should have begun.
    """

    result: Result
    lateness_ns: Nanoseconds
    execution_ns: Nanoseconds
    overruns: int


def run_paced(
    diagram: Diagram | Plan,
    until: float,
    *,
    loopback: Mapping[str, str] | None = None,
    factor: float = 1.0,
    record: list[str] | None = None,
) -> PacedRun:
    """Run `diagram` against the wall clock.

    Parameters
    ----------
    until
        End time in seconds.
    loopback
        Outputs of the diagram that come back as inputs, through a mailbox, one tick later.
    factor
        Simulated seconds for each second of the wall clock.
    record
        Signals to record; all if not given.
    """
    plan = diagram.compile() if isinstance(diagram, Diagram) else diagram
    ports = choose_signals(plan, record)
    outs, ins = _tie(plan, loopback or {})
    with Instance(plan) as instance:
        instance.initialise()
        instance.warn(REMARK_START)
        ticks = round((until - instance.time) / plan.step)
        table, rows, _keep = make_record(ports, ticks + 1, 1)
        lateness, execution = np.zeros(ticks, np.int64), np.zeros(ticks, np.int64)
        done, status, overruns = _call(
            instance, ticks, table, outs, ins, factor, lateness, execution
        )
        instance.check(status)
        if done == ticks:
            instance.record_now(table)
        instance.warn(REMARK_RUN)
        captures = read_captures(instance)
    info = {"diagram": plan.name, "step": plan.step, "solver": plan.solver, "plan_hash": plan.hash}
    recorder = MemoryRecorder([port.signal for port in ports], plan.aliases, info)
    recorder.append(rows[: table.rows])
    recorder.captures = captures
    return PacedRun(recorder.close(), lateness[:done], execution[:done], overruns)


def _tie(plan: Plan, loopback: Mapping[str, str]) -> tuple[list[PortInfo], list[PortInfo]]:
    outs, ins = [], []
    for source, target in loopback.items():
        outs.append(plan.find_signal(source))
        if target not in plan.inputs:
            raise BiellaError(
                f"there is no input `{target}`.{suggest(target, plan.inputs)} "
                f"Inputs: {name_list(plan.inputs)}."
            )
        ins.append(plan.inputs[target])
        if outs[-1].width != ins[-1].width:
            raise BiellaError(
                f"`{source}` has width {outs[-1].width}, but `{target}` has {ins[-1].width}."
            )
    return outs, ins


def _call(
    instance: Instance,
    ticks: int,
    record: Record,
    outs: list[PortInfo],
    ins: list[PortInfo],
    factor: float,
    lateness: Nanoseconds,
    execution: Nanoseconds,
) -> tuple[int, int, int]:
    lib = instance.library
    lib.bl_mailbox_open.restype, lib.bl_mailbox_open.argtypes = c_void_p, [c_int64]
    lib.bl_mailbox_close.restype, lib.bl_mailbox_close.argtypes = None, [c_void_p]
    lib.bl_run_paced.restype = c_int
    lib.bl_run_paced.argtypes = [
        c_void_p, c_int64, POINTER(_Pace), POINTER(Record), POINTER(c_int64)
    ]  # fmt: skip
    out_slots, in_slots = _slots(outs), _slots(ins)
    frame = np.zeros(max(1, out_slots.size))
    mailbox = c_void_p(lib.bl_mailbox_open(out_slots.size)) if outs else None
    pace = _Pace(
        inbox=mailbox,
        inbox_slots=in_slots.ctypes.data_as(POINTER(c_int64)),
        inbox_count=in_slots.size,
        outbox=mailbox,
        outbox_slots=out_slots.ctypes.data_as(POINTER(c_int64)),
        outbox_count=out_slots.size,
        frame=frame.ctypes.data_as(POINTER(c_double)),
        factor=factor,
        lateness_ns=lateness.ctypes.data_as(POINTER(c_int64)),
        execution_ns=execution.ctypes.data_as(POINTER(c_int64)),
        overruns=0,
        cancel=None,
    )
    done = c_int64()
    try:
        status = lib.bl_run_paced(instance.handle, ticks, byref(pace), byref(record), byref(done))
    finally:
        if mailbox is not None:
            lib.bl_mailbox_close(mailbox)
    return done.value, status, pace.overruns


def _slots(ports: list[PortInfo]) -> npt.NDArray[np.int64]:
    return np.array([p.slot + k for p in ports for k in range(p.width)], dtype=np.int64)
