"""`biella serve`, without its heavy imports."""

from __future__ import annotations

import argparse
import contextlib
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BiellaError
from ._open import open_session

if TYPE_CHECKING:
    from ._access import Access
    from ._session import AbstractSession


def add_serve(commands: Any) -> argparse.ArgumentParser:
    """Add ``biella serve`` to the command line; return its parser."""
    added: argparse.ArgumentParser = commands.add_parser(
        "serve",
        help="serve a run of this computer to pages of other ones",
        description="Serve a diagram, a result or a live run of this computer to pages of other "
        "computers. A page with the token of the printed address may look; only a page with the "
        "key may change something.",
        epilog="example: biella serve rig.py --bind rig.toml --key file:rig.key --host 0.0.0.0",
    )
    added.set_defaults(command=_serve)
    added.add_argument(
        "--host", default="127.0.0.1",
        help="address to listen on: 0.0.0.0 is all of this computer (default: loopback only)",
    )  # fmt: skip
    added.add_argument(
        "--key", metavar="KEY",
        help="file:NAME or env:NAME of the key that pages need to change something (default: no "
        "page may); `biella key` makes one",
    )  # fmt: skip
    added.add_argument(
        "--run", action="store_true", help="start the run at once, and not when a page asks for it"
    )
    added.add_argument(
        "--name", action="append", default=[],
        help="further name of this computer that addresses of the page may have",
    )  # fmt: skip
    added.add_argument("--certificate", type=Path, metavar="FILE", help="encrypt: PEM file")
    added.add_argument("--private-key", type=Path, metavar="FILE", help="of the certificate: PEM")
    return added


def _serve(options: argparse.Namespace) -> None:
    from ._server import StudioServer
    from ._session import LiveSession

    access = _read_access(options)
    _require_a_use(options)
    session = open_session(options)
    if isinstance(session, LiveSession):
        # Whoever edits the file chooses what this computer executes: the key is for the run only.
        session.refuse_edits("pages of `biella serve` do not change files")
    with StudioServer(session, options.port, access) as server:
        for line in describe_access(access):
            print(f"serve: {line}", file=sys.stderr)
        for url in server.urls:
            print(f"serve: {url}", flush=True)
        if options.run:
            _start(session)
        with contextlib.suppress(KeyboardInterrupt):
            session.serve()


def _read_access(options: argparse.Namespace) -> Access:
    from ..scheduler.devices._key import read_key
    from ._access import Access, load_certificate

    if (options.certificate is None) != (options.private_key is None):
        raise BiellaError("--certificate and --private-key belong together: give both, or none.")
    tls = (
        load_certificate(options.certificate, options.private_key) if options.certificate else None
    )
    key = read_key(options.key, Path.cwd()) if options.key is not None else None
    return Access(options.host, tuple(options.name), True, key, tls)


def _require_a_use(options: argparse.Namespace) -> None:
    """Refuse to serve a diagram whose run nobody could start."""
    is_source = options.file is not None and options.file.suffix.lower() not in (".h5", ".hdf5")
    if is_source and not options.run and options.key is None:
        raise BiellaError(
            f"without --key no page may start the run of `{options.file}`: give --run to start it "
            f"at once, or make a key (biella key rig.key) and give --key file:rig.key."
        )
    if options.run and not is_source:
        raise BiellaError("--run starts the run of a Python file: name one.")


def describe_access(access: Access) -> list[str]:
    """Return what a server opens, and to whom."""
    lines = []
    if access.is_open:
        where = "all addresses of this computer" if access.is_any else f"the address {access.host}"
        lines.append(
            f"open on {where}: whoever reaches it and has the token sees the diagram, all signals "
            f"and all parameters."
        )
    else:
        lines.append("on loopback only: other computers reach it through a tunnel, or with --host.")
    lines.append(
        "pages that have the key may run, stop and change the run."
        if access.key is not None
        else "read-only: no page may change anything (--key allows it to pages that have the key)."
    )
    if access.is_open and access.tls is None:
        lines.append(
            "not encrypted: whoever sees the network sees the token and all values, and whoever "
            "can change what it carries can change the page that a browser loads. Use "
            "--certificate and --private-key, or a network of its own."
        )
    return lines


def _start(session: AbstractSession) -> None:
    """Start the run once `serve` of the session works; say what prevents it."""
    future = session.act("run", {})
    if not isinstance(future, Future):
        return

    def report(done: Future[Any]) -> None:
        if error := done.exception():
            print(f"serve: the run was not started: {error}", file=sys.stderr, flush=True)

    future.add_done_callback(report)
