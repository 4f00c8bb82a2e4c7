"""Clocks of FMI 3.0 FMUs: activated at their instants, with the variables that they activate.

The FMU of ``clocked.c`` rejects every call that FMI does not allow. Reference: its equations, in a
few lines of Python.
"""

from __future__ import annotations

import struct
import zipfile

import numpy as np
import pytest
from clocked import CLOCKS, INTERVAL, SHIFT, describe_clocked, make_clocked

from biella import Diagram, Fmu, simulate
from biella.blocks import Expression, Gain, Integrator, UnitDelay
from biella.blocks.core._block import NativeBlock
from biella.blocks.core._ports import EVERY_TICK, Port
from biella.errors import BiellaError, FmuError
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine
UNTIL = 0.24


@pytest.fixture(scope="module")
def clocked(tmp_path_factory):
    return make_clocked(tmp_path_factory.mktemp("clocked") / "clocked.fmu")


def list_ticks(kind):
    if kind in ("CHANGING", "COUNTDOWN"):
        return SHIFT + INTERVAL * np.cumsum(np.arange(5))
    return SHIFT + INTERVAL * np.arange(10)


def diagram(path, step=0.02, **options):
    """Return a diagram in which the input of the FMU is 1 + t."""
    d = Diagram("clocked", step=step)
    fmu = d.add(Fmu(path, **options), name="f")
    d.connect(d.add(Expression("1 + t"), "u"), fmu["u"])
    return d


def expect(t, ticks, step):
    """Return y, count and alarm at t: u is that of the last tick of the diagram."""
    x, count, alarm = 0.0, 0, 0.0
    for tick in ticks[ticks < t + 1e-9]:
        x += 1.0 + np.floor(tick / step + 1e-6) * step
        count += 1
        alarm = tick if count % 3 == 0 else alarm
    return x, count, alarm


@pytest.mark.parametrize("options", [{}, {"isolate": True}], ids=["engine", "isolated"])
@pytest.mark.parametrize("kind", CLOCKS)
def test_clocks_tick_at_their_instants(tmp_path, kind, options):
    result = simulate(diagram(make_clocked(tmp_path / "c.fmu", kind), **options), UNTIL)
    expected = [expect(t, list_ticks(kind), 0.02) for t in result.t]
    found = np.transpose([result[f"f.{name}"] for name in ("y", "count", "alarm")])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(result["f.z"], result.t, atol=1e-12)


def test_output_clocks_are_listed_as_events(clocked):
    result = simulate(diagram(clocked), UNTIL)
    found = [e.time for e in result.events if e.kind == "clock `o` ticks"]
    np.testing.assert_allclose(found, list_ticks("CONSTANT")[2:8:3], atol=1e-12)


@pytest.mark.parametrize("step", [0.01, 0.02, 0.03, 0.005])
def test_a_tick_of_the_diagram_at_a_tick_of_the_clock_is_seen_at_once(clocked, step):
    result = simulate(diagram(clocked, step), 0.24)
    expected = [expect(t, list_ticks("CONSTANT"), step)[0] for t in result.t]
    np.testing.assert_allclose(result["f.y"], expected, atol=1e-12)


def test_a_clock_that_ticks_at_the_start_is_part_of_an_algebraic_loop(tmp_path):
    """y = u with u = 1 - 0.5 y: y = 2/3 at the start; then x = y, and y = x + 1 - 0.5 y."""
    times = 'intervalVariability="constant" intervalCounter="3" shiftCounter="1" resolution="100"'
    path = make_clocked(tmp_path / "c.fmu", xml=describe_clocked(times))
    d = Diagram("loop", step=0.01, algebraic_loops="solve")
    fmu = d.add(Fmu(path, outputs=["y"]), name="f")
    d.connect(d.add(Expression("1 - 0.5*y"), "back", y=fmu["y"]), fmu["u"])
    result = simulate(d, 0.08)
    # A sample holds until the next one: 0.01, 0.04, 0.07 s.
    first, second, third = 2 / 3, (2 / 3 + 1) / 1.5, ((2 / 3 + 1) / 1.5 + 1) / 1.5
    expected = [0.0] + [first] * 3 + [second] * 3 + [third] * 2
    np.testing.assert_allclose(result["f.y"], expected, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"isolate": True}], ids=["engine", "isolated"])
def test_saved_states_hold_the_clocks(clocked, options):
    with diagram(clocked, **options).compile().instantiate() as instance:
        kept = [instance.save()]
        for ticks in (5, 4):
            instance.run(ticks)
            instance.evaluate()
            kept.append(instance.save())
        value = instance.get("f.y")
        for state, ticks in zip(kept, (9, 4, 0), strict=True):
            instance.restore(state)
            instance.run(ticks)
            instance.evaluate()
            assert instance.get("f.y") == value


@pytest.mark.parametrize("method", ["gauss-seidel", "fixed-point", "newton"])
def test_clocks_in_couplings(clocked, method):
    """A sampled integral controller of a lag x' = y - x, as a recursion in closed form."""
    d = Diagram("coupled", step=0.01)
    fmu = d.add(Fmu(clocked, inputs=["u"], outputs=["y"], parameters={"k": 0.2}), name="f")
    lag = d.add(Integrator(0.0), name="lag")
    d.connect(d.add(Expression("y - x"), "rate", y=fmu["y"], x=lag), lag)
    d.connect(d.add(Expression("1 - x"), "error", x=lag), d.add(Gain(1.0), "gain"))
    d.connect(d.blocks["gain"], fmu["u"])
    d.couple("f", method=method)
    result = simulate(d, 0.3)
    x = y = 0.0
    expected = []
    for k in range(31):
        if k % 3 == 1:
            y += 0.2 * (1.0 - x)
        expected.append((x, y))
        x = y + (x - y) * np.exp(-0.01)
    np.testing.assert_allclose(np.transpose([result["lag"], result["f.y"]]), expected, atol=1e-9)


def test_what_is_not_supported_is_refused_by_name(tmp_path, clocked):
    triggered = describe_clocked('intervalVariability="triggered"')
    path = make_clocked(tmp_path / "t.fmu", xml=triggered)
    with pytest.raises(FmuError, match=r"`u` of t.fmu .* clock `c`, which has to be triggered"):
        Fmu(path, inputs=["u"])
    with pytest.raises(FmuError, match=r"activated only in event mode, by the engine"):
        Fmu(clocked, backend="fmpy")
    for times in ("", 'intervalDecimal="0"', 'intervalDecimal="-1"'):
        xml = describe_clocked(f'intervalVariability="constant" {times}')
        path = make_clocked(tmp_path / "i.fmu", xml=xml)
        with pytest.raises(FmuError, match=r"the clock `c` of i.fmu is constant, but its interval"):
            Fmu(path, validate=False)
    xml = describe_clocked(CLOCKS["CONSTANT"], "ScheduledExecution")
    path = make_clocked(tmp_path / "s.fmu", xml=xml)
    with pytest.raises(FmuError, match=r"s.fmu supports scheduled execution only"):
        Fmu(path)


def test_a_clock_may_tick_more_often_than_the_diagram(clocked):
    result = simulate(diagram(clocked, 0.12), UNTIL)
    expected = [expect(t, list_ticks("CONSTANT"), 0.12) for t in result.t]
    assert [c for _, c, _ in expected] == [0, 4, 8]
    np.testing.assert_allclose(result["f.y"], [y for y, _, _ in expected], atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("CONSTANT", "fmi3SetClock"),
        ("CONSTANT", "fmi3GetClock"),
        ("FIXED", "fmi3SetIntervalDecimal"),
        ("ASKED", "fmi3GetIntervalDecimal"),
        ("ASKED", "fmi3GetShiftDecimal"),
        ("COUNTDOWN", "fmi3GetIntervalDecimal"),
    ],
)
def test_a_function_that_a_clock_needs_is_named_if_it_is_missing(tmp_path, kind, function):
    whole, path = make_clocked(tmp_path / "whole.fmu", kind), tmp_path / "clocked.fmu"
    name = function.encode() + b"\0"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as target:
        for item in source.namelist():
            target.writestr(item, source.read(item).replace(name, b"x" + name[1:]))
    with pytest.raises(FmuError, match=f"has no function {function}"):
        simulate(diagram(path), 0.1)


class Hosted(NativeBlock):
    """A block of the kernel, with any clocks."""

    def __init__(self, clocks):
        head = [contract.HOST_HAS_EVENTS, 1, 0, 0, 0, 0, 0]
        records = [1, contract.HOST_CLOCKED, 0, 2, contract.HOST_CLOCKED]
        super().__init__(
            inputs=[Port("u", default=0.0)],
            outputs=[Port("y")],
            rate=EVERY_TICK,
            feedthrough=False,
            integers=[*head, *records, *clocks],
            kernel="fmu3",
        )


WORDS = {value: struct.unpack("<ii", struct.pack("<d", value)) for value in (0.1, 0.0, -1.0)}
CLOCK = [5, contract.HOST_CLOCK_CONSTANT, *WORDS[0.1], *WORDS[0.0]]
CLOCKED = [1, 1, 0]


@pytest.mark.parametrize(
    "clocks",
    [
        [0],
        [65, *CLOCK * 65],
        [2, *CLOCK],
        [1, *CLOCK[:1], 99, *CLOCK[2:]],
        [1, *CLOCK[:2], *WORDS[0.0], *WORDS[0.0]],
        [1, *CLOCK[:4], *WORDS[-1.0]],
        [1, *CLOCK, 2, *CLOCKED[1:]],
        [1, *CLOCK, -1, *CLOCKED[1:]],
        [1, *CLOCK, *CLOCKED[:-1]],
        [1, *CLOCK, *CLOCKED * 1000],
    ],
)
def test_plans_with_damaged_clocks_are_rejected(clocks):
    for given, message in (
        ([1, *CLOCK, *CLOCKED], "no FMU is attached"),
        (clocks, "does not fit its kernel"),
    ):
        d = Diagram("hosted", step=0.02)
        d.add(Hosted(given), name="f")
        with pytest.raises(BiellaError, match=message):
            simulate(d, 0.1)


def make_exported():
    """Return a plant that is driven by samples of two rates, one of which begins late."""
    d = Diagram("sampled", step=1e-3)
    u = d.input("u")
    x = d.add(Integrator(0.3), "x")
    fast = d.add(Gain(-7.0), "fast", period=4e-3)
    slow = d.add(UnitDelay(0.1), "slow", period=6e-3, offset=2e-3)
    total = d.add(Expression("u + a + b"), "total", u=u, a=fast, b=slow)
    d.connect(x, fast)
    d.connect(u, slow)
    d.connect(total, x)
    for name, block in {"x_": x, "fast_": fast, "slow_": slow, "total_": total}.items():
        d.output(name, block)
    return d


OUTPUTS = ("x_", "fast_", "slow_", "total_")


@pytest.mark.parametrize("step", [1e-3, 2.5e-4])
@pytest.mark.parametrize(
    ("start", "options"), [(0.0, {}), (0.0, {"isolate": True}), (1e6 + 0.1, {})]
)
def test_exported_clocks_sample_the_same_bits(tmp_path, step, start, options):
    """As the FMU without clocks and, at its ticks, as the diagram itself.

    Far from 0, sums of a clock's intervals and of steps differ by rounding.
    """
    found = []
    for clocks in (True, False):
        path = make_exported().export_fmu(
            tmp_path / f"{clocks}.fmu", version="3.0", clocks=clocks, sources=False
        )
        d = Diagram("outer", step=step, start_time=start)
        fmu = d.add(Fmu(path, **options), name="f")
        d.connect(d.add(Expression("2*sin(40*t) + cos(900*t)"), "u"), fmu["u"])
        result = simulate(d, start + 0.1)
        found.append([result[f"f.{name}"] for name in OUTPUTS])
    np.testing.assert_array_equal(found[0], found[1])
    every = round(1e-3 / step)
    with make_exported().compile().instantiate() as instance:
        rows = []
        for value in result["u"][::every]:
            instance.set("u", value)
            instance.evaluate()
            rows.append([instance.get(name) for name in OUTPUTS])
            instance.run(1)
    np.testing.assert_array_equal(np.array(found[0])[:, ::every], np.transpose(rows))
    assert all(len(set(column)) > 10 for column in np.transpose(rows))


# -- model exchange


def make_exchange(path, kind):
    return make_clocked(path, kind, describe_clocked(CLOCKS[kind], "ModelExchange"))


@pytest.mark.parametrize("solver", ["rk4", "dopri5"])
@pytest.mark.parametrize("kind", CLOCKS)
def test_clocks_of_model_exchange_tick_at_their_instants(tmp_path, kind, solver):
    """Ticks between those of the diagram see the input 1 + t at their instants."""
    path = make_exchange(tmp_path / "c.fmu", kind)
    d = Diagram("clocked", step=0.02, solver=solver, tolerance=1e-8 if solver == "dopri5" else None)
    d.add(Fmu(path), name="f")
    d.connect(d.add(Expression("1 + t"), "u"), d["f"]["u"])
    d.add(Integrator(), name="integral")
    d.connect(d["f"]["y"], d["integral"])
    result = simulate(d, UNTIL)
    ticks = list_ticks(kind)
    seen = [ticks[ticks < t + 1e-9] for t in result.t]
    np.testing.assert_allclose(result["f.y"], [(1 + s).sum() for s in seen], atol=1e-12)
    np.testing.assert_array_equal(result["f.count"], [len(s) for s in seen])
    alarms = [s[len(s) // 3 * 3 - 1] if len(s) >= 3 else 0.0 for s in seen]
    np.testing.assert_allclose(result["f.alarm"], alarms, atol=1e-12)
    np.testing.assert_allclose(result["f.z"], result.t, atol=1e-12)
    # Each tick adds a step of 1 + tick to y, whose integral is located.
    areas = [((1 + s) * (t - s)).sum() for t, s in zip(result.t, seen, strict=True)]
    np.testing.assert_allclose(result["integral"], areas, atol=1e-10)
    found = [e.time for e in result.events if e.kind == "clock `o` ticks"]
    np.testing.assert_allclose(found, ticks[2::3][ticks[2::3] < UNTIL - 1e-9], atol=1e-12)


def test_clocks_of_model_exchange_are_saved(tmp_path):
    path = make_exchange(tmp_path / "c.fmu", "CHANGING")
    d = Diagram("clocked", step=0.02)
    d.add(Fmu(path), name="f")
    with d.compile().instantiate() as instance:
        kept = [instance.save()]
        for ticks in (5, 6):
            instance.run(ticks)
            instance.evaluate()
            kept.append(instance.save())
        value = instance.get("f.count")
        assert value == 4
        for state, ticks in zip(kept, (11, 6, 0), strict=True):
            instance.restore(state)
            instance.run(ticks)
            instance.evaluate()
            assert instance.get("f.count") == value


def test_clocks_of_model_exchange_in_another_process(tmp_path):
    path = make_exchange(tmp_path / "c.fmu", "CONSTANT")
    results = []
    for isolate in (False, True):
        d = Diagram("clocked", step=0.02, solver="rk4")
        d.add(Fmu(path, isolate=isolate), name="f")
        results.append(simulate(d, UNTIL, error_estimate=False))
    for name in ("f.y", "f.count", "f.alarm", "f.z"):
        np.testing.assert_array_equal(results[0][name], results[1][name])
    assert results[0]["f.count"][-1] == 8
