"""Fuzz what biella reads besides plans and frames: files and texts that others wrote.

    python tests/fuzz/fuzz_files.py seeds DIR          # one file for each format and each seed
    tests/fuzz/run fuzz 3600 rig                       # or urdf, description, formula, result, log

Each target reads damaged input to the end of what a user would do with it. Whatever the bytes are,
the outcome is a result or a `BiellaError`; any other exception, a crash or a hang is a finding.
`mutate` damages a seed in ways that random bytes rarely find; the default tests use it, and
libFuzzer (through Atheris) in long campaigns.
"""

from __future__ import annotations

import importlib
import io
import os
import random
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"

TOKENS = [
    b"", b"0", b"-1", b"1e308", b"nan", b"inf", b"-0.0", b"18446744073709551616", b"true", b"\x00",
    b'""', b"[]", b"{}", b"\xff\xfe", "é".encode(), b"../../etc/passwd",
    b"&amp;", b"<x/>", b"'", b"\n",
]  # fmt: skip
"""What replaces a word of a text."""


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return `data` with one to four changes: bits, words, lines, pieces doubled or cut."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del changed[at : at + rng.choice((1, 2, 8, 64))]
        elif kind == 2:
            changed[at:at] = changed[at : at + rng.choice((1, 8, 64, 512))]
        elif kind == 3:
            other = rng.randrange(len(changed) + 1)
            changed[at:at] = changed[other : other + rng.choice((4, 32, 256))]
        elif kind == 4:
            del changed[at:]
        else:  # a word, or a value between quotes
            start = at
            while start > 0 and chr(changed[start - 1]) not in " \n\"'=,<>()[]":
                start -= 1
            end = at
            while end < len(changed) and chr(changed[end]) not in " \n\"'=,<>()[]":
                end += 1
            changed[start:end] = rng.choice(TOKENS)
    return bytes(changed)


@cache
def _scratch() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="biella-fuzz-")
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def _write(name: str, data: bytes) -> Path:
    path = _scratch() / name
    path.write_bytes(data)
    return path


@cache
def _first_loop():
    """The diagram of the first example."""
    sys.path.insert(0, str(EXAMPLES))
    return importlib.import_module("01_first_loop").diagram()


def fuzz_rig(data: bytes) -> None:
    """Read a binding file and compare it with a diagram; no device is opened."""
    from biella.scheduler.binding._check import check_binding
    from biella.scheduler.binding._rig import read_binding

    report = check_binding(_first_loop(), read_binding(_write("rig.toml", data)))
    str(report)


def fuzz_urdf(data: bytes) -> None:
    """Build a mechanism from a URDF file, and compile it as a block."""
    from biella import Diagram
    from biella.blocks.multibody import System

    system = System.from_urdf(_write("robot.urdf", data))
    d = Diagram("robot", step=1e-3, solver="rk4")
    d.add(system.block(), "robot")
    d.compile()


def fuzz_description(data: bytes) -> None:
    """Read the description of an FMU and choose what a block of it shows."""
    from biella.fmu.importer._archive import read_archive
    from biella.fmu.importer._interface import choose_interface, read_description

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("modelDescription.xml", data)
        file.writestr("binaries/linux64/model.so", b"\x7fELF")
    description = read_description(read_archive(_write("model.fmu", archive.getvalue())))
    choose_interface(description, None, None, {})


def fuzz_formula(data: bytes) -> None:
    """Compile a formula and evaluate it for three ticks."""
    from biella import Diagram, simulate
    from biella.blocks import Expression, Ramp

    d = Diagram("formula", step=0.1)
    x = d.add(Ramp(slope=1.0), "x")
    d.add(Expression(data.decode("utf-8", "surrogateescape"), inputs=["u"]), "formula", u=x)
    simulate(d, until=0.3, progress=False, error_estimate=False)


def fuzz_result(data: bytes) -> None:
    """Open a result file and read every signal, event and note of it."""
    from biella import Result

    result = Result.from_hdf5(_write("result.h5", data))
    for name in result:
        result[name]
    str(result)
    list(result.events)


def fuzz_log(data: bytes) -> None:
    """Open the log of a real-time run and replay it."""
    from biella import replay

    replay(_write("log.h5", data))


TARGETS: dict[str, Callable[[bytes], None]] = {
    name.removeprefix("fuzz_"): function
    for name, function in list(globals().items())
    if name.startswith("fuzz_")
}


def check(target: str, data: bytes) -> str:
    """Run a target; returns "read" or "refused", and raises what is a finding."""
    from biella.errors import BiellaError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[target](data)
        except BiellaError as error:
            message = str(error)
            if not message or len(message) > 100_000:
                raise AssertionError(f"a message of {len(message)} characters") from error
            return "refused"
    return "read"


def make_seeds() -> dict[str, list[bytes]]:
    """Return valid input for every target."""
    from biella import Diagram, run_realtime, simulate
    from biella.blocks import Gain, Integrator, Relay, Sine

    def loop(name: str) -> Diagram:
        d = Diagram(name, step=1e-3, solver="rk4")
        source = d.add(Sine(amplitude=1.0, frequency=20.0), "source")
        relay = d.add(Relay(on=0.2, off=-0.2), "relay", u=source)
        d.add(Integrator(), "speed", u=d.add(Gain(2.0), "gain", u=relay))
        return d

    result, log = _scratch() / "seed.h5", _scratch() / "seed_log.h5"
    simulate(loop("loop"), until=0.05, out=result, progress=False, error_estimate=False)
    run_realtime(loop("live"), until=0.05, out=log)
    fmu = _scratch() / "seed.fmu"
    descriptions = []
    for version in ("2.0", "3.0"):
        d = loop("loop")
        d.output("y", "speed")
        d.export_fmu(fmu, version=version)
        with zipfile.ZipFile(fmu) as file:
            descriptions.append(file.read("modelDescription.xml"))
    return {
        "rig": [path.read_bytes() for path in sorted((EXAMPLES / "rigs").glob("*.toml"))],
        "urdf": [(HERE.parent / "blocks/multibody/urdf/arm.urdf").read_bytes()],
        "description": descriptions,
        "formula": [
            b"where(u > 0.5, sin(3*u) + 1, -u**2)",
            b"max(abs(u), 0.1) * (1 if t < 2 else 0) - floor(u / 3)",
            b"sqrt(abs(u)) + exp(-t) * atan2(u, 1) + u % 2",
        ],
        "result": [result.read_bytes()],
        "log": [log.read_bytes()],
    }


def main() -> None:
    command, *arguments = sys.argv[1:]
    if command == "seeds":
        for target, several in make_seeds().items():
            folder = Path(arguments[0]) / target
            folder.mkdir(parents=True, exist_ok=True)
            for index, data in enumerate(several):
                (folder / f"seed-{index}").write_bytes(data)
        return
    import atheris

    target = command
    with atheris.instrument_imports(include=["biella"]):
        for module in ("binding._check", "results._result", "realtime.log._replay"):
            importlib.import_module(f"biella.scheduler.{module}")
        for module in ("multibody.urdf._build", "core.formula._formula"):
            importlib.import_module(f"biella.blocks.{module}")
        importlib.import_module("biella.fmu.importer._interface")

    def one(data: bytes) -> None:
        check(target, data)

    def custom(data: bytes, limit: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return mutate(data, rng)[:limit]
        return atheris.Mutate(data, limit)

    atheris.Setup([sys.argv[0], *arguments], one, custom_mutator=custom)
    atheris.Fuzz()


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    main()
