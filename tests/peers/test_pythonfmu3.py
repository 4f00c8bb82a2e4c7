"""FMI 3.0 FMUs that PythonFMU3 makes, run by the engine inside a Python process.

pip install biella pytest pythonfmu3
python -m pytest tests/peers/test_pythonfmu3.py -m slow
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from biella import BlockError, Diagram, Fmu, simulate
from biella.blocks import Constant, Sine

pytestmark = pytest.mark.slow

SOURCE = """
from pythonfmu3 import (
    Boolean, Float64, Fmi3Causality, Fmi3Slave, Fmi3Variability, Int64,
)

class Lag(Fmi3Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.u, self.y, self.tau, self.count, self.late = 1.0, 0.0, 0.5, 0, False
        self.register_variable(Float64("u", causality=Fmi3Causality.input))
        self.register_variable(Float64("y", causality=Fmi3Causality.output))
        self.register_variable(
            Float64("tau", causality=Fmi3Causality.parameter, variability=Fmi3Variability.tunable)
        )
        self.register_variable(
            Int64("count", causality=Fmi3Causality.output, variability=Fmi3Variability.discrete)
        )
        self.register_variable(
            Boolean("late", causality=Fmi3Causality.output, variability=Fmi3Variability.discrete)
        )

    def do_step(self, t, h):
        if self.tau <= 0:
            raise ValueError("tau must be positive")
        self.y += h * (self.u - self.y) / self.tau
        self.count += 1
        self.late = t + h > 0.505
        return True
"""


BANK = """
from pythonfmu3 import Dimension, Float64, Fmi3Causality, Fmi3Initial, Fmi3Slave
from pythonfmu3 import Fmi3Variability, UInt64
import numpy as np

class Bank(Fmi3Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.time, self.n, self.u, self.limit, self.y = 0.0, 3, 1.0, 1e9, np.zeros(3)
        self.register_variable(Float64("time", causality=Fmi3Causality.independent))
        self.register_variable(
            UInt64("n", causality=Fmi3Causality.structuralParameter,
                   variability=Fmi3Variability.fixed, initial=Fmi3Initial.exact)
        )
        self.register_variable(Float64("u", causality=Fmi3Causality.input))
        self.register_variable(
            Float64("limit", causality=Fmi3Causality.parameter, variability=Fmi3Variability.fixed)
        )
        sizes = [Dimension(valueReference="1")]
        self.register_variable(Float64("y", causality=Fmi3Causality.output, dimensions=sizes))

    def enter_initialization_mode(self):
        self.y = np.zeros(int(self.n))

    def do_step(self, t, h):
        self.time = t + h
        self.y = self.y + h * self.u * np.arange(1.0, len(self.y) + 1)
        if self.time >= self.limit:
            self.y = None  # which cannot be read
        return True
"""


ARRAYS = """
from pythonfmu3 import Boolean, Dimension, Float64, Fmi3Causality, Fmi3Slave, Fmi3Variability
from pythonfmu3 import Int32, Int64, UInt64
import numpy as np

TYPES = {Float64: float, Int32: np.int32, Int64: np.int64, UInt64: np.uint64, Boolean: bool}

class Arrays(Fmi3Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.time = 0.0
        self.register_variable(Float64("time", causality=Fmi3Causality.independent))
        for kind, dtype in TYPES.items():
            self.declare(kind, dtype, "u_", Fmi3Causality.input)
            self.declare(kind, dtype, "y_", Fmi3Causality.output)
        self.declare(Float64, float, "gain_", Fmi3Causality.parameter)

    def declare(self, kind, dtype, prefix, causality):
        name, tunable = prefix + kind.__name__, causality == Fmi3Causality.parameter
        setattr(self, name, np.zeros(3, dtype=dtype))
        self.register_variable(kind(
            name, causality=causality, dimensions=[Dimension(start="3")],
            variability=Fmi3Variability.tunable if tunable
            else Fmi3Variability.continuous if kind is Float64 else Fmi3Variability.discrete,
            setter=lambda values: setattr(self, name, np.array(values, dtype=dtype)),
        ))

    def do_step(self, t, h):
        for kind in TYPES:
            setattr(self, "y_" + kind.__name__, getattr(self, "u_" + kind.__name__).copy())
        self.y_Float64 = self.y_Float64 * self.gain_Float64
        return True
"""


DAHLQUIST = """
from pythonfmu3 import Float64, Fmi3Causality, Fmi3Initial, Fmi3SlaveBase, Fmi3Variability
from pythonfmu3 import ModelExchange

class Dahlquist(Fmi3SlaveBase, ModelExchange):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.time, self.x, self.rate, self.k = 0.0, 2.0, 0.0, 1.0
        continuous = Fmi3Variability.continuous
        self.register_variable(
            Float64("time", causality=Fmi3Causality.independent, variability=continuous)
        )
        self.register_variable(
            Float64("x", causality=Fmi3Causality.output, variability=continuous,
                    initial=Fmi3Initial.exact, start=2.0)
        )
        self.register_variable(
            Float64("rate", causality=Fmi3Causality.local, variability=continuous, derivative=1)
        )
        self.register_variable(
            Float64("k", causality=Fmi3Causality.parameter, variability=Fmi3Variability.fixed)
        )

    def get_continuous_state_derivatives(self):
        self.rate = -self.k * self.x
        return [self.rate]
"""


def build(tmp_path_factory, name, source):
    folder = tmp_path_factory.mktemp("pythonfmu3")
    (folder / f"{name.lower()}.py").write_text(source)
    command = [sys.executable, "-m", "pythonfmu3", "build", "-f", f"{name.lower()}.py"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=1800)
    return folder / f"{name}.fmu"


@pytest.fixture(scope="module")
def lag(tmp_path_factory):
    return build(tmp_path_factory, "Lag", SOURCE)


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    return build(tmp_path_factory, "Bank", BANK)


@pytest.mark.parametrize("options", [{}, {"isolate": True}, {"backend": "fmpy"}])
def test_it_follows_its_recursion(lag, options):
    d = Diagram("lag", step=0.01)
    f = d.add(Fmu(lag, parameters={"tau": 0.25}, validate=False, **options), name="f")
    d.connect(d.add(Sine(1.0, 3.0), name="s"), f["u"])
    r = simulate(d, 1.0)
    y, expected = 0.0, []
    for u in r["s"]:
        expected.append(y)
        y += 0.01 * (u - y) / 0.25
    assert r["f.y"] == pytest.approx(expected, abs=1e-15)
    assert r["f.count"].tolist() == list(range(101))
    assert r["f.late"].tolist() == [0.0] * 51 + [1.0] * 50


def test_an_exception_in_it_ends_the_run(lag):
    d = Diagram("wrong", step=0.01)
    d.add(Fmu(lag, parameters={"tau": -1.0}, validate=False, logging=True), name="f")
    with pytest.raises(BlockError, match=r"(?s)FMU `Lag.fmu`.*fmi3DoStep returned"):
        simulate(d, 1.0)


@pytest.mark.parametrize("options", [{}, {"isolate": True}, {"backend": "fmpy"}])
@pytest.mark.parametrize("size", [3, 5])
def test_an_array_whose_size_is_a_structural_parameter(bank, size, options):
    d = Diagram("bank", step=0.25)
    d.add(Fmu(bank, parameters={"n": size, "u": 2.0}, validate=False, **options), name="f")
    r = simulate(d, 1.0)
    assert r["f.y"].shape == (5, size)
    assert r["f.y"][-1].tolist() == [2.0 * (k + 1) for k in range(size)]


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    return build(tmp_path_factory, "Arrays", ARRAYS)


@pytest.mark.parametrize("options", [{}, {"isolate": True}, {"backend": "fmpy"}])
def test_arrays_of_every_type_are_inputs_and_outputs(arrays, options):
    """Their setters are given: the default ones need a numpy before 2.4."""
    given: dict[str, tuple[list[float], Any]] = {
        "Float64": ([0.5, -1.25, 3.0], "real"),
        "Int32": ([2**31 - 1, -(2**31), 5], "integer"),
        "Int64": ([2**53, -(2**53), 7], "integer"),
        "UInt64": ([2**53, 0, 9], "integer"),
        "Boolean": ([1, 0, 1], "boolean"),
    }
    d = Diagram("arrays", step=0.01)
    gain = {"gain_Float64": [2.0, 4.0, -1.0]}
    f = d.add(Fmu(arrays, parameters=gain, validate=False, **options), name="f")
    for name, (values, kind) in given.items():
        source = Constant([float(v) for v in values], kind=kind)
        d.connect(d.add(source, name=f"to_{name}"), f[f"u_{name}"])
    r = simulate(d, 0.02)
    for name, (values, _) in given.items():
        factors = gain["gain_Float64"] if name == "Float64" else [1, 1, 1]
        assert r[f"f.y_{name}"][0].tolist() == [0, 0, 0]
        expected = [v * k for v, k in zip(values, factors, strict=True)]
        assert r[f"f.y_{name}"][-1].tolist() == expected, name


@pytest.mark.parametrize("options", [{}, {"isolate": True}, {"backend": "fmpy"}])
def test_model_exchange(tmp_path_factory, options):
    """x' = -k x from 2; FMPy integrates with a tolerance of 1e-4 by default."""
    fmu = build(tmp_path_factory, "Dahlquist", DAHLQUIST)
    d = Diagram("decay", step=0.1, solver="dopri5", tolerance=1e-9)
    d.add(Fmu(fmu, kind="me", parameters={"k": 3.0}, validate=False, **options), name="f")
    r = simulate(d, 1.0)
    tolerance = 1e-3 if options.get("backend") == "fmpy" else 1e-8
    assert r["f.x"] == pytest.approx(2.0 * np.exp(-3.0 * r.t), abs=tolerance)


REPEATED = """
import sys
from biella import BlockError, Diagram, Fmu, simulate
failures = 0
for k in range(50):
    d = Diagram("bank", step=0.25)
    given = {{"n": 3 + k % 3, "limit": 0.5 if k % 2 else 1e9}}
    d.add(Fmu({path!r}, parameters=given, validate=False, **{options!r}), name="f")
    try:
        simulate(d, 1.0)
    except BlockError as error:
        assert "atal" in str(error), error
        failures += 1
print(failures)
"""


@pytest.mark.parametrize("options", [{}, {"backend": "fmpy"}])
def test_closing_after_a_fatal_error_does_not_crash(bank, options):
    """An exception makes an FMU of PythonFMU3 free its objects; a later call frees them again."""
    code = REPEATED.format(path=str(bank), options=options)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-1] == "25"
