"""FMUs connected by their terminals."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from biella import Diagram, DiagramError, Fmu, FmuError, simulate
from biella.blocks import Constant, Gain

from .shafts import CONTROLLER, PLANT, controller, plant

pytestmark = pytest.mark.engine


def replace(path, target, *pairs, name="terminalsAndIcons/terminalsAndIcons.xml"):
    """Copy an FMU with another text in one of its files."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as copy:
        for member in source.namelist():
            data = source.read(member)
            if member == name:
                for old, new in pairs:
                    assert old.encode() in data
                    data = data.replace(old.encode(), new.encode())
            copy.writestr(member, data)
    return target


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminals")
    made = {}
    for version in ("2.0", "3.0"):
        made["plant", version] = plant().export_fmu(
            folder / f"plant{version[0]}.fmu", terminals=PLANT, version=version
        )
        made["controller", version] = controller().export_fmu(
            folder / f"controller{version[0]}.fmu", terminals=CONTROLLER, version=version
        )
    return made


def both(first, second, **options):
    d = Diagram("both", step=1e-3)
    return d, d.add(Fmu(first, **options), name="p"), d.add(Fmu(second, **options), name="c")


@pytest.mark.parametrize("options", [{}, {"backend": "fmpy"}, {"isolate": True}])
@pytest.mark.parametrize("versions", [("2.0", "2.0"), ("3.0", "3.0"), ("2.0", "3.0")])
def test_terminals_give_the_wires_that_ports_give(files, versions, options):
    """Matched by the names of members, in both directions: bit for bit the same run."""
    names = files["plant", versions[0]], files["controller", versions[1]]
    d, p, c = both(*names, **options)
    d.connect(p.terminal("shaft"), c.terminal("shaft"))
    e, q, k = both(*names, **options)
    e.connect(q["angle"], k["measured"])
    e.connect(q["speed"], k["rate"])
    e.connect(k["drive"], q["torque"])
    one, two = simulate(d, 0.1), simulate(e, 0.1)
    for name in ("p.angle", "p.speed", "c.drive"):
        assert np.array_equal(one[name], two[name])
    assert one["c.drive"][-1] != 0.0


def test_an_unknown_terminal_is_named_with_those_that_there_are(files):
    d, p, _ = both(files["plant", "2.0"], files["controller", "2.0"])
    with pytest.raises(DiagramError, match=r"no terminal `shat`.*`shaft`.*Terminals: shaft"):
        p.terminal("shat")
    with pytest.raises(DiagramError, match="has no terminals: only FMUs may have them"):
        d.add(Constant(1.0), name="one").terminal("x")


def test_a_terminal_connects_to_terminals_only(files):
    d, p, _ = both(files["plant", "2.0"], files["controller", "2.0"])
    gain = d.add(Gain(1.0), name="gain")
    with pytest.raises(DiagramError, match="a terminal connects to terminals only"):
        d.connect(p.terminal("shaft"), gain)
    with pytest.raises(DiagramError, match="connect to itself"):
        d.connect(p.terminal("shaft"), p.terminal("shaft"))
    with pytest.raises(DiagramError, match="not in the diagram yet"):
        d.connect(p.terminal("shaft"), Fmu(files["controller", "2.0"]).terminal("shaft"))
    with pytest.raises(DiagramError, match="connect requires blocks, ports or names"):
        d.chain(p.terminal("shaft"), gain)
    assert not d.sources


def test_vectors_cross_versions_of_fmi(tmp_path):
    """Elements ``force[0]``, ``force[1]`` in FMI 2.0 match the array ``force`` of FMI 3.0."""

    def make(version, value=None):
        d = Diagram("vector", step=0.01)
        if value is None:
            gain = d.add(Gain([1.0, 1.0]), name="gain")
            d.connect(d.input("force", width=2), gain)
            d.output("seen", gain)
            terminals = {"flange": {"force": "force"}}
        else:
            d.output("pull", d.add(Constant(value), name="constant"))
            terminals = {"flange": {"force": "pull"}}
        path = tmp_path / f"{'giver' if value else 'taker'}{version[0]}.fmu"
        return d.export_fmu(path, version=version, terminals=terminals)

    for one, two in (("2.0", "3.0"), ("3.0", "2.0"), ("2.0", "2.0"), ("3.0", "3.0")):
        d, p, c = both(make(one, [3.0, 4.0]), make(two))
        d.connect(p.terminal("flange"), c.terminal("flange"))
        assert simulate(d, 0.02)["c.seen"][-1].tolist() == [3.0, 4.0]


def test_a_member_that_does_not_exist_is_named(files, tmp_path):
    path = replace(files["plant", "3.0"], tmp_path / "p.fmu", ('"angle"', '"angel"'))
    with pytest.raises(FmuError, match=r"`shaft` of p\.fmu has a member `angel`, which is no"):
        Fmu(path).terminal("shaft")


def test_nested_terminals_match_by_their_names(files, tmp_path):
    def nest(which, target):
        return replace(
            files[which, "3.0"],
            target,
            ('<Terminal name="shaft"', '<Terminal name="outer" matchingRule="bus">'
                                       '<Terminal name="shaft"'),
            ("</Terminal>", "</Terminal></Terminal>"),
        )  # fmt: skip

    d, p, c = both(nest("plant", tmp_path / "p.fmu"), nest("controller", tmp_path / "c.fmu"))
    d.connect(p.terminal("outer"), c.terminal("outer"))
    assert len(d.sources) == 3
    e, q, k = both(tmp_path / "p.fmu", tmp_path / "c.fmu")
    e.connect(q.terminal("outer.shaft"), k.terminal("outer.shaft"))
    assert len(e.sources) == 3


def test_a_stream_is_crossed(tmp_path):
    """What leaves one FMU enters the other: two values, one for each direction."""
    made = []
    for name, value in (("left", 1.0), ("right", 2.0)):
        d = Diagram(name, step=0.01)
        gain = d.add(Gain(1.0), name="gain")
        d.connect(d.input("h_in"), gain)
        d.output("seen", gain)
        d.output("h", d.add(Constant(value), name="constant"))
        path = d.export_fmu(
            tmp_path / f"whole {name}.fmu", version="3.0", terminals={"port": ["h", "h_in"]}
        )
        made.append(
            replace(
                path,
                tmp_path / f"{name}.fmu",
                (
                    '<TerminalMemberVariable variableName="h_in" memberName="h_in" '
                    'variableKind="signal" />',
                    "",
                ),
                (
                    '<TerminalMemberVariable variableName="h" memberName="h" '
                    'variableKind="signal" />',
                    '<TerminalStreamMemberVariable inStreamMemberName="h_in" '
                    'outStreamMemberName="h" inStreamVariableName="h_in" '
                    'outStreamVariableName="h"/>',
                ),
            )
        )
    d, p, c = both(*made)
    d.connect(p.terminal("port"), c.terminal("port"))
    result = simulate(d, 0.05)
    assert (result["p.seen"][-1], result["c.seen"][-1]) == (2.0, 1.0)
