"""An exported FMI 3.0 FMU through ctypes: every call, its status, what it wrote and what it logged.

The declarations are those of FMPy, which are generated from the standard's headers; here they are
written out again, so that a wrong signature on either side shows.
"""

from __future__ import annotations

import ctypes
import re
import xml.etree.ElementTree as ET
import zipfile
from ctypes import byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any

OK, WARNING, DISCARD, ERROR = 0, 1, 2, 3
LOGGER = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)
UPDATE = ctypes.CFUNCTYPE(
    None, c_void_p, c_double, c_bool, c_bool, c_bool, c_bool,
    ctypes.POINTER(c_bool), ctypes.POINTER(c_double),
)  # fmt: skip
TYPES: dict[str, Any] = {
    "Float32": ctypes.c_float,
    "Float64": c_double,
    "Int8": ctypes.c_int8,
    "UInt8": ctypes.c_uint8,
    "Int16": ctypes.c_int16,
    "UInt16": ctypes.c_uint16,
    "Int32": ctypes.c_int32,
    "UInt32": c_uint32,
    "Int64": ctypes.c_int64,
    "UInt64": ctypes.c_uint64,
    "Boolean": c_bool,
    "String": c_char_p,
}


class Unpacked3:
    """An FMI 3.0 FMU in a folder."""

    def __init__(self, path: Path, folder: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        self.root = ET.parse(folder / "modelDescription.xml").getroot()
        self.token = self.root.attrib["instantiationToken"]
        self.folder = folder
        self.library = next((folder / "binaries").rglob("*.*"))
        self.variables = {
            str(v.get("name")): v for group in self.root.iter("ModelVariables") for v in group
        }

    def refer(self, name: str) -> int:
        return int(self.variables[name].attrib["valueReference"])

    def size(self, name: str) -> int:
        size = 1
        for dimension in self.variables[name].iter("Dimension"):
            size *= int(dimension.attrib["start"])
        return size


class Instance3:
    """One instance; methods are FMI's functions, and values are read and set by name."""

    def __init__(
        self,
        fmu: Unpacked3,
        *,
        events: bool = False,
        early: bool = False,
        logging: bool = True,
        **changes: Any,
    ) -> None:
        self.fmu = fmu
        self.library = ctypes.CDLL(str(changes.get("library", fmu.library)))
        self.log: list[tuple[int, str, str]] = []
        self.logger = LOGGER(
            lambda _, status, category, text: self.log.append(
                (status, category.decode(), text.decode())
            )
        )
        update = changes.get("update")
        self.callback = None if update is None else UPDATE(update)
        create = self.library.fmi3InstantiateCoSimulation
        create.restype = c_void_p
        required = changes.get("required", [])
        label, token = changes.get("label", "one"), changes.get("token", fmu.token)
        where = changes.get("where", str(fmu.folder / "resources"))
        self.pointer = c_void_p(
            create(
                None if label is None else label.encode(),
                None if token is None else token.encode(),
                None if where is None else where.encode(),
                c_bool(False), c_bool(logging), c_bool(events), c_bool(early),
                (c_uint32 * max(len(required), 1))(*required), c_size_t(len(required)),
                None, self.logger, self.callback,
            )
        )  # fmt: skip

    def call(self, function: str, *arguments: Any) -> int:
        """Call a function of FMI with this instance; floats, booleans and counts are converted."""
        made = [
            c_bool(a)
            if isinstance(a, bool)
            else c_double(a)
            if isinstance(a, float)
            else c_size_t(a)
            if isinstance(a, int)
            else a
            for a in arguments
        ]
        return int(getattr(self.library, function)(self.pointer, *made))

    def free(self) -> None:
        self.library.fmi3FreeInstance(self.pointer)
        self.pointer = c_void_p()

    @property
    def messages(self) -> list[str]:
        return [text for _, _, text in self.log]

    # Life.

    def start(self, at: float = 0.0, stop: float | None = None, **values: Any) -> Instance3:
        for name, value in values.items():
            assert self.set(name, value) == OK, self.log
        assert self.enter_initialization(at, stop) == OK, self.log
        assert self.call("fmi3ExitInitializationMode") == OK, self.log
        self.time = at
        return self

    def enter_initialization(self, at: float = 0.0, stop: float | None = None) -> int:
        return self.call(
            "fmi3EnterInitializationMode", False, 0.0, at, stop is not None, stop or 0.0
        )

    def step(self, size: float, now: float | None = None) -> tuple[int, bool, bool, bool, float]:
        """Return status, event, terminate, early, and the time reached; go on from there."""
        flags = [c_bool(), c_bool(), c_bool()]
        reached = c_double()
        status = self.call(
            "fmi3DoStep", self.time if now is None else now, size, True,
            *(byref(flag) for flag in flags), byref(reached),
        )  # fmt: skip
        if status == OK:
            self.time = reached.value
        return status, flags[0].value, flags[1].value, flags[2].value, reached.value

    def update(self) -> tuple[int, bool, bool]:
        """Return the status, whether another update is needed, and whether to terminate."""
        flags = [c_bool(True) for _ in range(5)]
        at = c_double()
        status = self.call("fmi3UpdateDiscreteStates", *(byref(f) for f in flags), byref(at))
        return status, flags[0].value, flags[1].value

    # Values.

    def type_of(self, name: str) -> str:
        tag = self.fmu.variables[name].tag
        return "Int64" if tag == "Enumeration" else tag

    def get(self, *names: str) -> list[Any]:
        found: list[Any] = []
        for name in names:
            size = self.fmu.size(name)
            status, values = self.read(self.type_of(name), [self.fmu.refer(name)], size)
            assert status == OK, self.log
            found += values
        return found

    def set(self, name: str, value: Any) -> int:
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        return self.write(self.type_of(name), [self.fmu.refer(name)], values)

    def read(self, type_: str, references: list[int], size: int) -> tuple[int, list[Any]]:
        values = (TYPES[type_] * max(size, 1))()
        given = (c_uint32 * max(len(references), 1))(*references)
        status = self.call(f"fmi3Get{type_}", given, len(references), values, size)
        return status, list(values)[:size]

    def write(self, type_: str, references: list[int], values: list[Any]) -> int:
        made = (TYPES[type_] * max(len(values), 1))(*values)
        given = (c_uint32 * max(len(references), 1))(*references)
        return self.call(f"fmi3Set{type_}", given, len(references), made, len(values))

    # States.

    def save(self) -> c_void_p:
        state = c_void_p()
        assert self.call("fmi3GetFMUState", byref(state)) == OK, self.log
        return state

    def restore(self, state: c_void_p) -> int:
        return self.call("fmi3SetFMUState", state)

    def serialize(self, state: c_void_p) -> bytes:
        size = c_size_t()
        assert self.call("fmi3SerializedFMUStateSize", state, byref(size)) == OK, self.log
        raw = (ctypes.c_uint8 * size.value)()
        assert self.call("fmi3SerializeFMUState", state, raw, size.value) == OK, self.log
        return bytes(raw)

    def deserialize(self, raw: bytes) -> tuple[int, c_void_p]:
        state = c_void_p()
        copied = (ctypes.c_uint8 * max(len(raw), 1)).from_buffer_copy(raw or b"\0")
        return self.call("fmi3DeserializeFMUState", copied, len(raw), byref(state)), state

    # Derivatives.

    def directional(
        self, unknowns: list[str], knowns: list[str], seed: list[float]
    ) -> tuple[int, list[float]]:
        """J · seed, a value for each unknown."""
        return self._differentiate("Directional", unknowns, knowns, seed, unknowns)

    def adjoint(
        self, unknowns: list[str], knowns: list[str], seed: list[float]
    ) -> tuple[int, list[float]]:
        """seedᵀ · J, a value for each known."""
        return self._differentiate("Adjoint", unknowns, knowns, seed, knowns)

    def _differentiate(
        self, which: str, unknowns: list[str], knowns: list[str], seed: list[float], to: list[str]
    ) -> tuple[int, list[float]]:
        rows, columns = ([self.fmu.refer(name) for name in names] for names in (unknowns, knowns))
        size = sum(self.fmu.size(name) for name in to)
        out = (c_double * max(size, 1))()
        status = self.call(
            f"fmi3Get{which}Derivative",
            (c_uint32 * max(len(rows), 1))(*rows), len(rows),
            (c_uint32 * max(len(columns), 1))(*columns), len(columns),
            (c_double * max(len(seed), 1))(*seed), len(seed), out, size,
        )  # fmt: skip
        return status, list(out)[:size]

    def output_derivatives(self, names: list[str], order: int = 1) -> tuple[int, list[float]]:
        references = [self.fmu.refer(name) for name in names]
        size = sum(self.fmu.size(name) for name in names)
        out = (c_double * max(size, 1))()
        status = self.call(
            "fmi3GetOutputDerivatives",
            (c_uint32 * max(len(names), 1))(*references), len(names),
            (ctypes.c_int32 * max(len(names), 1))(*[order] * len(names)), out, size,
        )  # fmt: skip
        return status, list(out)[:size]


def flag(fmu: Unpacked3, name: str) -> str | None:
    """Return an attribute of the element CoSimulation."""
    found = fmu.root.find("CoSimulation")
    assert found is not None
    return found.get(name)


def is_refused(text: str, function: str) -> bool:
    """Whether a message says that a function is not allowed in a state."""
    name = re.sub(r"fmi3(Get|Set)(" + "|".join(TYPES) + ")", r"fmi3\1{VariableType}", function)
    return text.startswith(f"{name} is not allowed in the state")
