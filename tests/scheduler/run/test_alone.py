"""A block alone, as analyses use it."""

from __future__ import annotations

import pytest

from biella._services import find_service
from biella.blocks import PID, Gain, Integrator
from biella.errors import DiagramError
from biella.scheduler.run._alone import compile_alone


def test_inputs_that_are_named_can_be_set() -> None:
    with compile_alone(Gain(3.0), "k", {"u"}).instantiate() as instance:
        instance.set("u", 2.0)
        assert instance.get("k") == 6.0


def test_inputs_that_are_not_named_have_their_defaults() -> None:
    model = compile_alone(PID(kp=2.0, period=1e-3), "pid", {"reference", "measurement"})
    assert list(model.inputs) == ["reference", "measurement"]
    assert len(model.blocks[0].inputs) > 2


def test_an_input_that_needs_a_value_is_asked_for() -> None:
    with pytest.raises(DiagramError, match=r"input `k\.u` is not connected"):
        compile_alone(Gain(3.0), "k")


def test_it_is_opened_before_it_is_initialized() -> None:
    with compile_alone(Integrator(2.0), "x", {"u"}).open() as instance:
        instance.start_at(4.0)
        instance.initialize()
        assert (instance.time, instance.get("x")) == (4.0, 2.0)


def test_blocks_find_it_by_name() -> None:
    assert find_service("compile_alone") is compile_alone
