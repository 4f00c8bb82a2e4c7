"""Modbus: registers and coils of a device on TCP or a serial line (RTU), through pymodbus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ....errors import DeviceError
from .._driver import Setup, load_package
from .._options import Option
from ._modbus_registers import (
    BITS,
    KINDS,
    ORDERS,
    TYPES,
    Span,
    check_channels,
    find_range,
    gather,
    locate,
    type_of,
)
from ._polling import AbstractPollingDriver, check_finite

if TYPE_CHECKING:
    from ...binding._rig import Channel

# Of one request, so that it and its answer fit the 253 bytes of a Modbus message.
_MOST_READ = (125, 2000)
_MOST_WRITTEN = (123, 1968)

# The function of pymodbus and its number.
_READ = {
    "holding": ("read_holding_registers", 3),
    "input": ("read_input_registers", 4),
    "coil": ("read_coils", 1),
    "discrete": ("read_discrete_inputs", 2),
}
_WRITE_ONE = {"holding": ("write_register", 6), "coil": ("write_coil", 5)}  # small devices' only
_WRITE = {"holding": ("write_registers", 16), "coil": ("write_coils", 15)}
_REFUSALS = {
    1: "unsupported function",
    2: "invalid address. Addresses start at 0: 40001 in a manual is holding 0",
    3: "invalid value or count",
    4: "it has failed",
    6: "it is busy",
    10: "the gateway has no path to the unit",
    11: "the unit does not respond to the gateway",
}


class Refused(DeviceError):
    """The device has answered, and will not."""


class ModbusDriver(AbstractPollingDriver):
    """Registers and coils of a Modbus device.

    Each channel is a register, or several that hold one number. Every `period` the newest outputs
    are written and all inputs are read, neighbors in one request. Whatever is not the proper
    answer to a request, or is not a finite number, is the loss of the device.
    """

    options: ClassVar[Mapping[str, Option]] = {
        "host": Option("text", "address of the device, for TCP"),
        "port": Option("whole", "port of the device, for TCP", default=502, low=1, high=65535),
        "serial": Option("text", "the serial port, for RTU, such as /dev/ttyUSB0"),
        "baud": Option("whole", "baud rate in bit/s, for RTU", default=19200, low=50),
        "parity": Option("text", "for RTU", default="even", choices=("even", "odd", "none")),
        "stop_bits": Option("whole", "for RTU", default=1, low=1, high=2),
        "unit_id": Option("whole", "unit on the line or behind the gateway", 1, low=0, high=255),
        "word_order": Option(
            "text", "word order of values with several words", "big", choices=ORDERS
        ),
        **AbstractPollingDriver.options,
    }
    channel_options: ClassVar[Mapping[str, Option]] = {
        "kind": Option("text", f"one of {', '.join(KINDS)}", required=True, choices=KINDS),
        "address": Option("whole", "counted from 0", required=True, low=0, high=65535),
        "type": Option("text", "what stands there", choices=tuple(TYPES)),
        "word_order": Option("text", "overrides that of the device", choices=ORDERS),
    }

    @classmethod
    def check(cls, setup: Setup) -> list[str]:
        """Look for what can never work: lines, unit, registers."""
        problems = _check_line(setup.options)
        problems += check_channels(setup.receive, written=False)
        return problems + check_channels(setup.send, written=True)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        order = setup.options["word_order"]
        ins, outs = locate(setup.receive, order), locate(setup.send, order)
        self._ins, self._outs = gather(ins, *_MOST_READ), gather(outs, *_MOST_WRITTEN)
        self._values = [0.0] * len(ins)
        self._unit = setup.options["unit_id"]
        self._errors: Any = None
        self._client: Any = None

    def holds(self, channel: Channel) -> tuple[float, float]:
        """Return the range of the register's type."""
        return find_range(type_of(channel))

    def open(self) -> None:
        """Connect."""
        self._errors = load_package("modbus", "pymodbus.exceptions")
        self._client = _make_client(self.setup.options, self.patience)
        if not self._client.connect():
            raise DeviceError(_explain_closed(self.setup.options))

    def close(self) -> None:
        """Let go of the line."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def ask(self) -> list[float]:
        """Read all inputs."""
        for span in self._ins:
            answer = self._request(f"read {span}", _READ[span.kind], span, count=span.count)
            words, wanted = answer.registers, span.count
            if span.kind in BITS:
                words, wanted = answer.bits, -(-span.count // 8) * 8
            if len(words) != wanted:
                raise DeviceError(f"requested {span}, received {len(words)} values")
            span.decode(words, self._values)
            for register in span.registers:
                check_finite(register.name, self._values[register.number])
        return self._values

    def tell(self, values: Sequence[float]) -> None:
        """Write all outputs, also those after one that is refused: they may be safe values."""
        refused: Refused | None = None
        # All are encoded first, so that a number that does not fit keeps everything from going out.
        for span, words in [(span, span.encode(values)) for span in self._outs]:
            try:
                self._write(span, words)
            except Refused as error:
                refused = refused or error
        if refused is not None:
            raise refused

    def _write(self, span: Span, words: Sequence[int]) -> None:
        given: list[Any] = [bool(word) for word in words] if span.kind in BITS else [*words]
        what = f"write {span}"
        if span.count == 1:
            answer = self._request(what, _WRITE_ONE[span.kind], span, given[0])
        else:
            answer = self._request(what, _WRITE[span.kind], span, given)
        if answer.address != span.address or (span.count > 1 and answer.count != span.count):
            raise DeviceError(f"unit {self._unit} confirmed another request ({what})")

    def _request(
        self, what: str, function: tuple[str, int], span: Span, *values: Any, **more: Any
    ) -> Any:
        """Return the answer to a request; DeviceError if there is none, or a refusal."""
        errors, (name, number) = self._errors, function
        ask = getattr(self._client, name)
        try:
            answer = ask(span.address, *values, device_id=self._unit, **more)
        except errors.ConnectionException:
            raise DeviceError(f"the connection was closed ({what})") from None
        except errors.ModbusException:
            raise DeviceError(
                f"unit {self._unit} did not send a valid response within {self.patience:g} s "
                f"({what})"
            ) from None
        if answer.isError():
            code = answer.exception_code
            why = _REFUSALS.get(code, "no reason stated")
            raise Refused(f"unit {self._unit} rejected the request to {what}, code {code}: {why}")
        if answer.function_code != number:
            raise DeviceError(f"unit {self._unit} sent an unexpected response ({what})")
        return answer


def _check_line(options: Mapping[str, Any]) -> list[str]:
    host, serial, unit = options["host"], options["serial"], options["unit_id"]
    if (host is None) == (serial is None):
        both = "both host and serial: one of them" if host is not None else "neither: say"
        return [f'has {both} host = "…" for Modbus TCP, or serial = "…" for a serial line (RTU).']
    problems = []
    if serial is not None and not 1 <= unit <= 247:
        problems.append(f"unit_id is {unit}, but must be 1 to 247 on a serial line.")
    try:
        load_package("modbus", "pymodbus.client")
        if serial is not None:
            load_package("modbus", "serial")
    except DeviceError as error:
        problems.append(str(error))
    return problems


def _make_client(options: Mapping[str, Any], patience: float) -> Any:
    """Return a client without retries: a late response would be taken for that of the retry."""
    client, given = load_package("modbus", "pymodbus.client"), {"timeout": patience, "retries": 0}
    if options["host"] is not None:
        return client.ModbusTcpClient(options["host"], port=options["port"], **given)
    load_package("modbus", "serial")
    return client.ModbusSerialClient(
        options["serial"],
        baudrate=options["baud"],
        parity=options["parity"][0].upper(),
        stopbits=options["stop_bits"],
        **given,
    )


def _explain_closed(options: Mapping[str, Any]) -> str:
    if options["host"] is not None:
        return (
            f"no response from {options['host']}:{options['port']}; check that the device is "
            f"switched on and the address is correct"
        )
    return (
        f"{options['serial']} cannot be opened; check that it exists, that you have "
        f"permission, and that no other program uses it"
    )
