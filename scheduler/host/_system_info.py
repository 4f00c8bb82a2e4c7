"""Properties of a machine that affect real-time runs: kernel, limits, processors,
devices.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import os
import platform
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..engine._library import library, library_path
from ._privileges import read_limit

PACKAGES = {
    "pyserial": "serial devices from Python",
    "python-can": "CAN",
    "cantools": "signals in CAN frames",
    "pymodbus": "Modbus",
    "asyncua": "OPC UA",
}
"""Packages that drivers use, and for what."""
_SERIAL = ("ttyUSB*", "ttyACM*", "ttyAMA*", "ttyTHS*", "ttyS*", "rfcomm*")
_ARPHRD_CAN = "280"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something found out.

    Attributes
    ----------
    topic, name, value
        As ``kernel``, ``timer ticks``, ``250 Hz``.
    advice
        What to do about it, if anything is to be done.
    """

    topic: str
    name: str
    value: str
    advice: str = ""


def examine(root: Path = Path("/")) -> list[Fact]:
    """Return all facts; `root` replaces the root of the file system."""
    facts = [Fact("system", "platform", f"{platform.platform()}, {os.cpu_count()} processors")]
    if sys.platform == "linux":
        for look in (_look_at_kernel, _look_at_limits, _look_at_processors, _look_at_devices):
            facts += look(root)
    facts += _look_at_packages()
    facts.append(Fact("engine", "library", str(library_path())))
    facts.append(Fact("engine", "compiled by", library().bl_compiler().decode()))
    return facts


def read(path: Path) -> str:
    """Return a small file of the system without blanks around it; empty if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip().strip("\0")
    except OSError:
        return ""


def _look_at_kernel(root: Path) -> Iterator[Fact]:
    version = read(root / "proc/version") or platform.version()
    config = _read_config(root)
    preemption = _name_preemption(root, version)
    ordinary = preemption != "full (PREEMPT_RT)"
    yield Fact(
        "kernel",
        "preemption",
        preemption,
        "A kernel with PREEMPT_RT bounds the lateness (Debian: `apt install linux-image-rt-amd64`);"
        " a standard kernel does not."
        if ordinary
        else "",
    )
    hz = re.search(r"^CONFIG_HZ=(\d+)$", config, re.M)
    yield Fact("kernel", "timer ticks", f"{hz[1]} Hz" if hz else "unknown: no configuration found")
    source = read(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")
    fast = {"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", ""}
    yield Fact(
        "kernel",
        "clock source",
        source or "unknown",
        "" if source in fast else f"Reading `{source}` takes about a microsecond; tsc is faster.",
    )
    virtual = find_virtual_machine(root)
    yield Fact(
        "kernel",
        "virtual machine",
        virtual or "no",
        "The host may suspend this virtual machine for milliseconds at any time: use "
        "dedicated hardware for hard deadlines."
        if virtual
        else "",
    )
    stolen = _read_stolen(root)
    if stolen is not None and virtual:
        yield Fact("kernel", "time stolen by the host", f"{100 * stolen:.2g} % since the start")
    inside = find_container(root)
    if inside:
        yield Fact("kernel", "container", inside)


def _read_stolen(root: Path) -> float | None:
    """Return the share of time for which a processor had work and the host ran something else."""
    first = read(root / "proc/stat").partition("\n")[0].split()
    if len(first) < 9 or first[0] != "cpu":
        return None
    ticks = [int(word) for word in first[1:9]]
    return ticks[-1] / max(1, sum(ticks))


def _read_config(root: Path) -> str:
    try:
        return gzip.decompress((root / "proc/config.gz").read_bytes()).decode(errors="replace")
    except (OSError, EOFError, zlib.error):
        return read(root / "boot" / f"config-{platform.release()}")


def _name_preemption(root: Path, version: str) -> str:
    if read(root / "sys/kernel/realtime") == "1" or "PREEMPT_RT" in version:
        return "full (PREEMPT_RT)"
    if "PREEMPT_DYNAMIC" in version:
        mode = re.search(r"\((\w+)\)", read(root / "sys/kernel/debug/sched/preempt"))
        return f"chosen at boot{f' ({mode[1]})' if mode else ''} (PREEMPT_DYNAMIC)"
    return "within the kernel (PREEMPT)" if "PREEMPT" in version else "none or voluntary"


def find_virtual_machine(root: Path = Path("/")) -> str:
    """Return what kind of virtual machine this is; empty if it seems to be none."""
    named = read(root / "sys/hypervisor/type")
    vendor = read(root / "sys/class/dmi/id/sys_vendor")
    product = read(root / "sys/class/dmi/id/product_name")
    known = ("QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Bochs", "Virtual", "Firecracker")
    both = f"{vendor} {product}".strip()
    if any(word.lower() in both.lower() for word in known):
        return both
    flags = re.search(r"^flags\s*:(.*)$", read(root / "proc/cpuinfo"), re.M)
    if flags and "hypervisor" in flags[1].split():
        return named or both or "yes (reported by the processor)"
    return named


def find_container(root: Path = Path("/")) -> str:
    """Return what kind of container this is; empty if it seems to be none."""
    for file, name in ((".dockerenv", "Docker"), ("run/.containerenv", "Podman")):
        if (root / file).exists():
            return name
    named = re.search(r"(?:^|\0)container=([^\0]+)", read(root / "proc/1/environ"))
    return named[1] if named else ""


def _look_at_limits(root: Path) -> Iterator[Fact]:
    yield Fact("limits", "real-time priority (ulimit -r)", read_limit("RTPRIO"))
    locked = read_limit("MEMLOCK")
    size = f"{int(locked) // 1024} KiB" if locked.isdigit() else locked
    yield Fact("limits", "locked memory (ulimit -l)", size)
    runtime = read(root / "proc/sys/kernel/sched_rt_runtime_us")
    period = read(root / "proc/sys/kernel/sched_rt_period_us")
    if runtime == "-1":
        yield Fact(
            "limits",
            "time for real-time threads",
            "unlimited: a thread that never waits blocks the machine",
        )
    elif runtime and period:
        share = 100 * int(runtime) / int(period)
        yield Fact(
            "limits", "time for real-time threads", f"{share:g} % of each {int(period) / 1e6:g} s"
        )


def _look_at_processors(root: Path) -> Iterator[Fact]:
    cpus = root / "sys/devices/system/cpu"
    governors = sorted({read(p) for p in cpus.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {""})
    slow = [governor for governor in governors if governor != "performance"]
    yield Fact(
        "processors",
        "frequency governor",
        ", ".join(governors) or "none: the frequency is not controlled by this system",
        "The clock frequency is raised only under load: `sudo cpupower frequency-set -g "
        "performance`."
        if slow
        else "",
    )
    yield Fact("processors", "idle driver", read(cpus / "cpuidle/current_driver") or "none")
    isolated = read(cpus / "isolated")
    yield Fact(
        "processors",
        "isolated",
        isolated or "none",
        ""
        if isolated or (os.cpu_count() or 1) < 3
        else "Boot with `isolcpus=3 nohz_full=3 rcu_nocbs=3`, say, to keep a processor for a "
        "real-time run alone.",
    )
    load = read(root / "proc/loadavg").split()
    if load:
        busy = float(load[0]) > 0.5 * (os.cpu_count() or 1)
        yield Fact(
            "processors",
            "load now",
            load[0],
            "Other processes use this machine: they affect the measurement." if busy else "",
        )


def find_isolated(root: Path = Path("/")) -> list[int]:
    """Return the processors that the kernel keeps ordinary threads away from."""
    found: list[int] = []
    for part in read(root / "sys/devices/system/cpu/isolated").split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found += range(int(first), int(last or first) + 1)
    return found


def choose_processor() -> int:
    """Return the processor for a real-time thread: an isolated one, else the last that it may
    use.
    """
    if not hasattr(os, "sched_getaffinity"):
        return (os.cpu_count() or 1) - 1
    return (find_isolated() or sorted(os.sched_getaffinity(0)))[-1]


def _look_at_devices(root: Path) -> Iterator[Fact]:
    devices = sorted(find_serial_devices(root))
    for device in devices:
        free = os.access(device, os.R_OK | os.W_OK)
        group = _name_group(device)
        yield Fact(
            "devices",
            "/" + str(device.relative_to(root)),
            f"may be opened, group {group}" if free else f"no permission, group {group}",
            "" if free else f"`sudo usermod -aG {group} $USER`, and log in again.",
        )
    if not devices:
        yield Fact("devices", "serial", "none")
    cans = [
        p.parent.name for p in (root / "sys/class/net").glob("*/type") if read(p) == _ARPHRD_CAN
    ]
    yield Fact("devices", "CAN", ", ".join(sorted(cans)) or "none")


def find_serial_devices(root: Path = Path("/")) -> list[Path]:
    """Return the serial devices; of those that are built in, only those that are there."""
    return [
        path
        for pattern in _SERIAL
        for path in (root / "dev").glob(pattern)
        # The kernel has names for more built-in ports than there are: type 0 is unknown hardware.
        if read(root / "sys/class/tty" / path.name / "type") != "0"
    ]


def _name_group(path: Path) -> str:
    try:
        return path.group()
    except (KeyError, OSError):
        return str(path.stat().st_gid)


def _look_at_packages() -> Iterator[Fact]:
    for package, use in PACKAGES.items():
        try:
            yield Fact("packages", package, importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            yield Fact("packages", package, f"not installed (for {use}: `pip install {package}`)")
