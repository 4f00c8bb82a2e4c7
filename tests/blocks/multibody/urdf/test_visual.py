"""Shapes of a URDF file: on the right body, at the right place; a wrong one does no harm."""

import numpy as np
import pytest

from biella import BiellaWarning
from biella.blocks.multibody import System

from .robots import DOUBLE, write

WELDED = """<robot name="r">
  <material name="steel"><color rgba="0.4 0.5 0.6 1"/></material>
  <link name="base"><visual><geometry><sphere radius="0.1"/></geometry></visual></link>
  <link name="a"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="tool">
    <visual><origin xyz="0 0 0.2" rpy="0 0 1.5707963267948966"/>
      <geometry><cylinder radius="0.1" length="0.3"/></geometry><material name="steel"/></visual>
    <visual><geometry><box size="1 2 3"/></geometry>
      <material name="own"><color rgba="1 0 2 0.5"/></material></visual>
    <visual><geometry><mesh filename="x.stl" scale="0.001 0.001 0.001"/></geometry></visual>
    <visual><geometry><capsule radius="1"/></geometry></visual>
  </link>
  <joint name="pin" type="continuous"><parent link="base"/><child link="a"/></joint>
  <joint name="weld" type="fixed"><parent link="a"/><child link="tool"/>
    <origin xyz="1 0 0" rpy="0 1.5707963267948966 0"/></joint>
</robot>"""


def test_shapes_of_welded_links_are_on_their_body(tmp_path):
    path = write(tmp_path, WELDED)
    visuals = System.from_urdf(path).visuals
    assert list(visuals) == ["ground", "a"]
    (ball,) = visuals["ground"]
    assert (ball.kind, ball.size, ball.color) == ("sphere", (0.1,), None)
    cylinder, box, mesh = visuals["a"]
    assert (cylinder.kind, cylinder.size) == ("cylinder", (0.1, 0.3))
    assert cylinder.color == (0.4, 0.5, 0.6, 1.0)
    # The weld turns the tool's z to x of the body, the shape its x to y of the tool.
    assert cylinder.position == pytest.approx([1.2, 0.0, 0.0])
    assert cylinder.rotation @ [0.0, 0.0, 1.0] == pytest.approx([1.0, 0.0, 0.0], abs=1e-15)
    assert cylinder.rotation @ [1.0, 0.0, 0.0] == pytest.approx([0.0, 1.0, 0.0], abs=1e-15)
    assert (box.kind, box.size, box.color) == ("box", (1.0, 2.0, 3.0), (1.0, 0.0, 1.0, 0.5))
    assert (mesh.kind, mesh.size, mesh.file) == ("mesh", (0.001, 0.001, 0.001), "x.stl")
    assert mesh.source == path and box.source is None


@pytest.mark.parametrize(
    ("geometry", "text"),
    [
        ('<box size="1 2"/>', "must be 3 numbers"),
        ('<box size="1 2 -3"/>', "must be above 0"),
        ('<cylinder radius="0.1"/>', "has no `length`"),
        ('<sphere radius="nan"/>', "not a finite number"),
        ("<mesh/>", "has no `filename`"),
    ],
)
def test_a_shape_that_cannot_be_read_is_left_out_with_a_warning(tmp_path, geometry, text):
    visual = f"<visual><geometry>{geometry}</geometry></visual>"
    path = write(
        tmp_path, DOUBLE.replace('<link name="base"/>', f'<link name="base">{visual}</link>')
    )
    with pytest.warns(BiellaWarning, match=f"a shape is not drawn: robot.urdf, line 2: .*{text}"):
        s = System.from_urdf(path)
    assert not s.visuals


def test_colors_that_cannot_be_read_are_left_out_with_a_warning(tmp_path):
    text = WELDED.replace('rgba="0.4 0.5 0.6 1"', 'rgba="red"')
    with pytest.warns(BiellaWarning, match="shapes have no colors: .*'red'"):
        s = System.from_urdf(write(tmp_path, text))
    assert s.visuals["a"][0].color is None


def test_shapes_change_nothing_but_pictures(tmp_path):
    plain = System.from_urdf(write(tmp_path, DOUBLE))
    shape = '<visual><geometry><box size="1 1 1"/></geometry></visual>'
    shown = System.from_urdf(write(tmp_path, DOUBLE.replace('name="a">', f'name="a">{shape}')))
    assert list(shown.visuals) == ["a"]
    one, other = plain.block(), shown.block()
    assert one.integers == other.integers
    pairs = zip(one.parameters, other.parameters, strict=True)
    assert all(np.array_equal(p.value, q.value) and p.name == q.name for p, q in pairs)
