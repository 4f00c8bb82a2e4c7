"""The command line."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .demo import command as demo
from .errors import BiellaError, BlockError, DeviceError, OverrunError
from .scheduler import doctor, watch

EXIT_OK, EXIT_ERROR, EXIT_USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code.

    0 is success, 1 an error in what the user gave, 2 a command line that cannot be read.
    """
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            options.command(options)
    except BiellaError as error:
        if options.debug:
            raise
        _complain(str(error))
        if isinstance(error, BlockError) and error.__cause__ is not None:
            _show_cause(error)
        return EXIT_ERROR
    except BrokenPipeError:
        return EXIT_OK
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="biella", description="Block diagrams: run, check, draw, export."
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, function: Any, text: str, example: str) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            epilog=f"example: {example}",
        )
        added.set_defaults(command=function)
        defines = "diagram() or system()" if name == "export" else "diagram()"
        added.add_argument("file", type=Path, help=f"a Python file that defines {defines}")
        return added

    run = command(
        "run",
        _run,
        "run a diagram: offline, in real time, or again from a log",
        "biella run examples/01_first_loop.py --until 5 --set pid.kp=3 --plot loop.png",
    )
    run.add_argument(
        "--until",
        type=float,
        default=None,
        help="end time in s (default: 1000 steps; in real time: until Ctrl-C)",
    )
    run.add_argument("--step", type=float, help="base step in s, instead of the diagram's own")
    run.add_argument("--solver", help="solver, instead of the diagram's own")
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="set a parameter or an input; may be repeated",
    )
    run.add_argument(
        "--record", action="append", metavar="PATH", help="record this signal only; may be repeated"
    )
    run.add_argument("--every", type=int, help="record every n-th tick")
    run.add_argument("--out", type=Path, help="write the result: .csv, .mf4 or .h5 (streamed)")
    run.add_argument(
        "--plot",
        type=Path,
        nargs="?",
        const=Path("-"),
        help="draw the signals to a file (default: name of the diagram, .png)",
    )
    _add_realtime_options(run)

    command(
        "check",
        _check,
        "check a diagram and print its schedule",
        "biella check examples/01_first_loop.py",
    )
    draw = command(
        "draw", _draw, "draw a diagram", "biella draw examples/01_first_loop.py -o loop.svg"
    )
    draw.add_argument("-o", "--output", type=Path, help="picture file (default: file.svg)")
    export = command(
        "export",
        _export,
        "export a diagram or a mechanism as an FMI 2.0 co-simulation FMU",
        "biella export examples/01_first_loop.py -o loop.fmu --input ref",
    )
    export.add_argument("-o", "--output", type=Path, help="FMU file (default: file.fmu)")
    export.add_argument(
        "--input", action="append", default=[], help="source block that becomes an input"
    )
    export.add_argument(
        "--output-signal", action="append", default=[], metavar="PATH", help="one more output"
    )
    export.add_argument(
        "--parameter",
        action="append",
        metavar="PATH[=VALUE]",
        help="show this parameter only, or those of this pattern; may be repeated (default: all)",
    )
    export.add_argument(
        "--platforms",
        type=lambda text: [name.strip() for name in text.split(",") if name.strip()],
        metavar="NAMES",
        help="of linux64,win64,darwin64, compiled by ziglang (default: this one, as it runs here)",
    )
    export.add_argument(
        "--sources",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="put the C sources into the FMU (default: yes)",
    )
    export.add_argument("--step", type=float, help="base step in s, for a file with system()")
    bind = command(
        "bind",
        _bind,
        "check which blocks and signals of a diagram are real",
        "biella bind crank.py rig.toml --check; biella bind crank.py rig.toml --template pid",
    )
    bind.add_argument("rig", type=Path, nargs="?", help="the binding, such as rig.toml")
    bind.add_argument("--check", action="store_true", help="report every problem (the default)")
    bind.add_argument(
        "--template", metavar="BLOCK", help="write a binding to start from, in which BLOCK is real"
    )
    bind.add_argument("--json", action="store_true", help="print what was found as JSON")
    _add_fmu_commands(commands)
    doctor.add_command(commands)
    watch.add_command(commands)
    demo.add_command(commands)
    formulations = commands.add_parser(
        "formulations",
        help="compare the formulations of multibody dynamics on a mechanism",
        description="Compare the formulations of multibody dynamics on a mechanism.",
        epilog="example: biella formulations slider-crank --step 1e-2 --until 2",
    )
    formulations.set_defaults(command=_formulations)
    formulations.add_argument("mechanism", nargs="?", default="slider-crank")
    formulations.add_argument(
        "--step", type=float, action="append", help="step in s; may be repeated (default: 1e-2)"
    )
    formulations.add_argument("--until", type=float, default=5.0, help="end time in s")
    formulations.add_argument(
        "--every", action="store_true", help="every method, not the published"
    )
    return parser


def _add_realtime_options(run: argparse.ArgumentParser) -> None:
    """Add what concerns runs that keep pace with a clock."""
    paced = run.add_argument_group("in real time")
    paced.add_argument("--realtime", action="store_true", help="keep pace with the wall clock")
    paced.add_argument("--bind", type=Path, metavar="RIG", help="which parts are real: rig.toml")
    paced.add_argument("--clock", help="wall (default), free, or device:NAME")
    paced.add_argument("--factor", type=float, help="simulated seconds for each second")
    paced.add_argument(
        "--overrun",
        choices=("stop", "skip", "catch_up", "slip"),
        help="what follows a missed deadline (default: skip)",
    )
    paced.add_argument("--tolerated", type=int, help="overruns with which the run goes on")
    paced.add_argument("--tolerated-in-a-row", type=int, help="likewise, one after the other")
    paced.add_argument("--grace", type=int, help="ticks at the start that do not count")
    paced.add_argument("--spin", type=float, default=0.0, help="s awake before each deadline")
    paced.add_argument("--profile", action="store_true", help="measure the time of each block")
    paced.add_argument(
        "--privileges", action="store_true", help="ask the system for all that keeps ticks on time"
    )
    paced.add_argument("--log", type=Path, metavar="FILE", help="stream to an HDF5 file, to replay")
    paced.add_argument("--replay", type=Path, metavar="LOG", help="run a log again, to the bit")


def _add_fmu_commands(commands: Any) -> None:
    """Add what can be done with an FMU of any tool."""

    def command(name: str, function: Any, text: str, example: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            epilog=f"example: {example}",
        )
        added.set_defaults(command=function)
        added.add_argument("file", type=Path, help="an FMU")
        return added

    info = command("info", _info, "show what an FMU says about itself", "biella info crank.fmu")
    info.add_argument("--all", action="store_true", help="every variable, local ones too")
    command("validate", _validate, "look for mistakes in an FMU", "biella validate crank.fmu")
    run = command(
        "simulate",
        _simulate,
        "run an FMU",
        "biella simulate crank.fmu --stop 5 --input torque.csv --output motion.csv --plot",
    )
    run.add_argument("--start", type=float, help="start time in s (default: what the FMU suggests)")
    run.add_argument("--stop", type=float, help="end time in s (default: what the FMU suggests)")
    run.add_argument("--step", type=float, help="communication step in s (default: likewise)")
    run.add_argument("--input", type=Path, help="CSV file: times, then a column for each input")
    run.add_argument("--output", type=Path, help="write the outputs: .csv, .mf4 or .h5")
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
    run.add_argument("--backend", choices=("engine", "fmpy", "pyfmi"), default="engine")
    run.add_argument("--isolate", action="store_true", help="in a process of its own")
    run.add_argument("--timeout", type=float, help="with --isolate: seconds that a call may take")
    run.add_argument("--log", action="store_true", help="show the FMU's messages as they come")
    run.add_argument("--no-validate", action="store_true", help="run it though FMI forbids it")


def load_diagram(path: Path) -> Any:
    """Return what ``diagram()`` of a Python file gives."""
    from .scheduler.diagram import Diagram

    make = getattr(_load_module(path), "diagram", None)
    if make is None:
        raise BiellaError(
            f"`{path}` does not define diagram(): write a function of that name that returns a "
            f"Diagram."
        )
    return _made("diagram", make, Diagram, path)


def load_model(path: Path) -> Any:
    """Return what ``diagram()`` of a Python file gives, else its ``system()``."""
    from .blocks.multibody import System
    from .scheduler.diagram import Diagram

    module = _load_module(path)
    for name, wanted in (("diagram", Diagram), ("system", System)):
        if hasattr(module, name):
            return _made(name, getattr(module, name), wanted, path)
    raise BiellaError(
        f"`{path}` defines neither diagram() nor system(): write a function of one of these names "
        f"that returns a Diagram or a System."
    )


def _made(name: str, make: Any, wanted: type, path: Path) -> Any:
    made = make() if callable(make) else make
    if not isinstance(made, wanted):
        raise BiellaError(f"{name}() of `{path}` returned {made!r}, not a {wanted.__name__}.")
    return made


def _load_module(path: Path) -> Any:
    if not path.is_file():
        raise BiellaError(f"there is no file `{path}`.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BiellaError(f"`{path}` is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise BiellaError(f"`{path}`, line {error.lineno}: {error.msg}.") from error
    finally:
        sys.path.pop(0)
    return module


def _run(options: argparse.Namespace) -> None:
    from .scheduler.mdf import load_asammdf
    from .scheduler.simulate import simulate

    diagram = load_diagram(options.file)
    suffix = options.out.suffix.lower() if options.out else ""
    if options.out and suffix not in (".csv", ".h5", ".hdf5", ".mf4"):
        raise BiellaError(f"--out writes .csv, .mf4 or .h5, not `{options.out}`.")
    if suffix == ".mf4":
        load_asammdf()  # rather than find after the run that it is not there
    stream = options.out if suffix in (".h5", ".hdf5") else None
    try:
        if options.replay:
            result = _replay(options, diagram, stream)
        elif options.realtime or options.bind:
            result = _pace(options, diagram, stream)
        else:
            step = options.step or diagram.step
            result = simulate(
                diagram,
                diagram.start + 1000 * step if options.until is None else options.until,
                options.step,
                options.solver,
                options.record,
                dict(_assignment(text) for text in options.set),
                every=1 if options.every is None else options.every,
                out=stream,
            )
    except (BlockError, DeviceError, OverrunError) as error:
        if suffix in (".csv", ".mf4") and error.result is not None:
            _write(error.result, options.out)
            _complain(f"what was recorded until then is in {options.out}")
        raise
    print(result)
    if result.info.get("stopped"):
        print(f"stopped: {result.info['stopped']}")
    if suffix in (".csv", ".mf4"):
        _write(result, options.out)
    if options.out:
        print(f"wrote {options.out}")
    if options.plot:
        target = options.plot
        if str(target) == "-":
            target = Path(f"{diagram.name.replace(' ', '_')}.png")
        result.plot(*(options.record or ()), path=target)
        print(f"wrote {target}")


def _pace(options: argparse.Namespace, diagram: Any, stream: Path | None) -> Any:
    """Run in real time; tell how that went, whatever ended it."""
    from rich.console import Console

    from .scheduler.privileges import Privileges
    from .scheduler.realtime import start

    if options.log and stream:
        raise BiellaError("--log and --out name two HDF5 files: one of them has it all.")
    run = start(
        diagram,
        options.until,
        clock=options.clock,
        bind=options.bind,
        factor=options.factor,
        record=options.record,
        every=options.every,
        out=options.log or stream,
        parameters=dict(_assignment(text) for text in options.set),
        step=options.step,
        solver=options.solver,
        overrun=options.overrun,
        tolerated=options.tolerated,
        tolerated_in_a_row=options.tolerated_in_a_row,
        grace=options.grace,
        spin=options.spin,
        privileges=Privileges.everything() if options.privileges else None,
        profile=options.profile,
    )
    if run.until is None:
        _complain("running until Ctrl-C")
    try:
        return run.wait()
    finally:
        Console().print(run.report())
        if options.log:
            print(f"wrote {options.log}")


def _replay(options: argparse.Namespace, diagram: Any, stream: Path | None) -> Any:
    """Run a log again, and say whether it came out the same."""
    from .scheduler.replay import find_differences, replay
    from .scheduler.result import Result

    log = Result.from_hdf5(options.replay)
    parameters = dict(_assignment(text) for text in options.set)
    result = replay(
        log,
        diagram,
        parameters=parameters,
        record=options.record,
        every=options.every,
        out=stream,
    )
    if parameters or options.record or options.every:
        return result
    different = find_differences(log, result)
    if different:
        raise BiellaError(
            f"these signals came out otherwise than recorded: {', '.join(different)}."
        )
    print(f"{len(log)} signals are those of {options.replay}, bit for bit")
    return result


def _write(result: Any, path: Path) -> None:
    """Write a result in the format that the extension names."""
    writers = {".csv": result.to_csv, ".mf4": result.to_mdf4}
    writers.get(path.suffix.lower(), result.to_hdf5)(path)


def _check(options: argparse.Namespace) -> None:
    from .scheduler.ringing import TICKS, warn_of_ringing

    plan = load_diagram(options.file).compile()
    warn_of_ringing(plan, TICKS)
    print(plan.report())


def _draw(options: argparse.Namespace) -> None:
    target = options.output or options.file.with_suffix(".svg")
    load_diagram(options.file).draw(target)
    print(f"wrote {target}")


def _export(options: argparse.Namespace) -> None:
    from .fmu.platforms import list_uncompiled
    from .scheduler.diagram import Diagram

    target = options.output or options.file.with_suffix(".fmu")
    model = load_model(options.file)
    chosen: dict[str, Any] = {
        "inputs": options.input or None,
        "outputs": options.output_signal or None,
        "parameters": None,
        "platforms": options.platforms,
        "sources": options.sources,
    }
    if options.parameter is not None:
        pairs = (
            _assignment(p, "--parameter") if "=" in p else (p, None) for p in options.parameter
        )
        chosen["parameters"] = dict(pairs)
    if options.step is not None:
        if isinstance(model, Diagram):
            raise BiellaError(
                "--step is for a file with system(); a diagram has a step of its own."
            )
        chosen["step"] = options.step
    for name in list_uncompiled(options.platforms or ()):
        _complain(f"compiling the engine for {name}; this takes a minute, once")
    model.export_fmu(target, **chosen)
    if isinstance(model, Diagram) and not model.outports and not options.output_signal:
        _complain("this FMU has no outputs: declare them with d.output(…), or --output-signal")
    print(f"wrote {target}")


def _bind(options: argparse.Namespace) -> None:
    from .scheduler.binding_report import write_template

    if options.template is not None:
        text = write_template(load_diagram(options.file), options.template)
        if options.rig is None:
            print(text, end="")
            return
        if options.rig.exists():
            raise BiellaError(f"`{options.rig}` is there already: name another file.")
        options.rig.write_text(text, encoding="utf-8")
        print(f"wrote {options.rig}")
    elif options.rig is None:
        raise BiellaError("say which binding to check, such as rig.toml, or --template BLOCK.")
    else:
        _check_rig(options)


def _check_rig(options: argparse.Namespace) -> None:
    import json

    from rich.console import Console

    from .errors import BindingError
    from .scheduler.binding import check_binding
    from .scheduler.binding_report import list_ties, tabulate

    found = check_binding(load_diagram(options.file), options.rig)
    if options.json:
        told = {"problems": found.problems, "remarks": found.remarks, "ties": list_ties(found)}
        print(json.dumps(told, ensure_ascii=False, indent=2))
    if found.problems:
        raise BindingError(found.problems, str(options.rig))
    if options.json:
        return
    console = Console()
    if not console.is_terminal:
        console.width = 140  # a file or a pipe has room for whole lines
    console.print(tabulate(found))
    print(f"no problems in {options.rig}")


def _info(options: argparse.Namespace) -> None:
    from rich.console import Console

    from .fmu.commands import describe_fmu

    console = Console()
    if not console.is_terminal:
        console.width = 140  # a file or a pipe has room for whole lines
    console.print(describe_fmu(options.file, options.all))


def _validate(options: argparse.Namespace) -> None:
    from .errors import FmuError
    from .fmu.commands import find_problems

    problems = find_problems(options.file)
    for problem in problems:
        print(f"- {problem}")
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise FmuError(f"{count} in {options.file}.")
    print(f"no problems in {options.file}")


def _simulate(options: argparse.Namespace) -> None:
    from .fmu.commands import simulate_fmu_file

    suffix = options.output.suffix.lower() if options.output else ".csv"
    if suffix not in (".csv", ".h5", ".hdf5", ".mf4"):
        raise BiellaError(f"--output writes .csv, .mf4 or .h5, not `{options.output}`.")

    def write(result: Any) -> None:
        if options.output:
            _write(result, options.output)
            print(f"wrote {options.output}")

    try:
        result = simulate_fmu_file(
            options.file,
            start=options.start,
            stop=options.stop,
            step=options.step,
            inputs=options.input,
            parameters=dict(_assignment(text, strings=True) for text in options.set),
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
    print(result)
    if result.info.get("stopped"):
        print(f"stopped: {result.info['stopped']}")
    write(result)
    if options.plot:
        plain = str(options.plot) != "-"
        target = options.plot if plain else Path(options.file.with_suffix(".png").name)
        result.plot(path=target)
        print(f"wrote {target}")


def _formulations(options: argparse.Namespace) -> None:
    from rich.console import Console

    from .blocks.multibody.formulations import compare

    found = compare(
        options.mechanism,
        steps=tuple(options.step or [1e-2]),
        until=options.until,
        every=options.every,
    )
    Console().print(found.table())


def _assignment(text: str, option: str = "--set", strings: bool = False) -> tuple[str, Any]:
    path, separator, value = text.partition("=")
    if not separator or not path.strip():
        raise BiellaError(f"{option} wants PATH=VALUE, such as pid.kp=3, got `{text}`.")
    try:
        return path.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        if strings:
            return path.strip(), value
        raise BiellaError(f"{option} {path}: `{value}` is no number or list of numbers.") from None


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _complain(f"warning: {message}")


def _complain(text: str) -> None:
    print(f"biella: {text}", file=sys.stderr)


def _show_cause(error: BlockError) -> None:
    """Show the user's own traceback, without the frames of the engine."""
    import traceback

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
