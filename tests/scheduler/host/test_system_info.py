"""What is found out of a machine, from files as Linux has them."""

import gzip
import os
import platform
import sys

import pytest

from biella.scheduler.host import _system_info as info

linux = pytest.mark.skipif(sys.platform != "linux", reason="not on Linux")


@pytest.fixture
def root(tmp_path):
    """Write files below a root of their own; return the root."""

    def write(files=(), **more):
        for name, text in {**dict(files), **more}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path

    return write


def find(facts, name):
    (fact,) = [fact for fact in facts if fact.name == name]
    return fact


@pytest.mark.parametrize(
    ("version", "files", "expected"),
    [
        ("Linux 6.1 SMP PREEMPT_RT", {}, "full (PREEMPT_RT)"),
        ("Linux 5.4 SMP", {"sys/kernel/realtime": "1\n"}, "full (PREEMPT_RT)"),
        ("Linux 6.1 PREEMPT_DYNAMIC", {}, "chosen at boot (PREEMPT_DYNAMIC)"),
        (
            "Linux 6.1 PREEMPT_DYNAMIC",
            {"sys/kernel/debug/sched/preempt": "none (voluntary) full\n"},
            "chosen at boot (voluntary) (PREEMPT_DYNAMIC)",
        ),
        ("Linux 6.1 PREEMPT", {}, "within the kernel (PREEMPT)"),
        ("Linux 6.1 SMP", {}, "none or voluntary"),
    ],
)
def test_preemption_and_what_to_do_about_it(root, version, files, expected):
    fact = find(info._look_at_kernel(root({"proc/version": version, **files})), "preemption")
    assert fact.value == expected
    assert bool(fact.advice) == (expected != "full (PREEMPT_RT)")


def test_timer_ticks_are_those_of_the_configuration(root):
    text = "CONFIG_HZ_250=y\nCONFIG_HZ=250\n"
    packed = root({"proc/config.gz": gzip.compress(text.encode())})
    assert find(info._look_at_kernel(packed), "timer ticks").value == "250 Hz"


def test_a_damaged_configuration_is_passed_over(root):
    """The file beside the kernel is taken instead."""
    release = platform.release()
    place = root({"proc/config.gz": b"\x1f\x8bnothing", f"boot/config-{release}": "CONFIG_HZ=100"})
    assert find(info._look_at_kernel(place), "timer ticks").value == "100 Hz"
    whole = gzip.compress(b"CONFIG_HZ=250\n" * 100)
    for damaged in (whole[:-12], whole[:12] + b"\xff" * 20 + whole[32:]):
        place = root({"proc/config.gz": damaged})
        assert find(info._look_at_kernel(place), "timer ticks").value == "100 Hz"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"sys/class/dmi/id/sys_vendor": "QEMU", "sys/class/dmi/id/product_name": "pc"}, "QEMU pc"),
        ({"proc/cpuinfo": "flags\t\t: fpu hypervisor sse\n"}, "yes (reported by the processor)"),
        (
            {"proc/cpuinfo": "flags : hypervisor\n", "sys/class/dmi/id/sys_vendor": "Acme"},
            "Acme",
        ),
        ({"sys/hypervisor/type": "xen"}, "xen"),
        ({"sys/class/dmi/id/sys_vendor": "Dell Inc.", "proc/cpuinfo": "flags : fpu"}, ""),
        ({}, ""),
    ],
)
def test_virtual_machines(root, files, expected):
    assert info.find_virtual_machine(root(files)) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({".dockerenv": ""}, "Docker"),
        ({"run/.containerenv": ""}, "Podman"),
        ({"proc/1/environ": "A=1\0container=lxc\0B=2"}, "lxc"),
        ({"proc/1/environ": "container=lxc\0"}, "lxc"),
        ({"proc/1/environ": "my_container=lxc\0"}, ""),
        ({}, ""),
    ],
)
def test_containers(root, files, expected):
    assert info.find_container(root(files)) == expected


def test_time_that_the_host_took_is_a_share_of_all(root):
    line = "cpu  10 0 20 60 0 0 0 10 0 0\ncpu0 1 1 1 1 1 1 1 1\n"
    assert info._read_stolen(root({"proc/stat": line})) == pytest.approx(0.1)
    assert info._read_stolen(root({"proc/stat": "intr 5\n"})) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3\n", [3]), ("2-4\n", [2, 3, 4]), ("1,3-4,7\n", [1, 3, 4, 7]), ("\n", []), ("", [])],
)
def test_isolated_processors(root, text, expected):
    assert info.find_isolated(root({"sys/devices/system/cpu/isolated": text})) == expected


def test_processors_that_slow_down_are_reported(root):
    cpus = "sys/devices/system/cpu"
    files = {f"{cpus}/cpu{k}/cpufreq/scaling_governor": "performance" for k in range(2)}
    fact = find(info._look_at_processors(root(files)), "frequency governor")
    assert fact.value == "performance" and not fact.advice
    files[f"{cpus}/cpu1/cpufreq/scaling_governor"] = "powersave"
    fact = find(info._look_at_processors(root(files)), "frequency governor")
    assert fact.value == "performance, powersave" and "cpupower" in fact.advice


@pytest.mark.parametrize(("load", "told"), [(0.1, False), (0.9, True)])
def test_a_busy_machine_is_reported(root, load, told):
    text = f"{load * (os.cpu_count() or 1):.2f} 0.1 0.1 1/100 999\n"
    fact = find(info._look_at_processors(root({"proc/loadavg": text})), "load now")
    assert bool(fact.advice) == told


@linux
@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("950000", "95 % of each 1 s"),
        ("-1", "unlimited: a thread that never waits blocks the machine"),
    ],
)
def test_time_for_real_time_threads(root, runtime, expected):
    kernel = "proc/sys/kernel"
    place = root(
        {f"{kernel}/sched_rt_runtime_us": runtime, f"{kernel}/sched_rt_period_us": "1000000"}
    )
    assert find(info._look_at_limits(place), "time for real-time threads").value == expected


def test_serial_ports_that_are_only_names_are_left_out(root):
    place = root({
        "dev/ttyUSB0": "", "dev/ttyS0": "", "dev/ttyS1": "", "dev/tty1": "",
        "sys/class/tty/ttyS0/type": "4\n", "sys/class/tty/ttyS1/type": "0\n",
    })  # fmt: skip
    names = sorted(path.name for path in info.find_serial_devices(place))
    assert names == ["ttyS0", "ttyUSB0"]


@linux
def test_can_interfaces_are_found_by_their_type(root):
    place = root({"sys/class/net/can0/type": "280\n", "sys/class/net/eth0/type": "1\n"})
    facts = list(info._look_at_devices(place))
    assert find(facts, "CAN").value == "can0" and find(facts, "serial").value == "none"


@pytest.mark.engine
def test_on_an_empty_machine_everything_is_reported_that_can_be(tmp_path):
    facts = info.examine(tmp_path)
    assert {fact.topic for fact in facts} >= {"system", "packages", "engine"}
    assert all(fact.value for fact in facts)
    assert len({(fact.topic, fact.name) for fact in facts}) == len(facts)


def test_a_real_time_thread_runs_where_it_may():
    if hasattr(os, "sched_getaffinity") and not info.find_isolated():
        assert info.choose_processor() == max(os.sched_getaffinity(0))
    assert 0 <= info.choose_processor() < (os.cpu_count() or 1)
