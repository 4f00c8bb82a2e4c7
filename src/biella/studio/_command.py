"""`biella studio`, without its heavy imports."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..errors import BiellaError


def add_command(commands: Any) -> None:
    """Add ``biella studio`` to the command line."""
    added: argparse.ArgumentParser = commands.add_parser(
        "studio",
        help="open a diagram in the browser: run it, watch it, change it while it runs",
        description="Open the diagram of a Python file in the browser, to run it with scopes, "
        "sliders and the moving mechanism.",
        epilog="example: biella studio examples/04_slider_crank.py",
    )
    added.set_defaults(command=_studio)
    added.add_argument("file", type=Path, help="a Python file that defines diagram()")
    added.add_argument("--bind", type=Path, metavar="RIG", help="binding to devices and FMUs")
    added.add_argument("--factor", type=float, help="simulated seconds per second (default: 1)")
    added.add_argument(
        "--log", type=Path, metavar="FILE", help="stream runs to an HDF5 file, to replay"
    )
    added.add_argument("--port", type=int, default=0, help="of the server (default: any)")
    added.add_argument("--no-browser", action="store_true", help="print the address only")


def _studio(options: argparse.Namespace) -> None:
    import webbrowser

    from ._server import StudioServer
    from ._session import LiveSession

    if not options.file.is_file():
        raise BiellaError(f"there is no file `{options.file}`.")
    session = LiveSession(options.file, options.bind, options.log, options.factor)
    session.load()
    with StudioServer(session, options.port) as server:
        print(f"studio: {server.url}", flush=True)
        if not options.no_browser:
            webbrowser.open(server.url)
        session.serve()
