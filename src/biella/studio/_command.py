"""`biella studio` and `biella page`, without their heavy imports."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BiellaError

if TYPE_CHECKING:
    from ._session import AbstractSession


def add_command(commands: Any) -> None:
    """Add ``biella studio`` and ``biella page`` to the command line."""
    added: argparse.ArgumentParser = commands.add_parser(
        "studio",
        help="open a diagram in the browser: run it, watch it, change it while it runs",
        description="Open the diagram of a Python file in the browser, to run it with scopes, "
        "sliders and the moving mechanism.",
        epilog="example: biella studio examples/04_slider_crank.py",
    )
    added.set_defaults(command=_studio)
    added.add_argument(
        "file", type=Path, nargs="?", help="a Python file that defines diagram(), or a result .h5"
    )
    added.add_argument(
        "source", type=Path, nargs="?", help="of a result: the Python file of its diagram"
    )
    added.add_argument("--bind", type=Path, metavar="RIG", help="binding to devices and FMUs")
    added.add_argument("--factor", type=float, help="simulated seconds per second (default: 1)")
    added.add_argument(
        "--log", type=Path, metavar="FILE", help="stream each run to an HDF5 file, to replay"
    )
    added.add_argument(
        "--attach", nargs="?", const="", metavar="RUN",
        help="a live run of another process: process or diagram (default: the only one)",
    )  # fmt: skip
    added.add_argument("--port", type=int, default=0, help="of the server (default: any)")
    added.add_argument("--no-browser", action="store_true", help="print the address only")
    _add_page(commands)


def _add_page(commands: Any) -> None:
    added: argparse.ArgumentParser = commands.add_parser(
        "page",
        help="write a recorded run as one HTML file with diagram, scopes and moving mechanism",
        description="Write a result or a log as one HTML file: the diagram, scopes and the moving "
        "mechanism, for any browser, without biella, a server or a network.",
        epilog="example: biella page run.h5 rig.py -o run.html",
    )
    added.set_defaults(command=_page)
    added.add_argument("file", type=Path, help="a result or a log, .h5")
    added.add_argument(
        "source", type=Path, nargs="?", help="the Python file of its diagram, for the mechanism"
    )
    added.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="default: name of the result, .html"
    )
    added.add_argument(
        "--signals", nargs="+", metavar="NAME", help="only these; * and ? match (default: all)"
    )
    added.add_argument(
        "--every", type=int, metavar="N",
        help="put N rows in one, with the smallest and the largest value (default: as --size asks)",
    )  # fmt: skip
    added.add_argument("--size", type=float, default=20.0, help="largest file in MB (default: 20)")


def _page(options: argparse.Namespace) -> None:
    from ._page_file import write_page_file
    from ._result import ResultSession

    for file in (options.file, options.source):
        if file is not None and not file.is_file():
            raise BiellaError(f"there is no file `{file}`.")
    if options.file.suffix.lower() not in (".h5", ".hdf5"):
        raise BiellaError(
            f"`{options.file}` is no result .h5: record one with `biella simulate FILE --out "
            f"run.h5` or `biella run-realtime FILE --log run.h5`."
        )
    session = ResultSession(options.file, options.source)
    out = options.out or Path(options.file.with_suffix(".html").name)
    written = write_page_file(
        session, out, signals=options.signals, every=options.every, largest=options.size
    )
    print(f"{out}: {written.signals} signals, {written.size / 1e6:.1f} MB")
    if written.every > 1:
        print(
            f"one point for {written.every} rows, with their smallest and largest value; "
            f"--signals, --every and --size choose what is kept"
        )
    if session.unseen:
        names = ", ".join(session.unseen)
        print(f"does not move, since the poses of its bodies were not recorded: {names}")


def _studio(options: argparse.Namespace) -> None:
    from ._server import StudioServer

    session = _open_session(options)
    with StudioServer(session, options.port) as server:
        _show_address(server.url, not options.no_browser)
        with contextlib.suppress(KeyboardInterrupt):
            session.serve()


def _open_session(options: argparse.Namespace) -> AbstractSession:
    if options.attach is not None:
        from ._attached import WatchedSession

        if options.file is not None:
            raise BiellaError("--attach opens a run of another process: name no file.")
        return WatchedSession(options.attach or None)
    if options.file is None:
        raise BiellaError("name a Python file that defines diagram(), a result, or --attach.")
    if not options.file.is_file():
        raise BiellaError(f"there is no file `{options.file}`.")
    if options.file.suffix.lower() in (".h5", ".hdf5"):
        from ._result import ResultSession

        return ResultSession(options.file, options.source)
    if options.source is not None:
        raise BiellaError("only a result .h5 is followed by the file of its diagram.")
    from ._session import LiveSession

    session = LiveSession(options.file, options.bind, options.log, options.factor)
    session.load()
    return session


def _show_address(url: str, browser: bool) -> None:
    """Print where the studio is, and open it in the browser if wanted."""
    import webbrowser

    print(f"studio: {url}", flush=True)
    if browser:
        webbrowser.open(url)
