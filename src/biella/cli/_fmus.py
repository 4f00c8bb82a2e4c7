"""Commands about an FMU of any tool: info, validate, and its part of simulate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..errors import BlockError, FmuError
from ._shared import (
    EXIT_OK,
    EXIT_WARNINGS,
    add_command,
    add_json,
    complain,
    plot_result,
    print_json,
    print_result,
    read_assignment,
    require_format,
    require_picture,
    write_result,
)


def add_commands(commands: Any) -> None:
    """Add ``info`` and ``validate``."""
    info = add_command(
        commands,
        "info",
        _info,
        "show the model description of an FMU",
        "biella info crank.fmu",
        "an FMU",
    )
    add_json(info)
    info.add_argument("--all", action="store_true", help="show all variables, including local ones")
    validate = add_command(
        commands,
        "validate",
        _validate,
        "check an FMU for errors",
        "biella validate crank.fmu",
        "an FMU",
    )
    add_json(validate)
    validate.add_argument(
        "--reference",
        action="store_true",
        help="run the reference experiments in the FMU (FMI-LS-REF) and compare their results",
    )
    validate.add_argument(
        "--tolerance",
        type=float,
        metavar="REL",
        help="with --reference: largest deviation relative to the largest magnitude of an output, "
        "instead of what the experiments declare",
    )


def _info(options: argparse.Namespace) -> None:
    from ..fmu._commands import describe_fmu, list_fmu

    if options.json:
        print_json(list_fmu(options.file, options.all))
    else:
        from ._tables import print_tables

        print_tables(describe_fmu(options.file, options.all))


def _validate(options: argparse.Namespace) -> int:
    from ..fmu._commands import check_fmu

    if options.tolerance is not None and not (options.reference and options.tolerance > 0):
        raise FmuError("--tolerance is a positive number, with --reference.")
    found = check_fmu(options.file)
    compared: list[Any] = []
    if options.reference and not found.errors:
        from ..fmu.standards._reference import check_reference

        compared = check_reference(options.file, options.tolerance)
    if options.json:
        about = {
            "file": str(options.file),
            "problems": [*found.errors, *found.warnings],
            "errors": found.errors,
            "warnings": found.warnings,
        }
        print_json(about | ({"reference": _list(compared)} if options.reference else {}))
    else:
        for title, problems in (("errors", found.errors), ("warnings", found.warnings)):
            if problems:
                print(f"{title}:")
            for problem in problems:
                print(f"- {problem}")
    if compared and not options.json:
        from ..fmu._commands import tabulate_comparisons
        from ._tables import print_tables

        print_tables(tabulate_comparisons(compared))
    if found.errors:
        raise FmuError(f"{_count(found.errors, 'error')} in {options.file}: it cannot run here.")
    failed = [item.experiment for item in compared if not item.passed]
    if failed:
        raise FmuError(
            f"{_count(failed, 'reference experiment')} of {options.file} failed: "
            f"{', '.join(failed)}."
        )
    if found.warnings:
        complain(f"{_count(found.warnings, 'warning')} in {options.file}: it can run.")
        return EXIT_WARNINGS
    if not options.json:
        print(f"no problems in {options.file}")
    return EXIT_OK


def _list(compared: list[Any]) -> list[dict[str, Any]]:
    """Return comparisons as plain data."""
    return [
        {
            "experiment": item.experiment,
            "passed": item.passed,
            "problem": item.problem,
            "tolerance": item.tolerance,
            "outputs": [
                {
                    "name": one.variable,
                    "deviation": one.largest,
                    "allowed": one.allowed,
                    "time": one.time,
                    "passed": one.passed,
                }
                for one in item.deviations
            ],
        }
        for item in compared
    ]


def _count(problems: list[str], what: str) -> str:
    return f"1 {what}" if len(problems) == 1 else f"{len(problems)} {what}s"


def simulate_fmu(options: argparse.Namespace) -> None:
    """Simulate an FMU, and report the result."""
    from ..fmu._run_file import simulate_fmu_file

    require_format("--out", options.out)
    require_picture(options.plot)
    say = complain if options.json else print

    def write(result: Any) -> None:
        if options.out:
            write_result(result, options.out)
            say(f"wrote {options.out}")

    try:
        result = simulate_fmu_file(
            options.file,
            start=options.start,
            stop=options.until,
            step=options.step,
            inputs=options.input,
            parameters=dict(read_assignment(text, strings=True) for text in options.set),
            outputs=options.record,
            kind=options.kind,
            solver=options.solver,
            tolerance=options.tolerance,
            events=options.events,
            backend=options.backend,
            isolate=options.isolate if options.isolate == "strict" else bool(options.isolate),
            timeout=options.timeout,
            logging=options.log,
            validate=not options.no_validate,
        )
    except BlockError as error:
        if error.result is not None:
            write(error.result)
        raise
    print_result(result, options.json)
    for report in result.info.get("isolation", {}).values():
        say(
            f"isolation: {'; '.join(f'{name}: {text}' for name, text in report['granted'].items())}"
        )
    write(result)
    if options.plot:
        otherwise = Path(options.file.with_suffix(".png").name)
        say(f"wrote {plot_result(result, options.plot, otherwise)}")
