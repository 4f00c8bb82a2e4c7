"""Privileges are asked for one by one, refusals say what to do, and all is given back.

Refusals are real: a process of its own lowers its limits and gives up being root. Only a limit of
priorities between none and all, which nobody but root may set, is that of a made-up kernel.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from biella import BiellaError
from biella.scheduler.host._privileges import NAMES, Privileges, hold, read_grants

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform != "linux", reason="not on Linux"),
]
SOURCES = Path(__file__).parents[3]
# Sanitizers make mlockall do nothing.
LOCKS = "BIELLA_LIBRARY" not in os.environ
FLAGS = ["-std=c11", "-O2", "-D_GNU_SOURCE", "-DBL_STATIC", "-pthread", f"-I{SOURCES}"]

AS_NOBODY = """
import os, resource, sys
import numpy as np
from biella.scheduler.engine._library import library
from biella.scheduler.host._privileges import Privileges, hold
library()
resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


def state_of_thread():
    """Return all that privileges change of this thread and its process."""
    status = Path("/proc/thread-self/status").read_text()
    return (
        os.sched_getscheduler(0),
        os.sched_getparam(0).sched_priority,
        os.sched_getaffinity(0),
        Path(f"/proc/{threading.get_native_id()}/timerslack_ns").read_text(),
        locked_kib(status),
        len(os.listdir("/proc/self/fd")),
    )


def locked_kib(status=None):
    status = status or Path("/proc/self/status").read_text()
    return next(line.split()[1] for line in status.splitlines() if line.startswith("VmLck"))


def run_as_nobody(script):
    command = [sys.executable, "-c", AS_NOBODY + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_everything_is_given_back():
    cpu = min(os.sched_getaffinity(0))
    before = state_of_thread()
    for _ in range(3):
        with hold(Privileges.everything(cpu)) as grants:
            held = state_of_thread()
        assert [grant.name for grant in grants] == list(NAMES.values())
        assert state_of_thread() == before
    granted = {grant.name: grant.granted for grant in grants}
    assert granted["exact timers"] and granted["stack"] and granted["processor"]
    assert held[2] == {cpu}
    # The kernel has no timer slack for real-time threads.
    assert held[3].strip() in ("0", "1") and before[3].strip() not in ("0", "1")
    assert (held[:2] == (os.SCHED_FIFO, 80)) == granted["priority"]
    assert (int(held[4]) > 0) == (granted["locked memory"] and LOCKS)
    assert (held[5] > before[5]) == granted["full power"]


@pytest.mark.parametrize(
    "one", [{}, {"full_power": True}, {"lock_memory": True}, {"cpu": 0}, {"priority": 1}]
)
def test_each_is_given_back_by_itself(one):
    """A change of priority, for one, sets the timers to their default on the way."""
    before = state_of_thread()
    with hold(Privileges(**one)) as grants:
        changed = state_of_thread() != before
    assert changed and grants[0].granted
    assert state_of_thread() == before


def test_what_is_not_asked_for_stays_as_it_is():
    before = state_of_thread()
    with hold(Privileges(exact_timers=False)) as grants:
        assert grants == [] and state_of_thread() == before


def test_it_is_given_back_after_an_error():
    before = state_of_thread()
    with pytest.raises(ZeroDivisionError), hold(Privileges.everything(0)):
        1 / 0  # noqa: B018
    assert state_of_thread() == before


def test_refusals_say_why_and_what_to_do_and_the_rest_is_granted():
    lines = run_as_nobody("""
cpu = min(os.sched_getaffinity(0))
with hold(Privileges.everything(cpu)) as grants:
    assert np.ones(20_000_000).sum() == 2e7  # memory can still be had
    for grant in grants:
        print(grant)
""")
    told = {line.partition(":")[0]: line for line in lines}
    assert list(told) == list(NAMES.values())
    for name in ("exact timers", "stack", "processor"):
        assert "not granted" not in told[name]
    assert "Operation not permitted (EPERM)" in told["priority"]
    assert "priority here is 0 (`ulimit -r`)" in told["priority"]
    assert "`@realtime - rtprio 99` into /etc/security/limits.d/" in told["priority"]
    assert "at most 64 KiB may be locked (`ulimit -l`)" in told["locked memory"]
    assert "`@realtime - memlock unlimited`" in told["locked memory"]
    if "not granted" in told["full power"]:  # unless somebody gave everybody the device
        assert "EACCES" in told["full power"] or "ENOENT" in told["full power"]
        assert "/etc/udev/rules.d/" in told["full power"]


def test_a_processor_that_is_not_there_and_a_stack_that_is_too_large_are_refused():
    before = state_of_thread()
    with hold(Privileges(cpu=1023, stack=1 << 40)) as grants:
        cpu, stack = (next(g for g in grants if g.name == n) for n in ("processor", "stack"))
        assert state_of_thread()[2] == before[2]
    assert "EINVAL" in cpu.detail and not cpu.granted
    listed = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
    assert cpu.advice == f"Available: {listed}."
    assert "more than half of the remaining stack" in stack.detail and not stack.granted


def test_a_small_stack_is_not_overrun():
    found = []

    def work(size):
        with hold(Privileges(stack=size)) as grants:
            found.append(grants[-1].granted)

    former = threading.stack_size(256 * 1024)
    try:
        for size in (32 * 1024, 200 * 1024):
            thread = threading.Thread(target=work, args=(size,))
            thread.start()
            thread.join(60)
    finally:
        threading.stack_size(former)
    assert found == [True, False]


def test_memory_stays_locked_until_the_last_thread_gives_it_back():
    with hold(Privileges(lock_memory=True)) as grants:
        if not grants[-1].granted or not LOCKS:
            pytest.skip("memory cannot be locked here")
        with hold(Privileges(lock_memory=True)):
            pass
        assert int(locked_kib()) > 0
        block = np.ones(1_000_000)  # also what is allocated now
        assert int(locked_kib()) * 1024 > block.nbytes
    assert int(locked_kib()) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"priority": 0}, "priority must be 1 to 99, got 0"),
        ({"priority": 100}, "priority must be 1 to 99, got 100"),
        ({"cpu": -1}, "got -1"),
        ({"stack": -1}, "-1 bytes of stack"),
    ],
)
def test_what_cannot_be_asked_for(arguments, message):
    with pytest.raises(BiellaError, match=message):
        Privileges(**arguments)


def compile_c(target, *arguments):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    subprocess.run(
        [compiler, *FLAGS, *map(str, arguments), "-o", str(target)], check=True, timeout=300
    )


def test_memory_is_not_locked_where_a_limit_would_make_later_allocations_fail(tmp_path):
    """The process is smaller than its limit: mlockall would succeed, and malloc fail later."""
    driver = tmp_path / "driver.c"
    driver.write_text("""
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "scheduler/host/privileges.h"

int main(void) {
    const struct rlimit limit = {8000000, 8000000};
    bl_privileges p = {.asked = 1u << BL_MEMORY};
    if (setrlimit(RLIMIT_MEMLOCK, &limit)) return 2;
    if (geteuid() == 0 && setuid(65534)) return 3;
    bl_privileges_take(&p);
    void *memory = malloc(64000000);
    printf("%u %d %d ", p.granted, p.errors[BL_MEMORY], memory != NULL);
    free(memory);
    printf("%d", mlockall(MCL_CURRENT | MCL_FUTURE) == 0 && malloc(64000000) == NULL);
    return 0;
}
""")
    program = tmp_path / "driver"
    compile_c(program, driver, SOURCES / "scheduler/host/privileges.c")
    # Without a sanitizer that is preloaded.
    done = subprocess.run(
        [program], capture_output=True, text=True, check=True, env={}, timeout=300
    )
    granted, error, allocated, fails_later = done.stdout.split()
    assert (granted, int(error), allocated) == ("0", errno.ENOMEM, "1")
    assert fails_later == "1"  # so it would have been, had it been locked


def test_a_limit_below_the_priority_asked_for_gives_the_limit(tmp_path):
    kernel = tmp_path / "kernel.c"
    kernel.write_text("""
#include <errno.h>
#include <pthread.h>

int policies[8], priorities[8], calls;

int made_up_set(pthread_t thread, int policy, const struct sched_param *p) {
    (void)thread;
    policies[calls] = policy, priorities[calls++] = p->sched_priority;
    return p->sched_priority > 20 ? EPERM : 0;
}

/* The two limits have a type of their own in each C library. */
int made_up_limit(int which, unsigned long *limits) {
    (void)which;
    limits[0] = limits[1] = 20;
    return 0;
}
""")
    made_up = ["-Dpthread_setschedparam=made_up_set", "-Dgetrlimit=made_up_limit"]
    library = tmp_path / "kernel.so"
    compile_c(
        library, "-shared", "-fPIC", *made_up, kernel, SOURCES / "scheduler/host/privileges.c"
    )
    lib = ctypes.CDLL(str(library))
    struct = Privileges(exact_timers=False, priority=80).as_struct()
    lib.bl_privileges_take(ctypes.byref(struct))
    lib.bl_privileges_return(ctypes.byref(struct))
    lib.bl_privileges_return(ctypes.byref(struct))  # nothing is given back twice
    (grant,) = read_grants(struct)
    assert grant.granted and grant.detail == "SCHED_FIFO, priority 20 in place of 80"
    assert "rtprio 99" in grant.advice
    former = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
    count = ctypes.c_int.in_dll(lib, "calls").value
    policies = list((ctypes.c_int * 8).in_dll(lib, "policies"))[:count]
    priorities = list((ctypes.c_int * 8).in_dll(lib, "priorities"))[:count]
    assert list(zip(policies, priorities, strict=True)) == [
        (os.SCHED_FIFO, 80),
        (os.SCHED_FIFO, 20),
        former,
    ]
