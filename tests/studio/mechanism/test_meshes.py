"""Files of meshes: found next to the URDF, and nowhere else; sent to pages bit for bit."""

import struct

import pytest

from biella import BiellaError
from biella.blocks.multibody import System
from biella.studio.mechanism import _meshes as meshes

from ..client import open_studio, write_rig

pytestmark = pytest.mark.engine

STL = b"\0" * 80 + struct.pack("<I", 1) + struct.pack("<12fH", *range(12), 0)

ARM = """<robot name="arm"><link name="base"/>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    {visuals}</link>
  <joint name="pin" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""
VISUAL = '<visual><geometry><mesh filename="{}" scale="2 1 1"/></geometry></visual>'


@pytest.fixture
def package(tmp_path):
    """A package with a URDF file two folders deep, a package beside it, and files outside."""
    for path in (
        "work/arm/meshes/a.stl", "work/arm/urdf/b.obj", "work/other/c.dae", "work/arm/urdf/d.txt",
        "secret.stl", "work/plain/e.stl",
    ):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(STL)
    for name in ("arm", "other"):
        (tmp_path / "work" / name / "package.xml").write_text("<package/>")
    (tmp_path / "work/arm/meshes/link.stl").symlink_to(tmp_path / "secret.stl")
    return tmp_path


def read(package, *names):
    file = package / "work/arm/urdf/arm.urdf"
    file.write_text(ARM.format(visuals="".join(VISUAL.format(name) for name in names)))
    return System.from_urdf(file)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("b.obj", "work/arm/urdf/b.obj"),
        ("../meshes/a.stl", "work/arm/meshes/a.stl"),
        ("package://arm/meshes/a.stl", "work/arm/meshes/a.stl"),
        ("package://other/c.dae", "work/other/c.dae"),
        ("file://{here}/work/arm/meshes/a.stl", "work/arm/meshes/a.stl"),
        ("../meshes/%61.stl", None),  # only URLs are decoded
        ("package://arm/meshes/%61.stl", "work/arm/meshes/a.stl"),
        ("../../../secret.stl", None),
        ("package://arm/../../secret.stl", None),
        ("package://../secret.stl", None),
        ("package://plain/e.stl", None),
        ("file://{here}/secret.stl", None),
        ("{here}/secret.stl", None),
        ("../meshes/link.stl", None),  # a link that leads outside
        ("a\0b.stl", None),
        ("meshes", None),
        ("", None),
    ],
)
def test_files_are_found_in_the_folder_and_in_packages_only(package, name, found):
    (visual,) = read(package, "x.stl").visuals["arm"]
    visual = type(visual)(
        "mesh", visual.size, visual.position, visual.rotation, None,
        name.format(here=package), visual.source,
    )  # fmt: skip
    if found is None:
        with pytest.raises(BiellaError, match=r"is not a file in the folder of arm\.urdf"):
            meshes.find_mesh(visual)
    else:
        assert meshes.find_mesh(visual) == (package / found).resolve()


def test_other_formats_and_large_files_are_refused(package, monkeypatch):
    (visual,) = read(package, "d.txt").visuals["arm"]
    with pytest.raises(BiellaError, match=r"`d.txt` is not read: the formats are \.stl, \.obj"):
        meshes.find_mesh(visual)
    monkeypatch.setattr(meshes, "LARGEST", len(STL) - 1)
    (visual,) = read(package, "b.obj").visuals["arm"]
    with pytest.raises(BiellaError, match=r"`b.obj` is larger than 0 MB"):
        meshes.find_mesh(visual)
    with pytest.raises(BiellaError, match=r"`b.obj` is larger"):  # it has grown since
        meshes.read_mesh(package / "work/arm/urdf/b.obj")


def test_pages_get_the_files_and_what_is_missing_is_said(package):
    read(package, "b.obj", "../meshes/a.stl", "nowhere.stl", "b.obj")
    rig = f"""
    from biella import Diagram
    from biella.blocks.multibody import System

    def diagram():
        d = Diagram("arm", step=1e-3)
        d.add(System.from_urdf({str(package / "work/arm/urdf/arm.urdf")!r}).block(), name="plant")
        return d
    """
    with open_studio(write_rig(package, rig)) as (_, _, page):
        page.wait(lambda: "mechanisms" in page.events and "events" in page.events)
        (mechanism,) = page.events["mechanisms"]["list"]
        (arm,) = mechanism["bodies"]
        assert [visual["mesh"] for visual in arm["visuals"]] == [0, 1, 0]
        assert arm["visuals"][0]["size"] == [2.0, 1.0, 1.0]
        (event,) = page.events["events"]["list"]
        assert "a mesh is not drawn: `nowhere.stl` is not a file" in event["text"]
        page.do("mesh", mechanism="plant", number=1)
        page.wait(lambda: any(head[0] == 5 for head, _ in page.binary))
        head, content = next(message for message in page.binary if message[0][0] == 5)
        assert head == (5, 0, 1, len(STL), 1, 0) and content == STL
        assert "`number` is a whole number from 0 to 1" in page.refused(
            "mesh", mechanism="plant", number=2
        )
        assert "no mechanism" in page.refused("mesh", mechanism="x", number=0)
