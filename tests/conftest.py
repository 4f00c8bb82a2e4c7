"""Random examples are the same in every run; `pytest --hypothesis-profile=default` draws others."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
