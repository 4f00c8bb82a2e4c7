"""Plans with one number changed."""

from __future__ import annotations

from biella import Plan
from biella.scheduler.compile.plan._plan import read_arrays, write_sections


def with_cell(plan: Plan, tag: str, index: int, value: float) -> Plan:
    sections = read_arrays(plan.sections)
    sections[tag][index] = value
    return Plan(write_sections(sections), {})
