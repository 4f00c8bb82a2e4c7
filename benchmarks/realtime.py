"""Wake-up lateness of a real-time run beside a bare C loop and cyclictest, and the cost of a tick.

    python benchmarks/realtime.py [--quick] [--json FILE]

All wake a thousand times a second: a diagram of ours in the real-time loop of the engine, a C loop
around `clock_nanosleep` (`workloads/realtime_c.c`), and cyclictest of rt-tests (Debian: `apt
install rt-tests`). They take turns of a quarter of a second on one and the same processor, as
ordinary threads and, if these are granted, with SCHED_FIFO, locked memory and full power; ours also
as an ordinary thread with exact timers, which everybody may have. Medians are judged. Tails are
printed beside each other and never judged: what a shared machine does in its worst millisecond says
nothing of the three.

The second table is the time of a tick of whole diagrams, real-time at 1 kHz, so with caches as
cold as
they are in real time: a slider-crank as FMU, a journal bearing and ten blocks of instruments and
control; and the rig of the demo, whose FMU is iterated with the film of its crank pin in each tick.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from ctypes import POINTER, c_int64
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from table import (
    Row,
    at_most,
    beside,
    figure,
    not_installed,
    parse_arguments,
    print_rows,
    say,
    within,
    write_json,
)
from workloads.baseline import FLAGS

try:
    from biella import Diagram, simulate
except ModuleNotFoundError as error:
    if error.name != "biella":
        raise
    sys.exit("biella is not installed in this environment: run `pip install .` first.")

from biella.blocks import (
    ADC,
    PID,
    Constant,
    Encoder,
    Port,
    Scaling,
    ShortBearing,
    Sine,
    Step,
    TorqueMeter,
    TransferFunction,
)
from biella.blocks.authoring import ExternalInput
from biella.blocks.multibody.mechanisms import slider_crank
from biella.blocks.sensors import presets
from biella.demo import rig
from biella.fmu.importer._fmu import Fmu
from biella.scheduler.compile.plan._plan import Plan
from biella.scheduler.engine._engine import Instance
from biella.scheduler.host._latency import summarize
from biella.scheduler.host._privileges import Privileges, hold
from biella.scheduler.host._system_info import choose_processor
from biella.scheduler.realtime.loop._pace import Pace, Pipe

Nanoseconds = npt.NDArray[np.int64]
PERIOD, TURN, DEMO = 1e-3, 250, 1000  # s, and ticks of a turn and of a run of the demo
MEDIAN, TICK_US = 1.1, 50.0  # targets
BOUNDARY = ["motor.torque", "brake.torque"], ["main.angle", "main.speed"]
WATCHED = "plant.main.speed"  # of both diagrams
SPEED = 5.0  # rad/s, of the smaller one


@dataclass
class Entrant:
    """A participant: how it takes a turn, and how late it was in each."""

    name: str
    wake: Callable[[], Nanoseconds]
    turns: list[Nanoseconds] = field(default_factory=list)

    @property
    def lateness(self) -> dict[str, float]:
        """Quantiles of all turns, µs."""
        return summarize(np.concatenate(self.turns))


def compile_timed(d: Diagram) -> Plan:
    """Compile a diagram with a block whose outputs the real-time loop sets to the times of a
    tick.
    """
    times = ExternalInput(outputs=[Port("lateness", unit="s"), Port("execution", unit="s")])
    return d.compile(extra={"realtime": times})


def run_realtime(plan: Plan, ticks: int, *watched: str) -> npt.NDArray[np.float64]:
    """Run real-time; return a row a tick: its lateness, the execution of the last one, signals."""
    slots = [plan.find_signal(f"realtime.{name}").slot for name in ("lateness", "execution")]
    slots += [plan.find_signal(path).slot for path in watched]
    pace = Pace()
    first = plan.parameters["realtime.received"].slot
    pace.timing[0], pace.timing[1] = first, first + 1
    row = np.dtype((np.float64, 1 + len(slots)))
    with Instance(plan) as instance, Pipe(row, ticks) as rows:
        instance.initialize()
        pace.record(rows, slots, 1)
        instance.check(pace.run(instance, ticks))
        return rows.pull()[:, 1:]


def enter_ours() -> Callable[[], Nanoseconds]:
    """Return a turn of the smallest diagram in our real-time loop."""
    d = Diagram("nothing", step=PERIOD)
    d.add(Constant(1.0), name="one")
    plan = compile_timed(d)
    return lambda: to_nanoseconds(run_realtime(plan, TURN)[:, 0])


def to_nanoseconds(seconds: npt.NDArray[np.float64]) -> Nanoseconds:
    """Return times as whole nanoseconds."""
    return np.rint(1e9 * seconds).astype(np.int64)


def enter_bare(folder: Path) -> Callable[[], Nanoseconds]:
    """Compile `workloads/realtime_c.c`; return a turn of it."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        sys.exit("The bare loop needs a C compiler: install one as `cc`, or name it in CC.")
    target = folder / "realtime_c.so"
    source = Path(__file__).parent / "workloads" / "realtime_c.c"
    command = [*compiler.split(), *FLAGS, "-D_GNU_SOURCE", str(source), "-o", str(target)]
    subprocess.run(command, check=True)
    loop = ctypes.CDLL(str(target)).bare_loop
    loop.argtypes, loop.restype = [c_int64, c_int64, POINTER(c_int64)], None

    def wake() -> Nanoseconds:
        lateness = np.zeros(TURN, np.int64)
        loop(round(PERIOD * 1e9), TURN, lateness.ctypes.data_as(POINTER(c_int64)))
        return lateness

    return wake


def enter_cyclictest(options: list[str]) -> Callable[[], Nanoseconds] | None:
    """Return a turn of cyclictest, which is a process of its own; None if it is not installed."""
    program = shutil.which("cyclictest") or shutil.which("cyclictest", path="/usr/sbin")
    if program is None:
        return None
    work = ["-t", "1", "-d", "0", "-i", str(round(PERIOD * 1e6)), "-l", str(TURN), "-N", "-v"]

    def wake() -> Nanoseconds:
        done = subprocess.run([program, *work, *options], capture_output=True, text=True)
        found = re.findall(r"^\s*0:\s*\d+:\s*(\d+)\s*$", done.stdout, re.M)
        if done.returncode or len(found) != TURN:
            sys.exit(f"cyclictest gave {len(found)} wake-ups of {TURN}:\n{done.stderr}")
        return np.array(found, np.int64)

    return wake


def held(privileges: Privileges, wake: Callable[[], Nanoseconds]) -> Callable[[], Nanoseconds]:
    """Return a turn taken with privileges."""

    def turn() -> Nanoseconds:
        with hold(privileges):
            return wake()

    return turn


@dataclass
class Condition:
    """What all participants of a contest ask of the system."""

    name: str
    privileges: Privileges
    cyclictest: list[str]

    def contest(self, folder: Path) -> list[Entrant]:
        """Return the participants; the first is ours."""
        entrants = [
            Entrant("ours", held(self.privileges, enter_ours())),
            Entrant("bare C loop", held(self.privileges, enter_bare(folder))),
        ]
        peer = enter_cyclictest(self.cyclictest)
        return [*entrants, Entrant("cyclictest", peer)] if peer else entrants


def list_conditions(cpu: int) -> tuple[list[Condition], list[str]]:
    """Return what can be had here, and notes on what cannot."""
    ordinary = Condition(
        "ordinary thread",
        Privileges(exact_timers=False, cpu=cpu),
        ["--default-system", "--policy", "other", "-a", str(cpu)],
    )
    first = Condition(
        "SCHED_FIFO 80, locked memory, full power",
        Privileges.everything(cpu),
        ["-p", "80", "--policy", "fifo", "-m", "-a", str(cpu)],
    )
    with hold(first.privileges) as grants:
        refused = [str(grant) for grant in grants if not grant.granted]
    return ([ordinary], refused) if refused else ([ordinary, first], [])


def judge(condition: Condition, entrants: list[Entrant]) -> list[Row]:
    """Make the rows of a contest: medians with their target, tails without."""
    ours, *peers = ({"name": e.name} | e.lateness for e in entrants)
    rows: list[Row] = []
    title = f"{condition.name}: median lateness"
    better = min(peers, key=lambda peer: peer["median"])
    for peer in peers:
        times = MEDIAN if peer is better else None
        rows.append(at_most(title, peer["name"], ours["median"], peer["median"], "µs", times))
    if len(peers) < 2:
        install = "apt install rt-tests"
        rows.append(not_installed(title, "cyclictest", ours["median"], "µs", "", install))
    for tail in ("p99", "p99.9", "max"):
        work = f"{condition.name}: {tail}"
        rows += [beside(work, peer["name"], ours[tail], peer[tail], "µs") for peer in peers]
    return rows


def comment(condition: Condition, entrants: list[Entrant]) -> str:
    """Tell how the medians spread from turn to turn."""
    ours, *peers = ([float(np.median(turn)) for turn in e.turns] for e in entrants)
    ratios = np.array(ours) / np.min(peers, axis=0)
    return (
        f"{condition.name}, {len(ours)} turns each: in single turns ours is "
        f"{ratios.min():.2f} to {ratios.max():.2f} times the better of the others."
    )


def build_loop(path: Path) -> Diagram:
    """Return speed control of a slider-crank FMU whose main bearing brakes it: ten blocks around.

    The journal runs on a given orbit of half the clearance, with the speed of the crank.
    """
    system = slider_crank()
    system.torque("brake", system["main"], 0.0)
    system.export_fmu(path, inputs=BOUNDARY[0], outputs=BOUNDARY[1], step=PERIOD)
    d = Diagram("demo", step=PERIOD)
    plant = d.add(Fmu(path), name="plant")
    film = d.add(ShortBearing(0.02, 0.02, 5e-5, 0.03), name="film")
    orbit, pace = 2.5e-5, SPEED  # m, rad/s
    place = d.add(Sine([orbit] * 2, pace, phase=[np.pi / 2, 0.0], unit="m"), name="place")
    move = d.add(Sine([orbit * pace] * 2, pace, phase=[np.pi, np.pi / 2], unit="m/s"), name="move")
    ref = d.add(Step(to=SPEED, unit="rad/s"), name="ref")
    encoder = d.add(Encoder(**presets.OPTICAL_ENCODER, window=10), name="encoder")
    meter = d.add(TorqueMeter(presets.TORQUE_METER, seed=1), name="meter")
    converter = d.add(ADC(16, (-10.0, 10.0), unit="V", period=PERIOD), name="converter")
    gain = 1 / presets.TORQUE_METER.gain
    measured = d.add(Scaling(gain, unit="N.m", reading_unit="V"), name="measured")
    limits = {"limits": (-40, 40), "unit": "N.m", "period": PERIOD}
    demand = d.add(PID(10.0, 40.0, **limits), name="demand")
    trim = d.add(PID(0.0, 20.0, **limits), name="trim")
    motor = d.add(TransferFunction([0.8], [5e-3, 1.0], unit="N.m"), name="motor")
    for source, *targets in (
        (ref, demand["reference"]),
        (plant["main.angle"], encoder),
        (encoder["speed"], demand["measurement"]),
        (demand["y"], trim["reference"], trim["feedforward"]),
        (meter, converter),
        (converter["y"], measured),
        (measured, trim["measurement"]),
        (trim["y"], motor),
        (motor, plant["motor.torque"], meter),
        (place, film["position"]),
        (move, film["velocity"]),
        (plant["main.speed"], film["journal_speed"]),
        (film["torque"], plant["brake.torque"]),
    ):
        d.connect(source, *targets)
    return d


def measure_ticks(folder: Path, turns: int) -> list[Row]:
    """Time the ticks of two diagrams, real-time; of a run only what follows its first half."""
    diagrams = {
        "FMU, bearing, 10 blocks": build_loop(folder / "crank.fmu"),
        "demo rig: FMU and film iterated, 20 blocks": rig.diagram(
            rig.export_plant(folder / "rig.fmu")
        ),
    }
    plans = {name: compile_timed(d) for name, d in diagrams.items()}
    end = (DEMO - 1) * PERIOD
    offline = {n: simulate(d, end, record=[WATCHED])[WATCHED] for n, d in diagrams.items()}
    took: dict[str, list[Nanoseconds]] = {name: [] for name in plans}
    for _ in range(turns):
        for name, plan in plans.items():
            seen = run_realtime(plan, DEMO, WATCHED)
            if not np.array_equal(seen[:, 2], offline[name]):
                sys.exit(f"{name}: runs otherwise in real time than offline")
            took[name].append(to_nanoseconds(seen[DEMO // 2 :, 1]))
    rows: list[Row] = []
    for name in plans:
        times = summarize(np.concatenate(took[name]))
        rows.append(within(f"{name}: median", times["median"], TICK_US, "µs"))
        rows += (figure(f"{name}: {q}", times[q], "µs") for q in ("min", "p99", "p99.9", "max"))
    return rows


def main() -> None:
    """Run all and print the tables."""
    arguments = parse_arguments("Wake-up lateness beside a bare C loop and cyclictest.")
    rounds = 14 if arguments.quick else 84
    if sys.platform != "linux":
        sys.exit("This benchmark is for Linux: the bare loop and cyclictest are.")
    cpu = choose_processor()
    conditions, notes = list_conditions(cpu)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="biella-benchmark-") as name:
        contests = [(condition, condition.contest(Path(name))) for condition in conditions]
        exact = Entrant("ours", held(Privileges(cpu=cpu), enter_ours()))
        everybody = [*(e for _, entrants in contests for e in entrants), exact]
        for number in range(rounds):
            say(f"wake-ups, round {number + 1} of {rounds}")
            # Each has each place in the order equally often.
            start = number % len(everybody)
            for entrant in everybody[start:] + everybody[:start]:
                entrant.turns.append(entrant.wake())
        for condition, entrants in contests:
            rows += judge(condition, entrants)
            notes.append(comment(condition, entrants))
        for quantile in ("median", "p99", "p99.9", "max"):
            title = f"ordinary thread with exact timers: {quantile}"
            rows.append(figure(title, exact.lateness[quantile], "µs"))
        say("ticks")
        ticks = measure_ticks(Path(name), 3 if arguments.quick else 20)
    notes.append(f"Load of the machine at the end: {os.getloadavg()[0]:.1f}.")
    print_rows("Wake-up lateness at 1 kHz, µs", rows, notes)
    print_rows("Cost of a tick at 1 kHz, µs", ticks)
    if arguments.json:
        write_json(arguments.json, [*rows, *ticks])


if __name__ == "__main__":
    main()
