"""Random examples are the same in every run; `pytest --hypothesis-profile=random` draws others."""

import pytest
from hypothesis import settings

from biella.scheduler.build import BuildError, find_compiler

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
