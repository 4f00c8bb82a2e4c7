"""The catalog of outputs: every path it lists is found, with the inputs that act on it at once."""

from __future__ import annotations

import pytest

from biella import Diagram
from biella.blocks.multibody import System
from biella.blocks.multibody.plant._outputs import Catalog, find_record, list_outputs
from biella.blocks.multibody.plant._tables import Tables
from biella.blocks.multibody.plant._tree import grow_tree
from biella.errors import DiagramError
from biella.scheduler.engine._engine import Instance

from ..elements.test_outputs import CASES, loop, spatial

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("case", CASES)
def test_every_listed_path_is_found_under_its_name(case: str) -> None:
    system = CASES[case]()
    paths = list_outputs(system)
    assert len(set(paths)) == len(paths)
    tables = Tables(system, [], True, 1, None)
    found = {}

    def show() -> list[list[int]]:
        catalog = Catalog(tables)
        found.update({path: catalog.find(path) for path in paths})
        return [list(item.record) for item in found.values()]

    tables.write(show, lambda path: find_record(tables, path))
    assert {path: item.port.name for path, item in found.items()} == {path: path for path in paths}
    assert all(item.inputs <= set(tables.input_names) for item in found.values())


def test_inputs_of_an_output_are_those_that_act_on_it_at_once() -> None:
    """A moved marker moves a place at once; forces act on accelerations only."""
    s = System("slide", planar=True)
    body = s.body("body", mass=1.0, inertia=0.1)
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    s.force("push", body.marker("m", (0, 0)), (0.0, 0.0))
    s.ground.marker("wall", (1.0, 0.0), motion={"x": 0.0})
    block = s.block(
        inputs=["push.force.x", "ground.wall.x"],
        outputs=["body.position", "body.acceleration", "ground.wall.position", "slide.force"],
    )
    direct = {
        (output.name, block.inputs[k].name)
        for output, inputs in zip(block.outputs, block.feedthrough, strict=True)
        for k in inputs
    }
    assert ("body.position", "push.force.x") not in direct
    assert ("body.acceleration", "push.force.x") in direct
    assert ("slide.force", "push.force.x") in direct
    assert ("ground.wall.position", "ground.wall.x") in direct
    assert ("body.position", "ground.wall.x") not in direct


def test_joints_show_how_far_they_are_open() -> None:
    """Those of the tree are closed by construction; the other one says what the whole one does."""
    s = loop()
    joints = [f"{j.name}.{what}" for j in s.joints for what in ("closure", "closure_rate")]
    diagram = Diagram("d")
    diagram.add(s.block(outputs=[*joints, "closure", "closure_rate"]), name="plant")
    with Instance(diagram.compile()) as instance:
        instance.initialize()
        # 1 mm off in the coordinate of the crank, and 1 m/s: nothing is closed between steps.
        instance.states[0] += 1e-3
        instance.states[3] += 0.5
        instance.touch()
        instance.evaluate()
        seen = {name: float(instance.get(f"plant.{name}")) for name in joints}
        whole = [float(instance.get(f"plant.{name}")) for name in ("closure", "closure_rate")]
    (cut,) = (joint.name for joint in grow_tree(s).cuts)
    for joint in s.joints:
        own = [seen[f"{joint.name}.closure"], seen[f"{joint.name}.closure_rate"]]
        assert own == (whole if joint.name == cut else [0.0, 0.0])
    # The crank of 0.2 m turned alone: 0.2 mm and 0.1 m/s, seen by the largest component.
    assert 0.5e-4 < whole[0] < 1.1e-3
    assert 0.02 < whole[1] < 1.0


def test_output_of_the_name_of_a_number_moves_the_number_aside() -> None:
    s = spatial()
    block = s.block(outputs=["spring.force"])
    names = [item.name for item in block.parameters]
    assert "spring.actuator_force" in names
    assert "spring.force" not in names
    assert "spring.force" in [item.name for item in s.block().parameters]
    with pytest.raises(DiagramError, match=r"`spring.force` .* is an input and an output"):
        s.block(inputs=["spring.force"], outputs=["spring.force"])


def test_unknown_output_of_an_element_lists_those_that_are_near() -> None:
    with pytest.raises(DiagramError, match=r"spring\.forc`.*spring\.force"):
        spatial().block(outputs=["spring.forc"])
