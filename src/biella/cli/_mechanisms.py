"""`biella formulations`: the methods of multibody dynamics side by side."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from ._shared import add_command, add_json, print_json


def add_commands(commands: Any) -> None:
    """Add ``formulations``."""
    formulations = add_command(
        commands,
        "formulations",
        _formulations,
        "compare the formulations of multibody dynamics on a mechanism",
        "biella formulations slider-crank --step 1e-2 --until 2",
    )
    formulations.add_argument(
        "mechanism", nargs="?", default="slider-crank",
        help="slider-crank (default), five-bar, mcpherson, pendulum-on-cart or four-bar; or a "
        "Python file that defines system(), or diagram() with one mechanism",
    )  # fmt: skip
    formulations.add_argument(
        "--step", type=float, action="append", help="step in s; may be repeated (default: 1e-2)"
    )
    formulations.add_argument("--until", type=float, default=5.0, help="end time in s (default: 5)")
    formulations.add_argument(
        "--every", action="store_true", help="every method, not only the published ones"
    )
    formulations.add_argument(
        "--method", action="append", metavar="LABEL",
        help="only this one, by its label in the table, such as QTZ; may be repeated",
    )  # fmt: skip
    formulations.add_argument(
        "--coordinates", choices=("natural", "euler"), default="natural",
        help="of spatial mechanisms: natural coordinates (default) or Euler parameters",
    )  # fmt: skip
    formulations.add_argument(
        "--integrator", choices=("semi-implicit", "position-first", "explicit", "rk4"),
        default="position-first", help="of methods without their own (default: position-first)",
    )  # fmt: skip
    add_json(formulations)


def _formulations(options: argparse.Namespace) -> None:
    from ..blocks.multibody.reference_formulations import compare
    from ._load import load_system
    from ._tables import print_tables

    mechanism = options.mechanism
    if mechanism.endswith(".py"):
        mechanism = load_system(Path(mechanism))
    found = compare(
        mechanism,
        steps=tuple(options.step or [1e-2]),
        until=options.until,
        every=options.every,
        methods=tuple(options.method or ()),
        coordinates=options.coordinates,
        integrator=options.integrator,
    )
    if options.json:
        print_json([dataclasses.asdict(line) for line in found.lines])
    else:
        print_tables(found.table())
