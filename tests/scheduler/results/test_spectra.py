"""Densities, waterfalls, orders and orbits of results, and MDF4 files of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import signal

from biella import Diagram, simulate
from biella.blocks import ADC, Noise, Sine
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError, Signal

STEP = 1e-4
T = np.arange(100_001) * STEP


def run_up(first: float = 100.0, last: float = 400.0) -> Result:
    """Return a shaft that speeds up evenly over ten seconds, and what it shakes."""
    angle = first * T + (last - first) / T[-1] / 2 * T**2
    speed = first + (last - first) / T[-1] * T
    x = 3e-5 * np.cos(angle + 0.7) + 1e-5 * np.cos(2 * angle - 1.2)
    y = 2e-5 * np.sin(angle + 0.7) + 0.8e-5 * np.cos(0.5 * angle)
    x = x + 2e-5 * np.cos(2 * np.pi * 333.0 * T)  # a hum that no order has
    return Result.from_arrays(
        T,
        {
            Signal("x", unit="m"): x,
            Signal("y", unit="m"): y,
            Signal("both", 2, "m"): np.column_stack([x, y]),
            Signal("angle", unit="rad"): np.mod(angle, 2 * np.pi),
            Signal("speed", unit="rpm"): speed * 30 / np.pi,
            Signal("turned", unit="m"): angle,
        },
        info={"diagram": "run-up"},
    )


class TestDensity:
    @pytest.mark.engine
    def test_white_noise_has_its_density(self) -> None:
        d = Diagram(step=1e-3)
        d.add(Noise(density=2e-4, seed=1, unit="V"), name="noise")
        spectrum = simulate(d, 400.0).psd("noise", resolution=1.0)
        # One-sided, so twice the density given. 799 half-overlapping stretches and 398 lines.
        assert spectrum.density[1:-1].mean() == pytest.approx(4e-4, rel=0.01)
        assert spectrum.rms() == pytest.approx(np.sqrt(2e-4 / 1e-3), rel=0.01)

    def test_is_that_of_scipy_and_finds_a_sine(self) -> None:
        result = run_up()
        spectrum = result.psd("x", resolution=2.0, start=1.0, stop=9.0)
        part = result["x"][10_000:90_001]
        f, density = signal.welch(part, 1e4, "hann", 5000, detrend="constant")
        assert np.allclose(spectrum.frequencies, f) and np.allclose(spectrum.density, density)
        assert spectrum.rms(325, 341) == pytest.approx(2e-5 / np.sqrt(2), rel=1e-3)

    @pytest.mark.engine
    def test_a_held_signal_is_taken_once_a_sample(self) -> None:
        d = Diagram(step=1e-5)
        adc = d.add(ADC(24, period=1e-3, offset=4e-4), name="adc")
        d.connect(d.add(Sine(1.0, 40.0, unit="V")), adc)
        result = simulate(d, 2.0)
        taken = result.psd("adc.y", period=1e-3, resolution=5.0)
        assert taken.frequencies[-1] == pytest.approx(500.0)
        assert taken.rms(30, 50) == pytest.approx(np.sqrt(0.5), rel=1e-3)
        steps = result.psd("adc.y", resolution=5.0)
        assert steps.rms(900, 1100) > 0.02  # images of the held signal

    def test_mistakes_are_reported(self) -> None:
        result = run_up()
        with pytest.raises(ResultError, match=r"choose one, `both\[0\]`"):
            result.psd("both")
        with pytest.raises(ResultError, match=r"needs 1000000 samples of 100001; 0\.1 to"):
            result.psd("x", resolution=0.01)
        with pytest.raises(ResultError, match="not an integer multiple of the recorded step"):
            result.psd("x", period=1.5e-4)
        uneven = Result.from_arrays(np.linspace(0, 1, 50) ** 2, {"x": np.zeros(50)})
        with pytest.raises(ResultError, match="requires equally spaced"):
            uneven.psd("x")


class TestOrders:
    @pytest.mark.parametrize("shaft", [{"angle": "angle"}, {"speed": "speed"}])
    def test_amplitudes_and_phases_are_found_again(self, shaft: Any) -> None:
        orders = run_up().orders("x", **shaft, highest=4, turns=16)
        # Where the hum is away from the orders looked at.
        clear = (orders.speeds > 110) & (orders.speeds < 390)
        assert clear.sum() > 20
        first, second = orders.track(1)[clear], orders.track(2)[clear]
        assert np.abs(first) == pytest.approx(3e-5, rel=2e-3)
        assert np.abs(second) == pytest.approx(1e-5, rel=5e-3)
        assert np.angle(first) == pytest.approx(0.7, abs=5e-3)
        assert np.abs(orders.track(1.5)[clear]).max() < 1e-7
        # From end to end of the run-up, in which the speed changes by up to 2 % a turn.
        assert orders.speeds[0] < 115 and orders.speeds[-1] > 385

    def test_phases_are_of_the_shaft_wherever_one_starts(self) -> None:
        orders = run_up().orders("y", angle="angle", highest=2, start=2.0071, stop=6.0)
        assert np.angle(orders.track(1)) == pytest.approx(0.7 - np.pi / 2, abs=5e-3)

    def test_half_order_and_its_neighbors(self) -> None:
        orders = run_up().orders("y", angle="angle", highest=3, turns=8)
        assert np.abs(orders.track(0.5)) == pytest.approx(0.8e-5, rel=1e-2)
        with pytest.raises(ResultError, match=r"order 0\.3 is not among"):
            orders.track(0.3)

    def test_a_shaft_that_turns_the_other_way(self) -> None:
        r = run_up()
        back = Result.from_arrays(T, {"x": r["x"], "speed": -r["speed"] * np.pi / 30})
        assert np.abs(back.orders("x", speed="speed", highest=2).track(1)) == pytest.approx(
            3e-5, rel=1e-2
        )

    def test_mistakes_are_reported(self) -> None:
        result = run_up()
        with pytest.raises(ResultError, match="signal of the `angle` or the `speed`"):
            result.orders("x")
        with pytest.raises(ResultError, match="specify either"):
            result.orders("x", angle="angle", speed="speed")
        with pytest.raises(ResultError, match="`turned` is in m, not in rad"):
            result.orders("x", angle="turned")
        with pytest.raises(ResultError, match="Use fewer `turns`"):
            result.orders("x", angle="angle", turns=10_000)
        with pytest.raises(ResultError, match="beyond half the sample rate"):
            result.orders("x", angle="angle", highest=1000)
        still = Result.from_arrays(T, {"x": result["x"], "speed": 0 * T})
        with pytest.raises(ResultError, match="does not turn"):
            still.orders("x", speed="speed")


class TestWaterfall:
    def test_a_steady_sine_keeps_its_height_and_orders_climb(self) -> None:
        w = run_up().waterfall("x", speed="speed", resolution=4.0)
        line = int(np.abs(w.frequencies - 332).argmin())
        near = w.amplitudes[line - 2 : line + 3].max(axis=0)
        assert near == pytest.approx(2e-5, rel=0.1)
        assert w.speeds is not None
        low = w.frequencies < 100
        peaks = w.frequencies[low][w.amplitudes[low].argmax(axis=0)]
        assert peaks == pytest.approx(w.speeds / (2 * np.pi), abs=6.0)

    def test_pictures(self, tmp_path: Path) -> None:
        result = run_up()
        result.psd("x").plot(path=tmp_path / "psd.png")
        result.waterfall("x", speed="speed").plot(
            orders=(1, 2), highest=400.0, path=tmp_path / "w.png"
        )
        result.waterfall("x").plot(path=tmp_path / "over_time.png")
        result.orders("x", angle="angle").plot(path=tmp_path / "orders.png")
        figure = result.orbit("x", "y", angle="angle", stop=0.2).plot(
            clearance=5e-5, path=tmp_path / "orbit.png"
        )
        for name in ("psd", "w", "over_time", "orders", "orbit"):
            assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        assert figure.axes[0].get_xlabel() == "x [m]"


class TestOrbit:
    def test_circles_of_an_ellipse(self) -> None:
        orbit = run_up().orbit("x", "y", angle="angle", start=2.0, stop=4.0)
        forward, backward = orbit.component(1)
        # 3e-5 cos + 2e-5 i sin: circles of 2.5e-5 with the shaft and 0.5e-5 against it.
        assert abs(forward) == pytest.approx(2.5e-5, rel=5e-3)
        assert abs(backward) == pytest.approx(0.5e-5, rel=2e-2)
        assert np.angle(forward) == pytest.approx(0.7, abs=5e-3)

    def test_a_few_turns_are_enough_beside_another_order(self) -> None:
        # Nine turns and a bit: without a window other orders would leak in by more than 1 %.
        orbit = run_up().orbit("x", "y", angle="angle", start=3.0, stop=3.3)
        forward, _ = orbit.component(1)
        assert abs(forward) == pytest.approx(2.5e-5, rel=2e-3)

    def test_marks_are_once_a_turn(self) -> None:
        orbit = run_up(100.0, 100.0001).orbit("both[0]", "both[1]", angle="angle")
        assert orbit.marks.size == pytest.approx(1000 / (2 * np.pi), abs=1)
        assert np.diff(orbit.t[orbit.marks]) == pytest.approx(2 * np.pi / 100, abs=1.01 * STEP)

    def test_components_need_the_angle(self) -> None:
        with pytest.raises(ResultError, match="require the angle or the speed of the shaft"):
            run_up().orbit("x", "y").component()


class TestShaft:
    def test_that_is_not_named_is_reported_how(self) -> None:
        result = run_up()
        with pytest.raises(
            ResultError, match=r"specify whether `speed` is .*orders\('x', speed='speed'\)"
        ):
            result.orders("x", "speed")
        with pytest.raises(ResultError, match=r"waterfall\('x', angle='angle'\)"):
            result.waterfall("x", "angle")
        with pytest.raises(ResultError, match=r"orbit\('x', 'y', angle='angle'\)"):
            result.orbit("x", "y", "angle")

    def test_that_turns_far_between_samples_is_not_unwrapped(self) -> None:
        # 5 rad a sample, recorded without jumps: it is taken as it is.
        t = np.arange(2000) * 1e-2
        x = np.cos(500.0 * t * 0.01)
        result = Result.from_arrays(t, {"x": x, "angle": 500.0 * t}, units={"angle": "rad"})
        orders = result.orders("x", angle="angle", highest=0.1, turns=100)
        assert orders.speeds == pytest.approx(500.0)
        assert np.abs(orders.track(0.01)) == pytest.approx(1.0, rel=1e-3)

    def test_amplitude_at_half_the_sample_rate(self) -> None:
        t = np.arange(4000) * 1e-3
        result = Result.from_arrays(t, {"x": 3.0 * (-1.0) ** np.arange(4000)})
        waterfall = result.waterfall("x", resolution=10.0)
        assert waterfall.amplitudes[-1] == pytest.approx(3.0)
