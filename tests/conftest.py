"""Random examples are the same in every run; `pytest --hypothesis-profile=random` draws others."""

from hypothesis import settings

settings.register_profile("random", deadline=None)
settings.register_profile(
    "repeatable", settings.get_profile("random"), derandomize=True, database=None
)
settings.load_profile("repeatable")
