"""Mutants: places where the operators apply, stable draws, changes that stay valid source."""

import ast
from pathlib import Path

import pytest
from mutants import AREAS, draw, find_mutants

ROOT = Path(__file__).parents[2]

C = """
static const int limits[] = {1, 2};
/* if (a < b) */
static int step(engine *e, double *x, const double h) {
    bl_block *b = &e->blocks[0];
    if (h <= 0.0 && e->count > 3) return fail(e, "h < 0");
    for (int k = 0; k < e->count; k++) x[k] = x[k] + h * b->y[k];
    e->count--;
    update(e);
    return OK;
}
"""

PYTHON = '''
def step(x: int | None = None, *, wide: bool = False) -> int:
    """Not 1 < 2."""
    if x is None and not wide:
        raise ValueError(f"x < {x + 1}")
    total = 0
    total += x * 2
    self.total = total
    print("é", total >= 3)
    return total
'''


def changes(path, text):
    return {mutant.describe(text) for mutant in find_mutants(path, text)}


def test_operators_of_c_apply_to_code_only():
    condition = 'if (h <= 0.0 && e->count > 3) return fail(e, "h < 0");'
    loop = "for (int k = 0; k < e->count; k++) x[k] = x[k] + h * b->y[k];"
    replaced = [
        (condition, "<=", "<"),
        (condition, "&&", "||"),
        (condition, "> 3", ">= 3"),
        (condition, "> 3", "> 4"),
        (condition, "(h <= 0.0 && e->count > 3)", "(!(h <= 0.0 && e->count > 3))"),
        (condition, 'fail(e, "h < 0")', "0"),
        (loop, "k = 0", "k = 1"),
        (loop, "k < e", "k <= e"),
        (loop, "] + h", "] - h"),
        (loop, "h * b", "h / b"),
        ("e->count--;", "e->count--;", ";"),
        ("update(e);", "update(e);", ";"),
        ("return OK;", "OK", "0"),
    ]
    expected = {f"{line}  →  {line.replace(old, new)}" for line, old, new in replaced}
    assert changes("step.c", C) == expected


def test_operators_of_python_leave_messages_and_annotations_alone():
    found = changes("step.py", PYTHON)
    condition, raised = "if x is None and not wide:", 'raise ValueError(f"x < {x + 1}")'
    assert found == {
        f"{condition}  →  if x is not None and not wide:",
        f"{condition}  →  if x is None or not wide:",
        f"{condition}  →  if not (x is None and not wide):",
        f"{raised}  →  pass",
        "total = 0  →  total = 1",
        "total += x * 2  →  pass",
        "total += x * 2  →  total += x / 2",
        "total += x * 2  →  total += x * 3",
        "self.total = total  →  pass",
        'print("é", total >= 3)  →  pass',
        'print("é", total >= 3)  →  print("é", total > 3)',
        'print("é", total >= 3)  →  print("é", total >= 4)',
        "return total  →  return None",
        "def step(x: int | None = None, *, wide: bool = False) -> int:  →  "
        "def step(x: int | None = None, *, wide: bool = True) -> int:",
    }


def test_a_draw_does_not_depend_on_other_places():
    before = {mutant.key for mutant in find_mutants("step.c", C)}
    after = {mutant.key for mutant in find_mutants("step.c", C.replace("step(", "other(", 1) + C)}
    assert before < after


@pytest.mark.parametrize("area", AREAS)
def test_every_area_has_more_than_enough_mutants(area):
    mutants = draw(ROOT, area)
    assert len(mutants) > 4 * AREAS[area][0]
    assert len({mutant.key for mutant in mutants}) == len(mutants)


def test_300_are_drawn():
    assert sum(count for count, _ in AREAS.values()) == 300


def test_mutants_of_python_are_valid_source():
    path = "scheduler/devices/_driver.py"
    text = (ROOT / path).read_text("utf-8")
    for mutant in find_mutants(path, text):
        ast.parse(mutant.apply(text))
