"""Privileges that a real-time thread requests to wake on time, and those that were granted.

Each is requested separately and is optional: a denial is reported with a remedy, and the
run continues without it. All are released when the run ends.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref
from dataclasses import dataclass

from ...errors import BiellaError
from ..engine._library import contract, library

TIMERS, POWER, MEMORY = contract.BL_TIMERS, contract.BL_POWER, contract.BL_MEMORY
STACK, CPU, PRIORITY = contract.BL_STACK, contract.BL_CPU, contract.BL_PRIORITY
NAMES = {
    TIMERS: "exact timers",
    POWER: "full power",
    MEMORY: "locked memory",
    STACK: "stack",
    CPU: "processor",
    PRIORITY: "priority",
}

LIMITS_FILE = "/etc/security/limits.d/realtime.conf"
_JOIN = "`sudo groupadd -f realtime && sudo usermod -aG realtime $USER`, and log in again"


@dataclass(frozen=True, slots=True)
class Privileges:
    """Privileges that a real-time thread requests.

    Attributes
    ----------
    exact_timers
        The kernel does not delay wake-ups to gather them, which it may by 50 µs. Everybody may.
    full_power
        No processor sleeps so deeply that waking takes long: ``/dev/cpu_dma_latency`` held at 0.
    lock_memory
        All memory of the process stays in RAM (``mlockall``), also what is allocated later.
    stack
        Bytes of the thread's stack that are touched beforehand; 0: none.
    cpu
        The processor that the thread stays on; None: any.
    priority
        Of ``SCHED_FIFO``, 1 to 99: the thread precedes all ordinary ones. If the limit is lower,
        the thread gets that. None: an ordinary thread.
    """

    exact_timers: bool = True
    full_power: bool = False
    lock_memory: bool = False
    stack: int = 0
    cpu: int | None = None
    priority: int | None = None

    def __post_init__(self) -> None:
        if self.priority is not None and not 1 <= self.priority <= 99:
            raise BiellaError(f"a real-time priority must be 1 to 99, got {self.priority}.")
        if self.cpu is not None and self.cpu < 0:
            raise BiellaError(f"processor numbers start at 0, got {self.cpu}.")
        if self.stack < 0:
            raise BiellaError(f"{self.stack} bytes of stack cannot be preallocated.")

    @classmethod
    def everything(cls, cpu: int | None = None, priority: int = 80) -> Privileges:
        """Return all of them: what a machine that does nothing else would give."""
        return cls(True, True, True, 1 << 18, cpu, priority)

    def as_struct(self) -> contract.bl_privileges:
        """Return what the engine's ``bl_privileges_take`` is called with."""
        wanted = (
            self.exact_timers,
            self.full_power,
            self.lock_memory,
            self.stack > 0,
            self.cpu is not None,
            self.priority is not None,
        )
        return contract.bl_privileges(
            asked=sum(1 << k for k, asked in enumerate(wanted) if asked),
            priority=self.priority or 0,
            cpu=-1 if self.cpu is None else self.cpu,
            stack=self.stack,
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """Result of the request for one privilege.

    Attributes
    ----------
    name
        One of `NAMES`.
    granted
        Whether it was.
    detail
        What was granted, or why nothing was.
    advice
        What to do about it; empty if there is nothing to do.
    """

    name: str
    granted: bool
    detail: str
    advice: str = ""

    def __str__(self) -> str:
        if self.granted:
            return f"{self.name}: {self.detail}"
        return f"{self.name}: not granted, {self.detail}. {self.advice}".rstrip()


def read_grants(struct: contract.bl_privileges) -> list[Grant]:
    """Return what became of all that was asked for."""
    return [_read_grant(struct, kind) for kind in sorted(NAMES) if struct.asked & (1 << kind)]


def _read_grant(struct: contract.bl_privileges, kind: int) -> Grant:
    name = NAMES[kind]
    if not struct.granted & (1 << kind):
        return Grant(name, False, *_explain(kind, struct))
    details = {
        TIMERS: "wake-ups are not delayed",
        POWER: "/dev/cpu_dma_latency is set to 0",
        MEMORY: "the memory of the process is locked",
        STACK: f"{struct.stack} bytes touched",
        CPU: f"number {struct.cpu} only",
        PRIORITY: _name_priority(struct.granted_priority),
    }
    if kind == PRIORITY and sys.platform == "linux" and struct.granted_priority < struct.priority:
        lower = f"{details[kind]} in place of {struct.priority}"
        return Grant(name, True, lower, _advise_limit("rtprio", "99"))
    return Grant(name, True, details[kind])


def _name_priority(priority: int) -> str:
    if sys.platform == "linux":
        return f"SCHED_FIFO, priority {priority}"
    return "time critical" if sys.platform == "win32" else "time constraint"


def _explain(kind: int, struct: contract.bl_privileges) -> tuple[str, str]:
    """Return why a privilege was refused, and what to do about it."""
    error = struct.errors[kind]
    if error == errno.ENOTSUP:
        return "not on this platform", ""
    words = f"{os.strerror(error)} ({errno.errorcode.get(error, error)})"
    if kind == PRIORITY and error == errno.EPERM:
        limit = read_limit("RTPRIO")
        return (
            f"{words}: the highest real-time priority here is {limit} (`ulimit -r`)",
            _advise_limit("rtprio", "99") + " In a container: `--cap-add SYS_NICE`.",
        )
    if kind == MEMORY and error in (errno.ENOMEM, errno.EPERM):
        limit = read_limit("MEMLOCK")
        size = limit if limit == "unlimited" else f"{int(limit) // 1024} KiB"
        return (
            f"{words}: at most {size} may be locked (`ulimit -l`), and larger allocations "
            f"would fail",
            _advise_limit("memlock", "unlimited")
            + " In a container: `--ulimit memlock=-1`, or `--cap-add IPC_LOCK`.",
        )
    if kind == POWER:
        return words, (
            "Give the group access to the device: put the line "
            '`KERNEL=="cpu_dma_latency", GROUP="realtime", MODE="0660"` in '
            f"/etc/udev/rules.d/99-realtime.rules; then {_JOIN}. "
            "In a container: `--device /dev/cpu_dma_latency`."
        )
    if kind == CPU:
        return (
            f"{words}: processor {struct.cpu} is not in the affinity mask of this thread",
            f"Available: {_list_processors()}.",
        )
    if kind == STACK:
        return (
            f"{words}: {struct.stack} bytes are more than half of the remaining stack",
            "Request less, or raise `ulimit -s`.",
        )
    return words, ""


def _advise_limit(item: str, value: str) -> str:
    return f"Put the line `@realtime - {item} {value}` into {LIMITS_FILE}; then {_JOIN}."


def _list_processors() -> str:
    if not hasattr(os, "sched_getaffinity"):
        return f"0 to {(os.cpu_count() or 1) - 1}"
    return ", ".join(map(str, sorted(os.sched_getaffinity(0))))


def read_limit(name: str) -> str:
    """Return a limit of the process, such as ``RTPRIO``, or ``unlimited``, or ``unknown``."""
    try:
        import resource
    except ModuleNotFoundError:
        return "unknown"
    number = getattr(resource, f"RLIMIT_{name}", None)
    if number is None:
        return "unknown"
    limit = resource.getrlimit(number)[0]
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit)


@contextmanager
def hold(privileges: Privileges) -> Iterator[list[Grant]]:
    """Hold privileges of the calling thread within a ``with`` block; yields the results."""
    lib, struct = library(), privileges.as_struct()
    lib.bl_privileges_take(byref(struct))
    try:
        yield read_grants(struct)
    finally:
        lib.bl_privileges_return(byref(struct))
