"""A node of a CAN bus that packs signals of a diagram into frames, run by the engine."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ...blocks.core._units import UnitError, parse_unit
from ...errors import DiagramError, name_list, suggest
from ..importer._archive import read_archive
from ..importer._engine_fmu import EngineFmu
from ..importer._interface import choose_interface, read_description
from ..importer._options import Options
from ._can_bus import MIME, describe_terminals, make_folder
from ._can_signals import CanMessage, CanSignal, encode_layout, load_messages

_FIRST = 16  # reference of the first signal, as in can_node.c


class CanNode(EngineFmu):
    """A node of a CAN bus: signals of the diagram in frames that are sent and received.

    Each signal of a sent message is an input, and each signal of a received one an output, named
    as in ``node["EngineStatus.speed"]``. A value is rounded to the nearest raw number:

        raw = round((value - offset) / scale)

    A message with a period is sent at start + delay + n · period, at exactly these instants, with
    the inputs of the tick before; a message without one is sent at a tick where its data change.
    Outputs change at the end of a received frame, and are initially those of the messages. Frames
    of other messages, remote frames and frames that are too short are ignored. The terminal ``CAN``
    connects to a `CanBus`, to another node, or to the bus terminal of an FMU:
    ``d.connect(bus.terminal("engine"), engine.terminal("CAN"))``.

    Parameters
    ----------
    sends, receives
        Messages, or their names in the database.
    database
        DBC file; requires cantools (``pip install "biella[can]"``).
    saturate
        Values outside the range of a signal are limited; otherwise they end the run.

    Further outputs are `sent`, the number of frames handed over for transmission; `confirmed`, of
    those that the bus has transmitted; and `received`, of frames of the received messages.

    Raises
    ------
    DiagramError
        If there are no messages, two of one name or identifier, or a name is not in the database.
    DeviceError
        If the database cannot be read.
    """

    builtin = "builtin:can_node"

    def __init__(
        self,
        sends: Sequence[CanMessage | str] = (),
        receives: Sequence[CanMessage | str] = (),
        *,
        database: str | Path | None = None,
        saturate: bool = False,
    ) -> None:
        known = {} if database is None else load_messages(database)
        messages = [
            (_find(message, known, database), is_sent)
            for some, is_sent in ((sends, True), (receives, False))
            for message in ([some] if isinstance(some, CanMessage | str) else some)
        ]
        _check([message for message, _ in messages])
        archive = read_archive(_write_description(messages))
        description = read_description(archive, validate=False)
        values = {"layout": encode_layout(messages), "saturates": int(saturate)}
        interface, inputs = choose_interface(
            description, None, None, values, activates=True, shows_clocks=True
        )
        options = Options("can_node", None, 1, 0.0, ["logStatusError"], False, event_mode=True)
        super().__init__(description, interface, inputs, options)
        self.external_name = "the CAN node"
        self.messages = tuple(message for message, _ in messages)

    def __str__(self) -> str:
        return f"CanNode({name_list([message.name for message in self.messages])})"


def _find(
    message: CanMessage | str, known: dict[str, CanMessage], database: str | Path | None
) -> CanMessage:
    if isinstance(message, CanMessage):
        return message
    if message not in known:
        where = "no database is given" if database is None else f"`{database}` has none"
        raise DiagramError(
            f"there is no CAN message {message!r}: {where} of that name."
            f"{suggest(str(message), known)} Messages: {name_list(known)}."
        )
    return known[message]


def _check(messages: Sequence[CanMessage]) -> None:
    if not messages:
        raise DiagramError("a CAN node sends or receives at least one message.")
    seen: dict[object, CanMessage] = {}
    for message in messages:
        for key in (message.name, (message.identifier, message.extended)):
            if key in seen:
                raise DiagramError(
                    f"a CAN node has the messages `{seen[key].name}` and `{message.name}`, which "
                    f"have the same name or identifier."
                )
            seen[key] = message


def _write_description(messages: Sequence[tuple[CanMessage, bool]]) -> Path:
    """Write the description of a node, in the form of an FMU without a binary."""
    folder = make_folder()
    path = folder / f"can_node_{len(list(folder.iterdir()))}.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (
            ("modelDescription.xml", _describe(messages)),
            ("terminalsAndIcons/terminalsAndIcons.xml", describe_terminals({"CAN": ""})),
        ):
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


def _describe(messages: Sequence[tuple[CanMessage, bool]]) -> str:
    discrete, mime = 'variability="discrete"', f"mimeType={quoteattr(MIME)}"
    variables, outputs, number = [], [3, 7, 8, 9], _FIRST
    for message, is_sent in messages:
        for signal in message.signals:
            variables.append(_describe_signal(message, signal, number, is_sent))
            outputs += [] if is_sent else [number]
            number += 1
    counts = "".join(
        f'<Int32 name="{name}" valueReference="{n}" causality="output" {discrete} '
        f'description="{what}"/>'
        for name, n, what in (
            ("sent", 7, "frames handed over for transmission"),
            ("confirmed", 8, "frames that the bus has transmitted"),
            ("received", 9, "frames of the received messages"),
        )
    )
    listed = "".join(f'<Output valueReference="{n}" dependencies=""/>' for n in outputs)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="CAN node" instantiationToken="can_node">
<CoSimulation modelIdentifier="can_node" canGetAndSetFMUState="true" canSerializeFMUState="true"
  canHandleVariableCommunicationStepSize="true" hasEventMode="true"/>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
<Binary name="layout" valueReference="1" causality="parameter" variability="fixed">
  <Start value=""/></Binary>
<Int32 name="saturates" valueReference="6" causality="parameter" variability="fixed" start="0"/>
<Binary name="rx_data" valueReference="2" causality="input" {discrete} clocks="4" {mime}>
  <Start value=""/></Binary>
<Binary name="tx_data" valueReference="3" causality="output" {discrete} clocks="5" {mime}/>
<Clock name="rx_clock" valueReference="4" causality="input" intervalVariability="triggered"/>
<Clock name="tx_clock" valueReference="5" causality="input" intervalVariability="countdown"/>
{counts}{"".join(variables)}
</ModelVariables><ModelStructure>{listed}</ModelStructure></fmiModelDescription>
"""


def _describe_signal(message: CanMessage, signal: CanSignal, number: int, is_sent: bool) -> str:
    try:
        parse_unit(signal.unit)
        unit = f"unit={quoteattr(signal.unit)} " if signal.unit else ""
    except UnitError:
        unit = ""  # DBC files name units as they like
    causality = "input" if is_sent else "output"
    start = f'start="{signal.first_value!r}"' if is_sent else ""
    return (
        f'<Float64 name="{message.name}.{signal.name}" valueReference="{number}" '
        f'causality="{causality}" variability="discrete" {unit}{start}/>'
    )
