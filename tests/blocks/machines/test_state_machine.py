"""`StateMachine` against a plain Python oracle, sample by sample."""

import contextlib
import copy
import itertools
import random
import time

import numpy as np
import pytest
from machine_oracle import Oracle
from random_machines import make_machine

from biella import BlockError, Diagram, DiagramError, Subsystem, replay, run_realtime, simulate
from biella.blocks import Compare, Expression, Integrator, Playback, Port, Pulse, StateMachine

pytestmark = pytest.mark.engine
STEP = 0.1


def drive(machine: StateMachine, signals: dict[str, np.ndarray]) -> Diagram:
    """Return a diagram that plays samples to the inputs of a machine, one at each tick."""
    d = Diagram("machine", step=STEP)
    block = d.add(machine, "machine")
    times = STEP * np.arange(len(next(iter(signals.values()))))
    for port in machine.inputs:
        played = d.add(Playback(times, signals[port.name], interpolation="hold"), f"u_{port.name}")
        if port.kind == "boolean":
            d.connect(d.add(Compare(">", 0.5), f"c_{port.name}", u=played), block[port.name])
        else:
            d.connect(played, block[port.name])
    return d


def draw_inputs(machine: StateMachine, seed: int, samples: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        port.name: rng.integers(0, 2, samples).astype(float)
        if port.kind == "boolean"
        else rng.integers(-4, 5, samples) / 2.0
        for port in machine.inputs
    }


@pytest.mark.parametrize("first", range(0, 300, 25))
def test_random_machines_agree_with_the_oracle(first):
    for seed in range(first, first + 25):
        machine = make_machine(seed)
        signals = draw_inputs(machine, seed, 60)
        oracle, expected, endless = Oracle(machine, STEP), [], False
        for k in range(60):
            try:
                expected.append(oracle.run({name: u[k] for name, u in signals.items()}))
            except RuntimeError:
                endless = True
                break
        try:
            result = simulate(drive(machine, signals), 59 * STEP)
            assert not endless
        except BlockError as error:
            assert endless and "without end" in str(error)
            assert error.result is not None
            result = error.result
        for name in expected[0] if expected else ():
            wanted = [row[name] for row in expected]
            np.testing.assert_array_equal(
                result[f"machine.{name}"][: len(wanted)], wanted, err_msg=f"seed {seed}: {name}"
            )


def make_heater(**options) -> StateMachine:
    heater = StateMachine(inputs=["T"], outputs={"power": "W"}, **options)
    off, on = heater.state("off", power=0), heater.state("on", power=2e3)
    heater.transition(off, on, when="T < 19", after=60)
    heater.transition(on, off, when="T > 21")
    return heater


def make_room(step: float = 1.0, **options) -> Diagram:
    """Return a room: T' = (T∞ - T) / 2000 s, T∞ = 5 °C, or 25 °C while heated."""
    d = Diagram("room", step=step, solver="dopri5", tolerance=1e-12)
    room = d.add(Integrator(20.0), "T")
    heater = d.add(make_heater(**options), "heater", T=room)
    flow = d.add(Expression("(5 + 0.01*P - T)/2000"), "flow", P=heater["power"], T=room)
    d.connect(flow, room)
    d.output("power", heater["power"])
    return d


def test_located_guards_switch_at_the_closed_form():
    """From T₀, T reaches T₁ after 2000 s ln((T₀ - T∞)/(T₁ - T∞))."""
    expected, t = [], 0.0
    t += 2000 * np.log((20 - 5) / (19 - 5))
    expected.append(t)
    while t < 3600:
        t += 2000 * np.log((19 - 25) / (21 - 25))
        expected.append(t)
        t += 2000 * np.log((21 - 5) / (19 - 5))
        expected.append(t)
    result = simulate(make_room(continuous=True), 3600.0)
    # Between switchings T is an exponential: its value at each tick gives the time of the last one.
    state, T, time = result["heater.state"], result["T"], result.t
    found = []
    for k in np.flatnonzero(np.diff(state)) + 1:
        rises = state[k] == 2
        start, end = (19.0, 25.0) if rises else (21.0, 5.0)
        found.append(time[k] - 2000 * np.log((start - end) / (T[k] - end)))
    wanted = [t for t in expected if t < 3600]
    assert len(found) == len(wanted)
    # Tolerance 1e-12 of T, slopes of at least 0.002 K/s: 1e-8 s a switching, 12 of them.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-7)


def test_sampled_guards_switch_at_the_next_tick():
    result = simulate(make_room(), 400.0)
    first = np.flatnonzero(result["heater.state"] == 2)[0]
    assert result["T"][first] < 19 <= result["T"][first - 1]


def test_after_waits_for_whole_samples():
    machine = StateMachine(outputs=["x"])
    a, b = machine.state("a", x=1), machine.state("b", x=2)
    machine.transition(a, b, after=0.3)
    machine.transition(b, a, after=0.25)
    d = Diagram("after", step=0.1)
    d.add(machine, "machine")
    x = simulate(d, 1.2)["machine.x"]
    # 0.3 s is three samples; 0.25 s is not a whole number: three samples, too.
    np.testing.assert_array_equal(x, [1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 1])


@pytest.mark.parametrize("seed", range(5))
def test_saved_machines_continue_with_the_same_bits(seed):
    machine = make_machine(seed)
    d = drive(machine, draw_inputs(machine, seed, 60))
    whole = simulate(d, 5.9)
    first = simulate(d, 2.3)
    rest = simulate(d, 5.9, checkpoint=first.checkpoint)
    for port in machine.outputs:
        name = f"machine.{port.name}"
        np.testing.assert_array_equal(whole[name][23:], rest[name])


@pytest.mark.parametrize("seed", range(3))
def test_an_fmu_contains_the_machine(seed, tmp_path):
    fmpy = pytest.importorskip("fmpy")
    machine = make_machine(seed)
    d = drive(machine, draw_inputs(machine, seed, 40))
    for port in ("x", "y", "state"):
        d.output(port, d["machine"][port])
    result = simulate(d, 3.9)
    d.export_fmu(tmp_path / "machine.fmu")
    rows = fmpy.simulate_fmu(
        str(tmp_path / "machine.fmu"), stop_time=3.9, step_size=STEP, output_interval=STEP
    )
    for port in ("x", "y", "state"):
        np.testing.assert_array_equal(rows[port][:40], result[f"machine.{port}"])


def test_without_feedthrough_outputs_are_one_sample_late():
    signals = {"T": np.array([20.0, 18.0, 18.0, 22.0, 22.0, 22.0])}

    def run(feedthrough: bool) -> np.ndarray:
        machine = StateMachine(inputs=["T"], outputs=["power"], feedthrough=feedthrough)
        off, on = machine.state("off", power=0), machine.state("on", power=1)
        machine.transition(off, on, when="T < 19")
        machine.transition(on, off, when="T > 21")
        return simulate(drive(machine, signals), 0.5)["machine.power"]

    np.testing.assert_array_equal(run(True), [0, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(run(False), [0, 0, 1, 1, 0, 0])


def make_external(machine: StateMachine) -> Diagram:
    """Return a machine whose real input comes from a device or the host."""
    d = Diagram("machine", step=1e-3)
    a = d.input("a", default=0.0)
    block = d.add(machine, "machine", a=a)
    for port in machine.inputs:
        if port.kind == "boolean":
            period = {"b": 7e-3, "go": 4e-3, "halt": 11e-3}[port.name]
            beat = d.add(Pulse(period=period), f"p_{port.name}")
            d.connect(d.add(Compare(">", 0.5), f"c_{port.name}", u=beat), block[port.name])
    for port in machine.outputs:
        d.output(port.name.replace(".", "_"), block[port.name])
    return d


def quiet_seeds(count: int) -> list[int]:
    """Return seeds of machines whose local events end and whose state changes."""
    found: list[int] = []
    for seed in range(100):
        with contextlib.suppress(BlockError):
            states = simulate(make_external(make_machine(seed)), 0.1)["machine.state"]
            if len(set(states)) > 2:
                found.append(seed)
        if len(found) == count:
            return found
    raise AssertionError("too few machines are quiet")


def test_engine_fmu_and_real_time_agree(tmp_path):
    """The same machine offline, in an FMU run by FMPy, and in a real-time run."""
    fmpy = pytest.importorskip("fmpy")
    for seed in quiet_seeds(3):
        d = make_external(make_machine(seed))
        offline = simulate(d, 0.1)
        real = run_realtime(make_external(make_machine(seed)), 0.1, clock="free").wait()
        d.export_fmu(tmp_path / "machine.fmu")
        rows = fmpy.simulate_fmu(
            str(tmp_path / "machine.fmu"), stop_time=0.1, step_size=1e-3, output_interval=1e-3
        )
        assert len(set(offline["machine.state"])) > 1, seed
        for name in (port.name.replace(".", "_") for port in make_machine(seed).outputs):
            np.testing.assert_array_equal(real[name], offline[name][: real.length])
            assert real.length >= 100
            np.testing.assert_array_equal(rows[name][:100], offline[name][:100])


def test_a_real_time_log_is_replayed_bit_for_bit(tmp_path):
    """Inputs are set while the run goes on, at ticks that nobody chooses."""
    (seed,) = quiet_seeds(1)
    random = np.random.default_rng(1)
    with run_realtime(
        make_external(make_machine(seed)), 0.3, record=["*"], out=tmp_path / "log.h5"
    ) as run:
        while run.running:
            run["a"] = random.uniform(-3.0, 3.0)
            time.sleep(2e-3)
        result = run.wait()
    assert len(set(result["machine.state"])) > 1
    again = replay(tmp_path / "log.h5", make_external(make_machine(seed)))
    for name in again.paths:
        if name.startswith("machine."):
            np.testing.assert_array_equal(again[name], result[name])


def make_located(rng: random.Random, step: float, **options) -> Diagram:
    """Return an oscillator driven by a ring of states with random thresholds, some with waits."""
    machine = StateMachine(inputs=["x", "v"], outputs=["u"], data={"n": 0}, **options)
    top = [machine.state(f"s{k}", u=rng.uniform(-1, 1)) for k in range(rng.choice([2, 4]))]
    inner = top[0].state("p"), top[0].state("q", u=rng.uniform(-1, 1))
    machine.transition(inner[0], inner[1], when=f"v < {rng.uniform(-0.3, -0.1):.3f}")
    for k, state in enumerate(top):
        machine.transition(
            state,
            top[(k + 1) % len(top)],
            when=f"x {'<>'[k % 2]} {(-1, 1)[k % 2] * rng.uniform(0.05, 0.3):.3f}",
            after=rng.choice([None, 0.237, 0.4]),
            do={"n": "n + 1"},
        )
    d = Diagram("located", step=step, solver="dopri5", tolerance=1e-10)
    v, x = d.add(Integrator(0.0), "v"), d.add(Integrator(1.0), "x")
    block = d.add(machine, "machine", x=x, v=v)
    d.chain(d.add(Expression("u - 4*x"), "force", u=block["u"], x=x), v, x)
    return d


def test_located_machines_are_the_limit_of_small_steps():
    """At ticks of h a sampled machine is late by at most h at each transition; at the same count of
    them x differs by no more than their number times h times the jump in v', at most 2.

    Machines with a guard that holds when its state is entered are left out: at a tick one
    transition is taken, at an event all that follow.
    """
    end, fine, compared = 6.0, 2e-4, 0
    for seed in range(8):
        sampled = simulate(make_located(random.Random(seed), fine), end)
        changes = np.flatnonzero(np.diff(sampled["machine.state"]))
        if changes.size < 3 or np.diff(changes, prepend=0).min() < 0.01 / fine:
            continue
        located = simulate(make_located(random.Random(seed), 0.05, continuous=True), end)
        every = round(0.05 / fine)
        np.testing.assert_allclose(
            located["x"], sampled["x"][::every], rtol=0, atol=3 * changes.size * fine
        )
        assert located["machine.state"][-1] == sampled["machine.state"][-1]
        compared += 1
    assert compared >= 4


@pytest.mark.parametrize("seed", range(4))
def test_a_located_machine_is_saved_between_its_events(seed):
    d = make_located(random.Random(seed), 0.05, continuous=True)
    whole = simulate(d, 3.0)
    first = simulate(d, 1.35)
    rest = simulate(d, 3.0, checkpoint=first.checkpoint)
    for name in ("x", "v", "machine.state", "machine.u"):
        np.testing.assert_array_equal(whole[name][27:], rest[name])


def test_conditional_subsystems():
    """Disabled, a machine holds its states and time passes; reset, it begins anew."""

    def inside() -> Diagram:
        machine = StateMachine(outputs=["x"])
        a, b = machine.state("a", x=1), machine.state("b", x=2)
        machine.transition(a, b, after=0.3)
        machine.transition(b, a, after=0.3)
        d = Diagram("inside", step=STEP)
        d.output("x", d.add(machine, "machine")["x"])
        return d

    def run(**options) -> np.ndarray:
        d = Diagram("around", step=STEP)
        on = d.add(Expression("t < 0.15 or t > 0.45", inputs=[], kind="boolean"), "on")
        d.add(Subsystem(inside(), enable=True, **options), "part", enable=on)
        return simulate(d, 1.0)["part.x"]

    np.testing.assert_array_equal(run(), [1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1])
    np.testing.assert_array_equal(run(states="reset"), [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2])


def test_a_deep_copy_is_a_machine_of_its_own():
    machine = make_heater()
    other = copy.deepcopy(machine)
    off = other.chart.children[0]
    other.transition(off, other.state("third", power=7), when="T > 30")
    assert len(machine.chart.children) == 2 and len(machine.transitions) == 2
    signals = {"T": np.array([20.0, 40.0, 40.0])}
    np.testing.assert_array_equal(simulate(drive(other, signals), 0.2)["machine.power"], [0, 7, 7])
    np.testing.assert_array_equal(simulate(drive(machine, signals), 0.2)["machine.power"], 0)
    with pytest.raises(DiagramError, match="shares its states"):
        copy.copy(machine).state("third")


def test_an_enumeration_output_is_assigned_by_name():
    machine = StateMachine(outputs=[Port("mode", kind="enumeration", names=("low", "high"))])
    a, b = machine.state("a"), machine.state("b", mode="high")
    machine.transition(a, b, after=0.1)
    d = Diagram("named", step=STEP)
    d.add(machine, "machine")
    np.testing.assert_array_equal(simulate(d, 0.2)["machine.mode"], [1, 2, 2])


def test_an_event_emitted_between_ticks_is_shown_at_the_next():
    machine = StateMachine(inputs=["x"], outputs=["k"], emits=["alarm"], continuous=True)
    low, high = machine.state("low", k=1), machine.state("high", k=2)
    machine.transition(low, high, when="x > 0.25", emit="alarm")
    d = Diagram("alarm", step=0.1)
    x = d.add(Integrator(), "x")
    block = d.add(machine, "machine", x=x)
    d.connect(block["k"], x)
    alarm = simulate(d, 0.6)["machine.alarm"]
    # x passes 0.25 at t = 0.25: between the ticks 2 and 3.
    np.testing.assert_array_equal(alarm, [0, 0, 0, 1, 0, 0, 0])


def test_located_machines_have_feedthrough():
    with pytest.raises(DiagramError, match="feedthrough=False is for machines that run at samples"):
        StateMachine(inputs=["x"], continuous=True, feedthrough=False)


def test_kept_modes_show_the_states_of_the_tick():
    """Derivatives with frozen modes are those of the states after the step, also before it."""
    machine = StateMachine(outputs=["k"], inputs=["x"], continuous=True, initial={"k": 7})
    machine.state("one", k=2)
    d = Diagram("frozen", step=0.1)
    x = d.add(Integrator(1.0), "x")
    block = d.add(machine, "machine", x=x)
    d.connect(d.add(Expression("-k*x"), "fall", k=block["k"], x=x), x)
    with d.compile().instantiate() as instance:
        for ticks in (0, 1, 2):
            if ticks:
                instance.run(1)
            free = instance.derivatives()
            with instance.frozen_modes():
                np.testing.assert_array_equal(instance.derivatives(), free)


SOLVERS = [("rk4", None), ("dopri5", None), ("dopri5", 1e-9), ("radau5", None), ("radau5", 1e-9)]


@pytest.mark.parametrize(("solver", "tolerance"), SOLVERS)
@pytest.mark.parametrize("kind", ["during", "emit", "chain"])
def test_what_changes_at_ticks_is_held_in_between(solver, tolerance, kind):
    """The integral of an output that changes at ticks only is the sum of its values times h."""
    emits = ["alarm"] if kind == "emit" else []
    machine = StateMachine(inputs=["x"], outputs=["n"], emits=emits, continuous=True)
    first = machine.state("first", during={"n": "n + 1"} if kind == "during" else {})
    if kind == "emit":  # at every second tick
        other = machine.state("other")
        machine.transition(first, other, when="x > -1", emit="alarm")
        machine.transition(other, first, when="x > -1")
    if kind == "chain":
        states = [first, *(machine.state(f"s{k}", n=k) for k in range(1, 5))]
        for one, two in itertools.pairwise(states):
            machine.transition(one, two, when="x > -1")
    if kind == "during":  # a guard to locate, which is never enabled
        machine.transition(first, first, when="x > 1e9")
    d = Diagram("counting", step=0.1, solver=solver, tolerance=tolerance)
    x = d.add(Integrator(), "x")
    block = d.add(machine, "machine", x=x)
    name = "alarm" if kind == "emit" else "n"
    d.chain(block[name], d.add(Expression("1*n"), "real"), x)
    result = simulate(d, 0.8)
    shown = result[f"machine.{name}"]
    assert len(set(shown)) > 1
    expected = 0.1 * np.concatenate([[0.0], np.cumsum(shown[:-1])])
    np.testing.assert_allclose(result["x"], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("wait", [0.01, 0.0104])
def test_a_wait_that_begins_within_a_tick_ends_on_time(wait):
    """Also where it is a whole number of ticks: to the 1e-10 s of event times."""
    machine = StateMachine(inputs=["x"], outputs=["u"], continuous=True)
    a, b, c = machine.state("a", u=1), machine.state("b", u=2), machine.state("c", u=3)
    machine.transition(a, b, when="x > 0.01234567")
    machine.transition(b, c, after=wait)
    d = Diagram("wait", step=1e-3, solver="dopri5", tolerance=1e-12)
    x = d.add(Integrator(), "x")
    block = d.add(machine, "machine", x=x)
    d.connect(block["u"], x)
    times = [event.time for event in simulate(d, 0.03).events]
    np.testing.assert_allclose(times, [0.01234567, 0.01234567 + wait], rtol=0, atol=1e-10)
