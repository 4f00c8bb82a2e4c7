"""Which blocks take substeps, what is called for them, and what is refused."""

from __future__ import annotations

import pytest

from biella import Diagram, DiagramError, Subsystem
from biella.blocks import Expression, Gain, Integrator, Sine, StateSpace, Step, UnitDelay
from biella.scheduler.compile._compiler import read_settings
from biella.scheduler.compile._flatten import flatten
from biella.scheduler.compile._multirate import find_multirate_problems


def make(solver: str = "rk4", **options) -> Diagram:
    """slow → gain → fast → torque(fast, source) → slow, and a state that nothing reads."""
    d = Diagram("two rates", 1e-2, solver, **options)
    slow = d.add(Integrator(1.0), "slow")
    gain = d.add(Gain(2.0), "gain", u=slow)
    fast = d.add(StateSpace([[-100.0]], [[100.0]], [[1.0]]), "fast", u=gain)
    source = d.add(Sine(), "source")
    d.connect(d.add(Expression("w - s"), "torque", w=fast, s=source), slow)
    d.add(Integrator(), "total", u=source)
    return d


def paths(model, sections: str) -> set[str]:
    """The blocks that a program of the plan calls."""
    entries = memoryview(model.sections[sections]).cast("i")
    return {model.blocks[n].path for n in entries[1::2]}


def test_each_part_calls_what_leads_to_its_derivatives():
    d = make()
    d.integrate("fast", substeps=12)
    model = d.compile()
    assert model.multirate == {"substeps": 15, "blocks": ("fast",), "interpolated": ("slow",)}
    # Also what leads to the input of `slow`: it is integrated in substeps.
    assert paths(model, "FPRG") == {"fast", "gain", "source", "torque"}
    assert paths(model, "SPRG") == {"fast", "source", "torque"}
    assert paths(model, "SAMP") == {"slow"}
    driven = memoryview(model.sections["DRIV"]).cast("i").tolist()
    assert [
        (model.blocks[b].path, port) for b, port in zip(driven[::2], driven[1::2], strict=True)
    ] == [("slow", 0)]


def test_without_substeps_the_plan_is_as_before():
    assert "FAST" not in make().compile().sections
    assert not make().compile().multirate


def test_the_report_shows_the_parts():
    d = make()
    d.integrate("fast", substeps=12)
    text = d.compile().report()
    assert "15 substeps of 0.000666667 s in a step: fast" in text
    assert "read interpolated by these: slow" in text


def test_the_largest_number_of_substeps_holds_for_all():
    d = make("rk3")
    d.integrate("fast", substeps=4)
    d.integrate("total", substeps=10)
    assert d.compile().multirate["substeps"] == 12
    assert d.compile().multirate["blocks"] == ("fast", "total")
    assert d.compile(solver="euler").multirate["substeps"] == 10


@pytest.mark.parametrize("solver", ["dopri5", "backward_euler", "trapezoidal", "radau5"])
def test_other_solvers_with_fixed_steps_are_refused(solver):
    d = make(solver)
    d.integrate("fast", substeps=10)
    flat, settings = flatten(d), read_settings(d)
    assert len(find_multirate_problems(flat, settings)) == 1
    with pytest.raises(
        DiagramError, match=rf"`{solver}` with fixed steps takes no substeps, .* fast"
    ):
        d.compile()
    if solver in ("dopri5", "radau5"):
        assert not d.compile(tolerance=1e-6).multirate


@pytest.mark.parametrize("substeps", [0, 1, -3, 2.5, "10", True, 100_001])
def test_numbers_of_substeps_that_are_none(substeps):
    d = make()
    with pytest.raises(DiagramError, match="substeps is a whole number from 2 to 100000"):
        d.integrate("fast", substeps=substeps)
    assert d.substeps == []


def test_blocks_that_cannot_take_substeps():
    d = make()
    with pytest.raises(DiagramError, match="integrate requires the fast blocks"):
        d.integrate(substeps=10)
    with pytest.raises(DiagramError, match="not in 'two rates' yet"):
        d.integrate(Gain(1.0), substeps=10)
    with pytest.raises(DiagramError, match="fasst"):
        d.integrate("fasst", substeps=10)
    d.integrate("gain", substeps=10)
    with pytest.raises(DiagramError, match=r"d.integrate\(gain, substeps=10\) has nothing to"):
        d.compile()


def test_a_replaced_subsystem_needs_no_substeps():
    """A device or a sampled model may take the place of what was fast."""
    inner = Diagram("inner")
    w = inner.add(Integrator(), "w", u=inner.input("u"))
    inner.output("y", w)
    d = Diagram("outer", 1e-2)
    d.add(Subsystem(inner), "part", u=d.add(Step(), "step"))
    d.add(Integrator(), "slow", u=d["part"])
    d.integrate("part", substeps=10)
    assert d.compile().multirate["blocks"] == ("part.w",)
    assert not d.compile(replace={"part": UnitDelay()}).multirate
