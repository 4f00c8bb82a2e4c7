"""The FMI 3.0 FMU with clocks that ``clocked.c`` is: compiled and packed."""

from __future__ import annotations

import zipfile
from pathlib import Path

from specimen import compile_specimen

from biella.fmu.importer._archive import platform_names

INTERVAL, SHIFT = 0.03, 0.01
CLOCKS = {
    "CONSTANT": 'intervalVariability="constant" intervalDecimal="0.03" shiftDecimal="0.01"',
    "FIXED": 'intervalVariability="fixed" intervalDecimal="0.03" shiftDecimal="0.01"',
    "ASKED": 'intervalVariability="fixed"',
    "CHANGING": 'intervalVariability="changing"',
    "COUNTDOWN": 'intervalVariability="countdown"',
}
"""Kinds of the input clock."""


def describe_clocked(clock: str, kind: str = "CoSimulation") -> str:
    """Return modelDescription.xml; `clock` are attributes of the input clock."""
    flags = 'canGetAndSetFMUState="true" canSerializeFMUState="true" hasEventMode="true"'
    flags = f'{flags} canHandleVariableCommunicationStepSize="true"'
    states = slopes = ""
    if kind == "ModelExchange":
        flags = 'canGetAndSetFMUState="true" canSerializeFMUState="true"'
        states = '<Float64 name="der(z)" valueReference="9" derivative="7"/>\n'
        slopes = '<ContinuousStateDerivative valueReference="9" dependencies=""/>\n'
    shared = 'causality="output" variability="discrete"'
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="clocked" instantiationToken="{{clocked}}">
<{kind} modelIdentifier="clocked" {flags}/>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
<Clock name="c" valueReference="1" causality="input" {clock}/>
<Clock name="o" valueReference="2" causality="output" intervalVariability="triggered"/>
<Float64 name="u" valueReference="3" causality="input" variability="discrete" clocks="1" start="0"/>
<Float64 name="y" valueReference="4" {shared} clocks="1"/>
<Int32 name="count" valueReference="5" {shared} clocks="1"/>
<Float64 name="alarm" valueReference="6" {shared} clocks="2"/>
<Float64 name="z" valueReference="7" causality="output"/>
<Float64 name="k" valueReference="8" causality="parameter" variability="fixed" start="1"/>
{states}</ModelVariables>
<ModelStructure>
<Output valueReference="2" dependencies=""/>
<Output valueReference="4" dependencies="3"/><Output valueReference="5" dependencies=""/>
<Output valueReference="6" dependencies=""/><Output valueReference="7" dependencies=""/>
{slopes}</ModelStructure>
</fmiModelDescription>
"""


def make_clocked(path: Path, kind: str = "CONSTANT", xml: str | None = None) -> Path:
    """Write the FMU to `path`."""
    library = compile_specimen(f"-DKIND={kind}", name="clocked").read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", xml or describe_clocked(CLOCKS[kind]))
        archive.writestr(f"binaries/{platform_names()[1]}/clocked.so", library)
    return path
