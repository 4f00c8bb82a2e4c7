"""The schedule of a plan, as text."""

from __future__ import annotations

from ._described import AbstractDescribed, BlockInfo


def report_plan(plan: AbstractDescribed) -> str:
    """Return the blocks in execution order with their rates, the loops, and the sizes."""
    lines = [
        f"{plan.name}: {len(plan.blocks)} blocks, step {plan.step:g} s, solver {plan.solver}",
        "",
    ]
    rows = [("", "block", "type", "rate", "outputs")]
    position = 0
    for kind, index in plan.meta["order"]:
        if kind == "call":
            block = plan.blocks[index]
            if not block.outputs:
                continue
            position += 1
            rows.append((str(position), block.path, block.type, block.rate, _outputs(block)))
        elif kind == "loop":
            position += 1
            around = " → ".join(plan.loops[index])
            rows.append((str(position), "(loop)", "", "", around))
        else:
            rows.append(("", f"[{plan.meta['guards'][index]}]", "decides", "", ""))
    widths = [max(len(row[n]) for row in rows) for n in range(4)]
    for row in rows:
        cells = [row[0].rjust(widths[0]), *(row[n].ljust(widths[n]) for n in (1, 2, 3)), row[4]]
        lines.append("  ".join(cells).rstrip())
    sinks = [block.path for block in plan.blocks if not block.outputs]
    if sinks:
        lines += ["", "without outputs: " + ", ".join(sinks)]
    if plan.loops:
        lines += [
            "",
            f"{len(plan.loops)} algebraic loop(s), solved at each tick by Newton's method",
        ]
    for item in plan.couplings:
        how = f"{item['method']}, extrapolation {item['extrapolation']}"
        lines += ["", f"coupled by {how}: " + " → ".join(item["members"])]
        if item["coupling_tolerance"]:
            lines.append(
                f"up to {item['divisions']} communication steps in a base step, for a tolerance of "
                f"{item['coupling_tolerance']:g}"
            )
        if "states" in set(item["members"]) - {block.path for block in plan.blocks}:
            lines.append("events of continuous blocks happen at ticks: their states are coupled")
    if plan.multirate:
        lines += ["", *_multirate(plan)]
    for title, ports in (("inputs", plan.inputs), ("outputs", plan.outputs)):
        if ports:
            named = ", ".join(f"{p.path} [{p.unit or '?'}]" for p in ports.values())
            lines += ["", f"{title}: {named}"]
    return "\n".join(lines)


def _multirate(plan: AbstractDescribed) -> list[str]:
    part = plan.multirate
    substeps = part["substeps"]
    lines = [
        f"{substeps} substeps of {plan.step / substeps:g} s in a step: " + ", ".join(part["blocks"])
    ]
    if part["interpolated"]:
        lines.append("read interpolated by these: " + ", ".join(part["interpolated"]))
    return lines


def _outputs(block: BlockInfo) -> str:
    shown = []
    for port in block.outputs:
        width = f"({port.width})" if port.width > 1 else ""
        unit = f" [{port.unit}]" if port.unit else ""
        shown.append(f"{port.path.removeprefix(block.path + '.')}{width}{unit}")
    return ", ".join(shown)
