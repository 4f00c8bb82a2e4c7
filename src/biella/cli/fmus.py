"""Commands about an FMU of any tool: info, validate, simulate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..errors import BlockError, FmuError
from .shared import (
    add_command,
    add_json,
    complain,
    plot_result,
    print_json,
    read_assignment,
    require_format,
    require_picture,
    tell_result,
    write_result,
)


def add_commands(commands: Any) -> None:
    """Add ``info``, ``validate`` and ``simulate``."""
    info = add_command(
        commands,
        "info",
        _info,
        "show what an FMU says about itself",
        "biella info crank.fmu",
        "an FMU",
    )
    add_json(info)
    info.add_argument("--all", action="store_true", help="every variable, local ones too")
    validate = add_command(
        commands,
        "validate",
        _validate,
        "look for mistakes in an FMU",
        "biella validate crank.fmu",
        "an FMU",
    )
    add_json(validate)
    run = add_command(
        commands,
        "simulate",
        _simulate,
        "run an FMU",
        "biella simulate crank.fmu --until 5 --input torque.csv --out motion.csv --plot",
        "an FMU",
    )
    add_json(run)
    run.add_argument("--start", type=float, help="start time in s (default: what the FMU suggests)")
    run.add_argument(
        "--until", "--stop", dest="stop", type=float, metavar="TIME",
        help="end time in s (default: what the FMU suggests)",
    )  # fmt: skip
    run.add_argument("--step", type=float, help="communication step in s (default: likewise)")
    run.add_argument("--input", type=Path, help="CSV file: times, then a column for each input")
    run.add_argument(
        "--out", "--output", dest="output", type=Path, metavar="FILE",
        help="write the outputs: .csv, .mf4 or .h5",
    )  # fmt: skip
    run.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="set a parameter or a start value; may be repeated",
    )  # fmt: skip
    run.add_argument(
        "--record", action="append", metavar="NAME",
        help="record this variable instead of the outputs; may be repeated",
    )  # fmt: skip
    run.add_argument(
        "--plot", type=Path, nargs="?", const=Path("-"),
        help="draw the outputs to a file (default: name of the FMU, .png)",
    )  # fmt: skip
    run.add_argument(
        "--backend", choices=("engine", "fmpy", "pyfmi"), default="engine",
        help="what calls the FMU (default: engine; fmpy takes FMI 1.0, 3.0 and model exchange)",
    )  # fmt: skip
    run.add_argument("--isolate", action="store_true", help="in a process of its own")
    run.add_argument("--timeout", type=float, help="with --isolate: seconds that a call may take")
    run.add_argument("--log", action="store_true", help="show the FMU's messages as they come")
    run.add_argument("--no-validate", action="store_true", help="run it though FMI forbids it")


def _info(options: argparse.Namespace) -> None:
    from ..fmu.commands import describe_fmu, list_fmu

    if options.json:
        print_json(list_fmu(options.file, options.all))
    else:
        from .tables import print_tables

        print_tables(describe_fmu(options.file, options.all))


def _validate(options: argparse.Namespace) -> None:
    from ..fmu.commands import find_problems

    problems = find_problems(options.file)
    if options.json:
        print_json({"file": str(options.file), "problems": problems})
    for problem in () if options.json else problems:
        print(f"- {problem}")
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise FmuError(f"{count} in {options.file}.")
    if not options.json:
        print(f"no problems in {options.file}")


def _simulate(options: argparse.Namespace) -> None:
    from ..fmu.commands import simulate_fmu_file

    require_format("--out", options.output)
    require_picture(options.plot)
    say = complain if options.json else print

    def write(result: Any) -> None:
        if options.output:
            write_result(result, options.output)
            say(f"wrote {options.output}")

    try:
        result = simulate_fmu_file(
            options.file,
            start=options.start,
            stop=options.stop,
            step=options.step,
            inputs=options.input,
            parameters=dict(read_assignment(text, strings=True) for text in options.set),
            outputs=options.record,
            backend=options.backend,
            isolate=options.isolate,
            timeout=options.timeout,
            logging=options.log,
            validate=not options.no_validate,
        )
    except BlockError as error:
        if error.result is not None:
            write(error.result)
        raise
    tell_result(result, options.json)
    write(result)
    if options.plot:
        otherwise = Path(options.file.with_suffix(".png").name)
        say(f"wrote {plot_result(result, options.plot, otherwise)}")
