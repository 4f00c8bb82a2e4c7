"""The firmware of this folder, built and running: on an emulated board, or as a process.

    with Board(folder) as board:  # the best kind that this machine can have
        ...                       # board.port is its serial port

Kinds of board:

- ``"simavr"``: avr-gcc and libsimavr, which counts each cycle and each bit of the line.
- ``"process"``: the same C, compiled for this machine.
- ``"qemu"``: avr-gcc and qemu-system-avr, a second opinion on arithmetic. Version 7.2 never wakes
  from sleep, its timer runs at half the speed, its line has no speed (long bursts overrun the
  chip), and a port opened again may lose the first frame.

On Debian: apt-get install gcc-avr avr-libc libsimavr-dev qemu-system-misc
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
AVR = ["avr-gcc", "-mmcu=atmega328p", "-DF_CPU=16000000UL", "-std=c99", "-O2"]
CC = os.environ.get("CC", "cc")
STRICT = ["-Wall", "-Wextra", "-Werror"]
QEMU = ["qemu-system-avr", "-M", "uno", "-nographic", "-monitor", "null", "-serial", "pty", "-bios"]


def find_missing(kind: str) -> str:
    """What this machine lacks for that kind of board; empty if nothing."""
    needed = {"simavr": ["avr-gcc", CC], "qemu": ["avr-gcc", QEMU[0]], "process": [CC]}[kind]
    missing = [program for program in needed if not shutil.which(program)]
    if kind == "simavr" and not _links_simavr():
        missing.append("libsimavr-dev")
    return ", ".join(missing)


def choose_kind() -> str:
    """The best kind of board that this machine can have."""
    return "process" if find_missing("simavr") else "simavr"


def build(kind: str, folder: Path | str, **defines: object) -> Path:
    """Compiles the firmware for that kind of board, with macros such as ``TIMEOUT=500``."""
    program = Path(folder) / f"pid_{kind}"
    compiler = {"process": [CC, "-DHOST"], "qemu": [*AVR, "-DNO_SLEEP"], "simavr": AVR}[kind]
    macros = [f"-D{name}={value}" for name, value in defines.items()]
    _compile(*compiler, *STRICT, *macros, "-o", program, HERE / "pid_uno.c")
    return program


class Board:
    """A board that runs the firmware until it is closed.

    Parameters
    ----------
    folder
        For what is compiled.
    kind
        Of board; by default the best one that this machine can have.
    udp
        Of a process: `port` is the number of a UDP port of this machine.
    defines
        Macros of the firmware, such as ``TIMEOUT=500`` (ms).
    """

    def __init__(
        self, folder: Path | str, kind: str | None = None, udp: bool = False, **defines: object
    ) -> None:
        self.kind = kind or choose_kind()
        if missing := find_missing(self.kind):
            sys.exit(f"There is no {self.kind} board without {missing}: see the top of {__file__}.")
        firmware = build(self.kind, folder, **defines)
        command: list[object] = [firmware]
        if self.kind == "qemu":
            command = [*QEMU, firmware]
        elif self.kind == "simavr":
            emulator = Path(folder) / "emulator"
            _compile(CC, "-O2", *STRICT, "-o", emulator, HERE / "emulator.c", "-lsimavr")
            command = [emulator, firmware]
        if shutil.which("setpriv"):  # an emulator must not outlive a test that was killed
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "UDP": "0"} if udp else None,
        )
        self.port = self._read_port(r"^(\d+)$" if udp else r"(/dev/[\w/]+)")

    def _read_port(self, pattern: str) -> str:
        assert self.process.stdout
        said = ""
        for line in self.process.stdout:
            if found := re.search(pattern, line):
                return found[1]
            said += line
        code = self.process.wait()
        raise RuntimeError(f"The {self.kind} board ended ({code}) before it named its port: {said}")

    def close(self) -> str:
        """Ends the board; gives what it had to say."""
        if self.process.poll() is None:
            self.process.terminate()
        stdout = self.process.stdout
        assert stdout
        said = "" if stdout.closed else stdout.read()
        stdout.close()
        self.process.wait()
        return said

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _links_simavr() -> bool:
    """Whether the compiler finds the library and its headers."""
    source = "#include <simavr/sim_avr.h>\nint main(void) { return !avr_make_mcu_by_name; }"
    command = [CC, "-x", "c", "-", "-o", os.devnull, "-lsimavr"]
    try:
        return not subprocess.run(command, input=source, text=True, capture_output=True).returncode
    except FileNotFoundError:
        return False


def _compile(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stderr}")


if __name__ == "__main__":
    with Board(sys.argv[1] if len(sys.argv) > 1 else ".") as running:
        print(f"{running.kind}: {running.port}; end with Ctrl-C", flush=True)
        try:
            running.process.wait()
        except KeyboardInterrupt:
            print(running.close())
