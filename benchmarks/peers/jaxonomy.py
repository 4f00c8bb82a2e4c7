"""The works in Jaxonomy: fixed-step RK4 in double precision, compiled by JAX, nothing recorded.

`Simulator.advance_to` under `jax.jit` is the fastest way that it offers to run the same thing
again. The first run contains the compilation, the following ones do not. Neither the import
(seconds) nor the building of the diagram is counted.

Its `Saturate` watches for the entry into a limit, to cut the step there. This loop starts in
saturation and only leaves it, so that the result is the same to the last digit, but the watching
doubles the time. The limit is therefore a function block here, the faster of the two.
"""

from __future__ import annotations

from typing import Any

from workloads.works import LINE_GAIN, LINE_PAIRS, LINE_START, PID, STEP

from peers.process import Prepare, serve


def compiled(system: Any, output: Any, seconds: float) -> Prepare:
    import jax
    import jaxonomy

    options = jaxonomy.SimulatorOptions(ode_solver_method="rk4", max_minor_step_size=STEP)
    context = system.create_context()
    advance = jax.jit(jaxonomy.Simulator(system, options=options).advance_to)

    def run() -> float:
        end = jax.block_until_ready(advance(seconds, context))
        return float(end.context[output.system_id].continuous_state)

    return lambda: run


def prepare_pid(seconds: float) -> Prepare:
    import jax.numpy as jnp
    from jaxonomy import DiagramBuilder
    from jaxonomy.library import Adder, FeedthroughBlock, Gain, Integrator, Step

    builder = DiagramBuilder()
    add = builder.add
    ref = add(Step(start_value=0.0, end_value=1.0, step_time=0.0, name="ref"))
    err = add(Adder(2, operators="+-", name="err"))
    lag = add(Adder(2, operators="+-", name="lag"))
    pid = add(Adder(3, operators="+++", name="pid"))
    force = add(Adder(3, operators="+--", name="force"))
    kp, ki, kd, n = (add(Gain(PID[name], name=name)) for name in ("KP", "KI", "KD", "N"))
    damping, stiffness = add(Gain(PID["C"], name="damping")), add(Gain(PID["K"], name="stiffness"))
    i, d, v, x = (add(Integrator(0.0, name=name)) for name in ("i", "d", "v", "x"))
    limit = PID["LIMIT"]
    sat = add(FeedthroughBlock(lambda u: jnp.clip(u, -limit, limit), name="sat"))
    for source, target, port in [
        (ref, err, 0),
        (x, err, 1),
        (err, kp, 0),
        (err, ki, 0),
        (err, kd, 0),
        (ki, i, 0),
        (kd, lag, 0),
        (d, lag, 1),
        (lag, n, 0),
        (n, d, 0),
        (kp, pid, 0),
        (i, pid, 1),
        (n, pid, 2),
        (pid, sat, 0),
        (sat, force, 0),
        (damping, force, 1),
        (stiffness, force, 2),
        (force, v, 0),
        (v, x, 0),
        (v, damping, 0),
        (x, stiffness, 0),
    ]:
        builder.connect(source.output_ports[0], target.input_ports[port])
    return compiled(builder.build(), x, seconds)


def prepare_line(seconds: float) -> Prepare:
    from jaxonomy import DiagramBuilder
    from jaxonomy.library import Constant, Gain, Integrator

    builder = DiagramBuilder()
    last = builder.add(Constant(1.0, name="one"))
    for pair in range(LINE_PAIRS):
        gain = builder.add(Gain(LINE_GAIN, name=f"gain{pair}"))
        integrator = builder.add(Integrator(LINE_START, name=f"integrator{pair}"))
        builder.connect(last.output_ports[0], gain.input_ports[0])
        builder.connect(gain.output_ports[0], integrator.input_ports[0])
        last = integrator
    return compiled(builder.build(), last, seconds)


if __name__ == "__main__":
    serve("jaxonomy", {"pid": prepare_pid, "line": prepare_line})
