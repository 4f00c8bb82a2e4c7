"""Makes FMI 2.0 calls in a process of its own, so that a crash is an exit code.

Reads from stdin, as JSON, the library's path and a list of calls; prints, as JSON, the status of
each call and what it wrote, and all messages. A call is ``[function, instance, argument…]``;
instances, states and byte vectors have names. Stands alone on the standard library.
"""

from __future__ import annotations

import ctypes
import json
import sys
from ctypes import byref, c_char, c_char_p, c_double, c_int, c_size_t, c_uint, c_void_p
from typing import Any

LOGGER = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_int, c_char_p, c_char_p, c_char_p)
ALLOCATE = ctypes.CFUNCTYPE(c_void_p, c_size_t, c_size_t)
FREE = ctypes.CFUNCTYPE(None, c_void_p)

# What a function takes after the component: b boolean or integer, d real; r reads an array of value
# references and their number, D I S write one of reals, integers, strings; o makes room for as many
# results as there are references; s names a state, & the place for one, x a place for one result.
SIGNATURES = {
    "fmi2SetDebugLogging": "bS",
    "fmi2SetupExperiment": "bddbd",
    "fmi2EnterInitializationMode": "",
    "fmi2ExitInitializationMode": "",
    "fmi2Terminate": "",
    "fmi2Reset": "",
    "fmi2GetReal": "ro",
    "fmi2GetInteger": "ro",
    "fmi2GetBoolean": "ro",
    "fmi2GetString": "ro",
    "fmi2SetReal": "rD",
    "fmi2SetInteger": "rI",
    "fmi2SetBoolean": "rI",
    "fmi2SetString": "rS",
    "fmi2GetFMUstate": "&",
    "fmi2SetFMUstate": "s",
    "fmi2FreeFMUstate": "&",
    "fmi2SerializedFMUstateSize": "sx",
    "fmi2GetDirectionalDerivative": "rrDo",
    "fmi2SetRealInputDerivatives": "rID",
    "fmi2GetRealOutputDerivatives": "rIo",
    "fmi2DoStep": "ddb",
    "fmi2CancelStep": "",
    "fmi2GetStatus": "bx",
    "fmi2GetRealStatus": "bx",
    "fmi2GetIntegerStatus": "bx",
    "fmi2GetBooleanStatus": "bx",
    "fmi2GetStringStatus": "bx",
}
RESULTS: dict[str, Any] = {
    "fmi2GetReal": c_double,
    "fmi2GetInteger": c_int,
    "fmi2GetBoolean": c_int,
    "fmi2GetString": c_char_p,
    "fmi2GetDirectionalDerivative": c_double,
    "fmi2GetRealOutputDerivatives": c_double,
    "fmi2SerializedFMUstateSize": c_size_t,
    "fmi2GetStatus": c_int,
    "fmi2GetRealStatus": c_double,
    "fmi2GetIntegerStatus": c_int,
    "fmi2GetBooleanStatus": c_int,
    "fmi2GetStringStatus": c_char_p,
}


class Callbacks(ctypes.Structure):
    """fmi2CallbackFunctions."""

    _fields_ = [
        ("logger", LOGGER),
        ("allocate", ALLOCATE),
        ("free", FREE),
        ("finished", c_void_p),
        ("environment", c_void_p),
    ]


class Caller:
    """The library, and everything that has a name."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.library.fmi2Instantiate.restype = c_void_p
        self.log: list[str] = []
        # The message's only variable argument is its text.
        self.logger = LOGGER(
            lambda e, i, status, category, format, text: self.log.append(text.decode())
        )
        self.callbacks = Callbacks(self.logger, ALLOCATE(), FREE(), None, None)
        self.instances: dict[str | None, c_void_p] = {None: c_void_p()}
        self.states: dict[str | None, c_void_p] = {None: c_void_p()}
        self.bytes: dict[str, Any] = {}

    def call(self, function: str, name: str | None, *arguments: Any) -> tuple[int, Any]:
        """Make one call; return its status and what it wrote."""
        own = getattr(self, function, None)
        if own is not None:
            status, written = own(name, *arguments)
            return int(status), written
        given: list[Any] = [self.instances[name]]
        result: Any = None
        for kind, argument in zip(SIGNATURES[function], arguments, strict=True):
            if kind == "b":
                given.append(c_int(argument))
            elif kind == "d":
                given.append(c_double(float(argument)))
            elif kind == "s":
                given.append(self.states[argument])
            elif kind == "&":
                place = None if argument is None else self.states.setdefault(argument, c_void_p())
                given.append(None if place is None else byref(place))
            elif kind == "x":
                result = RESULTS[function]() if argument else None
                given.append(None if result is None else byref(result))
            elif kind == "o":
                result = (RESULTS[function] * 8)() if argument else None
                given.append(result)
            else:
                given += self.array(kind, argument, function)
        status = int(getattr(self.library, function)(*given))
        if isinstance(result, ctypes.Array):
            return status, list(result)
        return status, None if result is None else result.value

    @staticmethod
    def array(kind: str, values: Any, function: str) -> list[Any]:
        """An array, with its length where FMI requires it; a number is NULL of that length."""
        types: dict[str, Any] = {"r": c_uint, "D": c_double, "I": c_int, "S": c_char_p}
        count = values if isinstance(values, int) else len(values)
        if kind == "S" and not isinstance(values, int):
            values = [None if v is None else v.encode() for v in values]
        if kind == "D" and not isinstance(values, int):
            values = [float(v) for v in values]
        made = None if isinstance(values, int) else (types[kind] * count)(*values)
        if function == "fmi2SetDebugLogging":
            return [c_size_t(count), made]
        return [made, c_size_t(count)] if kind == "r" else [made]

    def fmi2Instantiate(
        self,
        name: str,
        label: str | None,
        type_: int,
        guid: str | None,
        where: str | None,
        callbacks: int,
    ) -> tuple[int, None]:
        """Give an instance a name; status 0 if there is one."""
        made = self.library.fmi2Instantiate(
            None if label is None else label.encode(),
            c_int(type_),
            None if guid is None else guid.encode(),
            None if where is None else where.encode(),
            byref(self.callbacks) if callbacks else None,
            c_int(0),
            c_int(1),
        )
        self.instances[name] = c_void_p(made)
        return 0 if made else 3, None

    def fmi2FreeInstance(self, name: str | None) -> tuple[int, None]:
        """Free an instance; its name stands for NULL from now on."""
        self.library.fmi2FreeInstance(self.instances[name])
        self.instances[name] = c_void_p()
        return 0, None

    def fmi2SerializeFMUstate(
        self, name: str, state: str | None, target: str | None, size: int
    ) -> tuple[int, None]:
        """Serialize into a new byte vector of `size`."""
        made = None if target is None else (c_char * max(size, 1))()
        status = self.library.fmi2SerializeFMUstate(
            self.instances[name], self.states[state], made, c_size_t(size)
        )
        if target is not None:
            self.bytes[target] = made
        return status, None

    def fmi2DeSerializeFMUstate(
        self, name: str, source: str | None, size: int, state: str | None
    ) -> tuple[int, None]:
        """Deserialize `size` bytes, which may be fewer than there are."""
        place = None if state is None else self.states.setdefault(state, c_void_p())
        # A copy of just that size, so that a sanitizer notices a read past its end.
        raw = (
            None if source is None else (c_char * max(size, 1)).from_buffer_copy(self.bytes[source])
        )
        status = self.library.fmi2DeSerializeFMUstate(
            self.instances[name], raw, c_size_t(size), None if place is None else byref(place)
        )
        return status, None

    def spoil(self, name: str, at: int, hexadecimal: str) -> tuple[int, None]:
        """Overwrite some bytes of a byte vector."""
        raw = bytes.fromhex(hexadecimal)
        for n, byte in enumerate(raw):
            self.bytes[name][at + n] = byte
        return 0, None


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    caller = Caller(request["library"])
    caller.library.fmi2GetVersion.restype = c_char_p
    caller.library.fmi2GetTypesPlatform.restype = c_char_p
    calls = [caller.call(*call) for call in request["calls"]]
    names = [
        caller.library.fmi2GetVersion().decode(),
        caller.library.fmi2GetTypesPlatform().decode(),
    ]
    print(json.dumps({"calls": calls, "log": caller.log, "names": names}))


if __name__ == "__main__":
    main()
