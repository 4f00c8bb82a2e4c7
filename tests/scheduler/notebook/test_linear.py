"""Linear models in notebooks and terminals."""

import re

import numpy as np
import pytest

from biella import LinearModel
from biella.scheduler.run._linear_model import OperatingPoint


def make(a, dt=None):
    n = len(a)
    names = tuple(f"<x{k}>" for k in range(n))
    point = OperatingPoint(0.5, dict.fromkeys(names, 0.25), {"u": 1.0}, {"y": 2.0})
    b, c = np.ones((n, 1)), np.ones((1, n))
    return LinearModel(np.array(a), b, c, np.zeros((1, 1)), names, ("u",), ("y",), dt, point)


def rows_of_poles(made):
    return re.findall(r'<td class="number">([^<]*)</td>' * 3 + r"<td>(\w+)</td>", made)


def test_poles_have_frequency_and_damping():
    w, z = 40.0, 0.1
    made = make([[0.0, 1.0], [-w * w, -2 * z * w]])._repr_html_()
    ((pole, hertz, damping, told),) = rows_of_poles(made)
    assert pole.startswith("-4 ± 39.799") and told == "stable"
    assert float(hertz) == pytest.approx(w / (2 * np.pi), rel=1e-3)
    assert float(damping) == pytest.approx(z)
    assert "d/dt &lt;x0&gt;" in made and "<x0>" not in made and "-1600" in made


def test_poles_of_a_discrete_model_are_of_the_sampled_motion():
    dt, w, z = 1e-3, 40.0, 0.1
    s = w * (-z + 1j * np.sqrt(1 - z * z))
    p = np.exp(s * dt)
    made = make([[p.real, p.imag], [-p.imag, p.real]], dt)._repr_html_()
    ((_, hertz, damping, told),) = rows_of_poles(made)
    assert float(hertz) == pytest.approx(w / (2 * np.pi), rel=1e-3) and told == "stable"
    assert float(damping) == pytest.approx(z, rel=1e-2) and "discrete, period 0.001 s" in made


def test_poles_at_and_beyond_the_limit():
    told = [row[3] for row in rows_of_poles(make(np.diag([0.0, 3.0, -5.0]))._repr_html_())]
    assert told == ["integrating", "unstable", "stable"]
    assert [r[3] for r in rows_of_poles(make(np.diag([1.0, 0.0]), 0.1)._repr_html_())] == [
        "integrating",
        "stable",
    ]


def test_large_models_are_cut():
    made = make(-np.eye(40))._repr_html_()
    assert "Larger than 24 × 24" in made and "… and 32 more" not in made
    text = repr(make(-np.eye(300)))
    assert len(text.splitlines()) == 2 and "… 288 more" in text
    assert "poles" not in make(-np.eye(300))._repr_html_()
