"""The demo: its sequence of steps and the summary table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..blocks.machines._state_machine import StateMachine
from ..blocks.multibody.drawing._poses import poses_from_result
from ..scheduler.realtime._start import run_realtime
from ..scheduler.results._result import Result
from ..scheduler.run._simulate import simulate
from . import _figures as figures
from . import rig
from ._page import Picture, Row, write_page

RIG = Path(__file__).with_name("rig.toml")
_ESTIMATE_EVERY = 5  # ticks; each costs seven


def run_demo(
    folder: Path, seconds: float = 5.0, say: Callable[[str], None] = lambda text: None
) -> list[Row]:
    """Build the rig, run it offline and real-time, write all files to `folder`; return the table.

    Parameters
    ----------
    seconds
        Duration of both runs.
    say
        Called with a description of each step.
    """
    folder.mkdir(parents=True, exist_ok=True)
    say("exporting the slider-crank as an FMU: crank.fmu")
    fmu = rig.export_plant(folder / "crank.fmu")
    diagram = rig.diagram(fmu)
    diagram.draw(folder / "diagram.svg")
    say("running the diagram around it offline")
    simulated = _whole(
        simulate(diagram, seconds, record=["*"], estimate_error=_ESTIMATE_EVERY, progress=False)
    )
    say(
        f"running it again for {seconds:g} s in real time, with a loopback device as its power "
        f"stage"
    )
    for source in (RIG, Path(rig.__file__)):
        (folder / source.name).write_text(source.read_text("utf-8"), "utf-8")
    with run_realtime(diagram, seconds, bind=RIG, record=["*"], out=folder / "run.h5") as run:
        realtime = _whole(run.wait())
    say("drawing")
    figures.draw_responses(simulated, realtime, folder / "responses.png")
    machine = rig.supervisor()
    figures.draw_states(realtime, state_names(machine), folder / "states.png")
    pictures = _draw_statechart(machine, folder) + _PICTURES
    figures.draw_orbit(simulated, folder / "orbit.png")
    figures.draw_ticks(realtime, rig.STEP, folder / "ticks.png")
    _draw_motion(simulated, folder / "motion.gif")
    rows = measure(simulated, realtime)
    files = _FILES + _write_run(folder, say)
    write_page(folder / "index.html", "A crank on a rig", _INTRO, rows, pictures, files, _COMMANDS)
    return rows


def _write_run(folder: Path, say: Callable[[str], None]) -> tuple[tuple[str, str], ...]:
    """Write the real-time run as one file with diagram, scopes and mechanism, if that can be."""
    from ..studio._page_file import has_page, write_page_file
    from ..studio._result import ResultSession

    if not has_page():
        say("no run.html: the page of the studio was not built when biella was installed")
        return ()
    say("writing diagram, scopes and mechanism of the real-time run as one file: run.html")
    session = ResultSession(folder / "run.h5", systems={"plant": rig.mechanism()})
    write_page_file(session, folder / "run.html")
    return (("run.html", "the real-time run: diagram, scopes and moving mechanism"),)


def state_names(machine: StateMachine) -> tuple[str, ...]:
    """Return the names of the values of its output `state`."""
    return machine.outputs[machine.output_index["state"]].names


def _draw_statechart(machine: Any, folder: Path) -> tuple[Picture, ...]:
    """Draw the states and transitions of the supervisor, if this version can."""
    if not hasattr(machine, "draw"):
        return ()
    machine.draw(folder / "statechart.svg")
    return (Picture("statechart.svg", "States of the supervisor", "Arrows are transitions."),)


def _whole(result: Result) -> Result:
    """Return the result, unless Ctrl-C has ended its run: half a demo shows nothing."""
    if "interrupted" in str(result.info.get("stopped") or ""):
        raise KeyboardInterrupt
    return result


def measure(simulated: Result, realtime: Result) -> list[Row]:
    """Return the table of the demo: measured quantity, value, meaning."""
    timing: Any = realtime.info["realtime"]
    load = min(rig.LOAD_AT, simulated.t[-1])
    settled = (simulated.t > load - 0.5) & (simulated.t < load)
    error = simulated["speed"][settled] - rig.WANTED
    # The last row is that of a tick that was reached but not run: its devices were not asked.
    same = min(simulated.length, realtime.length) - 1
    apart = (
        np.abs(simulated["speed"][:same] - realtime["speed"][:same]).max() if same > 0 else np.nan
    )
    execution, lateness = timing["execution"], timing["lateness"]
    eccentricity = np.linalg.norm(simulated["crank_pin.journal_position"], axis=1) / rig.CLEARANCE
    return [
        (
            "speed error before the load",
            f"{error.mean():+.3f} rad/s",
            f"mean; {error.std():.2f} rms around it, as the crank swings",
        ),
        ("real-time against simulated", f"{apart:.2g} rad/s", "largest difference in speed"),
        (
            "time of a tick, median",
            f"{1e6 * execution['p50']:.0f} µs",
            f"99 %: {1e6 * execution['p99']:.0f}, longest: {1e6 * execution['max']:.0f} µs",
        ),
        (
            "ticks began late by, median",
            f"{1e6 * lateness['p50']:.0f} µs",
            f"99 %: {1e6 * lateness['p99']:.0f}, most: {1e6 * lateness['max']:.0f} µs",
        ),
        (
            "overruns",
            f"{timing['overruns']}",
            f"of {timing['ticks']} ticks ended after the next was due; policy {timing['overrun']}",
        ),
        (
            "closure of the joints",
            f"{simulated['plant.closure'].max():.2g} m",
            "largest; it is the film that closes the loop, not a joint",
        ),
        (
            "coupling error of a tick",
            f"{100 * coupling_error(simulated):.2g} %",
            "of the largest force of the film, in 99 % of the ticks before the overload",
        ),
        (
            "eccentricity of the crank pin",
            f"{eccentricity.max():.2f}",
            "maximum relative to the clearance: at 1 the film thickness is 0",
        ),
        _state_row(realtime),
    ]


def _state_row(run: Result) -> Row:
    """Return the state at the end of a run, and when each was entered."""
    names, states = state_names(rig.supervisor()), run["supervisor.state"].astype(int)
    entered = [
        f"{names[states[k] - 1]} at {run.t[k]:.3f}" for k in np.flatnonzero(np.diff(states)) + 1
    ]
    return ("supervisor, at the end", names[states[-1] - 1], f"{', '.join(entered)} s")


def coupling_error(run: Result) -> float:
    """Return the estimated error of the film's force within a tick, over its largest value.

    The steps of torque at the overload and after it are not counted: they are larger.
    """
    force = "crank_pin.force_on_journal"
    errors = np.hypot(*(run[f"coupling.{force}.{part}.error"] for part in ("y1", "y2")))
    largest = np.hypot(run[f"{force}.y1"], run[f"{force}.y2"]).max()
    return float(np.percentile(errors[run.t < rig.OVERLOAD_AT], 99) / largest)


def _draw_motion(run: Result, path: Path) -> None:
    """Show a second of the steady motion, five times slower."""
    mechanism = rig.mechanism()
    poses = poses_from_result(mechanism, run)
    end = min(run.t[-1], rig.OVERLOAD_AT)
    last = poses.at(np.linspace(max(end - 1.0, 0.0), end, 400))
    mechanism.animate(last, path, traces=["rod.big", "rod.middle"], speed=0.2)


_INTRO = (
    "A slider-crank whose crank pin runs in oil. The mechanism was exported as an FMU; the diagram "
    "holds that FMU, the film, and a speed loop with a supervisor, as on a test rig. It ran "
    "offline, and then at 1 kHz against the wall clock with a device in place of its power stage."
)
_PICTURES = (
    Picture(
        "diagram.svg",
        "The diagram",
        "All blocks run every 1 ms; thick lines carry vectors. A click shows it in full size.",
    ),
    Picture(
        "responses.png",
        "Speed and torque",
        "Offline and real-time: the same numbers, since the device answers as the simulated power "
        "stage does. At 2 s a load sets in, at 4 s an overload.",
    ),
    Picture(
        "states.png",
        "The supervisor",
        "A StateMachine starts the rig once the encoder counts and watches the torque. Above "
        "5 N m for 0.2 s it reduces the speed; the second time it switches the power stage off. "
        "States of the real-time run, by name.",
    ),
    Picture(
        "orbit.png",
        "The crank pin in its oil",
        "Position of the journal in its clearance, and minimum film thickness.",
    ),
    Picture("motion.gif", "The mechanism", "One second, five times slower."),
    Picture(
        "ticks.png",
        "Timing of ticks",
        "Start latency and duration of each tick. The tail is due to the machine: biella "
        "doctor shows details.",
    ),
)
_FILES = (
    ("crank.fmu", "the mechanism, for any tool that reads FMI 2.0"),
    ("rig.toml", "binding of a block to a device"),
    ("rig.py", "mechanism and diagram, to be read and changed"),
    ("run.h5", "the real-time run, with all external inputs"),
)
_COMMANDS = (
    ("biella simulate rig.py --until 5 --set pid.kp=3 --record speed --plot", "with another gain"),
    ("biella replay run.h5 rig.py", "the real-time run again, bit for bit"),
    ("biella run-realtime rig.py --bind rig.toml --until 5", "against the clock"),
    ("biella simulate crank.fmu --until 1 --plot", "the mechanism alone, falling"),
)
