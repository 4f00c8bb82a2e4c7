"""System requirements of a Linux library."""

from __future__ import annotations

import re
import struct

_SECTION = struct.Struct("<IIQQQQIIQQ")
_NEED = struct.Struct("<HHIII")
_NEEDED_VERSION = struct.Struct("<IHHII")
_DYNAMIC_SYMBOL = struct.Struct("<IBBHQQ")
_VERSIONS_NEEDED, _DYNAMIC_SYMBOLS = 0x6FFFFFFE, 11


def minimum_glibc(library: bytes) -> str | None:
    """Return the oldest glibc that has all that an ELF library needs, such as ``"2.17"``.

    None if it is not a 64-bit little-endian ELF file, or does not require glibc.
    """
    found = [
        tuple(map(int, match[1].split(".")))
        for name in _needed_versions(library)
        if (match := re.fullmatch(r"GLIBC_(\d+(?:\.\d+)*)", name))
    ]
    return ".".join(map(str, max(found))) if found else None


def exported_symbols(library: bytes) -> list[str]:
    """Return the names that an ELF library defines for others, sorted."""
    names = []
    for kind, offset, size, strings in _sections(library):
        if kind != _DYNAMIC_SYMBOLS:
            continue
        for at in range(offset, offset + size, _DYNAMIC_SYMBOL.size):
            name, _, _, section, _, _ = _DYNAMIC_SYMBOL.unpack_from(library, at)
            if section and name:
                names.append(_text(library, strings + name))
    return sorted(names)


def _needed_versions(library: bytes) -> list[str]:
    """Walk the linked records: for each library needed, each of its versions needed."""
    names = []
    for kind, at, _, strings in _sections(library):
        while kind == _VERSIONS_NEEDED:
            _, count, _, first, following = _NEED.unpack_from(library, at)
            version = at + first
            for _ in range(count):
                _, _, _, name, step = _NEEDED_VERSION.unpack_from(library, version)
                names.append(_text(library, strings + name))
                version += step
            if not following:
                break
            at += following
    return names


def _sections(library: bytes) -> list[tuple[int, int, int, int]]:
    """Return type, offset and size of each section, and the offset of the strings it uses."""
    if library[:6] != b"\x7fELF\x02\x01":
        return []
    (table,) = struct.unpack_from("<Q", library, 40)
    size, count = struct.unpack_from("<HH", library, 58)
    rows = [_SECTION.unpack_from(library, table + n * size) for n in range(count)]
    return [(row[1], row[4], row[5], rows[row[6]][4] if row[6] < count else 0) for row in rows]


def _text(library: bytes, at: int) -> str:
    return library[at : library.index(b"\0", at)].decode("ascii", "replace")
