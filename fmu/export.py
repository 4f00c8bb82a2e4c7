"""Exporting: an FMU is a plan and the engine, zipped."""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import BiellaError, DiagramError, FmuError, name_list, suggest
from ..scheduler.compile import compile_diagram
from ..scheduler.diagram import Diagram
from ..scheduler.engine import library_path
from ..scheduler.plan import Plan
from .description import describe, model_identifier

_PLATFORMS = {
    "linux": ("linux64", ".so"),
    "win32": ("win64", ".dll"),
    "darwin": ("darwin64", ".dylib"),
}
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the same input gives the same bytes


def export_fmu(
    diagram: Diagram,
    path: str | Path,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    parameters: Sequence[str] | Mapping[str, float] | None = None,
) -> Path:
    """Write `diagram` as a self-contained FMI 2.0 co-simulation FMU and return its path.

    The FMU has the diagram's own inputs and outputs. Its base step is the diagram's; a
    communication step must be a whole number of base steps.

    Parameters
    ----------
    inputs
        Source blocks that become inputs of the FMU, with their first value as start.
    outputs
        More signals that become outputs, such as ``"plant.speed"``.
    parameters
        Paths or patterns of the parameters to show; all of them if not given.

    Raises
    ------
    DiagramError
        If the diagram is wrong, or has Python blocks, which cannot leave Python.
    FmuError
        If the file cannot be written.
    """
    from .. import __version__

    plan = compile_diagram(diagram, inputs=inputs or (), outputs=outputs or ())
    if plan.foreign:
        raise DiagramError(
            f"an FMU cannot hold foreign FMUs, but the diagram has {plan.name_foreign()}. Leave "
            f"them outside and connect them to the exported FMU in the tool that runs both."
        )
    if plan.python_blocks:
        names = ", ".join(f"`{plan.blocks[n].path}`" for n in plan.python_blocks)
        raise DiagramError(
            f"an FMU runs without Python, but these blocks are written in it: {names}. Write "
            f"them as an Expression or with native blocks; a source may be named in inputs=[…]."
        )
    identifier = model_identifier(plan.name)
    platform, suffix = _PLATFORMS.get(sys.platform, ("linux64", ".so"))
    files: dict[str, bytes] = {
        "modelDescription.xml": describe(
            plan, _choose_parameters(plan, parameters), __version__
        ).encode(),
        f"binaries/{platform}/{identifier}{suffix}": library_path().read_bytes(),
        "resources/plan.bin": plan.data,
    }
    return _write_zip(Path(path), files)


def _choose_parameters(
    plan: Plan, patterns: Sequence[str] | Mapping[str, float] | None
) -> list[str] | None:
    if patterns is None:
        return None
    chosen: list[str] = []
    for pattern in patterns:
        matching = [name for name in plan.parameters if fnmatchcase(name, pattern)]
        if not matching:
            raise BiellaError(
                f"there is no parameter `{pattern}`.{suggest(pattern, plan.parameters)} "
                f"Parameters: {name_list(plan.parameters)}."
            )
        chosen += matching
    return chosen


def _write_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write to a temporary file beside `path` and rename, so that nothing is ever half-written."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent or Path("."), prefix=f".{path.name}.")
    except OSError as error:
        raise FmuError(f"cannot write `{path}`: {error.strerror}.") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for member, content in sorted(files.items()):
                info = zipfile.ZipInfo(member, _ZIP_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = (0o755 if member.startswith("binaries/") else 0o644) << 16
                archive.writestr(info, content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise FmuError(f"cannot write `{path}`: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)
    return path
