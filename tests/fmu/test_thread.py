"""One thread through everything: diagram → plan → engine → FMU in FMPy."""

from __future__ import annotations

import ctypes
import xml.etree.ElementTree as ET
import zipfile

import fmpy
import numpy as np
import pytest
from fmpy.fmi2 import FMU2Slave
from fmpy.validation import validate_fmu

from biella import BiellaError, Diagram, DiagramError, simulate
from biella.blocks import Constant, Gain, Integrator, Pendulum, Sum, UnitDelay, python_block
from biella.errors import FmuError

pytestmark = pytest.mark.engine


def loop() -> Diagram:
    """A pendulum under a sampled controller with integral action."""
    d = Diagram("pendulum loop", step=1e-3)
    ref = d.add(Constant(0.5, unit="rad"), name="ref")
    plant = d.add(Pendulum(angle=0.2, damping=0.1), name="plant")
    error = d.add(Sum("+-"), name="error")
    p = d.add(Gain(3.0, unit="N.m"), name="p", period=0.01)
    integral = d.add(Integrator(), name="integral")
    i = d.add(Gain(2.0, unit="N.m"), name="i", period=0.01)
    total = d.add(Sum("++"), name="total")
    delay = d.add(UnitDelay(), name="delay", period=0.01)
    d.connect(ref, error["u1"])
    d.connect(plant["angle"], error["u2"])
    d.connect(error, p, integral)
    d.connect(integral, i)
    d.connect(p, total["u1"])
    d.connect(i, total["u2"])
    d.connect(total, delay)
    d.connect(delay, plant)
    d.output("angle", plant["angle"])
    d.output("torque", delay)
    return d


@pytest.fixture(scope="module")
def fmu(tmp_path_factory):
    return loop().export_fmu(tmp_path_factory.mktemp("fmu") / "loop.fmu", inputs=["ref"])


class Slave:
    """An instance in FMPy, addressed by names."""

    def __init__(self, path, unpacked):
        self.description = fmpy.read_model_description(str(path))
        self.names = {v.name: v.valueReference for v in self.description.modelVariables}
        self.fmu = FMU2Slave(
            guid=self.description.guid,
            unzipDirectory=str(unpacked),
            modelIdentifier=self.description.coSimulation.modelIdentifier,
            instanceName="one",
        )
        self.fmu.instantiate()

    def start(self, at=0.0, **values):
        self.fmu.setupExperiment(startTime=at)
        for name, value in values.items():
            self.set(name, value)
        self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()

    def get(self, *names):
        return self.fmu.getReal([self.names[name] for name in names])

    def set(self, name, value):
        self.fmu.setReal([self.names[name]], [value])

    def step(self, t, h):
        self.fmu.doStep(currentCommunicationPoint=t, communicationStepSize=h)


@pytest.fixture
def slave(fmu, tmp_path):
    unpacked = fmpy.extract(str(fmu), str(tmp_path / "unpacked"))
    made = Slave(fmu, unpacked)
    yield made
    made.fmu.freeInstance()


def test_fmpy_finds_nothing_to_complain_about(fmu):
    assert validate_fmu(str(fmu)) == []


def test_fmpy_gives_the_bits_of_the_engine_driven_with_the_same_calls(slave):
    plan = loop().compile(inputs=["ref"])
    slave.start()
    with plan.instantiate() as engine:
        for n in range(100):
            value = np.sin(0.3 * n)
            slave.set("ref", value)
            engine.set("ref", value)
            assert slave.get("angle", "torque") == [engine.get("angle"), engine.get("torque")]
            slave.step(n * 0.01, 0.01)
            engine.run(10)
        assert slave.get("angle", "torque") == [engine.get("angle"), engine.get("torque")]


def test_simulate_fmu_gives_the_bits_of_an_offline_run(fmu):
    offline = simulate(loop(), 2.0, every=10)
    outside = fmpy.simulate_fmu(
        str(fmu), stop_time=2.0, output_interval=0.01, output=["angle", "torque"]
    )
    assert np.array_equal(outside["angle"], offline["plant.angle"])
    assert np.array_equal(outside["torque"], offline["delay"])


def test_outputs_follow_inputs_before_a_step_and_nothing_is_committed(tmp_path):
    d = Diagram("direct")
    u = d.input("u")
    k = d.add(Gain(2.0), name="k")
    x = d.add(Integrator(1.0), name="x")
    d.connect(u, k, x)
    d.output("y", k)
    d.output("x", x)
    path = d.export_fmu(tmp_path / "direct.fmu")
    slave = Slave(path, fmpy.extract(str(path), str(tmp_path / "u")))
    slave.start()
    for value in (1.0, 5.0, -3.0):
        slave.set("u", value)
        assert slave.get("y", "x") == [2 * value, 1.0]
    slave.step(0.0, 0.001)
    assert slave.get("x") == [1.0 - 0.003]
    slave.fmu.freeInstance()


def test_get_and_set_state_continue_with_the_same_bits(slave):
    slave.start()
    for n in range(50):
        slave.step(n * 0.01, 0.01)
    state = slave.fmu.getFMUstate()
    bytes_ = slave.fmu.serializeFMUstate(state)

    def go_on():
        values = []
        for n in range(50, 150):
            slave.step(n * 0.01, 0.01)
            values.append(slave.get("angle", "torque"))
        return values

    first = go_on()
    slave.fmu.setFMUstate(state)
    assert go_on() == first
    again = slave.fmu.deSerializeFMUstate(bytes_)
    slave.fmu.setFMUstate(again)
    assert go_on() == first
    slave.fmu.freeFMUstate(state)
    slave.fmu.freeFMUstate(again)


def test_parameters_are_set_before_the_start_and_reset_undoes_them(slave):
    slave.start(**{"plant.initial_angle": 1.0})
    assert slave.get("angle") == [1.0]
    slave.fmu.reset()
    slave.start()
    assert slave.get("angle") == [0.2]


def test_start_time_moves_the_grid(slave):
    slave.start(at=5.0)
    slave.step(5.0, 0.01)
    first = slave.get("angle")
    slave.fmu.reset()
    slave.start(at=0.0)
    slave.step(0.0, 0.01)
    assert slave.get("angle") == first


@pytest.mark.parametrize(("t", "h"), [(0.5, 0.001), (0.0, -0.001), (0.0, float("nan"))])
def test_a_step_that_does_not_go_on_is_an_error(slave, t, h):
    slave.start()
    with pytest.raises(Exception, match="status 3"):
        slave.step(t, h)


def test_a_step_that_misses_the_grid_by_rounding_snaps(slave):
    slave.start()
    t = 0.0
    for _ in range(1000):
        slave.step(t, 0.001)
        t += 0.001  # a master that adds up
    offline = simulate(loop(), 1.0)
    assert slave.get("angle")[0] == offline["plant.angle"][-1]


def test_two_instances_do_not_disturb_each_other(fmu, tmp_path):
    unpacked = fmpy.extract(str(fmu), str(tmp_path / "u"))
    a, b = Slave(fmu, unpacked), Slave(fmu, unpacked)
    a.start()
    b.start(**{"plant.initial_angle": 1.0})
    for n in range(20):
        a.step(n * 0.01, 0.01)
        b.step(n * 0.01, 0.01)
    alone = simulate(loop(), 0.2)
    assert a.get("angle")[0] == alone["plant.angle"][-1]
    assert b.get("angle")[0] != a.get("angle")[0]
    a.fmu.freeInstance()
    b.fmu.freeInstance()


def find(element: ET.Element, path: str) -> ET.Element:
    found = element.find(path)
    assert found is not None, path
    return found


def test_the_description_says_what_is_true(fmu):
    with zipfile.ZipFile(fmu) as archive:
        root = ET.fromstring(archive.read("modelDescription.xml"))
    capabilities = find(root, "CoSimulation").attrib
    for flag in (
        "canGetAndSetFMUstate",
        "canSerializeFMUstate",
        "canHandleVariableCommunicationStepSize",
        "canInterpolateInputs",
        "providesDirectionalDerivative",
    ):
        assert capabilities[flag] == "true"
    assert capabilities["maxOutputDerivativeOrder"] == "0"  # `torque` is sampled
    variables = {v.get("name"): v for v in root.iter("ScalarVariable")}
    assert variables["ref"].get("causality") == "input"
    assert find(variables["ref"], "Real").attrib == {"start": "0.5", "unit": "rad"}
    assert variables["angle"].get("variability") == "continuous"
    assert variables["torque"].get("variability") == "discrete"
    assert variables["plant.initial_angle"].get("variability") == "fixed"
    units = {u.get("name"): find(u, "BaseUnit").attrib for u in root.iter("Unit")}
    assert units["N.m"] == {"kg": "1", "m": "2", "s": "-2"}
    # Neither output depends on the input at once: the plant integrates, the delay delays.
    outputs = find(root, "ModelStructure/Outputs")
    assert [unknown.get("dependencies") for unknown in outputs] == ["", ""]


def test_functions_that_are_not_offered_return_an_error(slave):
    slave.start()
    reference = (ctypes.c_uint * 1)(slave.names["angle"])
    order, value = (ctypes.c_int * 1)(1), (ctypes.c_double * 1)()
    for name, arguments in {
        "fmi2GetRealOutputDerivatives": (reference, 1, order, value),  # not all are continuous
        "fmi2CancelStep": (),
    }.items():
        function = getattr(slave.fmu.dll, name)
        function.restype = ctypes.c_int
        assert function(ctypes.c_void_p(slave.fmu.component), *arguments) == 3


def test_the_same_diagram_gives_the_same_file(tmp_path):
    a = loop().export_fmu(tmp_path / "a.fmu", inputs=["ref"])
    b = loop().export_fmu(tmp_path / "b.fmu", inputs=["ref"])
    assert a.read_bytes() == b.read_bytes()


def test_python_blocks_cannot_leave_and_are_named(tmp_path):
    @python_block(outputs=["y"])
    def twice(u):
        return 2 * u

    d = Diagram("mixed")
    one = d.add(Constant(1.0))
    d.connect(one, d.add(twice(), name="helper"))
    with pytest.raises(DiagramError, match=r"`helper` \(.*written in Python.*Expression"):
        d.export_fmu(tmp_path / "mixed.fmu")
    assert list(tmp_path.iterdir()) == []


def test_export_mistakes_teach(tmp_path):
    with pytest.raises(DiagramError, match=r"no source block or input `reff`. Did you mean `ref`"):
        loop().export_fmu(tmp_path / "x.fmu", inputs=["reff"])
    with pytest.raises(DiagramError, match=r"`plant` .* not a source with one output"):
        loop().export_fmu(tmp_path / "x.fmu", inputs=["plant"])
    with pytest.raises(DiagramError, match=r"no output `angel`. Did you mean `angle`"):
        loop().export_fmu(tmp_path / "x.fmu", outputs=["angel"])
    with pytest.raises(BiellaError, match=r"no parameter `plant.mas`"):
        loop().export_fmu(tmp_path / "x.fmu", parameters=["plant.mas"])
    with pytest.raises(FmuError, match="cannot write"):
        loop().export_fmu(tmp_path / "missing" / "x.fmu")
    assert list(tmp_path.iterdir()) == []


def test_the_logger_reports_what_goes_well_only_when_it_is_switched_on(fmu, tmp_path):
    from fmpy.fmi2 import (
        fmi2CallbackFunctions,
        fmi2CallbackLoggerTYPE,
        fmi2OK,
    )

    unpacked = fmpy.extract(str(fmu), str(tmp_path / "u"))
    told = []

    def log(environment, name, status, category, message):
        told.append((status, category))

    def life(logging):
        slave = Slave.__new__(Slave)
        slave.description = fmpy.read_model_description(str(fmu))
        slave.names = {v.name: v.valueReference for v in slave.description.modelVariables}
        slave.fmu = FMU2Slave(
            guid=slave.description.guid,
            unzipDirectory=str(unpacked),
            modelIdentifier=slave.description.coSimulation.modelIdentifier,
            instanceName="one",
        )
        callbacks = fmi2CallbackFunctions()
        callbacks.logger = fmi2CallbackLoggerTYPE(log)
        slave.fmu.instantiate(callbacks=callbacks, loggingOn=logging)
        slave.start()
        slave.fmu.terminate()
        slave.fmu.freeInstance()

    life(False)
    assert told == []
    life(True)
    assert told == [(fmi2OK, b"logEvents")] * 2
