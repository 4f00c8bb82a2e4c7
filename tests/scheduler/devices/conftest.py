"""Devices on real lines, with the tests' own peer at the other end; runs tick by tick."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from biella.scheduler.engine import build
from biella.scheduler.engine._library import library

from .native import Device, engine
from .peer import Peer, SerialEnd, TcpEnd, UdpEnd, free_tcp_port
from .ticks import RunEnded, Ticks

PACKAGE = Path(build.__file__).parents[2]
Opened = tuple[Device, Any, Peer]


def open_serial(end: SerialEnd | str, ins: int, outs: int, *, flags: int = 0, text: bool = False,
                baud: int = 115200) -> tuple[int | None, str]:  # fmt: skip
    """Return a device's handle, or the message why there is none."""
    message = ctypes.create_string_buffer(300)
    path = end if isinstance(end, str) else str(end.path)
    opener = engine().bl_text_open if text else engine().bl_serial_open
    handle = opener(b"board", path.encode(), baud, ins, outs, flags, message, 300)
    return handle, message.value.decode()


def open_udp(end: UdpEnd | None, ins: int, outs: int, *, flags: int = 0, host: str | None = None,
             port: int | None = None, bind: str = "", bind_port: int = 0
             ) -> tuple[int | None, str]:  # fmt: skip
    """Return a device's handle, or the message why there is none."""
    message = ctypes.create_string_buffer(300)
    host = host if host is not None else end.host if end else ""
    port = port if port is not None else end.port if end else 0
    handle = engine().bl_udp_open(
        b"board", host.encode(), port, bind.encode(), bind_port, ins, outs, flags, message, 300
    )
    if handle and end:
        end.to = engine().bl_udp_bound_port(handle)
    return handle, message.value.decode()


def open_tcp(ins: int, outs: int, *, flags: int = 0, host: str = "", port: int = 0, bind: str = "",
             bind_port: int = 0) -> tuple[int | None, str]:  # fmt: skip
    """Return a device's handle, or the message why there is none."""
    message = ctypes.create_string_buffer(300)
    handle = engine().bl_tcp_open(
        b"board", host.encode(), port, bind.encode(), bind_port, ins, outs, flags, message, 300
    )
    return handle, message.value.decode()


def dial(end: TcpEnd, ins: int, outs: int, *, flags: int = 0) -> tuple[int | None, str]:
    """Open a device that connects to `end`."""
    handle, message = open_tcp(ins, outs, flags=flags, host=end.host, port=end.port)
    if handle:
        end.accept()
    return handle, message


def await_call(end: TcpEnd, ins: int, outs: int, *, flags: int = 0) -> tuple[int | None, str]:
    """Open a device that `end` connects to."""
    port = free_tcp_port(end.host)
    handle, message = open_tcp(ins, outs, flags=flags, host=end.host, bind_port=port)
    if handle:
        end.connect(port)
    return handle, message


LINES: dict[str, tuple[Callable[[Any], Any], Callable[..., tuple[int | None, str]]]] = {
    "serial": (SerialEnd, open_serial),
    "udp": (lambda folder: UdpEnd(), open_udp),
    "tcp": (lambda folder: TcpEnd(), dial),
    "tcp, listening": (lambda folder: TcpEnd(), await_call),
}


@pytest.fixture(params=LINES)
def connect(request, tmp_path) -> Iterator[Callable[..., Opened]]:
    """A function that opens a device with so many values in and out, over each kind of line."""
    assert library()
    with ExitStack() as stack:

        def opened(ins=1, outs=1, *, flags=0, **options) -> Opened:
            make_end, open_line = LINES[request.param]
            end = make_end(tmp_path)
            stack.callback(end.close)
            counts = [n if isinstance(n, int) else len(n) for n in (ins, outs)]
            handle, message = open_line(end, *counts, flags=flags)
            assert handle, message
            return stack.enter_context(Device(handle, ins, outs, **options)), end, Peer()

        yield opened


@pytest.fixture
def ticks() -> Iterator[Any]:
    """Make `Ticks` of an open binding; all is closed after the test."""
    with ExitStack() as stack:

        def make(bound, **options):
            stack.enter_context(bound)
            made = Ticks(bound, **options)
            stack.callback(made.close)
            return made

        make.ended = RunEnded  # type: ignore[attr-defined]
        yield make


@pytest.fixture
def run_failing(tmp_path: Path, c_compiler: Any) -> Callable[[str, str, str], str]:
    """Run C after a source of the package in which a call of the system fails, and return what it
    prints. The call is a macro: `calloc(...) NULL`."""

    def run(source: str, call: str, code: str) -> str:
        hook, program = tmp_path / "hook.c", tmp_path / "hook"
        hook.write_text(
            f"#include <stdio.h>\n#include <stdlib.h>\n#include <sys/random.h>\n#define {call}\n"
            f'#include "{source}"\nint main(void) {{ {code} }}\n'
        )
        flags = ["-std=c11", "-D_GNU_SOURCE", f"-I{PACKAGE}"]
        flags += ["-no-pie", "-Wl,--unresolved-symbols=ignore-all"]  # of what is not called
        command = [*c_compiler.command, *flags, str(hook), "-o", str(program)]
        subprocess.run(command, check=True, timeout=300)
        return subprocess.run(
            [program], check=True, timeout=60, capture_output=True
        ).stdout.decode()

    return run
