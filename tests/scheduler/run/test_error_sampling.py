"""The error estimate of runs: what it finds, what it costs, and that it leaves no trace."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from biella import BiellaError, BiellaWarning, Diagram, Result, System, simulate, sweep
from biella.blocks import (
    PID,
    Compare,
    Delay,
    Expression,
    Gain,
    Integrator,
    Noise,
    Relay,
    Saturation,
    Sine,
    StateSpace,
    Step,
    Stop,
    Time,
    TransferFunction,
    python_block,
)
from biella.blocks.multibody.mechanisms import slider_crank
from biella.scheduler.engine._engine import Instance
from biella.scheduler.run._error_sampling import Sampler, why_not
from biella.scheduler.run._simulate import choose_signals, make_record

MODES: list[dict[str, Any]] = [{}, {"mode": "internal"}]


def oscillator(
    step: float, frequency: float = 5.0, damping: float = 0.0, solver: str = "rk4"
) -> Diagram:
    w = 2.0 * np.pi * frequency
    d = Diagram("oscillator", step=step, solver=solver)
    A = [[0.0, 1.0], [-(w**2), -2.0 * damping * w]]
    d.add(StateSpace(A, np.zeros((2, 1)), np.eye(2), np.zeros((2, 1)), initial=[1.0, 0.0]), "x")
    d.connect(d.add(Step(at=1e9), "nothing"), "x")
    return d


def phase_error(step: float, until: float, frequency: float = 5.0) -> float:
    """Return the largest error of rk4, relative to the range: from its factor R(iωh)."""
    z = 2j * np.pi * frequency * step
    factor = 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24
    ticks = np.arange(round(until / step) + 1)
    return float(np.abs((factor**ticks - np.exp(z * ticks)).real).max()) / 2.0


def double_pendulum() -> System:
    s = System("double pendulum", (0, -9.81), planar=True)
    upper = s.body("upper", mass=1.0, inertia=0.01, position=(0.5, 0.0))
    lower = s.body("lower", mass=1.0, inertia=0.01, position=(1.5, 0.0))
    s.revolute("shoulder", s.ground.marker("o", (0, 0)), upper.marker("top", (-0.5, 0)))
    s.revolute("elbow", upper.marker("end", (0.5, 0)), lower.marker("top", (-0.5, 0)))
    return s


def mechanism(system: System, outputs: list[str], step: float, **mode: Any) -> Diagram:
    d = Diagram(system.name, step=step)
    d.add(system.block([], outputs, **mode), "plant")
    return d


def estimated(diagram: Diagram, until: float) -> tuple[Result, list[str]]:
    """Run a diagram; return its result, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BiellaWarning)
        result = simulate(diagram, until)
    return result, [str(item.message) for item in caught]


@pytest.mark.parametrize(("step", "until"), [(5e-3, 2.0), (5e-3, 20.0), (1e-3, 20.0), (20e-3, 2.0)])
def test_the_phase_error_of_an_oscillator_is_known(step, until):
    """Within 10 %: errors add up in phase, and windows stand for all ticks alike.

    The larger half of the tolerance is for the peaks of 48 windows: a sine is within 5 % of its
    largest value at one of six.
    """
    result, _ = estimated(oscillator(step), until)
    assert result.error_estimate is not None
    found = max(result.error_estimate.signals.values())
    assert found == pytest.approx(phase_error(step, until), rel=0.1)


def test_an_oscillator_of_5_hz_at_20_ms_warns_with_the_step_that_suffices():
    result, messages = estimated(oscillator(20e-3), 2.0)
    assert len(messages) == 1
    assert messages[0].startswith("the estimated error of `x.y` is 0.04 of its range: step=0.00")
    assert messages[0].endswith("would suffice, or solver='dopri5', tolerance=1e-6.")
    assert result.error_estimate is not None
    step = result.error_estimate.step
    assert phase_error(step, 2.0) < 1e-3
    assert simulate(oscillator(step), 2.0).error_estimate is not None


@pytest.mark.parametrize("mode", MODES, ids=["continuous", "internal"])
@pytest.mark.parametrize("step", [20e-3, 50e-3])
@pytest.mark.parametrize("until", [5.0, 20.0])
def test_a_double_pendulum_at_20_and_50_ms_warns(step, until, mode):
    _, messages = estimated(
        mechanism(double_pendulum(), ["shoulder.angle", "elbow.angle"], step, **mode), until
    )
    assert len(messages) == 1
    assert "`plant.shoulder.angle`" in messages[0]
    assert "of the energy of `plant` is " in messages[0]


@pytest.mark.parametrize("mode", MODES, ids=["continuous", "internal"])
def test_oldanis_slider_crank_at_10_ms_warns_with_the_step_that_suffices(mode):
    """Of 5 s, as in the thesis: the angle is wrong by 0.05 rad, the slider by 4 % of its path."""
    outputs = ["main.angle", "slide.displacement"]

    def crank(step: float) -> Diagram:
        return mechanism(slider_crank(drive="as listed", planar=True), outputs, step, **mode)

    result, messages = estimated(crank(1e-2), 5.0)
    assert len(messages) == 1 and "`plant.slide.displacement` is 0.04" in messages[0]
    estimate = result.error_estimate
    assert estimate is not None
    fine = simulate(crank(1e-3), 5.0, every=10)
    enough = simulate(crank(estimate.step), 5.0, every=round(1e-2 / estimate.step))
    for path in estimate.signals:
        size = np.ptp(fine[path])
        assert np.abs(result[path] - fine[path]).max() / size == pytest.approx(
            estimate.signals[path], rel=0.1
        )
        assert np.abs(enough[path] - fine[path]).max() / size < 1e-3


@pytest.mark.parametrize("solver", ["trapezoidal", "heun", "radau5", "backward_euler", "dopri5"])
def test_every_order(solver):
    """Halving the step of the whole run finds its error within a third, for each order."""
    step = {"radau5": 20e-3, "dopri5": 20e-3}.get(solver, 2.5e-3)
    result, _ = estimated(oscillator(step, damping=0.05, solver=solver), 100 * step)
    fine = simulate(oscillator(step / 10, damping=0.05), 100 * step, every=10)
    true = (np.abs(result["x"] - fine["x"]).max(axis=0) / np.ptp(fine["x"], axis=0)).max()
    assert result.error_estimate is not None
    assert result.error_estimate.signals["x.y"] == pytest.approx(true, rel=0.34)


def test_a_damped_motion_forgets_its_errors():
    """Driven for 45 time constants of 0.22 s: the estimate is not that of the sum, 30 times it."""

    def forced(step: float) -> Diagram:
        d = Diagram("forced", step=step)
        d.add(TransferFunction([1.0], [1e-3, 2 * 0.1 * 0.0316, 1.0]), "x")
        d.connect(d.add(Sine(frequency=3.2), "force"), "x")
        return d

    result, messages = estimated(forced(5e-3), 10.0)
    fine = simulate(forced(5e-4), 10.0, every=10)
    true = np.abs(result["x"] - fine["x"]).max() / np.ptp(fine["x"])
    assert result.error_estimate is not None and not messages
    assert true / 3 < result.error_estimate.signals["x.y"] < 5 * true


def busy() -> Diagram:
    """Return a diagram with whatever might leave a trace: noise, delays, events, samples, loops."""
    d = Diagram("busy", step=1e-3)
    noise = d.add(Noise(std=0.1, seed=3), "noise", period=2e-3)
    plant = d.add(TransferFunction([1.0], [0.01, 0.1, 1.0]), "plant")
    pid = d.add(PID(kp=2.0, ki=4.0, period=5e-3), "pid", reference=noise, measurement=plant)
    d.chain(pid, d.add(Saturation(-0.5, 0.5), "limit"), d.add(Delay(13), "late"), plant)
    x = d.add(Integrator(0.3), "x")
    d.chain(x, d.add(Relay(on=0.2, off=-0.2, high=-1.0, low=1.0), "relay"), x)
    crank = slider_crank(planar=True).block(
        [], ["main.angle", "closure", "converged"], mode="internal"
    )
    d.add(crank, "crank")
    d.add(slider_crank(planar=True).block([], ["main.angle"]), "free")
    return d


@pytest.mark.parametrize("until", [0.4, 3.0])
@pytest.mark.parametrize("solver", ["rk4", "trapezoidal"])
def test_results_and_states_are_the_same_to_the_bit(until, solver):
    runs = [
        simulate(busy(), until, solver=solver, error_estimate=estimate)
        for estimate in (False, True)
    ]
    assert runs[0].error_estimate is None and runs[1].error_estimate is not None
    assert runs[1].error_estimate.windows >= 36
    assert runs[0].checkpoint == runs[1].checkpoint
    for path in runs[0]:
        assert np.array_equal(runs[0][path], runs[1][path])


def test_a_run_in_chunks_is_compared_at_the_same_ticks():
    """And a record that is full between two windows loses no row."""
    plan = busy().compile()
    ports = choose_signals(plan, ["*"])
    found = []
    for chunks in ([1500], [1, 2, 97, 400, 1000]):
        with Instance(plan) as instance:
            instance.initialize()
            with Sampler(instance, 1500) as sampler:
                record, rows, _ = make_record(ports, 2000, 1)
                assert sum(sampler.run(chunk, record)[0] for chunk in chunks) == 1500
                found.append((sampler.finish(), rows[: record.rows].copy()))
    assert np.array_equal(found[0][1], found[1][1]) and len(found[0][1]) == 1500
    assert np.array_equal(found[0][0].deviations, found[1][0].deviations)
    assert np.array_equal(found[0][0].propagated, found[1][0].propagated)
    assert found[0][0].done.all()


def test_a_run_from_a_checkpoint_is_estimated():
    first = simulate(oscillator(5e-3), 1.0)
    again = simulate(oscillator(5e-3), 2.0, checkpoint=first.checkpoint)
    assert first.error_estimate is not None and again.error_estimate is not None
    assert again.error_estimate.signals["x.y"] == pytest.approx(
        first.error_estimate.signals["x.y"], rel=0.1
    )


def test_a_run_that_stops_early_is_estimated_up_to_there():
    d = oscillator(1e-3)
    late = d.add(Compare(">", 1.0), "late", inputs=d.add(Time(), "clock"))
    d.add(Stop(), "stop", inputs=late)
    result = simulate(d, 10.0)
    assert result.info["stopped"] and result.error_estimate is not None
    assert 0 < result.error_estimate.windows < 20


def fails_between_ticks(end: float) -> Diagram:
    """Return a diagram that has no derivative between ticks up to `end`: Euler does not notice."""
    d = Diagram("edge", step=1e-3, solver="euler")
    x = d.add(Integrator(1.0), "x")
    law = f"sqrt(cos(2*pi*1000*t) + 0.5 + {0.5 / end}*t) - x"
    d.chain(x, d.add(Expression(law, inputs=["x"]), "f"), x)
    return d


def test_a_shadow_that_fails_costs_its_window_only():
    """A quarter of the windows fail; the others are used, and the run is the same."""
    plan = fails_between_ticks(0.5).compile()
    with Instance(plan) as instance:
        instance.initialize()
        with Sampler(instance, 2000) as sampler:
            sampler.run(2000, None)
            done, failures, count = sampler.finish().done, sampler.failures, sampler.count
    assert failures == np.count_nonzero(~done) and 0.2 * count < failures < 0.3 * count
    assert not done[: failures - 1].any() and done[failures:].all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiellaWarning)
        runs = [simulate(plan, 2.0, error_estimate=on) for on in (False, True)]
    assert np.array_equal(runs[0]["x"], runs[1]["x"]) and runs[0].checkpoint == runs[1].checkpoint
    assert runs[1].error_estimate is not None
    assert runs[1].error_estimate.windows == count - failures


def test_a_shadow_of_a_whole_run_that_fails_ends_the_estimate():
    result, messages = estimated(fails_between_ticks(0.1), 0.4)
    assert result.info["ticks"] == 400 and not messages
    assert result.error_estimate is not None and result.error_estimate.windows == 0


def test_a_long_run_can_be_repeated_as_a_whole(monkeypatch):
    """A chaotic motion: the samples see 1e-5, the repetition that nothing is right."""
    diagram = mechanism(double_pendulum(), ["shoulder.angle", "elbow.angle"], 2e-3)
    with monkeypatch.context() as patch:
        patch.setattr("biella.scheduler.run._error_sampling._LARGEST_CONFIRMED", 1000)
        sampled = simulate(diagram, 20.0, error_estimate=True).error_estimate
    assert sampled is not None and not sampled.whole and sampled.largest < 1e-3
    with pytest.warns(BiellaWarning, match="the run is sensitive, deviations grow by a factor of"):
        whole = simulate(diagram, 20.0, error_estimate="whole").error_estimate
    assert whole is not None and whole.whole and whole.sensitive
    assert max(whole.signals.values()) > 0.1
    with pytest.raises(BiellaError, match="error_estimate must be True, False or 'whole'"):
        simulate(diagram, 1.0, error_estimate="all")  # type: ignore[arg-type]


def test_a_chaotic_run_with_small_local_errors_is_repeated_and_warns():
    """The samples see 6e-8; a deviation propagated along the run grows by more than 1e10."""
    diagram = mechanism(double_pendulum(), ["shoulder.angle", "elbow.angle"], 1e-3)
    result, messages = estimated(diagram, 20.0)
    assert len(messages) == 1 and "the run is sensitive" in messages[0]
    estimate = result.error_estimate
    assert estimate is not None and estimate.whole and estimate.sensitive
    assert max(estimate.signals.values()) > 0.1


def test_a_regular_run_is_not_repeated():
    """A pendulum that swings by 0.1 rad: its errors stay small, and the samples suffice."""
    system = System("pendulum", (0, -9.81), planar=True)
    position, turn = (0.5 * np.sin(0.1), -0.5 * np.cos(0.1)), 0.1 - np.pi / 2
    upper = system.body("upper", mass=1.0, inertia=0.01, position=position, rotation=turn)
    system.revolute("shoulder", system.ground.marker("o", (0, 0)), upper.marker("top", (-0.5, 0)))
    result, messages = estimated(mechanism(system, ["shoulder.angle"], 1e-3), 20.0)
    assert not messages
    assert result.error_estimate is not None and not result.error_estimate.whole


def cancels(step: float) -> Diagram:
    """Return a lightly damped oscillator, driven below resonance: its errors cancel."""
    d = Diagram("forced", step=step, solver="trapezoidal")
    d.add(TransferFunction([1.0], [1e-3, 2 * 0.1 * 0.0316, 1.0]), "x")
    d.connect(d.add(Sine(frequency=3.2), "force"), "x")
    return d


def test_a_warning_is_confirmed_by_a_repetition_of_the_run(monkeypatch):
    """Samples suggest 15 times the error, above the limit; the repetition finds the true one."""
    result, messages = estimated(cancels(1e-3), 10.0)
    fine = simulate(cancels(1.25e-4), 10.0, every=8, error_estimate=False)
    true = np.abs(result["x"] - fine["x"]).max() / np.ptp(fine["x"])
    assert result.error_estimate is not None and not messages
    assert result.error_estimate.whole
    assert result.error_estimate.signals["x.y"] == pytest.approx(true, rel=0.1)
    monkeypatch.setattr("biella.scheduler.run._error_sampling._LARGEST_CONFIRMED", 1000)
    _, messages = estimated(cancels(1e-3), 10.0)
    assert len(messages) == 1


def test_a_confirmation_starts_where_the_run_did():
    """With its parameters, and from its checkpoint: the same oscillator would be slow, or at rest.

    The amplitude of the second run is that of the end of the first, so its relative error is that
    of a run of its own.
    """
    d = Diagram("oscillator", step=5e-3)
    x, v = d.add(Integrator(0.0), "x"), d.add(Integrator(0.0), "v")
    k = d.add(Gain(-((2 * np.pi * 0.5) ** 2)), "k")
    d.chain(v, x, k, v)
    fast = {"k.k": -((2 * np.pi * 5.0) ** 2)}
    moving = simulate(d, 1.0, parameters={"v.initial": 1.0}, error_estimate=False)
    with pytest.warns(BiellaWarning, match="the estimated error"):
        later = simulate(d, 21.0, parameters=fast, checkpoint=moving.checkpoint)
    assert later.error_estimate is not None and later.error_estimate.whole
    assert later.error_estimate.largest == pytest.approx(phase_error(5e-3, 20.0), rel=0.1)


def test_what_is_not_judged_is_listed_with_the_reason():
    d = busy()
    system = double_pendulum()
    d.add(system.block([], ["shoulder.force", "shoulder.angle", "upper.acceleration"]), "double")
    estimate = simulate(d, 0.4).error_estimate
    assert estimate is not None
    force = "a force or an acceleration, which jumps with the loads"
    reasons = {
        "double.shoulder.force": force,
        "double.upper.acceleration": force,
        "limit.y": "sampled, or constant between events",
        "relay.y": "sampled, or constant between events",
        "crank.closure": "zero up to rounding",
        "crank.converged": "a flag or a count, which jumps",
    }
    assert {path: estimate.not_judged[path] for path in reasons} == reasons
    assert {"plant.y", "x.y", "double.shoulder.angle", "crank.main.angle"} <= set(estimate.signals)
    assert not set(estimate.signals) & set(estimate.not_judged)


def test_a_mechanism_at_rest_has_no_error_of_energy():
    s = System("block", (0, -9.81), planar=True)
    block = s.body("block", mass=1.0, inertia=0.01, position=(0.0, -0.5))
    s.revolute("pin", s.ground.marker("o", (0, 0)), block.marker("top", (0.0, 0.5)))
    estimate = simulate(mechanism(s, ["pin.angle"], 1e-3), 0.1).error_estimate
    assert estimate is not None and estimate.largest < 1e-9


@pytest.mark.parametrize("until", [2.0, 20.0])
def test_the_estimate_is_part_of_a_result_file(tmp_path, until):
    with pytest.warns(BiellaWarning, match="the estimated error"):
        streamed = simulate(oscillator(20e-3), until, out=tmp_path / "streamed.h5")
    with pytest.warns(BiellaWarning, match="the estimated error"):
        kept = simulate(oscillator(20e-3), until)
    kept.to_hdf5(tmp_path / "kept.h5")
    assert kept.error_estimate is not None
    for name in ("streamed", "kept"):
        read = Result.from_hdf5(tmp_path / f"{name}.h5")
        assert read.error_estimate == kept.error_estimate
        assert np.array_equal(read["x"], kept["x"]) and np.array_equal(streamed["x"], kept["x"])
    assert f"estimated error up to {kept.error_estimate.largest:.1g} of a range" in repr(read)
    assert "estimated error" not in repr(simulate(oscillator(1e-3), 1.0))


def test_what_cannot_be_repeated_is_not_estimated_and_said():
    d = oscillator(20e-3)
    d.add(python_block()(lambda u: 2.0 * u)(), "python", inputs=d.add(Sine(), "sine"))
    result, messages = estimated(d, 2.0)
    assert result.error_estimate is None and not messages
    assert result.info["error_estimate"] == "not estimated: `python` cannot be repeated"


@pytest.mark.parametrize(
    ("diagram", "until", "reason"),
    [
        (oscillator(20e-3), 0.1, "fewer than 8 ticks"),
        (Diagram("empty", step=1e-3), 1.0, "nothing is integrated"),
    ],
)
def test_reasons(diagram, until, reason):
    if not len(diagram):
        diagram.add(Sine(), "sine")
    result = simulate(diagram, until)
    assert result.error_estimate is None and reason in result.info["error_estimate"]


def test_error_control_is_not_estimated():
    plan = oscillator(20e-3, solver="dopri5").compile(tolerance=1e-6)
    assert why_not(plan, 1000) == "not estimated: the solver controls the error"


def test_it_can_be_switched_off_and_is_off_in_a_sweep():
    result = simulate(oscillator(20e-3), 2.0, error_estimate=False)
    assert result.error_estimate is None and "error_estimate" not in result.info
    assert [case.error_estimate for case in sweep(oscillator(20e-3), 2.0, [{}]).values] == [None]  # type: ignore[union-attr]
    with pytest.warns(BiellaWarning, match="the estimated error"):
        sweep(oscillator(20e-3), 2.0, [{}], error_estimate=True)


def test_a_signal_that_is_constant_up_to_rounding_does_not_warn():
    d = oscillator(1e-3, damping=0.9)
    result, messages = estimated(d, 50.0)  # at rest for 49 s
    assert not messages and result.error_estimate is not None
    still, messages = estimated(
        mechanism(double_pendulum(), ["shoulder.angle", "closure"], 1e-3), 0.3
    )
    assert not messages and "plant.closure" not in still.error_estimate.signals  # type: ignore[union-attr]


@pytest.mark.parametrize("ticks", [513, 5000, 100_000, 10_000_000])
def test_windows_are_apart_and_within_the_budget(ticks):
    """Of long runs; at least 36 windows and 12 of them followed, 204 ticks' worth, of others."""
    plan = oscillator(1e-3).compile()
    with Instance(plan) as instance:
        instance.initialize()
        with Sampler(instance, ticks) as sampler:
            lengths = 1 + np.where(np.arange(sampler.count) % sampler.every, 0, sampler.follow)
            starts = sampler._starts
            assert (starts[1:] >= (starts + lengths)[:-1]).all()
            assert starts[0] >= 0 and starts[-1] + lengths[-1] <= ticks
            worth = 3 * sampler.count + sampler.follow * sampler.followed
            assert worth <= max(0.018 * ticks, 204)


def test_the_memory_of_a_long_run_is_bounded():
    """1e12 ticks, of which a Stop block leaves ten."""
    d = Diagram("long", step=1e-3)
    x = d.add(Integrator(1.0), "x")
    d.chain(x, d.add(Gain(-1.0), "rate"), x)
    d.add(Stop(), "stop", inputs=d.add(Compare(">", 0.0095), "late", u=d.add(Time(), "t")))
    result = simulate(d, 1e9, record=["x"], every=10**9)
    assert result.info["ticks"] == 10
