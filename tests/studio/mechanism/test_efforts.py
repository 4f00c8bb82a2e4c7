"""Forces that pages draw: they are the recorded outputs, and those of mechanics."""

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks.multibody import System
from biella.scheduler.compile._flatten import flatten
from biella.studio._mechanism import find_mechanisms, list_systems, show_mechanisms
from biella.studio.mechanism._efforts import list_efforts

from ...blocks.multibody.elements.test_outputs import CASES, options_of
from ..client import open_studio, write_rig

pytestmark = pytest.mark.engine

G, MASS, LENGTH, RATE = 9.80665, 2.0, 0.6, 400.0

RIG = f"""
    from biella import Diagram
    from biella.blocks.multibody import System

    def diagram():
        s = System("bench", planar=True)
        bob = s.body("bob", mass={MASS}, inertia=0.0, com=(0.0, -{LENGTH}), rotation=0.8)
        s.revolute("pivot", s.ground, bob, at=(0.0, 0.0))
        slide = s.body("slide", mass=1.0, inertia=0.1, position=(1.3, 0.0))
        s.prismatic("rail", s.ground, slide, at=(1.3, 0.0), axis=(1, 0))
        s.spring("coil", s.ground.marker("wall", (1.0, 0.0)), slide.marker("eye", (0.0, 0.0)),
                 stiffness={RATE}, free_length=0.25)
        d = Diagram("bench", step=1e-3)
        d.add(s.block(outputs=["pivot.angle", "pivot.speed", "slide.position"]), name="plant")
        return d
"""


@pytest.fixture(scope="module")
def page_of_a_run(tmp_path_factory):
    """What a page knows of a run of half a second: the mechanism, and efforts at recorded times."""
    with open_studio(write_rig(tmp_path_factory.mktemp("rig"), RIG)) as (session, _, page):
        page.wait(lambda: "mechanisms" in page.events)
        page.do("poses", mechanism="plant", on=True, efforts=True)
        page.do("factor", value=0.0)
        page.do("run")
        page.wait(lambda: session.view.rows.end > 500)
        page.do("pause")
        page.binary.clear()
        page.do("poses", mechanism="plant", t=0.25)
        page.wait(lambda: any(head[0] == 4 and v[0] == 0.25 for head, v in page.binary))
        (mechanism,) = page.events["mechanisms"]["list"]
        values = next(v for head, v in page.binary if head[0] == 4 and v[0] == 0.25)
        view = session.view
        _, rows = view.rows.read(250, 251)
        return (
            mechanism,
            values,
            {path: rows[at[0] : sum(at), 0] for path, at in view.signals.items()},
        )


def test_values_are_the_recorded_outputs(page_of_a_run):
    mechanism, values, recorded = page_of_a_run
    drawn = {(item["name"], item["kind"]): item for item in mechanism["efforts"]}
    assert set(drawn) == {
        ("pivot", "force"), ("rail", "force"), ("rail", "torque"), ("coil", "force"),
        ("push", "force"),
    }  # fmt: skip
    for (name, kind), item in drawn.items():
        width = 1 if item["form"] == "tension" else 3
        first = 1 + item["value"]  # after the time
        assert np.array_equal(values[first : first + width], recorded[f"plant.{name}.{kind}"])


def test_the_pin_of_a_pendulum_carries_weight_and_circular_motion(page_of_a_run):
    """Along the rod m g cos φ + m l ω²; across it, for a point mass, nothing."""
    mechanism, values, recorded = page_of_a_run
    item = next(e for e in mechanism["efforts"] if e["name"] == "pivot")
    assert (item["group"], item["body"], item["sign"]) == ("joint", 0, 1)
    assert item["place"] == [0, [0.0, 0.0, 0.0]]
    (angle,), (speed,) = recorded["plant.pivot.angle"], recorded["plant.pivot.speed"]
    toward_pin = np.array([-np.sin(angle), np.cos(angle), 0.0])
    pull = MASS * (G * np.cos(angle) + LENGTH * speed**2)
    force = values[1 + item["value"] :][:3]
    assert abs(speed) > 1.0  # both terms count
    assert force == pytest.approx(pull * toward_pin, abs=1e-6 * pull)


def test_a_spring_pulls_with_its_stiffness(page_of_a_run):
    mechanism, values, recorded = page_of_a_run
    item = next(e for e in mechanism["efforts"] if e["name"] == "coil")
    stretch = recorded["plant.slide.position"][0] - 1.0 - 0.25
    assert values[1 + item["value"]] == pytest.approx(RATE * stretch, rel=1e-12)
    assert item["place"] == [-1, [1.0, 0.0, 0.0]] and item["other"] == [1, [0.0, 0.0, 0.0]]


def test_efforts_are_sent_to_pages_that_ask_only(tmp_path):
    with open_studio(write_rig(tmp_path, RIG)) as (_, _, page):
        page.do("poses", mechanism="plant", on=True)
        page.do("step", ticks=5)
        page.wait(lambda: [m for m in page.binary if m[0][0] == 2 and m[1][0] > 0.003])
        assert not [m for m in page.binary if m[0][0] == 4]


@pytest.mark.parametrize("case", CASES)
def test_every_element_and_joint_is_drawn(case):
    """By outputs that the mechanism has, on a body of it; the page rotates axes of unit length."""
    system = CASES[case]()
    efforts = list_efforts(system)
    found = system.outputs()
    for effort in efforts:
        for path, width in effort.outputs:
            assert found[path].width == width, path
        unit = found[effort.outputs[0][0]].unit.replace("·", ".")
        assert unit == ("N" if effort.kind == "force" else "N.m"), effort
        if "axis" in effort.about:
            assert np.linalg.norm(effort.about["axis"][1]) == pytest.approx(1.0)
        assert -2 <= effort.about.get("body", 0) < len(system.bodies)
    parts = {joint.name for joint in system.joints}
    parts |= {part.name for part in system.elements}
    # The multiplier of a formula, of a curve or of rolling has no one place and direction.
    parts |= {part.name for part in system.constraints if "effort" in part.outputs()}
    assert {effort.name for effort in efforts} == parts


def test_without_reactions_nothing_needs_the_accelerations(tmp_path):
    """With devices, a tick must not take longer for the page."""
    system = CASES["spatial"]()
    d = Diagram("d", step=1e-3)
    d.add(system.block(outputs=[], **options_of(system)), name="plant")
    flat = show_mechanisms(flatten(d), reactions=False, pushes=False)
    (item,) = flat.blocks
    names = {port.name for port in item.block.outputs}
    assert "spring.force" in names and "bushing.torque" in names
    assert not {"hinge.force", "rail.torque"} & names
    assert not flat.inputs


def test_what_was_not_recorded_is_not_drawn():
    """Of a result with some of the signals only."""
    s = System("two", planar=True)
    a = s.body("a", mass=1.0, inertia=0.1, position=(0.0, -0.2))
    s.revolute("pivot", s.ground, a, at=(0.0, 0.0))
    s.spring("coil", s.ground.marker("m"), a.marker("e"), stiffness=3.0)
    d = Diagram("d", step=1e-3)
    d.add(s.block(outputs=[]), name="plant")
    model = d.compile(flat=show_mechanisms(flatten(d)))
    result = simulate(model, 0.01, record=["plant.a.*", "plant.coil.force"])
    columns = {path: 1 + 10 * n for n, path in enumerate(result)}
    (mechanism,) = find_mechanisms(list_systems(model.flat), columns)
    assert [effort.name for effort in mechanism.efforts] == ["coil"]
    assert mechanism.effort_columns == (columns["plant.coil.force"],)


def test_a_reaction_on_the_ground_is_drawn_reversed_on_the_body():
    """A joint whose second body is the ground: what it does to the body is minus its output."""
    s = System("hung", planar=True)
    bob = s.body("bob", mass=MASS, inertia=0.1, com=(0.0, -LENGTH))
    s.revolute("pivot", bob, s.ground, at=(0.0, 0.0))
    d = Diagram("d", step=1e-3)
    d.add(s.block(outputs=[]), name="plant")
    model = d.compile(flat=show_mechanisms(flatten(d)))
    force = simulate(model, 0.01, record=["plant.pivot.force"])["plant.pivot.force"]
    pivot = next(effort for effort in list_efforts(s) if effort.name == "pivot")
    assert (pivot.about["sign"], pivot.about["body"]) == (-1, 0)
    assert pivot.about["sign"] * force == pytest.approx([0.0, MASS * G, 0.0] * np.ones((11, 1)))
