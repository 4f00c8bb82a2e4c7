"""Random examples are the same in every run; `pytest --hypothesis-profile=random` draws others."""

import signal
import threading

import pytest
from hypothesis import settings

from biella.scheduler.build import BuildError, find_compiler

# In the background of a script Ctrl-C is ignored, by all that starts there; but tests press it.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("random", deadline=None)
settings.register_profile(
    "repeatable", settings.get_profile("random"), derandomize=True, database=None
)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def c_compiler():
    """The C compiler of this machine; what wants one is skipped where there is none."""
    try:
        return find_compiler()
    except BuildError:
        pytest.skip("needs a C compiler")
