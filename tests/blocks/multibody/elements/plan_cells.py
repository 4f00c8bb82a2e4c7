"""Plans with one number changed."""

from __future__ import annotations

import numpy as np

from biella import Plan
from biella.scheduler.compile.plan._plan import write_sections

KINDS = {"TIME": "<f8", "PARA": "<f8", "SIZE": "<i8", "RATE": "<i8"} | {
    tag: "u1" for tag in ("META", "KERN", "PATH", "NOTE")
}


def with_cell(plan: Plan, tag: str, index: int, value: float) -> Plan:
    sections = {
        name: np.frombuffer(raw, KINDS.get(name, "<i4")).copy()
        for name, raw in plan.sections.items()
    }
    sections[tag][index] = value
    return Plan(write_sections(sections), {})
