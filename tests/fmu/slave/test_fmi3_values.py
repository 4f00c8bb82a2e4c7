"""FMI 3.0: kinds and arrays, saved states, derivatives; the numbers of FMI 2.0 to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fmi3_calls import DISCARD, ERROR, OK, Instance3, Unpacked3, flag

from biella import Diagram
from biella.blocks import (
    Convert,
    Gain,
    Integrator,
    Logic,
    Noise,
    Selector,
    StateSpace,
    Sum,
    UnitDelay,
)

pytestmark = pytest.mark.engine

A = np.array([[-1.0, 0.25], [0.1, -2.0]])
B = np.array([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0]])


def open_fmu(folder: Path, diagram: Diagram, **options: Any) -> Unpacked3:
    path = diagram.export_fmu(folder / f"{diagram.name}.fmu", version="3.0", **options)
    return Unpacked3(path, folder / diagram.name)


def make_linear() -> Diagram:
    """x' = A x + B u, y = C x + D u."""
    d = Diagram("linear")
    block = d.add(StateSpace(A, B, np.eye(2), 0.5 * B), name="ss")
    d.connect(d.input("u", width=3, default=0.1), block)
    d.output("y", block)
    return d


def test_arrays_in_and_out(tmp_path: Path) -> None:
    """At the start y = C x0 + D u; elements are in row-major order, as FMI asks."""
    fmu = open_fmu(tmp_path, make_linear())
    assert [fmu.size(name) for name in ("u", "y", "ss.A", "ss.B")] == [3, 2, 4, 6]
    one = Instance3(fmu)
    assert one.get("ss.B") == B.ravel().tolist()
    u = np.array([1.0, -2.0, 0.5])
    assert one.set("u", u.tolist()) == OK
    assert one.set("ss.initial", [3.0, 4.0]) == OK
    assert one.set("ss.B", (2.0 * B).ravel().tolist()) == OK
    assert one.enter_initialization() == OK
    np.testing.assert_allclose(one.get("y"), [3.0, 4.0] + 0.5 * B @ u, rtol=1e-15)
    # All of several variables in one call.
    references = [fmu.refer(name) for name in ("u", "ss.initial", "time", "y")]
    status, values = one.read("Float64", references, 8)
    assert status == OK
    assert values == [*u, 3.0, 4.0, 0.0, *one.get("y")]
    assert one.set("u", [1.0, 2.0]) == ERROR
    assert "another number of values than the 2 given" in one.messages[-1]
    # The values before the wrong one have been set.
    assert one.set("u", [7.0, float("nan"), 8.0]) == DISCARD
    assert one.get("u") == [7.0, -2.0, 0.5]


def test_integers_booleans_and_enumerations(tmp_path: Path) -> None:
    d = Diagram("kinds")
    d.output("n", d.add(Convert("integer"), "count", u=d.input("number", kind="integer")))
    d.output("off", d.add(Logic("not"), "flipped", u1=d.input("on", kind="boolean")))
    d.output("bits", d.add(Selector([2, 0]), "pick", u=d.input("flags", kind="boolean", width=3)))
    fmu = open_fmu(tmp_path, d)
    assert {name: v.tag for name, v in fmu.variables.items() if "." not in name} == {
        "number": "Int64", "on": "Boolean", "flags": "Boolean", "n": "Int64", "off": "Boolean",
        "bits": "Boolean", "time": "Float64",
    }  # fmt: skip
    one = Instance3(fmu).start(number=-7, on=True, flags=[True, False, False])
    assert one.get("n", "off", "bits") == [-7, False, False, True]
    for value in (2**31, -(2**40), 2**53, -(2**53)):  # beyond FMI 2.0, and the last exact ones
        assert one.set("number", value) == OK
        assert one.get("n") == [value]
    for value in (2**53 + 1, -(2**63), 2**63 - 1):
        assert one.set("number", value) == DISCARD
    assert one.get("n") == [-(2**53)]
    # A boolean of another language may be any byte.
    import ctypes

    byte = (ctypes.c_uint8 * 1)(255)
    reference = (ctypes.c_uint32 * 1)(fmu.refer("on"))
    assert one.call("fmi3SetBoolean", reference, 1, byte, 1) == OK
    assert one.get("on", "off") == [True, False]


def make_mixed() -> Diagram:
    """Continuous and sampled states, and random numbers."""
    d = Diagram("mixed", step=1e-3)
    u = d.input("u")
    x = d.add(Integrator(1.0), "x")
    d.connect(d.add(Sum("+-+"), "sum", u1=u, u2=x, u3=d.add(Noise(1.0), "w", period=3e-3)), x)
    d.output("x", x)
    d.output("z", d.add(UnitDelay(), "z", u=x, period=2e-3))
    return d


def test_states_are_saved_restored_and_serialized(tmp_path: Path) -> None:
    fmu = open_fmu(tmp_path, make_mixed())

    def run(one: Instance3, steps: int = 30) -> list[Any]:
        rows = []
        for k in range(steps):
            one.set("u", 0.1 * k)
            assert one.step(7e-4)[0] == OK
            rows.append(one.get("x", "z"))
        return rows

    one = Instance3(fmu).start(u=2.0)
    run(one)
    kept, at = one.save(), one.time
    raw = one.serialize(kept)
    expected = run(one)
    assert one.restore(kept) == OK
    one.time = at
    assert run(one) == expected
    other = Instance3(fmu).start()
    status, state = other.deserialize(raw)
    assert status == OK
    assert other.restore(state) == OK
    other.time = at
    assert run(other) == expected
    # In event mode, and of an instance in initialization mode.
    for instance in (Instance3(fmu, events=True).start(), other):
        assert instance.restore(instance.save()) == OK
    # Cut short, changed, of another FMU.
    for wrong in (b"", raw[:-1], bytes(4) + raw[4:], raw[:4] + b"\x08" + raw[5:]):
        assert other.deserialize(wrong)[0] == ERROR
    stranger = Instance3(open_fmu(tmp_path, make_linear())).start()
    assert stranger.deserialize(raw)[0] == ERROR


def test_a_reset_leads_back_to_the_start(tmp_path: Path) -> None:
    fmu = open_fmu(tmp_path, make_mixed())
    one = Instance3(fmu).start(u=2.0)
    first = [one.step(1e-3)[0], *one.get("x", "z")]
    assert one.call("fmi3Terminate") == OK
    assert one.call("fmi3Reset") == OK
    assert one.get("u") == [0.0]
    one.start(u=2.0)
    assert [one.step(1e-3)[0], *one.get("x", "z")] == first


def test_directional_derivatives_against_differences(tmp_path: Path) -> None:
    """Central differences of a linear function are exact but for rounding: 1e-9."""
    fmu = open_fmu(tmp_path, make_linear())
    one = Instance3(fmu).start(u=[1.0, -2.0, 0.5])
    one.step(0.01)
    u, reach = np.array([1.0, -2.0, 0.5]), 1e-4
    for seed in np.eye(3):
        rows = []
        for sign in (1, -1):
            one.set("u", (u + sign * reach * seed).tolist())
            rows.append(one.get("y"))
        one.set("u", u.tolist())
        expected = (np.array(rows[0]) - rows[1]) / (2 * reach)
        status, found = one.directional(["y"], ["u"], seed.tolist())
        assert status == OK
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found, 0.5 * B @ seed, rtol=1e-9, atol=1e-12)
    assert one.directional(["u"], ["u"], [1.0, 0.0, 0.0])[0] == ERROR
    assert one.directional(["y"], ["ss.A"], [1.0] * 4)[0] == ERROR  # a parameter, in step mode
    first = Instance3(fmu)
    first.set("ss.initial", [1.0, 2.0])
    assert first.enter_initialization() == OK
    status, found = first.directional(["y"], ["ss.initial"], [1.0, -1.0])
    assert status == OK
    np.testing.assert_allclose(found, [1.0, -1.0], rtol=1e-9)


def test_output_derivatives(tmp_path: Path) -> None:
    """dy/dt = C (A x + B u), with the input held."""
    fmu = open_fmu(tmp_path, make_linear())
    assert flag(fmu, "maxOutputDerivativeOrder") == "1"
    u, x = np.array([1.0, -2.0, 0.5]), np.array([3.0, 4.0])
    one = Instance3(fmu).start(u=u.tolist(), **{"ss.initial": x.tolist()})
    status, found = one.output_derivatives(["y"])
    assert status == OK
    np.testing.assert_allclose(found, A @ x + B @ u, rtol=1e-6)
    assert one.output_derivatives(["y"], order=2)[0] == ERROR


def test_parameters_are_tuned_or_fixed(tmp_path: Path) -> None:
    d = Diagram("tuned")
    x = d.add(Integrator(5.0), "x")
    d.connect(d.add(Gain(2.0), "k", u=d.input("u")), x)
    d.output("y", d["k"])
    d.output("x", x)
    fmu = open_fmu(tmp_path, d)
    one = Instance3(fmu).start(u=3.0)
    assert one.get("y", "x") == [6.0, 5.0]
    assert one.set("k.k", 4.0) == OK
    assert one.get("y") == [12.0]
    assert one.set("x.initial", 1.0) == ERROR
    assert "fixed after initialization" in one.messages[-1]


def test_local_variables_are_read_and_not_set(tmp_path: Path) -> None:
    d = make_linear()
    d.add(Gain(3.0), "tripled", u=d["ss"])
    fmu = open_fmu(tmp_path, d, local=["tripled.*"])
    one = Instance3(fmu).start(u=[1.0, 2.0, 3.0])
    assert fmu.variables["tripled.y"].get("causality") == "local"
    np.testing.assert_allclose(one.get("tripled.y"), 3.0 * np.array(one.get("y")), rtol=1e-15)
    assert one.set("tripled.y", [1.0, 2.0]) == ERROR
