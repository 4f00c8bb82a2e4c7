"""isolate="strict": what the process of an FMU may do, and what it was refused."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import socket
import struct
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....errors import BiellaWarning, DiagramError, FmuError, name_list
from ....scheduler.engine._library import library, library_path
from .._archive import COUNT_VARIABLE, SIZE_VARIABLE

PROTECTIONS = {
    "files": "access to files, by Landlock",
    "truncation": "truncation of files, by Landlock",
    "calls": "system calls (network, processes, signals, tracing), by seccomp",
    "namespaces": "an own network, IPC and mounts, by user namespaces",
    "capabilities": "rights of root",
    "memory": "limit of memory",
    "cpu_time": "limit of processor time",
    "open_files": "limit of open files",
}
"""What strict isolation consists of, by the names in `IsolationLimits.required`."""

_LIMITS = {
    "RLIMIT_AS": "memory",
    "RLIMIT_CPU": "cpu_time",
    "RLIMIT_NOFILE": "open_files",
    "RLIMIT_FSIZE": "file_size",
    "RLIMIT_CORE": "core",
}
_UNITS = {
    "RLIMIT_AS": lambda value: f"{value / 1e9:.3g} GB",
    "RLIMIT_CPU": lambda value: f"{value:g} s",
    "RLIMIT_NOFILE": lambda value: f"{value:g}",
    "RLIMIT_FSIZE": lambda value: f"{value / 1e6:.3g} MB",
}
_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/sys/devices/system/cpu",
    "/sys/devices/system/node", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version",
)  # fmt: skip
_KEPT = (
    "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_NUMERIC", "LC_TIME", "TZ", "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "BIELLA_LIBRARY", COUNT_VARIABLE, SIZE_VARIABLE,
)  # fmt: skip
"""The variables of the environment that are passed on, with those that the user names."""

_SCRIPT = Path(__file__).with_name("_sandbox.py")

# linux/seccomp.h: struct seccomp_notif and seccomp_notif_resp
_NOTICE, _ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_ANSWERED_AT_ONCE = 64  # before the time is looked at
_REFUSED_MOST = 1000  # kinds of calls are listed, the rest is counted


@dataclass(frozen=True, kw_only=True)
class IsolationLimits:
    """What an FMU may use with ``isolate="strict"``.

    Parameters
    ----------
    memory
        Largest address space of the process in bytes, with about 0.5 GB of Python; None: no limit.
        FMUs that carry a Java or Julia runtime reserve tens of gigabytes.
    cpu_time
        Largest processor time of the process in a run, in seconds; None: no limit. `timeout` limits
        each call.
    open_files
        Largest number of open files.
    scratch
        Size in bytes of the only folder that the FMU may write to: in memory, gone after the run,
        its working directory and that for temporary files. Without user namespaces, it is on the
        disk and the size is that of each file.
    read
        More files and folders that the FMU may read, such as tables or an installed runtime.
    environment
        More variables of the environment that the FMU gets, such as the one of a license server.
        Without them it gets locale, time zone, ``LD_LIBRARY_PATH`` and numbers of threads.
    required
        Protections that must be available, otherwise an error instead of a warning: True for all,
        or names: ``files``, ``truncation``, ``calls``, ``namespaces``, ``capabilities``,
        ``memory``, ``cpu_time``, ``open_files``.
    """

    memory: float | None = 4 * 2**30
    cpu_time: float | None = None
    open_files: int = 256
    scratch: float = 64 * 2**20
    read: Sequence[str | os.PathLike[str]] = ()
    environment: Sequence[str] = ()
    required: bool | Sequence[str] = False

    def __post_init__(self) -> None:
        for name, low in (
            ("memory", 2**28),
            ("cpu_time", 1.0),
            ("open_files", 32),
            ("scratch", 2**16),
        ):
            value = getattr(self, name)
            if value is None and name in ("memory", "cpu_time"):
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise DiagramError(f"IsolationLimits: `{name}` must be a number; got {value!r}.")
            if not low <= value < 2**62:
                raise DiagramError(
                    f"IsolationLimits: `{name}` must be at least {low}; got {value!r}."
                )
        for name in ("read", "environment", "required"):
            value = getattr(self, name)
            if name == "required" and isinstance(value, bool):
                continue
            if isinstance(value, str) or not all(isinstance(v, (str, os.PathLike)) for v in value):
                raise DiagramError(
                    f"IsolationLimits: `{name}` must be a list of texts; got {value!r}."
                )
        for name in self.needed:
            if name not in PROTECTIONS:
                raise DiagramError(
                    f"IsolationLimits: there is no protection {name!r}. Protections: "
                    f"{name_list(PROTECTIONS)}."
                )
        for path in self.read:
            if not os.path.exists(path):
                raise DiagramError(f"IsolationLimits: `read` names `{path}`, which does not exist.")

    @property
    def needed(self) -> Sequence[str]:
        """The protections without which there is no run."""
        if isinstance(self.required, bool):
            return list(PROTECTIONS) if self.required else []
        return self.required


def check_platform() -> None:
    """Raise an error where processes cannot be confined."""
    if not sys.platform.startswith("linux"):
        raise DiagramError(
            'isolate="strict" requires Linux. isolate=True runs the FMU in a separate process, '
            "which protects the run from crashes, but nothing from the FMU."
        )


@dataclass
class Report:
    """What was granted to a process, and what it was refused."""

    granted: dict[str, str] = field(default_factory=dict)
    """By protection: what holds."""
    missing: dict[str, str] = field(default_factory=dict)
    """By protection that is not available here: why."""
    refused: dict[str, int] = field(default_factory=dict)
    """By system call: how often it was refused."""

    def to_info(self) -> dict[str, dict[str, Any]]:
        """Return it as plain data, for ``result.info``."""
        return {"granted": self.granted, "missing": self.missing, "refused": self.refused}

    def __str__(self) -> str:
        parts = [f"{name}: {text}" for name, text in self.granted.items() if text]
        parts += [f"{name}: NOT AVAILABLE ({why})" for name, why in self.missing.items()]
        return "; ".join(parts)

    def describe_refused(self) -> str:
        """Return what the FMU attempted; empty: nothing that is reported."""
        calls = [f"{name} ({count} x)" for name, count in sorted(self.refused.items())]
        return name_list(calls) if calls else ""


class Listener:
    """Answers the refused system calls of a confined process, and counts them."""

    def __init__(self, descriptor: int | None, report: Report) -> None:
        self.descriptor, self.report = descriptor, report  # None: the kernel refuses by itself

    def answer(self) -> None:
        """Refuse the calls that wait, some of them: threads may call again without end."""
        import fcntl

        if self.descriptor is None:
            return
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        for _ in range(_ANSWERED_AT_ONCE):
            if not any(event & select.POLLIN for _, event in poll.poll(0)):
                return
            notice = bytearray(_NOTICE.size)
            try:
                fcntl.ioctl(self.descriptor, _RECEIVE, notice)
                fields = _NOTICE.unpack(notice)
                number = int(fields[3])
                name = (library().bl_sandbox_call(number) or b"").decode() or str(number)
                if name in self.report.refused or len(self.report.refused) < _REFUSED_MOST:
                    self.report.refused[name] = self.report.refused.get(name, 0) + 1
                reply = bytearray(_ANSWER.pack(fields[0], 0, -1, 0))  # EPERM
                fcntl.ioctl(self.descriptor, _SEND, reply)
            except OSError:  # the thread that waits was killed
                return

    def close(self) -> None:
        """Let go of it: calls that still wait fail."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def start(
    worker: str, folder: Path, archive: Path, limits: IsolationLimits
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the process of an FMU that is unpacked in `folder`; what it sends first is its report.

    Returns
    -------
    process, channel
        The channel sends the descriptor for a `Listener`.
    """
    ours, theirs = socket.socketpair()
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    python, listed = _python_folders()
    given = [str(Path(path).resolve()) for path in limits.read]
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    read = [*_SYSTEM, *python, str(folder), str(archive.resolve()), str(library_path().resolve())]
    readable = [*read, *given]
    numbers = {
        "RLIMIT_AS": limits.memory,
        "RLIMIT_CPU": None if limits.cpu_time is None else math.ceil(limits.cpu_time),
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_FSIZE": limits.scratch,
        "RLIMIT_CORE": 0,
    }
    order = {
        "channel": theirs.fileno(),
        "folder": str(folder),
        "scratch": str(scratch),
        "scratch_size": int(limits.scratch),
        "read": [*readable, *(name for name in libraries if name)],
        "list": listed,
        "limits": {name: int(value) for name, value in numbers.items() if value is not None},
        "library": str(library_path()),
        "parent": os.getpid(),
        "path": [p for p in map(os.path.abspath, sys.path) if _is_below(p, [*readable, *listed])],
        "worker": worker,
    }
    kept = {name: os.environ[name] for name in (*_KEPT, *limits.environment) if name in os.environ}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", str(_SCRIPT), json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", **kept},
            cwd=folder,
            start_new_session=True,
            pass_fds=(theirs.fileno(),),
        )  # fmt: skip
    return process, ours


def receive(channel: socket.socket, answer: bytes, name: str, limits: IsolationLimits) -> Listener:
    """Return what refused calls are answered with; `answer` is the report of the process.

    Raises
    ------
    FmuError
        A protection that is required is not available.
    """
    told = json.loads(answer)
    granted = {
        _LIMITS.get(key, key): _UNITS[key](float(text)) if key in _UNITS else str(text)
        for key, text in told["granted"].items()
    }
    missing = {_LIMITS.get(key, key): text for key, text in told["missing"].items()}
    report = Report(granted, missing)
    channel.setblocking(False)
    descriptors: list[int] = []
    with contextlib.suppress(BlockingIOError):
        _, descriptors, _, _ = socket.recv_fds(channel, 16, 1)
    listener = Listener(descriptors[0] if descriptors else None, report)
    gone = [f"{PROTECTIONS.get(key, key)} ({why})" for key, why in missing.items()]
    if any(key in limits.needed for key in missing):
        listener.close()
        raise FmuError(
            f'{name}: isolate="strict" requires what this system does not offer: '
            f"{'; '.join(gone)}. Use a system that offers it, or leave it out of `required`."
        )
    if gone:
        warnings.warn(
            f'{name}: isolate="strict" is incomplete on this system. Not available: '
            f"{'; '.join(gone)}.",
            BiellaWarning,
            stacklevel=5,
        )
    return listener


def _python_folders() -> tuple[list[str], list[str]]:
    """Return the folders of Python, its packages and biella, and those of which to read names."""
    import site

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [sysconfig.get_path(name) for name in names]
    folders += [str(sysconfig.get_config_var("LIBDIR") or "")]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    package = Path(__file__).parents[3]
    folders += [str(package), *(str((package / n).resolve()) for n in os.listdir(package))]
    around = [str(package.parent), str(package.resolve().parent)]
    config = Path(sys.prefix, "pyvenv.cfg")
    existing = {os.path.abspath(f) for f in folders if f and os.path.isdir(f)}
    return [*sorted(existing), str(config)], around


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder + os.sep) for folder in folders)
