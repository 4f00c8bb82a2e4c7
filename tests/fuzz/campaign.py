"""Fuzz until each target has had its hour of processor time, and keep the record.

    python tests/fuzz/campaign.py                    # all targets, one after the other
    python tests/fuzz/campaign.py fmi3 exchange      # these
    python tests/fuzz/campaign.py --minutes 10 plan  # another ten minutes at most
    python tests/fuzz/campaign.py --report           # the table of docs/testing.md

`campaigns.csv` has a row for each campaign: its day, the commit, processor time, inputs, and the
findings. Time adds up over campaigns until the sources that a target is built from change: its
digest is in the row, too. A campaign may be ended at any time by Ctrl-C or SIGTERM; what it has
done counts.
Needs what `tests/fuzz/run fuzz` needs.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RECORD = HERE / "campaigns.csv"

IN_C = ("plan", "fmi2", "fmi3", "exchange", "wire")
OF_FILES = ("rig", "urdf", "adams", "description", "formula", "result", "log", "studio")
TARGETS = IN_C + OF_FILES
AIM_MINUTES = 60.0
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Campaign:
    """One row of the record."""

    day: str
    commit: str
    target: str
    sources: str
    minutes: float
    inputs: int
    findings: int


def digest(target: str) -> str:
    """Return a digest of what `target` executes: the C sources, or the Python and C sources."""
    suffixes = {".c", ".h"} if target in IN_C else {".c", ".h", ".py"}
    summed = hashlib.sha256()
    for folder in ("blocks", "scheduler", "fmu"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                summed.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return summed.hexdigest()[:12]


def read() -> list[Campaign]:
    """Return the campaigns on record."""
    if not RECORD.exists():
        return []
    with RECORD.open(newline="") as file:
        return [
            Campaign(
                row["day"], row["commit"], row["target"], row["sources"],
                float(row["minutes"]), int(row["inputs"]), int(row["findings"]),
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


def add(campaign: Campaign) -> None:
    """Append `campaign` to the record."""
    fresh = not RECORD.exists()
    with RECORD.open("a", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Campaign)], lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerow(asdict(campaign))


def processor_seconds(session: int) -> float:
    """Return the processor time of the fuzzers in `session`, without that of the compiler."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:  # the process has ended
            continue
        values = rest.split()
        # Fork mode starts its processes by a shell. What an ended process used counts as that of
        # its parent's children.
        if int(values[3]) == session and re.search(r"\((fuzz_|sh$|python)", name):
            total += sum(int(value) for value in values[11:15])
    return total / TICKS_PER_SECOND


def inputs(log: str) -> int:
    """Return how many inputs a log of libFuzzer or Atheris reports."""
    counts = [int(found) for found in re.findall(r"^#(\d+)[:\t ]", log, re.MULTILINE)]
    return max(counts, default=0)


def run(target: str, minutes: float, work: Path) -> Campaign:
    """Fuzz `target` for so many minutes of processor time, or until a finding or Ctrl-C."""
    work.mkdir(parents=True, exist_ok=True)
    log = work / f"{target}.log"
    known = set(findings(target, work))
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.strip()
    sources = digest(target)
    used = 0.0
    with log.open("wb") as output:
        process = subprocess.Popen(
            [HERE / "run", "fuzz", "1000000", target],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "FUZZ_WORK": str(work)},
            start_new_session=True,
        )
        # Linux schedules sessions against each other by a niceness of their own.
        with suppress(OSError):
            Path(f"/proc/{process.pid}/autogroup").write_text(str(os.nice(0)))
        try:
            while process.poll() is None and used < minutes * 60:
                time.sleep(2.0)
                used = max(used, processor_seconds(process.pid))
                print(f"\r{target}: {used / 60:.1f} of {minutes:.1f} min ", end="", flush=True)
        except KeyboardInterrupt:
            minutes = 0.0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
                try:
                    process.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait(timeout=30)
    text = log.read_text(errors="replace")
    new = sorted(set(findings(target, work)) - known)
    print(f"\r{target}: {used / 60:.1f} min, {inputs(text)} inputs, {len(new)} findings")
    for path in new:
        print(f"  {path}")
    if used == 0.0:
        print(text[-2000:], file=sys.stderr)
    day = date.today().isoformat()
    campaign = Campaign(day, commit, target, sources, round(used / 60, 1), inputs(text), len(new))
    if used:
        add(campaign)
    if minutes == 0.0:
        raise KeyboardInterrupt
    return campaign


def findings(target: str, work: Path) -> list[Path]:
    """Return the inputs that libFuzzer has kept, but for those that are only slow."""
    return [
        path
        for path in work.glob(f"{target}-*")
        if not path.name.startswith((f"{target}-timeout-", f"{target}-slow-"))
    ]


def report() -> None:
    """Print the record, one row for each target."""
    print("| target | processor time | of it on these sources | inputs | findings |")
    print("|---|---|---|---|---|")
    campaigns = read()
    for target in TARGETS:
        own = [c for c in campaigns if c.target == target]
        current = digest(target)
        now = sum(c.minutes for c in own if c.sources == current)
        total = sum(c.minutes for c in own)
        found = sum(c.findings for c in own)
        count = sum(c.inputs for c in own)
        print(f"| `{target}` | {total:.0f} min | {now:.0f} min | {count:,} | {found} |")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float, help="so many more, even beyond the hour")
    parser.add_argument("--report", action="store_true", help="print the record as a table")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.targets) - set(TARGETS))
    if unknown:
        parser.error(f"unknown target {', '.join(unknown)}; targets: {', '.join(TARGETS)}")
    if arguments.report:
        report()
        return 0
    # Also in the background of a script, where Ctrl-C is ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    work = Path(os.environ.get("FUZZ_WORK", Path(tempfile.gettempdir()) / "biella-fuzz"))
    failed = False
    for target in arguments.targets or TARGETS:
        current = digest(target)
        done = sum(c.minutes for c in read() if c.target == target and c.sources == current)
        left = arguments.minutes if arguments.minutes is not None else AIM_MINUTES - done
        if left <= 0:
            continue
        try:
            failed |= run(target, left, work).findings > 0
        except KeyboardInterrupt:
            return 130
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
