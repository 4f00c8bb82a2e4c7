"""URDF files of tests."""

from __future__ import annotations

from pathlib import Path


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    return path


DOUBLE = """<robot name="double pendulum">
  <link name="base"/>
  <link name="a"><inertial><origin xyz="0 0 -0.3"/><mass value="2"/>
    <inertia ixx="0.05" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.02"/></inertial></link>
  <link name="b"><inertial><origin xyz="0 0 -0.2"/><mass value="1.5"/>
    <inertia ixx="0.03" ixy="0" ixz="0" iyy="0.04" iyz="0" izz="0.01"/></inertial></link>
  <joint name="top" type="continuous"><parent link="base"/><child link="a"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="knee" type="revolute"><parent link="a"/><child link="b"/>
    <origin xyz="0 0 -0.7"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2.5" effort="1" velocity="1"/></joint>
</robot>"""
