"""Settings of all tests: repeatable random examples, default signal actions, a time limit, garbage.

Random examples are the same in every run; `pytest --hypothesis-profile=random` draws others.
"""

import ctypes
import faulthandler
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable

import pytest
from hypothesis import settings

# Before numpy is loaded, and for the processes that tests start. The matrices of tests are small,
# and threads of OpenBLAS spin while they wait for each other: of several processes on two
# processors that takes more time than the tests themselves.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from biella.scheduler.engine.build import BuildError, find_compiler

LONG = 1800.0
"""Time limit in s of tests that are marked slow or soak."""


def _restore_signals():
    """Give every signal its default action, and block none.

    A process inherits what its parent ignores and blocks: SIGHUP under nohup and in services,
    SIGINT in the background of a script, SIGCHLD of some supervisors. Tests send signals, to this
    process and to those that they start. Python itself ignores SIGPIPE and SIGXFSZ.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    kept = {getattr(signal, name, None) for name in ("SIGPIPE", "SIGXFSZ")}
    for number in signal.valid_signals() - kept:
        if signal.getsignal(number) is signal.SIG_IGN:
            interrupt = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if interrupt else signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


_restore_signals()

settings.register_profile("random", deadline=None)
settings.register_profile(
    "repeatable", settings.get_profile("random"), derandomize=True, database=None
)
settings.load_profile("repeatable")

_stderr = pytest.StashKey[int]()


def pytest_configure(config):
    assert sys.__stderr__ is not None
    config.stash[_stderr] = os.dup(sys.__stderr__.fileno())


def pytest_unconfigure(config):
    os.close(config.stash[_stderr])


def pytest_collection_modifyitems(items):
    for item in items:
        long = item.get_closest_marker("slow") or item.get_closest_marker("soak")
        if long and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep what is collected, some 600,000 objects, from the garbage collector.

    It would look at all of them again and again, during the collection and during the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """End the process where a test hangs in C, beyond the reach of pytest-timeout.

    pytest-timeout fails a test by a signal, which Python handles only between its own
    instructions. The watchdog of faulthandler is a thread in C: it shows where every thread is,
    and ends the process; pytest-xdist reports the test as crashed and goes on.
    """
    config, marker = item.config, item.get_closest_marker("timeout")
    if not config.pluginmanager.has_plugin("timeout") or config.getoption("usepdb"):
        return (yield)
    limit = marker.args[0] if marker else float(config.getini("timeout") or 0)
    if not limit or config.getoption("timeout") == 0:
        return (yield)
    faulthandler.dump_traceback_later(1.5 * limit, exit=True, file=item.config.stash[_stderr])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def c_compiler():
    """The C compiler of this machine; tests that need one are skipped where there is none."""
    try:
        return find_compiler()
    except BuildError:
        pytest.skip("needs a C compiler")


@pytest.fixture(scope="session")
def allocated() -> Callable[[], int]:
    """What malloc of this process has given out, in bytes."""
    numbers = (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost",
    )  # fmt: skip

    class Mallinfo(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in numbers]

    read = getattr(ctypes.CDLL(None), "mallinfo2", None) if os.name == "posix" else None
    if read is None:
        pytest.skip("needs mallinfo2 of glibc 2.33")
    read.restype = Mallinfo

    def count() -> int:
        gc.collect()
        info = read()
        return int(info.uordblks + info.hblkhd)

    return count
