"""Runs that return the events located within ticks."""

from __future__ import annotations

from ctypes import POINTER, c_double, c_int64, cast
from dataclasses import dataclass

import numpy as np

from biella import Diagram
from biella.blocks.multibody import System
from biella.scheduler.engine._library import contract

_CAPACITY = 4000


@dataclass
class Located:
    """Times of events, counts, and the state of the mechanism at the end: q, then v."""

    times: np.ndarray
    unlocated: int
    x: np.ndarray


def diagram_of(
    system: System, outputs=(), *, step=1e-3, solver="dopri5", tolerance=1e-12, **options
) -> Diagram:
    d = Diagram("events", step=step, solver=solver, tolerance=tolerance, **options)
    d.add(system.block(outputs=outputs), name="plant")
    return d


def internal(
    system: System,
    outputs=("kinetic_energy",),
    *,
    step=1e-3,
    events="locate",
    max_events=32,
    **options,
) -> Diagram:
    """A diagram of one mechanism with an internal solver; `options` are those of its block."""
    d = Diagram("events", step=step, events=events, max_events=max_events)
    d.add(system.block(outputs=list(outputs), mode="internal", **options), name="plant")
    return d


def locate(d: Diagram, until: float) -> Located:
    """Run a diagram of one mechanism, and return its events."""
    plan = d.compile()
    pick = np.zeros(1, dtype=np.int64)
    out = np.zeros((1, 2))
    buffer = np.zeros(_CAPACITY, dtype=[("time", "f8"), ("block", "i4"), ("crossing", "i4")])
    record = contract.bl_record(
        pick=pick.ctypes.data_as(POINTER(c_int64)),
        count=1,
        every=1 << 40,
        out=out.ctypes.data_as(POINTER(c_double)),
        capacity=1,
        events=cast(buffer.ctypes.data, POINTER(contract.bl_event)),
        event_capacity=_CAPACITY,
    )
    with plan.instantiate() as instance:
        ticks = round(until / d.step)
        done, _ = instance.run(ticks, record)
        assert done == ticks
        located, unlocated, _ = instance.event_counts
        times = buffer["time"][: record.event_count].copy()
        assert len(times) >= located
        return Located(times, unlocated, instance.states.copy())
