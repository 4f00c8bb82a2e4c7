"""Damaged files and texts: each is read or refused with a `BiellaError`, never anything else.

The long campaigns are `tests/fuzz/run fuzz SECONDS rig` and so on; these are their first inputs.
"""

import random

import pytest
from fuzz_files import TARGETS, check, close_studio, make_seeds, mutate


@pytest.fixture(scope="module")
def seeds():
    yield make_seeds()
    close_studio()


def test_every_target_has_a_seed_that_it_reads(seeds):
    assert seeds.keys() == TARGETS.keys()
    for target, several in seeds.items():
        assert [check(target, data) for data in several] == ["read"] * len(several)


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_input_is_read_or_refused(seeds, target):
    refused = 0
    for number in range(120):
        rng = random.Random(number)
        data = mutate(rng.choice(seeds[target]), rng)
        try:
            refused += check(target, data) == "refused"
        except BaseException as error:
            pytest.fail(f"mutation {number}: {type(error).__name__}: {error}")
    assert refused > 10, "the mutations damage nothing that is checked"


def test_another_exception_is_a_finding(monkeypatch):
    def fail(data: bytes) -> None:
        raise KeyError("missing")

    monkeypatch.setitem(TARGETS, "rig", fail)
    with pytest.raises(KeyError):
        check("rig", b"")
