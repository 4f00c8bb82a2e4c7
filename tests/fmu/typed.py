"""The FMI 3.0 FMU that ``typed.c`` is: compiled and packed, with a description to order."""

from __future__ import annotations

import zipfile
from pathlib import Path

from specimen import compile_specimen

from biella.fmu.importer._archive import platform_names

TROUBLES = (
    "none", "error", "discard", "fatal", "ends_after", "ends_within", "early", "stuck", "outside",
    "state_event", "endless", "not_a_time", "ends_in_event", "always_due", "too_long",
)  # fmt: skip
TROUBLE = {name: number for number, name in enumerate(TROUBLES)}
ECHOES = {
    "Float32": "f32", "Int8": "i8", "UInt8": "u8", "Int16": "i16", "UInt16": "u16", "Int32": "i32",
    "UInt32": "u32", "Int64": "i64", "UInt64": "u64", "Boolean": "b", "Enumeration": "kind",
}  # fmt: skip
"""Types of the inputs that come back as outputs, `i8` as `i8_out` and so on."""
FLAGS = (
    'canGetAndSetFMUState="true" canSerializeFMUState="true" hasEventMode="true" '
    'canHandleVariableCommunicationStepSize="true"'
)


def _echoes() -> tuple[str, str]:
    variables, outputs = "", ""
    for number, (kind, name) in enumerate(ECHOES.items()):
        declared = ' declaredType="Gear"' if kind == "Enumeration" else ""
        start = {"Boolean": "false", "Enumeration": "1"}.get(kind, "0")
        shared = f'variability="discrete"{declared}'
        variables += (
            f'<{kind} name="{name}" valueReference="{30 + number}" causality="input" {shared} '
            f'start="{start}"/>\n<{kind} name="{name}_out" valueReference="{50 + number}" '
            f'causality="output" {shared}/>\n'
        )
        outputs += f'<Output valueReference="{50 + number}" dependencies="{30 + number}"/>\n'
    return variables, outputs


def describe(flags: str = FLAGS, extra: str = "") -> str:
    """Return modelDescription.xml; `extra` are more variables."""
    variables, outputs = _echoes()
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="typed" instantiationToken="{{typed}}">
<CoSimulation modelIdentifier="typed" {flags}/>
<UnitDefinitions><Unit name="m"><BaseUnit m="1"/></Unit></UnitDefinitions>
<TypeDefinitions><EnumerationType name="Gear">
<Item name="low" value="1"/><Item name="high" value="2"/></EnumerationType></TypeDefinitions>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
<Float64 name="u" valueReference="1" causality="input" start="0.5" unit="m">
  <Alias name="position"/></Float64>
<Float64 name="y" valueReference="2" causality="output" unit="m"><Alias name="shown"/></Float64>
<Float64 name="x" valueReference="3" initial="exact" start="0"/>
<Float64 name="k" valueReference="4" causality="parameter" variability="tunable" start="2"/>
<UInt64 name="n" valueReference="5" causality="structuralParameter" variability="fixed" start="2"/>
<Float64 name="w" valueReference="6" causality="input" start="0 0">
  <Dimension valueReference="5"/></Float64>
<Float64 name="s" valueReference="7" causality="output"><Dimension valueReference="5"/></Float64>
<Float64 name="A" valueReference="8" causality="parameter" variability="tunable" start="1 2 3 4">
  <Dimension start="2"/><Dimension start="2"/></Float64>
<Float64 name="r" valueReference="9" causality="output">
  <Dimension start="2"/><Dimension start="2"/></Float64>
<String name="text" valueReference="10" causality="parameter" variability="fixed">
  <Start value=""/></String>
<String name="texts" valueReference="11" causality="parameter" variability="fixed">
  <Dimension start="2"/><Start value=""/><Start value=""/></String>
<Binary name="blob" valueReference="12" causality="parameter" variability="fixed">
  <Start value="00"/></Binary>
<Int32 name="length" valueReference="13" causality="output"/>
<Int32 name="trouble" valueReference="14" causality="parameter" start="0"/>
<Float64 name="at" valueReference="15" causality="parameter" variability="fixed" start="1e300"/>
<String name="diary" valueReference="16" causality="parameter" variability="fixed">
  <Start value=""/></String>
<Float64 name="tick" valueReference="17" causality="parameter" variability="fixed" start="0"/>
<Int32 name="hits" valueReference="18" causality="output"/>
<Float64 name="d" valueReference="19" causality="input" variability="discrete" start="0"/>
<Float64 name="latched" valueReference="20" causality="output" variability="discrete"/>
<Int32 name="entries" valueReference="21" causality="output"/>
{variables}{extra}
</ModelVariables>
<ModelStructure>
<Output valueReference="2" dependencies="1"/><Output valueReference="7" dependencies="6"/>
<Output valueReference="9" dependencies=""/><Output valueReference="13" dependencies=""/>
<Output valueReference="18" dependencies=""/><Output valueReference="20" dependencies=""/>
<Output valueReference="21" dependencies=""/>
{outputs}</ModelStructure>
</fmiModelDescription>
"""


def make_typed(path: Path, *, xml: str | None = None, flags: tuple[str, ...] = ()) -> Path:
    """Write the FMU to `path`."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", xml or describe())
        library = compile_specimen(*flags, name="typed").read_bytes()
        archive.writestr(f"binaries/{platform_names()[1]}/typed.so", library)
    return path
