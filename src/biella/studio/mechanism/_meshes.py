"""Files of the shapes of bodies: found next to the description that names them, and read.

A file is sent to pages only if it lies, after all links are followed, in the folder of the
description, in the package that this folder is in, or in another package next to that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from ...blocks.multibody.system._visuals import Visual
from ...errors import BiellaError

LARGEST = 32 << 20
"""Bytes of a file of a shape."""

FORMATS = {".stl": 1, ".obj": 2, ".dae": 3}
"""Numbers of the formats that pages read, by suffix."""

_PACKAGE = "package.xml"
_UPWARDS = 5  # folders above the description where packages are looked for


def find_mesh(visual: Visual) -> Path:
    """Return the file of a mesh.

    Raises
    ------
    BiellaError
        If there is none, it is outside the allowed folders, too large, or of another format.
    """
    name = visual.file
    if visual.source is None:
        raise BiellaError(f"`{name}` is next to no file.")
    found = next((path for path in _candidates(name, visual.source) if path.is_file()), None)
    if found is None:
        raise BiellaError(
            f"`{name}` is not a file in the folder of {visual.source.name} or in its packages."
        )
    if found.suffix.lower() not in FORMATS:
        raise BiellaError(f"`{name}` is not read: the formats are {', '.join(FORMATS)}.")
    if found.stat().st_size > LARGEST:
        raise BiellaError(f"`{name}` is larger than {LARGEST >> 20} MB.")
    return found


def read_mesh(path: Path) -> tuple[int, bytes]:
    """Return the number of the format and the content of a file that `find_mesh` has found."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise BiellaError(f"`{path.name}` cannot be read: {error.strerror}.") from None
    if len(content) > LARGEST:
        raise BiellaError(f"`{path.name}` is larger than {LARGEST >> 20} MB.")
    return FORMATS[path.suffix.lower()], content


def _candidates(name: str, source: Path) -> Iterator[Path]:
    """Yield the files that a name may mean, links followed, if they are where they may be."""
    folder = source.resolve().parent
    above = [folder, *folder.parents[:_UPWARDS]]
    own = next((one for one in above if (one / _PACKAGE).is_file()), folder)
    if name.startswith("package://"):
        package, _, rest = unquote(name.removeprefix("package://")).partition("/")
        roots = [one for one in above if one.name == package]
        roots += [one / package for one in above if (one / package / _PACKAGE).is_file()]
        tried = [(root, root / rest) for root in roots]
    else:
        plain = unquote(name.removeprefix("file://")) if name.startswith("file://") else name
        tried = [(root, folder / plain) for root in (folder, own)]
    for root, path in tried:
        try:
            at = path.resolve()
            if at.is_relative_to(root.resolve()):
                yield at
        except (OSError, ValueError):  # such as a name with a null byte
            continue
