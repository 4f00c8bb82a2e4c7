"""Model-exchange FMUs as continuous blocks, against closed forms and independent integrators."""

from __future__ import annotations

import numpy as np
import pytest
from exchange_models import NO_STEPS, TROUBLE, make_model
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from biella import Diagram, Fmu, Subsystem, linearize, replay, run_realtime, simulate, sweep
from biella.blocks import (
    Compare,
    Constant,
    Convert,
    Expression,
    Gain,
    Integrator,
    Pulse,
    Sine,
    Step,
    Sum,
    UnitDelay,
    ZeroOrderHold,
)
from biella.errors import BiellaError, BiellaWarning, BlockError, DiagramError, FmuError

pytestmark = pytest.mark.engine
VERSIONS = (2, 3)
SOLVERS = ("euler", "heun", "rk3", "rk4", "dopri5", "backward_euler", "trapezoidal", "radau5")


@pytest.fixture(params=VERSIONS, ids=["FMI 2.0", "FMI 3.0"])
def version(request):
    return request.param


@pytest.fixture
def model(tmp_path, version):
    """Return a function that makes an FMU of the version under test."""

    def make(name, flags="", compile_flags=()):
        return make_model(tmp_path / f"{name}.fmu", name, version, flags, compile_flags)

    return make


def bounce_times(count, g=9.81, e=0.7, h=1.0):
    """Return when a ball that falls from `h` touches the ground, in closed form."""
    first = np.sqrt(2.0 * h / g)
    flights = 2.0 * first * e ** np.arange(1, count)
    return first + np.concatenate([[0.0], np.cumsum(flights)])


def odd(model, trouble, at=0.25, **options):
    """Return a diagram with an FMU that does something odd from the time `at` on."""
    path = model("ODD")
    d = Diagram("odd", step=0.1, **options)
    d.add(Fmu(path, parameters={"trouble": TROUBLE[trouble], "at": at}), name="odd")
    return d


# -- state events


@pytest.mark.parametrize("solver", ["rk4", "dopri5"])
def test_bounces_are_located(model, solver):
    """A parabola is exact for both methods: what remains is the bracket, 1e-12 of a step."""
    tolerance = 1e-12 if solver == "dopri5" else None
    d = Diagram("ball", step=0.01, solver=solver, tolerance=tolerance)
    d.add(Fmu(model("BALL")), name="ball")
    result = simulate(d, until=1.9)
    expected = bounce_times(4)
    # After a bounce the indicator is exactly zero: leaving the ground is another event, at once.
    times = result.events.times()
    assert len(times) == 8
    np.testing.assert_allclose(times[::2], expected, atol=1e-10, rtol=0)
    np.testing.assert_allclose(times[1::2], expected, atol=1e-10, rtol=0)
    assert result["ball.bounces"][-1] == 4
    t = result.t
    flight = np.searchsorted(expected, t, side="right") - 1
    speed = 0.7 ** (flight + 1.0) * 9.81 * expected[0]
    since = t - expected[np.maximum(flight, 0)]
    height = np.where(flight < 0, 1.0 - 0.5 * 9.81 * t**2, speed * since - 0.5 * 9.81 * since**2)
    np.testing.assert_allclose(result["ball.h"], height, atol=1e-9)
    assert "event indicator 0" in str(result.events)


def test_events_at_ticks(model):
    """Without location a bounce is noticed at the next tick, at most a tick late."""
    d = Diagram("ball", step=0.001, solver="rk4", events="tick")
    d.add(Fmu(model("BALL")), name="ball")
    result = simulate(d, until=1.5)
    at = result.t[1:][np.diff(result["ball.bounces"]) > 0]
    assert len(at) == 2
    assert 0.0 <= at[0] - bounce_times(1)[0] <= 0.001 + 1e-12
    np.testing.assert_allclose(at, bounce_times(2), atol=0.005)


def test_a_tunable_parameter_is_set_in_event_mode(model):
    """The FMU rejects it anywhere else; from then on the ball falls with the new gravity."""
    d = Diagram("ball", step=0.01, solver="rk4")
    d.add(Fmu(model("BALL")), name="ball")
    with d.compile().instantiate() as run:
        run.initialize()
        run.run(10)
        h, v = run.get("ball.h"), run.get("ball.v")
        run.set("ball.g", 1.62)
        run.run(10)
        assert run.get("ball.v") == pytest.approx(v - 1.62 * 0.1, abs=1e-12)
        assert run.get("ball.h") == pytest.approx(h + v * 0.1 - 0.5 * 1.62 * 0.01, abs=1e-12)


# -- solvers


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_integrates_the_states(model, solver):
    """Van der Pol against scipy's DOP853; halving the step divides the error by 2^p."""
    orders = {"euler": 1, "backward_euler": 1, "heun": 2, "trapezoidal": 2, "rk3": 3, "rk4": 4}
    order = orders.get(solver, 5)
    path = model("OSCILLATOR")
    exact = solve_ivp(
        lambda _, x: [x[1], (1 - x[0] ** 2) * x[1] - x[0]], (0, 2), [2, 0], "DOP853",
        rtol=1e-13, atol=1e-14,
    ).y[:, -1]  # fmt: skip
    errors = []
    for step in (0.02, 0.01) if order < 5 else (0.1, 0.05):
        d = Diagram("oscillator", step=step, solver=solver)
        d.add(Fmu(path), name="fmu")
        result = simulate(d, until=2.0, error_estimate=False)
        errors.append(np.hypot(result["fmu.x0"][-1] - exact[0], result["fmu.x1"][-1] - exact[1]))
    assert errors[1] < 2e-2
    assert np.log2(errors[0] / errors[1]) > order - 0.35


@pytest.mark.parametrize("solver", ["dopri5", "radau5"])
@pytest.mark.parametrize("steps", [True, False], ids=["completed steps", "no completed steps"])
def test_error_control(model, version, solver, steps):
    path = model("OSCILLATOR", "" if steps else NO_STEPS[version])
    d = Diagram("oscillator", step=0.05, solver=solver, tolerance=1e-9)
    d.add(Fmu(path), name="fmu")
    result = simulate(d, until=10.0)
    exact = solve_ivp(
        lambda _, x: [x[1], (1 - x[0] ** 2) * x[1] - x[0]], (0, 10), [2, 0], "DOP853",
        rtol=1e-13, atol=1e-14, t_eval=result.t,
    ).y  # fmt: skip
    np.testing.assert_allclose(result["fmu.x0"], exact[0], atol=2e-7)


def test_a_stiff_fmu(model):
    """x = cos t, with a time constant of 1e-4 s, in steps of 0.05 s."""
    d = Diagram("stiff", step=0.05, solver="radau5", tolerance=1e-8)
    d.add(Fmu(model("STIFF")), name="fmu")
    result = simulate(d, until=3.0)
    np.testing.assert_allclose(result["fmu.x"], np.cos(result.t), atol=1e-7)


# -- nominal values of states


def scaled(model, declares=1.0, at=1e300, step=0.1, **options):
    """Return a diagram with states of 1e-9 and 1e6, and when the smaller ones shrink."""
    d = Diagram("scaled", step=step, **options)
    d.add(Fmu(model("SCALED"), parameters={"declares": declares, "at": at}), name="fmu")
    return d


def scaled_errors(result, at=1e300):
    """Return the largest errors of both oscillators and of c, relative to their sizes."""
    t = result.t
    size = np.where(t >= at, 1e-15, 1e-9)
    return (
        np.abs(result["fmu.a"] / size - np.cos(20 * t))[t != at].max(),
        np.abs(result["fmu.b"] / 1e6 - np.cos(t)).max(),
        np.abs(result["fmu.c"] / 1e-9 - 1 / (1 + t)).max(),
    )


@pytest.mark.parametrize("solver", ["dopri5", "radau5"])
def test_tolerances_refer_to_nominal_values(model, solver):
    """Closed forms. An absolute tolerance of 1e-9 alone does not see states of 1e-9."""
    errors = scaled_errors(simulate(scaled(model, solver=solver, tolerance=1e-6), until=5.0))
    assert max(errors) < 1e-3
    ignored = scaled(model, declares=0.0, solver=solver, tolerance=1e-6)
    assert scaled_errors(simulate(ignored, until=5.0))[0] > 0.1


@pytest.mark.parametrize("solver", ["dopri5", "radau5"])
def test_nominal_values_that_an_event_changes(model, solver):
    """From 2.05 s on the states of 1e-9 are states of 1e-15."""
    d = scaled(model, at=2.05, solver=solver, tolerance=1e-6)
    assert max(scaled_errors(simulate(d, until=5.0), 2.05)) < 1e-3


@pytest.mark.parametrize("declares", [2.0, 3.0], ids=["invalid", "discarded"])
def test_nominal_values_that_are_none_count_as_1(model, declares):
    """As if the FMU knew none: the same bits."""
    runs = [
        simulate(scaled(model, declares=what, solver="dopri5", tolerance=1e-6), until=1.0)
        for what in (declares, 0.0)
    ]
    np.testing.assert_array_equal(runs[0]["fmu.a"], runs[1]["fmu.a"])


@pytest.mark.parametrize("solver", ["backward_euler", "trapezoidal", "radau5"])
def test_differences_of_fixed_steps_refer_to_nominal_values(model, solver):
    """c' = -c^2 / 1e-9: differences of 1e-7 show another slope, with which Newton fails."""
    d = scaled(model, step=0.01, solver=solver)
    bounds = {"backward_euler": 1e-2, "trapezoidal": 1e-4, "radau5": 1e-8}
    result = simulate(d, until=1.0, error_estimate=False)
    assert scaled_errors(result)[2] < bounds[solver]


def test_linearize_refers_to_nominal_values(model):
    """d(c')/dc = -2 c / 1e-9."""
    found = linearize(scaled(model))
    place = found.states.index("fmu.c")
    assert found.A[place, place] == pytest.approx(-2.0, rel=1e-6)


# -- time events


@pytest.mark.parametrize("step", [0.05, 0.07, 0.01])
def test_a_sampled_fmu_has_time_events(model, step):
    """Its sample times are no multiples of the step: the integral of y changes slope within ticks.

    y is u at the last sample; its integral is a sum over the samples. The FMU compares times
    exactly, so that a time that is only rounded would skip a sample.
    """
    d = Diagram("sampler", step=step, solver="rk4")
    source = d.add(Sine(amplitude=1.0, frequency=0.5), name="source")
    d.add(Fmu(model("SAMPLER"), outputs=["y", "count"]), name="fmu")
    d.add(Integrator(), name="integral")
    d.connect(source, d["fmu"]["u"])
    d.connect(d["fmu"]["y"], d["integral"])
    until = 2.1
    result = simulate(d, until=until)
    samples = 0.07 * np.arange(31)
    values = np.sin(np.pi * samples)
    lengths = np.clip(result.t[:, None] - samples, 0.0, 0.07)
    np.testing.assert_allclose(result["integral"], lengths @ values, atol=1e-9)
    assert result["fmu.count"][-1] == 31


def test_time_events_at_ticks(model):
    """A sample at a tick shows in the outputs of that tick."""
    d = Diagram("sampler", step=0.07, solver="rk4")
    source = d.add(Sine(amplitude=1.0, frequency=0.5), name="source")
    d.add(Fmu(model("SAMPLER")), name="fmu")
    d.connect(source, d["fmu"]["u"])
    result = simulate(d, until=1.4)
    np.testing.assert_allclose(result["fmu.y"], np.sin(np.pi * result.t), atol=1e-12)
    np.testing.assert_array_equal(result["fmu.count"], np.arange(21) + 1)


# -- several FMUs


@pytest.mark.parametrize("derivatives", [True, False])
def test_two_fmus_in_an_algebraic_loop(model, version, derivatives):
    """y1 = x1 + k1 y2, y2 = x2 + k2 y1: the loop is linear, and the states follow exp(A t)."""
    name = "providesDirectionalDerivative" + ("s" if version == 3 else "")
    path = model("LAG", f'{name}="true"' if derivatives else "")
    d = Diagram("loop", step=0.02, solver="dopri5", tolerance=1e-11, algebraic_loops="solve")
    d.add(Fmu(path, parameters={"k": 0.5}), name="a")
    d.add(Fmu(path, parameters={"k": -0.8, "x": 0.25}), name="b")
    d.connect(d["a"]["y"], d["b"]["u"])
    d.connect(d["b"]["y"], d["a"]["u"])
    result = simulate(d, until=2.0)
    k1, k2 = 0.5, -0.8
    outputs = np.linalg.inv([[1.0, -k1], [-k2, 1.0]])  # y = outputs x
    a = outputs[::-1] - np.eye(2)  # x1' = y2 - x1, x2' = y1 - x2
    states = np.array([expm(a * t) @ [1.0, 0.25] for t in result.t])
    np.testing.assert_allclose(result["a.y"], states @ outputs[0], atol=1e-9)
    np.testing.assert_allclose(result["b.y"], states @ outputs[1], atol=1e-9)


def test_events_trigger_events_at_the_same_instant(model):
    """`a` reaches its level at 0.3137, 0.6274, …; then `b` starts again.

    b alone would reach its level 1 after 1 s, and never does: x_b = t mod 0.3137, as x_a is.
    """
    path = model("CHAIN")
    d = Diagram("chain", step=0.04, solver="rk4")
    d.add(Fmu(path, parameters={"level": 0.3137}), name="a")
    d.add(Fmu(path), name="b")
    d.add(Fmu(path, parameters={"level": 5.0}), name="c")
    d.connect(d["a"]["out"], d["b"]["in"])
    d.connect(d["b"]["out"], d["c"]["in"])
    result = simulate(d, until=2.0)
    np.testing.assert_allclose(result.events.times(), 0.3137 * np.arange(1, 7), atol=1e-10)
    expected = np.mod(result.t, 0.3137)
    for block in "abc":
        np.testing.assert_allclose(result[f"{block}.x"], expected, atol=1e-9)
        assert result[f"{block}.count"][-1] == 6


def test_events_that_trigger_each_other_without_end(model):
    """a = !b and b = a at one instant: no iteration of events can settle it."""
    path = model("CHAIN")
    d = Diagram("chain", step=0.04, solver="rk4")
    d.add(Fmu(path, parameters={"level": 0.3, "passes": True}), name="a")
    d.add(Fmu(path, parameters={"level": 9.0}), name="b")
    d.connect(d["a"]["out"], d["b"]["in"])
    d.connect(d["b"]["out"], d["a"]["in"])
    with pytest.raises(BlockError, match=r"`a`.*CHAIN\.fmu.* events at t = 0\.3.* do not end"):
        simulate(d, until=1.0)


def test_a_discrete_input_changes_at_a_tick(model):
    """The FMU rejects discrete inputs outside of event mode. x starts again where `in` changes."""
    d = Diagram("discrete", step=0.1, solver="rk4")
    d.add(Fmu(model("CHAIN"), parameters={"level": 9.0}), name="fmu")
    d.add(Pulse(period=1.0), name="pulse")
    d.add(ZeroOrderHold(), name="hold", period=0.1)
    d.add(Convert("boolean"), name="as boolean")
    d.connect(d["pulse"], d["hold"])
    d.connect(d["hold"], d["as boolean"])
    d.connect(d["as boolean"], d["fmu"]["in"])
    result = simulate(d, until=2.0)
    changes = np.flatnonzero(np.diff(result["as boolean"])) + 1
    assert len(changes) >= 3
    last = np.array([max([0, *changes[changes <= k]]) for k in range(len(result.t))])
    np.testing.assert_allclose(result["fmu.x"], result.t - result.t[last], atol=1e-9)


def test_a_discrete_input_changes_between_ticks(model):
    """A Step at 0.123 s is an instant of the engine; the event of the FMU is there, too."""
    d = Diagram("discrete", step=0.1, solver="rk4")
    d.add(Fmu(model("CHAIN"), parameters={"level": 9.0}), name="fmu")
    d.add(Step(at=0.123, to=1.0, kind="boolean"), name="step")
    d.connect(d["step"], d["fmu"]["in"])
    result = simulate(d, until=0.5)
    assert result["fmu.x"][-1] == pytest.approx(0.5 - 0.123, abs=1e-9)
    assert result["fmu.count"][-1] == 1


def test_an_event_where_a_run_stops_within_a_tick_triggers_one_of_the_fmu(model):
    """An input that is set at 0.05 s resets an integrator, and with it the input of the FMU."""
    d = Diagram("stop", step=0.1, solver="rk4")
    d.add(Fmu(model("CHAIN"), parameters={"level": 9.0}), name="fmu")
    d.add(Constant(1.0), name="one")
    d.add(Integrator(reset="rising", state_port=True), name="timer")
    d.add(Compare(">", 0.02), name="late")
    d.connect(d.input("restart"), d["timer"]["reset"])
    d.connect(d["one"], d["timer"][d["timer"].inputs[0].name])
    d.connect(d["timer"]["state"], d["late"])
    d.connect(d["late"], d["fmu"]["in"])
    with d.compile().instantiate() as instance:
        instance.run_to(0.05)
        assert instance.get("fmu.x") == pytest.approx(0.03, abs=1e-9)
        instance.set("restart", 1.0)
        instance.run_to(0.06)
        instance.evaluate()
        assert instance.get("fmu.x") == pytest.approx(0.01, abs=1e-9)  # since the reset
        instance.run_to(0.5)
        instance.evaluate()
        assert instance.get("fmu.x") == pytest.approx(0.43, abs=1e-9)  # since 0.05 s + 0.02 s
        assert instance.get("fmu.count") == 3
        _, unlocated, _ = instance.event_counts
        assert unlocated == 0


def test_an_fmu_drives_native_blocks(model):
    """A sampled controller around the lag: x' = u - x with u held between ticks, in closed form."""
    d = Diagram("control", step=0.1, solver="rk4", algebraic_loops="solve")
    d.add(Fmu(model("LAG"), parameters={"k": 0.0}), name="lag")
    d.add(Sum("+-"), name="error")
    d.add(Constant(2.0), name="set")
    d.add(Gain(0.5), name="gain")
    d.add(UnitDelay(), name="delay", period=0.1)
    d.connect(d["set"], d["error"][d["error"].inputs[0].name])
    d.connect(d["lag"]["y"], d["error"][d["error"].inputs[1].name])
    d.connect(d["error"], d["gain"])
    d.connect(d["gain"], d["delay"])
    d.connect(d["delay"], d["lag"]["u"])
    result = simulate(d, until=1.0)
    x, u, decay = 1.0, 0.0, np.exp(-0.1)
    expected = []
    for _ in result.t:
        expected.append(x)
        x, u = u + (x - u) * decay, 0.5 * (2.0 - x)
    np.testing.assert_allclose(result["lag.y"], expected, atol=1e-7)


# -- the end of steps


def recorded(model, step=0.1, period=1e300, **options):
    """Return a diagram in which the input of the FMU grows as exp(t)."""
    d = Diagram("steps", step=step, **options)
    d.add(Integrator(1.0), name="v")
    d.connect(d["v"], d["v"])
    d.add(Fmu(model("RECORDER"), parameters={"period": period}), name="fmu")
    d.connect(d["v"], d["fmu"]["u"])
    return d


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_completed_step_has_its_time_its_states_and_its_inputs(model, solver):
    """Those of the tick where it ends, to the bit: not those of the last stage."""
    result = simulate(recorded(model, solver=solver), until=1.0, error_estimate=False)
    np.testing.assert_array_equal(result["fmu.steps"], np.arange(11))
    np.testing.assert_array_equal(result["fmu.at"][1:], result.t[1:])
    np.testing.assert_array_equal(result["fmu.last_u"][1:], result["v"][1:])
    np.testing.assert_array_equal(result["fmu.last_x"][1:], result["fmu.x"][1:])


@pytest.mark.parametrize("tolerance", [None, 1e-8])
@pytest.mark.parametrize("period", [0.1, 0.37])
def test_a_step_is_completed_once_where_an_event_is_at_its_end(model, period, tolerance):
    """Time events at every tick, and beside them."""
    solver = "dopri5" if tolerance else "rk4"
    d = recorded(model, period=period, solver=solver, tolerance=tolerance)
    result = simulate(d, until=1.0)
    assert result["fmu.repeats"][-1] == 0
    np.testing.assert_array_equal(result["fmu.at"][1:], result.t[1:])
    np.testing.assert_array_equal(result["fmu.last_u"][1:], result["v"][1:])
    if tolerance is None:
        assert result["fmu.steps"][-1] == 10 + (2 if period == 0.37 else 0)


def test_a_step_event_completes_its_step_once(model):
    d = odd(model, "step_events")
    result = simulate(d, until=1.0)
    assert result["odd.count"][-1] == 9  # at the start, and at each tick from 0.3 s on


def coupled_steps(model, tmp_path, method, flags=""):
    """Return a loop of a co-simulation FMU with a state of the diagram, beside the recorder."""
    from specimen import make_specimen

    d = Diagram("coupled", step=0.1, solver="rk4", algebraic_loops="solve")
    d.add(Fmu(make_specimen(tmp_path / "s.fmu"), inputs=["u"], outputs=["y"]), name="slave")
    d.add(Fmu(model("RECORDER", flags)), name="fmu")
    d.connect(d["slave"]["y"], d["fmu"]["u"])
    back = d.add(Expression("1 - 0.5*x", unit="m"), "back", x=d["fmu"]["x"])
    d.connect(back, d["slave"]["u"])
    d.couple("slave", method=method, extrapolation=1)
    return d


@pytest.mark.parametrize("method", ["fixed-point", "newton"])
def test_completed_steps_are_rolled_back(model, tmp_path, method):
    """The sweeps of an iterated coupling are not seen: one step is completed in each tick."""
    result = simulate(coupled_steps(model, tmp_path, method), until=1.0)
    assert result["coupling.states+slave.iterations"].max() > 1
    np.testing.assert_array_equal(result["fmu.steps"], np.arange(11))
    np.testing.assert_array_equal(result["fmu.last_x"][1:], result["fmu.x"][1:])
    assert result["fmu.repeats"][-1] == 0


def test_an_fmu_that_cannot_take_back_a_completed_step_is_refused(model, tmp_path, version):
    flags = 'needsCompletedIntegratorStep="true"' if version == 3 else " "
    with pytest.raises(DiagramError, match="`fmu` cannot repeat a step"):
        simulate(coupled_steps(model, tmp_path, "newton", flags), until=1.0)
    simulate(coupled_steps(model, tmp_path, "gauss-seidel", flags), until=1.0)
    simulate(coupled_steps(model, tmp_path, "newton", NO_STEPS[version]), until=1.0)


# -- the error estimate of fixed steps


SAVES_NOT = " "
"""Flags of an FMU that cannot save its state."""


def estimated(path, step, until, native=False):
    """Return a run of van der Pol's oscillator with rk4, of an FMU or of native blocks."""
    d = Diagram("oscillator", step=step, solver="rk4")
    if native:
        d.add(Integrator(2.0), name="x0")
        d.add(Integrator(0.0), name="x1")
        d.add(Expression("(1 - x*x)*v - x"), "slope", x=d["x0"], v=d["x1"])
        d.connect(d["x1"], d["x0"])
        d.connect(d["slope"], d["x1"])
    else:
        d.add(Fmu(path), name="fmu")
    return simulate(d, until=until), simulate(d, until=until, error_estimate=False)


@pytest.mark.parametrize("until", [20.0, 60.0], ids=["whole", "sampled"])
@pytest.mark.parametrize("saves", [True, False], ids=["saves", "cannot save"])
def test_the_error_of_fixed_steps_is_estimated(model, version, saves, until):
    """As that of the same equations in native blocks, and the run is that without an estimate."""
    flags = "" if saves else SAVES_NOT if version == 3 else NO_STEPS[version]
    result, plain = estimated(model("OSCILLATOR", flags), 0.05, until)
    for name in ("fmu.x0", "fmu.x1"):
        np.testing.assert_array_equal(result[name], plain[name])
    native, _ = estimated(None, 0.05, until, native=True)
    assert result.error_estimate.whole == (until == 20.0)
    for rows in ("deviations", "halfway", "propagated"):  # of the states, the last columns
        found, expected = (getattr(r.error_samples, rows)[:, -2:] for r in (result, native))
        assert np.abs(expected).max(initial=0.0) > 0.0 or not expected.size
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_an_estimate_takes_events_back(model):
    """The events of the half steps change the FMU; the run has the bits of one without estimate.

    With Euler's method of step h and gravity g a fall is late by about h / 2: a bounce at a speed
    of sqrt(2 g) is off by h sqrt(2 g) / 2 of a range of 1.
    """
    path = model("BALL")
    d = Diagram("ball", step=0.002, solver="euler")
    d.add(Fmu(path), name="ball")
    with pytest.warns(BiellaWarning, match="estimated error of"):
        result = simulate(d, until=1.8)
    plain = simulate(d, until=1.8, error_estimate=False)
    for name in ("ball.h", "ball.v", "ball.bounces"):
        np.testing.assert_array_equal(result[name], plain[name])
    assert result.error_estimate is not None
    assert "ball.bounces" in result.error_estimate.not_judged
    exact = simulate(ball(path, "rk4"), until=1.8)["ball.h"]
    error = np.abs(plain["ball.h"] - exact).max() / np.ptp(exact)
    assert result.error_estimate.signals["ball.h"] == pytest.approx(error, rel=0.2)


def ball(path, solver):
    """Return a diagram of a bouncing ball."""
    d = Diagram("ball", step=0.002, solver=solver)
    d.add(Fmu(path), name="ball")
    return d


def test_events_of_an_fmu_that_cannot_save_are_excluded_by_name(model, version):
    flags = SAVES_NOT if version == 3 else NO_STEPS[version]
    d = ball(model("BALL", flags), "rk4")
    result = simulate(d, until=1.8)
    plain = simulate(d, until=1.8, error_estimate=False)
    np.testing.assert_array_equal(result["ball.h"], plain["ball.h"])
    assert result.error_estimate is not None
    reason = result.error_estimate.not_judged["ball"]
    assert "cannot save its state" in reason and "windows" in reason


def test_an_estimate_that_is_impossible_says_why(model, version):
    """It cannot save its state, which CompletedIntegratorStep changes; or each tick has events."""
    flags = 'needsCompletedIntegratorStep="true"' if version == 3 else SAVES_NOT
    result = simulate(ball(model("BALL", flags), "rk4"), until=0.2)
    assert result.error_estimate is None
    assert "`ball` cannot be repeated" in result.info["error_estimate"]
    flags = SAVES_NOT if version == 3 else NO_STEPS[version]
    d = Diagram("sampler", step=0.07, solver="rk4")
    d.add(Fmu(model("SAMPLER", flags), inputs=["u"], outputs=["y"]), name="fmu")
    d.add(Integrator(1.0), name="x")
    d.connect(d["x"], d["x"])
    d.connect(d["x"], d["fmu"]["u"])
    result = simulate(d, until=1.4)
    assert result.error_estimate is None
    assert "its events" in result.info["error_estimate"]


# -- runs


def test_linearize(model):
    d = Diagram("lag", step=0.1)
    d.add(Fmu(model("LAG")), name="lag")
    d.connect(d.input("u"), d["lag"]["u"])
    d.output("y", d["lag"]["y"])
    found = linearize(d)
    assert found.states == ("lag.x",)
    for matrix, value in zip((found.A, found.B, found.C, found.D), (-1, 1, 1, 0.5), strict=True):
        assert matrix[0, 0] == pytest.approx(value, abs=1e-8)


def test_save_and_restore(model):
    """A state that is saved between two bounces leads to the same bits."""
    d = Diagram("ball", step=0.01, solver="dopri5", tolerance=1e-8)
    d.add(Fmu(model("BALL")), name="ball")
    with d.compile().instantiate() as run:
        run.initialize()
        run.run(60)
        state = run.save()
        run.run(60)
        first = run.values.copy()
        run.restore(state)
        run.run(60)
        np.testing.assert_array_equal(run.values, first)
        assert run.get("ball.bounces") == 2
    with d.compile().instantiate() as other:
        other.initialize()
        other.restore(state)
        other.run(60)
        np.testing.assert_array_equal(other.values, first)


def test_sweep(model):
    """The number of bounces in 2 s grows with the restitution, in closed form."""
    d = Diagram("ball", step=0.01, solver="rk4")
    d.add(Fmu(model("BALL"), parameters={"e": 0.5}), name="ball")
    cases = [0.3, 0.5, 0.7, 0.9]
    found = sweep(d, 2.0, {"ball.e": cases}, lambda r: r["ball.bounces"][-1])
    expected = [int(np.sum(bounce_times(20, e=e) <= 2.0)) for e in cases[2:]]
    np.testing.assert_array_equal(found.array()[2:], expected)


def test_real_time_and_replay(model):
    """A real-time run with an FMU gives the numbers of a simulation, and so does its replay."""
    d = Diagram("ball", step=0.01, solver="rk4")
    d.add(Fmu(model("BALL")), name="ball")
    live = run_realtime(d, 0.7).wait()
    expected = simulate(d, 0.7)
    for name in ("ball.h", "ball.bounces"):
        np.testing.assert_array_equal(live[name], expected[name])
    repeated = replay(live, d)
    np.testing.assert_array_equal(repeated["ball.h"], live["ball.h"])
    with pytest.raises(BiellaError, match="pass its diagram"):
        replay(live)


def test_an_exported_fmu_cannot_contain_it(model, tmp_path):
    d = Diagram("ball", step=0.01)
    d.add(Fmu(model("BALL")), name="ball")
    with pytest.raises(BiellaError, match="external FMU"):
        d.export_fmu(tmp_path / "exported.fmu")


def test_a_state_that_cannot_be_saved(model, version):
    path = model("BALL", NO_STEPS[version])
    d = Diagram("ball", step=0.01)
    d.add(Fmu(path), name="ball")
    with d.compile().instantiate() as run:
        run.initialize()
        run.run(10)
        with pytest.raises(BiellaError, match=r"BALL\.fmu.*cannot save its state"):
            run.save()


def test_an_enabled_subsystem_holds_the_states(model):
    inner = Diagram("inner", step=0.1)
    inner.add(Fmu(model("OSCILLATOR"), outputs=["x0"]), name="fmu")
    inner.output("x0", inner["fmu"]["x0"])
    d = Diagram("outer", step=0.1, solver="rk4")
    d.add(Step(at=0.5, to=0.0, before=1.0, kind="boolean"), name="on")
    d.add(Subsystem(inner, enable=True), name="part")
    d.connect(d["on"], d["part"]["enable"])
    result = simulate(d, until=1.0)
    assert np.ptp(result["part.x0"][:5]) > 1e-3
    assert np.ptp(result["part.x0"][6:]) == 0.0


@pytest.mark.parametrize("options", [{"enable": True, "states": "reset"}, {"reset": "rising"}])
def test_a_subsystem_that_restarts_is_refused(model, options):
    inner = Diagram("inner", step=0.1)
    inner.add(Fmu(model("OSCILLATOR"), outputs=["x0"]), name="fmu")
    inner.output("x0", inner["fmu"]["x0"])
    d = Diagram("outer", step=0.1, solver="rk4")
    d.add(Constant(1.0), name="on")
    d.add(Subsystem(inner, **options), name="part")
    d.connect(d["on"], d["part"]["reset" if "reset" in options else "enable"])
    with pytest.raises(DiagramError, match="enable=True and states='held' can contain it"):
        d.compile()


# -- odd FMUs


def test_a_next_event_time_in_the_past(model):
    with pytest.raises(BlockError, match=r"ODD\.fmu.*do not end.*next event time.*-0\.2|0\.25"):
        simulate(odd(model, "past"), until=1.0)


def test_a_next_event_time_that_is_no_number(model, version):
    name = "fmi3UpdateDiscreteStates" if version == 3 else "fmi2NewDiscreteStates"
    with pytest.raises(BlockError, match=rf"ODD\.fmu.*{name} returned nextEventTime = NaN"):
        simulate(odd(model, "no_number"), until=1.0)


def test_an_event_iteration_without_end(model, version):
    name = "fmi3UpdateDiscreteStates" if version == 3 else "fmi2NewDiscreteStates"
    with pytest.raises(BlockError, match=rf"ODD\.fmu.*does not end: {name}"):
        simulate(odd(model, "endless"), until=1.0)


@pytest.mark.parametrize("at", [0.25, 0.3])
def test_an_fmu_ends_the_run(model, at):
    result = simulate(odd(model, "ends", at), until=1.0)
    assert "it requested the end of the simulation" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.2 if at == 0.25 else 0.3)


def test_an_fmu_ends_the_run_after_a_step(model):
    result = simulate(odd(model, "step_ends", 0.3), until=1.0)
    assert "it requested the end of the simulation" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.3)


@pytest.mark.parametrize("options", [{}, {"solver": "dopri5", "tolerance": 1e-6}])
def test_events_that_completed_steps_request(model, options):
    """It requests events until it has had ten."""
    result = simulate(odd(model, "step_events", 0.0, **options), until=3.0)
    assert result["odd.count"][-1] == 10
    np.testing.assert_allclose(result["odd.x"], result.t, atol=1e-12)


def test_an_indicator_that_is_always_zero(model):
    """Zero belongs to one domain with negative values: there is no event."""
    result = simulate(odd(model, "zero"), until=1.0)
    assert result["odd.count"][-1] == 1
    assert len(result.events.times()) == 0


def test_states_that_the_fmu_discards(model, version):
    """Every step beyond the border is discarded, however short; the FMU is named."""
    for options in ({}, {"solver": "dopri5", "tolerance": 1e-6}):
        name = f"fmi{version}SetContinuousStates returned fmi{version}Discard"
        with pytest.raises(BlockError, match=rf"ODD\.fmu.*{name}"):
            simulate(odd(model, "discards", **options), until=1.0)


@pytest.mark.parametrize("trouble", ["states_error", "update_error"])
def test_errors_of_the_fmu(model, version, trouble):
    with pytest.raises(BlockError, match=rf"ODD\.fmu.*returned fmi{version}Error at t = 0\.[23]"):
        simulate(odd(model, trouble), until=1.0)


def test_counts_that_differ_from_the_description(tmp_path):
    path = make_model(tmp_path / "BALL.fmu", "BALL", 3, compile_flags=("-DMORE_INDICATORS",))
    d = Diagram("ball", step=0.1)
    d.add(Fmu(path), name="ball")
    with pytest.raises(BlockError, match=r"GetNumberOfEventIndicators returned 2, but .* 1"):
        simulate(d, until=1.0)


# -- options


def test_options_of_co_simulation_are_refused(model):
    path = model("BALL")
    with pytest.raises(DiagramError, match="`period` is an option of co-simulation"):
        Fmu(path, period=0.1)
    with pytest.raises(DiagramError, match="`substeps` is an option of co-simulation"):
        Fmu(path, substeps=2)
    with pytest.raises(FmuError, match=r"does not support co-simulation.*kind='me'"):
        Fmu(path, kind="cs")
