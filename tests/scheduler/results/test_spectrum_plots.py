"""Pictures of spectra, waterfalls, orders and orbits: what is drawn, on which axes."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from biella.scheduler.results._spectra import Orbit, OrderSpectrum, Spectrum, Waterfall

TIMES = np.linspace(0.0, 3.0, 4)
FREQUENCIES = np.array([0.0, 10.0, 20.0, 30.0])


def waterfall(speeds=None):
    return Waterfall("x", "m", FREQUENCIES, TIMES, np.eye(4) + 1e-3, speeds)


def test_a_spectrum_shows_amplitudes_without_the_mean(tmp_path):
    spectrum = Spectrum("x", "m", FREQUENCIES, np.array([9.0, 4.0, 16.0, 1.0]))
    figure = spectrum.plot(path=tmp_path / "psd.png")
    (axes,) = figure.axes
    (line,) = axes.lines
    assert np.array_equal(line.get_xdata(), [10.0, 20.0, 30.0])
    assert np.array_equal(line.get_ydata(), [2.0, 4.0, 1.0])
    assert axes.get_ylabel() == "amplitude density [m/√Hz]"
    assert (tmp_path / "psd.png").stat().st_size > 5_000


def test_spectra_in_one_picture_have_colors_of_their_own():
    axes = Figure().subplots()
    for name in "ab":
        Spectrum(name, None, FREQUENCIES, np.ones(4)).plot(axes=axes)
    first, second = axes.lines
    assert first.get_color() != second.get_color()
    assert axes.get_legend_handles_labels()[1] == ["a", "b"]
    assert axes.get_ylabel() == "amplitude density [1/√Hz]"


def test_a_run_up_is_drawn_over_speed_with_lines_of_orders():
    speeds = np.array([10.0, 20.0, 30.0, 40.0])
    figure = waterfall(speeds).plot(orders=(1, 2), highest=20.0)
    axes = figure.axes[0]
    assert axes.get_xlabel() == "speed [rpm]" and axes.get_ylim() == (0.0, 20.0)
    for order, line in zip((1, 2), axes.lines, strict=True):
        assert line.get_xdata() == pytest.approx(speeds * 30 / np.pi)
        assert line.get_ydata() == pytest.approx(order * speeds / (2 * np.pi))
    assert figure.axes[1].get_ylabel() == "x [m]"


@pytest.mark.parametrize(
    ("speeds", "by_speed"),
    [
        (None, False),
        (np.full(4, 100.0), False),
        (np.array([100.0, 100.1, 100.2, 100.3]), False),  # rises, but by less than 2 %
        (np.array([10.0, 30.0, 20.0, 40.0]), False),  # to and fro
        (np.array([40.0, 30.0, 20.0, 10.0]), True),
        (np.array([-10.0, -20.0, -30.0, -40.0]), True),
        (np.array([-100.0, -100.1, -100.2, -100.3]), False),
    ],
)
def test_only_a_speed_that_changes_one_way_is_an_axis(speeds, by_speed):
    axes = waterfall(speeds).plot().axes[0]
    assert axes.get_xlabel() == ("speed [rpm]" if by_speed else "time [s]")
    if speeds is not None:
        spectrum = OrderSpectrum(
            "x", None, np.arange(4.0), TIMES, speeds, np.eye(4, dtype=np.complex128)
        )
        assert spectrum.plot().axes[0].get_xlabel() == axes.get_xlabel()


def test_colors_reach_down_to_the_floor():
    axes = waterfall().plot(floor=1e-2).axes[0]
    (mesh,) = axes.collections
    assert mesh.norm.vmax == pytest.approx(1.001) and mesh.norm.vmin == pytest.approx(1.001e-2)
    assert mesh.get_array().min() == pytest.approx(1.001e-2)


def test_a_signal_that_is_zero_can_be_drawn():
    zero = Waterfall("x", None, FREQUENCIES, TIMES, np.zeros((4, 4)))
    assert zero.plot().axes[0].collections


def test_an_orbit_has_its_clearance_and_marks_once():
    angle = np.linspace(0.0, 6 * np.pi, 300)
    orbit = Orbit(("x", "y"), "mm", angle, np.cos(angle), np.sin(angle), angle)
    axes = Figure().subplots()
    orbit.plot(clearance=2.0, axes=axes, label="first")
    orbit.plot(clearance=2.0, axes=axes, label="second")
    labels = [line.get_label() for line in axes.lines]
    assert labels.count("clearance") == 1 and {"first", "second"} <= set(labels)
    circle = axes.lines[labels.index("clearance")]
    assert np.hypot(*circle.get_data()) == pytest.approx(2.0)
    assert axes.get_xlabel() == "x [mm]" and axes.get_aspect() == 1.0
    curves = [line for line in axes.lines if line.get_label() in ("first", "second")]
    assert curves[0].get_color() != curves[1].get_color()
