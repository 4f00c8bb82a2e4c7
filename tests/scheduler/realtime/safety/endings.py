"""How a real-time run can end, and what its actuators see: real processes, sockets and terminals.

``python tests/scheduler/realtime/safety/endings.py --write`` runs all endings and writes the table
of docs/explanation/endings.md; ``--only NAME`` runs one of them. `test_endings.py` asserts the
outcomes.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import json
import math
import os
import pty
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import tty
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
PAGE = ROOT / "docs" / "explanation" / "endings.md"
sys.path.insert(0, str(HERE))
from udp_rig import LIVE, SAFE, Board  # type: ignore[import-not-found] # noqa: E402

_HEAD = struct.Struct("<BBBBHHII")
_STOPPED = 3.0  # s
_LIMIT = 60.0  # s, against hanging


class SerialBoard:
    """The other end of a serial line, a pseudo-terminal; records and echoes like `Board`."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)
        self.seen: list[tuple[float, float, int]] = []
        self._sent = 0
        self._ended = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        rest = b""
        while not self._ended:
            *frames, rest = (rest + os.read(self.master, 4096)).split(b"\0")
            for coded in frames:
                data = _uncobs(coded)
                if len(data) < 20 or zlib.crc32(data) != 0x2144DF1C:  # with its own CRC
                    continue
                head = _HEAD.unpack_from(data)
                self.seen.append((time.monotonic(), struct.unpack_from("<f", data, 16)[0], head[1]))
                self._sent += 1
                body = _HEAD.pack(0xB1, head[1] & 2, 1, 0, head[4], 0, self._sent, head[6])
                body += struct.pack("<f", 0.0)
                os.write(self.master, _cobs(body + struct.pack("<I", zlib.crc32(body))) + b"\0")

    @property
    def last(self) -> float:
        return self.seen[-1][1] if self.seen else math.nan

    def close(self) -> None:
        self._ended = True
        os.write(self.slave, b"\0")
        self._thread.join(60)
        os.close(self.slave)
        os.close(self.master)


def _cobs(data: bytes) -> bytes:
    return b"".join(bytes([len(part) + 1]) + part for part in data.split(b"\0"))


def _uncobs(data: bytes) -> bytes:
    out, at = [], 0
    while at < len(data):
        out.append(data[at + 1 : at + data[at]])
        at += data[at]
    return b"\0".join(out)


@cache
def _compile_board() -> Path:
    compiler = shutil.which("cc")
    assert compiler is not None, "this needs a C compiler"
    folder = tempfile.TemporaryDirectory(prefix="board-")
    atexit.register(folder.cleanup)
    program = Path(folder.name, "board")
    include = f"-I{ROOT / 'examples' / 'firmware'}"
    subprocess.run(
        [compiler, "-O1", include, HERE / "board.c", "-o", program], check=True, timeout=300
    )
    return program


class Firmware:
    """board.c with examples/firmware/biella_device.h: `seen` has time and whether it is safe."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([_compile_board()], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.seen: list[tuple[float, bool]] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            when, is_safe = line.split()
            self.seen.append((float(when), is_safe == "1"))

    @property
    def is_safe(self) -> bool:
        return bool(self.seen) and self.seen[-1][1]

    def close(self) -> None:
        self.process.kill()
        self.process.wait(60)
        self._thread.join(60)
        assert self.process.stdout is not None
        self.process.stdout.close()


# In the process of the run.


class Fault:
    """What the Python block of the run does from now on."""

    kind = ""


def make_diagram(fault: Fault, *, with_python: bool) -> Any:
    """Return a constant that goes to three actuators, through a Python block."""
    from biella import Diagram
    from biella.blocks import Gain, Port, PythonBlock, Sine

    class Faulty(PythonBlock):
        def __init__(self) -> None:
            super().__init__(inputs=[Port("u")], outputs=[Port("y")])

        def output(self, t: float, x: Any, u: Any) -> Any:
            if fault.kind == "raise":
                raise RuntimeError("a mistake")
            if fault.kind == "slow":
                time.sleep(0.2)
            while fault.kind in ("hang", "spin"):
                time.sleep(0.01 if fault.kind == "hang" else 0.0)
            return {"nan": math.nan, "limit": 100.0}.get(fault.kind, u)

    d = Diagram("endings", step=2e-3)
    last: Any = d.add(Sine(frequency=1e-9, phase=math.pi / 2, amplitude=LIVE), name="source")
    if with_python:
        faulty = d.add(Faulty(), name="faulty")
        d.connect(last, faulty)
        last = faulty
    for name in ("udp", "serial", "board"):
        d.connect(last, d.add(Gain(1.0), name=f"to_{name}"))
    return d


def make_binding(udp: int, serial: str, board: int, timeout: float) -> dict[str, Any]:
    """Return the binding of the three actuators."""
    common = {
        "send": {"u": {"limits": [-10, 10], "safe": SAFE}},
        "receive": {"y": {"limits": [-10, 10]}},
    }
    devices = {
        "udp": {"driver": "udp", "host": "127.0.0.1", "port": udp, "timeout": timeout},
        "serial": {"driver": "serial", "port": serial, "timeout": 600.0},
        "board": {"driver": "udp", "host": "127.0.0.1", "port": board, "timeout": 600.0},
    }
    return {
        "devices": {name: {**device, **common} for name, device in devices.items()},
        "blocks": {f"to_{name}": {"device": name} for name in devices},
    }


def run_child(name: str, setup: dict[str, Any]) -> None:
    """Start the run of an ending and bring that ending about, as far as it comes from inside."""
    from biella import run_realtime

    ending, fault, folder = ENDINGS[name], Fault(), Path(setup["folder"])
    rig = make_binding(setup["udp"], setup["serial"], setup["board"], ending.timeout)
    diagram = make_diagram(fault, with_python=ending.with_python)
    run = run_realtime(diagram, bind=rig, guard=setup["guard"], **ending.options)
    globals()["run"] = run  # for the prompt
    if ending.inside is None:
        return
    while not (folder / "now").exists():
        time.sleep(1e-3)
    (folder / "cause").write_text(repr(time.monotonic()))
    ending.inside(run, fault)


def _do(kind: str) -> Callable[[Any, Fault], None]:
    def act(run: Any, fault: Fault) -> None:
        fault.kind = kind
        run.wait()

    return act


def _exhaust_memory(run: Any, fault: Fault) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
    taken = []
    while True:
        taken.append(bytearray(1 << 20))


def _wait(run: Any, fault: Fault) -> None:
    run.wait()


def _sleep_in_c(run: Any, fault: Fault) -> None:
    ctypes.PyDLL(None).sleep(4)  # keeps the interpreter
    run.wait()


# In the process that watches.


def _send(number: int) -> Callable[[int], None]:
    return lambda process: os.kill(process, number)


def _stop_and_continue(process: int) -> None:
    os.kill(process, signal.SIGSTOP)
    time.sleep(_STOPPED)


@dataclass(frozen=True)
class Ending:
    """One ending.

    Attributes
    ----------
    text
        For the table.
    inside, outside
        What the process of the run does, and what is done to it: the cause.
    safe, guarded
        Whether the last value of an actuator without a watchdog is the safe one, without and with
        the guard; None: that is not tried.
    """

    text: str
    inside: Callable[[Any, Fault], object] | None = _wait
    outside: Callable[[int], None] | None = None
    safe: bool = True
    guarded: bool | None = None
    options: dict[str, Any] = field(default_factory=dict)
    timeout: float = 600.0
    with_python: bool = True
    prompt: bool = False
    silent: bool = False


ENDINGS = {
    "normal": Ending("`run.stop()`, or the end time", lambda run, fault: run.stop()),
    "exception": Ending("exception in a block", _do("raise")),
    "nan": Ending("a value that is not finite", _do("nan")),
    "limit": Ending("a value outside its limits", _do("limit")),
    # Short stalls of a busy machine are tolerated; the tick that takes 0.2 s is not.
    "overrun": Ending(
        'overrun of 0.2 s with `overrun="stop"`',
        _do("slow"),
        options={"overrun": "stop", "max_consecutive_overruns": 50},
    ),
    "loss": Ending("loss of another device (timeout 0.3 s)", timeout=0.3, silent=True),
    "end": Ending("end of the program", lambda run, fault: sys.exit()),
    "memory": Ending("`MemoryError`", _exhaust_memory),
    "sigterm": Ending("SIGTERM", outside=_send(signal.SIGTERM)),
    "sighup": Ending("SIGHUP", outside=_send(signal.SIGHUP)),
    "sigint": Ending("Ctrl-C in `wait()`", outside=_send(signal.SIGINT)),
    "prompt": Ending("Ctrl-C at a prompt", None, _send(signal.SIGINT), prompt=True),
    "sigquit": Ending("SIGQUIT", outside=_send(signal.SIGQUIT)),
    "sigxcpu": Ending("SIGXCPU", outside=_send(signal.SIGXCPU)),
    "busy": Ending(
        "SIGTERM while the main thread is in C and keeps the interpreter",
        _sleep_in_c,
        _send(signal.SIGTERM),
        with_python=False,
    ),
    "gil": Ending("C code that keeps the interpreter, Python block in the tick", _sleep_in_c),
    "hang": Ending("Python block that does not return", _do("hang")),
    "spin": Ending("Python block in an endless loop", _do("spin")),
    "hang_int": Ending(
        "the same, and Ctrl-C",
        _do("hang"),
        _send(signal.SIGINT),
        options={"watchdog": 0, "max_stall": 0},
    ),
    "stop_skip": Ending(
        f"SIGSTOP for {_STOPPED:g} s; time from SIGCONT on", outside=_stop_and_continue
    ),
    "stop_catch_up": Ending(
        "the same with `catch_up`", outside=_stop_and_continue, options={"overrun": "catch_up"}
    ),
    "stopped": Ending(
        "SIGSTOP without end", outside=_send(signal.SIGSTOP), safe=False, guarded=True
    ),
    "fault": Ending("segmentation fault", lambda *_: ctypes.string_at(0), safe=False, guarded=True),
    "exit": Ending("`os._exit`", lambda *_: os._exit(1), safe=False, guarded=True),
    "kill": Ending(
        "SIGKILL, also by the kernel for lack of memory",
        outside=_send(signal.SIGKILL),
        safe=False,
        guarded=True,
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What the actuators saw: the last value, and the time in s from the cause to the first of the
    last safe values; NaN if that is not safe. `after`: live values after the cause.
    """

    udp: float
    serial: float
    board: float
    after: int

    @property
    def is_safe(self) -> bool:
        """Whether actuators without a watchdog are safe."""
        return not (math.isnan(self.udp) or math.isnan(self.serial))


def observe(name: str, *, guard: bool) -> Outcome:
    """Run one ending."""
    ending = ENDINGS[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        boards = Board(), SerialBoard(), Firmware()
        try:
            process, terminal = _start(name, ending, folder, boards, guard)
            try:
                return _bring_about(ending, folder, boards, process)
            finally:
                if terminal >= 0:
                    os.close(terminal)
                process.kill()
                process.wait(60)
        finally:
            for board in boards:
                board.close()


def _start(name: str, ending: Ending, folder: Path, boards: Any, guard: bool) -> Any:
    udp, serial, firmware = boards
    setup = {
        "udp": udp.port, "serial": serial.path, "board": firmware.port,
        "folder": str(folder), "guard": guard,
    }  # fmt: skip
    flags = ["-q", "-i"] if ending.prompt else []
    command = [sys.executable, *flags, __file__, "--child", name, json.dumps(setup)]
    environment = {
        **os.environ, "PYTHON_BASIC_REPL": "1", "XDG_RUNTIME_DIR": str(folder),
        "PYTHONFAULTHANDLER": "",
    }  # fmt: skip
    terminal, inner = pty.openpty() if ending.prompt else (-1, subprocess.DEVNULL)
    output = inner if ending.prompt else subprocess.DEVNULL
    process = subprocess.Popen(
        command, env=environment, stdin=inner, stdout=output, stderr=output, cwd=folder
    )
    if ending.prompt:
        os.close(inner)
    return process, terminal


def _bring_about(
    ending: Ending, folder: Path, boards: Any, process: subprocess.Popen[bytes]
) -> Outcome:
    udp, serial, firmware = boards
    near = 1e-3

    def is_live() -> bool:
        return (
            abs(udp.last - LIVE) < near and abs(serial.last - LIVE) < near
        ) and not firmware.is_safe

    _wait_until(is_live, process)
    time.sleep(0.1)
    (folder / "now").touch()
    if ending.inside is not None:
        _wait_until(lambda: (folder / "cause").exists() and (folder / "cause").stat().st_size > 0)
        cause = float((folder / "cause").read_text())
    if ending.silent:
        udp.answers = False
        cause = time.monotonic()
    if ending.outside is not None:
        time.sleep(0.1)
        cause = time.monotonic()
        ending.outside(process.pid)
        if ending.outside is _stop_and_continue:
            cause = time.monotonic()
            os.kill(process.pid, signal.SIGCONT)
    limit = time.monotonic() + (8.0 if ending.safe else 2.5)
    while time.monotonic() < limit and not (udp.last == serial.last == SAFE and firmware.is_safe):
        time.sleep(1e-3)
    time.sleep(0.3)  # live values that follow safe ones would be seen
    after = sum(when > cause and abs(value - LIVE) < near for when, value, _ in udp.seen)
    return Outcome(
        _find_delay([(when, value == SAFE) for when, value, _ in udp.seen], cause),
        _find_delay([(when, value == SAFE) for when, value, _ in serial.seen], cause),
        _find_delay(list(firmware.seen), cause),
        after,
    )


def _find_delay(seen: list[tuple[float, bool]], cause: float) -> float:
    """Return when the safe values begin with which it ends; NaN if it does not end with any."""
    if not seen or not seen[-1][1]:
        return math.nan
    first = len(seen)
    while first > 0 and seen[first - 1][1]:
        first -= 1
    return max(0.0, seen[first][0] - cause)


def _wait_until(condition: Callable[[], bool], process: Any = None) -> None:
    limit = time.monotonic() + _LIMIT
    while not condition():
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"the run did not begin: exit code {process.returncode}")
        if time.monotonic() > limit:
            raise TimeoutError("it did not happen")
        time.sleep(1e-3)


# The table.


def _show(delay: float) -> str:
    return "**live**" if math.isnan(delay) else f"safe, {1e3 * delay:.0f} ms"


def tabulate(names: list[str]) -> str:
    """Run endings and return their rows."""
    lines = [
        "| ending | UDP | serial | board with a watchdog | UDP, guarded | serial, guarded |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        ending = ENDINGS[name]
        plain = observe(name, guard=False)
        cells = [_show(plain.udp), _show(plain.serial), _show(plain.board)]
        if ending.guarded is not None:
            kept = observe(name, guard=True)
            cells += [_show(kept.udp), _show(kept.serial)]
        else:
            cells += ["as without", "as without"]
        lines.append(f"| {ending.text} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=ENDINGS, action="append")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.child:
        run_child(options.child[0], json.loads(options.child[1]))
        return
    table = tabulate(options.only or list(ENDINGS))
    if options.write:
        text = PAGE.read_text()
        before, _, rest = text.partition("<!-- table -->\n")
        after = rest.partition("<!-- end -->")[2]
        PAGE.write_text(f"{before}<!-- table -->\n\n{table}\n\n<!-- end -->{after}")


if __name__ == "__main__":
    main()
