"""Options of a coupling."""

import pytest

from biella import DiagramError
from biella.scheduler.compile.coupling._coupling_options import METHODS, Coupling
from biella.scheduler.engine._library import contract


def test_every_method_of_the_engine_has_a_name():
    assert sorted(METHODS.values()) == list(range(contract.BL_COUPLING_METHODS))


@pytest.mark.parametrize("method", METHODS)
def test_only_two_methods_iterate(method):
    assert Coupling(method).is_iterated == (method in ("fixed-point", "newton"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newtn"}, "unknown coupling method `newtn`. Did you mean `newton`"),
        ({"extrapolation": 3}, "extrapolation must be 0, 1 or 2"),
        ({"tolerance": 0.0}, "tolerance must be between 0 and 1"),
        ({"tolerance": 1.0}, "tolerance must be between 0 and 1"),
        ({"tolerance": float("nan")}, "tolerance must be between 0 and 1"),
        ({"iterations": 0}, "iterations must be between 1 and 1000"),
        ({"iterations": 1001}, "iterations must be between 1 and 1000"),
        ({"iterations": 2.0}, "iterations must be between 1 and 1000"),
        ({"halvings": 11}, "halvings must be between 0 and 10"),
        ({"halvings": -1}, "halvings must be between 0 and 10"),
        ({"coupling_tolerance": -1e-3}, "coupling_tolerance must be between 0 and 1, such as 1e-4"),
        ({"coupling_tolerance": 1.0}, "coupling_tolerance must be between 0 and 1"),
        ({"coupling_tolerance": float("nan")}, "coupling_tolerance must be between 0 and 1"),
        ({"coupling_tolerance": "1e-3"}, "coupling_tolerance must be between 0 and 1"),
        ({"coupling_tolerance": True}, "coupling_tolerance must be between 0 and 1"),
        ({"coupling_tolerance": 1e-3, "halvings": 0}, "but halvings=0 does not allow this"),
        (
            {"method": "newton", "coupling_tolerance": 1e-9},
            r"must be greater than the tolerance of the iteration \(1e-08\).*tolerance=1e-11",
        ),
        ({"failure": "ignore"}, "failure must be 'warn' or 'error'"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(DiagramError, match=message):
        Coupling(**options)
