"""What a tick pays for a device: ten values each way, beside the bare system calls.

    python benchmarks/devices.py [--quick] [--json FILE]

UDP on loopback; serial and text on a pty. Ours is `bl_device_take` + `bl_device_give`: reading all
that has come, checks, scaling, limits, and sending. The peer reads and writes as many bytes and
looks at none of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Row, at_most, parse_arguments, print_rows, write_json

import biella
from biella.scheduler.engine.build import CFLAGS

PACKAGE = Path(biella.__file__).parent


def build(folder: Path) -> Path:
    """Compile the program with the drivers and all that they need."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None or sys.platform == "win32":
        sys.exit("This benchmark needs a C compiler and POSIX.")
    wire = [
        "blake2s",
        "frame",
        "hello",
        "link",
        "outbox",
        "port",
        "serial",
        "sockets",
        "text",
        "udp",
    ]
    drivers = [
        "devices/device.c",
        "devices/wire/safe_line.c",
        *(f"devices/wire/{name}.c" for name in wire),
        "realtime/loop/clock.c",
    ]
    sources = [PACKAGE / "scheduler" / name for name in drivers]
    program = folder / "devices"
    here = Path(__file__).parent / "workloads" / "devices_c.c"
    flags = [*CFLAGS, f"-I{PACKAGE}", "-pthread", "-lm"]
    subprocess.run([*compiler.split(), here, *sources, *flags, "-o", program], check=True)
    return program


def measure(ticks: int) -> list[Row]:
    """Return a row for each driver."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        told = subprocess.run([program, str(ticks)], capture_output=True, text=True)
    if told.returncode != 0:
        sys.exit(f"The benchmark of devices failed: {told.stderr.strip()}.")
    rows = []
    for line in told.stdout.splitlines():
        name, ours, bare = line.split()
        work = f"{name}: a tick's receive and send, 10 values"
        rows.append(
            at_most(work, "bare read and write", float(ours) / 1e3, float(bare) / 1e3, "µs")
        )
    return rows


def main() -> None:
    """Measure and print."""
    options = parse_arguments(__doc__.splitlines()[0])
    rows = measure(2000 if options.quick else 20000)
    print_rows("Devices", rows)
    if options.json:
        write_json(options.json, rows)


if __name__ == "__main__":
    main()
