"""`biella studio`, `biella serve` and `biella page`, without their heavy imports."""

from __future__ import annotations

import argparse
import contextlib
import html
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import BiellaError
from ._open import open_session, require_files
from ._serve import add_serve


def add_command(commands: Any) -> None:
    """Add ``biella studio``, ``biella serve`` and ``biella page`` to the command line."""
    added: argparse.ArgumentParser = commands.add_parser(
        "studio",
        help="open a diagram in the browser: run it, watch it, change it while it runs",
        description="Open the diagram of a Python file in the browser, to run it with scopes, "
        "sliders and the moving mechanism.",
        epilog="example: biella studio examples/04_slider_crank.py",
    )
    added.set_defaults(command=_studio)
    _add_source(added)
    added.add_argument("--no-browser", action="store_true", help="print the address only")
    _add_source(add_serve(commands))
    _add_page(commands)


def _add_source(added: argparse.ArgumentParser) -> None:
    """Add what is shown, and where."""
    added.add_argument(
        "file", type=Path, nargs="?", help="a Python file that defines diagram(), or a result .h5"
    )
    added.add_argument(
        "more",
        type=Path,
        nargs="*",
        help="of a result: further results to compare with it, and the Python file of its diagram",
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
    added.add_argument(
        "--forces", action="store_true", help="with --bind: show the reactions of joints, too"
    )
    added.add_argument(
        "--push", action="store_true", help="with --bind: let pages push bodies with a force"
    )
    added.add_argument("--port", type=int, default=0, help="of the server (default: any)")


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

    require_files(options.file, options.source)
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

    session = open_session(options)
    with StudioServer(session, options.port) as server:
        for text in session.list_problems():
            print(f"problem: {text}", file=sys.stderr)
        print(f"studio: {server.url}", flush=True)
        opened = _open_browser(server.url, not options.no_browser)
        with opened, contextlib.suppress(KeyboardInterrupt):
            session.serve()


_REDIRECT = """<!DOCTYPE html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>biella studio</title>
<script>location.replace({script});</script>
<p><a href="{link}">Open the studio</a></p>
"""


@contextlib.contextmanager
def _open_browser(url: str, wanted: bool) -> Iterator[None]:
    """Open the address in the browser, if wanted, without naming it on its command line.

    Every user of the machine can read that, and the address has the token: the browser opens a
    file that only this user can read, which leads to it. The file exists during the block.
    """
    if not wanted:
        yield
        return
    import webbrowser

    with tempfile.TemporaryDirectory(prefix="biella-studio-") as folder:  # of mode 0700
        page = Path(folder, "studio.html")
        page.touch(mode=0o600)
        script = json.dumps(url).replace("<", "\\u003c")
        page.write_text(_REDIRECT.format(script=script, link=html.escape(url)), encoding="utf-8")
        webbrowser.open(page.as_uri())
        yield
