"""Solvers, steps and settings of a diagram."""

import numpy as np
import pytest

from biella import Diagram, DiagramError
from biella.blocks import Constant
from biella.scheduler.compile.diagram._solver_options import SOLVERS, Settings, check_step
from biella.scheduler.engine._library import contract


def test_every_solver_of_the_engine_has_a_name():
    assert sorted(SOLVERS.values()) == list(range(contract.BL_SOLVER_COUNT))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_plan_holds_the_number_of_its_solver(solver):
    d = Diagram("one", step=1e-3, solver=solver)
    d.add(Constant(1.0))
    sizes = np.frombuffer(d.compile().sections["SIZE"], "<i8")
    assert sizes[contract.SIZE_SOLVER] == SOLVERS[solver]


@pytest.mark.parametrize("step", [1e-3, 1, np.float64(0.5), 1e-9])
def test_a_step_is_seconds(step):
    found = check_step(step)
    assert type(found) is float and found == step


@pytest.mark.parametrize("step", [0, -1e-3, float("nan"), float("inf"), 1e12, "1e-3", None, [1.0]])
def test_what_is_no_step_is_refused(step):
    with pytest.raises(DiagramError, match="the step must be a positive time in s, got "):
        check_step(step)


def test_settings_cannot_be_changed_and_have_defaults():
    settings = Settings("name", 1e-3, "rk4")
    assert settings.coupling.method == "jacobi" and settings.solves_loops
    with pytest.raises(AttributeError):
        settings.step = 1.0  # type: ignore[misc]
