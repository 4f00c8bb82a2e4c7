"""Diagrams for model exchange, and their closed forms where they have one."""

from __future__ import annotations

import itertools
import math

from biella import Diagram
from biella.blocks import (
    Compare,
    Constant,
    Convert,
    DiscreteIntegrator,
    Expression,
    Gain,
    Integrator,
    Pulse,
    Relay,
    SecondOrderIntegrator,
    Sine,
    StateMachine,
    Step,
    Stop,
    Sum,
    TransportDelay,
    UnitDelay,
)
from biella.blocks.multibody.mechanisms import slider_crank

GRAVITY = 9.81


def make_ball() -> Diagram:
    """A ball that falls from 1 m and rebounds with 0.8 of its speed."""
    d = Diagram("ball", step=1e-3)
    ball = SecondOrderIntegrator(position=1.0, limits=(0.0, 10.0), restitution=0.8)
    d.add(ball, "ball")
    d.connect(d.add(Constant(-GRAVITY), "gravity"), ball)
    d.output("height", ball["position"])
    d.output("velocity", ball["velocity"])
    return d


def ball_height(t: float) -> float:
    start, speed = 0.0, 0.0
    lands = math.sqrt(2.0 / GRAVITY)
    height = 1.0
    while t > lands:
        impact = speed - GRAVITY * (lands - start)
        start, speed, height = lands, -0.8 * impact, 0.0
        lands = start + 2.0 * speed / GRAVITY
    since = t - start
    return height + speed * since - 0.5 * GRAVITY * since**2


def make_reset() -> Diagram:
    """x' = 1, back to 0 each time that x > 0.37: a sawtooth."""
    d = Diagram("sawtooth", step=1e-2)
    x = d.add(Integrator(0.0, reset="rising", state_port=True), "x")
    over = d.add(Compare(">", 0.37), "over")
    d.connect(d.add(Constant(1.0), "one"), x["u"])
    d.connect(x["state"], over)
    d.connect(over, x["reset"])
    d.output("x", x["y"])
    return d


def make_relay() -> Diagram:
    """x' = ±1 between -0.5 and 0.5: a triangle of period 2."""
    d = Diagram("relay", step=1e-3)
    relay = d.add(Relay(on=0.5, off=-0.5, high=-1.0, low=1.0), "relay")
    x = d.add(Integrator(0.0), "x")
    d.connect(relay, x)
    d.connect(x, relay)
    d.output("x", x)
    d.output("slope", relay)
    return d


def relay_x(t: float) -> float:
    phase = (t + 0.5) % 2.0
    return phase - 0.5 if phase <= 1.0 else 1.5 - phase


def make_van_der_pol() -> Diagram:
    d = Diagram("van der pol", step=1e-2)
    x, v = d.add(Integrator(2.0), "x"), d.add(Integrator(0.0), "v")
    force = d.add(Expression("2*(1 - x*x)*v - x"), "force", x=x, v=v)
    d.connect(v, x)
    d.connect(force, v)
    d.output("x", x)
    return d


def make_sampled() -> Diagram:
    """A continuous plant under a controller with two periods: x' = z - g, both sampled."""
    d = Diagram("sampled", step=1e-3)
    x = d.add(Integrator(1.0), "x")
    total = d.add(Sum("-+"), "total")
    gain = d.add(Gain(5.0), "gain", period=0.05)
    delay = d.add(UnitDelay(), "delay", period=0.1)
    d.connect(x, gain)
    d.connect(gain, delay, total["u1"])
    d.connect(delay, total["u2"])
    d.connect(total, x)
    for name, block in {"x": x, "gain": gain, "delay": delay}.items():
        d.output(f"{name}_out", block)
    return d


def make_step() -> Diagram:
    """x' = 2·[t ≥ 0.3137] - x: the step is beside the grid."""
    d = Diagram("step", step=1e-2)
    source, x = d.add(Step(at=0.3137, to=2.0), "source"), d.add(Integrator(0.0), "x")
    error = d.add(Sum("+-"), "error")
    d.connect(source, error["u1"])
    d.connect(x, error["u2"])
    d.connect(error, x)
    d.output("x", x)
    return d


def step_x(t: float) -> float:
    return 2.0 * (1.0 - math.exp(-(t - 0.3137))) if t > 0.3137 else 0.0


def make_machine() -> Diagram:
    """T' = (5 + 20·[on] - T) / 2: a thermostat between 19 and 21 as a continuous machine."""
    d = Diagram("room", step=1e-2)
    room = d.add(Integrator(20.0), "T")
    heater = StateMachine(inputs=["T"], outputs=["power"], continuous=True)
    off, on = heater.state("off", power=0), heater.state("on", power=20)
    heater.transition(off, on, when="T < 19")
    heater.transition(on, off, when="T > 21")
    d.add(heater, "heater", T=room)
    d.connect(d.add(Expression("(5 + P - T)/2"), "flow", P=heater["power"], T=room), room)
    d.output("temperature", room)
    d.output("power", heater["power"])
    return d


def machine_temperature(t: float) -> float:
    since, start, goal = 0.0, 20.0, 5.0
    while True:
        border = 19.0 if goal == 5.0 else 21.0
        until = since + 2.0 * math.log((start - goal) / (border - goal))
        if t <= until:
            return goal + (start - goal) * math.exp(-(t - since) / 2.0)
        since, start, goal = until, border, 30.0 - goal


CHAIN_STEP = 1e-2


def make_chain() -> Diagram:
    """x' = 1, 2, 3, 0 by a machine whose guards hold from the start: one transition a tick."""
    d = Diagram("chain", step=CHAIN_STEP)
    x = d.add(Integrator(1.0), "x")
    machine = StateMachine(inputs=["x"], outputs=["rate"], continuous=True)
    states = [machine.state(f"s{k}", rate=rate) for k, rate in enumerate((1, 2, 3, 0))]
    for source, target in itertools.pairwise(states):
        machine.transition(source, target, when="x > 0.5")
    d.add(machine, "machine", x=x)
    d.connect(machine["rate"], x)
    d.output("x", x)
    d.output("rate", machine["rate"])
    return d


def chain_x(t: float) -> float:
    spent = [min(max(t - k * CHAIN_STEP, 0.0), CHAIN_STEP) for k in range(3)]
    return 1.0 + spent[0] + 2.0 * spent[1] + 3.0 * spent[2]


def make_edge() -> Diagram:
    """x' = 1, then 3 from an edge at x = 0.255 on, which is an event input."""
    d = Diagram("edge", step=CHAIN_STEP)
    x = d.add(Integrator(0.0), "x")
    over = d.add(Compare(">", 0.255), "over")
    machine = StateMachine(inputs=["x"], events=["go"], outputs=["rate"], continuous=True)
    slow, fast = machine.state("slow", rate=1), machine.state("fast", rate=3)
    machine.transition(slow, fast, on="go")
    machine.transition(fast, slow, when="x > 100")
    d.add(machine, "machine", x=x, go=over)
    d.connect(x, over)
    d.connect(machine["rate"], x)
    d.output("x", x)
    return d


def edge_x(t: float) -> float:
    return t if t <= 0.255 else 0.255 + 3.0 * (t - 0.255)


def make_crank() -> Diagram:
    """A slider-crank, whose loop of joints is closed by a constraint."""
    d = Diagram("crank", step=1e-3)
    outputs = ["main.speed", "main.angle", "closure"]
    plant = d.add(slider_crank(planar=True).block(["motor.torque"], outputs), "plant")
    d.connect(d.add(Sine(amplitude=3.0, frequency=1.0), "motor"), plant["motor.torque"])
    for name in outputs:
        d.output(name.replace(".", "_"), plant[name])
    return d


def make_delay() -> Diagram:
    """x' = -x(t - 0.5), with x = 0 before: the delay samples at ticks."""
    d = Diagram("delay", step=1e-2)
    x, past = d.add(Integrator(1.0), "x"), d.add(TransportDelay(0.5), "past")
    back = d.add(Gain(-1.0), "back")
    d.connect(x, past)
    d.connect(past, back)
    d.connect(back, x)
    d.output("x", x)
    return d


def delay_x(t: float) -> float:
    return sum(
        (-1.0) ** k * (t - 0.5 * k) ** k / math.factorial(k) for k in range(int(t / 0.5) + 1)
    )


def make_pulse() -> Diagram:
    """x' = pulse - x, with edges known in advance."""
    d = Diagram("pulse", step=1e-2)
    source, x = d.add(Pulse(period=0.37, duty=0.4), "source"), d.add(Integrator(0.0), "x")
    d.connect(d.add(Expression("u - x"), "rate", u=source, x=x), x)
    d.output("x", x)
    return d


def make_limits() -> Diagram:
    """An integrator within limits, and one that integrates a formula with a branch of it."""
    d = Diagram("limits", step=1e-2)
    x, y = d.add(Integrator(0.0, limits=(-0.3, 0.4)), "x"), d.add(Integrator(0.0), "y")
    d.connect(d.add(Sine(amplitude=2.0, frequency=0.5), "source"), x)
    d.connect(d.add(Expression("max(x, 0.1)"), "branch", x=x), y)
    d.output("x", x)
    d.output("y", y)
    return d


def make_loop() -> Diagram:
    """x' = f with f = sin(f) / 2 - x: an algebraic loop."""
    d = Diagram("loop", step=1e-2)
    x = d.add(Integrator(1.0), "x")
    f = d.add(Expression("0.5*sin(a) - x", inputs=["a", "x"]), "f")
    d.connect(f, f["a"], x)
    d.connect(x, f["x"])
    d.output("x", x)
    return d


def make_stopping() -> Diagram:
    """x' = 1 until x > 0.7531, judged at ticks."""
    d = Diagram("stopping", step=1e-3)
    x = d.add(Integrator(0.0), "x")
    over = d.add(Compare(">", 0.7531), "over")
    d.connect(d.add(Constant(1.0), "one"), x)
    d.connect(x, over)
    d.connect(over, d.add(Stop(), "stop"))
    d.output("x", x)
    return d


def make_held() -> Diagram:
    """An input that is sampled and summed every 0.1 s; y' is the sample."""
    d = Diagram("held", step=1e-2)
    gain = d.add(Gain(2.0), "gain", period=0.1)
    total = d.add(DiscreteIntegrator(initial=1.0), "total", period=0.1)
    y = d.add(Integrator(0.0), "y")
    d.connect(d.input("u"), gain)
    d.connect(gain, total, y)
    for name, block in {"gain": gain, "total": total, "y": y}.items():
        d.output(f"{name}_out", block)
    return d


def make_threshold() -> Diagram:
    """x' = [u > threshold]; z' = 1, back to 0 where u gets above another threshold."""
    d = Diagram("threshold", step=1e-2)
    u = d.input("u")
    x, z = d.add(Integrator(0.0), "x"), d.add(Integrator(0.0, reset="rising"), "z")
    d.connect(u, d.add(Compare(">", 1.0), "over"), d.add(Compare(">", 4.0), "far"))
    d.connect(d.blocks["over"], d.add(Convert("real"), "real"))
    d.connect(d.blocks["real"], x)
    d.connect(d.add(Constant(1.0), "one"), z["u"])
    d.connect(d.blocks["far"], z["reset"])
    d.output("x_out", x)
    d.output("z_out", z["y"])
    return d


def make_driven() -> Diagram:
    """x' = u² - x y, y' = 3·[u > 1] - k y + b, with inputs of two kinds."""
    d = Diagram("driven", step=1e-2)
    u = d.input("u")
    on = d.input("on", kind="boolean")
    x, y = d.add(Integrator(0.5), "x"), d.add(Integrator(0.25), "y")
    over = d.add(Compare(">", 1.0), "over")
    k = d.add(Gain(2.0), "k")
    d.connect(u, over)
    d.connect(y, k)
    d.connect(d.add(Expression("u*u - x*y"), "dx", u=u, x=x, y=y), x)
    d.connect(d.add(Expression("3*o - k + b", inputs=["o", "k", "b"]), "dy", o=over, k=k, b=on), y)
    d.output("x_out", x)
    d.output("sum", d.add(Expression("x*y + u"), "total", x=x, y=y, u=u))
    return d


MODELS = {
    "ball": make_ball,
    "sawtooth": make_reset,
    "relay": make_relay,
    "van der pol": make_van_der_pol,
    "sampled": make_sampled,
    "step": make_step,
    "machine": make_machine,
    "chain": make_chain,
    "edge": make_edge,
    "crank": make_crank,
    "delay": make_delay,
    "pulse": make_pulse,
    "limits": make_limits,
    "loop": make_loop,
}
CLOSED = {
    "ball": ("height", ball_height),
    "relay": ("x", relay_x),
    "step": ("x", step_x),
    "machine": ("temperature", machine_temperature),
    "sawtooth": ("x", lambda t: t % 0.37),
    "chain": ("x", chain_x),
    "edge": ("x", edge_x),
}
