"""Which clocks an FMU declares, and model exchange with them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import fmpy
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.fmi3 import FMU3Model
from fmpy.validation import validate_fmu
from lxml import etree

from biella import BiellaError, Diagram
from biella.blocks import Constant, Gain, Integrator, UnitDelay
from biella.cli import main
from biella.fmu.exporter._clocks import _write_time

from .conftest import lag, make_crank, read_xml
from .exchange_models import make_sampled

SCHEMA = Path(fmpy.__file__).parent / "schema" / "fmi3" / "fmi3ModelDescription.xsd"


def list_clocks(path: Path) -> dict[str, dict[str, str]]:
    return {v.attrib["name"]: dict(v.attrib) for v in read_xml(path).iter("Clock")}


@pytest.mark.parametrize("kind", ["cs", "me", "both"])
def test_periods_are_clocks(tmp_path: Path, kind: str) -> None:
    path = make_sampled().export_fmu(tmp_path / "x.fmu", version="3.0", kind=kind, clocks=True)
    assert validate_fmu(str(path)) == []
    with zipfile.ZipFile(path) as archive:
        text = archive.read("modelDescription.xml")
    etree.XMLSchema(file=str(SCHEMA)).assertValid(etree.fromstring(text))
    clocks = list_clocks(path)
    assert list(clocks) == ["clock_50ms", "clock_100ms"]
    assert [clock["intervalDecimal"] for clock in clocks.values()] == ["0.05", "0.1"]
    assert [clock["description"] for clock in clocks.values()] == [
        "samples total, gain",
        "samples delay",
    ]
    variables = {v.get("name"): v for v in read_xml(path).iter("Float64")}
    assert variables["x_out"].get("clocks") is None
    assert variables["gain_out"].get("clocks") == clocks["clock_50ms"]["valueReference"]
    assert variables["delay_out"].get("clocks") == clocks["clock_100ms"]["valueReference"]
    outputs = {o.get("valueReference"): o for o in read_xml(path).iter("Output")}
    known = outputs[variables["gain_out"].get("valueReference")].get("dependencies")
    assert clocks["clock_50ms"]["valueReference"] in str(known).split()


def test_references_are_not_used_twice(tmp_path: Path) -> None:
    path = make_sampled().export_fmu(tmp_path / "x.fmu", version="3.0", kind="both", clocks=True)
    references = [
        v.attrib["valueReference"] for group in read_xml(path).iter("ModelVariables") for v in group
    ]
    assert len(references) == len(set(references))


def test_without_the_option_there_are_none(tmp_path: Path) -> None:
    """Also the plan, and so the token, is the same as ever."""
    path = make_sampled().export_fmu(tmp_path / "x.fmu", version="3.0")
    assert list_clocks(path) == {}
    assert all(v.get("clocks") is None for v in read_xml(path).iter("Float64"))
    other = make_sampled().export_fmu(tmp_path / "y.fmu", version="3.0", clocks=True)
    token, others = (read_xml(p).attrib["instantiationToken"] for p in (path, other))
    assert token != others


def test_offsets_names_that_are_taken_and_the_rate_of_a_plant(tmp_path: Path) -> None:
    """A plant with an internal solver runs at every tick: that is no rate of a sampled block."""
    d = make_crank()
    d.add(UnitDelay(), "late", period=5e-3, offset=2e-3, u=d["p"])
    d.output("clock_5ms", d["late"])
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", clocks=True)
    assert validate_fmu(str(path)) == []
    clocks = list_clocks(path)
    assert list(clocks) == ["clock_5ms_", "clock_5ms_from_2ms"]
    assert clocks["clock_5ms_"]["description"] == "samples p, i, total, hold, limit"
    assert clocks["clock_5ms_from_2ms"]["shiftCounter"] == "2"


def test_a_step_that_is_no_fraction(tmp_path: Path) -> None:
    """Nearly every number is one; the smallest have denominators that are not exact."""
    d = Diagram("odd", step=1e-17)
    d.add(UnitDelay(), "z", period=2e-17, u=d.add(Constant(1.0), "one"))
    d.output("y", d["z"])
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", clocks=True)
    (clock,) = list_clocks(path).values()
    assert clock["supportsFraction"] == "false" and "intervalCounter" not in clock
    assert float(clock["intervalDecimal"]) == 2 * d.step
    assert validate_fmu(str(path)) == []


@pytest.mark.parametrize(
    ("step", "fraction"),
    [
        (1e-3, (2, 1000)), (2.5e-3, (2, 400)), (1e-6, (2, 10**6)), (1 / 3, (2, 3)), (2.0, (4, 1)),
        (1e-9, (2, 10**9)), (0.7, (14, 10)), (1 / 44100, (2, 44100)), (0.3, (6, 10)),
    ],
)  # fmt: skip
def test_fractions_are_exact(tmp_path: Path, step: float, fraction: tuple[int, int]) -> None:
    d = Diagram("steps", step=step)
    d.add(UnitDelay(), "z", period=2 * step, u=d.add(Constant(1.0), "one"))
    d.output("y", d["z"])
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", clocks=True, sources=False)
    (clock,) = list_clocks(path).values()
    found = int(clock["intervalCounter"]), int(clock["resolution"])
    assert found == fraction
    assert found[0] / found[1] == float(clock["intervalDecimal"]) == 2 * step


def test_names_have_the_largest_unit() -> None:
    times = {1.0: "1s", 60.0: "60s", 5e-3: "5ms", 1.5e-3: "1500us", 1e-6: "1us", 2e-9: "2ns"}
    assert {seconds: _write_time(seconds) for seconds in times} == times
    assert _write_time(1 / 3) == "0_333333333s"
    assert _write_time(1.23456789012e-10) == "1_23456789em10s"


def test_what_cannot_have_clocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BiellaError, match="no block of the diagram has a period"):
        lag().export_fmu(tmp_path / "x.fmu", version="3.0", clocks=True)
    with pytest.raises(BiellaError, match='has no clocks: export with version="3'):
        make_sampled().export_fmu(tmp_path / "x.fmu", clocks=True)
    d = Diagram("many", step=1e-3)
    source = d.add(Integrator(1.0), "x", u=d.add(Constant(1.0), "one"))
    for k in range(65):
        d.add(Gain(1.0), f"g{k}", u=source, period=(k + 1) * 1e-3)
    d.output("y", d["g0"])
    with pytest.raises(BiellaError, match="65 different periods and offsets; an FMU has at most"):
        d.export_fmu(tmp_path / "x.fmu", version="3.0", clocks=True)
    assert not (tmp_path / "x.fmu").exists()


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.py").write_text(
        "from biella import Diagram\n"
        "from biella.blocks import Constant, UnitDelay\n"
        "def diagram():\n"
        "    d = Diagram('loop', step=1e-3)\n"
        "    d.add(UnitDelay(), 'z', period=2e-3, u=d.add(Constant(1.0), 'one'))\n"
        "    d.output('y', d['z'])\n"
        "    return d\n"
    )
    assert main(["export", "loop.py", "--fmi", "3", "--clocks", "-o", "x.fmu"]) == 0
    assert list(list_clocks(tmp_path / "x.fmu")) == ["clock_2ms"]
    assert main(["export", "loop.py", "--clocks", "-o", "y.fmu"]) != 0


class Tool:
    """Forward Euler between events, in FMPy, with or without clocks."""

    def __init__(self, folder: Path, clocks: bool) -> None:
        path = make_sampled().export_fmu(
            folder / f"{clocks}.fmu", version="3.0", kind="me", clocks=clocks, sources=False
        )
        self.messages: list[str] = []
        description = fmpy.read_model_description(str(path))
        self.references = {v.name: v.valueReference for v in description.modelVariables}
        self.fmu = FMU3Model(
            guid=description.guid,
            unzipDirectory=fmpy.extract(str(path), str(folder / f"fmu {clocks}")),
            modelIdentifier=description.modelExchange.modelIdentifier,
            instanceName="tool",
        )
        self.fmu.instantiate(logMessage=lambda *args: self.messages.append(args[-1].decode()))
        self.clocks = {"clock_50ms": 0.05, "clock_100ms": 0.1} if clocks else {}
        self.fmu.enterInitializationMode(startTime=0.0)
        self.fmu.exitInitializationMode()

    def activate(self, *names: str) -> None:
        self.fmu.setClock([self.references[name] for name in names], [True] * len(names))

    def due(self, time: float) -> list[str]:
        return [n for n, p in self.clocks.items() if abs(time / p - round(time / p)) < 1e-9]

    def get(self) -> list[float]:
        names = ("x_out", "gain_out", "delay_out")
        return [float(v) for v in self.fmu.getFloat64([self.references[n] for n in names])]

    def run(self, until: float, step: float) -> list[Any]:
        from ctypes import c_double

        rows, time, following = [], 0.0, 0.0
        x, dx = (c_double * 1)(), (c_double * 1)()
        for n in range(1, round(until / step) + 1):
            if time >= following - 1e-9:
                if n > 1:
                    self.fmu.enterEventMode()
                self.activate(*self.due(time))
                rows.append(self.get())
                following = self.fmu.updateDiscreteStates()[-1]
                self.fmu.enterContinuousTimeMode()
            self.fmu.getContinuousStates(x, 1)
            self.fmu.getContinuousStateDerivatives(dx, 1)
            time = n * step
            self.fmu.setTime(time)
            x[0] += step * dx[0]
            self.fmu.setContinuousStates(x, 1)
            rows.append(self.get())
        return rows


@pytest.mark.engine
def test_model_exchange_has_the_same_bits_as_without_clocks(tmp_path: Path) -> None:
    rows = [Tool(tmp_path, clocks).run(0.62, 0.01) for clocks in (False, True)]
    assert len({tuple(row) for row in rows[0]}) > 30
    assert rows[0] == rows[1]


@pytest.mark.engine
def test_model_exchange_misses_no_tick(tmp_path: Path) -> None:
    tool = Tool(tmp_path, True)
    fast, slow = (tool.references[name] for name in ("clock_50ms", "clock_100ms"))
    tool.activate("clock_50ms")
    with pytest.raises(FMICallException):
        tool.fmu.updateDiscreteStates()
    assert f"value reference {slow} (every 0.1 s) ticks at t = 0" in tool.messages[-1]
    tool.activate("clock_100ms")
    assert tool.fmu.getClock([fast, slow]) == [True, True]
    assert tool.fmu.updateDiscreteStates()[-1] == 0.05
    assert tool.fmu.getClock([fast, slow]) == [False, False]
    with pytest.raises(FMICallException):  # a second time
        tool.activate("clock_50ms")
    assert "it ticks next at t = 0.05" in tool.messages[-1]
    tool.fmu.enterContinuousTimeMode()
    with pytest.raises(FMICallException):
        tool.activate("clock_50ms")
    assert "fmi3SetClock is not allowed in the state 'continuous-time mode'" in tool.messages[-1]
    tool.fmu.setTime(0.03)
    tool.fmu.enterEventMode()
    with pytest.raises(FMICallException):  # beside its tick
        tool.activate("clock_50ms")
    assert "does not tick at t = 0.03" in tool.messages[-1]
    tool.fmu.updateDiscreteStates()
    tool.fmu.enterContinuousTimeMode()
    tool.fmu.setTime(0.05)
    tool.fmu.enterEventMode()
    with pytest.raises(FMICallException):
        tool.activate("clock_100ms")
    assert "it ticks next at t = 0.1" in tool.messages[-1]
    tool.activate("clock_50ms")
    state = tool.fmu.getFMUState()
    assert tool.fmu.updateDiscreteStates()[-1] == 0.1
    tool.fmu.setFMUState(state)  # with its active clock
    assert tool.fmu.getClock([fast, slow]) == [True, False]
    assert tool.fmu.updateDiscreteStates()[-1] == 0.1


@pytest.mark.engine
@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ([0], "a clock has no rate"),
        ([1], "a clock has no rate"),
        ([99], "a clock has no rate"),
        ([-1], "a clock has no rate"),
        ([2] * 65, "it has too many clocks"),
    ],
)
def test_plans_with_wrong_clocks_are_rejected(rates: list[int], message: str) -> None:
    with pytest.raises(BiellaError, match=message):
        make_sampled().compile().with_clocks(rates).open()


@pytest.mark.engine
@pytest.mark.parametrize("reads", [False, True])
def test_an_input_after_the_tick_is_not_sampled_in_its_event(tmp_path: Path, reads: bool) -> None:
    """A periodic clock is active once in an event: other updates there need no activation."""
    d = Diagram("held", step=1e-3)
    x = d.add(Integrator(0.0), "x")
    d.connect(d.add(Gain(2.0), "gain", period=0.05, u=d.input("u")), x)
    d.output("y", d["gain"])
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", kind="me", clocks=True, sources=False)
    description = fmpy.read_model_description(str(path))
    references = {v.name: v.valueReference for v in description.modelVariables}
    fmu = FMU3Model(
        guid=description.guid,
        unzipDirectory=fmpy.extract(str(path), str(tmp_path / "fmu")),
        modelIdentifier=description.modelExchange.modelIdentifier,
        instanceName="held",
    )
    fmu.instantiate()
    fmu.enterInitializationMode(startTime=0.0)
    fmu.exitInitializationMode()
    fmu.setFloat64([references["u"]], [1.0])
    fmu.setClock([references["clock_50ms"]], [True])
    fmu.updateDiscreteStates()
    fmu.setFloat64([references["u"]], [5.0])
    if reads:
        assert fmu.getFloat64([references["y"]]) == [2.0]
    fmu.updateDiscreteStates()
    assert fmu.getFloat64([references["y"]]) == [2.0]
    fmu.enterContinuousTimeMode()
    assert fmu.getFloat64([references["y"]]) == [2.0]
    fmu.terminate()
    fmu.freeInstance()
