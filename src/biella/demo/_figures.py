"""The figures of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..scheduler.results._result import Result
from .rig import CLEARANCE, LOAD_AT, OVERLOAD_AT, TORQUE_LIMIT

# Wong's palette, distinguishable with color blindness.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"


def draw_responses(simulated: Result, realtime: Result, path: Path) -> None:
    """Draw speed and torque of both runs."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(9, 5.6), layout="constrained")
    speed, torque = axes
    speed.plot(simulated.t, simulated["reference"], "k:", label="wanted")
    speed.plot(simulated.t, simulated["speed"], color=BLUE, lw=3, alpha=0.5, label="simulated")
    speed.plot(realtime.t, realtime["speed"], color=ORANGE, lw=1, label="real-time at 1 kHz")
    speed.set(ylabel="speed of the crank, rad/s")
    torque.plot(simulated.t, simulated["motor"], color=BLUE, lw=3, alpha=0.5, label="simulated")
    torque.plot(
        realtime.t,
        realtime["measured_torque"],
        color=ORANGE,
        lw=0.8,
        label="real-time, as measured",
    )
    torque.set(ylabel="torque of the motor, N m", xlabel="time, s")
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False)
    for at, text in ((LOAD_AT, "load sets in"), (OVERLOAD_AT, "overload")):
        if at > simulated.t[-1]:
            continue
        for ax in axes:
            ax.axvline(at, color="0.6", lw=0.8)
        speed.annotate(text, (at, 2.0), xytext=(4, 0), textcoords="offset points")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_states(run: Result, names: Sequence[str], path: Path) -> None:
    """Draw the state of the supervisor, by name, above the torque that it watches."""
    import matplotlib.pyplot as plt

    figure, (top, below) = plt.subplots(
        2, 1, sharex=True, figsize=(9, 4.8), layout="constrained", height_ratios=[3, 2]
    )
    states = run["supervisor.state"]
    starts = [0, *(np.flatnonzero(np.diff(states)) + 1)]
    ends = [*(run.t[k] for k in starts[1:]), run.t[-1]]
    for start, end in zip(starts, ends, strict=True):
        number = states[start]
        color = ORANGE if names[int(number) - 1] in ("overload", "safe") else BLUE
        top.barh(number, end - run.t[start], left=run.t[start], height=0.7, color=color)
    top.step(run.t, states, where="post", color="0.4", lw=0.8)
    top.set(ylim=(len(names) + 0.6, 0.4))
    top.set_yticks(range(1, len(names) + 1), names)
    below.plot(run.t, run["measured_torque"], color=BLUE, lw=0.8, label="measured")
    below.axhline(TORQUE_LIMIT, color=ORANGE, lw=1, ls=":", label="limit")
    below.set(ylabel="torque, N m", xlabel="time, s")
    below.legend(loc="upper left", ncols=2)
    for ax in (top, below):
        ax.grid(alpha=0.3, axis="x")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_orbit(run: Result, path: Path) -> None:
    """Draw the path of the journal in its clearance, and how thin its film is."""
    import matplotlib.pyplot as plt

    x, y = 1e6 * run["crank_pin.journal_position"].T
    end = min(run.t[-1], OVERLOAD_AT)
    late = (run.t > end - 1.0) & (run.t <= end)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
    around = np.linspace(0.0, 2.0 * np.pi, 200)
    left.plot(1e6 * CLEARANCE * np.cos(around), 1e6 * CLEARANCE * np.sin(around), "k", lw=1)
    left.plot(x, y, color="0.75", lw=0.7, label="whole run")
    left.plot(x[late], y[late], color=BLUE, lw=1.3, label=f"second before {end:.3g} s")
    left.set(aspect="equal", xlabel="x, µm", ylabel="y, µm", title="journal in its clearance")
    left.legend(loc="upper left", bbox_to_anchor=(0.0, -0.15), ncols=2)
    right.plot(run.t, 1e6 * run["crank_pin.film.film"], color=BLUE, lw=0.9)
    right.set(xlabel="time, s", ylabel="thinnest film, µm", ylim=(0.0, None), title="film")
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_ticks(realtime: Result, period: float, path: Path) -> None:
    """Draw how late ticks began and how long they took, on logarithmic axes."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
    for name, color, label in (
        ("lateness", ORANGE, "late by"),
        ("execution", BLUE, "took"),
    ):
        values = 1e6 * realtime[f"realtime.{name}"][1:]
        values = values[values > 0]
        if values.size:
            edges = np.geomspace(0.5 * values.min(), 2.0 * values.max(), 80)
            ax.hist(values, edges.tolist(), color=color, alpha=0.6, label=label)
    ax.axvline(1e6 * period, color="k", lw=1, ls=":", label=f"period, {1e6 * period:.0f} µs")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="time, µs",
        ylabel="number of ticks",
        title="ticks of the real-time run",
    )
    ax.grid(alpha=0.3)
    ax.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
