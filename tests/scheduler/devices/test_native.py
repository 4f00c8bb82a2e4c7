"""Devices of the C library as Python sees them: loopback with delay, loss and noise; counts."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram
from biella.blocks import Constant, Gain, Integrator
from biella.scheduler.binding._bind import open_binding

from . import diagrams

pytestmark = pytest.mark.engine


def device(ins, outs, **options):
    return {
        "driver": "loopback",
        "receive": {name: dict(about) for name, about in ins.items()},
        "send": {name: {"safe": 0, **about} for name, about in outs.items()},
        **options,
    }


def loop():
    d = diagrams.loop()
    d.output("rate", d["k"])
    return d


def echoes(ticks, count, name="b", **options):
    """Send 0, 1, 2, … and return what comes back at each tick."""
    d = Diagram("count", step=1.0, solver="euler")
    x = d.add(Integrator(0.0), name="x")
    one = d.add(Constant(1.0), name="one")
    back = d.add(Gain(1.0), name="back")
    d.connect(one, x)
    d.connect(x, back)
    rig = {
        "devices": {name: device({"y": {"safe": -1.0}}, {"u": {}}, **options)},
        "blocks": {"back": {"device": name}},
    }
    bound = open_binding(d, rig)
    rows = ticks(bound).advance(count, signals=["back", f"{name}.delay"])
    return np.array(rows).T, bound.devices[0].counts


@pytest.mark.parametrize("delay", [1, 2, 7])
def test_what_is_sent_comes_back_after_the_delay(ticks, delay):
    (came, delays), counts = echoes(ticks, 20, delay=delay)
    np.testing.assert_array_equal(came[delay:], np.arange(20.0)[:-delay])
    assert (came[:delay] == -1.0).all()
    assert (delays[delay:] == delay).all()
    assert counts["missed"] == counts["stale"] == 0
    assert counts["frames"] == 20 - delay


def test_loss_is_counted_and_the_last_value_held(ticks):
    (came, _), counts = echoes(ticks, 2000, loss=0.05, seed=3)
    lost = 2000 - 1 - counts["frames"]
    # Binomial: 100 ± 9.7; five of these.
    assert 50 < lost < 150
    assert counts["missed"] in (lost, lost - 1)  # a loss at the very end is not noticed yet
    steps = np.diff(came[1:])
    assert ((steps == 0) | (steps >= 1)).all()
    assert (steps == 0).sum() in (lost, lost - 1)


def test_jitter_delays_some_and_never_goes_back(ticks):
    (came, delays), counts = echoes(ticks, 2000, delay=2, jitter=3, seed=1)
    assert set(delays[10:]) <= {2.0, 3.0, 4.0, 5.0}
    assert len(set(delays[10:])) > 2
    assert (np.diff(came[10:]) >= 0).all()
    assert counts["stale"] > 0
    # What was overtaken is missing first and stale when it comes.
    assert abs(counts["missed"] - counts["stale"]) <= 3


def test_noise_is_that_of_the_seed(ticks):
    (first, _), _ = echoes(ticks, 3000, noise=0.5, seed=9)
    (again, _), _ = echoes(ticks, 3000, noise=0.5, seed=9)
    (other, _), _ = echoes(ticks, 3000, noise=0.5, seed=10)
    np.testing.assert_array_equal(first, again)
    assert (first != other)[1:].all()
    noise = first[1:] - np.arange(2999.0)
    # Standard errors of mean and deviation: 0.5/√n and 0.5/√(2n); five of these.
    assert abs(noise.mean()) < 5 * 0.5 / np.sqrt(2999)
    assert abs(noise.std() - 0.5) < 5 * 0.5 / np.sqrt(2 * 2999)


def test_without_a_seed_each_device_has_noise_of_its_own(ticks):
    (first, _), _ = echoes(ticks, 100, noise=0.5)
    (again, _), _ = echoes(ticks, 100, noise=0.5)
    (other, _), _ = echoes(ticks, 100, "other", noise=0.5)
    np.testing.assert_array_equal(first, again)
    assert (first != other)[1:].all()


def test_a_closed_device_still_reports_what_happened(ticks):
    rig = {"devices": {"b": device({"y": {}}, {"u": {}})}, "blocks": {"k": {"device": "b"}}}
    bound = open_binding(loop(), rig)
    ticks(bound).advance(3)
    bound.close()
    bound.close()
    assert bound.devices[0].counts["frames"] == 2
    assert bound.devices[0].why == ""
