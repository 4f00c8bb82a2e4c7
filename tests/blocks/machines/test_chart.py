"""States and transitions as they are described: paths, scopes, order."""

from biella.blocks import StateMachine
from biella.blocks.machines._chart import sorted_out


def make() -> StateMachine:
    machine = StateMachine(inputs=["a"], outputs=["x"], events=["go"], emits=["done"])
    idle, run = machine.state("idle"), machine.state("run")
    work = run.parallel("work")
    left, right = work.state("left"), work.state("right")
    for region in (left, right):
        region.state("one")
        region.state("two")
    machine.transition(idle, run, on="go", when="a > 0", after=2, do={"x": 1}, emit="done")
    return machine


def find(machine, path):
    return next(state for state in machine.chart.walk() if state.path == path)


def test_paths_parents_first():
    paths = [state.path for state in make().chart.walk()]
    assert paths == [
        "", "idle", "run", "run.work", "run.work.left", "run.work.left.one", "run.work.left.two",
        "run.work.right", "run.work.right.one", "run.work.right.two",
    ]  # fmt: skip


def test_what_a_state_is():
    machine = make()
    work, left = find(machine, "run.work"), find(machine, "run.work.left")
    assert work.is_parallel and not work.is_exclusive and not work.is_region
    assert left.is_region and left.is_exclusive and left.initial.name == "one"
    assert work.contains(left) and not left.contains(work) and not work.contains(work)


def test_the_scope_is_the_innermost_exclusive_state_around_both_ends():
    machine = make()
    one, two = find(machine, "run.work.left.one"), find(machine, "run.work.left.two")
    assert machine.transition(one, two).scope().path == "run.work.left"
    assert machine.transition(one, find(machine, "run.work")).scope().path == "run"
    assert machine.transition(one, find(machine, "idle")).scope().path == ""
    # To itself, or to a state inside, the state is left.
    assert machine.transition(one, one).scope().path == "run.work.left"
    assert machine.transition(find(machine, "run"), one).scope().path == ""


def test_the_label_of_a_transition():
    (one,) = make().transitions
    assert one.name == "idle → run"
    assert one.label == "go [after 2 s and a > 0] / x = 1; emit done"


def test_priorities_come_first_then_the_order_of_addition():
    machine = StateMachine(inputs=["a"])
    s, p = machine.state("s"), machine.state("p")
    made = [machine.transition(s, p, priority=k) for k in (None, 3, None, 1)]
    tried = sorted_out(list(machine.transitions), s)
    assert [made.index(one) for one in tried] == [3, 1, 0, 2]
