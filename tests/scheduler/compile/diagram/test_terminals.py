"""How members of terminals are matched, without FMUs: blocks of Python with made-up terminals."""

from __future__ import annotations

import pytest

from biella import DiagramError
from biella.blocks import Gain
from biella.blocks.core._block import AbstractBlock
from biella.blocks.core._terminals import TerminalEnd, TerminalRef
from biella.scheduler.compile.diagram._terminals import match_terminals

ONE, TWO = Gain(1.0), Gain(1.0)
NAMES: dict[AbstractBlock, str] = {ONE: "one", TWO: "two"}


def end(name, is_input=False, port="p", kind="signal", causality="", incoming=""):
    return TerminalEnd(name, port and f"{port} {name}", is_input, kind, causality, incoming)


def terminal(block, rule, *members, kind="", inner=(), name="t"):
    return TerminalRef(block, name, name, rule, kind, tuple(members), tuple(inner))


def match(one, two):
    wires = match_terminals(NAMES, one, [two])
    return [(NAMES[o.block], o.name, NAMES[i.block], i.name) for o, i in wires]


def test_a_bus_connects_what_both_have():
    one = terminal(ONE, "bus", end("a"), end("b", True), end("c"), end("shared", True))
    two = terminal(TWO, "bus", end("b"), end("a", True), end("d"), end("shared", True))
    assert match(one, two) == [("one", "p a", "two", "p a"), ("two", "p b", "one", "p b")]


def test_a_plug_requires_all_members():
    one = terminal(ONE, "plug", end("a"), end("b", True))
    assert len(match(one, terminal(TWO, "plug", end("b"), end("a", True)))) == 2
    with pytest.raises(DiagramError) as caught:
        match(one, terminal(TWO, "plug", end("a", True), end("c")))
    assert str(caught.value) == (
        "terminals `one.t` and `two.t` do not match: a plug requires all members: `two.t` has no "
        "b, `one.t` has no c."
    )


def test_a_sequence_goes_by_order():
    one = terminal(ONE, "sequence", end("x"), end("y", True))
    assert match(one, terminal(TWO, "sequence", end("p", True), end("q"))) == [
        ("one", "p x", "two", "p p"),
        ("two", "p q", "one", "p y"),
    ]
    with pytest.raises(DiagramError, match=r"as many members.*2 \(x, y\) and 1 \(p\)"):
        match(one, terminal(TWO, "sequence", end("p", True)))


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        (("bus", end("a")), ("plug", end("a", True)), "matching rules are 'bus' and 'plug'"),
        (("none", end("a")), ("none", end("a", True)), "'none' and 'none'; known are plug, bus"),
        (("bus", end("a")), ("bus", end("b", True)), "no output of one and input of the other"),
        (("bus", end("a")), ("bus", end("a")), "a: both are outputs"),
        (("plug", end("a", True)), ("plug", end("a", True)), "a: both are inputs"),
        (
            ("bus", end("a"), end("k", port="", causality="a parameter")),
            ("bus", end("a", True), end("k", True)),
            "k of `one.t` is a parameter",
        ),
        (
            ("bus", end("i", kind="inflow")),
            ("bus", end("i", True, kind="inflow")),
            r"i: inflow and inflow: connect the ports one by one, with a Gain\(-1\)",
        ),
        (
            ("bus", end("i", kind="inflow")),
            ("bus", end("i", True)),
            "i: inflow and signal",
        ),
    ],
)
def test_what_does_not_match_is_named(one, two, message):
    with pytest.raises(DiagramError, match=message):
        match(terminal(ONE, *one), terminal(TWO, *two))


def test_kinds_must_agree_if_both_have_one():
    ends = end("a"), end("a", True)
    assert match(terminal(ONE, "bus", ends[0], kind="X"), terminal(TWO, "bus", ends[1]))
    with pytest.raises(DiagramError, match="kinds are 'X' and 'Y'"):
        match(terminal(ONE, "bus", ends[0], kind="X"), terminal(TWO, "bus", ends[1], kind="Y"))


def test_an_inflow_is_the_outflow_of_the_other_side():
    one = terminal(ONE, "plug", end("i", kind="outflow"))
    assert len(match(one, terminal(TWO, "plug", end("i", True, kind="inflow")))) == 1


def test_parameters_on_both_sides_are_left():
    one = terminal(ONE, "plug", end("a"), end("k", port=""))
    assert len(match(one, terminal(TWO, "plug", end("a", True), end("k", port="")))) == 1


def test_inner_terminals_are_matched_on_their_level():
    one = terminal(ONE, "bus", inner=[terminal(ONE, "plug", end("a"), name="in")])
    two = terminal(TWO, "bus", inner=[terminal(TWO, "plug", end("a", True), name="in")])
    assert match(one, two) == [("one", "p a", "two", "p a")]
    other = terminal(TWO, "bus", inner=[terminal(TWO, "plug", end("a", True), name="out")])
    with pytest.raises(DiagramError, match="no output of one and input of the other"):
        match(one, other)


def test_several_terminals_connect_to_the_first():
    three = Gain(1.0)
    names = NAMES | {three: "three"}
    wires = match_terminals(
        names,
        terminal(ONE, "bus", end("a")),
        [terminal(TWO, "bus", end("a", True)), terminal(three, "bus", end("a", True))],
    )
    assert [names[target.block] for _, target in wires] == ["two", "three"]


def test_a_bus_terminal_crosses_what_is_sent_and_received():
    """The rule of FMI-LS-BUS: Tx_Data of each to Rx_Data of the other."""
    rule = "org.fmi-ls-bus.transceiver"
    ends = end("Rx_Data", True), end("Tx_Data"), end("Tx_Clock", port=""), end("Rx_Clock", port="")
    one, two = terminal(ONE, rule, *ends), terminal(TWO, rule, *reversed(ends))
    assert match(one, two) == [
        ("one", "p Tx_Data", "two", "p Rx_Data"),
        ("two", "p Tx_Data", "one", "p Rx_Data"),
    ]
    with pytest.raises(DiagramError, match=r"bus terminal requires both: `two\.t` has no Rx_Data"):
        match(one, terminal(TWO, rule, ends[1]))
    with pytest.raises(DiagramError, match=r"Tx_Data of `two\.t` is no port"):
        match(one, terminal(TWO, rule, ends[0], end("Tx_Data", port="")))
