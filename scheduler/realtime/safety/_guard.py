"""The guard of a run: another process, which sends safe values when that of the run has died.

``run_realtime(…, guard=True)`` starts one; ``biella guard -- COMMAND`` is one, for all runs of the
command. The work is done in C: ``guard_client.c`` in the process of the run, ``guard_process.c`` in
the guard.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ....errors import BiellaError, BiellaWarning, name_list
from ...engine._library import contract, library
from .._watch import runtime_folder
from ._limits import has_outputs

VARIABLE = "BIELLA_GUARD"
"""In the environment of a command that is guarded: descriptor and inode of its guard's socket.

Whatever the command starts inherits the variable, but not always the descriptor, whose number may
be that of another file by then. Each run sends one end of a socket pair of its own over it.
"""
MARGIN = 0.1
"""Seconds by which a run may exceed the limit of its own watchdog until the guard acts."""
_MESSAGE_SIZE = 256
_LOOK_SECONDS = 0.2
_LATCH = ".latch"
_DIED = contract.BL_GUARD_DIED


class Guard:
    """The guard of one run, seen from its process.

    Parameters
    ----------
    devices
        Open devices of the run, in its order.
    """

    def __init__(self, devices: Iterable[Any]) -> None:
        found = list(devices)
        if sys.platform != "linux":
            raise BiellaError("guard=True needs Linux: rely on the watchdogs of the devices.")
        self.latch = _latch_file(found)
        _require_no_latch(self.latch)
        self._process: subprocess.Popen[bytes] | None = None
        joined = _join_command()
        if joined is not None:
            self._channel = joined
        else:
            self._channel, self._process = _start_process()
        message = ctypes.create_string_buffer(_MESSAGE_SIZE)
        handles = (ctypes.c_void_p * max(1, len(found)))(*[d.handle for d in found])
        self.handle = library().bl_run_guard_open(
            self._channel.fileno(), handles, len(found), round(1e9 * MARGIN),
            os.fsencode(self.latch), message, _MESSAGE_SIZE,
        )  # fmt: skip
        if not self.handle:
            self.close()
            raise BiellaError(f"the run cannot be guarded: {message.value.decode()}.")
        self.uncovered = [
            device.name
            for number, device in enumerate(found)
            if has_outputs(device) and not library().bl_run_guard_covers(self.handle, number)
        ]
        """Devices with outputs that the guard cannot reach."""

    def warn(self, stacklevel: int) -> None:
        """Warn of devices that the guard cannot reach."""
        if self.uncovered:
            warnings.warn(
                f"the guard cannot send to {name_list(self.uncovered)}: only serial, text, UDP and "
                f"TCP devices are guarded. Rely on the watchdog of the device.",
                BiellaWarning,
                stacklevel=stacklevel + 1,
            )

    def close(self) -> None:
        """Tell the guard that the run has ended; it returns the devices."""
        handle, self.handle = self.handle, None
        library().bl_run_guard_close(handle)
        self._channel.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10.0)


def _join_command() -> socket.socket | None:
    """Return a new channel to the guard of the command that this process belongs to, if any.

    None if there is none, if it has ended, or if its socket was not inherited.
    """
    try:
        number, inode = map(int, os.environ[VARIABLE].split(":"))
        if os.fstat(number).st_ino != inode:
            return None
        with socket.socket(fileno=os.dup(number)) as command:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                about = [str(os.getpid()).encode()]
                socket.send_fds(command, about, [theirs.fileno()], socket.MSG_NOSIGNAL)
            return ours
    except (KeyError, ValueError, OSError):
        return None


def _start_process() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", __name__, str(theirs.fileno()), str(os.getpid())]
        process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # what ends the group of the run does not end its guard
        )
    return ours, process


def _latch_file(devices: Iterable[Any]) -> Path:
    """Return the file that says that a run with these devices has died."""
    names = sorted(device.describe() for device in devices)
    key = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    return runtime_folder() / f"{key}{_LATCH}"


def _require_no_latch(path: Path) -> None:
    if about := _describe_latch(path):
        raise BiellaError(
            f"the last run with these devices died at {about['time']} (process "
            f"{about['process']}), and its guard sent safe values. Check the rig, then arm it "
            f"again: biella rearm."
        )


def _describe_latch(path: Path) -> dict[str, Any]:
    """Return what the guard has noted; empty if there is no latch.

    One that cannot be read counts, too: the disk may have been full.
    """
    about: dict[str, Any] = {"process": "unknown", "time": "an unknown time"}
    try:
        about.update(json.loads(path.read_text()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError):
        pass
    return about


def clear_latches() -> list[str]:
    """Remove what guards have left of dead runs; return one line for each."""
    texts = []
    for path in sorted(runtime_folder().glob(f"*{_LATCH}")):
        with contextlib.suppress(OSError):
            about = _describe_latch(path)
            path.unlink()
            texts.append(f"process {about['process']}, which died at {about['time']}")
    return texts


# In the guard.


def serve(channel: int, process: int) -> None:
    """Guard the run that uses a channel, until it or its process ends."""
    card = contract.bl_run_guard_report_card()
    if library().bl_run_guard_serve(channel, process, ctypes.byref(card)) == _DIED:
        _report_death(card)


def _report_death(card: Any) -> None:
    about = {
        "process": int(card.process),
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        "devices": int(card.device_count),
        "confirmed": bool(card.settled),
    }
    with contextlib.suppress(OSError):
        Path(os.fsdecode(card.latch)).write_text(json.dumps(about))
    how = "confirmed" if card.settled else "NOT confirmed"
    with contextlib.suppress(OSError):
        print(
            f"biella guard: process {about['process']} died during a real-time run; safe values "
            f"were sent to {about['devices']} devices and {how}. `biella rearm` lets the next run "
            f"start.",
            file=sys.stderr,
            flush=True,
        )


def _prepare_guard() -> None:
    """Let nothing end the guard before its run; the kernel should not choose it for lack of memory.

    Less than that needs a privilege.
    """
    for name in ("SIGINT", "SIGHUP", "SIGQUIT", "SIGTSTP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("-500")


def guard_command(options: argparse.Namespace) -> None:
    """Run a command; guard its real-time runs; end with its exit code."""
    command = options.guarded[1:] if options.guarded[:1] == ["--"] else options.guarded
    if not command:
        raise BiellaError(
            "give the command to guard: biella guard -- biella run-realtime rig.py --bind rig.toml"
        )
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with theirs:
            child = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                env={
                    **os.environ,
                    VARIABLE: f"{theirs.fileno()}:{os.fstat(theirs.fileno()).st_ino}",
                },
            )
    except OSError as error:
        ours.close()
        raise BiellaError(f"`{command[0]}` cannot be started: {error.strerror}.") from error
    _prepare_guard()
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    with ours:
        _serve_command(ours, child)
    code = child.wait()
    sys.exit(code if code >= 0 else 128 - code)


def _serve_command(command: socket.socket, child: subprocess.Popen[bytes]) -> None:
    """Guard each run that asks for it, until the command and its runs have ended."""
    runs: list[threading.Thread] = []
    sockets = [command]
    while child.poll() is None or any(run.is_alive() for run in runs):
        if not select.select(sockets, [], [], _LOOK_SECONDS)[0]:
            continue
        about, channels, *_ = socket.recv_fds(command, 32, 1)
        if not about:  # nobody is left who could ask
            sockets = []
        for channel in channels:
            runs = [run for run in runs if run.is_alive()]
            runs.append(threading.Thread(target=_serve_run, args=[channel, int(about)]))
            runs[-1].start()


def _serve_run(channel: int, process: int) -> None:
    try:
        serve(channel, process)
    finally:
        os.close(channel)


if __name__ == "__main__":
    _prepare_guard()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve(int(sys.argv[1]), int(sys.argv[2]))
