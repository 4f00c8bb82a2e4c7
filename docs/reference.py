"""Write docs/reference/: every block, and the classes and functions around.

    python docs/reference.py

All text comes from the docstrings. A page for each section of docs/reference/blocks.md has its
blocks with equations, ports, parameters, units and a picture, drawn by running the first example
that tests/blocks/test_contract.py has of a block; of a StateMachine it is the statechart.
docs/reference/python.md has what `PYTHON` lists. A test fails while these files are not what this
would write.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import biella.blocks
from biella import (
    Diagram,
    Fmu,
    LinearModel,
    LiveRun,
    Plan,
    Result,
    Subsystem,
    Sweep,
    System,
    linearize,
    replay,
    run_realtime,
    simulate,
    sweep,
)
from biella.blocks import (
    Asynchronous,
    Bus,
    BusSelector,
    BusType,
    Expression,
    Mux,
    Port,
    PythonBlock,
    StateMachine,
    multibody,
    python_block,
)
from biella.blocks.authoring import AbstractBlock, Derived, ExternalInput, NativeBlock, Same
from biella.blocks.multibody import Body, Plant
from biella.fmu import Experiment, IsolationLimits, check_reference, export_fmu, export_system
from biella.scheduler.results._plotting import COLORS, STYLE
from biella.studio import show

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures" / "reference"
TICKS = 200
PYTHON: list[Any] = [
    Diagram, simulate, Result, run_realtime, LiveRun, replay, sweep, Sweep, Subsystem, linearize,
    LinearModel, Plan
]  # fmt: skip
PYTHON += [Bus, BusSelector, BusType]
PYTHON += [System, Body, Fmu, IsolationLimits, Port, PythonBlock, python_block, Asynchronous]
"""What docs/reference/python.md describes, in this order."""
PARTS: list[Any] = [
    Plant, multibody.Constant, multibody.Linear, multibody.Sine, multibody.Table,
    multibody.Formula, multibody.Input, multibody.Load, multibody.JointLoad, multibody.Spring,
    multibody.TorsionalSpring, multibody.Bushing, multibody.Friction, multibody.Stiction,
    multibody.SphericalFriction, multibody.JointFriction, multibody.JointStiction,
    multibody.Coupling,
    multibody.FormulaConstraint, multibody.CurveConstraint, multibody.RollingRow,
    multibody.EndStop, multibody.JointDriver, multibody.Bearing, multibody.ClearanceRevolute,
    multibody.ShapeContact, multibody.Sphere, multibody.Plane, multibody.Capsule,
    multibody.Cylinder, multibody.Socket, multibody.Bore, multibody.HoleProfile,
    multibody.PinProfile, multibody.CamProfile, multibody.cam_for_roller, multibody.cam_for_face,
    multibody.CamDesign, multibody.HuntCrossley, multibody.LankaraniNikravesh,
    multibody.RigidContact, multibody.Wear, multibody.hertz_stiffness, multibody.InverseDynamics,
    multibody.MassMatrix, multibody.Jacobian, multibody.ForcePropagation,
    multibody.stribeck_friction, multibody.film_friction, multibody.from_angles,
    multibody.from_axis_angle, multibody.from_roll_pitch_yaw, AbstractBlock, export_fmu,
    export_system, Experiment, check_reference, show,
]  # fmt: skip
"""What the above refers to: described after it, without members, under the path of its import."""
BY_HAND = {
    "api.md", "blocks.md", "command_line.md", "fmi_support.md", "platforms.md",
    "frame.md", "studio_protocol.md", "versioning.md",
}  # fmt: skip
"""Pages of docs/reference/ that this does not write."""
CONTRACT = DOCS.parent / "tests" / "blocks" / "test_contract.py"

# What a block is fed with in its picture, where sines between the limits of its example say little:
# for each input a formula of t for all elements, or one for each.
FEEDS: dict[str, dict[str, str | list[str]]] = {
    "Divide": {"u2": "2 + sin(50*t)"},
    "Product": {"u3": "2 + sin(50*t)"},
    "ShortBearing": {"position": ["9e-5*t", "0"], "velocity": "0", "journal_speed": "300"},
    "LongBearing": {"position": ["9e-5*t", "0"], "velocity": "0", "journal_speed": "300"},
    "MisalignedShortBearing": {
        "position": ["9e-5*t", "0", "7e-5*t", "0"],
        "velocity": "0",
        "journal_speed": "300",
    },
    "FiniteBearing": {"position": ["6e-5*t", "0"], "velocity": "0", "journal_speed": "300"},
    "OilTemperature": {
        "power_loss": "0 if t < 1 else 30",
        "flow": "3e-7",
        "supply_temperature": "313.15",
        "ambient_temperature": "293.15",
    },
    "Cam": {"angle": "31.4159*t", "speed": "31.4159"},
    "Latch": {"reset": "sin(73*t) > 0.5"},
    "PID": {"measurement": "0"},
    "Tachometer": {"u": "sin(300*t + 1500*t*t)"},
    "Trigger": {"u": "sin(40*t)", "arm": "t >= 0"},
    "PWMInput": {"u": "3 if t - 0.02*floor(t/0.02) < 0.02*(0.2 + 2*t) else 0"},
    "PWMOutput": {"duty": "0.5 + 0.4*sin(25*t)"},
    "RateLimiter": {"u": "0 if t < 0.02 else 30"},
    "Pendulum": {"torque": "0"},
    "RelayTuner": {"reference": "0", "measurement": "sin(90*t)", "start": "t >= 0.02"},
    "LQTracking": {"state": ["0.2*sin(200*t)", "0"]},
    "Selector": {"u": ["sin(30*t)", "cos(30*t)", "5*t"]},
}
UNTIL = {
    "StateSpace": 20.0,
    "TransferFunction": 6.0,
    "ZeroPole": 3.0,
    "Pendulum": 5.0,
    "OilTemperature": 40.0,
}
UNTIL |= {"PWMOutput": 0.04}
UNTIL |= dict.fromkeys(("CamLaw", "LQTracking", "MinimumJerk", "SCurve", "Trapezoid"), 0.05)
"""Seconds that a picture shows, where it is not a fifth of one."""
SCALED = ("Cam", "CamLaw", "MinimumJerk", "SCurve", "Trapezoid")
"""Blocks whose outputs have units of their own: each is drawn over its largest value."""
STEPPED = ("continuous", "discrete", "linear", "delay", "filters", "compensators", "pid")
"""Families of blocks that are fed with a step rather than a sine."""


def exported() -> dict[str, type[NativeBlock]]:
    """Return every native block of `biella.blocks`, by name."""
    found = {name: getattr(biella.blocks, name) for name in biella.blocks.__all__}
    return {
        name: block
        for name, block in found.items()
        if isinstance(block, type) and issubclass(block, NativeBlock) and block is not NativeBlock
    }


def load_examples() -> dict[str, list[Any]]:
    """Return the examples of the contract test."""
    spec = importlib.util.spec_from_file_location("contract_of_blocks", CONTRACT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its data classes look for their names
    spec.loader.exec_module(module)
    examples: dict[str, list[Any]] = module.EXAMPLES
    return examples


def sections() -> dict[str, list[str]]:
    """Return the names of blocks under each heading of docs/reference/blocks.md."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in (DOCS / "reference" / "blocks.md").read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif match := re.match(r"\| `(\w+)` \|", line):
            found.setdefault(heading, []).append(match[1])
    return found


def write_reference() -> dict[str, str]:
    """Return the text of each file, by its path in docs/."""
    blocks, examples = exported(), load_examples()
    index = [
        "# Reference\n",
        "Written by `python docs/reference.py` from the docstrings; do not edit. Diagrams, results "
        "and mechanisms are in [Classes and functions](python.md); what follows are "
        "blocks.\n",
    ]
    files = {"reference/python.md": write_python()}
    for heading, names in sections().items():
        known = [name for name in names if name in blocks]
        if not known:
            continue
        page = f"reference/{heading.lower().replace(' ', '_')}.md"
        file = Path(page).name
        links = [f"[{name}]({file}#{name.lower()})" for name in known]
        index.append(f"**[{heading}]({file})**: {', '.join(links)}\n")
        parts = [describe(blocks[name], examples[name][0].make()) for name in known]
        files[page] = "\n".join([f"# {heading}\n", ABOUT_BLOCKS, *parts])
    return {"reference/README.md": "\n".join(index), **link_references(files)}


REFERENCE = re.compile(r"\b([Ss]ee(?: also)?\s+)`([\w.]+)`")


def link_references(files: dict[str, str]) -> dict[str, str]:
    """Make each "see `X`" a link to the section of X; those that have none stay as they are."""
    places = {
        heading: f"{Path(page).name}#{heading.lower().replace('.', '')}"
        for page, text in files.items()
        for heading in re.findall(r"^##+ ([\w.]+)$", text, re.M)
    }
    linked = {}
    for page, text in files.items():
        parts = re.split(r"^(##+ [\w.]+)$", text, flags=re.M)
        for n in range(2, len(parts), 2):
            owner = parts[n - 1].lstrip("# ")
            parts[n] = REFERENCE.sub(
                lambda match, owner=owner: match[1] + link(match[2], owner, places), parts[n]
            )
        linked[page] = "".join(parts)
    return linked


def link(name: str, owner: str, places: dict[str, str]) -> str:
    """Return a name as a link: to a member of the same class, a section, or the end of a path."""
    ends = [heading for heading in places if heading.endswith(f".{name}")]
    member = f"{owner.rpartition('.')[0] or owner}.{name}"
    for heading in (member, name, *(ends if len(ends) == 1 else ())):
        if heading in places:
            return f"[`{name}`]({places[heading]})"
    return f"`{name}`"


ABOUT_BLOCKS = """\
Ports and parameters are those of an example: some depend on the arguments. A parameter that is
*fixed* counts from the next start. In pictures inputs are dashed.
"""


def is_drawn(block: NativeBlock) -> bool:
    """Whether a picture shows anything: what comes from outside does not come here."""
    return bool(block.outputs) and not isinstance(block, ExternalInput)


def describe(kind: type[NativeBlock], block: NativeBlock) -> str:
    """Return the section of one block."""
    text = inspect.cleandoc(kind.__doc__ or "")
    about, _, arguments = text.partition("Parameters\n----------\n")
    lines = [f"## {kind.__name__}\n", as_markdown(about)]
    if is_drawn(block):
        name = kind.__name__
        lines.append(f"![{name}: what an example gives](../pictures/reference/{name}.png)\n")
    lines += argument_table(kind, arguments)
    ports = [("in", port) for port in block.inputs] + [("out", port) for port in block.outputs]
    if ports:
        lines += ["| port | | width | unit | kind | |", "|---|---|---|---|---|---|"]
        lines += [port_row(side, port) for side, port in ports]
        lines.append("")
    shown = [item for item in block.parameters if not item.hidden]
    if shown:
        lines += ["| parameter to set | unit | | |", "|---|---|---|---|"]
        for item in shown:
            when = "while running" if item.tunable else "fixed"
            lines.append(f"| `{item.name}` | {item.unit or ''} | {when} | {cell(item.doc)} |")
        lines.append("")
    return "\n".join(lines)


def as_markdown(text: str) -> str:
    """Return a docstring's text: an equation after `::` is indented, which Markdown keeps."""
    return re.sub(r"::$", ":", text.strip(), flags=re.M) + "\n"


def cell(text: str) -> str:
    return text.replace("|", "∣").strip()


def argument_table(kind: type[NativeBlock], section: str) -> list[str]:
    """Return the table of arguments, from the docstring and the signature."""
    defaults = inspect.signature(kind).parameters
    rows = read_definitions(section)
    if not rows:
        return []
    lines = ["| argument | default | |", "|---|---|---|"]
    for names, meaning in rows:
        each = [name.strip() for name in names.split(",")]
        given = [
            ""
            if defaults[name].default is inspect.Parameter.empty
            else repr(defaults[name].default)
            for name in each
            if name in defaults
        ]
        shown = ", ".join(f"`{value}`" for value in given if value)
        lines.append(f"| {', '.join(f'`{n}`' for n in each)} | {shown} | {cell(meaning)} |")
    return [*lines, ""]


def port_row(side: str, port: Port) -> str:
    width = port.width if isinstance(port.width, int | str) else "of the inputs"
    unit = port.unit
    if isinstance(unit, Same):
        name = f"the same ({unit.label})" if unit.label != "u" else "the same"
    elif isinstance(unit, Derived):
        name = "from " + ", ".join(unit.of)
    else:
        name = "any" if unit is None else str(unit)
    kind = port.kind if isinstance(port.kind, str) else "any"
    if kind == "boolean":
        name = ""
    return f"| `{port.name}` | {side} | {width} | {name} | {kind} | {cell(port.doc)} |"


def write_python() -> str:
    """Return the page of classes and functions."""
    parts = [
        "# Classes and functions\n",
        "What a script needs besides blocks: `from biella import Diagram, simulate`.\n",
    ]
    for item in PYTHON:
        parts.append(describe_python(item, item.__name__, "##"))
        if isinstance(item, type):
            parts += [
                describe_python(member, f"{item.__name__}.{name}", "###")
                for name, member in public_members(item)
            ]
    for item in PARTS:
        parts.append(describe_python(item, import_path(item), "##"))
    return "\n".join(parts)


def import_path(item: Any) -> str:
    """Return where a class or function is imported from: the shortest public path."""
    modules = ("biella.blocks", "biella.blocks.authoring", "biella.blocks.multibody", "biella.fmu")
    modules += ("biella.studio",)
    for module in map(importlib.import_module, modules):
        if item.__name__ in module.__all__ and getattr(module, item.__name__) is item:
            return f"{module.__name__}.{item.__name__}"
    raise LookupError(f"{item.__module__}.{item.__name__} is not public: remove it from PARTS.")


def public_members(kind: type) -> list[tuple[str, Any]]:
    """Return methods and properties with a docstring, those of bases in biella included."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("biella."):
            found |= {
                name: member
                for name, member in vars(base).items()
                if not name.startswith("_") and inspect.getdoc(getattr(kind, name))
            }
    return [(name, found[name]) for name in found if callable(member_function(found[name]))]


def member_function(member: Any) -> Any:
    """Return the function behind a method or a property; None for mere data."""
    if isinstance(member, property):
        return member.fget
    member = getattr(member, "__func__", member)
    return member if inspect.isfunction(member) else None


def describe_python(item: Any, path: str, level: str) -> str:
    """Return the section of a class, function, method or property."""
    function = item if isinstance(item, type) else member_function(item)
    lines = [f"{level} {path}\n"]
    if not isinstance(item, property):
        lines.append(f"```py\n{signature_of(function, path)}\n```\n")
    about, *rest = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(function) or "", flags=re.M)
    lines.append(as_markdown(about))
    for title, text in zip(rest[::2], rest[1::2], strict=True):
        if title == "Examples":
            lines.append(f"```pycon\n{text.strip()}\n```\n")
        else:
            lines += definition_table(title, text)
    return "\n".join(lines)


def signature_of(function: Any, path: str) -> str:
    """Return a call as one would write it, a line for each argument where one line is too long."""
    found = inspect.signature(function)
    given = [
        item.replace(annotation=inspect.Parameter.empty)
        for name, item in found.parameters.items()
        if name != "self"
    ]
    call = found.replace(parameters=given, return_annotation=inspect.Signature.empty)
    if len(f"{path}{call}") <= 90:
        return f"{path}{call}"
    lines = [f"{path}("]
    keywords = False
    for item in given:
        if item.kind is inspect.Parameter.KEYWORD_ONLY and not keywords:
            keywords = True
            if not any(other.kind is inspect.Parameter.VAR_POSITIONAL for other in given):
                lines.append("    *,")
        lines.append(f"    {item},")
    return "\n".join([*lines, ")"])


def definition_table(title: str, section: str) -> list[str]:
    """Return a section of a docstring as a table: names, and what is said of each."""
    rows = read_definitions(section)
    if not rows:
        return []
    head = {"Parameters": "argument", "Raises": "raises", "Warns": "warns", "Returns": "returns"}
    lines = [f"| {head.get(title, title.lower())} | |", "|---|---|"]
    lines += [
        f"| {', '.join(f'`{name.strip()}`' for name in names.split(','))} | {cell(meaning)} |"
        for names, meaning in rows
    ]
    return [*lines, ""]


def read_definitions(section: str) -> list[tuple[str, str]]:
    """Return names and their meanings: lines at the margin, and what is indented below each."""
    rows: list[tuple[str, str]] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            rows.append((line, ""))
        elif rows:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}".strip())
    return rows


def formulas(name: str, module: str, number: int, port: Port, low: float, high: float) -> list[str]:
    """Return what feeds an input, one formula of t for each element."""
    width = port.width if isinstance(port.width, int) else 1
    given = FEEDS.get(name, {}).get(port.name)
    if given is None and port.kind == "boolean":
        given = f"sin({(47 + 26 * number)}*t) > 0"
    elif given is None and port.kind == "integer":
        given = f"floor({30 + 20 * number}*t)"
    elif given is None:
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        wave = f"{middle} + {half}*sin({31.4159 * (1 + 0.6 * number)}*t + "
        given = [f"{wave}{0.8 * k})" for k in range(width)]
        if module.rpartition(".")[2].lstrip("_") in STEPPED:
            given = f"0.0 if t < {0.1 * UNTIL.get(name, 0.2)} else {high / 3}"
    return [given] * width if isinstance(given, str) else given


def draw(
    name: str,
    block: NativeBlock,
    low: float = -3.0,
    high: float = 3.0,
    period: float | None = None,
    offset: float = 0.0,
) -> Image.Image:
    """Return a picture of what a block makes of its inputs; of a state machine its statechart."""
    if isinstance(block, StateMachine):
        buffer = io.BytesIO()
        block.draw().savefig(buffer, format="png", dpi=100)
        return Image.open(buffer).convert("RGB").quantize(48)
    until = UNTIL.get(name, 0.2)
    d = Diagram(name, step=until / TICKS)
    d.add(block, name="block", period=period, offset=offset)
    inputs = []
    # What need not be connected is not, unless there is something to show.
    fed = [p for p in block.inputs if p.default is None or p.name in FEEDS.get(name, {})]
    for number, port in enumerate(fed):
        kind: Any = port.kind if isinstance(port.kind, str) else "real"
        texts = formulas(name, type(block).__module__, number, port, low, high)
        unit = port.unit if not isinstance(port.unit, Same | Derived) else None
        parts = [
            d.add(Expression(text, kind=kind, unit=None if unit is None else str(unit)))
            for text in texts
        ]
        whole = parts[0] if len(parts) == 1 else d.add(Mux(len(parts)), name=f"mux {number}")
        if len(parts) > 1:
            for k, part in enumerate(parts, 1):
                d.connect(part, whole[f"u{k}"])
        d.connect(whole, block[port.name])
        inputs.append((port.name, d.names[whole]))
    result = simulate(d, until, progress=False)
    # One axis has one unit: that of the first output. Without one, numbers may be of any size.
    lines = {}
    first = block.outputs[0]
    for port in block.outputs:
        columns = np.atleast_2d(result[f"block.{port.name}"].T)[:3]
        for k, y in enumerate(columns):
            label = port.name if len(columns) == 1 else f"{port.name}[{k}]"
            if name in SCALED:
                lines[f"{label} / {np.abs(y).max():.3g}"] = y / (np.abs(y).max() or 1.0)
            elif port is first or (
                port.unit == first.unit and (port.unit is not None or port.kind == "boolean")
            ):
                lines[label] = y
    scale = max(np.ptp(y) or np.abs(y).max() for y in lines.values())
    with mpl.rc_context({**STYLE, "font.size": 9, "legend.fontsize": 8, "lines.linewidth": 1.5}):
        figure = Figure(figsize=(5.6, 1.9), dpi=80, layout="constrained")
        axes = figure.subplots()
        for label, source in inputs:
            u = np.atleast_2d(result[source].T)[0]
            # An input of quite another size would flatten what comes out.
            if name not in SCALED and 0.05 * scale < (np.ptp(u) or 1.0) < 20 * scale:
                axes.plot(result.t, u, "--", color="#888888", lw=1, label=label)
        # A sampled block changes at ticks, of which the picture has many, or few that count.
        held = first.kind != "real" or d.rate_of(block).kind in ("every_tick", "periodic")
        style = "steps-post" if held else "default"
        for k, (label, y) in enumerate(lines.items()):
            axes.plot(result.t, y, color=COLORS[k % len(COLORS)], label=label, ds=style)
        axes.set(xlabel="time [s]", xlim=(0, until))
        axes.legend(loc="upper left", bbox_to_anchor=(1.005, 1.03), frameon=False)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
    return Image.open(buffer).convert("RGB").quantize(48)


def main() -> None:
    files, pictures, examples = write_reference(), {}, load_examples()
    for name in exported():
        example = examples[name][0]
        block = example.make()
        if is_drawn(block):
            pictures[name] = draw(
                name, block, example.low, example.high, example.period, example.offset
            )
    (DOCS / "reference").mkdir(exist_ok=True)
    for old in (DOCS / "reference").glob("*.md"):
        if old.name not in BY_HAND:
            old.unlink()
    for path, text in files.items():
        (DOCS / path).write_text(text)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("*.png"):
        old.unlink()
    for name, picture in pictures.items():
        picture.save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
