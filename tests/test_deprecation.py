"""How a name is deprecated: it works, and warns where it is used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import biella
import biella.blocks
import biella.results
from biella import BiellaDeprecationWarning, Diagram, Plan
from biella._deprecation import REMOVAL, deprecated_alias


def test_a_deprecated_alias_warns_where_it_is_called_and_passes_all_on():
    def new(a: int, *, b: int = 1) -> int:
        return 10 * a + b

    old = deprecated_alias(new, "package.old", "package.new")
    with pytest.warns(BiellaDeprecationWarning) as caught:
        assert old(2, b=3) == 23
    (warning,) = caught
    assert str(warning.message) == (
        f"`package.old` is deprecated and will be removed in {REMOVAL}: use `package.new`."
    )
    assert warning.filename == __file__
    assert old.__name__ == "old" and "package.new" in (old.__doc__ or "")


def test_deprecations_are_shown_by_default():
    """Python hides a DeprecationWarning outside of ``__main__``; users must see ours."""
    code = "from biella._deprecation import warn_deprecated\nwarn_deprecated('`a`', '`b`')"
    made = subprocess.run(
        [sys.executable, "-c", f"import types\n{code}"], capture_output=True, timeout=300
    )
    assert b"BiellaDeprecationWarning: `a` is deprecated" in made.stderr
    assert not issubclass(BiellaDeprecationWarning, DeprecationWarning)


def test_a_moved_name_is_found_with_a_warning_where_it_is_used():
    with pytest.warns(
        BiellaDeprecationWarning, match=r"from biella.blocks.authoring import Na"
    ) as w:
        block = biella.blocks.NativeBlock  # type: ignore[attr-defined]
    assert block is importlib.import_module("biella.blocks.authoring").NativeBlock
    assert w[0].filename == __file__
    assert "NativeBlock" not in dir(biella.blocks)


@pytest.mark.engine
def test_old_names_of_runs_still_work_with_a_warning():
    d = Diagram("clock", start_time=2.0)
    with pytest.warns(BiellaDeprecationWarning, match=r"use `Diagram\(start_time=…\)`"):
        assert Diagram("old", start=2.0).start_time == 2.0
    with pytest.warns(BiellaDeprecationWarning, match=r"use `Diagram.start_time`"):
        assert d.start == 2.0
    d.add(biella.blocks.Constant(1.0), name="one")
    plan = d.compile()
    assert isinstance(plan, Plan)
    with (
        pytest.warns(BiellaDeprecationWarning, match=r"use `Plan.instantiate`"),
        plan.start() as instance,
    ):
        assert instance.time == 2.0
    with pytest.warns(BiellaDeprecationWarning, match=r"use `biella.run_realtime`"):
        result = biella.start(d, until=2.01, clock="free").wait()
    assert result.t[0] == 2.0
