"""FMUs that PythonFMU makes, run inside a Python process beside ours."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

from biella import BiellaWarning, BlockError, Diagram, Fmu, simulate
from biella.blocks import Convert, Integrator, Sine, Step

SOURCE = """
from pythonfmu import Boolean, Fmi2Causality, Fmi2Slave, Fmi2Variability, Integer, Real, String

class Lag(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.u, self.y, self.tau = 1.0, 0.0, 0.5
        self.register_variable(Real("u", causality=Fmi2Causality.input))
        self.register_variable(Real("y", causality=Fmi2Causality.output))
        self.register_variable(
            Real("tau", causality=Fmi2Causality.parameter, variability=Fmi2Variability.tunable)
        )

    def do_step(self, t, h):
        if self.tau <= 0:
            raise ValueError("tau must be positive")
        self.y += h * (self.u - self.y) / self.tau
        return True


class Odd(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.n, self.on, self.count, self.text, self.limit = 3, True, 0, "none", 1e9
        for kind, name in ((Integer, "n"), (Boolean, "on")):
            self.register_variable(kind(name, causality=Fmi2Causality.input))
        self.register_variable(Integer("count", causality=Fmi2Causality.output))
        self.register_variable(
            String("text", causality=Fmi2Causality.parameter, variability=Fmi2Variability.fixed)
        )
        self.register_variable(
            Real("limit", causality=Fmi2Causality.parameter, variability=Fmi2Variability.fixed)
        )
        if not kwargs["instance_name"].isidentifier():
            raise ValueError("no such instance")

    def exit_initialization_mode(self):
        self.count = len(self.text)

    def do_step(self, t, h):
        self.count += self.n if self.on else 0
        return t < self.limit
"""


@pytest.fixture(scope="module")
def lag(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pythonfmu")
    build(folder, "Lag")
    return folder / "Lag.fmu"


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pythonfmu")
    build(folder, "Odd")
    return folder / "Odd.fmu"


def build(folder, name):
    """PythonFMU takes the last class of a file."""
    first, *classes = SOURCE.split("class ")
    wanted = next(text for text in classes if text.startswith(name))
    (folder / f"{name.lower()}.py").write_text(f"{first}class {wanted}")
    command = [sys.executable, "-m", "pythonfmu", "build", "-f", f"{name.lower()}.py"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=1800)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="strict isolation needs Linux")
def test_it_gives_the_same_bits_under_strict_isolation(lag):
    """It carries a Python of its own; importing its modules of networks asks for a socket."""

    def run(isolate):
        d = Diagram("alone", step=0.01)
        f = d.add(Fmu(lag, isolate=isolate), name="f")
        d.connect(d.add(Sine(1.0, 3.0), name="s"), f)
        return simulate(d, 0.2)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiellaWarning)
        strict = run("strict")
    assert set(strict.info["isolation"]["f"]["refused"]) <= {"socket"}
    assert strict["f"].tobytes() == run(True)["f"].tobytes()


@pytest.mark.parametrize("options", [{}, {"isolate": True}, {"backend": "fmpy"}])
def test_it_runs_beside_one_of_ours(lag, tmp_path, options):
    ours = Diagram("ours", step=0.01)
    x = ours.add(Integrator(), name="x")
    ours.connect(ours.input("u"), x)
    ours.output("x", x)
    d = Diagram("both", step=0.01)
    a = d.add(Fmu(lag, parameters={"tau": 0.25}, **options), name="a")
    b = d.add(Fmu(lag, **options), name="b")
    c = d.add(Fmu(ours.export_fmu(tmp_path / "ours.fmu")), name="c")
    d.connect(d.add(Sine(1.0, 3.0), name="s"), a)
    d.connect(a, b)
    d.connect(b, c)
    r = simulate(d, 1.0)
    for name, source, tau in (("a", "s", 0.25), ("b", "a", 0.5)):
        y, expected = 0.0, []
        for u in r[source]:
            expected.append(y)
            y += 0.01 * (u - y) / tau
        assert r[name] == pytest.approx(expected, abs=1e-15)
    assert r["c"][-1] == pytest.approx(np.sum(r["b"][:-1]) * 0.01, abs=1e-12)


def test_an_exception_in_it_ends_the_run_with_its_text(lag):
    d = Diagram("wrong", step=0.01)
    d.add(Fmu(lag, parameters={"tau": -1.0}, logging=True), name="f")
    with pytest.raises(BlockError, match=r"(?s)FMU `Lag.fmu`.*fmi2DoStep returned.*tau must be"):
        simulate(d, 1.0)


@pytest.mark.parametrize("options", [{}, {"isolate": True}, {"backend": "fmpy"}])
def test_integers_booleans_strings_and_late_outputs(odd, options):
    """`count` is 5 only after initialization mode; integers without variability are findings."""
    d = Diagram("odd", step=0.1)
    f = d.add(Fmu(odd, parameters={"text": "hello"}, validate=False, **options), name="f")
    on = d.add(Convert("boolean"), name="on")
    d.connect(d.add(Step(at=0.25, before=1.0, to=0.0), name="step"), on)
    d.connect(on, f["on"])
    assert simulate(d, 0.5)["f.count"].tolist() == [5, 8, 11, 14, 14, 14]


@pytest.mark.parametrize("options", [{}, {"isolate": True}])
def test_a_step_that_returns_false_ends_the_run(odd, options):
    d = Diagram("odd", step=0.1)
    d.add(Fmu(odd, parameters={"limit": 0.25}, validate=False, **options), name="f")
    result = simulate(d, 1.0)  # PythonFMU discards the step with fmi2Terminated
    assert "it requested the end of the simulation at t = 0.3" in result.info["stopped"]
    assert result["f.count"].tolist() == [4, 7, 10, 13]


@pytest.mark.parametrize("options", [{}, {"isolate": True}])
def test_an_exception_while_it_is_made_has_the_name_of_the_fmu(odd, options):
    d = Diagram("odd", step=0.1)
    d.add(Fmu(odd, instance_name="no name", validate=False, **options), name="f")
    with pytest.raises(BlockError, match=r"FMU `Odd.fmu` .*fmi2Instantiate returned no instance"):
        simulate(d, 1.0)
