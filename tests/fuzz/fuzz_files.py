"""Fuzz what biella reads besides plans and frames: files, texts and messages that others wrote.

    python tests/fuzz/fuzz_files.py seeds DIR          # one file for each format and each seed
    tests/fuzz/run fuzz 3600 rig                       # or urdf, adams, description, formula,
                                                       # result, log, studio

Each target reads damaged input to the end of what a user would do with it. Whatever the bytes are,
the outcome is a result or a `BiellaError`; any other exception, a crash or a hang is a finding.
`mutate` damages a seed in ways that random bytes rarely find; the default tests use it, and
libFuzzer (through Atheris) in long campaigns.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import importlib
import io
import itertools
import json
import os
import random
import re
import secrets
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biella.scheduler.realtime._live import LiveRun

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


def fuzz_adams(data: bytes) -> None:
    """Build a mechanism from an Adams View command file, and compile it as a block."""
    from biella import Diagram
    from biella.blocks.multibody import System

    system = System.from_adams(_write("model.cmd", data))
    d = Diagram("model", step=1e-3, solver="rk4")
    d.add(system.block(), "model")
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


STUDIO_KEY = bytes(range(32))
_UNEXPECTED = re.compile(r"\w*(Error|Exception|Interrupt|Exit): ")


def _draw_zeros(nbytes: int | None = None) -> bytes:
    return bytes(nbytes or 0)


class Studio:
    """Two servers of the studio on one run: the token allows everything, or a key is needed.

    Messages are given to them as if a page had sent them.
    """

    def __init__(self) -> None:
        from biella.studio._access import Access, Rights
        from biella.studio._attached import AttachedSession
        from biella.studio._server import StudioServer

        self.session = AttachedSession(self._start(), _first_loop())
        guarded = Access(guarded=True, key=STUDIO_KEY)
        self.servers = [StudioServer(self.session, 0, access) for access in (Access(), guarded)]
        Rights.draw = staticmethod(_draw_zeros)  # so that a seed has a valid proof
        atexit.register(self.close)

    def _start(self) -> LiveRun:
        """Start a run that has some rows, and is paused."""
        from biella.scheduler.realtime._start import start_run

        run = start_run(_first_loop(), {"record": ["*"]}, {}, history=1 << 20, paused=True)
        run.step(50)
        while run.running and not run.history.end:
            time.sleep(1e-3)
        return run

    def talk(self, lines: list[bytes]) -> bool:
        """Send messages to a new page of each server; return whether one did all of them."""
        assert self.session.run is not None
        if not self.session.run.running:
            self.session._take_run(self._start(), {})
        self.session.run.pause()
        return asyncio.run(self._talk(lines))

    async def _talk(self, lines: list[bytes]) -> bool:
        from biella.studio._access import Rights
        from biella.studio._pages import Page

        refused = []
        for server in self.servers:
            page, rights = Page(self.session), Rights(server.access)
            answers = []
            for line in lines[:100]:
                text = await server._answer(page, rights, line, "192.0.2.1")
                answers.append(json.loads(text))
                if sum(map(len, page.take())) > 1 << 24:
                    raise AssertionError(f"after {line!r} a page is sent more than 16 MB")
            refused.append([answer["error"] for answer in answers if answer["ok"] is not True])
        for error in itertools.chain(*refused):
            if not error or len(error) > 100_000 or _UNEXPECTED.match(error):
                raise AssertionError(f"a message is answered with {error[:1000]!r}")
        return not all(refused)

    def close(self) -> None:
        from biella.studio._access import Rights

        atexit.unregister(self.close)
        Rights.draw = staticmethod(secrets.token_bytes)
        for server in self.servers:
            server.close()
        if self.session.run is not None:
            self.session.run.stop()


@cache
def _studio() -> Studio:
    return Studio()


def close_studio() -> None:
    """End the run and the servers of the target, which has replaced how nonces are drawn."""
    if _studio.cache_info().currsize:
        _studio().close()
        _studio.cache_clear()


def fuzz_studio(data: bytes) -> None:
    """Send messages, one in each line, to pages of the studio; take what these are sent."""
    from biella.errors import BiellaError

    if not _studio().talk(data.split(b"\n")):
        raise BiellaError("a message was refused.")


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
        "adams": [
            path.read_bytes()
            for path in sorted((HERE.parent / "blocks/multibody/adams").glob("*.cmd"))
        ],
        "description": descriptions,
        "formula": [
            b"where(u > 0.5, sin(3*u) + 1, -u**2)",
            b"max(abs(u), 0.1) * (1 if t < 2 else 0) - floor(u / 3)",
            b"sqrt(abs(u)) + exp(-t) * atan2(u, 1) + u % 2",
        ],
        "result": [result.read_bytes()],
        "log": [log.read_bytes()],
        "studio": _make_conversations(),
    }


def _make_conversations() -> list[bytes]:
    """Return what pages say: every request of the protocol, also those that need the key."""

    def code(key: bytes, *parts: bytes) -> bytes:
        return hashlib.blake2s(b"".join(parts), key=key).digest()

    def join(requests: list[dict[str, Any]]) -> bytes:
        return "\n".join(json.dumps({"id": k} | r) for k, r in enumerate(requests)).encode()

    looking: list[dict[str, Any]] = [
        {"do": "subscribe", "scope": 1, "signals": ["p.y", "speed.y"], "rate": 200.0},
        {"do": "window", "scope": 1, "t0": 0.01, "t1": 0.04, "bins": 100},
        {"do": "watch", "on": True},
        {"do": "unsubscribe", "scope": 1},
    ]
    changing: list[dict[str, Any]] = [
        {"do": "set", "path": "p.k", "value": 2.0},
        {"do": "override", "path": "p.y", "value": [1.0]},
        {"do": "release", "path": "p.y"},
        {"do": "step", "ticks": 10},
        {"do": "factor", "value": 0.5},
        *({"do": name} for name in ("run", "pause")),
    ]
    session = code(STUDIO_KEY, b"biella studio 1\n", bytes(32))  # both nonces are zero
    keyed: list[dict[str, Any]] = [
        {"do": "challenge", "nonce": "00" * 16},
        {"do": "prove", "tag": code(session, b"biella page").hex()},
    ]
    for number, request in enumerate(changing, 1):
        text = json.dumps(request)
        tag = code(session, number.to_bytes(8, "little"), text.encode()).hex()
        keyed.append({"do": "keyed", "number": number, "text": text, "tag": tag})
    return [join(looking), join(changing), join(keyed), join(looking[:3] + changing)]


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
        for module in ("multibody.urdf._build", "multibody.adams._build", "core.formula._formula"):
            importlib.import_module(f"biella.blocks.{module}")
        importlib.import_module("biella.fmu.importer._interface")
        for module in ("_server", "_session", "_pages", "_access"):
            importlib.import_module(f"biella.studio.{module}")

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
