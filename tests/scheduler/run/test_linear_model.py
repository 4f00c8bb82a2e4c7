"""A linear model: a value with names, for other tools."""

from __future__ import annotations

import sys

import control
import numpy as np
import pytest

from biella import BiellaError, Diagram, linearize
from biella.blocks import (
    Pendulum,
)

pytestmark = pytest.mark.engine


def poles(matrix) -> np.ndarray:
    """Not by scipy's `poles`, which goes through polynomials and warns."""
    return np.sort_complex(np.linalg.eigvals(matrix))


def pendulum(angle: float) -> Diagram:
    d = Diagram(step=1e-3)
    p = d.add(Pendulum(2.0, 0.5, damping=0.3, angle=angle), name="p")
    d.connect(d.input("torque", unit="N.m"), p)
    d.output("angle", p["angle"])
    return d


def test_a_model_is_a_value_that_prints_and_leaves_for_other_tools():
    model = linearize(pendulum(1.0))
    with pytest.raises(AttributeError):
        model.A = np.eye(2)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        model.A[0, 0] = 1.0
    assert np.allclose(poles(model.A), np.sort_complex(model.poles()))
    scipy = model.to_scipy()
    assert np.array_equal(scipy.A, model.A) and scipy.dt is None
    there = model.to_control()
    assert there.input_labels == ["torque"] and there.output_labels == ["angle"]
    assert np.allclose(np.sort_complex(control.poles(there)), np.sort_complex(model.poles()))
    assert there.state_labels == [name.replace(".", "_") for name in model.states]
    sampled = linearize(pendulum(1.0), period=0.01)
    assert sampled.to_control().dt == sampled.to_scipy().dt == sampled.dt == 0.01
    shown = repr(model).splitlines()
    assert shown[0] == "LinearModel: continuous, 2 states, 1 input, 1 output, at t = 0 s"
    assert shown[1].split() == ["p.x[0]", "p.x[1]", "torque"]
    assert shown[2].startswith("d/dt p.x[0]") and shown[4].split()[0] == "angle"
    assert "discrete, dt = 0.01 s" in repr(sampled)


def test_without_python_control_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(BiellaError, match=r"pip install 'biella\[control\]'"):
        linearize(pendulum(0.0)).to_control()
