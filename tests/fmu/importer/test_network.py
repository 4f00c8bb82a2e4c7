"""Clocks between FMUs of FMI 3.0, with the FMU of ``node.c``, which rejects what FMI forbids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from node import make_node

from biella import BiellaWarning, BlockError, Diagram, Fmu, replay, run_realtime, simulate
from biella.blocks import Constant, Integrator, Pulse

pytestmark = pytest.mark.engine

STEP = 0.01
SENDS: dict[str, Any] = {"period": 0.025, "offset": 0.005, "value": 7.0, "message": b"abc"}
DUE = [0.005, 0.03, 0.055, 0.08]
ANSWERS: dict[str, Any] = {"answers": -1, "message": b"xy"}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nodes")
    return {
        "triggered": make_node(folder / "node.fmu"),
        "countdown": make_node(folder / "counting.fmu", countdown=True),
        "forgetful": make_node(folder / "forgetful.fmu", saves=False),
    }


def wire(d, sender, receiver):
    for given, taken in (("tx_clock", "rx_clock"), ("tx", "rx"), ("y", "x")):
        d.connect(d.blocks[sender][given], d.blocks[receiver][taken])


def network(nodes, wires, order="abc", kinds=None, step=STEP, **parameters):
    """FMUs a, b, c, of which `wires` such as "ab" connect one to the next."""
    d = Diagram("network", step=step)
    for name in order:
        path = nodes[(kinds or {}).get(name, "triggered")]
        outputs = None if "counting" not in path.name else [*OUTPUTS, "tx", "y", "tx_clock"]
        d.add(Fmu(path, outputs=outputs, parameters=parameters.get(name, {})), name=name)
    for one, two in wires:
        wire(d, one, two)
    return d


OUTPUTS = ["count", "last", "bytes", "sent"]


def sent_by(t, due):
    return [sum(instant <= now + 1e-9 for instant in due) for now in t]


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
@pytest.mark.parametrize("early", [0, 1], ids=["end", "early"])
def test_a_chain_is_passed_at_one_instant(nodes, order, early):
    """b answers what a sends by y = 7 + 1, and c receives it at the same time."""
    d = network(nodes, ["ab", "bc"], order, a=SENDS | {"early": early}, b=ANSWERS)
    result = simulate(d, 0.09)
    number = sent_by(result.t, DUE)
    for name in ("a.sent", "b.count", "b.sent", "c.count"):
        assert result[name].tolist() == number, name
    assert result["c.bytes"].tolist() == [2.0 * n for n in number]
    assert result["b.bytes"].tolist() == [3.0 * n for n in number]
    instants = DUE if early else [0.01, 0.03, 0.06, 0.08]
    expected = [instants[n - 1] if n else 0.0 for n in number]
    np.testing.assert_allclose(result["b.last"], expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(result["c.last"], result["b.last"])
    assert result["b.y"].tolist() == [8.0 if n else 0.0 for n in number]
    assert result["b.tx_clock"].tolist() == np.diff([0, *number]).tolist()
    ticks = [round(e.time, 9) for e in result.events if e.source == "b" and "tx_clock" in e.kind]
    np.testing.assert_allclose(ticks, instants, rtol=0, atol=1e-9)


@pytest.mark.parametrize("answers", [1, 5])
def test_two_fmus_that_answer_each_other_settle_at_one_instant(nodes, answers):
    """y grows by one with each answer: a sends 7, b 8, a 9, … until b has no answers left."""
    limited = ANSWERS | {"answers": answers}
    d = network(nodes, ["ab", "ba"], "ab", a=SENDS | {"answers": -1}, b=limited)
    result = simulate(d, STEP)
    assert result["b.sent"].tolist() == [0.0, answers]
    assert result["a.count"].tolist() == [0.0, answers]
    assert result["b.count"].tolist() == [0.0, answers + 1.0]
    assert result["b.y"][-1] == 7.0 + 2 * answers - 1.0
    assert result["a.y"][-1] == 7.0 + 2 * answers
    assert result["a.last"][-1] == result["b.last"][-1] == STEP


def test_fmus_that_never_settle_are_named(nodes):
    d = network(nodes, ["ab", "ba"], "ab", a=SENDS | {"answers": -1}, b=ANSWERS)
    message = r"clocks of `[ab]` still activate each other after 1000 iterations at t = 0.01"
    with pytest.raises(BlockError, match=message):
        simulate(d, 0.05)


def test_a_clock_within_a_step_takes_the_others_back(nodes):
    """Both trigger clocks, at different instants of a step: the first one advanced has passed."""
    one, two = SENDS | {"early": 1}, SENDS | {"early": 1, "offset": 0.003, "period": 0.0075}
    for order in ("ab", "ba"):
        d = network(nodes, ["ab", "ba"], order, a=one, b=two)
        result = simulate(d, 0.09)
        due = [0.003 + 0.0075 * k for k in range(12)]
        assert result["b.sent"].tolist() == result["a.count"].tolist() == sent_by(result.t, due)
        assert result["a.sent"].tolist() == result["b.count"].tolist() == sent_by(result.t, DUE)
        last = [max((x for x in due if x <= t + 1e-9), default=0.0) for t in result.t]
        np.testing.assert_allclose(result["a.last"], last, rtol=0, atol=1e-9)


def test_an_event_of_a_repeated_step_is_listed_once(nodes):
    """a has passed 3 ms, where b sends, and sends at 8 ms itself: again, after its way back."""
    one, two = ({"early": 1, "period": 1.0, "offset": at} for at in (0.008, 0.003))
    result = simulate(network(nodes, ["ab", "ba"], "ab", a=one, b=two), 0.02)
    ticks = [(e.source, round(e.time, 9)) for e in result.events if "tx_clock" in e.kind]
    assert ticks == [("b", 0.003), ("a", 0.008)]


@pytest.mark.parametrize("period", [None, 5 * STEP], ids=["tick", "period"])
def test_what_happens_in_a_step_is_not_seen_before_its_end(nodes, period):
    """y of b is 8 from the end of the first step on: not within it, and not at ticks between."""
    d = Diagram("held", step=STEP)
    for name, parameters in (("a", SENDS | {"early": 1}), ("b", ANSWERS)):
        d.add(Fmu(nodes["triggered"], period=period, parameters=parameters), name=name)
    wire(d, "a", "b")
    d.connect(d.blocks["b"]["y"], d.add(Integrator(), "integral"))
    result = simulate(d, 0.1)
    count = 1 if period is None else 5
    shown = np.arange(11) >= count
    assert result["b.y"].tolist() == (8.0 * shown).tolist()
    expected = 8.0 * STEP * np.maximum(np.arange(11) - count, 0)
    np.testing.assert_allclose(result["integral"], expected, rtol=0, atol=1e-12)
    assert result["a.tx_clock"][:6].tolist() == (
        [0, 1, 0, 1, 0, 0] if period is None else [0, 0, 0, 0, 0, 1]
    )


def test_steps_with_too_many_parts_are_refused(nodes):
    """Clocks every 1e-9 s: a step of 0.01 s would take 10 million parts."""
    sends = SENDS | {"early": 1, "period": 1e-9, "message": b""}
    with pytest.raises(BlockError, match=r"`?a`?.* more than 1000000 parts at t = 0.00[56]"):
        simulate(network(nodes, ["ab"], "ab", a=sends), STEP)


def test_an_fmu_that_cannot_be_taken_back_is_named(nodes):
    kinds = {"a": "forgetful", "b": "forgetful"}
    two = SENDS | {"early": 1, "offset": 0.003}
    d = network(nodes, ["ab", "ba"], "ab", kinds, a=SENDS | {"early": 1}, b=two)
    with pytest.raises(BlockError, match=r"a clock of `b` is active at t = 0.003, within the step"):
        simulate(d, 0.05)
    d = network(nodes, ["ab", "ba"], "ab", kinds, a=SENDS, b=two | {"early": 0})  # at its end
    assert simulate(d, 0.05)["b.count"].tolist() == [0, 1, 1, 2, 2, 2]


def test_a_clock_based_on_time_activates_the_clock_of_another_fmu(nodes):
    """At its instants, also within a step."""
    d = network(nodes, ["ab"], "ba", {"a": "countdown"}, a=SENDS)
    result = simulate(d, 0.09)
    assert result["b.count"].tolist() == sent_by(result.t, DUE)
    last = [max((x for x in DUE if x <= t + 1e-9), default=0.0) for t in result.t]
    np.testing.assert_allclose(result["b.last"], last, rtol=0, atol=1e-12)
    assert result["a.tx_clock"].tolist() == np.diff([0, *sent_by(result.t, DUE)]).tolist()


@pytest.mark.parametrize("kind", ["triggered", "countdown"])
def test_bus_terminals_connect_directly(nodes, kind):
    d = Diagram("direct", step=STEP)
    one = d.add(Fmu(nodes[kind], parameters=SENDS), name="one")
    two = d.add(Fmu(nodes[kind], parameters=SENDS | {"message": b"defg"}), name="two")
    d.connect(one.terminal("CAN"), two.terminal("CAN"))
    result = simulate(d, 0.09)
    number = np.array(sent_by(result.t, DUE))
    assert result["one.count"].tolist() == result["two.count"].tolist() == number.tolist()
    assert result["one.bytes"].tolist() == (4 * number).tolist()
    assert result["two.bytes"].tolist() == (3 * number).tolist()


def test_a_message_at_the_start_is_received_at_the_start(nodes):
    d = network(nodes, ["ab", "bc"], "cba", a=SENDS | {"offset": 0.0}, b=ANSWERS)
    result = simulate(d, STEP)
    assert result["c.count"].tolist() == [1.0, 1.0]
    assert result["b.y"].tolist() == [8.0, 8.0]


def test_a_signal_of_the_diagram_activates_a_clock_at_each_tick_at_which_it_is_true(nodes):
    """The FMU samples x at that tick and shows it with the outputs of the next one."""
    d = Diagram("signal", step=STEP)
    node = d.add(Fmu(nodes["triggered"], parameters=ANSWERS), name="node")
    d.connect(d.add(Pulse(0.03, 0.5, kind="boolean"), "pulse"), node["rx_clock"])
    d.connect(d.add(Constant(4.0), "four"), node["x"])
    result = simulate(d, 0.06)
    active = np.r_[0, np.cumsum(result["pulse"][:-1])]
    assert result["node.count"].tolist() == active.tolist() and active[-1] >= 2
    assert result["node.y"].tolist() == [5.0 if n else 0.0 for n in active]
    np.testing.assert_allclose(result["node.last"][2], 0.01, rtol=0, atol=1e-12)


@pytest.mark.parametrize("isolate", [False, True])
def test_an_input_whose_clock_is_not_connected_is_named(nodes, isolate):
    d = Diagram("idle", step=STEP)
    node = d.add(Fmu(nodes["triggered"], isolate=isolate), name="node")
    d.connect(d.add(Constant(4.0), "four"), node["x"])
    message = r"`node` .*never receives `x`: the clock `rx_clock` is not connected"
    with pytest.warns(BiellaWarning, match=message):
        d.compile()
    d.connect(d.add(Pulse(0.03, 0.5, kind="boolean"), "pulse"), node["rx_clock"])
    d.compile()


def test_a_saved_state_holds_the_network(nodes):
    parameters = {"a": SENDS | {"early": 1}, "b": ANSWERS}
    with network(nodes, ["ab", "bc"], **parameters).compile().instantiate() as instance:
        state = {}
        for tick in range(9):
            state[tick] = instance.save()
            instance.run(1)
        instance.evaluate()
        final = instance.get("c.count"), instance.get("c.last"), instance.get("b.y")
        for tick in (8, 3, 5, 0):
            instance.restore(state[tick])
            instance.run(9 - tick)
            instance.evaluate()
            assert final == (
                instance.get("c.count"), instance.get("c.last"), instance.get("b.y")
            )  # fmt: skip
    with network(nodes, ["ab", "bc"], **parameters).compile().instantiate() as instance:
        instance.restore(state[0])  # of another run
        instance.run(9)
        instance.evaluate()
        assert instance.get("c.last") == final[1]


def test_a_network_has_one_period_and_no_coupling(nodes):
    d = Diagram("periods", step=STEP)
    for name, period in (("a", 0.01), ("b", 0.02)):
        d.add(Fmu(nodes["triggered"], period=period, parameters=SENDS), name=name)
    wire(d, "a", "b")
    with pytest.raises(BlockError, match=r"`a`, `b` exchange clocks, and have different periods"):
        simulate(d, 0.05)
    d = network(nodes, ["ab", "ba"], "ab", a=SENDS)
    d.couple("a", "b", method="fixed-point")
    with pytest.raises(BlockError, match=r"`a`, `b` exchange clocks, and are in a coupling"):
        simulate(d, 0.05)


def test_a_network_runs_in_real_time_and_is_replayed(nodes):
    d = network(nodes, ["ab", "bc"], a=SENDS, b=ANSWERS)
    offline = simulate(d, 0.09)
    live = run_realtime(d, 0.09, overrun="catch_up").wait()
    again = replay(live, d)
    for result in (live, again):
        for name in ("c.last", "c.count", "b.y", "b.tx_clock"):
            np.testing.assert_array_equal(result[name], offline[name])
