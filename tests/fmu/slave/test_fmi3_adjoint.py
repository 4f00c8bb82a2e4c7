"""Adjoint derivatives of FMI 3.0: seedᵀ · J, where J is that of the directional derivatives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fmi3_calls import ERROR, OK, Instance3, Unpacked3

from biella import Diagram
from biella.blocks import Expression, Gain, Integrator, Product, StateSpace, Sum, UnitDelay

pytestmark = pytest.mark.engine


def open_fmu(folder: Path, diagram: Diagram) -> Unpacked3:
    path = diagram.export_fmu(folder / "x.fmu", version="3.0", sources=False)
    return Unpacked3(path, folder / "x")


def state_space() -> tuple[Diagram, np.ndarray]:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(4, 4)) - 3 * np.eye(4), rng.normal(size=(4, 3))
    c, feedthrough = rng.normal(size=(2, 4)), rng.normal(size=(2, 3)) * [1e-6, 1.0, 1e6]
    d = Diagram("linear", step=0.01)
    plant = d.add(StateSpace(a, b, c, feedthrough), name="plant")
    d.connect(d.input("u", width=3), plant)
    d.output("y", plant)
    return d, feedthrough


def everything() -> Diagram:
    """Two inputs through an algebraic loop, a product, and discrete and continuous states."""
    d = Diagram("everything", step=0.01)
    u, v = d.input("u"), d.input("v")
    total, half = d.add(Sum("+-"), "total"), d.add(Expression("tanh(y)"), "half")
    product = d.add(Product("**"), "product")
    x, delay = d.add(Integrator(0.4), "x"), d.add(UnitDelay(), "delay", period=0.01)
    d.connect(u, total["u1"], delay)
    d.connect(half, total["u2"])
    d.connect(total, half["y"], product["u1"])
    d.connect(v, product["u2"])
    d.connect(product, x)
    for name, block in {"loop": total, "both": product, "x_": x, "delay_": delay}.items():
        d.output(name, block)
    return d


def test_of_a_state_space_they_are_its_matrix_d_transposed(tmp_path: Path) -> None:
    """dy/du = D, to 1e-9 of its entries: differences of a linear function are exact."""
    diagram, matrix = state_space()
    one = Instance3(open_fmu(tmp_path, diagram)).start(u=[1.0, 0.1, 1e-6])
    one.step(0.013)
    for seed in ([1.0, 0.0], [0.0, 1.0], [2.0, -0.5]):
        status, found = one.adjoint(["y"], ["u"], seed)
        assert status == OK
        np.testing.assert_allclose(found, seed @ matrix, rtol=1e-8)


def test_the_transpose_of_the_directional_derivatives(tmp_path: Path) -> None:
    """To the bit where one seed is 1: both have the same columns. And w·(J v) = (Jᵀw)·v."""
    fmu = open_fmu(tmp_path, everything())
    one = Instance3(fmu).start(u=0.3, v=-0.7)
    one.step(0.02)
    outputs = [name for name, v in fmu.variables.items() if v.get("causality") == "output"]
    columns = [one.directional(outputs, [name], [1.0])[1] for name in ("u", "v")]
    jacobian = np.array(columns).T
    assert np.linalg.matrix_rank(jacobian) == 2
    before = one.get(*outputs)
    for k in range(len(outputs)):
        seed = [float(i == k) for i in range(len(outputs))]
        status, row = one.adjoint(outputs, ["u", "v"], seed)
        assert status == OK
        assert row == jacobian[k].tolist()
    assert one.get(*outputs) == before  # nothing has changed
    rng = np.random.default_rng(3)
    w, v = rng.normal(size=len(outputs)), rng.normal(size=2)
    forward = w @ one.directional(outputs, ["u", "v"], v.tolist())[1]
    backward = v @ one.adjoint(outputs, ["u", "v"], w.tolist())[1]
    assert forward == pytest.approx(backward, rel=1e-7)


def test_against_finite_differences(tmp_path: Path) -> None:
    """y = sin(u) v², z = exp(-u) + 3 v: central differences of 1e-5, error h² f'''/6 < 1e-9."""
    d = Diagram("two", step=0.01)
    u, v = d.input("u"), d.input("v")
    d.output("y", d.add(Expression("sin(u)*v**2"), "f", u=u, v=v))
    d.output("z", d.add(Expression("exp(-u) + 3*v"), "g", u=u, v=v))
    one = Instance3(open_fmu(tmp_path, d)).start(u=0.4, v=1.3)
    jacobian = np.empty((2, 2))
    for k, (name, at) in enumerate({"u": 0.4, "v": 1.3}.items()):
        ends = []
        for sign in (1, -1):
            assert one.set(name, at + sign * 1e-5) == OK
            ends.append(np.array(one.get("y", "z")))
        one.set(name, at)
        jacobian[:, k] = (ends[0] - ends[1]) / 2e-5
    seed = [0.7, -1.9]
    np.testing.assert_allclose(one.adjoint(["y", "z"], ["u", "v"], seed)[1], seed @ jacobian, 1e-7)


def test_parameters_in_initialization_mode(tmp_path: Path) -> None:
    d = Diagram("start", step=0.01)
    x = d.add(Integrator(2.0), "x")
    d.connect(d.input("u"), x)
    d.output("y", d.add(Gain(5.0), "k", u=x))
    one = Instance3(open_fmu(tmp_path, d))
    assert one.enter_initialization() == OK
    status, found = one.adjoint(["y"], ["x.initial", "k.k"], [3.0])
    assert status == OK
    np.testing.assert_allclose(found, [15.0, 6.0], rtol=1e-8)
    assert one.call("fmi3ExitInitializationMode") == OK
    assert one.adjoint(["y"], ["x.initial"], [1.0])[0] == ERROR
    assert "no derivative with respect to value reference" in one.messages[-1]


def test_what_is_wrong_is_refused(tmp_path: Path) -> None:
    diagram, _ = state_space()
    one = Instance3(open_fmu(tmp_path, diagram)).start()
    assert one.adjoint(["y"], ["u"], [1.0, float("nan")])[0] == ERROR
    assert one.messages[-1] == "a seed is not finite"
    assert one.adjoint(["y"], ["u"], [1.0])[0] == ERROR  # a seed for each element of y
    assert one.adjoint(["u"], ["u"], [1.0, 0.0, 0.0])[0] == ERROR
    assert one.adjoint([], [], []) == (OK, [])
