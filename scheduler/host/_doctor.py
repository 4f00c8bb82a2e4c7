"""``biella doctor``: what this machine can do for a real-time run, and which rate it will hold."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BiellaError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ._latency import Variant
    from ._privileges import Grant
    from ._system_info import Fact

_BAR = 30  # characters


def add_command(commands: Any) -> None:
    """Add the command to those of the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="report the real-time capabilities of this machine and measure the achievable rate",
        description=(
            "Report the real-time capabilities of this machine and measure the achievable rate."
        ),
        epilog="example: biella doctor --rate 1000 --seconds 10 --plot lateness.png",
    )
    parser.set_defaults(command=run)
    parser.add_argument(
        "--rate", type=float, default=1000.0, help=("wake-ups per second (default: 1000)")
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=2.0,
        help=("duration of the measurement of each variant in s (default: 2)"),
    )
    parser.add_argument(
        "--load",
        type=float,
        default=0.5,
        help=(
            "fraction of the period that a tick computes, to estimate achievable rates "
            "(default: 0.5)"
        ),
    )
    parser.add_argument("--plot", type=Path, help="draw the histograms to this file")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that was found out and measured.

    Attributes
    ----------
    facts
        Of the machine.
    grants
        Results of requesting all privileges together.
    variants
        Ways to wait, with their lateness; of those that were refused there is none.
    rate, seconds, load
        As asked for.
    """

    facts: list[Fact]
    grants: list[Grant]
    variants: list[Variant]
    rate: float
    seconds: float
    load: float

    @property
    def measured(self) -> list[Variant]:
        """The variants that took part."""
        return [variant for variant in self.variants if variant.turns]

    @property
    def advice(self) -> list[str]:
        """What to do, each once."""
        found = [fact.advice for fact in self.facts] + [grant.advice for grant in self.grants]
        return list(dict.fromkeys(filter(None, found)))

    @property
    def telling(self) -> list[str]:
        """What everybody has, what needs no permission, and all together, with and without spin."""
        measured = self.measured
        return list(dict.fromkeys(v.name for v in (*measured[:2], *measured[-2:])))

    @property
    def shares(self) -> dict[int, dict[str, float]]:
        """Share of missed deadlines by rate and variant."""
        from ._latency import list_shares

        return list_shares({v.name: v.lateness_ns for v in self.measured}, self.load)

    def as_dict(self) -> dict[str, Any]:
        """Return all as what JSON can hold."""
        from ._latency import EDGES_US, count_bins, summarize

        machine: dict[str, dict[str, str]] = {}
        for fact in self.facts:
            machine.setdefault(fact.topic, {})[fact.name] = fact.value
        return {
            "machine": machine,
            "privileges": [asdict(grant) for grant in self.grants],
            "advice": self.advice,
            "rate_hz": self.rate,
            "seconds": self.seconds,
            "histogram_edges_us": EDGES_US,
            "variants": [
                {
                    "name": v.name,
                    "asked": asdict(v.privileges),
                    "spin_us": v.spin_ns / 1000,
                    "refused": [str(grant) for grant in v.refusals],
                    "wakeups": v.lateness_ns.size,
                    "lateness_us": summarize(v.lateness_ns) if v.turns else None,
                    "histogram": count_bins(v.lateness_ns),
                }
                for v in self.variants
            ],
            "load": self.load,
            "missed_share": {str(rate): shares for rate, shares in self.shares.items()},
        }


def examine_and_measure(rate: float, seconds: float, load: float = 0.5) -> Diagnosis:
    """Find out all about this machine, and measure how late threads wake on it."""
    from ._latency import list_variants, measure
    from ._system_info import choose_processor, examine

    if not 0 <= load < 1:
        raise BiellaError(f"--load must be a fraction of the period, 0 to 1, got {load:g}.")
    variants = list_variants(choose_processor(), rate)
    facts = examine()
    measure(variants, rate, seconds)
    return Diagnosis(facts, variants[-1].grants, variants, rate, seconds, load)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    if options.plot:
        from ...blocks.core._figure import check_picture_format

        check_picture_format(options.plot)
    diagnosis = examine_and_measure(options.rate, options.seconds, options.load)
    if options.json:
        print(json.dumps(diagnosis.as_dict(), indent=2, ensure_ascii=False))
    else:
        from rich.console import Console

        console = Console()
        if not console.is_terminal:
            console.width = 140  # a file or a pipe has room for whole lines
        show(diagnosis, console)
    if options.plot:
        from ._doctor_plot import plot_histograms

        plot_histograms(diagnosis.measured, options.rate, options.plot)
        if not options.json:
            print(f"wrote {options.plot}")


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print all."""
    from ..results._tables import fit_table

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    def put(table: Table) -> None:
        for piece in fit_table(table, console):
            console.print(piece)

    put(_facts_table(diagnosis.facts))
    put(_grants_table(diagnosis.grants))
    put(_lateness_table(diagnosis))
    for variant in diagnosis.variants:
        if not variant.turns:
            say(f"Not measured, because not granted: {variant.name}")
    for variant in (diagnosis.measured[0], diagnosis.measured[-1]):
        say(f"\nLateness, {variant.name}: number of wake-ups")
        for line in draw_histogram(variant):
            say(line)
    console.print()
    put(_rates_table(diagnosis))
    for line in conclude(diagnosis):
        say(line)
    if diagnosis.advice:
        say("\nWhat would help:")
        for text in diagnosis.advice:
            say(f"- {text}")


def _make_table(title: str, left: Sequence[str], right: Sequence[str] = ()) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


def _facts_table(facts: Sequence[Fact]) -> Table:
    from rich.text import Text

    table = _make_table("This machine", ("", "what", "found"))
    topic = ""
    for fact in facts:
        if topic and fact.topic != topic:
            table.add_section()
        table.add_row(fact.topic if fact.topic != topic else "", fact.name, Text(fact.value))
        topic = fact.topic
    return table


def _grants_table(grants: Sequence[Grant]) -> Table:
    from rich.text import Text

    table = _make_table(
        "Privileges of a real-time thread", ("privilege", "granted", "what, or why not")
    )
    for grant in grants:
        mark = "[green]yes" if grant.granted else "[red]no"
        table.add_row(grant.name, mark, Text(grant.detail))
    return table


def _lateness_table(diagnosis: Diagnosis) -> Table:
    from ._latency import QUANTILES, summarize

    title = f"Wake-up lateness at {diagnosis.rate:g} Hz, µs, all variants in turns"
    table = _make_table(title, ("variant",), (*QUANTILES, "wake-ups"))
    for variant in diagnosis.measured:
        figures = summarize(variant.lateness_ns)
        refused = ", ".join(grant.name for grant in variant.refusals)
        name = f"{variant.name} (without {refused})" if refused else variant.name
        table.add_row(
            name, *(f"{figures[q]:.1f}" for q in QUANTILES), str(variant.lateness_ns.size)
        )
    return table


def draw_histogram(variant: Variant) -> list[str]:
    """Return the lines of a histogram; a bar grows by the logarithm, so that single ones show."""
    from math import log10

    from ._latency import EDGES_US, count_bins

    counts = count_bins(variant.lateness_ns)
    used = [k for k, count in enumerate(counts) if count]
    most = max(counts)
    lines = []
    for k in range(used[0], used[-1] + 1):
        low = f"{EDGES_US[k - 1]:g}" if k else "0"
        high = f"{EDGES_US[k]:g}" if k < len(EDGES_US) else "…"
        full = log10(1 + counts[k]) / log10(1 + most)
        bar = "█" * max(round(_BAR * full), int(counts[k] > 0))
        lines.append(f"{low:>7} – {high:<7} µs {counts[k]:>8}  {bar}".rstrip())
    return lines


def _rates_table(diagnosis: Diagnosis) -> Table:
    shown = diagnosis.telling
    title = (
        f"Missed deadlines if a tick computes for {diagnosis.load:.0%} of its period (<: none seen)"
    )
    table = _make_table(title, (), ("rate, Hz", "may be late by, µs", *shown))
    counts = {v.name: v.lateness_ns.size for v in diagnosis.measured}
    for rate, shares in diagnosis.shares.items():
        room = (1 - diagnosis.load) / rate * 1e6
        row = [write_share(shares[name], counts[name]) for name in shown]
        table.add_row(str(rate), f"{room:.0f}", *row)
    return table


def write_share(share: float, count: int) -> str:
    """Return a share as text; of none seen, what it is below with 95 % confidence."""
    # (1 - p)^n = 5 % at p = 3 / n, nearly.
    percent = 100 * share or min(100.0, 300 / count)
    text = f"{percent:.2g} %" if percent < 99.5 else "100 %"
    return text if share else f"< {text}"


def conclude(diagnosis: Diagnosis) -> list[str]:
    """Return in sentences which rates hold, and how far that may be trusted."""
    lines = []
    for variant in diagnosis.telling:
        shares = {rate: found[variant] for rate, found in diagnosis.shares.items()}
        clean = _highest(shares, 0.0)
        nearly = _highest(shares, 1e-3)
        text = f"{variant}: "
        text += f"no deadline missed up to {clean} Hz" if clean else "deadlines missed at any rate"
        if nearly and nearly != clean:
            text += f", at most one in a thousand up to {nearly} Hz"
        lines.append(text + ".")
    lines.append(
        "These figures hold for the duration of the measurement and the load of this machine "
        "at that time; a longer measurement (--seconds) under the expected load finds rarer "
        "delays. On a shared processor the lateness has no upper bound."
    )
    return lines


def _highest(shares: dict[int, float], bound: float) -> int | None:
    """Return the highest rate up to which all have at most this share."""
    best = None
    for rate in sorted(shares):
        if shares[rate] > bound:
            break
        best = rate
    return best
