"""The text of modelDescription.xml: its encoding, and what is refused before any parser sees it."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from ...errors import FmuError

_DECLARATION = re.compile(r"\s*<\?xml\b[^>]*\?>")
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([^"']*)["']""")
_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)

_COMMON = ("utf-8", "ascii", "iso8859-1", "cp1252")
"""What many tools write and all importers read: no finding."""


def read_text(path: Path, data: bytes) -> tuple[bytes, list[str]]:
    """Return a description in UTF-8, and findings about its encoding.

    FMI requires UTF-8. Other encodings are converted; bytes that are not valid in UTF-8 are read as
    Windows-1252, which most of them are.

    Raises
    ------
    FmuError
        If the text declares a document type or entities, or is no text.
    """
    findings: list[str] = []
    text = _decode(path, data, findings)
    if "\0" in text:
        raise FmuError(f"the description in `{path}` contains null characters: it is not XML.")
    lower = text.lower()
    if "<!doctype" in lower or "<!entity" in lower:
        raise FmuError(
            f"the description in `{path}` declares a document type or entities, which can be used "
            f"to read other files: the FMU is rejected."
        )
    if text[:1].isspace() and text.lstrip().startswith("<?xml"):
        findings.append("modelDescription.xml has white space before its first line.")
    elif not findings:
        return data, findings
    body = _DECLARATION.sub("", text, count=1)
    return b'<?xml version="1.0" encoding="UTF-8"?>' + body.encode(), findings


def _decode(path: Path, data: bytes, findings: list[str]) -> str:
    data = data.removeprefix(codecs.BOM_UTF8)
    name = next((codec for mark, codec in _MARKS if data.startswith(mark)), None)
    if name is None:
        declared = _ENCODING.match(data)
        name = declared[1].decode("ascii", "replace").lower() if declared else "utf-8"
    try:
        text = data.decode(name)
    except LookupError:
        raise FmuError(
            f"the description in `{path}` is in the encoding {name!r}, which is unknown. FMI "
            f"requires UTF-8."
        ) from None
    except ValueError:  # UnicodeError is one
        text = data.decode("cp1252", "replace")
        findings.append(
            f"modelDescription.xml is not valid {name}: it is read as Windows-1252. FMI requires "
            f"UTF-8."
        )
        return text
    if codecs.lookup(name).name not in _COMMON:
        findings.append(f"modelDescription.xml is in {name}. FMI requires UTF-8.")
    return text.removeprefix("\N{BYTE ORDER MARK}")
