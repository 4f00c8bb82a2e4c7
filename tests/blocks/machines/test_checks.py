"""Static checks of state machines: what is reported, by which names, and all at once."""

import pytest

from biella import Diagram, DiagramError
from biella.blocks import Port, StateMachine


def make(inputs=("a", "b"), outputs=("x", "y"), **options) -> StateMachine:
    return StateMachine(inputs=list(inputs), outputs=list(outputs), **options)


def test_all_problems_are_reported_at_once():
    machine = make()
    first, second = machine.state("first"), machine.state("second")
    machine.state("island")
    work = machine.parallel("work")
    left, right = work.state("left"), work.state("right")
    left.state("l", x=1)
    right.state("r", x=2)
    machine.transition(first, second, when="a > 1")
    machine.transition(first, work, when="a > 2")
    machine.transition(second, first)
    machine.transition(second, work, when="b > 0")
    with pytest.raises(DiagramError) as error:
        machine.check()
    text = str(error.value)
    for words in (
        "`island` is unreachable",
        "`first → second` and `first → work` can be enabled at the same time",
        "`second → work` is never taken: `second → first` is tried before it",
        "`x` is written in two regions that are active together: `work.left` and `work.right`",
    ):
        assert words in text


def test_a_machine_without_states():
    with pytest.raises(DiagramError, match="has no states"):
        make().check()


def test_a_region_without_states():
    machine = make()
    work = machine.parallel("work")
    work.state("left").state("l")
    work.state("right")
    with pytest.raises(DiagramError, match=r"region `work\.right` has no initial state"):
        machine.check()


def test_two_initial_states():
    machine = make()
    machine.state("a1", initial=True)
    machine.state("a2", initial=True)
    with pytest.raises(DiagramError, match="two initial states: a1, a2"):
        machine.check()


def test_a_transition_between_regions():
    machine = make()
    work = machine.parallel("work")
    left = work.state("left").state("l")
    right = work.state("right").state("r")
    machine.transition(left, right, when="a > 0")
    with pytest.raises(DiagramError, match="leads from one region of `work` to another"):
        machine.check()


def test_an_end_at_a_region():
    machine = make()
    idle = machine.state("idle")
    work = machine.parallel("work")
    left = work.state("left")
    left.state("l")
    work.state("right").state("r")
    machine.transition(idle, left, when="a > 0")
    with pytest.raises(DiagramError, match=r"`work\.left` is a region of a parallel state"):
        machine.check()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a < 1", "a > 2"),
        ("a < 1", "a >= 1"),
        ("1 > a", "a > 1"),
        ("b", "not b"),
        ("a > 0 and b < 3", "b > 3 and a > 5"),
        ("a == 1", "a == 2"),
    ],
)
def test_guards_that_exclude_each_other_need_no_priority(one, other):
    machine = make()
    s, p, q = machine.state("s"), machine.state("p"), machine.state("q")
    machine.transition(s, p, when=one)
    machine.transition(s, q, when=other)
    machine.check()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a < 1", "a > 0"),
        ("a <= 1", "a >= 1"),
        ("a < 1", "b > 2"),
        ("a < 1 or b > 0", "a > 2"),
        ("a < b", "a > b"),
    ],
)
def test_guards_that_may_agree_need_a_priority(one, other):
    machine = make()
    s, p, q = machine.state("s"), machine.state("p"), machine.state("q")
    first = machine.transition(s, p, when=one)
    machine.transition(s, q, when=other)
    with pytest.raises(DiagramError, match=r"`s → p` and `s → q` can be enabled"):
        machine.check()
    assert first.priority is None


def test_priorities_settle_a_conflict():
    machine = make()
    s, p, q = machine.state("s"), machine.state("p"), machine.state("q")
    machine.transition(s, p, when="a < 1", priority=2)
    machine.transition(s, q, when="b > 2", priority=1)
    machine.check()


def test_a_later_wait_is_never_over_first():
    machine = make()
    s, p, q = machine.state("s"), machine.state("p"), machine.state("q")
    machine.transition(s, p, after=1.0, priority=1)
    machine.transition(s, q, after=2.0, priority=2)
    with pytest.raises(DiagramError, match="`s → q` is never taken"):
        machine.check()


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("a + c > 0", "`c` is neither an input, output, data nor parameter"),
        ("a >", "this cannot be read"),
        ("a[2] > 0", "has 1 elements"),
        ("bigger(a)", "there is no function `bigger`"),
    ],
)
def test_an_error_in_a_guard_names_the_transition(when, words):
    machine = make()
    s, p = machine.state("s"), machine.state("p")
    machine.transition(s, p, when=when)
    d = Diagram("wrong", step=0.1)
    d.add(machine, "machine")
    with pytest.raises(DiagramError) as error:
        d.compile()
    assert "`machine`: guard of `s → p`" in str(error.value)
    assert "input `machine.a` is not connected" in str(error.value)
    assert words in str(error.value)


def test_an_action_on_something_unknown():
    machine = make()
    machine.state("s", pover=1)
    with pytest.raises(DiagramError, match=r"entry of `s`: `pover` is not an output or data"):
        machine.check()


@pytest.mark.parametrize("name", ["t", "elapsed", "sin", "in_run", "two words", "state", "pi"])
def test_reserved_names(name):
    with pytest.raises(DiagramError, match="cannot be a name"):
        StateMachine(inputs=[name])


def test_one_name_has_one_meaning():
    with pytest.raises(DiagramError, match="`a` has two meanings"):
        make(data={"a": 0})


def test_an_unknown_event():
    machine = make(events=["start"])
    s, p = machine.state("s"), machine.state("p")
    with pytest.raises(DiagramError, match=r"there is no event `strat`.*start"):
        machine.transition(s, p, on="strat")


def test_a_state_of_another_machine():
    one, other = make(), make()
    with pytest.raises(DiagramError, match="a state of the same machine"):
        one.transition(one.state("s"), other.state("p"))


def test_wrong_arguments_are_refused_where_they_are_given():
    machine = make()
    s, p = machine.state("s"), machine.state("p")
    cases: list[tuple[dict, str]] = [
        ({"when": True}, "`when` is a formula"),
        ({"after": [1]}, "`after` is a time in s or a formula"),
        ({"after": -1}, "`after` is a time in s, got -1"),
        ({"priority": True}, "a priority is a whole number from 1"),
        ({"do": {"x": None}}, "`x` is assigned a formula or a number"),
    ]
    for options, words in cases:
        with pytest.raises(DiagramError, match=words):
            machine.transition(s, p, **options)
    assert machine.transitions == ()


def test_an_event_may_be_given_as_one_name():
    machine = StateMachine(events="go", emits="done", local_events="ping")
    assert [port.name for port in machine.inputs] == ["go"]
    assert [port.name for port in machine.outputs] == ["done", "state"]


def test_a_flag_that_means_two_states():
    machine = make()
    a, b = machine.state("a"), machine.state("a_b")
    a.state("b_c")
    b.state("c")
    machine.transition(a, b, when="in_a_b_c")
    with pytest.raises(DiagramError, match=r"`in_a_b_c` is ambiguous: `a\.b_c` and `a_b\.c`"):
        machine.check()


def test_nesting_has_an_end():
    machine = make()
    state = machine.state("s0")
    for k in range(40):
        state = state.state(f"s{k + 1}")
    with pytest.raises(DiagramError, match="nested too deep: at most 32 levels"):
        machine.check()


def test_initial_values_have_the_kind_of_their_output():
    with pytest.raises(DiagramError, match=r"`x` is boolean: 3 is no value"):
        make(outputs=[Port("x", kind="boolean")], initial={"x": 3})
    machine = make(outputs=[Port("mode", kind="enumeration", names=("low", "high"))])
    machine.state("s", mode=7)
    with pytest.raises(DiagramError, match=r"`mode` has the values low, high"):
        machine.check()


def test_too_many_inputs():
    machine = make(inputs=[f"u{k}" for k in range(300)])
    machine.state("s")
    with pytest.raises(DiagramError, match="at most 256 inputs"):
        machine.check()
