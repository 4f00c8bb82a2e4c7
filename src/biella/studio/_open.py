"""What the commands of the studio open: a diagram, results, or a run of another process."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import BiellaError, name_list, suggest

if TYPE_CHECKING:
    from ._session import AbstractSession


def open_session(options: argparse.Namespace) -> AbstractSession:
    """Return the session of a file, a result or a run of another process."""
    if options.attach is not None:
        from ._attached import WatchedSession

        _refuse_run_options(options, "a run of another process")
        run: str | None = options.attach or None
        file: Path | None = options.file
        if run is not None and run.endswith(".py") and file is None:
            file, run = Path(run), None  # `--attach rig.py`
        require_files(file)
        if options.more or (file is not None and file.suffix.lower() in (".h5", ".hdf5")):
            raise BiellaError("--attach takes one Python file at most, that of the run's diagram.")
        return WatchedSession(run, file)
    if options.file is None:
        raise BiellaError(
            "name a Python file that defines diagram(), or a result .h5; or watch a live run of "
            "another process with --attach. An example to start from: biella demo."
        )
    require_files(options.file, *options.more, options.bind)
    if options.file.suffix.lower() in (".h5", ".hdf5"):
        from ._result import ResultSession

        _refuse_run_options(options, "a result")
        others, source = _sort_files(options.more)
        return ResultSession(options.file, source, others=others)
    if options.factor is not None and not 0.0 <= options.factor < math.inf:
        raise BiellaError(
            f"--factor is a number of simulated seconds per second, 0 for as fast as possible; "
            f"got {options.factor:g}."
        )
    if options.more:
        raise BiellaError("only a result .h5 is followed by the file of its diagram.")
    from ._session import LiveSession

    session = LiveSession(
        options.file, options.bind, options.log, options.factor,
        reactions=options.forces or None, pushes=options.push or None,
    )  # fmt: skip
    session.load()
    return session


def _refuse_run_options(options: argparse.Namespace, what: str) -> None:
    """Refuse options that would have no effect: they are of a run that is started here."""
    given = [
        f"--{name}"
        for name in ("bind", "factor", "log", "forces", "push")
        if getattr(options, name) not in (None, False)
    ]
    if given:
        raise BiellaError(
            f"{name_list(given)} cannot be used with {what}: only for runs that are started from "
            f"a Python file."
        )


def _sort_files(files: Sequence[Path]) -> tuple[list[Path], Path | None]:
    """Return the results among the files after the first, and the file of the diagram."""
    results = [file for file in files if file.suffix.lower() in (".h5", ".hdf5")]
    sources = [file for file in files if file not in results]
    if len(sources) > 1:
        raise BiellaError(
            f"only one file can be that of the diagram, got `{sources[0]}` and `{sources[1]}`."
        )
    return results, sources[0] if sources else None


def require_files(*files: Path | None) -> None:
    """Raise BiellaError with the next step if a file is missing."""
    for file in files:
        if file is None or file.is_file():
            continue
        if file.is_dir():
            raise BiellaError(f"`{file}` is a folder: name a file in it.")
        near = suggest(file.name, [path.name for path in _list_folder(file.parent)])
        how = {
            ".h5": "Record one: biella simulate FILE.py --out run.h5, or biella run-realtime "
            "FILE.py --log run.h5.",
            ".toml": "Write one to start from: biella bind FILE.py rig.toml --template BLOCK.",
            ".py": "It is a Python file that defines diagram(); biella demo writes one to start "
            "from.",
        }
        advice = how.get(file.suffix.lower(), "Check the name and the folder.")
        raise BiellaError(f"there is no file `{file}`.{near} {advice}")


def _list_folder(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(folder.iterdir())
    return []
