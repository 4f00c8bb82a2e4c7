"""State feedback: its law, integral action, and limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import cont2discrete

from biella import Diagram, DiagramError, simulate
from biella.blocks import Mux, Selector, Sine, StateFeedback, StateSpace, Step
from biella.blocks.basic.sources._playback import Playback
from biella.blocks.control import add_integral, dlqr

pytestmark = pytest.mark.engine

T = 0.02
A = np.array([[0.0, 1.0], [2.0, -0.5]])
B = np.array([[0.0], [1.0]])


def test_law_is_the_one_of_numpy():
    """Two outputs, two integrals, a limit that is reached: the same as written out."""
    random = np.random.default_rng(1)
    K, Ki, N = random.normal(size=(2, 3)), random.normal(size=(2, 2)), random.normal(size=(2, 2))
    x, r, m = (
        random.normal(size=(100, 3)),
        random.normal(size=(100, 2)),
        random.normal(size=(100, 2)),
    )
    block = StateFeedback(K, Ki, N=N, limits=([-1, -2], [1, 2]), tracking_time=0.1)
    d = Diagram("feedback", step=T)
    d.add(block, name="block", period=T)
    for name, values in (("state", x), ("reference", r), ("measurement", m)):
        d.connect(d.add(Playback(np.arange(100) * T, values, interpolation="hold")), block[name])
    ours = simulate(d, 99 * T)["block"]
    integral, wanted = np.zeros(2), []
    for now, target, measured in zip(x, r, m, strict=True):
        v = -K @ now + N @ target - Ki @ integral
        y = np.clip(v, [-1, -2], [1, 2])
        wanted.append(y)
        integral = integral + T * (target - measured) + T / 0.1 * np.linalg.pinv(Ki) @ (v - y)
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-12)


def loop(limits, tracking_time=0.0, A=A):
    """A plant, if not given unstable, under LQ regulation with integral action, disturbed."""
    a, b, *_ = cont2discrete((A, B, np.eye(2), np.zeros((2, 1))), T)
    gains = dlqr(*add_integral(a, b, [1.0, 0.0], period=T), [10.0, 0.1, 40.0], 0.1).K
    d = Diagram("loop", step=T / 4)
    # A second input of the plant is the disturbance.
    plant = d.add(StateSpace(A, np.hstack([B, B]), np.eye(2)), name="plant")
    block = StateFeedback(gains[:, :2], gains[:, 2:], limits=limits, tracking_time=tracking_time)
    d.add(block, name="feedback", period=T)
    first, both = d.add(Selector([0]), name="position"), d.add(Mux(2), name="inputs")
    d.connect(plant, first, block["state"])
    d.connect(first, block["measurement"])
    d.connect(d.add(Step(at=0.1, to=1.0), name="ref"), block["reference"])
    d.connect(block, both["u1"])
    d.connect(d.add(Step(at=6.0, to=0.7), name="disturbance"), both["u2"])
    d.connect(both, plant)
    return simulate(d, 12.0, record=["*"])


def test_integral_action_leaves_no_error():
    run = loop(None)
    position = run["position"]
    at = np.searchsorted(run.t, 6.0) - 1
    assert abs(position[at] - 1.0) < 1e-4 and abs(position[-1] - 1.0) < 1e-4


def test_limits_do_not_wind_up():
    """A weak actuator against a spring: 20 % too far where ξ winds up, 2 % where it does not."""
    spring = np.array([[0.0, 1.0], [-1.0, -1.5]])
    limited = loop((-1.2, 1.2), A=spring)
    wound = loop((-1.2, 1.2), tracking_time=1e9, A=spring)
    assert np.abs(limited["feedback"]).max() == np.abs(wound["feedback"]).max() == 1.2
    before = limited.t < 6.0
    assert wound["position"][before].max() > 1.1
    assert limited["position"][before].max() < 1.03
    assert abs(limited["position"][-1] - 1.0) < 1e-4


def test_without_integral_it_is_a_matrix_and_continuous():
    d = Diagram("gain", step=0.01)
    block = d.add(StateFeedback([[1.0, 2.0]], unit="N"), name="block")
    d.connect(d.add(Sine([1.0, 2.0], 0.3), name="x"), block)
    run = simulate(d, 1.0, record=["*"])
    np.testing.assert_allclose(run["block"], -run["x"] @ [1.0, 2.0], rtol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, 2.0]], [[1.0], [2.0]]), "`Ki` is a matrix with 1 rows, as many as K has"),
        (([1.0], [1.0, 2.0], [1.0]), "Ki and N need a column for each reference"),
        (([1.0], None, None, (1, -1)), "lower <= upper"),
        (([1.0], None, None, ([1, 2], [3, 4])), "vectors of 1 numbers"),
    ],
)
def test_wrong_parameters_are_refused(arguments, message):
    names = ("K", "Ki", "N", "limits")
    with pytest.raises(DiagramError, match=message):
        StateFeedback(**dict(zip(names, arguments, strict=False)))
