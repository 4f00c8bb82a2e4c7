"""Wiring in `Diagram.add` and `Diagram.chain`, names as a container, and rates given to `add`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import Diagram, DiagramError, Subsystem, simulate
from biella.blocks import (
    PID,
    Constant,
    DiscreteIntegrator,
    Encoder,
    Expression,
    Gain,
    Integrator,
    LeadLag,
    PythonBlock,
    Saturation,
    Sine,
    Step,
    Sum,
    Time,
    UnitDelay,
    ZeroOrderHold,
    python_block,
)
from biella.blocks.core._ports import Port
from biella.blocks.multibody.mechanisms import slider_crank


class Odd(PythonBlock):
    """Inputs that are not identifiers, or have names that `add` keeps for itself."""

    def __init__(self) -> None:
        names = ["motor.torque", "name", "inputs", "period", "offset", "block", "self"]
        super().__init__(inputs=[Port(name, default=0.0) for name in names], outputs=["y"])

    def output(self, t: float, x: Any, u: Any) -> float:
        return float(sum((k + 1) * value for k, value in enumerate(u)))


def snapshot(d: Diagram) -> tuple[Any, ...]:
    kept = d.blocks, d.names, d.sources, d.rates, d.outports
    return *(dict(table) for table in kept), list(d.double_sources)


class TestAdd:
    def test_wires_are_those_that_connect_makes(self) -> None:
        short = Diagram("loop")
        ref = short.add(Step(at=0.1, to=3.0), "ref")
        x = short.add(Integrator(), "x")
        pid = short.add(PID(2.0, 5.0), "pid", reference=ref, measurement=x["y"])
        short.connect(pid, x)
        long = Diagram("loop")
        long.add(Step(at=0.1, to=3.0), "ref")
        long.add(Integrator(), "x")
        long.add(PID(2.0, 5.0), "pid")
        long.connect("ref", "pid.reference")
        long.connect("x", "pid.measurement")
        long.connect("pid", "x")
        assert short.compile().data == long.compile().data

    def test_sources_may_be_names_and_the_block_itself(self) -> None:
        d = Diagram(step=0.1)
        d.add(Constant(1.0), "one")
        d.add(UnitDelay(), "last")
        total = d.add(Sum("++"), "total", u1="one", u2="last.y")
        d.connect(total, "last")
        z = d.add(UnitDelay(4.0), "self fed", u="self fed")
        assert simulate(d, 0.3)["total"].tolist() == [1.0, 2.0, 3.0, 4.0]
        assert d.sources[z, 0].block is z

    def test_one_source_goes_to_the_input_that_connect_would_choose(self) -> None:
        d = Diagram()
        u = d.add(Sine(), "u")
        k = d.add(Gain(2.0), "k", inputs=u)
        assert d.sources[k, 0] == u["y"]
        with pytest.raises(DiagramError, match=r"`e` has 2 inputs: select one with e\['u1'\]"):
            d.add(Sum("+-"), "e", inputs=u)
        with pytest.raises(DiagramError, match=r"must be names and sources.*Inputs of `e`: u1, u2"):
            d.add(Sum("+-"), "e", inputs=[u, k])  # type: ignore[arg-type]

    def test_names_that_are_no_keywords_or_are_reserved(self) -> None:
        d = Diagram()
        one = d.add(Constant(1.0))
        others = ["motor.torque", "name", "inputs", "period", "offset"]
        odd = d.add(Odd(), "odd", inputs=dict.fromkeys(others, one), block=one, self=one)
        assert len([key for key in d.sources if key[0] is odd]) == 7
        assert simulate(d, 0.01, record=["odd"])["odd"][0] == sum(range(1, 8))

    @pytest.mark.parametrize(
        ("wire", "message"),
        [
            (
                lambda d: d.add(PID(1.0), "pid", referense="u"),
                r"`pid` has no input `referense`. Did you mean `reference`\? Inputs of `pid`:",
            ),
            (
                lambda d: d.add(PID(1.0), "pid", reference="u", kp=2.0),
                r"no input `kp`: that is a parameter; pass it to PID\(…\)",
            ),
            (lambda d: d.add(Gain(1.0), "p", y="u"), r"`p` has no input `y`. It is an output"),
            (
                lambda d: d.add(Gain(1.0), "p", u="v"),
                r"there is no block `v` in .test.. Blocks: u, k",
            ),
            (lambda d: d.add(Gain(1.0), "p", u="u.z"), r"`u` has no output `z`"),
            (lambda d: d.add(Gain(1.0), "p", u=Gain(1.0)), r"Gain is not in 'test' yet"),
            (lambda d: d.add(Gain(1.0), "p", u=Constant(1.0)["y"]), r"Constant is not in 'test'"),
            (lambda d: d.add(Gain(1.0), "p", u=None), r"got None"),
            (
                lambda d: d.add(Gain(1.0), "p", u="u", inputs="k"),
                r"`p.u` has two sources: .* `k.y`",
            ),
            (lambda d: d.add(Gain(1.0), "p", u="u", inputs={"u": "k"}), r"`p.u` has two sources"),
            (
                lambda d: d.add(Gain(1.0), d["k"]),
                r"name of a block must be a string, got "
                r"Gain\(k=2.0\)",
            ),
            (lambda d: d.add(Constant(1.0), "c", inputs="u"), r"`c` \(Constant\) has no inputs"),
            (lambda d: d.add(Gain(1.0), "p", u="u", period=-1.0), r"must be positive seconds"),
            (lambda d: d.add(Gain(1.0), "p", u="u", offset=1e-3), r"needs a period"),
        ],
    )
    def test_a_failed_add_leaves_the_diagram_as_it_was(self, wire: Any, message: str) -> None:
        d = Diagram("test")
        d.add(Gain(2.0), "k", u=d.add(Sine(), "u"))
        before = snapshot(d)
        with pytest.raises(DiagramError, match=message):
            wire(d)
        assert snapshot(d) == before


class TestChain:
    def test_a_row_of_blocks(self) -> None:
        d = Diagram()
        u, half, limit = d.add(Sine(), "u"), d.add(Gain(0.5), "half"), d.add(Saturation(0, 1), "s")
        assert d.chain(u, half, "s", d.add(Integrator(), "x")) is d["x"]
        assert d.sources == {
            (half, 0): u["y"],
            (limit, 0): half["y"],
            (d["x"], 0): limit["y"],
        }

    def test_ports_at_the_ends_and_in_the_middle(self) -> None:
        d = Diagram()
        ref = d.add(Step(), "ref")
        pid = d.add(PID(1.0), "pid")
        encoder = d.add(Encoder(100), "encoder")
        plant = slider_crank(planar=True).block(["motor.torque"], ["main.angle", "main.speed"])
        d.add(plant, "plant")
        d.chain(ref, pid["reference"], plant["motor.torque"])
        d.chain(plant["main.angle"], encoder["speed"], "pid.measurement")
        wired = {
            f"{d.names[b]}.{b.inputs[n].name}": d.name_port(s) for (b, n), s in d.sources.items()
        }
        assert wired == {
            "pid.reference": "ref.y",
            "plant.motor.torque": "pid.y",
            "encoder.shaft": "plant.main.angle",
            "pid.measurement": "encoder.speed",
        }

    @pytest.mark.parametrize(
        ("ends", "message"),
        [
            (["u"], "at least two blocks"),
            (["u", "k", "error"], r"`error` has 2 inputs: select one"),
            (["u", "k", "error.u3"], r"`error` has no input `u3`"),
            (["u", "k.w", "error.u1"], r"`k` has no output `w`"),
            (["u", "k", Gain(1.0)], "Gain is not in 'diagram' yet"),
            (["k", "u", "error.u1"], r"`u` \(Sine\) has no inputs"),
        ],
    )
    def test_a_failed_chain_makes_no_wire(self, ends: Any, message: str) -> None:
        d = Diagram()
        d.add(Sine(), "u")
        d.add(Gain(1.0), "k")
        d.add(Sum("+-"), "error")
        with pytest.raises(DiagramError, match=message):
            d.chain(*ends)
        assert d.sources == {} and d.double_sources == []

    def test_a_second_source_is_reported_with_all_other_mistakes(self) -> None:
        d = Diagram()
        d.add(Gain(1.0), "k", u=d.add(Sine(), "u"))
        d.chain(d.add(Sine(), "v"), "k")
        with pytest.raises(DiagramError, match=r"`k.u` has two sources: `u.y` and `v.y`"):
            d.compile()


def test_connect_makes_all_its_wires_or_none() -> None:
    d = Diagram()
    d.add(Sine(), "u")
    d.add(Gain(1.0), "k")
    with pytest.raises(DiagramError, match="no block `missing`"):
        d.connect("u", "k", "missing")
    assert d.sources == {}


def test_a_diagram_contains_its_blocks() -> None:
    d = Diagram()
    assert len(d) == 0 and list(d) == [] and d
    u = d.input("u")
    k = d.add(Gain(1.0), "k", u=u)
    assert "k" in d and k in d and "u" in d and "gain" not in d and Gain(1.0) not in d
    assert len(d) == 2 and list(d) == ["u", "k"] and d["k"] is k


def rate_in_plan(d: Diagram, path: str) -> str:
    return next(block.rate for block in d.compile().blocks if block.path == path)


class TestPeriod:
    def test_it_is_of_the_diagram_not_of_the_block(self) -> None:
        d = Diagram(step=1e-3)
        u = d.add(Sine(), "u")
        k = d.add(Gain(1.0), "k", u=u, period=5e-3, offset=1e-3)
        after = d.add(Gain(1.0), "after", u=k)
        assert k.rate.kind == "inherited"
        assert (d.rate_of(k).period, d.rate_of(k).offset) == (5e-3, 1e-3)
        assert d.rate_of(after) is after.rate
        assert rate_in_plan(d, "k") == rate_in_plan(d, "after") == "0.005 s + 0.001 s"
        other = Diagram(step=1e-3)
        other.add(k, "k", u=other.add(Sine()), period=2e-3)
        assert rate_in_plan(other, "k") == "0.002 s"

    def test_a_run_holds_between_hits(self) -> None:
        d = Diagram(step=0.01)
        d.add(Time(), "t", period=0.03, offset=0.01)
        t = simulate(d, 0.1)["t"]
        assert t == pytest.approx([0, 0.01, 0.01, 0.01, 0.04, 0.04, 0.04, 0.07, 0.07, 0.07, 0.1])

    def test_it_counts_inside_a_subsystem(self) -> None:
        inside = Diagram("inside")
        inside.output("y", inside.add(ZeroOrderHold(), "z", u=inside.input("u"), period=0.02))
        d = Diagram(step=0.01)
        d.add(Subsystem(inside), "sub", u=d.add(Time(), "t"))
        d.add(Gain(1.0), "k", inputs="sub")
        assert rate_in_plan(d, "sub.z") == rate_in_plan(d, "k") == "0.02 s"
        assert simulate(d, 0.04)["k"] == pytest.approx([0, 0, 0.02, 0.02, 0.04])

    def test_a_triggered_subsystem_refuses_it(self) -> None:
        inside = Diagram("inside")
        inside.output("y", inside.add(Gain(1.0), "k", u=inside.input("u"), period=0.02))
        d = Diagram(step=0.01)
        u = d.add(Time(), "t")
        d.add(Subsystem(inside, trigger="rising"), "sub", u=u, trigger=u)
        with pytest.raises(DiagramError, match=r"`sub.k` is in a triggered subsystem and cannot"):
            d.compile()

    def test_blocks_that_declare_a_period_may_get_another(self) -> None:
        @python_block(period=0.02)
        def double(u: float) -> float:
            return 2 * u

        d = Diagram(step=0.01)
        u = d.add(Time(), "t")
        d.add(double(), "own", u=u)
        d.add(double(), "given", u=u, period=0.05)
        assert (rate_in_plan(d, "own"), rate_in_plan(d, "given")) == ("0.02 s", "0.05 s")

    def test_a_drawing_shows_it(self) -> None:
        from biella.scheduler.drawing._arrange import arrange

        d = Diagram(step=1e-3)
        d.add(Gain(1.0), "k", u=d.add(Sine(), "u"), period=5e-3)
        assert {box.path: box.rate for box in arrange(d).boxes}["k"] == "0.005 s"

    def test_a_stand_in_for_a_device_keeps_it(self) -> None:
        from biella.scheduler.binding._bindable import list_blocks

        d = Diagram(step=1e-3)
        d.add(Gain(1.0), "k", u=d.add(Sine(), "u"), period=5e-3)
        ports = dict(list_blocks(d, d.compile()))
        assert (ports["k"].rate.kind, ports["k"].rate.period) == ("periodic", 5e-3)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: PID(1.0), r"computes with its period. Give it to PID\(…, period=…\)"),
            (lambda: Encoder(100), r"Give it to Encoder\(…, period=…\)"),
            (lambda: LeadLag(1.0, 2.0), r"Give it to LeadLag\(…, period=…\)"),
            (lambda: Integrator(), r"has continuous states. Use its discrete counterpart"),
            (lambda: Constant(1.0), r"is constant"),
            (
                lambda: slider_crank(planar=True).block(mode="internal"),
                r"internal solver, whose period is set where",
            ),
            (lambda: Subsystem(Diagram()), r"set the period of the blocks inside"),
        ],
    )
    def test_blocks_that_take_none_say_where_it_goes(self, make: Any, message: str) -> None:
        d = Diagram()
        with pytest.raises(
            DiagramError, match=rf"`b` \(\w+\) does not accept a period in add: .*{message}"
        ):
            d.add(make(), "b", period=0.01)
        assert len(d) == 0 and d.rates == {}

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Gain(2.0, period=0.01), r"Gain takes no `period`.*d.add\(Gain\(…\), period"),  # type: ignore[call-arg]
            (lambda: Step(offset=0.01), r"Step takes no `offset`.*period=…, offset=…\)"),  # type: ignore[call-arg]
            (lambda: Expression("u", period=1.0), r"Expression takes no `period`: give it where"),  # type: ignore[call-arg]
            (lambda: Integrator(period=0.01), r"Integrator takes no `period`: .*discrete counterp"),  # type: ignore[call-arg]
            (lambda: Gain("two", period=0.01), "requires numbers"),  # type: ignore[arg-type, call-arg]
        ],
    )
    def test_constructors_that_took_it_teach(self, make: Any, message: str) -> None:
        with pytest.raises(DiagramError, match=message):
            make()

    def test_results_are_those_of_a_period_in_the_constructor(self) -> None:
        """A Python block still declares its period itself: the same numbers as at `add`."""

        class Hold(PythonBlock):
            def __init__(self, **rate: Any) -> None:
                super().__init__(inputs=["u"], outputs=["y"], **rate)

            def output(self, t: float, x: Any, u: Any) -> Any:
                return u

        d = Diagram(step=0.01)
        u = d.add(Sine(), "u")
        d.add(Hold(period=0.03, offset=0.02), "own", u=u)
        d.add(Hold(), "given", u=u, period=0.03, offset=0.02)
        d.add(ZeroOrderHold(), "native", u=u, period=0.03, offset=0.02)
        d.add(DiscreteIntegrator(), "sum", u=u, period=0.03)
        run = simulate(d, 1.0, record=["*"])
        assert np.array_equal(run["own"], run["given"])
        assert np.array_equal(run["own"], run["native"])
        held = np.repeat(run["u"][::3], 3)[: len(run.t)]
        assert run["sum"][3::3] == pytest.approx(
            0.03 * np.cumsum(held[::3])[: len(run["sum"][3::3])]
        )
