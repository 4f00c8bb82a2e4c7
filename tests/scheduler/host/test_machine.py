"""What the host computer can do: read from its files, with advice."""

from __future__ import annotations

import gzip
import os
import sys

import pytest

from biella.scheduler.host._system_info import examine, find_isolated, find_serial_devices

linux = pytest.mark.skipif(sys.platform != "linux", reason="not on Linux")


def write_tree(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def found(facts):
    return {(fact.topic, fact.name): fact for fact in facts}


@linux
@pytest.mark.engine
def test_a_machine_made_for_real_time_needs_no_advice(tmp_path):
    write_tree(
        tmp_path,
        {
            "proc/version": "Linux version 6.12 #1 SMP PREEMPT_RT Debian",
            "proc/config.gz": gzip.compress(b"# CONFIG_HZ_250 is not set\nCONFIG_HZ=1000\n"),
            "proc/cpuinfo": "flags\t\t: fpu vme hypervisor_not\n",
            "proc/loadavg": "0.01 0.02 0.03 1/99 1234\n",
            "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
            "proc/sys/kernel/sched_rt_period_us": "1000000\n",
            "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
            "sys/devices/system/cpu/isolated": "2-3,5\n",
            "sys/class/dmi/id/sys_vendor": "Advantech\n",
            "sys/class/net/can0/type": "280\n",
            "sys/class/net/eth0/type": "1\n",
            "dev/ttyACM0": "",
        },
    )
    facts = found(examine(tmp_path))
    assert [fact.advice for fact in facts.values() if fact.advice] == []
    assert facts["kernel", "preemption"].value == "full (PREEMPT_RT)"
    assert facts["kernel", "timer ticks"].value == "1000 Hz"
    assert facts["kernel", "virtual machine"].value == "no"
    assert ("kernel", "container") not in facts
    assert facts["limits", "time for real-time threads"].value == "95 % of each 1 s"
    assert facts["devices", "CAN"].value == "can0"
    assert facts["devices", "/dev/ttyACM0"].value.startswith("may be opened, group ")
    assert facts["engine", "compiled by"].value.split()[0] in ("gcc", "clang")
    assert find_isolated(tmp_path) == [2, 3, 5]


@linux
@pytest.mark.engine
def test_what_is_in_the_way_is_said_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    write_tree(
        tmp_path,
        {
            "proc/version": "Linux version 6.1 #1 SMP PREEMPT_DYNAMIC Debian",
            "proc/cpuinfo": "flags\t\t: fpu vme hypervisor\n",
            "proc/loadavg": "3.5 2 1 1/99 1234\n",
            "proc/stat": "cpu  400 0 100 490 0 0 0 10 0 0\ncpu0 4 0 1 4 0 0 0 1 0 0\n",
            "proc/1/environ": "HOME=/\0container=lxc\0",
            "proc/sys/kernel/sched_rt_runtime_us": "-1\n",
            "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/isolated": "\n",
            "sys/class/dmi/id/sys_vendor": "QEMU\n",
            "sys/class/tty/ttyS0/type": "4\n",
            "sys/class/tty/ttyS1/type": "0\n",
            "dev/ttyS0": "",
            "dev/ttyS1": "",
        },
    )
    facts = found(examine(tmp_path))
    assert find_serial_devices(tmp_path) == [tmp_path / "dev/ttyS0"]
    group = (tmp_path / "dev/ttyS0").group()
    told = {name: facts[name].value for name in facts}
    assert told["kernel", "preemption"] == "chosen at boot (PREEMPT_DYNAMIC)"
    assert told["kernel", "timer ticks"].startswith("unknown")
    assert told["kernel", "virtual machine"] == "QEMU"
    assert told["kernel", "time stolen by the host"] == "1 % since the start"
    assert told["kernel", "container"] == "lxc"
    assert told["limits", "time for real-time threads"].startswith("unlimited")
    assert told["processors", "frequency governor"] == "performance, powersave"
    advice = {name: facts[name].advice for name in facts if facts[name].advice}
    assert set(advice) == {
        ("kernel", "preemption"),
        ("kernel", "clock source"),
        ("kernel", "virtual machine"),
        ("processors", "frequency governor"),
        ("processors", "isolated"),
        ("processors", "load now"),
        ("devices", "/dev/ttyS0"),
    }
    assert f"usermod -aG {group} $USER" in advice["devices", "/dev/ttyS0"]


@linux
@pytest.mark.engine
def test_where_nothing_can_be_read_nothing_is_claimed(tmp_path):
    facts = found(examine(tmp_path))
    assert facts["kernel", "timer ticks"].value.startswith("unknown")
    assert facts["devices", "serial"].value == "none"
    assert facts["kernel", "clock source"].value == "unknown"
