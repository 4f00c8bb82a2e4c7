"""What is checked after a diagram is compiled and before it runs."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from biella import BiellaWarning, Diagram, linearize, run_realtime, simulate, sweep
from biella.blocks import Constant, StateSpace
from biella.blocks.multibody.mechanisms import mcpherson
from biella.scheduler.compile._compiler import compile_diagram
from biella.scheduler.run._preflight import warn_of_steps

COARSE = r"`plant` \(Plant\): RK4 is not stable with steps of 0.01 s"


def car() -> Diagram:
    d = Diagram("car", step=1e-2)
    plant = d.add(mcpherson().block(outputs=["wheel.position"]), name="plant")
    d.output("wheel", plant["wheel.position"])
    return d


def fast() -> Diagram:
    d = Diagram("fast", step=1e-2)
    d.add(StateSpace([[-1e4]], [[1.0]], [[1.0]], [[0.0]]), name="pole")
    d.connect(d.input("u"), d["pole"])
    d.output("y", d["pole"])
    return d


def test_compiling_alone_neither_warns_nor_runs_anything() -> None:
    model = compile_diagram(car())
    with pytest.warns(BiellaWarning, match=COARSE) as told:
        warn_of_steps(model)
    assert told[0].filename == __file__


@pytest.mark.parametrize("make", [car, fast])
def test_every_way_to_use_a_diagram_warns_once(
    make: type[Diagram], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    def told() -> int:
        found = [w for w in recwarn.list if "with steps of" in str(w.message)]
        recwarn.clear()
        warnings.simplefilter("always")
        return len(found)

    ways = {
        "compile": lambda d: d.compile(),
        "simulate": lambda d: simulate(d, 0.0),
        "run_realtime": lambda d: run_realtime(d, until=0.0, clock="free").wait(),
        "export": lambda d: d.export_fmu(tmp_path / "a.fmu"),
        "sweep": lambda d: sweep(d, 0.0, [{}, {}, {}], progress=False),
    }
    if make is fast:
        ways["linearize"] = lambda d: linearize(d)
    counts = {}
    for name, use in ways.items():
        use(make())
        counts[name] = told()
    assert counts == dict.fromkeys(ways, 1)


def test_a_mechanism_alone_is_warned_of_when_it_is_exported(tmp_path: Path) -> None:
    with pytest.warns(BiellaWarning, match="RK4 is not stable with steps of 0.01 s"):
        mcpherson().export_fmu(tmp_path / "a.fmu", step=1e-2)


def test_drawing_checks_nothing_of_the_kind(tmp_path: Path) -> None:
    car().draw(tmp_path / "a.svg")


def test_the_slow_part_of_multirate_steps_has_its_own_limit() -> None:
    """|λ| h = 2.634 of the method's stability polynomial, where rk4 alone is stable up to 2.785."""
    for product, told in ((2.62, 0), (2.65, 1), (2.77, 1)):
        d = Diagram("both", step=1e-2)
        slow = StateSpace([[-product / 1e-2]], [[1.0]], [[1.0]], [[0.0]])
        quick = StateSpace([[-product / 1e-2]], [[1.0]], [[1.0]], [[0.0]])
        d.add(quick, "quick", u=d.add(slow, "slow", u=d.input("u")))
        d.output("y", d["quick"])
        for multirate in (False, True):
            if multirate:
                d.integrate(quick, substeps=10)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warn_of_steps(compile_diagram(d))
            texts = [str(item.message) for item in caught]
            assert len(texts) == told * multirate, texts
            assert all("`slow`" in text and "rk4 with substeps" in text for text in texts)


def test_slow_states_beyond_that_limit_grow() -> None:
    for product, grows in ((2.62, False), (2.65, True)):
        d = Diagram("both", step=1e-2)
        slow = StateSpace([[-product / 1e-2]], [[1.0]], [[1.0]], [[0.0]], initial=[1.0])
        quick = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
        d.add(slow, "slow", u=d.add(Constant(0.0), "zero"))
        d.add(quick, "quick", u=d["slow"])
        d.integrate(quick, substeps=10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown = simulate(d, 5.0)["slow"]
        assert (abs(shown[-1]) > 1.0) == grows
