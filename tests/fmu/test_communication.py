"""Adaptive communication steps of FMUs: with and without rollback, and when they refuse steps."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from specimen import STATES, TROUBLE, description, make_specimen
from studies import co_simulation as bench

from biella import Diagram, DiagramError, Fmu, simulate
from biella.blocks import Expression
from biella.errors import CouplingWarning

from .test_coupling import internal_solver_fmu, pair

pytestmark = pytest.mark.engine

NAMES = [f"{name}.slide_{what}" for name in "ab" for what in ("displacement", "speed")]


@pytest.fixture(autouse=True)
def no_folder_is_left(tmp_path, monkeypatch):
    """Every test unpacks below a folder of its own, which must be empty afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield
    assert list(tmp_path.glob("biella-fmu-*")) == []


def masses(folder: Path, step: float, fmus: bool = True, flags=None, period=None, **options):
    """The two masses of `studies.co_simulation`; native, or as FMUs with changed flags."""
    d = Diagram("two masses", step=step, **options)
    motion, plants, dot = ["slide.displacement", "slide.speed"], [], "_" if fmus else "."
    for n, stiffness, damping in ((0, 30.0, 0.4), (1, 15.0, 0.2)):
        plant = bench.mass(n, stiffness, damping).block(
            ["push.force.x"], motion, mode="internal", substeps=4
        )
        if fmus:
            path = internal_solver_fmu(folder / f"{'ab'[n]}.fmu", plant, period or step)
            plant = Fmu(path, period=period)
            vars(plant).update(flags or {})
        plants.append(d.add(plant, name="ab"[n]))
    laws = ("k*x2 + d*v2", "k*(x1 - x2) + d*(v1 - v2)")
    for law, plant in zip(laws, plants, strict=True):
        force = d.add(Expression(law, parameters={"k": 20.0, "d": 0.3}, unit="N"))
        for port in force.input_index:
            quantity = {"x": "displacement", "v": "speed"}[port[0]]
            d.connect(plants[int(port[1]) - 1][f"slide{dot}{quantity}"], force[port])
        d.connect(force, plant[f"push{dot}force{dot}x"])
    return d


def error(run) -> float:
    return float(np.abs([run[n][-1] for n in NAMES] - bench.exact_two_masses()).max())


@pytest.mark.parametrize("extrapolation", [1, 2])
@pytest.mark.parametrize("method", bench.METHODS)
def test_fmus_take_the_steps_of_native_blocks(tmp_path, method, extrapolation):
    native, fmus = (
        simulate(
            masses(tmp_path, 0.1, f), 1.0, coupling=method, extrapolation=extrapolation,
            coupling_tolerance=1e-4,
        )
        for f in (False, True)
    )  # fmt: skip
    a, b = (run.coupling_report().couplings[0] for run in (native, fmus))
    for count in ("communication_steps", "rejected", "exceeded", "sweeps"):
        assert a[count] == b[count], count
    assert a["communication_steps"] > 20
    assert fmus["a.slide_speed"] == pytest.approx(native["a.slide.speed"], abs=1e-9)


def test_errors_of_fmus_follow_the_tolerance(tmp_path):
    """Against the closed form."""
    errors = [
        error(simulate(masses(tmp_path, 0.1, extrapolation=1), 4.0, coupling_tolerance=tolerance))
        for tolerance in (1e-2, 1e-4)
    ]
    assert errors[0] < 1e-2 and errors[1] < 1e-4
    assert np.log10(errors[0] / errors[1]) / 2 == pytest.approx(1.0, abs=0.4)


def test_a_period_of_several_ticks_is_divided(tmp_path):
    """As a base step of that length."""
    slow = simulate(
        masses(tmp_path, 0.01, period=0.1, extrapolation=1), 4.0, coupling_tolerance=1e-4
    )
    plain = simulate(masses(tmp_path, 0.1, extrapolation=1), 4.0, coupling_tolerance=1e-4)
    a, b = (run.coupling_report().couplings[0] for run in (slow, plain))
    assert a["steps"] == b["steps"] == 40
    assert a["communication_steps"] == b["communication_steps"]
    assert error(slow) == pytest.approx(error(plain), rel=1e-6)


@pytest.mark.parametrize("method", ["jacobi", "newton"])
def test_a_saved_state_goes_on_with_the_same_bits(tmp_path, method):
    plan = masses(
        tmp_path, 0.1, coupling=method, extrapolation=1, coupling_tolerance=1e-4
    ).compile()
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(7)
        saved = first.save()
        second.restore(saved)
        first.run(10)
        second.run(10)
        assert first.save() == second.save()
        values = first.values.copy()
        first.restore(saved)
        first.run(10)
        assert np.array_equal(values, first.values)


def test_fmus_without_rollback_use_the_error_for_the_next_step(tmp_path):
    d = masses(
        tmp_path, 0.1, flags={"can_roll_back": False}, extrapolation=1, coupling_tolerance=1e-4
    )
    run = simulate(d, 4.0)
    item = run.coupling_report().couplings[0]
    assert item["rejected"] == 0 and item["sweeps"] == item["communication_steps"] > 1000
    assert error(run) < 1e-4


def test_fmus_that_take_one_step_only_are_named(tmp_path):
    flags = {"takes_any_step": False}
    d = masses(tmp_path, 0.1, flags=flags, extrapolation=1, coupling_tolerance=1e-4)
    message = r"`a`, `b` cannot take steps of different lengths .*coupling_tolerance has no effect"
    with pytest.warns(CouplingWarning, match=message):
        run = simulate(d, 1.0)
    fixed = simulate(masses(tmp_path, 0.1, extrapolation=1), 1.0)
    assert np.array_equal(run["a.slide_speed"], fixed["a.slide_speed"])
    d = masses(tmp_path, 0.1, flags=flags, extrapolation=1)
    d.couple("a", "b", coupling_tolerance=1e-4)
    with pytest.raises(DiagramError, match=r"coupling_tolerance cannot be used: remove it from"):
        d.compile()


ANY_STEP = f'{STATES} canInterpolateInputs="true" canHandleVariableCommunicationStepSize="true"'


def test_a_pair_of_another_tools_fmus_follows_its_closed_form(tmp_path):
    """b = sin t, a = cos t - 1; the specimen is a C FMU that is exact for polynomials."""
    path = make_specimen(tmp_path / "s.fmu", xml=description(ANY_STEP))
    for method in bench.METHODS:
        run = simulate(
            pair(path), 2.0, step=0.25, coupling=method, extrapolation=2, coupling_tolerance=1e-5
        )
        assert run["b.s"] == pytest.approx(np.sin(run.t), abs=1e-5), method
        assert run["a.s"] == pytest.approx(np.cos(run.t) - 1, abs=1e-5), method


@pytest.mark.parametrize("method", bench.METHODS)
def test_an_fmu_that_discards_long_steps_keeps_working(tmp_path, method):
    """It takes no steps above 3 ms: 10 ms are at least four quarters; its message is forgotten."""
    limits = {"parameters": {"trouble": TROUBLE["too_long"], "at": 0.003}}
    path = make_specimen(tmp_path / "any.fmu", xml=description(ANY_STEP))
    plan = pair(path, limits).compile(
        coupling=method, extrapolation=2, coupling_tolerance=1e-3
    )  # fmt: skip
    with plan.instantiate() as instance:
        instance.run(20)
        assert instance.get("coupling.a+b.rejected") > 0
        assert instance.get("coupling.a+b.communication_steps") >= 80
        assert instance.get("b.s") == pytest.approx(np.sin(0.2), abs=1e-6)
        number = next(n for n, block in enumerate(instance.plan.blocks) if block.path == "b")
        assert instance.library.bl_fmu_messages(instance.handle, number) == b""


@pytest.mark.parametrize("method", bench.METHODS)
def test_an_fmu_that_keeps_final_steps_only_takes_adaptive_ones(tmp_path, method):
    """Each accepted communication step is final: no state from before it is restored."""
    diary = tmp_path / "diary"
    paths = [
        make_specimen(tmp_path / f"{name}.fmu", xml=description(ANY_STEP), flags=flags)
        for name, flags in (("plain", ()), ("commits", ("-DCOMMITS",)))
    ]
    diagrams = pair(paths[0]), pair(paths[1], parameters={"diary": str(diary)})
    runs = [
        simulate(d, 0.5, step=0.1, coupling=method, extrapolation=1, coupling_tolerance=1e-3)
        for d in diagrams
    ]
    assert np.array_equal(runs[0]["a.s"], runs[1]["a.s"])
    steps = [line for line in diary.read_text().split("\n") if line.startswith("step")]
    assert len(steps) > 20 and {line[-1] for line in steps} == {"1"}


def test_an_fmu_that_ends_the_run_within_a_tick(tmp_path):
    path = make_specimen(tmp_path / "any.fmu", xml=description(ANY_STEP))
    ends = {"trouble": TROUBLE["ends_after"], "at": 0.25}
    run = simulate(
        pair(path, {"parameters": ends}), 1.0, step=0.1, extrapolation=1, coupling_tolerance=1e-3
    )
    assert "it requested the end of the simulation at t = 0.25" in run.info["stopped"]
    assert run.t[-1] == pytest.approx(0.2)


@pytest.mark.parametrize("options", [{"isolate": True}, {"backend": "fmpy"}], ids=["own", "fmpy"])
def test_fmus_run_elsewhere_take_the_adaptive_steps_of_the_engine(tmp_path, options):
    path = make_specimen(tmp_path / "any.fmu", xml=description(ANY_STEP))
    run = simulate(
        pair(path, options), 0.5, step=0.25, extrapolation=1, coupling_tolerance=1e-2
    )  # fmt: skip
    same = simulate(pair(path, {}), 0.5, step=0.25, extrapolation=1, coupling_tolerance=1e-2)
    items = [r.coupling_report().couplings[0] for r in (run, same)]
    for count in ("rejected", "communication_steps"):
        assert items[0][count] == items[1][count] > 0
    np.testing.assert_array_equal(run["b.s"], same["b.s"])
    assert run["b.s"] == pytest.approx(np.sin(run.t), abs=1e-2)
    fixed = make_specimen(tmp_path / "fixed.fmu", xml=description(STATES))
    with pytest.warns(CouplingWarning, match="cannot take steps of different lengths"):
        simulate(pair(fixed, options), 0.1, extrapolation=1, coupling_tolerance=1e-2)
