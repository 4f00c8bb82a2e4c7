"""What an FMU shows to people: ``documentation/index.html`` and the picture ``model.png``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ...scheduler.compile.diagram._diagram import Diagram
from ...scheduler.compile.diagram._subsystem import Subsystem
from ...scheduler.compile.plan._plan import Plan
from ...scheduler.drawing._arrange import arrange
from ...scheduler.drawing._paint import finish
from ...scheduler.drawing._picture import Picture
from ...scheduler.drawing._png import write_png
from ...scheduler.drawing._svg import write_svg
from ...scheduler.drawing._symbols import Words
from ._description import Contents
from ._exchange import KIND_NAMES
from ._variables import Variable

_MOST_BLOCKS = 150
"""A larger diagram is not drawn: it would be illegible, and its layout takes seconds."""
_MOST_NUMBERS = 12

_STYLE = """
:root { --ink: #1a1a1a; --soft: #5f5f5f; --rule: #d9dde3; --tint: #f6f7f9; --blue: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.5rem 4rem; color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { margin: 0 0 .25rem; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.2rem; }
p.lead { margin: 0; color: var(--soft); }
figure { margin: 2rem 0 0; padding: .5rem; border: 1px solid var(--rule); border-radius: 8px;
  overflow-x: auto; }
figure svg { display: block; margin: 0 auto; max-width: 100%; height: auto; }
figcaption { padding: .25rem .75rem .5rem; color: var(--soft); font-size: .9rem; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .92rem; }
th { color: var(--soft); font-weight: 600; text-align: left; }
th, td { padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: baseline; }
td { white-space: nowrap; }
td.number { font-variant-numeric: tabular-nums; }
td.number, td:last-child { white-space: normal; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace; font-size: .92em; }
pre { padding: .75rem 1rem; border-radius: 6px; background: var(--tint); overflow-x: auto; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.5rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
"""


@dataclass(frozen=True, slots=True)
class Pictures:
    """A diagram as text for the page, and as a picture file for tools that show one."""

    svg: str
    png: bytes


def draw_pictures(diagram: Diagram, plan: Plan | None = None) -> Pictures:
    """Draw a diagram, with the rates of its plan; one too large to be read is just named."""
    if _count_blocks(diagram) > _MOST_BLOCKS:
        return Pictures("", write_png(_title_page(diagram.name)))
    picture = arrange(diagram, plan)
    return Pictures(write_svg(finish(picture, "")), write_png(finish(picture)))


def document(contents: Contents, version: str, picture: str, replaced: Sequence[str]) -> str:
    """Return the page about an FMU, complete in itself and free of dates.

    Parameters
    ----------
    contents
        What the FMU's description says.
    version
        Of FMI.
    picture
        The diagram as SVG, or nothing.
    replaced
        Sources in the picture that are inputs of the FMU.
    """
    plan = contents.plan
    groups: dict[str, list[Variable]] = {"input": [], "output": [], "parameter": [], "local": []}
    for variable in contents.variables:
        groups[variable.causality].append(variable)
    name = escape(plan.name)
    parts = [
        f"<h1>{name}</h1>",
        f'<p class="lead">An FMI {version} {KIND_NAMES[contents.kind]} FMU: '
        f"{_count(groups['input'], 'input')}, {_count(groups['output'], 'output')}, "
        f"{_count(groups['parameter'], 'parameter')}.</p>",
        _figure(picture, replaced) if picture else "",
        _table("Inputs", groups["input"], ["Name", "Unit", "Kind", "Start", "Description"]),
        _table("Outputs", groups["output"], ["Name", "Unit", "Kind", "Changes", "Description"]),
        _table("Local variables", groups["local"], ["Name", "Unit", "Kind", "Description"]),
        _about(contents),
        _facts(contents),
        _instructions(contents, groups["output"], version),
        _table(
            "Parameters",
            groups["parameter"],
            ["Name", "Unit", "Start", "May change", "Description"],
        ),
        f"<footer>Written by biella {escape(contents.version)}.</footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def _figure(picture: str, replaced: Sequence[str]) -> str:
    text = "The diagram of this FMU; colors denote rates."
    if replaced:
        names = ", ".join(f"<code>{escape(name)}</code>" for name in replaced)
        text += f" Replaced by inputs: {names}."
    return f"<figure>\n{picture}\n<figcaption>{text}</figcaption>\n</figure>"


def _count(groups: Sequence[object], what: str) -> str:
    return f"{len(groups) or 'no'} {what}{'' if len(groups) == 1 else 's'}"


def _table(title: str, groups: Sequence[Variable], columns: Sequence[str]) -> str:
    if not groups:
        return ""
    head = "".join(f"<th>{column}</th>" for column in columns)
    rows = "\n".join(f"<tr>{_cells(group, columns)}</tr>" for group in groups)
    return (
        f'<h2>{title}</h2>\n<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _cells(variable: Variable, columns: Sequence[str]) -> str:
    name = f"<code>{escape(variable.name)}</code>"
    if variable.shape:
        names = [text.removeprefix(variable.name) for text in variable.element_names]
        name += f" <small>{names[0]} … {names[-1]}</small>"
    starts = [f"{value:.9g}" for value in variable.start or ()]
    shown = ", ".join(starts[:_MOST_NUMBERS]) + (", …" if len(starts) > _MOST_NUMBERS else "")
    cells = {
        "Name": f"<td>{name}</td>",
        "Unit": f"<td>{escape(variable.unit or '–')}</td>",
        "Kind": f"<td>{variable.kind}{f', {variable.type}' if variable.type else ''}</td>",
        "Start": f'<td class="number">{shown}</td>',
        "Changes": "<td>continuously</td>"
        if variable.variability == "continuous"
        else "<td>in steps</td>",
        "May change": "<td>at any time</td>"
        if variable.variability == "tunable"
        else "<td>before the start</td>",
        "Description": f"<td>{escape(variable.doc)}</td>",
    }
    return "".join(cells[column] for column in columns)


def _about(contents: Contents) -> str:
    """Return what the user says about the model."""
    if not contents.about:
        return ""
    rows = "\n".join(
        f"<dt>{key.capitalize()}</dt><dd>{escape(text)}</dd>"
        for key, text in contents.about.items()
    )
    return f"<h2>About the model</h2>\n<dl>\n{rows}\n</dl>"


def _facts(contents: Contents) -> str:
    plan = contents.plan
    platforms = [
        platform + (f" (glibc {glibc} or newer)" if glibc else "")
        for platform, glibc in contents.needs.items()
    ]
    facts = {
        "Base step": f"{plan.step:g} s",
        "Solver": plan.solver,
        "Starts at": f"{plan.start_time:g} s, unless set by the tool",
        "Blocks": str(len(plan.blocks)),
        "Runs on": ", ".join(platforms),
        "Sources": "in the folder sources, C11 without dependencies"
        if contents.sources
        else "not included",
    }
    rows = "\n".join(f"<dt>{key}</dt><dd>{escape(text)}</dd>" for key, text in facts.items())
    return f"<h2>How it runs</h2>\n<dl>\n{rows}\n</dl>"


def _instructions(contents: Contents, outputs: Sequence[Variable], version: str) -> str:
    plan, name = contents.plan, contents.identifier
    stop = plan.start_time + 1000 * plan.step
    columns = [repr(v.name if version == "3.0" else v.element_names[0]) for v in outputs[:2]]
    text = (
        f"from fmpy import plot_result, simulate_fmu\n\nresult = simulate_fmu({f'{name}.fmu'!r}, "
        f"stop_time={stop:g}, output_interval={plan.step:g})\n"
        f"plot_result(result{', names=[' + ', '.join(columns) + ']' if columns else ''})"
    )
    page = (
        f"<h2>How to run it</h2>\n<p>Any tool that imports FMI {version} for "
        f"{KIND_NAMES[contents.kind].replace(' and ', ' or ')} opens "
        "the file; Python is not required. With FMPy, for instance:</p>\n"
        f"<pre>{escape(text)}</pre>"
    )
    if contents.sources:
        command = f"cc -std=c11 -O2 -ffp-contract=off -fPIC -shared {name}.c -lm -o {name}.so"
        page += (
            "\n<p>For another platform, compile the single file in <code>sources</code>; it "
            f"contains the plan and reads no files:</p>\n<pre>{escape(command)}</pre>"
        )
    return page


def _count_blocks(diagram: Diagram) -> int:
    return sum(
        _count_blocks(block.diagram) if isinstance(block, Subsystem) else 1
        for block in diagram.blocks.values()
    )


def _title_page(name: str) -> Picture:
    page = Picture(name=name)
    words = Words(name, 18.0, 24.0, 12.0, "left", bold=True)
    page.words.append(words)
    page.width, page.height = words.extent[2] + 18.0, 48.0
    return page
