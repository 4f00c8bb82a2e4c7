"""A CAN bus between FMUs of FMI-LS-BUS, simulated by the engine."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from numbers import Real
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ...errors import DiagramError, name_list
from ..importer._archive import read_archive
from ..importer._engine_fmu import EngineFmu
from ..importer._interface import choose_interface, read_description
from ..importer._options import Options

_LARGEST_NODES = 32
MIME = 'application/org.fmi-standard.fmi-ls-bus.can; version="1.0.0"'
_FIRST, _VARIABLES = 16, 4  # references of the variables of nodes, as in can_bus.c
_PARAMETERS = ("baud_rate", "data_baud_rate", "fifo", "error_every", "nodes")  # from reference 1 on
_LARGEST_RATE = 2**31 - 1


class CanBus(EngineFmu):
    """A CAN bus between FMUs of FMI-LS-BUS: arbitration, transmission times, confirmations.

    Each node has a terminal of its name, which connects to the bus terminal of an FMU:
    ``d.connect(bus.terminal("engine"), engine.terminal("CAN"))``. CAN and CAN FD frames of base and
    extended format are sent; the transmission time of a frame is

        T = n/baud_rate + m/data_baud_rate

    with the numbers n and m of its bits at both rates, including the bits that are stuffed for
    its own identifier and data, and without the intermission of 3 bits that follows (ISO
    11898-1:2015). At its end all other nodes receive the frame and its sender a confirmation. A
    frame that waits is sent when the bus is idle, and of several the one with the smallest
    identifier.

    Parameters
    ----------
    nodes
        Their number, or their names; a number n stands for the names ``node1`` to ``noden``.
    baud_rate
        In bit/s. By default the one that the nodes configure, which must be the same.
    data_baud_rate
        The same of the data phase of CAN FD.
    queue
        Which of its waiting frames a node sends: ``"priority"``, that with the smallest identifier,
        or ``"fifo"``, the oldest one.
    error_every
        Every how many-th frame fails with a CRC error, which is reported to all nodes; the frame
        is not repeated. 0: none.

    Outputs are `frames`, the number of frames that have ended; `load`, the fraction of time that
    the bus was not idle; and `waiting`, the number of frames that wait. The bus does not have CAN
    XL, and is in no coupling.

    Raises
    ------
    DiagramError
        If names of nodes are not different, or a number is out of its range.
    """

    builtin = "builtin:can_bus"

    def __init__(
        self,
        nodes: int | Sequence[str] = 2,
        *,
        baud_rate: int | None = None,
        data_baud_rate: int | None = None,
        queue: str = "priority",
        error_every: int = 0,
    ) -> None:
        names = _name_nodes(nodes)
        if queue not in ("priority", "fifo"):
            raise DiagramError(f'`queue` must be "priority" or "fifo", got {queue!r}.')
        values = {
            "baud_rate": _whole("baud_rate", baud_rate, 1),
            "data_baud_rate": _whole("data_baud_rate", data_baud_rate, 1),
            "fifo": int(queue == "fifo"),
            "error_every": _whole("error_every", error_every, 0),
            "nodes": len(names),
        }
        archive = read_archive(_write_description(tuple(names)))
        description = read_description(archive, validate=False)
        interface, inputs = choose_interface(
            description, None, None, values, activates=True, shows_clocks=True
        )
        options = Options("can_bus", None, 1, 0.0, ["logStatusError"], False, event_mode=True)
        super().__init__(description, interface, inputs, options)
        self.external_name = "the CAN bus"
        self.nodes = tuple(names)

    def __str__(self) -> str:
        return f"CanBus({name_list(self.nodes)})"


def _name_nodes(nodes: int | Sequence[str]) -> list[str]:
    if isinstance(nodes, int):
        names = [f"node{k + 1}" for k in range(min(nodes, _LARGEST_NODES + 1))]
    else:
        names = [nodes] if isinstance(nodes, str) else list(nodes)
    wrong = [name for name in names if not (isinstance(name, str) and name.isidentifier())]
    if wrong:
        raise DiagramError(f"a node of a CAN bus is named by an identifier, not {wrong[0]!r}.")
    if not 2 <= len(names) <= _LARGEST_NODES or len(set(names)) < len(names):
        raise DiagramError(
            f"a CAN bus has 2 to {_LARGEST_NODES} nodes with different names, got {nodes!r}."
        )
    return names


def _whole(name: str, value: int | None, least: int) -> int:
    if value is None:
        return 0
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and least <= value <= _LARGEST_RATE and int(value) == value):
        raise DiagramError(f"`{name}` must be a whole number from {least} on, got {value!r}.")
    return int(value)


@cache
def make_folder() -> Path:
    """Return the folder of the descriptions of this process."""
    folder = Path(tempfile.mkdtemp(prefix="biella-can-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _write_description(nodes: tuple[str, ...]) -> Path:
    """Write the description of a bus, in the form of an FMU without a binary."""
    path = make_folder() / f"can_bus_{len(list(make_folder().iterdir()))}.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (
            ("modelDescription.xml", _describe(nodes)),
            (
                "terminalsAndIcons/terminalsAndIcons.xml",
                describe_terminals({name: f"{name}." for name in nodes}),
            ),
        ):
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


def _describe(nodes: Sequence[str]) -> str:
    discrete = 'variability="discrete"'
    variables, outputs = [], [6, 7, 8]
    for k, name in enumerate(nodes):
        first = _FIRST + _VARIABLES * k
        clock, data = f'<Clock name="{name}.{{}}_clock"', f'<Binary name="{name}.{{}}_data"'
        mime = f"mimeType={quoteattr(MIME)}"
        variables += [
            f'{data.format("rx")} valueReference="{first}" causality="input" {discrete} '
            f'clocks="{first + 2}" {mime}><Start value=""/></Binary>',
            f'{data.format("tx")} valueReference="{first + 1}" causality="output" {discrete} '
            f'clocks="{first + 3}" {mime}/>',
            f'{clock.format("rx")} valueReference="{first + 2}" causality="input" '
            f'intervalVariability="triggered"/>',
            f'{clock.format("tx")} valueReference="{first + 3}" causality="input" '
            f'intervalVariability="countdown"/>',
        ]
        outputs.append(first + 1)
    parameters = [
        f'<Int32 name="{name}" valueReference="{k}" causality="parameter" variability="fixed" '
        f'start="0"/>'
        for k, name in enumerate(_PARAMETERS, 1)
    ]
    listed = "".join(f'<Output valueReference="{n}" dependencies=""/>' for n in outputs)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="CAN bus" instantiationToken="can_bus">
<CoSimulation modelIdentifier="can_bus" canGetAndSetFMUState="true" canSerializeFMUState="true"
  canHandleVariableCommunicationStepSize="true" hasEventMode="true"/>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
{"".join(parameters)}
<Int32 name="frames" valueReference="6" causality="output" {discrete}
  description="frames that have ended"/>
<Float64 name="load" valueReference="7" causality="output" {discrete}
  description="fraction of time that the bus was not idle"/>
<Int32 name="waiting" valueReference="8" causality="output" {discrete}
  description="frames that wait"/>
{"".join(variables)}
</ModelVariables><ModelStructure>{listed}</ModelStructure></fmiModelDescription>
"""


def describe_terminals(terminals: Mapping[str, str]) -> str:
    """Return the file of bus terminals; of each its name, and how names of its variables begin."""
    members = [
        "".join(
            f'<TerminalMemberVariable variableKind="signal" '
            f'variableName="{first}{member.lower()}" memberName="{member}"/>'
            for member in ("Rx_Data", "Tx_Data", "Rx_Clock", "Tx_Clock")
        )
        for first in terminals.values()
    ]
    written = "".join(
        f'<Terminal terminalKind="org.fmi-ls-bus.network-terminal" '
        f'matchingRule="org.fmi-ls-bus.transceiver" name="{name}">{inner}</Terminal>'
        for name, inner in zip(terminals, members, strict=True)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><fmiTerminalsAndIcons fmiVersion="3.0">'
        f"<Terminals>{written}</Terminals></fmiTerminalsAndIcons>"
    )
