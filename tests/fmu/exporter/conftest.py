"""A controlled slider-crank, and what the in-process engine does with it."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fmpy
import pytest

from biella import Diagram
from biella.blocks import Constant, Gain, Integrator, Saturation, Sum, UnitDelay
from biella.blocks.multibody.mechanisms import slider_crank

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("[0-9][0-9]_*.py"))


def load(path: Path) -> Any:
    """Return what an example defines: a diagram or a mechanism.

    Examples may import modules beside them, such as those of the folder `firmware`.
    """
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)
        spec.loader.exec_module(module)
    make = getattr(module, "diagram", None) or module.system
    return make()


OUTPUTS = ["speed", "torque", "place[0]", "place[1]", "place[2]"]
STEPS, TICKS = 200, 10


def make_crank(gain: float = 4.0) -> Diagram:
    """A planar slider-crank under a sampled controller with integral action and a delay.

    Its outputs are continuous, sampled, and a vector.
    """
    d = Diagram("controlled crank", step=1e-3)
    plant = slider_crank(planar=True).block(["motor.torque"], ["main.speed", "slider.position"])
    d.add(plant, name="plant")
    ref = d.add(Constant(2.0, unit="rad/s"), name="ref")
    error = d.add(Sum("+-"), name="error")
    p = d.add(Gain(gain, unit="N.m"), name="p", period=5e-3)
    integral = d.add(Integrator(), name="integral")
    i = d.add(Gain(9.0, unit="N.m"), name="i", period=5e-3)
    total = d.add(Sum("++"), name="total")
    hold = d.add(UnitDelay(), name="hold", period=5e-3)
    limit = d.add(Saturation(-30.0, 30.0), name="limit")
    d.connect(ref, error["u1"])
    d.connect(plant["main.speed"], error["u2"])
    d.connect(error, p, integral)
    d.connect(integral, i)
    d.connect(p, total["u1"])
    d.connect(i, total["u2"])
    d.connect(total, hold)
    d.connect(hold, limit)
    d.connect(limit, plant["motor.torque"])
    d.output("speed", plant["main.speed"])
    d.output("torque", limit)
    d.output("place", plant["slider.position"])
    return d


def lag(name: str = "lag", *, gain: float = 2.0, doc: str = "", unit: str | None = None) -> Diagram:
    d = Diagram(name)
    u = d.input("u", doc=doc, unit=unit)
    k = d.add(Gain(gain), name="k")
    x = d.add(Integrator(0.5), name="x")
    d.connect(u, k, x)
    d.output("y", k)
    d.output("sum", x)
    return d


def read_xml(path: Path) -> ET.Element:
    with zipfile.ZipFile(path) as archive:
        return ET.fromstring(archive.read("modelDescription.xml"))


def reference(step: int, shift: int = 0) -> float:
    """An input that needs no rounding, so that a driver in C has the same."""
    return 0.25 * ((7 * step + shift) % 23) - 2.0


def run_engine(
    steps: int = STEPS, ticks: int = TICKS, *, shift: int = 0, gain: float = 4.0
) -> list[list[float]]:
    """Set, step and get through the engine in this process."""
    rows = []
    with make_crank(gain).compile(inputs=["ref"]).instantiate() as engine:
        for n in range(steps):
            engine.set("ref", reference(n, shift))
            engine.run(ticks)
            rows.append([engine.get("speed"), engine.get("torque"), *engine.get("place")])
    return rows


@dataclass(frozen=True)
class Exported:
    """An FMU, and its folder once unpacked."""

    path: Path
    folder: Path

    @property
    def description(self) -> fmpy.model_description.ModelDescription:
        return fmpy.read_model_description(str(self.path))

    @property
    def references(self) -> dict[str, int]:
        return {v.name: v.valueReference for v in self.description.modelVariables}

    @property
    def library(self) -> Path:
        identifier = self.description.coSimulation.modelIdentifier
        return self.folder / "binaries" / "linux64" / f"{identifier}.so"


@pytest.fixture(scope="session")
def unpack(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Exported]:
    def unpacked(path: Path) -> Exported:
        folder = tmp_path_factory.mktemp("unpacked")
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        return Exported(path, folder)

    return unpacked


@pytest.fixture(scope="session")
def crank(tmp_path_factory: pytest.TempPathFactory, unpack: Callable[[Path], Exported]) -> Exported:
    path = tmp_path_factory.mktemp("crank") / "crank.fmu"
    return unpack(make_crank().export_fmu(path, inputs=["ref"]))


@pytest.fixture(scope="session")
def expected() -> list[list[float]]:
    """What the engine in this process gives."""
    return run_engine()
