"""Statecharts as geometry: nothing overlaps, and every transition is where it belongs."""

import itertools

import pytest
from drawn_machines import make_heater, make_supervisor, make_traffic_light
from random_machines import make_machine

from biella.blocks import StateMachine
from biella.scheduler.drawing.statechart._chart import Chart, arrange_chart, break_text

MACHINES = {
    "heater": make_heater,
    "traffic light": make_traffic_light,
    "supervisor": make_supervisor,
}


def arrange(machine: StateMachine) -> Chart:
    return arrange_chart(machine.chart, machine.transitions)


def meets(a, b, room: float = 0.0) -> bool:
    """Whether two rectangles, as left, top, right, bottom, overlap by more than `room`."""
    return min(a[2], b[2]) - max(a[0], b[0]) > room and min(a[3], b[3]) - max(a[1], b[1]) > room


def corners(rect):
    x, y, width, height = rect
    return x, y, x + width, y + height


def steps(arrow):
    return [
        (min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1]))
        for a, b in itertools.pairwise(arrow.points)
    ]


def list_faults(chart: Chart) -> list[str]:
    """Return everything in a chart that lies upon something else."""
    faults = []
    states = [box for box in chart.boxes if box.look == "state"]
    texts = [*chart.words, *chart.labels]
    for a, b in itertools.combinations(states, 2):
        if meets(corners(a.rect), corners(b.rect), -4.0):
            faults.append(f"states {a.path}, {b.path}")
    for one, two in itertools.combinations(texts, 2):
        if meets(one.extent, two.extent, 0.5):
            faults.append(f"texts {one.text!r}, {two.text!r}")
    for box, words in itertools.product(states, chart.labels):
        if meets(corners(box.rect), words.extent):
            faults.append(f"label {words.text!r} on {box.path}")
    for arrow in chart.arrows:
        for step in steps(arrow):
            for box in states:
                if meets(
                    corners(box.rect), (step[0] - 1, step[1] - 1, step[2] + 1, step[3] + 1), 1.1
                ):
                    faults.append(f"{arrow.name} through {box.path}")
            for words in texts:
                if meets(words.extent, step, -0.5):
                    faults.append(f"{arrow.name} through {words.text!r}")
    # Two lines may cross, but not run upon each other.
    for first, second in itertools.combinations(chart.arrows, 2):
        for p, q in itertools.product(steps(first), steps(second)):
            same_x = abs(p[0] - q[0]) < 2 and abs(p[2] - q[2]) < 2 and p[0] == p[2] and q[0] == q[2]
            same_y = abs(p[1] - q[1]) < 2 and abs(p[3] - q[3]) < 2 and p[1] == p[3] and q[1] == q[3]
            if same_x and min(p[3], q[3]) - max(p[1], q[1]) > 2:
                faults.append(f"{first.name} upon {second.name}")
            if same_y and min(p[2], q[2]) - max(p[0], q[0]) > 2:
                faults.append(f"{first.name} upon {second.name}")
    return faults


def find_box(chart: Chart, path: str):
    return next(corners(box.rect) for box in chart.boxes if box.path == path)


def is_on(point, rect) -> bool:
    x, y = point
    on_side = min(abs(x - rect[0]), abs(x - rect[2])) < 0.02 and rect[1] <= y <= rect[3]
    on_edge = min(abs(y - rect[1]), abs(y - rect[3])) < 0.02
    return on_side or (on_edge and rect[0] - 0.02 <= x <= rect[2] + 0.02)


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_lies_upon_anything_else(name):
    assert list_faults(arrange(MACHINES[name]())) == []


def list_loose_ends(machine: StateMachine, chart: Chart) -> list[str]:
    """Return the transitions that do not join their states, or are drawn without a target."""
    loose = []
    arrows = {id(arrow.transition): arrow for arrow in chart.arrows if arrow.transition}
    for one in machine.transitions:
        if one.target is None:
            loose += [one.name] if id(one) in arrows else []
            continue
        points = arrows[id(one)].points
        for point, state in ((points[0], one.source), (points[-1], one.target)):
            if not is_on(point, find_box(chart, state.path)):
                loose.append(f"{one.name} at {state.path}")
    return loose


# The arrangement of the machines 6 and 7 takes seconds.
SLOW = {6, 7}


@pytest.mark.parametrize(
    "seed",
    [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in range(15)],
)
def test_random_machines_are_drawn_without_overlaps_and_loose_ends(seed):
    machine = make_machine(seed)
    chart = arrange(machine)
    assert [*list_faults(chart), *list_loose_ends(machine, chart)] == []


@pytest.mark.parametrize("name", MACHINES)
def test_transitions_join_their_states(name):
    machine = MACHINES[name]()
    assert list_loose_ends(machine, arrange(machine)) == []


@pytest.mark.parametrize("name", MACHINES)
def test_states_are_inside_those_around_them(name):
    chart = arrange(MACHINES[name]())
    for box in chart.boxes:
        if around := box.path.rpartition(".")[0]:
            inner, outer = corners(box.rect), find_box(chart, around)
            assert outer[0] <= inner[0] + 1e-9 and inner[2] <= outer[2] + 1e-9, box.path
            assert outer[1] <= inner[1] + 1e-9 and inner[3] <= outer[3] + 1e-9, box.path


def test_every_label_is_written():
    machine = make_supervisor()
    chart = arrange(machine)
    written = " ".join(words.text for words in (*chart.labels, *chart.words))
    for one in machine.transitions:
        for line in break_text(one.label):
            assert line in written
    assert "exit / lamp = 0" in written and "during / torque = 5*elapsed" in written


def test_history_initial_states_and_regions_are_marked():
    chart = arrange(make_supervisor())
    assert [words.text for words in chart.markers] == ["H"]
    assert len(chart.dots) == 5  # of the machine, startup, drive, logging and safe
    dashed = [ends for ends in chart.separators if ends[0][0] == ends[1][0]]
    assert len(dashed) == 1


def test_machines_with_problems_are_drawn():
    machine = StateMachine()
    assert arrange(machine).boxes == []
    both = machine.parallel("both")
    left, right = both.state("left"), both.state("right")
    a, b = left.state("a"), right.state("b")
    right.state("c")
    machine.transition(a, b)  # between regions
    machine.transition(both, b)
    machine.transition(a, both)
    machine.transition(left, right)
    assert machine.find_problems()
    chart = arrange(machine)
    assert len([arrow for arrow in chart.arrows if arrow.transition]) == 4
    empty = StateMachine()
    empty.parallel("alone")
    assert [box.path for box in arrange(empty).boxes] == ["alone"]


def test_texts_are_broken_where_they_read_well():
    assert break_text("") == []
    assert break_text("go [T > 21] / x = 1") == ["go [T > 21] / x = 1"]
    assert break_text("go [temperature > 21 and pressure < 5] / x = 1; y = 2") == [
        "go [temperature > 21 and",
        "pressure < 5] / x = 1; y = 2",
    ]
    long = "a + b + c + d + e + f + g + h + i + j + k + l + m + n"
    assert max(map(len, break_text(long))) <= 30
    assert " ".join(break_text(long)) == long


@pytest.mark.parametrize("name", MACHINES)
def test_no_turn_is_so_small_that_it_looks_like_a_mistake(name):
    for arrow in arrange(MACHINES[name]()).arrows:
        for left, top, right, bottom in steps(arrow):
            assert max(right - left, bottom - top) > 2.0, arrow.name
