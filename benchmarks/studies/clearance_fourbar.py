"""A crank-rocker with play in one joint: the study behind docs/guides/clearance.md.

    python benchmarks/studies/clearance_fourbar.py [--figures FOLDER] [--contact rigid|compliant]
                                           [--starts N] [--quick]

Clearance 0.1 to 1 mm, 500 to 3000 rpm, imposed speed against a motor with PID, friction 0 against
0.02. Prints tables, and draws the figures of the page into the folder. `crank_rocker` says which
dimensions are ours. Runs leave out their first five turns.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from biella import Diagram, simulate
from biella.blocks import Constant, Sum, TransferFunction
from biella.blocks.multibody import (
    ContactStatistics,
    HuntCrossley,
    LankaraniNikravesh,
    RigidContact,
    System,
    contact_statistics,
    hertz_stiffness,
)
from biella.blocks.multibody.elements.clearance._clearance import ContactLaw
from biella.blocks.multibody.mechanisms import crank_rocker
from biella.scheduler.results._result import Result

Array = npt.NDArray[np.float64]

Drive = Literal["speed", "torque"]
Contact = Literal["rigid", "compliant", "ideal"]

PIN = 0.01
LEFT_OUT, TURNS = 5, 25
DEGREES = 2.0
RESTITUTION = 0.5
"""Of the law of Lankarani and Nikravesh; impacts keep 0.725 of their speed, rigid ones too."""
KP, KI, KD, LAG = 0.2, 4.0, 2e-4, 1e-3  # N m s/rad, N m/rad, N m s²/rad, s
BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "0.55"


@dataclass(frozen=True)
class Case:
    """One run; clearance and crank in m."""

    rpm: float = 1000.0
    clearance: float = 5e-4
    friction: float = 0.0
    drive: Drive = "speed"
    crank: float = 0.065
    contact: Contact = "rigid"
    turns: int = TURNS
    toward: float = np.pi

    @property
    def speed(self) -> float:
        """Return rad/s."""
        return self.rpm * np.pi / 30.0

    @property
    def turn(self) -> float:
        """Return the time of a turn in s."""
        return 60.0 / self.rpm

    @property
    def law(self) -> ContactLaw | Literal["ideal"]:
        """Return how the pin sits in its hole."""
        compliant = LankaraniNikravesh(
            stiffness=hertz_stiffness(PIN, PIN + self.clearance),
            restitution=RESTITUTION,
            friction=self.friction,
        )
        if self.contact == "rigid":
            keeps = compliant.effective_restitution
            return RigidContact(restitution=keeps, friction=self.friction)
        return "ideal" if self.contact == "ideal" else compliant


def build(case: Case) -> Diagram:
    """Wire the mechanism, to a motor whose PID holds the speed if that is not imposed."""
    system = crank_rocker(
        case.law, speed=case.speed, crank=case.crank, clearance=case.clearance,
        toward=case.toward, drive=case.drive,
    )  # fmt: skip
    shown = ["main.angle", "main.speed", "pin.force"]
    if case.contact != "ideal":
        names = ["contact", "normal_force", "angle", "angle_on_pin", "slip", "offset"]
        if case.contact == "rigid":
            names += ["impacts", "impulse", "sliding", "sliding_work"]
        shown += [f"pin.{name}" for name in names]
    # A recorded sample each third of a degree; contacts need more than that.
    step = case.turn / 1080
    substeps = max(4, int(np.ceil(10 * step / system.largest_stable_step())))
    options: dict[str, Any] = {"mode": "internal", "substeps": substeps}
    if case.contact != "rigid":
        step, options = step / substeps, {}
    d = Diagram("crank-rocker", step=step)
    if case.drive == "speed":
        d.add(system.block([], [*shown, "drive.effort"], **options), name="plant")
        return d
    plant = d.add(system.block(["motor.torque"], shown, **options), name="plant")
    wanted = d.add(Constant(case.speed, unit="rad/s"), name="wanted")
    error = d.add(Sum("+-"), name="error")
    pid = d.add(TransferFunction([KD + KP * LAG, KP + KI * LAG, KI], [LAG, 1.0, 0.0]), name="pid")
    d.connect(wanted, error["u1"])
    d.connect(plant["main.speed"], error["u2"])
    d.connect(error, pid)
    d.connect(pid, plant["motor.torque"])
    return d


@lru_cache(maxsize=24)
def run(case: Case) -> Result:
    """Run a case; a few are kept."""
    return simulate(build(case), case.turns * case.turn, record=["*"])


@cache
def judge(case: Case) -> ContactStatistics:
    """Tell of the contact after the first turns."""
    return contact_statistics(run(case), "pin", start=LEFT_OUT * case.turn)


def over_turns(case: Case, signal: str, degrees: float = DEGREES) -> Array:
    """Return the mean of a signal in each bin of crank angle, one row a turn."""
    result = run(case)
    at = result["plant.main.angle"] - result["plant.main.angle"][0]
    bins = round(360 / degrees)
    number = np.floor(at / (2 * np.pi) * bins + 1e-9).astype(int)
    values = result[f"plant.{signal}"]
    keep = (number >= LEFT_OUT * bins) & (number < (case.turns - 1) * bins)
    number = number[keep] - LEFT_OUT * bins
    size = (case.turns - 1 - LEFT_OUT) * bins
    weight = np.gradient(result.t)[keep]
    sums = np.bincount(number, values[keep] * weight, size)
    return np.asarray(sums / np.maximum(np.bincount(number, weight, size), 1e-300)).reshape(
        -1, bins
    )


def force_with_impulses(case: Case) -> Array:
    """Return the normal force over turns, with the impulses of impacts spread over their bins."""
    force = over_turns(case, "pin.normal_force")
    if case.contact != "rigid":
        return force
    statistics = judge(case)
    angle = np.interp(statistics.impact_times, run(case).t, run(case)["plant.main.angle"])
    at = angle - run(case)["plant.main.angle"][0] - 2 * np.pi * LEFT_OUT
    number = np.floor(at / np.radians(DEGREES)).astype(int)
    keep = (number >= 0) & (number < force.size)
    extra = np.bincount(number[keep], statistics.impact_impulses[keep], force.size)
    return force + extra.reshape(force.shape) / (case.turn * DEGREES / 360)


def regularity(rows: Array) -> float:
    """Return which part of the variance is that of the mean turn: 1 if all turns are alike."""
    return float(rows.mean(axis=0).var() / rows.var())


def fast_part(rows: Array) -> float:
    """Return the rms of what is faster than ten times the crank."""
    values = rows.ravel() - rows.mean()
    spectrum = np.fft.rfft(values * np.hanning(values.size) * np.sqrt(8 / 3))
    fast = np.fft.rfftfreq(values.size, 1 / rows.shape[1]) > 10
    return float(np.sqrt(2 * (np.abs(spectrum[fast]) ** 2).sum()) / values.size)


# -- tables


def measure(case: Case) -> dict[str, float]:
    """Return what the tables show of a run."""
    found, rows = judge(case), force_with_impulses(case)
    turns = found.duration / case.turn
    speed = 0.0 if case.drive == "speed" else fast_part(over_turns(case, "main.speed")) / case.speed
    return {
        "contact %": 100 * found.contact_share,
        "episodes": found.episodes / turns,
        "mean N": float(rows.mean()),
        "rms N": float(np.sqrt((rows**2).mean())),
        "fast N": fast_part(rows),
        "regular": regularity(rows),
        "fast speed %": 100 * speed,
        "J": found.sliding_work / turns,
        "largest p_c": float(found.hole.density.max()),
    }


def measure_starts(case: Case, starts: int) -> dict[str, str]:
    """Return means over starts from all around the hole: the motion is chaotic, each run another.

    With the standard error of the mean, if there are several.
    """
    runs = [measure(replace(case, toward=np.pi + 2 * np.pi * n / starts)) for n in range(starts)]
    shown = {}
    for name in runs[0]:
        values = np.array([one[name] for one in runs])
        error = values.std(ddof=1) / np.sqrt(starts) if starts > 1 else 0.0
        shown[name] = f"{values.mean():.3g}" + (f" ±{error:.1g}" if error > 0 else "")
    return shown


def print_runs(console: Console, base: Case, speeds: tuple[float, ...], starts: int) -> None:
    """Print speeds, drives and friction."""
    table = Table(
        title=f"{base.contact} contact, crank {base.crank * 1e3:g} mm, clearance "
        f"{base.clearance * 1e3:g} mm, {starts} starts; N: normal force in means of {DEGREES:g}°; "
        f"episodes and J each turn"
    )
    columns = ("contact %", "episodes", "mean N", "rms N", "fast N", "regular", "fast speed %", "J")
    for column in ("rpm", "drive", "μ", *columns):
        table.add_column(column, justify="right")
    drives: tuple[Drive, ...] = ("speed", "torque")
    for rpm, drive, friction in product(speeds, drives, (0.0, 0.02)):
        found = measure_starts(replace(base, rpm=rpm, drive=drive, friction=friction), starts)
        table.add_row(f"{rpm:g}", drive, f"{friction:g}", *(found[name] for name in columns))
    console.print(table)


def print_clearances(console: Console, base: Case, sizes: tuple[float, ...], starts: int) -> None:
    """Print how clearance changes forces and contact."""
    table = Table(
        title=f"{base.contact} contact, crank {base.crank * 1e3:g} mm, μ = {base.friction:g}, "
        f"imposed speed, {starts} starts"
    )
    columns = ("contact %", "mean N", "rms N", "largest p_c", "J")
    for column in ("rpm", "mm", *columns):
        table.add_column(column, justify="right")
    for rpm, size in product((500.0, 1000.0), sizes):
        found = measure_starts(replace(base, rpm=rpm, clearance=size), starts)
        table.add_row(f"{rpm:g}", f"{size * 1e3:g}", *(found[name] for name in columns))
    console.print(table)


# -- figures


LOAD = -40.0
"""N m on the rocker, so that the pin stays at one side of its hole for a whole turn."""


def loaded(pin: Any, toward: float) -> System:
    """Make the crank-rocker at 500 rpm under a load."""
    system = crank_rocker(pin, speed=Case(rpm=500).speed, toward=toward)
    system.torque("load", system["foot"], LOAD)  # type: ignore[arg-type]
    return system


def run_loaded(pin: Any, toward: float, step: float, **options: Any) -> tuple[Array, Array]:
    """Return times and the force on the pin over a turn."""
    d = Diagram("loaded", step=step)
    d.add(loaded(pin, toward).block([], ["pin.force"], **options), name="plant")
    result = simulate(d, Case(rpm=500).turn)
    return result.t, np.asarray(np.hypot(*result["plant.pin.force"][:, :2].T))


def draw_link(console: Console) -> Figure:
    """A contact that lasts beside a rod without mass: the pin starts half a radian off its rest."""
    d = Diagram("ideal", step=1e-5)
    d.add(loaded("ideal", 0.0).block([], ["pin.force"]), name="plant")
    pull = simulate(d, 1e-5)["plant.pin.force"][0]
    toward = float(np.arctan2(-pull[1], -pull[0])) + 0.5
    t, ideal = run_loaded("ideal", 0.0, 1e-5)
    _, link = run_loaded("link", toward, 1e-5)
    _, rigid = run_loaded(RigidContact(restitution=0.0), toward, 1e-5, mode="internal")
    table = Table(title="contact that lasts, against a link without mass: largest difference")
    for column in ("contact", "force"):
        table.add_column(column, justify="right")
    table.add_row("rigid", f"{np.abs(rigid - link).max() / link.max():.1e}")
    steel = hertz_stiffness(PIN, PIN + 5e-4)
    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    degrees = 360 * t / t[-1]
    top.plot(degrees, ideal, color=GRAY, label="ideal revolute")
    top.plot(degrees, link, color=BLUE, lw=4, alpha=0.45, label="link without mass")
    top.plot(degrees, rigid, color=ORANGE, lw=1, ls="--", label="rigid contact")
    bottom.semilogy(degrees, np.abs(rigid - link) + 1e-12, color=ORANGE, label="rigid")
    late = t > 0.2 * t[-1]
    for factor, color in ((1, GREEN), (100, BLUE)):
        law = HuntCrossley(stiffness=factor * steel, damping=20.0)
        _, soft = run_loaded(law, toward, 1e-5, mode="internal", substeps=4 if factor == 1 else 40)
        table.add_row(
            f"Hertz × {factor}", f"{np.abs(soft - link)[late].max() / link.max():.1e} after 72°"
        )
        bottom.semilogy(degrees, np.abs(soft - link), color=color, lw=0.8,
                        label=f"Hunt–Crossley, K = {factor * steel:.1e}")  # fmt: skip
    console.print(table)
    top.set(ylabel="force on the pin in N", title="A contact that lasts is a link without mass")
    bottom.set(xlabel="crank angle from the start in °", ylabel="difference in N", xlim=(0, 360))
    top.legend(loc="upper right", frameon=False, ncol=3)
    bottom.legend(loc="center", bbox_to_anchor=(0.5, 0.42), frameon=False, ncol=3)
    top.set_ylim(150, 1130)
    return figure


def draw_drive(base: Case) -> Figure:
    """Imposed speed beside torque and PID at 1000 rpm, without friction."""
    figure = Figure(figsize=(10.0, 9.0), layout="constrained")
    axes = figure.subplots(3, 2, sharey="row")
    drives: dict[Drive, str] = {"speed": "imposed speed", "torque": "motor with PID"}
    for column, (drive, name) in enumerate(drives.items()):
        case = replace(base, drive=drive)
        found, result = contact_statistics(run(case), "pin"), run(case)
        rows = force_with_impulses(case)
        degrees = np.arange(rows.shape[1]) * DEGREES
        rigid = case.contact == "rigid"
        top, middle, low = axes[:, column]
        for row in rows[:10]:
            top.plot(degrees, row, color=BLUE, lw=0.6, alpha=0.5)
        top.plot(degrees, rows.mean(axis=0), color="k", lw=1.4, label="mean turn")
        top.set(
            title=name,
            xlabel="crank angle from the start in °",
            xlim=(0, 360),
            ylim=(0, 6 * np.sqrt((rows**2).mean())),
        )
        top.legend(frameon=False, loc="upper left")
        times = found.impact_times if rigid else found.began
        impulses = found.impact_impulses if rigid else found.impulses
        middle.vlines(times / case.turn, 1e-4, np.maximum(impulses, 1e-4), color=ORANGE, lw=0.8)
        middle.set(yscale="log", xlim=(0, 10), xlabel="turn")
        error = result["plant.main.speed"] / case.speed - 1
        low.plot(result.t / case.turn, 100 * error, color=GREEN, lw=0.8)
        low.set(xlim=(LEFT_OUT, LEFT_OUT + 3), xlabel="turn")
    axes[0, 0].set_ylabel("normal force in N, 10 turns")
    axes[1, 0].set_ylabel(f"impulses of {'impacts' if rigid else 'contacts'} in N s")
    axes[2, 0].set_ylabel("error of the crank's speed in %")
    return figure


def draw_torque(base: Case) -> Figure:
    """The torque that holds 500 rpm, ideal and with play."""
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    axis = figure.subplots()
    ideal = replace(base, rpm=500.0, contact="ideal", turns=LEFT_OUT + 3)
    for friction, color in ((0.0, ORANGE), (0.02, GREEN)):
        case = replace(base, rpm=500.0, friction=friction)
        rows = over_turns(case, "drive.effort", 1.0)
        axis.plot(np.arange(360.0), rows[0], color=color, lw=0.9, label=f"play, μ = {friction:g}")
    axis.plot(np.arange(360.0), over_turns(ideal, "drive.effort", 1.0)[0], color="k", label="ideal")
    axis.set(xlabel="crank angle from the start in °", ylabel="torque on the crank in N m",
             title="Torque that holds 500 rpm, crank 65 mm", xlim=(0, 360))  # fmt: skip
    axis.legend(frameon=False)
    return figure


def draw_friction(base: Case) -> Figure:
    """What friction 0.02 does at 1000 rpm: the gap and the place of the contact."""
    figure = Figure(figsize=(10.0, 6.2), layout="constrained")
    axes = figure.subplots(2, 2, sharey="row", sharex="col")
    for column, friction in enumerate((0.0, 0.02)):
        case = replace(base, friction=friction)
        result = run(case)
        turns = result.t / case.turn
        away = np.hypot(*result["plant.pin.offset"].T) / case.clearance
        touching = result["plant.pin.contact"] > 0.5
        top, low = axes[:, column]
        top.plot(turns, away, color=BLUE, lw=0.8)
        share = 100 * judge(case).contact_share
        top.set(title=f"μ = {friction:g}: in contact {share:.0f} % of the time", ylim=(0, 1.05))
        low.plot(turns[touching], np.degrees(result["plant.pin.angle"][touching]), ".",
                 color=ORANGE, ms=1.0)  # fmt: skip
        low.set(xlim=(LEFT_OUT, LEFT_OUT + 4), ylim=(-180, 180), yticks=(-180, -90, 0, 90, 180),
                xlabel="turn")  # fmt: skip
    axes[0, 0].set_ylabel("offset of the pin / clearance")
    axes[1, 0].set_ylabel("place of the contact on the hole in °")
    return figure


def draw_clearances(base: Case, sizes: tuple[float, ...]) -> Figure:
    """Clearance at 500 rpm and a crank of 85 mm; mean force and density against clearance."""
    figure = Figure(figsize=(10.0, 7.2), layout="constrained")
    (wide, mean), (left, right) = figure.subplots(2, 2)
    case = replace(base, rpm=500.0, crank=0.085, friction=0.02)
    colors = [BLUE, GREEN, ORANGE, "k"]
    for size, color in zip(sizes, colors, strict=True):
        one = replace(case, clearance=size)
        rows = force_with_impulses(one)
        degrees = np.arange(rows.shape[1]) * DEGREES
        wide.plot(degrees, rows[0], color=color, lw=0.8, label=f"{size * 1e3:g} mm")
        part = judge(one).hole
        left.step(np.degrees(part.angles), part.density, where="mid", color=color, lw=1.0)
        fast = judge(replace(one, rpm=1000.0)).hole
        right.step(np.degrees(fast.angles), fast.density, where="mid", color=color, lw=1.0)
    wide.set(title="500 rpm, crank 85 mm: one turn", xlabel="crank angle from the start in °",
             ylabel="normal force in N, means of 2°")  # fmt: skip
    wide.legend(frameon=False)
    for rpm, mark in ((500.0, "o-"), (1000.0, "s-")):
        ideal = replace(case, rpm=rpm, contact="ideal", turns=LEFT_OUT + 3)
        force = np.hypot(*run(ideal)["plant.pin.force"][:, :2].T)
        scale = force[run(ideal).t >= LEFT_OUT * ideal.turn].mean()
        forces = [force_with_impulses(replace(case, rpm=rpm, clearance=size)) for size in sizes]
        mean.plot([size * 1e3 for size in sizes], [row.mean() / scale for row in forces], mark,
                  color=BLUE, mfc="white", label=f"mean, {rpm:g} rpm")  # fmt: skip
        rms = np.sqrt((force[run(ideal).t >= LEFT_OUT * ideal.turn] ** 2).mean())
        mean.plot([size * 1e3 for size in sizes],
                  [np.sqrt((row**2).mean()) / rms for row in forces], mark, color=ORANGE,
                  mfc="white", label=f"rms, {rpm:g} rpm")  # fmt: skip
    mean.axhline(1.0, color=GRAY, lw=0.8)
    mean.set(xlabel="clearance in mm", ylabel="force / that of the ideal joint", ylim=(0, None))
    mean.legend(frameon=False)
    for axis, rpm in ((left, 500), (right, 1000)):
        axis.set(xlabel="place on the hole in °", ylabel="density of contact in 1/rad",
                 title=f"{rpm} rpm", xlim=(-180, 180), xticks=(-180, -90, 0, 90, 180))  # fmt: skip
    return figure


def main() -> None:
    """Print tables and draw figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--figures", type=Path, help="folder for the figures")
    parser.add_argument("--contact", choices=("rigid", "compliant"), default="rigid",
                        help="of the figures")  # fmt: skip
    parser.add_argument("--starts", type=int, default=8, help="of rigid runs in the tables")
    parser.add_argument("--quick", action="store_true", help="few turns, for a test")
    given = parser.parse_args()
    console = Console(width=170)
    base = Case(contact=given.contact, turns=LEFT_OUT + 3 if given.quick else TURNS)
    speeds = (1000.0,) if given.quick else (500.0, 1000.0, 2000.0, 3000.0)
    sizes = (1e-4, 2e-4, 5e-4, 1e-3)
    contacts: tuple[Contact, ...] = ("rigid", "compliant")
    for contact in contacts:
        one, starts = replace(base, contact=contact), 1 if contact == "compliant" else given.starts
        print_runs(console, one, speeds, starts)
        print_clearances(console, replace(one, crank=0.085, friction=0.02), sizes, starts)
    figures = {
        "clearance_link": draw_link(console),
        "clearance_drive": draw_drive(base),
        "clearance_torque": draw_torque(base),
        "clearance_friction": draw_friction(base),
        "clearance_size": draw_clearances(base, sizes),
        "clearance_rose": judge(replace(base, friction=0.02)).plot(
            title="crank-rocker, 1000 rpm, 0.5 mm, μ = 0.02"
        ),
    }
    if given.figures:
        given.figures.mkdir(parents=True, exist_ok=True)
        for name, figure in figures.items():
            figure.savefig(given.figures / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
