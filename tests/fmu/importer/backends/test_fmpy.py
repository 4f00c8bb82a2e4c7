"""FMUs that FMPy runs: FMI 3 and model exchange."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import fmpy
import numpy as np
import pytest
from specimen import TROUBLE, make_exchange, make_fmi1, make_fmi3, make_specimen

from biella import (
    BiellaError,
    BlockError,
    Diagram,
    Fmu,
    simulate,
)
from biella.blocks import (
    Convert,
    Step,
)
from biella.errors import BiellaWarning, FmuError

from ..runs import alone, fail

pytestmark = pytest.mark.engine


def test_fmpy_itself_gives_the_same_trajectory(specimen):
    outside = fmpy.simulate_fmu(
        str(specimen), stop_time=0.1, output_interval=0.01, output=["y", "s"]
    )
    inside = alone(specimen)
    assert np.allclose(outside["y"], inside["f.y"], rtol=0, atol=1e-15)


def test_without_fmpy_the_message_says_what_to_install(specimen):
    code = f"""
import sys
sys.modules["fmpy"] = None
import biella
try:
    biella.Fmu({str(specimen)!r})
except biella.BiellaError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert "requires FMPy: install it with `pip install fmpy`" in done.stdout


def test_what_only_fmpy_runs_is_said(tmp_path):
    xml = (
        '<fmiModelDescription fmiVersion="1.0" modelName="s" modelIdentifier="s" guid="1">'
        "<ModelVariables/><Implementation><CoSimulation_StandAlone><Capabilities/>"
        "</CoSimulation_StandAlone></Implementation></fmiModelDescription>"
    )
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    with pytest.raises(FmuError, match=r"s.fmu is FMI 1.0: .* Use backend='fmpy'"):
        Fmu(path, validate=False)


def test_model_exchange_through_fmpy_follows_the_closed_form(tmp_path):
    """x' = u - x with u = 0, then 2 from t = 1; x jumps up by 1 at 0.25 and where it falls to 0.6.

    x = e^-t, then (1 + e^0.25) e^-t, which is 0.6 at t1 = ln((1 + e^0.25) / 0.6) > 1, so the step
    of u comes first. With a second run at u = 0 the state event comes at t1.
    """
    path = make_exchange(tmp_path / "exchange.fmu")
    d = Diagram("exchange", step=0.01)
    f = d.add(Fmu(path, backend="fmpy", tolerance=1e-9), name="f")
    d.connect(d.add(Step(at=1.0, to=2.0), name="u"), f)
    r = simulate(d, 2.0)
    grown = 1 + np.exp(0.25)
    exact = np.where(r.t < 0.2499, np.exp(-r.t), grown * np.exp(-r.t))
    after = 2 + (grown * np.exp(-1.0) - 2) * np.exp(1.0 - r.t)
    exact = np.where(r.t <= 1.0, exact, after)
    assert r["f.x"] == pytest.approx(exact, abs=1e-6)
    assert set(r["f.count"]) == {0.0}

    d = Diagram("exchange", step=0.01)
    d.add(Fmu(path, backend="fmpy", tolerance=1e-9), name="f")
    r = simulate(d, 2.0)
    first = np.log(grown / 0.6)
    assert r["f.count"][-1] == 2.0
    assert r["f.x"][-1] == pytest.approx(1.6 * np.exp(first - 2.0), abs=1e-6)
    assert np.all(r["f.count"][r.t < first] == 0.0)


CHOSEN: dict[str, Any] = {"backend": "fmpy", "inputs": ["n", "small"], "outputs": ["y"]}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    return make_fmi3(tmp_path_factory.mktemp("three") / "three.fmu")


def test_fmi3_may_end_the_run_and_the_last_sample_is_kept(three):
    result = alone(three, **CHOSEN, parameters={"ends": 0.05})
    assert "it requested the end of the simulation at t = 0.05" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.05) and result["f.y"][-1] == 5.0
    result = alone(three, **CHOSEN, parameters={"ends": 0.055})
    assert "it requested the end of the simulation at t = 0.055" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.05)


def test_a_step_that_returns_early_is_completed(three):
    """Two steps of 5 ms make one of 10 ms."""
    result = alone(three, **CHOSEN, parameters={"early": True})
    assert result["f.y"].tolist() == list(range(0, 22, 2))


def test_integers_of_64_bits_do_not_wrap(three):
    result = alone(three, 0.03, **CHOSEN, parameters={"n": 2**52})
    assert result["f.y"][:3].tolist() == [0.0, 2.0**52, 2.0**53]
    with pytest.warns(
        BiellaWarning, match=r"`y` of the FMU `three.fmu` is 27021597764222982, whic"
    ):
        alone(three, 0.04, **CHOSEN, parameters={"n": 2**53 // 2 * 2 + 2, "small": 1})
    for name, value, message in (
        ("n", 2**63, "`n` cannot be 9.2233720368547758e\\+18: the range of Int64"),
        ("n", 2**53 + 1, "`n` cannot be 9007199254740993: .* exactly only up to 2\\^53"),
        ("n", 10**400, "`n` is of type Int64, got 1000"),
        ("n", float("inf"), "`n` is of type Int64, got inf"),
        ("small", 128, "`small` cannot be 128: the range of Int8 is -128 to 127"),
        ("small", -129, "`small` cannot be -129"),
    ):
        with pytest.raises(FmuError, match=message):
            Fmu(three, **CHOSEN, parameters={name: value})
    d = Diagram("small", step=0.01)
    f = d.add(Fmu(three, **CHOSEN), name="f")
    n = d.add(Convert("integer"), name="n")
    d.connect(d.add(Step(at=0.03, to=300.0), name="s"), n)
    d.connect(n, f["small"])
    with pytest.raises(BlockError, match=r"`small` cannot be 300: the range of Int8"):
        simulate(d, 0.1)


@pytest.mark.parametrize("isolate", [False, True])
def test_fmi1_follows_the_closed_form(tmp_path, isolate):
    """x' = k u - x by Euler's method: x = 3 (1 - 0.99^n) for k u = 3, n counts where b is true."""
    path = make_fmi1(tmp_path / "one.fmu")
    d = Diagram("one", step=0.01)
    given: dict[str, Any] = {"k": 1.5, "name": "first"}
    f = d.add(Fmu(path, backend="fmpy", isolate=isolate, parameters=given), name="f")
    d.connect(d.add(Step(at=-1.0, to=2.0, unit="m"), name="u"), f["u"])
    on = d.add(Convert("boolean"), name="on")
    d.connect(d.add(Step(at=0.045, to=1.0), name="late"), on)
    d.connect(on, f["b"])
    r = simulate(d, 0.1)
    assert r["f.y"] == pytest.approx(3.0 * (1.0 - 0.99 ** np.arange(11)), abs=1e-14)
    assert r["f.n"].tolist() == [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5]


def test_fmi1_fails_with_its_name(tmp_path):
    path = make_fmi1(tmp_path / "one.fmu")
    with pytest.raises(FmuError, match=r"one.fmu is FMI 1.0: .*Use backend='fmpy'"):
        Fmu(path)
    with pytest.raises(BlockError, match=r"the FMU `one.fmu`, run by FMPy: .*DoStep failed"):
        alone(path, backend="fmpy", parameters={"ends": 0.05})


def test_fmi1_cannot_repeat_a_step(tmp_path):
    """It has no functions for states."""
    path = make_fmi1(tmp_path / "one.fmu")
    block = Fmu(path, backend="fmpy")
    assert not block.can_roll_back
    d = Diagram("one", step=0.01)
    d.add(block, name="f")
    half = simulate(d, 0.1, keep_state=True)
    with pytest.raises(BiellaError, match=r"the FMU `one.fmu` cannot serialize its state"):
        simulate(d, 0.2, checkpoint=half.checkpoint)


@pytest.mark.parametrize(
    ("trouble", "message", "end"),
    [
        ("error", r"fmi2DoStep failed with status 3 \(error\)", ["exit", "free"]),
        ("get_error", "fmi2GetReal failed with status 3", ["exit", "free"]),
        ("fatal", r"fmi2DoStep failed with status 4 \(fatal\)", ["enter", "exit"]),
    ],
)
def test_after_a_failure_only_allowed_functions_are_called(
    specimen, tmp_path, trouble, message, end
):
    """After an error an instance is only freed; after a fatal one nothing of it is called."""
    error, bad, good = fail(specimen, trouble, tmp_path, backend="fmpy")
    with pytest.raises(BlockError, match=message):
        raise error
    assert bad == end
    assert good == ["terminate", "free"]


def test_after_a_fatal_error_an_fmu_is_not_called_again(specimen, tmp_path):
    d = Diagram("again", step=0.01)
    diary = tmp_path / "diary"
    fatal = {"trouble": TROUBLE["fatal"], "at": 0.02, "diary": str(diary)}
    d.add(Fmu(specimen, parameters=fatal, backend="fmpy"), name="f")
    with d.compile().instantiate() as instance:
        with pytest.raises(BlockError, match="status 4"):
            instance.run(5)
        calls = diary.read_text()
        for again in (lambda: instance.run(1), instance.initialize):
            with pytest.raises(BlockError, match="had a fatal error before"):
                again()
    assert diary.read_text() == calls
