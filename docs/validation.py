"""Write docs/validation.md: published cases, each with our figure beside the published one.

    python docs/validation.py            # all of it: half an hour
    python docs/validation.py --quick    # print what takes seconds, write nothing

Each section is a function: its docstring is what the page says of the source, its rows are computed
by the library when it runs. Only published figures are numbers here. A test computes the quick
sections anew and compares them with the page.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biella import Diagram, simulate
from biella.blocks import CamLaw
from biella.blocks.multibody import RigidContact, System, mechanisms
from biella.blocks.multibody.dual import RCCC, RigidBody, Sleeve, efficiency
from biella.blocks.multibody.reference_formulations import METHODS, OLDANI, compare, make_model, run

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "validation.md"

MET, MISSED, DESCRIBED, OPEN = "met", "**not met**", "as described", "not reproduced"
"""Verdicts: a number; a number; a statement or a figure without numbers; nothing to compare."""


@dataclass(frozen=True, slots=True)
class Row:
    """One published figure."""

    case: str
    source: str
    published: str
    ours: str
    difference: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, what makes its rows, and whether that takes seconds."""

    title: str
    rows: Callable[[], list[Row]]
    quick: bool


def load(path: str) -> Any:
    """Return a script of the repository as a module."""
    name = "validated_" + Path(path).stem
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # where its data classes look for their names
        sys.path.append(str((ROOT / path).parent))  # where it looks for modules beside it
        spec.loader.exec_module(module)
    return sys.modules[name]


def number(
    case: str,
    source: str,
    published: float,
    ours: float,
    within: float,
    *,
    scale: float | None = None,
    digits: int = 3,
) -> Row:
    """Compare two numbers, as a part of the published one or of `scale`."""
    off = (ours - published) / abs(published if scale is None else scale)
    shown = f"{100 * off:+.1f} %" if abs(off) >= 5e-4 else "0.0 %"
    verdict = MET if abs(off) <= within else MISSED
    return Row(case, source, f"{published:g}", f"{ours:#.{digits + 1}g}", shown, verdict)


def count(case: str, source: str, published: str, ours: str) -> Row:
    """Compare whole numbers."""
    same = published == ours
    return Row(case, source, published, ours, "none" if same else "", MET if same else MISSED)


def statement(case: str, source: str, words: str, ours: str, holds: bool) -> Row:
    """Compare with what a source says or shows without numbers."""
    return Row(case, source, words, ours, "", DESCRIBED if holds else MISSED)


def below(value: float) -> str:
    """Return a bound of something that is rounding, which no two machines share."""
    return f"< 1e{int(np.ceil(np.log10(2 * max(value, 1e-17))))}"


def raimondi_boyd() -> list[Row]:
    """Raimondi and Boyd, full bearing, length = diameter.

    Their film begins at p = 0 at the thickest place and ends by Reynolds' condition; so does ours,
    on 256 × 64 cells. S = (R/c)² μ N / P, f the coefficient of friction. Met means within 1.5 %.
    """
    tables = load("benchmarks/studies/film_tables.py")
    rows = []
    for n, (S, friction) in tables.measure_raimondi_boyd().items():
        published = tables.RAIMONDI_BOYD[n]
        rows.append(number(f"S at ε = {n}", "Raimondi, Boyd", published[0], S, 0.015))
        rows.append(number(f"(R/c) f at ε = {n}", "Raimondi, Boyd", published[1], friction, 0.015))
    return rows


def someya() -> list[Row]:
    """Someya's data book, two axial grooves, length = half the diameter.

    At the published S; x along the load; stiffness K c/W and damping C c ω/W, their differences as
    parts of the largest entry of the matrix. The arc of the grooves is not stated. Of 5, 10, 15 and
    20° we took the one that fits eccentricity and damping best, 10°, so that some of the agreement
    is chosen. Met means within 5 %. Why the cross stiffness is missed below ε = 0.6, and that the
    table contradicts itself there, is in [Journal bearings](guides/bearings.md#verification).
    """
    tables = load("benchmarks/studies/film_tables.py")
    rows = []
    for n, found in tables.measure_someya().items():
        _, phi, *published = tables.SOMEYA[n]
        at = found.equilibrium
        rows.append(number(f"ε at S of ε = {n}", "Someya", n, at.eccentricity, 0.05))
        rows.append(number(f"φ in ° at ε = {n}", "Someya", phi, np.degrees(at.attitude), 0.05))
        for letter, theirs, ours in zip(
            "KC", published, found.along_load(tables.CLEARANCE), strict=True
        ):
            for name, printed, value in zip(
                ("xx", "xy", "yx", "yy"), theirs, ours.ravel(), strict=True
            ):
                case = f"{letter}{name} at ε = {n}"
                rows.append(number(case, "Someya", printed, value, 0.05, scale=max(theirs)))
    return rows


def lund_thomsen() -> list[Row]:
    """Lund and Thomsen, A calculation method and data for the dynamic coefficients of
    oil-lubricated journal bearings (ASME, 1978): grooves of 20° at the horizontal split, load down.

    Figures as the tests of ROSS (petrobras/ross) transcribe them, which leave out one row of the
    table for length = diameter as an outlier. Isoviscous, Reynolds' condition; 288 × 32 cells. At
    the published S = μ N L D (R/c)² / W; x along the load; eccentricity, S, K c/W and C c ω/W with
    the clearance of the arcs, which the elliptical bore (preload 0.5) halves in the middle of its
    lobes. Met means within 5 %, of K and C as parts of the largest entry of the matrix: chosen as
    for Someya's table, before these were computed. The attitude of the elliptical bore at S = 0.161
    is 2° off, where all other angles agree within 0.2°: a misprint of 85.29 is likely.
    """
    tables = load("benchmarks/studies/film_coefficients.py")
    rows = []
    for case, published in tables.LUND_THOMSEN.items():
        for (S, n, phi, *theirs), (eccentricity, angle, ours) in zip(
            published, tables.measure_lund_thomsen(case), strict=True
        ):
            at, where = f"{case}, S = {S:g}", "Lund, Thomsen"
            rows.append(number(f"{at}: ε", where, n, eccentricity, 0.05))
            rows.append(number(f"{at}: φ in °", where, phi, angle, 0.05))
            for name, printed, value in zip(tables.COEFFICIENTS, theirs, ours, strict=True):
                largest = max(theirs[:4]) if name[0] == "K" else max(theirs[4:])
                rows.append(number(f"{at}: {name}", where, printed, value, 0.05, scale=largest))
    return rows


def step_bearings() -> list[Row]:
    """Nicholas, Barrett and Leader, Experimental-theoretical comparison of instability onset speeds
    for a three mass rotor supported by step journal bearings (ASME J. Mech. Design 102, 1980).

    Bearings of 1 in with two grooves of 20°, most with a pressure dam in the upper half, 8000 rpm;
    figures as the tests of ROSS (petrobras/ross) transcribe them. ω_s √(c/g) is the threshold of a
    rigid rotor, from the coefficients at that speed. The viscosity is not printed: 7.60 µreyn
    follows from the printed Sommerfeld numbers, which are therefore not compared. Set 2 is left out
    because its dams were not of one depth; measured onset speeds, because they are those of a
    flexible rotor. Met means: eccentricity within 0.02, threshold within 10 %, and coefficients
    within 10 % of the largest entry of the matrix, for figures of two digits and a solution by
    finite elements; the first two are what ROSS's tests allow, all were set before ours were
    computed, but for the first dam, on which a defect of `equilibrium` was found.
    """
    tables = load("benchmarks/studies/film_coefficients.py")
    where, rows = "Nicholas et al.", []
    for step in tables.STEPS:
        eccentricity, stability = tables.measure_stability(step)
        rows += [
            number(f"{step.name}: ε", where, step.eccentricity, eccentricity, 0.02, scale=1.0),
            number(f"{step.name}: ω_s √(c/g)", where, step.stability, stability, 0.1),
        ]
    for index, rpm, *published in tables.DAM_COEFFICIENTS:
        found = tables.find_coefficients(tables.STEPS[index], rpm)
        for letter, theirs, ours in zip(
            "KC", published, (found.stiffness, found.damping), strict=True
        ):
            unit = "lbf/in" if letter == "K" else "lbf s/in"
            for name, printed, value in zip(
                ("xx", "xy", "yx", "yy"), theirs, ours.ravel() / tables.POUND_PER_INCH, strict=True
            ):
                case = f"{tables.STEPS[index].name}, {rpm} rpm: {letter}{name} in {unit}"
                largest = max(map(abs, theirs))
                rows.append(number(case, where, printed, value, 0.1, scale=largest))
    return rows


def sample_cards() -> System:
    """Make the joints of Vita's sample cards [V 4.2]; nothing moves here, so masses are 1."""
    s = System("sample cards")
    crank = s.body("crank", mass=1.0, inertia=1.0, position=(0.125, 0, 0))
    rod = s.body("rod", mass=1.0, inertia=1.0, position=(0.5, 0, 0))
    piston = s.body("piston", mass=1.0, inertia=1.0, position=(0.75, 0, 0))
    for name, ends, x in (
        ("main", (s.ground, crank), 0.0),
        ("pin", (crank, rod), 0.25),
        ("wrist", (rod, piston), 0.75),
    ):
        s.revolute(name, *ends, at=(x, 0, 0), axis=(0, 0, 1))
    s.prismatic("slide", s.ground, piston, at=(0.75, 0, 0), axis=(1, 0, 0))
    return s


def parallel_bars() -> System:
    """Make Vita's planar five-bar [V 2.3]: three parallel bars of 1 m and a coupler of 2 m."""
    s = System("five-bar", planar=True)
    coupler = s.body("coupler", mass=2.0, inertia=0.2, position=(1.5, 0.8))
    for n in range(3):
        bar = s.body(f"bar {n}", mass=1.0, inertia=0.1, position=(n + 0.3, 0.4))
        s.revolute(f"foot {n}", s.ground, bar, at=(n, 0.0))
        s.revolute(f"top {n}", bar, coupler, at=(n + 0.6, 0.8))
    return s


def counts() -> list[Row]:
    """Degrees of freedom and redundant equations.

    Oldani's and Vita's theses. Their counts have one equation more for each body of a system in
    Euler parameters, the normalization, which we add to ours where they do.
    """

    def tell(system: System, form: str, bodies: int = 0) -> str:
        found = system.report()
        return form.format(
            rows=found.rows + bodies,
            rank=found.rank + bodies,
            redundant=found.redundant,
            freedom=found.freedom,
            mobility=found.mobility,
        )

    cardan = mechanisms.cardan()
    cardan_rows = cardan.report().rows - len(cardan.drivers) + 3
    cardan_rank = cardan.report().rank - len(cardan.drivers) + 3
    return [
        count(
            "slider-crank, revolute pins",
            "Oldani 4.1",
            "1 free, 2 redundant",
            tell(mechanisms.slider_crank("revolute"), "{freedom} free, {redundant} redundant"),
        ),
        count(
            "McPherson suspension",
            "Oldani 4.2",
            "26 equations, 0 redundant, 4 free",
            tell(mechanisms.mcpherson(), "{rows} equations, {redundant} redundant, {freedom} free"),
        ),
        count(
            "spatial five-bar",
            "Vita 4.7.1",
            "34 equations, 7 redundant, 1 free, Kutzbach -6",
            tell(
                mechanisms.five_bar(),
                "{rows} equations, {redundant} redundant, {freedom} free, Kutzbach {mobility}",
                bodies=4,
            ),
        ),
        count(
            "Cardan joint, without its drivers",
            "Vita 4.7.3",
            "33 equations, 20 independent, 13 dependent",
            f"{cardan_rows} equations, {cardan_rank} independent, "
            f"{cardan_rows - cardan_rank} dependent",
        ),
        count(
            "slider-crank of the sample cards",
            "Vita 4.2",
            "3 redundant",
            tell(sample_cards(), "{redundant} redundant"),
        ),
        count(
            "planar five-bar",
            "Vita 2.3, example 2",
            "12 equations, 11 independent",
            tell(parallel_bars(), "{rows} equations, {rank} independent"),
        ),
    ]


def residual(step: float) -> float:
    """Return √(ΦᵀΦ) of the cart and pendulum as the published listing computes it.

    The listing adds Δt until t reaches 1 s and takes the residual before the last update.
    """
    t, steps = 0.0, 0
    while t < 1.0:
        t += step
        steps += 1
    model = make_model(mechanisms.pendulum_on_cart())
    done = run(
        model,
        "kkt",
        step=step,
        until=steps * step,
        integrator="explicit",
        start=(model.q0, model.v0),
    )
    return float(np.linalg.norm(model.phi(done.q[steps - 1], 0.0)))


RESIDUALS = {1e-2: 3.769e-3, 1e-3: 3.846e-4, 1e-4: 3.854e-5, 1e-5: 3.854e-6}


def residual_rows(steps: tuple[float, ...]) -> list[Row]:
    return [
        number(
            f"√(ΦᵀΦ) at Δt = {step:g} s",
            "Dynamika, 3.59–3.60",
            RESIDUALS[step],
            residual(step),
            2e-4,
            digits=4,
        )
        for step in steps
    ]


def cart_coarse() -> list[Row]:
    """Slider, pendulum and damper, explicit steps: how constraints drift.

    A Polish textbook's chapter on planar dynamics (“3. Dynamika”), examples 3.1 to 3.9. By the
    laboratory of formulations, with the explicit steps and the stopping rule of the published
    listing. Met means to the printed digits.
    """
    return residual_rows((1e-2, 1e-3))


def cart_fine() -> list[Row]:
    """The same with finer steps: the drift is in proportion to the step."""
    return residual_rows((1e-4, 1e-5))


def cam_law() -> list[Row]:
    """Peaks of the modified sine, for a rise of 1 in a time of 1.

    As the help pages of MechDesigner list them. Met means to the printed digits. The other laws are
    compared with closed forms, in `tests/blocks/control/trajectory/test_trajectories.py`.
    """
    d = Diagram("cam", step=1e-4)
    d.add(CamLaw("modified sine", 1.0, 1.0), name="cam")
    result = simulate(d, 1.0)
    published = {"velocity": 1.76, "acceleration": 5.53, "jerk": 69.47}
    return [
        number(name, "MechDesigner", peak, float(np.abs(result[f"cam.{name}"]).max()), 1e-3)
        for name, peak in published.items()
    ]


def misprints() -> list[Row]:
    """What is printed and cannot be met, and what can in its place.

    Vita's pendulum by Udwadia and Kalaba's equation: the printed angle does not go with the printed
    position, so that the printed accelerations follow from nothing. With 7π/4 in place of 3π/2 the
    equation is met, by both ways to a pseudo-inverse (`tests/analytic/test_mechanisms.py`).
    Oldani's bar with one redundant equation: successive accelerations of the augmented Lagrangian
    are said to go by 2α − 1, so that only 0 < α < 1 would do; they go by m / (m + 2α), m = 1.5 kg,
    for every α.
    """
    length = 1.5
    place = length * np.array([np.cos(7 * np.pi / 4), np.sin(7 * np.pi / 4)])
    s = System("pendulum", (0, -9.81), planar=True)
    bar = s.body("bar", mass=2.0, inertia=0.4, position=place, rotation=7 * np.pi / 4)
    s.revolute("pin", s.ground.marker("pin"), bar.marker("pin", (-length, 0)))
    model = make_model(s)
    printed, right = (
        np.abs(model.phi(np.array([*place, angle]), 0.0)).max()
        for angle in (1.5 * np.pi, 1.75 * np.pi)
    )
    ours = f"the pin is open by {printed / length:.2f} lengths"
    rows = [
        Row("pendulum, q₃ = 3π/2", "Vita 2.3", "accelerations", ours, "", OPEN),
        statement("pendulum, q₃ = 7π/4", "errata", "closed", below(right), right < 1e-14),
    ]
    beam = load("tests/blocks/multibody/reference_formulations/test_augmented_lagrangian.py").Bar()
    for alpha in (0.1, 10.0, 1e3):
        memory: dict[str, Any] = {}
        METHODS["augmented lagrangian"](beam, 0.0, np.zeros(3), np.zeros(3), memory, alpha=alpha)
        first, second = (each[1] for each in memory["history"][:2])
        case, law = f"bar, ratio at α = {alpha:g}", beam.m / (beam.m + 2 * alpha)
        wrong = f"{2 * alpha - 1:g}"
        rows.append(Row(case, "Oldani 2.126", wrong, f"{second / first:.4g}", "", OPEN))
        rows.append(
            number(f"{case}, corrected", "errata", float(f"{law:.4g}"), second / first, 1e-3)
        )
    return rows


def table_44(steps: tuple[float, ...]) -> list[Row]:
    """Return the rows of Oldani's comparison for some steps."""
    rows = []
    for line in compare(steps=steps, progress=say).lines:
        if not line.published:
            continue
        pins = "redundant" if line.redundant else "not redundant"
        case = f"{line.method}, {pins}, {line.step:g} s"
        where = "Oldani, table 4.4"
        _, _, error = line.published.partition("  ")
        if not error:
            ours = "unstable" if not line.stable else f"{line.error:.1e}"
            rows.append(Row(case, where, "unstable", ours, "", MISSED if line.stable else MET))
        elif "PRJ" in line.method:
            closed = line.stable and line.error < float(error)
            ours = below(line.error)
            rows.append(
                Row(case, where, f"{float(error):.2g}", ours, "", MET if closed else MISSED)
            )
        else:
            # U·U - 1 is twice the error of a length.
            rows.append(number(case, where, float(error), line.error / 2, 0.3, digits=2))
    return rows


def formulations() -> list[Row]:
    """Oldani's comparison of formulations on the slider-crank, 5 s.

    `biella formulations slider-crank`, with position-first steps: q ← q + h v, then v with the
    acceleration at the new q. The thesis calls its steps semi-implicit and does not write them out;
    with v first, runs with projected velocities gain energy and run away, which the published ones
    do not. BMG is Baumgarte's method, ALF the augmented Lagrangian, PRJ with projection of
    positions, PRJ 2 of velocities too. What error it prints is not said; the largest residual,
    halved, behaves like it. Gains are not printed either: α = β = 10 from a comment of its listing,
    ω = 200 /s ours. So met means: stable or not as published, within 30 % without projections, and
    no worse with them, where published figures stop short of rounding. The times of tables 4.3 and
    4.4 are those of a machine that is not named, and not compared.
    """
    assert {entry.label for entry in OLDANI} == {"BMG", "ALF", "ALF PRJ", "ALF PRJ 2"}
    return table_44((1e-1, 1e-2, 1e-3, 1e-4))


def engine_closure() -> list[Row]:
    """The same slider-crank in the engine, with RK4.

    Beside ALF PRJ 2, the best of the thesis. The phase is compared with the equation of one
    coordinate.
    """
    analytic = load("tests/analytic/test_mechanisms.py")
    published = {1e-2: 1.051e-8, 1e-3: 1.748e-9, 1e-4: 1.857e-10}
    rows = []
    for step, printed in published.items():
        for pins in analytic.PINS:
            closure, phase = analytic.oldani(pins, step, 5.0)
            ours = f"{below(closure)}, phase {below(phase)} rad"
            verdict = MET if closure < printed else MISSED
            case = f"largest error of a joint, {pins}, {step:g} s"
            rows.append(Row(case, "Oldani, table 4.4", f"{printed:.2g}", ours, "", verdict))
    return rows


def figures_only() -> list[Row]:
    """Cases whose results are published as figures or in words.

    What can be compared with an equation is, and the words are held against numbers of ours.
    """
    analytic = load("tests/analytic/test_mechanisms.py")
    theta = analytic.through_branch(np.pi / 6, 0.0, 1.5)
    passed = analytic.run(analytic.equal_crank(np.pi / 6), 1.5, ["main.angle", "closure"])
    off = abs(passed["plant.main.angle"][-1] - theta)
    rows = [
        statement(
            "slider-crank, crank = rod",
            "Vita 4.7.2",
            "passes its critical position",
            f"passes; {below(off)} rad from the equation of one coordinate",
            off < 1e-4,
        )
    ]
    beta, speed = np.radians(10.0), 2.0
    turned = analytic.run(
        mechanisms.cardan(beta, speed), np.pi, ["output.angular_velocity"], mode="internal"
    )
    shaft = np.array([np.cos(beta), 0.0, np.sin(beta)])
    ratio = turned["plant.output.angular_velocity"] @ shaft / speed
    law = np.cos(beta) / (1 - np.sin(beta) ** 2 * np.sin(speed * turned.t) ** 2)
    off = np.abs(ratio - law).max()
    rows.append(
        statement(
            "Cardan joint, 10°, speed of the output",
            "Vita 4.7.3",
            "figures",
            f"{below(off)} from cos β / (1 − sin²β sin²φ)",
            off < 1e-9,
        )
    )
    five = analytic.run(
        mechanisms.five_bar(), 8.0, ["closure", *analytic.ENERGIES], mode="internal"
    )
    gap, drift = five["plant.closure"].max(), analytic.drift(five)
    rows.append(
        statement(
            "spatial five-bar, 8 s",
            "Vita 4.7.1",
            "violation about zero",
            f"closed {below(gap)}, energy {below(drift)} J",
            gap < 1e-10 and drift < 1e-6,
        )
    )
    rows += [crank_pin_row(), rotor_row()]
    for case, source, published, why in (
        (
            "planar five-bar, times and drift",
            "Vita 2.3",
            "a table",
            "posture, spacing and duration are not given",
        ),
        (
            "McPherson suspension, histories",
            "Oldani 4.2",
            "figures",
            "its two listings differ; compared with Exudyn: [Mechanisms](guides/multibody.md)",
        ),
    ):
        rows.append(Row(case, source, published, why, "", OPEN))
    return rows


def crank_pin_row() -> Row:
    """Return how far a lubricated pin moves a rod from the path of an ideal one."""
    example = load("examples/08_lubricated_crank_pin.py")
    ideal, film = (simulate(example.diagram(pin), 0.06) for pin in ("ideal", "force"))
    turn = slice(-round(example.TURN / example.STEP), None)
    path, pull = (
        np.abs(film[f"plant.rod.{name}"] - ideal[f"plant.rod.{name}"])[turn].max()
        for name in ("position", "acceleration")
    )
    largest = np.abs(ideal["plant.rod.acceleration"]).max()
    return statement(
        "lubricated crank pin",
        "Vita 4.8.1",
        "path unchanged, accelerations slightly different",
        f"path {1e6 * path:.0f} µm off, accelerations {pull:.1f} of {largest:.0f} m/s²",
        path < example.CLEARANCE and pull < 1e-3 * largest,
    )


def rotor_row() -> Row:
    """Return the circles of an unbalanced rotor on two films."""
    example = load("examples/09_rotor_on_films.py")
    result = simulate(example.diagram(), 1.0)
    turn = slice(-round(2 * np.pi / example.SPEED / 1e-4), None)

    def circle(points: Any, unit: float) -> tuple[float, float]:
        radius = np.linalg.norm(points[turn, :2], axis=1) / unit
        return float(radius.mean()), float(np.ptp(radius) / radius.mean())

    mass = circle(result["plant.rotor.center.position"], example.OFF)
    journals = [circle(result[f"plant.film {n}.offset"], example.CLEARANCE) for n in example.ENDS]
    uneven = max(mass[1], *(uneven for _, uneven in journals))
    radii = " and ".join(f"{radius:.3f}" for radius, _ in journals)
    return statement(
        "unbalanced rotor on two films",
        "Vita 4.8.2",
        "mass near the circle e, journals on circles",
        f"mass on {mass[0]:.3f} e, journals on {radii} clearances; round to {below(uneven)}",
        abs(mass[0] - 1) < 0.2 and uneven < 1e-3,
    )


def energy_benchmarks() -> list[Row]:
    """IFToMM benchmarks, 10 s with RK4 at 1 ms.

    They are judged by the energy, which should stay. A02 loses rank whenever its bars lie flat.
    """
    analytic = load("tests/analytic/test_mechanisms.py")
    rows = []
    pendulum = System("A01", (0, -9.81), planar=True)
    ball = pendulum.body("ball", mass=1.0, inertia=0.0, position=(1.0, 0.0))
    pendulum.revolute("pin", pendulum.ground, ball, at=(0, 0))
    cases = [("A01, pendulum", pendulum)]
    cases += [(f"A02, {n} four-bars", mechanisms.four_bar(n)) for n in (1, 2, 10, 40)]
    for name, system in cases:
        result = analytic.run(system, 10.0, ["closure", *analytic.ENERGIES], mode="internal")
        gap, drift = float(result["plant.closure"].max()), analytic.drift(result)
        ours = f"{below(drift)} J, closed {below(gap)} m"
        rows.append(statement(name, "IFToMM", "constant", ours, gap < 1e-10 and drift < 1e-6))
    return rows


SQUEEZER = {
    "beta": 15.81077119629904,
    "theta": -15.75637105984298,
    "gamma": 0.04082224013073101,
    "phi": -0.5347301163226948,
    "delta": 0.5244099658805304,
    "omega": 0.5347301163226948,
    "epsilon": 1.048080741042263,
}


def squeezer() -> list[Row]:
    """Andrews' squeezer mechanism, seven bodies, angles at t = 0.03 s.

    Data of Schiehlen, Multibody Systems Handbook (Springer, 1990); equations of Hairer and Wanner,
    Solving Ordinary Differential Equations II, VII.7; the published angles are the reference
    solution of the Test Set for IVP Solvers (Mazzia and Magherini, University of Bari; computed
    with PSIDE, tolerances 1e-14). IFToMM's library has it as A03. Ours is `mechanisms.squeezer`
    with RK4 at 1e-5 s. In rad; met means within 1e-6 rad, chosen before the first run, of 2.5 turns
    of the crank.
    """
    d = Diagram("squeezer", step=1e-5)
    d.add(mechanisms.squeezer().block(outputs=[f"{n}.angle" for n in SQUEEZER]), name="plant")
    result = simulate(d, 0.03)
    rows = []
    for name, published in SQUEEZER.items():
        ours = float(result[f"plant.{name}.angle"][-1])
        off = abs(ours - published)
        verdict = MET if off <= 1e-6 else MISSED
        shown = (f"{published:.7f}", f"{ours:.7f}", below(off))
        rows.append(Row(f"{name} at 0.03 s", "IVP Test Set", *shown, verdict))
    return rows


def clearance() -> list[Row]:
    """A four-bar with play in one joint.

    A paper by Tasora, Prati and Silvestri, in words and figures; it gives clearances, cranks and
    speeds, and no other dimension, so that these are ours: [Joints with play](guides/clearance.md).
    Runs of 25 turns at 1000 rpm from eight starts around the hole; the motion is chaotic, and the
    means of another machine differ by some percent.
    """
    study = load("benchmarks/studies/clearance_fourbar.py")
    where = "Tasora et al."
    d = Diagram("ideal", step=1e-5)
    d.add(study.loaded("ideal", 0.0).block([], ["pin.force"]), name="plant")
    pull = simulate(d, 1e-5)["plant.pin.force"][0]
    toward = float(np.arctan2(-pull[1], -pull[0])) + 0.5
    _, link = study.run_loaded("link", toward, 1e-5)
    _, rigid = study.run_loaded(RigidContact(restitution=0.0), toward, 1e-5, mode="internal")
    off = np.abs(rigid - link).max() / link.max()
    words = "coincides with a link without mass"
    apart = f"forces {below(off)} apart"
    rows = [statement("contact that lasts", f"{where}, fig. 6", words, apart, off < 1e-6)]

    def mean(**changes: Any) -> dict[str, float]:
        found: Counter[str] = Counter()
        for k in range(8):
            say(f"play in a four-bar, {changes}, start {k}")
            found.update(study.measure(study.Case(toward=np.pi * (1 + k / 4), **changes)))
        return {name: value / 8 for name, value in found.items()}

    zones = study.judge(study.Case()).hole
    shares = [zones.probability(*np.radians(ends)) for ends in ((100, -60), (-60, 100))]
    free, joint_friction, motor = mean(), mean(friction=0.02), mean(drive="torque")

    rows += [
        statement(
            "place of the contact",
            f"{where}, fig. 13",
            "around two zones, the rod pushing or pulling",
            f"{100 * shares[0]:.0f} % of the contact where it pushes, {100 * shares[1]:.0f} % "
            "where it pulls",
            shares[0] > 0.7 and 0.02 < shares[1] < 0.3,
        ),
        statement(
            "friction 0.02, contact",
            f"{where}, fig. 12",
            "fewer losses",
            f"{free['contact %']:.0f} → {joint_friction['contact %']:.0f} % of the time in contact",
            joint_friction["contact %"] > free["contact %"] + 2,
        ),
        statement(
            "friction 0.02, force",
            f"{where}, fig. 12",
            "less high-frequency oscillation",
            f"{free['fast N']:.3g} → {joint_friction['fast N']:.3g} N rms",
            joint_friction["fast N"] < 0.97 * free["fast N"],
        ),
        statement(
            "motor with PID, speed",
            f"{where}, fig. 9–10",
            "high-frequency disturbance",
            f"{motor['fast speed %']:.2f} % rms",
            motor["fast speed %"] > 0.1,
        ),
        statement(
            "motor with PID, force",
            f"{where}, fig. 9–10",
            "limited oscillation",
            f"{free['fast N']:.3g} → {motor['fast N']:.3g} N rms",
            motor["fast N"] < 0.9 * free["fast N"],
        ),
        statement(
            "motor with PID, period",
            f"{where}, fig. 9–10",
            "less periodic",
            f"share of the mean turn {100 * free['regular']:.0f} → {100 * motor['regular']:.0f} %",
            motor["regular"] < free["regular"],
        ),
        Row(
            "impulses, torque, clearances",
            f"{where}, fig. 8, 11, 14–16",
            "figures",
            "of other dimensions; ours are in [Joints with play](guides/clearance.md)",
            "",
            OPEN,
        ),
    ]
    return rows


def cardan_joint() -> list[Row]:
    """Vita's Cardan joint with friction, chapter 6, as an RCCC mechanism of dual numbers.

    The first case (100 N m, f = 0.005, errors of 0.5 mm and 0.006°) does not print its bearings: we
    take those of the second, d/L = 20/10 mm of the shafts and 6/5 mm of the cross. The second
    (0.2 N m, 6 rad/s, f = 0.42) is a plot. Its data contradict themselves: the moments of inertia
    are smaller than those of the mass at its center about the same point, so that they must be
    about the center of mass; the output shaft has its center of mass off the axis about which it
    turns; α₄ = 165° is the supplement of the 15° of the first case.
    """
    turn = np.radians(np.arange(0.5, 360.0))
    shaft, cross = Sleeve(0.020, 0.010), Sleeve(0.006, 0.005)
    sleeves = (shaft, cross, cross, shaft)

    def mean(angle: float, speed: float = 50 * np.pi, **errors: Any) -> float:
        joint = RCCC.cardan(np.radians(angle), **errors)
        found = efficiency(
            joint, turn, speed=speed, torque=100.0, coefficient=0.005, sleeves=sleeves
        )
        return 100 * float(found.efficiency.mean())

    errors = {"length_errors": 5e-4, "angle_errors": np.radians([0.006, 0.006, 0.006, 0.0])}
    exact, real = mean(15), mean(15, **errors)
    falls = [mean(angle) for angle in (5, 10)] + [exact]
    where = "Vita 6, first case"
    rows = [
        statement(
            "shafts at 5, 10, 15°", where, "falls slightly",
            ", ".join(f"{value:.2f} %" for value in falls),
            falls[0] > falls[1] > falls[2] > falls[0] - 1,
        ),
        statement(
            "errors, 15°", where, "cost about 0.15 %", f"{exact - real:.2f} %",
            0.1 < exact - real < 0.2,
        ),
        Row(
            "1500 → 2500 rpm", where, "-1.8 %",
            f"{mean(15, speed=250 / 3 * np.pi) - exact:.1f} % without masses: they are not printed",
            "", OPEN,
        ),
    ]  # fmt: skip
    where = "Vita 6, second case"
    data = (
        (0.936, (0.119813, 0.008020, 0.11954), 0.00025),
        (0.936, (0.08778, 0.08778, 0), 0.000184),
    )
    (m, S, Jyy), (m3, S3, Jzz) = data
    rows += [
        Row(
            "J_yy of the input shaft", where, f"{Jyy:g} kg m²",
            f"its mass at its center has {(S[0] ** 2 + S[2] ** 2) / m:.3f} kg m²", "", OPEN,
        ),
        Row(
            "J_zz of the output shaft", where, f"{Jzz:g} kg m²",
            f"its mass at its center has {(S3[0] ** 2 + S3[1] ** 2) / m3:.3f} kg m²", "", OPEN,
        ),
    ]  # fmt: skip
    bodies = (
        RigidBody(
            m, np.array(S) / m, [[0.01925, 0, 0], [0, Jyy, -0.00103], [0, -0.00103, 0.01918]]
        ),
        RigidBody(0.0456, np.array([0.000387, 0.000387, 0]) / 0.0456, (6e-6, 6e-6, 2e-6)),
        RigidBody(m3, np.array(S3) / m3, (0.01215, 0.01215, Jzz)),
    )
    lows = []
    for masses in ((None, None, None), bodies):
        found = efficiency(
            RCCC.cardan(np.radians(165)), turn, speed=6.0, torque=0.2, coefficient=0.42,
            sleeves=sleeves, bodies=masses,
        )  # fmt: skip
        lows.append((100 * found.efficiency.min(), 100 * found.efficiency.mean()))
    (low, middle), (low_m, middle_m) = lows
    ours = f"mean {middle:.0f} %, least {low:.0f} %; with masses {middle_m:.0f} and {low_m:.0f} %"
    note = ": below 0 the output must be driven too"
    at = RCCC(np.radians([88.0, 91.5, 90.7, 30.0])).motion(1.1, 2.0)
    (_, t2, t3, _), (a1, a2, a3, _) = at.coordinates.real, np.radians([88.0, 91.5, 90.7, 30.0])
    sin, cos = np.sin, np.cos

    def speed3(first: float, last: float) -> float:
        inner = (sin(a2) * cos(a3) + cos(a2) * sin(a3) * first) * sin(t2)
        sum_of = inner + sin(a3) * sin(t3) * last
        return float(2.0 * sin(a1) * sum_of / (sin(a2) * sin(a3) * sin(t3)))

    right = float(at.rates.real[2])
    wrong = speed3(float(sin(t3)), float(cos(t3)))
    off = abs(speed3(float(cos(t3)), float(cos(t2))) - right)
    shown = f"{wrong:.3f} rad/s in place of {right:.3f}"
    rows.append(Row("speed of joint 3", "Vita 6.25", "sin θ₃, cos θ₃", shown, "", OPEN))
    rows.append(
        statement("the same, corrected", "errata", "cos θ₃, cos θ₂", below(off), off < 1e-14)
    )
    rows.append(Row("efficiency, f = 0.42", where, "a plot", ours + note, "", OPEN))
    return rows


def cardan_play() -> list[Row]:
    """Vita's Cardan joint with play and tolerances, chapter 7, table 7.1.

    Tolerances are six standard deviations, contacts have random directions. The table gives no unit
    of length, and draws clearances that are partly negative: we take their absolute value, and 4000
    sets in place of 50. Figures 7.4 to 7.11 are plots.
    """
    example = load("examples/28_cardan_play.py")
    study = example.tolerance_study(
        example.measure, example.variables(), 4000, vectorized=True, directions=2
    )
    degrees = np.degrees(example.TURN)
    angle, slide, speed, _ = (study[name] for name in example.OUTPUTS)
    peaks = [
        degrees[half][np.argmax(np.asarray(speed.deviation)[half])]
        for half in (np.abs(degrees - 180) > 90, np.abs(degrees - 180) <= 90)
    ]
    ratio = np.asarray(speed.deviation).max() / np.asarray(speed.deviation).min()
    where = "Vita 7, figs. 7.4–7.11"
    return [
        statement(
            "output angle", where, "little affected",
            f"σ at most {np.max(angle.deviation):.2f}°", bool(np.max(angle.deviation) < 2),
        ),
        statement(
            "output slide", where, "very sensitive",
            f"σ up to {np.max(slide.deviation):.3f} lengths, 0 without play and tolerances",
            bool(np.max(slide.deviation) > 0.05),
        ),
        statement(
            "output speed", where, "two positions with the largest deviation",
            f"largest near {peaks[0] % 360:.0f} and {peaks[1]:.0f}°, {ratio:.1f} times the least",
            bool(ratio > 1.5),
        ),
    ]  # fmt: skip


SECTIONS = [
    Section("Journal bearing, length = diameter", raimondi_boyd, True),
    Section("Journal bearing with two grooves", someya, True),
    Section("Journal bearings with grooves, round and elliptical", lund_thomsen, True),
    Section("Stability of journal bearings with a pressure dam", step_bearings, True),
    Section("Counts of equations", counts, True),
    Section("Drift of constraints", cart_coarse, True),
    Section("Drift of constraints, finer", cart_fine, False),
    Section("Formulations", formulations, False),
    Section("The engine on the same mechanism", engine_closure, False),
    Section("Figures and words", figures_only, True),
    Section("Misprints", misprints, True),
    Section("Energy", energy_benchmarks, True),
    Section("Andrews' squeezer", squeezer, True),
    Section("Play in a joint", clearance, False),
    Section("A cam law", cam_law, True),
    Section("A Cardan joint with friction", cardan_joint, True),
    Section("A Cardan joint with play", cardan_play, True),
]

INTRODUCTION = """\
# Published cases beside ours

Written by `python docs/validation.py`, which computes every figure under *ours* anew, in half an
hour (`--quick` prints what takes seconds); do not edit.
Sources are Vita's and Oldani's theses on multibody dynamics, and what the sections name. *Met*
compares numbers, with the tolerance that the section states; *as described* compares with words or
figures without numbers; *not reproduced* says why.
"""


def about(section: Section) -> str:
    """Return what a section says of its source."""
    return inspect.cleandoc(section.rows.__doc__ or "")


def render(section: Section) -> tuple[str, list[str]]:
    """Return the text of a section, and its verdicts."""
    rows = section.rows()
    lines = [f"## {section.title}\n", about(section), ""]
    lines += ["| case | source | published | ours | difference | |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.case} | {row.source} | {row.published} | {row.ours} | {row.difference} "
        f"| {row.verdict} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n", [row.verdict for row in rows]


def write_page() -> str:
    """Return the text of docs/validation.md."""
    texts, verdicts, missed = [], Counter[str](), []
    for section in SECTIONS:
        say(section.title)
        text, found = render(section)
        texts.append(text)
        verdicts.update(found)
        if MISSED in found:
            missed.append(f"{found.count(MISSED)} under *{section.title}*")
    total = ", ".join(f"{verdicts[name]} {name}" for name in (MET, DESCRIBED, MISSED, OPEN))
    where = f"What is not met: {', '.join(missed)}.\n" if missed else ""
    return "\n".join([INTRODUCTION, f"{total}. {where}", *texts])


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Published cases beside ours.")
    parser.add_argument("--quick", action="store_true", help="print what takes seconds")
    if parser.parse_args().quick:
        for section in SECTIONS:
            if section.quick:
                print(render(section)[0])
    else:
        PAGE.write_text(write_page())


if __name__ == "__main__":
    main()
