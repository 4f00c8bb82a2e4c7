"""Confine this process, then become the worker of an isolated FMU: isolate="strict".

Runs as a script, on the standard library alone, before anything else is imported: Landlock and
capabilities hold for a thread and those that it starts, and numpy starts threads. The single
argument is a JSON object; what was granted is written to the standard output, as the first answer.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import runpy
import socket
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

REPLY = struct.Struct("<bq")
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # Landlock, on all architectures
_NEW_NS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_NET = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x40000000,
)  # fmt: skip
_NO_SUID, _NO_DEV, _NO_EXEC, _PRIVATE, _RECURSIVE = 2, 4, 8, 1 << 18, 1 << 14
_READ_FILE, _READ_DIR, _WRITE_FILE, _TRUNCATE = 1 << 2, 1 << 3, 1 << 1, 1 << 14
_ALL_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_SCRATCH = (
    _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE
    | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 13  # remove, make, link, rename
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


_libc = ctypes.CDLL(None, use_errno=True)


def _check(status: int, what: str) -> int:
    if status < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return status


def _call(number: int, *arguments: Any) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def enter_namespaces(scratch: str, size: int) -> str:
    """Leave the network, the mounts and the IPC of the system; mount the scratch folder."""
    user, group = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEW_USER | _NEW_NS | _NEW_NET | _NEW_IPC | _NEW_UTS), "unshare")
    for name, text in (
        ("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1"),
    ):  # fmt: skip
        Path("/proc/self", name).write_text(text)
    options = f"size={size},nr_inodes=10000,mode=700".encode()
    _check(_libc.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None), "mount")
    flags = _NO_SUID | _NO_DEV | _NO_EXEC
    _check(_libc.mount(b"none", os.fsencode(scratch), b"tmpfs", flags, options), "mount tmpfs")
    return "no network, own IPC and mounts"


def limit_resource(name: str, value: int) -> str:
    """Set a limit of the process by its name in `resource`; return what holds."""
    number = getattr(resource, name)
    _, most = resource.getrlimit(number)
    hard = value + 1 if name == "RLIMIT_CPU" else value  # the soft one names itself
    if most != resource.RLIM_INFINITY:
        value, hard = min(value, most), min(hard, most)
    resource.setrlimit(number, (value, hard))
    return str(value)


def restrict_files(read: list[str], list_only: list[str], scratch: str) -> int:
    """Allow reading below `read` and all below `scratch`, nothing else; return the version."""
    version = _check(_call(_CREATE_RULESET, None, ctypes.c_size_t(0), 1), "Landlock")
    rights = max(v for v in _ALL_RIGHTS if v <= version)
    every = _ALL_RIGHTS[rights]
    rules = _Ruleset(every, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _check(
        _call(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0), "Landlock"
    )

    def allow(path: str, access: int) -> None:
        try:
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            if not os.path.isdir(path):
                access &= _READ_FILE | _WRITE_FILE | _TRUNCATE
            rule = _Beneath(access & every, folder)
            _check(_call(_ADD_RULE, ruleset, 1, ctypes.byref(rule), 0), f"Landlock, {path}")
        finally:
            os.close(folder)

    for path in read:
        allow(path, _READ_FILE | _READ_DIR)
    for path in list_only:
        allow(path, _READ_DIR)
    for path in _DEVICES:
        allow(path, _READ_FILE | _WRITE_FILE)
    allow(scratch, _SCRATCH)
    _check(_libc.prctl(38, 1, 0, 0, 0), "no new privileges")
    _check(_call(_RESTRICT_SELF, ruleset, 0), "Landlock")
    os.close(ruleset)
    return version


def drop_capabilities() -> str:
    """Give up what root, also that of a user namespace, may do."""
    header = struct.pack("=Ii", 0x20080522, 0)
    _check(_libc.capset(header, bytes(24)), "capset")
    return "none"


def filter_calls(library: str, channel: socket.socket) -> str:
    """Refuse system calls; send the descriptor on which refused ones are answered."""
    engine = ctypes.CDLL(library)
    listener = engine.bl_sandbox_filter(1)
    if listener < 0:
        status = engine.bl_sandbox_filter(0)
        if status < 0:
            raise OSError(-status, f"seccomp: {os.strerror(-status)}")
        return "no network, processes, signals, tracing; attempts are not reported"
    socket.send_fds(channel, [b"."], [listener])
    os.close(listener)  # its holder can let refused calls pass
    return "no network, processes, signals, tracing; attempts are reported"


def confine(order: dict[str, Any], channel: socket.socket) -> dict[str, dict[str, str]]:
    """Apply all protections; return those granted, and those that are not available here."""
    granted: dict[str, str] = {}
    missing: dict[str, str] = {}

    def attempt(name: str, action: Callable[[], str]) -> bool:
        try:
            granted[name] = action()
        except OSError as error:
            missing[name] = error.strerror or str(error)
            return False
        return True

    scratch, size = str(order["scratch"]), int(order["scratch_size"])
    entered = attempt("namespaces", lambda: enter_namespaces(scratch, size))
    os.environ["HOME"] = os.environ["TMPDIR"] = scratch
    os.chdir(scratch)
    for name, value in order["limits"].items():
        attempt(name, partial(limit_resource, name, value))
    attempt("capabilities", drop_capabilities)

    def restrict() -> str:
        own = [f"/proc/{os.getpid()}"]
        version = restrict_files(order["read"] + own, order["list"], scratch)
        if version < 3:
            missing["truncation"] = f"version {version} of Landlock does not prevent it"
        most = f"{'' if entered else 'files of '}up to {size / 1e6:.3g} MB"
        return (
            f"reads its own folder, Python and system libraries; writes {most} to its scratch "
            f"folder"
        )

    attempt("files", restrict)
    attempt("calls", lambda: filter_calls(order["library"], channel))
    return {"granted": granted, "missing": missing}


def _guard_terminal() -> None:
    """Keep messages of the FMU, without what is typed into the same terminal."""
    if os.isatty(2):
        try:
            target = os.open(os.ttyname(2), os.O_WRONLY | os.O_NOCTTY)
        except OSError:
            target = os.open(os.devnull, os.O_WRONLY)
        os.dup2(target, 2)
        os.close(target)


def main() -> None:
    """Confine, report, and run the worker."""
    order = json.loads(sys.argv[1])
    channel = socket.socket(fileno=order["channel"])
    _guard_terminal()
    answer = json.dumps(confine(order, channel)).encode()
    channel.close()
    os.write(1, REPLY.pack(0, len(answer)) + answer)
    sys.path[:] = order["path"]
    sys.argv = ["worker", str(order["parent"]), order["folder"]]
    runpy.run_module(order["worker"], run_name="__main__")


if __name__ == "__main__":
    main()
