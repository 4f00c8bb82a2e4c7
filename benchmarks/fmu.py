"""FMUs in our engine beside a bare C loop, libcosim, FMPy, CoFmuPy and PyFMI.

    python benchmarks/fmu.py [--quick] [--json FILE] [--peers-python PATH]

The work is in `workloads/ring.py`: rings of 1, 2, 10 and 100 instances of one FMU, which is
exported here by us; a step of an FMU is set + doStep + get. All participants of a ring take turns
in one run and the best time of each counts. C and ours run in this process, each peer in one of its
own. CoFmuPy requires older versions of packages that we use too, so peers have an environment of
their own:

    python -m venv peers && peers/bin/pip install libcosimpy fmpy cofmupy
    python benchmarks/fmu.py --peers-python peers/bin/python

All must give the same last output to the last bit, or no figure is printed. The time and size of an
export, and the time to open an FMU, are measured too.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from peers.process import Peer
from table import (
    Row,
    figure,
    not_installed,
    parse_arguments,
    print_rows,
    say,
    times_faster,
    within,
    write_json,
)
from turns import Entrant, Run, ratios, take_turns
from workloads.baseline import FLAGS
from workloads.ring import (
    COUNTS,
    FMU_STEPS,
    GAIN,
    INPUT,
    OUTPUT,
    START,
    STEP,
    read_model,
    starts,
    steps,
    work,
)

try:
    from biella import Diagram
except ModuleNotFoundError as error:
    if error.name != "biella":
        raise
    sys.exit("biella is not installed in this environment: run `pip install .` first.")

from biella.blocks import DiscreteIntegrator
from biella.fmu.importer._fmu import Fmu

PRETTY = {
    "libcosimpy": "libcosim",
    "fmpy": "FMPy",
    "cofmupy": "CoFmuPy",
    "pyfmi": "PyFMI",
}
INSTALL = {
    "libcosimpy": "pip install libcosimpy",
    "fmpy": "pip install fmpy",
    "cofmupy": "pip install cofmupy",
    "pyfmi": "conda install -c conda-forge pyfmi",
}
TIMES_FASTER = 20
LATER_VERSION = 1.3
"""Longest step of FMI 3.0, as a multiple of one of FMI 2.0."""
SLIDER_CRANK = Path(__file__).parents[1] / "examples" / "04_slider_crank.py"


def export_ring_fmu(folder: Path, version: str = "2.0") -> Path:
    """Export the FMU of `workloads/ring.py`, for a version of FMI."""
    d = Diagram("ring", step=STEP)
    u = d.input(INPUT)
    x = d.add(DiscreteIntegrator(initial=1.0, gain=GAIN, method="forward"), name="x", period=STEP)
    d.connect(u, x)
    d.output(OUTPUT, x)
    return d.export_fmu(folder / f"ring{version[0]}.fmu", version=version)


def build_diagram(fmu: Path, count: int) -> Diagram:
    """Make the ring of our blocks."""
    d = Diagram(f"ring of {count}", step=STEP)
    blocks = [
        d.add(Fmu(fmu, parameters={START: start}), name=f"fmu_{n}")
        for n, start in enumerate(starts(count))
    ]
    for n, block in enumerate(blocks):
        d.connect(blocks[n - 1], block)
    return d


def run_ours(fmu: Path, count: int) -> Run:
    """Return a run of the ring in our engine, from the start each time."""
    instance = build_diagram(fmu, count).compile().instantiate()
    last, ticks = f"fmu_{count - 1}.{OUTPUT}", steps(count)

    def run() -> tuple[float, float | None]:
        instance.reset()
        start = time.perf_counter()
        instance.run(ticks)
        elapsed = time.perf_counter() - start
        return elapsed, float(instance.get(last))

    return run


def build_loop(fmu: Path, folder: Path) -> Callable[[int], Run]:
    """Compile `workloads/fmu_c.c` and unpack the FMU for it; return what makes the run of a
    ring."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        sys.exit("The bare loop needs a C compiler: install one as `cc`, or name it in CC.")
    model = read_model(str(fmu))
    target = folder / f"{fmu.stem}_c.so"
    source = Path(__file__).parent / "workloads" / "fmu_c.c"
    kind = ["-DFMI3"] if model.is_fmi3 else []
    command = [*compiler.split(), *FLAGS, *kind, str(source), "-o", str(target), "-ldl"]
    subprocess.run(command, check=True)
    loop = ctypes.CDLL(str(target))
    loop.ring_open.restype = ctypes.c_void_p
    loop.ring_close.argtypes, loop.ring_close.restype = [ctypes.c_void_p], None
    loop.ring_run.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_double]
    loop.ring_run.restype = ctypes.c_double
    unpacked = folder / f"{fmu.stem} unpacked"
    with zipfile.ZipFile(fmu) as archive:
        archive.extractall(unpacked)
    binary = next((unpacked / "binaries").glob(f"*/{model.identifier}.so"))
    resources = unpacked / "resources"
    location = str(resources) if model.is_fmi3 else resources.as_uri()

    def enter(count: int) -> Run:
        def run() -> tuple[float, float | None]:
            ring = loop.ring_open(
                str(binary).encode(),
                model.guid.encode(),
                location.encode(),
                model.input,
                model.output,
                model.start,
                count,
                (ctypes.c_double * count)(*starts(count)),
            )
            if not ring:
                sys.exit("fmu_c.c: the FMU cannot be loaded or initialized.")
            start = time.perf_counter()
            output = loop.ring_run(ring, steps(count), STEP)
            elapsed = time.perf_counter() - start
            loop.ring_close(ring)
            return elapsed, output

        return run

    return enter


@dataclass
class Contest:
    """A ring run by all."""

    count: int
    c: Entrant
    ours: Entrant
    peers: dict[str, Entrant | None]
    """None: not installed."""

    @property
    def entrants(self) -> list[Entrant]:
        return [self.c, self.ours, *filter(None, self.peers.values())]


def enter_peers(peers: dict[str, Peer], what: str, rounds: int | None) -> dict[str, Entrant | None]:
    """Return each peer as a participant."""

    def enter(package: str, peer: Peer) -> Entrant | None:
        if not peer.version:
            return None
        name = f"{PRETTY[package]} {peer.version}"
        return Entrant(name, lambda: peer.run(what, 1.0), 1.0, rounds=rounds)

    return {package: enter(package, peer) for package, peer in peers.items()}


def hold_contest(
    count: int, fmu: Path, loop: Callable[[int], Run], peers: dict[str, Peer], quick: bool
) -> Contest:
    """Measure a ring for all."""
    contest = Contest(
        count,
        Entrant("bare C loop", loop(count), 1.0, repeats=10),
        Entrant("ours", run_ours(fmu, count), 1.0, repeats=10),
        # Opening a hundred takes peers seconds.
        enter_peers(peers, work(count), (1 if count == 100 else 2) if quick else None),
    )
    take_turns(contest.entrants, rounds=4 if quick else 12)
    check_agreement(name_ring(count), contest.entrants)
    return contest


def check_agreement(title: str, entrants: list[Entrant]) -> None:
    """Stop if not all have the same last output to the last bit."""
    outputs = {e.name: e.output for e in entrants}
    # What is not a number is equal to nothing, not even to itself.
    if any(output is None or output != entrants[0].output for output in outputs.values()):
        listed = ", ".join(f"{name} {output!r}" for name, output in outputs.items())
        sys.exit(f"{title}: the last outputs differ: {listed}.")


def name_ring(count: int) -> str:
    """Return how many FMUs, in words."""
    return f"{count} FMU{'s' if count > 1 else ''}"


def judge(contest: Contest) -> list[Row]:
    """Make the rows of a ring."""
    title = f"{name_ring(contest.count)}: set, step, get"

    def each(entrant: Entrant) -> float:
        return entrant.best / FMU_STEPS * 1e6

    ours, bare = each(contest.ours), each(contest.c)
    rows = [within_loop(title, ours, bare)]
    for package, entrant in contest.peers.items():
        if entrant is None:
            target = f"≥ {TIMES_FASTER}× faster"
            rows.append(not_installed(title, PRETTY[package], ours, "µs", target, INSTALL[package]))
        else:
            rows.append(times_faster(title, entrant.name, ours, each(entrant), "µs", TIMES_FASTER))
    return rows


def within_loop(title: str, ours: float, bare: float) -> Row:
    """Make the row of ours beside the bare loop, µs: at most twice that and 50 ns."""
    met = ours <= 2 * bare + 0.05
    return Row(title, "bare C loop", ours, bare, "µs", ours / bare, "≤ 2× + 0.05 µs", met)


def comment(contest: Contest) -> str:
    """Tell how the ratios spread from turn to turn."""
    least, largest = ratios(contest.ours, contest.c)
    parts = [f"ours is {least:.2f} to {largest:.2f} times the bare loop"]
    for entrant in filter(None, contest.peers.values()):
        least, largest = ratios(entrant, contest.ours)
        parts.append(f"{entrant.name} {least:.0f} to {largest:.0f} times ours")
    return f"{name_ring(contest.count)}, by turns: {', '.join(parts)}."


def compare_versions(loops: dict[str, Callable[[int], Run]], quick: bool) -> tuple[Row, str]:
    """Time the same FMU for both versions of FMI, each in the bare loop."""
    two, three = (
        Entrant(f"FMI {version}", loops[version](1), 1.0, repeats=10) for version in ("2.0", "3.0")
    )
    take_turns([two, three], rounds=4 if quick else 12)
    check_agreement("FMI 2.0 and 3.0", [two, three])
    times = [entrant.best / FMU_STEPS * 1e6 for entrant in (three, two)]
    ratio = times[0] / times[1]
    least, largest = ratios(three, two)
    row = Row(
        "1 FMU of FMI 3.0: set, step, get", "the same of FMI 2.0", *times, "µs", ratio,
        f"≤ {LATER_VERSION}×", ratio <= LATER_VERSION,
    )  # fmt: skip
    return row, f"A step of FMI 3.0 is {least:.2f} to {largest:.2f} times one of FMI 2.0, by turns."


def measure_opening(fmu: Path, peers: dict[str, Peer], quick: bool) -> list[Row]:
    """Time from the file to an FMU that has its first output: read, unpack, load, initialize."""

    def open_ours() -> tuple[float, float | None]:
        start = time.perf_counter()
        instance = build_diagram(fmu, 1).compile().instantiate()
        elapsed = time.perf_counter() - start
        output = float(instance.get(f"fmu_0.{OUTPUT}"))
        instance.close()
        return elapsed, output

    title = "open an FMU: read, unpack, load, initialize"
    ours = Entrant("ours", open_ours, 1.0)
    entered = enter_peers(peers, "open", None)
    take_turns([ours, *filter(None, entered.values())], rounds=4 if quick else 12)
    rows = [figure(title, ours.best * 1e3, "ms")]
    for entrant in filter(None, entered.values()):
        rows.append(times_faster(title, entrant.name, ours.best * 1e3, entrant.best * 1e3, "ms"))
    return rows


def measure_export(folder: Path, quick: bool) -> list[Row]:
    """Time `biella export` of the slider-crank in processes of its own, by the processor's time."""
    target = folder / "crank.fmu"
    commands = {
        "import": ["-c", "import biella"],
        "export": ["-m", "biella", "export", str(SLIDER_CRANK), "-o", str(target)],
    }
    best = dict.fromkeys(commands, math.inf)
    for _ in range(2 if quick else 10):
        for name, command in commands.items():
            before = os.times()
            subprocess.run([sys.executable, *command], check=True, capture_output=True)
            after = os.times()
            used = after.children_user + after.children_system
            used -= before.children_user + before.children_system
            best[name] = min(best[name], used)
    beyond = best["export"] - best["import"]
    return [
        within("export the slider-crank: processor time, all", best["export"], 1.0, "s"),
        figure("export the slider-crank: beyond `import biella`", beyond, "s"),
        figure("export the slider-crank: size", target.stat().st_size / 1024, "KiB"),
    ]


def main() -> None:
    """Run all and print the table."""
    arguments = parse_arguments("FMUs beside a bare C loop, libcosim, FMPy, CoFmuPy and PyFMI.")
    quick = arguments.quick
    rows: list[Row] = []
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="biella-benchmark-") as name:
        folder = Path(name)
        fmu = export_ring_fmu(folder)
        loop = build_loop(fmu, folder)
        peers = {package: Peer(package, arguments.peers_python, str(fmu)) for package in PRETTY}
        for package, peer in peers.items():
            state = peer.version or f"not installed: `{INSTALL[package]}`, or see --peers-python"
            say(f"{PRETTY[package]}: {state}")
        for count in COUNTS:
            say(name_ring(count))
            contest = hold_contest(count, fmu, loop, peers, quick)
            rows += judge(contest)
            notes.append(comment(contest))
        say("FMI 3.0 beside FMI 2.0")
        loops = {"2.0": loop, "3.0": build_loop(export_ring_fmu(folder, "3.0"), folder)}
        row, note = compare_versions(loops, quick)
        rows.append(row)
        notes.append(note)
        say("opening")
        rows += measure_opening(fmu, peers, quick)
        for peer in peers.values():
            peer.close()
        say("exporting")
        rows += measure_export(folder, quick)
    notes.append(
        "All last outputs are the same to the last bit. The FMU is one that biella exports:"
        " an integrator by Euler's method, 1 ms."
    )
    print_rows("FMUs, µs of a step: set + doStep + get", rows, notes)
    if arguments.json:
        write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
