"""The FMU that ``specimen.c`` is: compiled and packed, with a description to order."""

from __future__ import annotations

import atexit
import subprocess
import zipfile
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import pytest

from biella.fmu.importer._archive import platform_folder, platform_names
from biella.scheduler.engine.build import BuildError, find_compiler

TROUBLE = {
    "none": 0,
    "error": 1,
    "discard": 2,
    "terminated": 3,
    "fatal": 4,
    "segfault": 5,
    "hang": 6,
    "exit": 7,
    "abort": 8,
    "chatter": 9,
    "get_error": 10,
    "pending": 11,
    "too_long": 12,
    "ends_after": 13,
    "ends_within": 14,
    "orphan": 15,
}
VARIABLES = """
<ScalarVariable name="u" valueReference="0" causality="input" description="drives x">
  <Real start="0.5" unit="m"/></ScalarVariable>
<ScalarVariable name="y" valueReference="1" causality="output"><Real unit="m"/></ScalarVariable>
<ScalarVariable name="n" valueReference="2" causality="input" variability="discrete">
  <Integer start="3"/></ScalarVariable>
<ScalarVariable name="m" valueReference="3" causality="output" variability="discrete">
  <Integer/></ScalarVariable>
<ScalarVariable name="b" valueReference="4" causality="input" variability="discrete">
  <Boolean start="true"/></ScalarVariable>
<ScalarVariable name="c" valueReference="5" causality="output" variability="discrete">
  <Boolean/></ScalarVariable>
<ScalarVariable name="x" valueReference="6" initial="exact"><Real start="0"/></ScalarVariable>
<ScalarVariable name="k" valueReference="7" causality="parameter" variability="tunable">
  <Real start="2"/></ScalarVariable>
<ScalarVariable name="trouble" valueReference="8" causality="parameter" variability="fixed">
  <Integer start="0"/></ScalarVariable>
<ScalarVariable name="at" valueReference="9" causality="parameter" variability="fixed">
  <Real start="1e300"/></ScalarVariable>
<ScalarVariable name="diary" valueReference="10" causality="parameter" variability="fixed">
  <String start=""/></ScalarVariable>
<ScalarVariable name="w[0]" valueReference="11" causality="input"><Real start="0"/></ScalarVariable>
<ScalarVariable name="w[1]" valueReference="12" causality="input"><Real start="0"/></ScalarVariable>
<ScalarVariable name="s" valueReference="13" causality="output"><Real/></ScalarVariable>
<ScalarVariable name="q" valueReference="14" causality="output"><Real/></ScalarVariable>
"""
STRUCTURE = """
<Unknown index="2" dependencies="1"/><Unknown index="4" dependencies="3"/>
<Unknown index="6" dependencies="5"/><Unknown index="14" dependencies=""/>
<Unknown index="15" dependencies=""/>
"""
STATES = 'canGetAndSetFMUstate="true" canSerializeFMUstate="true"'


def description(flags: str = STATES, experiment: str = "", version: str = "2.0") -> str:
    """Return modelDescription.xml."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="{version}" modelName="specimen" guid="{{specimen}}">
<CoSimulation modelIdentifier="specimen" {flags}/>
<UnitDefinitions><Unit name="m"><BaseUnit m="1"/></Unit></UnitDefinitions>
{experiment}
<ModelVariables>{VARIABLES}</ModelVariables>
<ModelStructure><Outputs>{STRUCTURE}</Outputs>
<InitialUnknowns>{STRUCTURE}</InitialUnknowns></ModelStructure>
</fmiModelDescription>
"""


EXCHANGE = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="exchange" guid="{exchange}"
  numberOfEventIndicators="1">
<ModelExchange modelIdentifier="exchange"/>
<ModelVariables>
<ScalarVariable name="u" valueReference="0" causality="input"><Real start="0"/></ScalarVariable>
<ScalarVariable name="x" valueReference="1" causality="output" initial="exact">
  <Real start="1"/></ScalarVariable>
<ScalarVariable name="der(x)" valueReference="2"><Real derivative="2"/></ScalarVariable>
<ScalarVariable name="count" valueReference="3" causality="output" variability="discrete">
  <Integer/></ScalarVariable>
</ModelVariables>
<ModelStructure>
<Outputs><Unknown index="2" dependencies=""/><Unknown index="4" dependencies=""/></Outputs>
<Derivatives><Unknown index="3" dependencies="1 2"/></Derivatives>
<InitialUnknowns><Unknown index="3" dependencies="1 2"/><Unknown index="4" dependencies=""/>
</InitialUnknowns>
</ModelStructure>
</fmiModelDescription>
"""


FMI1 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="1.0" modelName="one" modelIdentifier="one" guid="{one}"
  numberOfContinuousStates="0" numberOfEventIndicators="0">
<UnitDefinitions><BaseUnit unit="m"/></UnitDefinitions>
<ModelVariables>
<ScalarVariable name="u" valueReference="0" causality="input">
  <Real unit="m" start="1"/></ScalarVariable>
<ScalarVariable name="y" valueReference="1" causality="output"><Real unit="m"/></ScalarVariable>
<ScalarVariable name="k" valueReference="2" variability="parameter">
  <Real start="1"/></ScalarVariable>
<ScalarVariable name="n" valueReference="3" causality="output" variability="discrete">
  <Integer/></ScalarVariable>
<ScalarVariable name="b" valueReference="4" causality="input" variability="discrete">
  <Boolean start="false"/></ScalarVariable>
<ScalarVariable name="name" valueReference="5" variability="parameter">
  <String start=""/></ScalarVariable>
<ScalarVariable name="ends" valueReference="6" variability="parameter">
  <Real start="1e300"/></ScalarVariable>
</ModelVariables>
<Implementation><CoSimulation_StandAlone>
<Capabilities canHandleVariableCommunicationStepSize="true"/>
</CoSimulation_StandAlone></Implementation>
</fmiModelDescription>
"""


FMI3 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="three" instantiationToken="{three}">
<CoSimulation modelIdentifier="three"/>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
<Int64 name="n" valueReference="1" causality="input" variability="discrete" start="1"/>
<Int64 name="y" valueReference="2" causality="output" variability="discrete"/>
<Int8 name="small" valueReference="3" causality="input" variability="discrete" start="0"/>
<Float64 name="ends" valueReference="4" causality="parameter" variability="fixed" start="1e300"/>
<String name="text" valueReference="5" causality="input" variability="discrete">
  <Start value="a"/></String>
<Binary name="bytes" valueReference="6" causality="output" variability="discrete">
  <Dimension start="2"/></Binary>
<Float64 name="matrix" valueReference="7" causality="parameter" variability="fixed"
  start="1 2 3 4"><Dimension start="2"/><Dimension start="2"/></Float64>
<Boolean name="early" valueReference="8" causality="parameter" variability="fixed" start="false"/>
<Float64 name="row" valueReference="9" causality="output" variability="continuous">
  <Dimension start="3"/></Float64>
</ModelVariables>
<ModelStructure><Output valueReference="2" dependencies=""/><Output valueReference="6"/>
<Output valueReference="9"/></ModelStructure>
</fmiModelDescription>
"""


_TEMPORARY = gettempdir()
"""Tests may choose another folder, and look at what is left in it."""
_FOLDERS: list[TemporaryDirectory[str]] = []


def _remove_folders() -> None:
    for folder in _FOLDERS:
        folder.cleanup()


atexit.register(_remove_folders)


@lru_cache
def compile_specimen(*flags: str, name: str = "specimen") -> Path:
    """Return the shared library."""
    try:
        compiler = find_compiler()
    except BuildError:
        pytest.skip("needs a C compiler")
    folder = TemporaryDirectory(prefix="specimen-", dir=_TEMPORARY)
    _FOLDERS.append(folder)
    target = Path(folder.name, f"{name}.so")
    source = Path(__file__).with_name(f"{name}.c")
    command = [*compiler.command, "-std=gnu11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run(
        [*command, *flags, str(source), "-o", str(target), "-lm"], check=True, timeout=300
    )
    return target


def make_specimen(
    path: Path, *, xml: str | None = None, flags: tuple[str, ...] = (), extra: dict | None = None
) -> Path:
    """Write the FMU to `path`."""
    files = {
        "modelDescription.xml": (xml or description()).encode(),
        f"binaries/{platform_folder()}/specimen.so": compile_specimen(*flags).read_bytes(),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (files | (extra or {})).items():
            archive.writestr(name, content)
    return path


def make_fmi3(path: Path) -> Path:
    """Write an FMU of FMI 3.0 to `path`."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", FMI3)
        library = compile_specimen(name="three").read_bytes()
        archive.writestr(f"binaries/{platform_names()[1]}/three.so", library)
    return path


def make_exchange(path: Path) -> Path:
    """Write an FMU for model exchange to `path`."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", EXCHANGE)
        library = compile_specimen(name="exchange").read_bytes()
        archive.writestr(f"binaries/{platform_folder()}/exchange.so", library)
    return path


def make_fmi1(path: Path) -> Path:
    """Write an FMU of FMI 1.0 to `path`."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", FMI1)
        library = compile_specimen(name="one").read_bytes()
        archive.writestr(f"binaries/{platform_folder()}/one.so", library)
    return path
