"""URDF files: what is read, and what is reported with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from biella import BiellaWarning, DiagramError
from biella.blocks.multibody import System

from .robots import DOUBLE, write


def test_a_fixed_joint_needs_no_axis(tmp_path: Path) -> None:
    text = DOUBLE.replace('"continuous"', '"fixed"').replace('xyz="0 1 0"/></j', 'xyz="0 0 0"/></j')
    assert [body.name for body in System.from_urdf(write(tmp_path, text)).bodies] == ["b"]


KNEE = '<joint name="knee" type="revolute"><parent link="a"/><child link="b"/>'
WRONG = {
    "not XML": ("</robot>", "", r"line 12, column \d+: this is not well-formed XML: no element"),
    "tag": ("</link>\n  <link", "</lonk>\n  <link", r"line 4, .*mismatched tag"),
    "outermost": ("robot", "sdf", "has <sdf> outermost"),
    "macro": ('<link name="base"/>', '<xacro:include filename="x"/>', r"line 2: .*Expand .* first"),
    "empty": (DOUBLE, "<robot/>", "without any <link>"),
    "doctype": ("<robot", '<!DOCTYPE r [<!ENTITY a "b">]><robot', r"line 1: a document type"),
    "encoding": ("<robot", '<?xml version="1.0" encoding="klingon"?><robot', "encoding|decoded"),
    "parent": ('parent link="a"', 'parent link="aa"', r"line 9: .*parent `aa`.*Did you mean `a`"),
    "child": ('child link="b"', 'child link="c"', r"`knee` has the child `c`, but there is no"),
    "no parent": ('<parent link="a"/>', "", r"line 9: joint `knee` has no <parent>"),
    "two roots": ('<link name="base"/>', '<link name="base"/><link name="x"/>', "base, x"),
    "loop": (
        "</robot>",
        '<joint name="again" type="fixed"><parent link="base"/><child link="b"/></joint></robot>',
        r"line 12: joint `again` carries link `b`, which joint `knee` \(line 9\)",
    ),
    "cycle": ('parent link="base"', 'parent link="b"', r"cycle.*`a` → knee → `b` → top → `a`"),
    "twice": ('link name="b"', 'link name="a"', r"line 5: link `a` is there already, on line 3"),
    "dot": ('name="knee"', 'name="knee.1"', r"`knee.1` has a dot"),
    "no name": ('link name="b"', "link", r"line 5: <link> has no `name`"),
    "type": ('"continuous"', '"continous"', r"line 7: .*Did you mean `continuous`"),
    "axis": ('<axis xyz="0 1 0"/></joint>', '<axis xyz="0 0 0"/></joint>', "no direction"),
    "mimic": (KNEE, f'{KNEE}<mimic joint="top"/>', r"line 9: .*follows `top` by <mimic>"),
    "two masses": ('<mass value="2"/>', '<mass value="2"/><mass value="2"/>', "a second <mass>"),
    "no mass": ('<mass value="2"/>', "", r"line 3: link `a` has no <mass> in <inertial>"),
    "no inertia": ('<inertia ixx="0.05"', '<inertial ixx="0.05"', "has no <inertia>.*Did you mean"),
    "no ixx": ('ixx="0.05"', 'iXX="0.05"', r"line 4: <inertia> has no `ixx`"),
    "misspelled": ("inertial>", "inertail>", r"`a` has no <inertial>. Did you mean `inertail`"),
    "negative": ('<mass value="2"/>', '<mass value="-2"/>', "-2 kg: it must not be negative"),
    "moments": ('iyy="0.06"', 'iyy="0.08"', r"line 4: body `a` has .*which no body has"),
    "unit": ('xyz="0 0 -0.7"', 'xyz="0 0 -700mm"', r"line 10: `xyz` .*'-700mm'.*no units: m"),
    "commas": ('xyz="0 0 -0.7"', 'xyz="0,0,-0.7"', "separated by blanks"),
    "two numbers": ('xyz="0 0 -0.7"', 'xyz="0 -0.7"', "must be 3 numbers, got '0 -0.7'"),
    "not finite": ('xyz="0 0 -0.7"', 'xyz="0 0 nan"', "'nan', which is not a finite number"),
    "too large": ('xyz="0 0 -0.7"', 'xyz="0 0 1e308"', r"line 10: .*'1e308', which is beyond ±1e"),
    "large axis": ('<axis xyz="0 1 0"/></joint>', '<axis xyz="0 1e308 1"/></joint>', "beyond ±1e"),
    "dynamics": (KNEE, f'{KNEE}<dynamics damping="-1"/>', "neither may be negative"),
    "wide": ('"continuous">', '"planar"><dynamics damping="1"/>', "is planar and has <dynamics>"),
}  # fmt: skip


def test_an_axis_of_any_length_has_a_direction(tmp_path: Path) -> None:
    text = DOUBLE.replace('<axis xyz="0 1 0"/></joint>', '<axis xyz="0 -1e-200 0"/></joint>')
    assert text != DOUBLE
    one, other = (System.from_urdf(write(tmp_path, item)) for item in (DOUBLE, text))
    assert other.block(outputs=[]).states == one.block(outputs=[]).states


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_reported_by_line(tmp_path: Path, case: str) -> None:
    old, new, message = WRONG[case]
    assert old in DOUBLE
    with pytest.raises(DiagramError, match=message):
        System.from_urdf(write(tmp_path, DOUBLE.replace(old, new)))


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = DOUBLE.replace('<mass value="2"/>', "").replace('"continuous"', '"hinge"')
    with pytest.raises(DiagramError) as caught:
        System.from_urdf(write(tmp_path, text))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('xyz="0 0 -0.7"', 'xyz="0 0 -700"', "line 10: .*are these mm"),
        ('xyz="0 0 -0.7"', 'rpy="0 0 90"', "line 10: .*are these degrees"),
        ('upper="2.5"', 'upper="140"', "line 11: .*are these degrees"),
        ('ixx="0.05" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.02"',
         'ixx="5e4" ixy="0" ixz="0" iyy="6e4" iyz="0" izz="2e4"', "line 4: .*kg mm²"),
    ],
)  # fmt: skip
def test_numbers_that_look_like_other_units_are_warned_of(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.warns(BiellaWarning, match=message):
        System.from_urdf(write(tmp_path, DOUBLE.replace(old, new)))


@pytest.mark.parametrize("number", ["1e308", "-1e308", "1e999", "1e-320", "1_0", "0x1", ""])
def test_numbers_without_measure_are_reported(tmp_path: Path, number: str) -> None:
    with pytest.raises(DiagramError, match="line 4: "):
        System.from_urdf(write(tmp_path, DOUBLE.replace('ixx="0.05"', f'ixx="{number}"')))


def test_inertias_that_no_body_has_can_be_allowed(tmp_path: Path) -> None:
    path = write(tmp_path, DOUBLE.replace('iyy="0.06"', 'iyy="0.08"'))
    assert System.from_urdf(path, allow_nonphysical=True).bodies[0].inertia[1, 1] == 0.08
