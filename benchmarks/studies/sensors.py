"""Data sheets of the sensor presets, measured from what comes out, beside what they promise.

    python benchmarks/studies/sensors.py [FIGURE.png]

Noise by Welch's method, the bandwidth by sines, linearity and hysteresis by a slow full cycle,
latency by cross-correlation; for the figure, errors of an encoder's speeds beside their bounds.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq
from scipy.signal import correlate, sawtooth, welch

from biella import Diagram, simulate
from biella.blocks import Encoder, Instrument, Playback, Sensor
from biella.blocks.sensors import presets

RATE = 100e3
OPEN: dict[str, Any] = {"drift": 0, "random_walk": 0, "resolution": 0, "limits": (-1e9, 1e9)}
CALM: dict[str, Any] = OPEN | {"noise": 0.0}
INSTRUMENTS = {
    "torque meter": presets.TORQUE_METER,
    "load cell": presets.LOAD_CELL,
    "accelerometer": presets.ACCELEROMETER,
    "proximity probe": presets.PROXIMITY_PROBE,
}


def play(block: Any, u: Any, step: float = 1 / RATE, output: str = "y") -> Any:
    """Return what a block makes of an input given tick by tick."""
    d = Diagram("measurement", step=step)
    d.add(block, name="block")
    source = d.add(Playback(np.arange(len(u)) * step, u, interpolation="hold"))
    d.connect(source, block)
    signal = f"block.{output}"
    return simulate(d, (len(u) - 1) * step, record=[signal], progress=False)[signal]


def measure_noise(sheet: Instrument) -> tuple[Any, Any]:
    """Return frequencies in Hz and densities per √Hz."""
    y = play(Sensor(replace(sheet, **OPEN), seed=1), np.zeros(2**21)) - sheet.offset
    f, power = welch(y, RATE, nperseg=8192, detrend=False)
    return f[1:], np.sqrt(power[1:])


def measure_response(sheet: Instrument, frequency: float) -> float:
    """Return the amplitude of a small sine over the gain."""
    step = 1 / max(RATE, 50 * frequency)
    n = round(12 / frequency / step)
    t = np.arange(n) * step
    small = 1e-3 * (sheet.full_scale or 1.0)
    bare = replace(sheet, **CALM, hysteresis=0.0, nonlinearity=0.0, latency=0.0)
    y = play(Sensor(bare), small * np.sin(2 * np.pi * frequency * t), step)
    late = t >= 6 / frequency - step / 2
    part = np.exp(-2j * np.pi * frequency * t[late])
    return float(abs(2 * np.mean((y[late] - sheet.offset) * part)) / small / abs(sheet.gain))


def measure_cycle(sheet: Instrument) -> tuple[float, float, Any]:
    """Return linearity and width of the loop as parts of full scale, and (u, deviation) of it."""
    scale = float(sheet.full_scale)
    u = scale * sawtooth(2 * np.pi * (np.arange(2501) / 1000 + 0.25), 0.5)
    bare = replace(sheet, **CALM, bandwidth=None, latency=0.0)
    away = ((play(Sensor(bare), u) - sheet.offset) / sheet.gain - u) / scale
    down, up = away[1250:1751], away[2250:1749:-1]
    linearity, width = np.abs(down + up).max() / 2, (down - up).max()
    return float(linearity), float(width), (u[1250:2251] / scale, away[1250:2251])


def measure_latency(sheet: Instrument) -> float:
    """Return by how much the output is late beside an instrument without latency, in s."""
    u = np.random.default_rng(1).normal(size=5000)
    late, prompt = (
        play(Sensor(replace(sheet, **CALM, offset=0.0, latency=by)), u) for by in (sheet.latency, 0)
    )
    return float(np.argmax(correlate(late, prompt)) - len(u) + 1) / RATE


def measure_speeds(method: str, speeds: Any) -> Any:
    """Return the largest error of an encoder's speed in rad/s, at each speed."""
    errors = []
    for speed in speeds:
        encoder = Encoder(4096, method=method, window=10, clock=1e6)
        seen = play(encoder, 0.1 + speed * np.arange(8000) * 1e-4, 1e-4, "speed")[4000:]
        errors.append(np.abs(seen - speed).max())
    return np.array(errors)


def draw(path: str) -> None:
    """Draw spectra, a loop and the errors of speeds."""
    plt.style.use("seaborn-v0_8-colorblind")
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for n, (name, sheet) in enumerate(INSTRUMENTS.items()):
        f, density = measure_noise(sheet)
        axes[0].loglog(f, density / sheet.noise, f"C{n}", lw=0.8, label=name)
        axes[0].axvline(sheet.bandwidth, color=f"C{n}", ls=":", lw=1)
    axes[0].set(ylim=(1e-3, 3), xlabel="frequency in Hz", ylabel="noise over its density")
    axes[0].legend()
    u, away = measure_cycle(presets.TORQUE_METER)[2]
    axes[1].plot(u, 100 * away)
    axes[1].set(xlabel="torque over full scale", ylabel="deviation of the torque meter in % of it")
    speeds, pitch = np.geomspace(0.5, 3000.0, 30), 2 * np.pi / 4096
    counted = np.floor(np.maximum(speeds * 1e-3 / pitch, 1.0)) * pitch / speeds
    bounds = [pitch / 1e-3 / speeds, *(1 / (1e6 * dt - 1) for dt in (pitch / speeds, counted))]
    for n, (method, bound) in enumerate(zip(("count", "period", "both"), bounds, strict=True)):
        error = measure_speeds(method, speeds) / speeds
        axes[2].loglog(speeds, error, f"C{n}.", ms=4, label=f'"{method}"')
        axes[2].loglog(speeds, np.where(bound > 0, bound, math.nan), f"C{n}", lw=1)
    axes[2].set(xlabel="speed in rad/s", ylabel="largest error, and bound", ylim=(1e-4, 10))
    axes[2].legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print the table; draw the figure if a path is given."""
    columns = {"noise per √Hz": 22, "-3 dB, Hz": 18, "linearity": 18, "loop": 20, "late, ms": 10}
    print(" " * 16 + "".join(f"{title:>{width}}" for title, width in columns.items()))
    for name, sheet in INSTRUMENTS.items():
        f, density = measure_noise(sheet)
        low = density[f < sheet.bandwidth / 8][1:]
        corner = brentq(
            lambda f, sheet=sheet: measure_response(sheet, f) - math.sqrt(0.5),
            0.7 * sheet.bandwidth,
            1.4 * sheet.bandwidth,
            rtol=1e-4,
        )
        linear, loop = measure_cycle(replace(sheet, hysteresis=0.0))[0], measure_cycle(sheet)[1]
        pairs = [
            (np.sqrt(np.mean(low**2)), sheet.noise),
            (corner, sheet.bandwidth),
            (linear, sheet.nonlinearity),
            (loop, sheet.hysteresis),
            (1e3 * measure_latency(sheet), 1e3 * sheet.latency),
        ]
        cells = [f"{a:.4g} ({b:.4g})" for a, b in pairs]
        widths = columns.values()
        row = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        print(f"{name:16}{row}")
    print("measured (data sheet)")
    if len(sys.argv) > 1:
        draw(sys.argv[1])


if __name__ == "__main__":
    main()
