"""Commands about a diagram: check, draw, export, bind."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BiellaError, name_list, suggest
from ._load import load_diagram, load_model
from ._shared import add_command, add_json, complain, print_json, read_assignment

if TYPE_CHECKING:
    from ..blocks.machines._state_machine import StateMachine
    from ..scheduler.compile.diagram._diagram import Diagram

_FILE = "a Python file that defines diagram()"


def add_commands(commands: Any) -> None:
    """Add ``check``, ``draw``, ``export`` and ``bind``."""
    check = add_command(
        commands,
        "check",
        _check,
        "check a diagram and print its schedule",
        "biella check examples/01_first_loop.py",
        _FILE,
    )
    add_json(check)
    draw = add_command(
        commands,
        "draw",
        _draw,
        "draw a diagram",
        "biella draw examples/01_first_loop.py -o loop.svg",
        _FILE,
    )
    draw.add_argument(
        "-o",
        "--output",
        type=Path,
        help="picture: .svg, .png or .pdf (default: name of the file, .svg)",
    )
    draw.add_argument(
        "--machine", metavar="NAME", help="draw the statechart of this StateMachine instead"
    )
    export = add_command(
        commands,
        "export",
        _export,
        "export a diagram or a mechanism as an FMU",
        "biella export examples/01_first_loop.py -o loop.fmu --input ref",
        "a Python file that defines diagram() or system()",
    )
    export.add_argument(
        "-o", "--output", type=Path, help="FMU file (default: name of the file, .fmu)"
    )
    export.add_argument(
        "--input", action="append", default=[], metavar="BLOCK",
        help="source block that becomes an input; may be repeated",
    )  # fmt: skip
    export.add_argument(
        "--output-signal", action="append", default=[], metavar="PATH",
        help="signal that becomes an output, in addition to d.output(…); may be repeated",
    )  # fmt: skip
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
    export.add_argument(
        "--fmi",
        choices=["2", "2.0", "3", "3.0"],
        default="2.0",
        help="version of FMI (default: 2.0)",
    )
    export.add_argument(
        "--kind",
        choices=("cs", "me", "both"),
        default="cs",
        help="co-simulation, model exchange, or both (default: cs)",
    )
    export.add_argument(
        "--clocks", action="store_true",
        help="declare the periods of sampled blocks as clocks, in FMI 3.0",
    )  # fmt: skip
    export.add_argument(
        "--local", action="append", default=[], metavar="PATH",
        help="signal, or pattern of signals, that becomes a local variable; may be repeated",
    )  # fmt: skip
    export.add_argument(
        "--type", action="append", default=[], metavar="NAME=TYPE",
        help="type of a variable in FMI 3.0, such as counts=UInt16 or speed=Float32; may be "
        "repeated",
    )  # fmt: skip
    export.add_argument(
        "--about", action="append", default=[], metavar="KEY=TEXT",
        help="author, version, license, copyright or description of the model; may be repeated",
    )  # fmt: skip
    export.add_argument(
        "--reference", type=float, metavar="UNTIL",
        help="add the results of a run until this time in s as a reference (FMI-LS-REF)",
    )  # fmt: skip
    export.add_argument(
        "--reference-input", type=Path, metavar="CSV", help="table of inputs for --reference"
    )
    export.add_argument("--step", type=float, help="base step in s, for a file with system()")
    bind = add_command(
        commands,
        "bind",
        _bind,
        "check the binding of a diagram to devices and FMUs",
        "biella bind crank.py rig.toml --check; biella bind crank.py rig.toml --template pid",
        _FILE,
    )
    bind.add_argument("rig", type=Path, nargs="?", help="the binding, such as rig.toml")
    bind.add_argument("--check", action="store_true", help="report every problem (the default)")
    bind.add_argument(
        "--template",
        metavar="BLOCK",
        help=("write a template of a binding that replaces BLOCK by a device"),
    )
    add_json(bind)


def _check(options: argparse.Namespace) -> None:
    from ..scheduler.run._preflight import TICKS, warn_of_unstable_coupling
    from ..scheduler.run._substeps import suggest_substeps

    plan = load_diagram(options.file).compile()
    warn_of_unstable_coupling(plan, TICKS)
    if options.json:
        print_json(_describe(plan))
    else:
        print(plan.report())
        suggestion = suggest_substeps(plan)
        if suggestion:
            print(f"\ncould take substeps: {suggestion}")


def _describe(plan: Any) -> dict[str, Any]:
    """Return the schedule as plain data."""

    def port(item: Any) -> dict[str, Any]:
        return {"path": item.path, "width": item.width, "unit": item.unit, "kind": item.kind}

    return {
        "diagram": plan.name,
        "step": plan.step,
        "solver": plan.solver,
        "plan_hash": plan.hash,
        "blocks": [
            {
                "path": block.path,
                "type": block.type,
                "rate": block.rate,
                "outputs": [port(item) for item in block.outputs],
                "parameters": [item.path for item in block.parameters],
            }
            for block in plan.blocks
        ],
        "loops": plan.loops,
        "inputs": [port(item) for item in plan.inputs.values()],
        "outputs": {name: port(item) for name, item in plan.outputs.items()},
    }


def _draw(options: argparse.Namespace) -> None:
    diagram = load_diagram(options.file)
    if options.machine is None:
        target = options.output or Path(f"{options.file.stem}.svg")
        diagram.draw(target)
    else:
        machine = _find_machine(diagram, options.machine)
        target = options.output or Path(f"{options.machine}.svg")
        machine.draw(target, title=options.machine)
    print(f"wrote {target}")


def _find_machine(diagram: Diagram, name: str) -> StateMachine:
    machines = dict(_list_machines(diagram))
    if name not in machines:
        known = f"State machines: {name_list(machines)}." if machines else "It has none."
        raise BiellaError(
            f"there is no StateMachine `{name}` in {diagram.name!r}."
            f"{suggest(name, machines)} {known}"
        )
    return machines[name]


def _list_machines(diagram: Diagram, prefix: str = "") -> Iterator[tuple[str, StateMachine]]:
    """Return the state machines of a diagram and its subsystems by path."""
    from ..blocks.machines._state_machine import StateMachine
    from ..scheduler.compile.diagram._subsystem import Subsystem

    for name, block in diagram.blocks.items():
        if isinstance(block, StateMachine):
            yield prefix + name, block
        elif isinstance(block, Subsystem):
            yield from _list_machines(block.diagram, f"{prefix}{name}.")


def _export(options: argparse.Namespace) -> None:
    from ..fmu.exporter._platforms import list_uncompiled
    from ..scheduler.compile.diagram._diagram import Diagram

    target = options.output or Path(f"{options.file.stem}.fmu")
    model = load_model(options.file)
    chosen: dict[str, Any] = {
        "inputs": options.input or None,
        "outputs": options.output_signal or None,
        "parameters": None,
        "platforms": options.platforms,
        "sources": options.sources,
        "version": options.fmi,
        "kind": options.kind,
        "local": options.local,
        "about": dict(
            _read_text(item, "--about KEY=TEXT", "license=MIT") for item in options.about
        ),
        "types": dict(
            _read_text(item, "--type NAME=TYPE", "counts=UInt16") for item in options.type
        ),
    }
    if options.reference is not None:
        from ..fmu import Experiment

        chosen["reference"] = Experiment(until=options.reference, inputs=options.reference_input)
    elif options.reference_input is not None:
        raise BiellaError("--reference-input requires --reference UNTIL.")
    if options.parameter is not None:
        pairs = (
            read_assignment(p, "--parameter") if "=" in p else (p, None) for p in options.parameter
        )
        chosen["parameters"] = dict(pairs)
    if options.clocks:
        if not isinstance(model, Diagram):
            raise BiellaError(
                "--clocks requires a file with diagram(): a mechanism has no periods."
            )
        chosen["clocks"] = True
    if options.step is not None:
        if isinstance(model, Diagram):
            raise BiellaError("--step requires a file with system(); a diagram has its own step.")
        chosen["step"] = options.step
    for name in list_uncompiled(options.platforms or ()):
        complain(f"compiling the engine for {name}; this takes a minute, once")
    model.export_fmu(target, **chosen)
    print(f"wrote {target}")


def _read_text(item: str, expected: str, example: str) -> tuple[str, str]:
    key, equals, text = item.partition("=")
    if not equals:
        option, _, form = expected.partition(" ")
        raise BiellaError(f"{option} expects {form}, such as {example}, got {item!r}.")
    return key.strip(), text.strip()


def _bind(options: argparse.Namespace) -> None:
    from ..scheduler.binding._report import write_template

    if options.template is not None:
        text = write_template(load_diagram(options.file), options.template)
        if options.rig is None:
            print(text, end="")
            return
        if options.rig.exists():
            raise BiellaError(f"`{options.rig}` already exists: choose another file.")
        options.rig.write_text(text, encoding="utf-8")
        print(f"wrote {options.rig}")
    elif options.rig is None:
        raise BiellaError(
            "specify the binding to check, such as rig.toml, or use --template BLOCK."
        )
    else:
        _check_rig(options)


def _check_rig(options: argparse.Namespace) -> None:
    from ..errors import BindingError
    from ..scheduler.binding._bind import check_binding
    from ..scheduler.binding._report import list_channel_maps, tabulate

    found = check_binding(load_diagram(options.file), options.rig)
    if options.json:
        print_json({
            "problems": found.problems, "warnings": found.warnings,
            "channel_maps": list_channel_maps(found)
        })  # fmt: skip
    if found.problems:
        raise BindingError(found.problems, str(options.rig))
    if not options.json:
        from ._tables import print_tables

        print_tables(tabulate(found))
        print(f"no problems in {options.rig}")
