"""Which blocks take adaptive communication steps together."""

from __future__ import annotations

import math

import networkx as nx
import pytest

from biella import BiellaError, Diagram, DiagramError, simulate
from biella.blocks import Gain, Integrator
from biella.blocks.multibody import System
from biella.errors import CouplingWarning
from biella.scheduler.compile.coupling._communication import find_groups, report_fixed_steps

EDGES = [(1, 2), (2, 1), (2, 3), (5, 6)]


@pytest.mark.parametrize(
    ("wanting", "expected"),
    [
        (set(), {}),
        ({1}, {1: 3, 2: 3, 3: 3}),
        ({3}, {1: 3, 2: 3, 3: 3}),
        ({3, 6}, {1: 3, 2: 3, 3: 3, 5: 4, 6: 4}),
        ({4}, {}),
        ({4, 6}, {5: 3, 6: 3}),
    ],
)
def test_groups_are_what_depends_on_each_other_in_any_direction(wanting, expected):
    """Block 4 reads nothing; two groups exist already."""
    graph = nx.DiGraph(EDGES)
    graph.add_node(4)
    assert find_groups(graph, wanting, {1, 2, 3, 6}, 2) == expected


def test_blocks_with_steps_of_one_length_are_reported():
    problems: list[str] = []
    with pytest.warns(CouplingWarning, match=r"`a` cannot take steps .* has no effect"):
        report_fixed_steps("`a`", False, problems)
    assert problems == []
    report_fixed_steps("`a`", True, problems)
    assert "remove it from couple(…)" in problems[0]


def looped(count: int = 1, **options) -> Diagram:
    """A mass with a brake, as often as wanted."""
    d = Diagram("looped", step=0.1, **options)
    for n in range(count):
        add_mass(d, f"plant{n or ''}", f"brake{n or ''}")
    return d


def add_mass(d: Diagram, name: str, brake: str) -> None:
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=1.0, inertia=1.0, velocity=(1.0, 0))
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    s.force("push", body.marker("end"), (0.0, 0.0))
    plant = d.add(s.block(["push.force.x"], ["slide.speed"], mode="internal"), name)
    d.connect(plant["slide.speed"], d.add(Gain(-3.0, unit="N"), brake))
    d.connect(d[brake], plant["push.force.x"])


def test_settings_of_couple_and_of_the_diagram():
    d = looped(coupling_tolerance=1e-3)
    assert d.compile().couplings[0]["coupling_tolerance"] == 1e-3
    assert d.compile(coupling_tolerance=1e-5).couplings[0]["coupling_tolerance"] == 1e-5
    d.couple("plant", coupling_tolerance=1e-4, halvings=3)
    (item,) = d.compile(coupling_tolerance=1e-5).couplings
    assert item["coupling_tolerance"] == 1e-4 and item["divisions"] == 8
    d = looped(coupling_tolerance=1e-3)
    d.couple("plant", coupling_tolerance=0.0)
    assert d.compile().couplings == ()  # jacobi with held inputs needs no coupling


def test_a_diagram_without_exchange_has_nothing_to_adapt():
    d = Diagram("alone", coupling_tolerance=1e-3)
    d.chain(d.add(Integrator(1.0), "x"), d.add(Gain(-1.0), "k"), d["x"])
    with pytest.warns(CouplingWarning, match="coupling_tolerance has no effect"):
        assert d.compile().couplings == ()


def test_it_is_not_combined_with_estimates_of_the_error():
    with pytest.raises(DiagramError, match="estimate_error compares steps of equal length"):
        simulate(looped(), 1.0, coupling_tolerance=1e-3, estimate_error=1)


def test_the_tolerance_of_a_plan_is_fixed():
    with pytest.raises(BiellaError, match="the coupling of a Plan is fixed"):
        simulate(looped().compile(), 1.0, coupling_tolerance=1e-3)


def test_a_group_that_cannot_adapt_leaves_the_others():
    d = looped(3, coupling_tolerance=1e-2)
    vars(d["plant"])["takes_any_step"] = False
    with pytest.warns(CouplingWarning, match=r"^`plant` cannot take steps of different lengths"):
        run = simulate(d, 1.0)
    items = run.coupling_report().couplings
    assert [item["members"] for item in items] == [["plant1"], ["plant2"]]
    assert all(item["communication_steps"] > item["steps"] for item in items)
    assert abs(run["plant1"][-1] - math.exp(-3)) < 1e-2 < abs(run["plant"][-1] - math.exp(-3))


def make_decay(**options) -> Diagram:
    d = Diagram("decay", **options)
    x = d.add(Integrator(1.0), "x")
    d.chain(x, d.add(Gain(-1.0), "g"), x)
    return d


@pytest.mark.parametrize("where", ["diagram", "simulate"])
def test_a_tolerance_without_a_coupling_is_reported(where):
    """Results are those without; the value itself is checked as in any diagram."""
    with pytest.warns(CouplingWarning, match="coupling_tolerance has no effect"):
        if where == "diagram":
            result = simulate(make_decay(coupling_tolerance=1e-4), 0.1)
        else:
            result = simulate(make_decay(), 0.1, coupling_tolerance=1e-4)
    assert list(result["x"]) == list(simulate(make_decay(), 0.1)["x"])
    with pytest.raises(DiagramError, match="between 0 and 1"):
        make_decay(coupling_tolerance=2.0)
