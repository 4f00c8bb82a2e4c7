"""Model-exchange FMUs in a separate process: the same bits as without, and failures by name."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from exchange_models import TROUBLE, make_model
from specimen import make_specimen

from biella import Diagram, Fmu, simulate
from biella.blocks import Expression, Integrator
from biella.errors import BlockError
from biella.fmu.importer.backends._isolated import IsolatedSession
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine


def assert_same(make, until, signals, how=True):
    """Run a diagram with and without isolation, and compare bits and events."""
    alone, inside = (
        simulate(make(isolate), until=until, error_estimate=False) for isolate in (how, False)
    )
    for name in signals:
        np.testing.assert_array_equal(alone[name], inside[name])
    np.testing.assert_array_equal(alone.events.times(), inside.events.times())
    return alone


@pytest.mark.parametrize("version", [2, 3])
def test_state_events_have_the_same_bits(tmp_path, version):
    path = make_model(tmp_path / "ball.fmu", "BALL", version)

    def make(isolate):
        d = Diagram("ball", step=0.01, solver="dopri5", tolerance=1e-8)
        d.add(Fmu(path, isolate=isolate), name="ball")
        return d

    how = "strict" if version == 3 and sys.platform == "linux" else True
    result = assert_same(make, 1.2, ["ball.h", "ball.v", "ball.bounces"], how)
    assert result["ball.bounces"][-1] == 2
    assert ("isolation" in result.info) == (how == "strict")


def test_an_answer_of_another_size_is_an_error(tmp_path, monkeypatch):
    """What an FMU that took over its process may send is not written beyond its place."""
    path = make_model(tmp_path / "ball.fmu", "BALL", 3)
    d = Diagram("ball", step=0.01)
    d.add(Fmu(path, isolate=True), name="ball")
    call = IsolatedSession._call

    def lengthen(self, op, *arguments, **more):
        return call(self, op, *arguments, **more) + b"\0" * (800 if op == b"X" else 0)

    monkeypatch.setattr(IsolatedSession, "_call", lengthen)
    with pytest.raises(BlockError, match=r"ball.* sent an answer of \d+ bytes"):
        simulate(d, until=0.1, error_estimate=False)


@pytest.mark.parametrize("status", [contract.BL_STOP, contract.BL_ERROR_INTERRUPT, 99, -99])
def test_an_answer_with_a_status_that_no_worker_sends_is_an_error(tmp_path, monkeypatch, status):
    path = make_model(tmp_path / "ball.fmu", "BALL", 3)
    d = Diagram("ball", step=0.01)
    d.add(Fmu(path, isolate=True), name="ball")
    call = IsolatedSession._call

    def change(self, op, *arguments, **more):
        answer = call(self, op, *arguments, **more)
        return answer if op != b"X" else bytes([status & 0xFF]) + answer[1:]

    monkeypatch.setattr(IsolatedSession, "_call", change)
    with pytest.raises(BlockError, match=rf"ball.* sent an answer with the status {status}"):
        simulate(d, until=0.1, error_estimate=False)


def test_inputs_steps_and_time_events_have_the_same_bits(tmp_path):
    """An input that moves within steps is no event; completed steps have its value at their end."""
    path = make_model(tmp_path / "recorder.fmu", "RECORDER", 3)

    def make(isolate):
        d = Diagram("recorder", step=0.1, solver="rk4")
        d.add(Integrator(1.0), name="v")
        d.connect(d["v"], d["v"])
        d.add(Fmu(path, isolate=isolate, parameters={"period": 0.37}), name="fmu")
        d.connect(d["v"], d["fmu"]["u"])
        return d

    assert_same(make, 1.0, [f"fmu.{name}" for name in ("x", "steps", "repeats", "at", "last_u")])


@pytest.mark.slow
def test_steps_that_a_coupling_repeats_are_rolled_back(tmp_path):
    path, slave = make_model(tmp_path / "r.fmu", "RECORDER", 2), make_specimen(tmp_path / "s.fmu")

    def make(isolate):
        d = Diagram("coupled", step=0.1, solver="rk4", algebraic_loops="solve")
        d.add(Fmu(slave, inputs=["u"], outputs=["y"]), name="slave")
        d.add(Fmu(path, isolate=isolate), name="fmu")
        d.connect(d["slave"]["y"], d["fmu"]["u"])
        back = d.add(Expression("1 - 0.5*x", unit="m"), "back", x=d["fmu"]["x"])
        d.connect(back, d["slave"]["u"])
        d.couple("slave", method="newton", extrapolation=1)
        return d

    result = assert_same(make, 1.0, ["fmu.x", "fmu.steps", "fmu.last_x"])
    assert result["fmu.steps"][-1] == 10


@pytest.mark.slow
def test_a_saved_state_continues_in_another_process(tmp_path):
    path = make_model(tmp_path / "ball.fmu", "BALL", 3)

    def make(isolate):
        d = Diagram("ball", step=0.01, solver="rk4")
        d.add(Fmu(path, isolate=isolate), name="ball")
        return d

    kept = simulate(make(True), until=0.6, keep_state=True)
    rest = simulate(make(True), until=1.0, checkpoint=kept.checkpoint)
    whole = simulate(make(False), until=1.0)
    np.testing.assert_array_equal(rest["ball.h"], whole["ball.h"][-len(rest.t) :])


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("crashes", r"`odd\.fmu` crashed: its process was terminated by SIGABRT"),
        ("update_error", r"FMU `odd\.fmu`.*NewDiscreteStates returned fmi2Error"),
    ],
)
def test_a_failure_is_an_error_with_its_name(tmp_path, trouble, message):
    """The run has what was recorded until then."""
    path = make_model(tmp_path / "odd.fmu", "ODD", 2)
    d = Diagram("odd", step=0.1)
    given = {"trouble": TROUBLE[trouble], "at": 0.25}
    d.add(Fmu(path, isolate=True, parameters=given), name="odd")
    with pytest.raises(BlockError, match=message) as caught:
        simulate(d, until=1.0)
    assert caught.value.result is not None
    assert caught.value.result.t[-1] == pytest.approx(0.2)


def test_an_fmu_that_ends_the_run_ends_it(tmp_path):
    d = Diagram("odd", step=0.1)
    given = {"trouble": TROUBLE["ends"], "at": 0.3}
    path = make_model(tmp_path / "odd.fmu", "ODD", 3)
    d.add(Fmu(path, isolate=True, parameters=given), name="odd")
    result = simulate(d, until=1.0)
    assert "requested the end of the simulation" in result.info["stopped"]
    assert result.t[-1] <= 0.3 + 1e-9
