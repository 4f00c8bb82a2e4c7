"""The FMI 3.0 FMU with triggered clocks and a bus terminal that ``node.c`` is."""

from __future__ import annotations

import zipfile
from pathlib import Path

from specimen import compile_specimen

from biella.fmu.importer._archive import platform_names

MIME = "application/org.fmi-standard.fmi-ls-bus.can; version=&quot;1.0.0&quot;"
_OUTPUTS = {
    "count": 7, "bytes": 14, "frames": 15, "confirms": 16, "lost": 17, "errors": 18,
    "first_id": 22, "sent": 24,
}  # fmt: skip
_TIMES = {"last": 8, "last_frame": 19, "last_confirm": 20, "worst": 23}
_TERMINAL = """<?xml version="1.0" encoding="UTF-8"?>
<fmiTerminalsAndIcons fmiVersion="3.0"><Terminals>
<Terminal terminalKind="org.fmi-ls-bus.network-terminal"
  matchingRule="org.fmi-ls-bus.transceiver" name="CAN">
<TerminalMemberVariable variableKind="signal" variableName="rx_clock" memberName="Rx_Clock"/>
<TerminalMemberVariable variableKind="signal" variableName="rx" memberName="Rx_Data"/>
<TerminalMemberVariable variableKind="signal" variableName="tx_clock" memberName="Tx_Clock"/>
<TerminalMemberVariable variableKind="signal" variableName="tx" memberName="Tx_Data"/>
</Terminal></Terminals></fmiTerminalsAndIcons>
"""


def make_node(path: Path, countdown: bool = False, saves: bool = True) -> Path:
    """Write the FMU to `path`; with a sending clock based on time, or one that it triggers."""
    library = compile_specimen(*["-DCOUNTDOWN"] * countdown, name="node").read_bytes()
    flags = 'canGetAndSetFMUState="true" canSerializeFMUState="true" ' if saves else ""
    clock = (
        'causality="input" intervalVariability="countdown"'
        if countdown
        else 'causality="output" intervalVariability="triggered"'
    )
    discrete = 'causality="output" variability="discrete"'
    whole = "".join(
        f'<Int32 name="{name}" valueReference="{n}" {discrete}/>' for name, n in _OUTPUTS.items()
    )
    times = "".join(
        f'<Float64 name="{name}" valueReference="{n}" {discrete}/>' for name, n in _TIMES.items()
    )
    shown = [*_OUTPUTS.values(), *_TIMES.values(), 4, 6, *([] if countdown else [3])]
    listed = "".join(f'<Output valueReference="{n}"/>' for n in shown)
    parameter = 'causality="parameter" variability="fixed" start="0"'
    xml = f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="node" instantiationToken="{{node}}">
<CoSimulation modelIdentifier="node" {flags} hasEventMode="true"
  canHandleVariableCommunicationStepSize="true"/>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
<Clock name="rx_clock" valueReference="1" causality="input" intervalVariability="triggered"/>
<Binary name="rx" valueReference="2" causality="input" variability="discrete" clocks="1"
  mimeType="{MIME}"><Start value=""/></Binary>
<Clock name="tx_clock" valueReference="3" {clock}/>
<Binary name="tx" valueReference="4" {discrete} clocks="3" mimeType="{MIME}"/>
<Float64 name="x" valueReference="5" causality="input" variability="discrete" clocks="1" start="0"/>
<Float64 name="y" valueReference="6" {discrete} clocks="3"/>
{whole}{times}
<Float64 name="period" valueReference="9" {parameter}/>
<Float64 name="offset" valueReference="10" {parameter}/>
<Int32 name="answers" valueReference="11" {parameter}/>
<Binary name="message" valueReference="12" causality="parameter" variability="fixed">
  <Start value=""/></Binary>
<Int32 name="early" valueReference="13" {parameter}/>
<Float64 name="value" valueReference="21" {parameter}/>
</ModelVariables>
<ModelStructure>{listed}</ModelStructure>
</fmiModelDescription>
"""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", xml)
        archive.writestr("terminalsAndIcons/terminalsAndIcons.xml", _TERMINAL)
        archive.writestr(f"binaries/{platform_names()[1]}/node.so", library)
    return path
