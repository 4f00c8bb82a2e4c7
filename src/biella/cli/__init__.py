"""The command line."""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from .._deprecation import renamed_options
from ..demo import _command as demo
from ..errors import BiellaError, BlockError
from ..scheduler.host import _doctor as doctor
from ..studio import _command as studio
from . import _diagrams as diagrams
from . import _fmus as fmus
from . import _mechanisms as mechanisms
from . import _offline as offline
from . import _realtime as realtime
from . import _run as run
from . import _sbom as sbom
from . import _watching as watching
from ._load import load_diagram
from ._shared import EXIT_OK, complain, end_options

__all__ = ["load_diagram", "main"]

EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code.

    0 is success, 1 an error in the input, 2 an invalid command line, 3 warnings of ``validate``,
    130 an interrupt by Ctrl-C before there was a result.
    """
    parser = _parser()
    given = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(end_options(renamed_options(given, _show_warning)))
    if options.command is None:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = options.command(options)
    except BiellaError as error:
        if options.debug:
            raise
        complain(str(error))
        if isinstance(error, BlockError) and error.__cause__ is not None:
            _show_cause(error)
        return EXIT_ERROR
    except BrokenPipeError:
        return EXIT_OK
    except OSError as error:
        if options.debug or error.filename is None:
            raise
        complain(f"cannot read or write `{error.filename}`: {error.strerror}.")
        return EXIT_ERROR
    except KeyboardInterrupt:
        if options.debug:
            raise
        complain("interrupted.")
        return EXIT_INTERRUPTED
    return code if isinstance(code, int) else EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="biella",
        description="Mechanisms and block diagrams: run, check, draw, export, bind to hardware.",
        epilog="exit codes: 0 success, 1 an error in the input, 2 an invalid command line, "
        "3 warnings of validate, 130 interrupted. example: biella demo",
    )
    parser.add_argument("--version", action="version", version=f"biella {__version__}")
    parser.set_defaults(command=None)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(metavar="command")
    demo.add_command(commands)
    for module in (offline, realtime, diagrams, fmus):
        module.add_commands(commands)
    doctor.add_command(commands)
    watching.add_command(commands)
    studio.add_command(commands)
    mechanisms.add_commands(commands)
    run.add_commands(commands)
    sbom.add_commands(commands)
    return parser


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    complain(f"warning: {message}")


def _show_cause(error: BlockError) -> None:
    """Show the user's own traceback, without the frames of the engine."""
    cause = error.__cause__
    assert cause is not None
    frames = [
        frame
        for frame in traceback.extract_tb(cause.__traceback__)
        if "scheduler" not in Path(frame.filename).parts or "biella" not in frame.filename
    ]
    print("Traceback of the block:", file=sys.stderr)
    print("".join(traceback.format_list(frames)), end="", file=sys.stderr)
    print("".join(traceback.format_exception_only(cause)), end="", file=sys.stderr)
