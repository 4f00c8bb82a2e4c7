"""Names of 0.1 are found with a warning, or are errors that name the present one."""

from __future__ import annotations

import importlib

import pytest

from biella import BiellaDeprecationWarning, BiellaError, Diagram, cli, simulate
from biella._deprecation import renamed_keywords, renamed_options
from biella._renamed import (
    RENAMED_NAMES,
    RENAMED_OPTIONS,
    RENAMED_PUBLIC,
    renamed_name,
)
from biella.blocks import Constant
from biella.blocks.multibody.mechanisms import slider_crank
from biella.errors import suggest

CLASSES = [
    (module, old, new) for module, names in RENAMED_PUBLIC.items() for old, new in names.items()
]


@pytest.mark.parametrize(("module", "old", "new"), CLASSES)
def test_an_old_class_is_found_with_a_warning(module, old, new):
    package = importlib.import_module(module)
    with pytest.warns(BiellaDeprecationWarning, match=f"{old}` is deprecated.*{new}"):
        found = getattr(package, old)
    assert found is getattr(package, new)
    assert old not in package.__all__


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Foo'"):
        importlib.import_module("biella.blocks").Foo  # noqa: B018


def test_an_old_mode_is_accepted_with_a_warning():
    with pytest.warns(
        BiellaDeprecationWarning, match="mode='own_step'` is deprecated.*mode='internal'"
    ):
        block = slider_crank().block(mode="own_step")  # type: ignore[arg-type]
    assert block.has_internal_solver


@pytest.mark.engine
def test_the_old_keyword_of_couplings_is_accepted_with_a_warning():
    with pytest.warns(BiellaDeprecationWarning, match="`hold=` of .*: use `extrapolation=`"):
        d = Diagram("d", step=1e-3, hold=1)  # type: ignore[call-arg]
    assert d.coupling.extrapolation == 1
    d.add(Constant(1.0), name="one")
    with pytest.warns(
        BiellaDeprecationWarning, match="`hold=` of simulate.*: use `extrapolation=`"
    ):
        simulate(d, 1e-3, hold=0, progress=False)  # type: ignore[call-arg]


def test_both_names_of_a_keyword_at_once_are_an_error():
    @renamed_keywords(old="new")
    def function(new: int = 0) -> int:
        return new

    with pytest.raises(TypeError, match="old"):
        function(old=1, new=2)  # type: ignore[call-arg]
    with pytest.warns(BiellaDeprecationWarning):
        assert function(old=3) == 3  # type: ignore[call-arg]


def test_old_options_of_the_command_line_are_replaced():
    said: list[str] = []
    assert renamed_options(["run-realtime", "--grace=5", "--tolerated", "3"], said.append) == [
        "run-realtime", "--warmup-ticks=5", "--max-overruns", "3"
    ]  # fmt: skip
    assert len(said) == 2
    parser = cli._parser()
    for new in RENAMED_OPTIONS.values():
        parser.parse_args(["run-realtime", "file.py", new, "1"])


def test_suggest_names_the_present_name():
    for old, new in RENAMED_NAMES.items():
        assert suggest(f"a.{old}", [f"a.{new}", "other"]) == f" Since 0.2 it is `a.{new}`."
    assert renamed_name("grace", ["other"]) == ""


def test_an_old_parameter_is_an_error_with_the_present_name():
    d = Diagram("d", step=1e-3)
    d.add(slider_crank().block(outputs=["crank.pin.position"]), name="plant")
    with pytest.raises(BiellaError, match=r"Since 0.2 it is `plant\.crank\.pin\.location`"):
        simulate(d, 1e-3, parameters={"plant.crank.pin.place": [1.0, 0.0]}, progress=False)
