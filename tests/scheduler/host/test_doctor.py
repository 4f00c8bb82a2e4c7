"""`biella doctor` reads a machine rightly, measures all variants in turns, and says what it saw."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from biella import cli
from biella.scheduler.host import latency as wakeups
from biella.scheduler.host import system_info as machine
from biella.scheduler.host.doctor import Diagnosis, conclude, draw_histogram, write_share
from biella.scheduler.host.latency import (
    EDGES_US,
    QUANTILES,
    Variant,
    count_bins,
    list_variants,
    measure,
    share_late,
    summarize,
)
from biella.scheduler.host.privileges import Grant, Privileges
from biella.scheduler.host.system_info import examine, find_isolated, find_serial_devices

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
    assert told["kernel", "time that the host took"] == "1 % since the start"
    assert told["kernel", "container"] == "lxc"
    assert told["limits", "time for real-time threads"].startswith("all")
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


def test_quantiles_are_measured_values():
    shuffled = np.random.default_rng(1).permutation(np.arange(1, 1001)) * 1000
    assert summarize(shuffled) == {
        "min": 1.0,
        "median": 500.0,
        "p99": 990.0,
        "p99.9": 999.0,
        "max": 1000.0,
    }
    # Of few, a far quantile is the worst.
    few = {"min": 1.0, "median": 5.0, "p99": 10.0, "p99.9": 10.0, "max": 10.0}
    assert summarize(np.arange(1, 11) * 1000) == few
    assert summarize(np.array([7000])) == dict.fromkeys(QUANTILES, 7.0)


def test_a_histogram_counts_each_once_and_an_edge_to_the_bin_above():
    lateness = np.array([0, 999, 1000, 1999, 2000, 50_000, 10**9])
    counts = count_bins(lateness)
    assert len(counts) == len(EDGES_US) + 1 and sum(counts) == lateness.size
    assert counts[:3] == [2, 2, 1] and counts[-1] == 1
    assert counts[EDGES_US.index(50.0) + 1] == 1
    lines = draw_histogram(Variant("plain", Privileges(), turns=[lateness[:5]]))
    assert [line.split()[:5] for line in lines] == [
        ["0", "–", "1", "µs", "2"],
        ["1", "–", "2", "µs", "2"],
        ["2", "–", "5", "µs", "1"],
    ]
    assert lines[0].count("█") == 30 > lines[2].count("█") > 0


def stalled(period_ns, stall_ns=4_000_000, every_ns=100_000_000, total_ns=10**9):
    """Return the lateness of deadlines on a machine that stands still for 4 ms in each 100 ms."""
    deadlines = np.arange(0, total_ns, period_ns)
    return np.maximum(0, stall_ns - deadlines % every_ns)


def test_shares_of_one_rate_predict_those_of_others():
    """By the closed form: late by more than a during stall - a of each 100 ms, at any rate."""
    for rate in (500, 1000, 5000):
        measured = stalled(100_000)
        exact = max(0.0, 4e-3 - 0.5 / rate) / 0.1
        # Up to one deadline more or less in each stall of either.
        assert share_late(measured, rate) == pytest.approx(exact, abs=1e-3 + 1e-12)
        own = stalled(1_000_000_000 // rate)
        assert share_late(own, rate) == pytest.approx(exact, abs=10 / rate + 1e-12)
    assert share_late(np.array([0, 600_000]), 1000, load=0.5) == 0.5
    assert share_late(np.array([0, 600_000]), 1000, load=0.3) == 0.0


def test_of_none_seen_a_bound_is_reported():
    assert write_share(0.0, 3000) == "< 0.1 %"
    assert 0.049 < (1 - 0.1 / 100) ** 3000 < 0.051  # 95 % of such measurements see at least one
    assert write_share(0.0, 2) == "< 100 %"
    assert write_share(0.0123, 3000) == "1.2 %"
    assert write_share(1.0, 3000) == "100 %"


def test_the_conclusion_stops_at_the_first_rate_that_misses():
    lateness = np.zeros(10_000, np.int64)
    lateness[:5] = 600_000  # more than half a period from 1 kHz on, in 0.05 %
    lateness[5:100] = 30_000  # from 20 kHz on, in 1 %
    plain = Variant("plain", Privileges(), turns=[lateness])
    lines = conclude(Diagnosis([], [], [plain], 1000, 10, 0.5))
    assert lines[0] == (
        "plain: no deadline missed up to 500 Hz, at most one in a thousand up to 10000 Hz."
    )
    assert "gives no bound" in lines[-1] and len(lines) == 2


def test_variants_take_turns_and_those_refused_take_no_part(monkeypatch):
    calls = []

    def wait(variant, period_ns, ticks):
        refused = [Grant("priority", False, "no")]
        variant.grants = refused if variant.name == "refused" else []
        if ticks:
            calls.append((variant.name, period_ns, ticks))
        return np.zeros(ticks, np.int64)

    monkeypatch.setattr(wakeups, "_wait", wait)
    variants = [Variant(name, Privileges()) for name in ("a", "refused", "b")]
    measure(variants, 1000, 0.6)
    assert calls == [("a", 1_000_000, 200), ("b", 1_000_000, 200)] * 3
    assert [v.lateness_ns.size for v in variants] == [600, 0, 600]


@pytest.mark.engine
def test_no_thread_wakes_before_its_deadline():
    variants = list_variants(machine.choose_processor(), 2000)
    measure(variants, 2000, 0.05)
    assert [v.name for v in variants if v.turns][:2] == ["plain", "exact timers"]
    for variant in variants:
        if variant.turns:
            assert variant.lateness_ns.size == 100
            assert variant.lateness_ns.min() >= 0


@pytest.mark.engine
def test_the_command_prints_tables_and_draws(tmp_path, capsys):
    picture = tmp_path / "late.png"
    arguments = ["doctor", "--rate", "2000", "--seconds", "0.05", "--plot", str(picture)]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    for text in (
        "This machine",
        "Privileges of a real-time thread",
        "lateness at 2000 Hz",
        "no bound",
    ):
        assert text in out
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.engine
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--rate", "0", "--rate is 1 Hz to 1 MHz, not 0 Hz"),
        ("--rate", "nan", "--rate is 1 Hz to 1 MHz"),
        ("--seconds", "-1", "--seconds is how long"),
        ("--load", "1", "--load is the part"),
    ],
)
def test_options_out_of_range_are_refused(option, value, message, capsys):
    assert cli.main(["doctor", option, value]) == 1
    assert message in capsys.readouterr().err


# Python itself may lie where nobody may read: all is imported before.
AS_NOBODY = """
import grp, os, resource, sys
from biella import cli
from biella.scheduler.host import latency as wakeups
from biella.scheduler.host import system_info as machine
wakeups.library()
machine.examine()
resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(cli.main(["doctor", "--seconds", "0.02", "--json"]))
"""


@linux
@pytest.mark.engine
def test_without_permissions_it_measures_the_rest_and_says_what_was_refused():
    command = [sys.executable, "-c", AS_NOBODY]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    refused = {p["name"] for p in told["privileges"] if not p["granted"]}
    assert {"priority", "locked memory"} <= refused
    variants = {v["name"]: v for v in told["variants"]}
    assert variants["priority 80"]["lateness_us"] is None
    assert variants["priority 80"]["wakeups"] == 0
    assert variants["plain"]["wakeups"] == variants["all"]["wakeups"] == 20
    assert sum(variants["plain"]["histogram"]) == 20
    assert any(text.startswith("priority: not granted") for text in variants["all"]["refused"])
    assert set(told["missed_share"]["1000"]) == {n for n in variants if variants[n]["wakeups"]}
    assert any("@realtime - rtprio 99" in text for text in told["advice"])
