"""Signals that are strings or binaries, between FMUs: they are not recorded, only their values."""

from __future__ import annotations

import ctypes

from ..engine._engine import Instance

TEXTS = ("string", "binary")


def read_binary(instance: Instance, number: float) -> bytes | None:
    """Return the binary with a number; None: it is not kept any more."""
    size = ctypes.c_int64(0)
    pointer = instance.library.bl_binary_read(instance.handle, number, ctypes.byref(size))
    return ctypes.string_at(pointer, size.value) if pointer else None


def read_texts(instance: Instance) -> dict[str, dict[str, str]]:
    """Return the present values of strings, and of binaries in hexadecimal digits, by path."""
    found: dict[str, dict[str, str]] = {"strings": {}, "binaries": {}}
    for path, port in instance.plan.signals.items():
        if port.kind not in TEXTS:
            continue
        for k in range(port.width):
            name = path if port.width == 1 else f"{path}[{k}]"
            number = float(instance.values[port.slot + k])
            if port.kind == "string":
                text = instance.library.bl_string_read(instance.handle, number) or b""
                found["strings"][name] = text.decode(errors="replace")
            else:
                found["binaries"][name] = (read_binary(instance, number) or b"").hex()
    return {what: values for what, values in found.items() if values}
