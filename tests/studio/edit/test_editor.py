"""Changes of a diagram in its file: exactly what was asked for, and nothing else."""

import difflib
import os
import random
import stat
import textwrap

import numpy as np
import pytest

pytest.importorskip("libcst")

from biella.cli._load import load_diagram
from biella.studio.edit._editor import Editor, list_palette
from biella.studio.edit._rewrite import EditError
from biella.studio.edit._structure import read_structure

from .files import LOOP, SHAPES, open_editor, write


def changed_lines(before, after):
    """Return the lines that are gone and those that are new."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    gone = [line[2:].strip() for line in lines if line.startswith("- ")]
    return gone, [line[2:].strip() for line in lines if line.startswith("+ ")]


def edit(file, **request):
    """Change a file; return the lines that are gone and those that are new."""
    before = file.read_text()
    open_editor(file).edit(request)
    return changed_lines(before, file.read_text())


@pytest.fixture
def loop(tmp_path):
    return write(tmp_path, LOOP)


def thin(cases, keep):
    """Mark all cases but the first as slow: parsing a file takes a quarter of a second."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases[keep:]]
    return [*cases[:keep], *(pytest.param(*row, marks=pytest.mark.slow) for row in rows)]


SETS = [
    ("p.k", 0.8, 'p = d.add( Gain( 0.4 ), "p", u=error )', "0.4", "0.8"),
    ("drive.upper", 1e-7, "upper=2.0,", "2.0", "1e-07"),
    ("drive.lower", -7.0, "-2,  # lowest", "-2", "-7"),
    ("drive.lower", 7.5e-3, "-2,  # lowest", "-2", "0.0075"),
    ("plant.initial", 0.25, "plant = Integrator(initial = -0.5)", "-0.5", "0.25"),
    ("push", 2.0, 'push = d.input("push", default=0.5)', "0.5", "2.0"),
    ("step.at", 3.0, "d.add(Jump(at=0.1))", "0.1", "3.0"),
    ("step.to", 4.0, "d.add(Jump(at=0.1))", "at=0.1", "at=0.1, to=4.0"),
    ("double.k", -1.5, None, "Gain(1.0)", "Gain(-1.5)"),
    ("pushed.k", 1e300, None, "Gain(k=1.0)", "Gain(k=1e+300)"),
]


@pytest.mark.parametrize(("path", "value", "line", "old", "new"), thin(SETS, 1))
def test_a_number_is_changed_in_its_place(loop, path, value, line, old, new):
    if path == "drive.lower" and value > 0:
        value = -value
        new = f"-{new}"
    (gone,), (came,) = edit(loop, kind="set", path=path, value=value)
    assert line is None or gone == line
    assert came == gone.replace(old, new, 1)
    values = read_structure(load_diagram(loop)).values
    stored = values[path][1]
    assert (stored == repr(value).encode()) or np.frombuffer(stored)[0] == value


@pytest.mark.parametrize(
    ("path", "reason"),
    thin(
        [
            ("watched.k", "it is not a plain number: `GAIN`"),
            ("nested.k", "it is not a plain number: `2 * 0.5`"),
        ],
        1,
    ),
)
def test_a_computed_number_is_not_changed(loop, path, reason):
    editor, before = open_editor(loop), loop.read_bytes()
    assert editor.describe()["parameters"][path] == reason
    with pytest.raises(EditError, match=r"cannot be changed from here: it is not a plain"):
        editor.edit({"kind": "set", "path": path, "value": 1.0})
    assert loop.read_bytes() == before


def test_a_matrix_keeps_its_brackets_and_the_numbers_that_stay(tmp_path):
    path = write(tmp_path, SHAPES)
    gone, came = edit(path, kind="set", path="ss.A", value=[[-1.0, 0.5], [0.0, -3.0]])
    assert came == [gone[0].replace("-2]]", "-3]]")]


RENAMES = [
    ("p", "gain", ['p = d.add( Gain( 0.4 ), "gain", u=error )']),
    ("drive", "motor", ["name='motor',"]),
    ("ref", "wanted", None),
    ("pushed", "result", None),
    ("step", "jump", ['d.add(Jump(at=0.1), "jump")']),
    ("push", "force", ['force = d.input("force", default=0.5)'.replace("force =", "push =")]),
    ("plant", "x", ['d.add(plant, "x", inputs=drive)']),
]


@pytest.mark.parametrize(("old", "new", "came"), thin(RENAMES, 1))
def test_a_block_is_renamed_with_its_wires(loop, old, new, came):
    before = read_structure(load_diagram(loop))
    _, found = edit(loop, kind="rename", path=old, name=new)
    assert came is None or found == came
    after = read_structure(load_diagram(loop))

    def back(path):
        return f"{old}.{path.removeprefix(f'{new}.')}" if path.startswith(f"{new}.") else path

    assert {back(a): back(b) for a, b in after.wires.items()} == before.wires
    assert new in after.types and old not in after.types


@pytest.mark.parametrize("name", thin(["", "1a", "a.b", "ref", 'a"', "ä", None, "x\n"], 1))
def test_a_bad_name_is_refused(loop, name):
    before = loop.read_bytes()
    with pytest.raises(EditError, match=r"cannot be a name|already used"):
        open_editor(loop).edit({"kind": "rename", "path": "p", "name": name})
    assert loop.read_bytes() == before


@pytest.mark.parametrize(
    ("path", "gone", "came"),
    thin(
        [
            (
                "p",
                ['p = d.add( Gain( 0.4 ), "p", u=error )', 'inputs={"u": p},'],
                ["inputs={},"],
            ),
            (
                "plant",
                [
                    "plant = Integrator(initial = -0.5)",
                    'd.add(plant, "plant", inputs=drive)',
                    'd.connect(plant, error["u2"])',
                    'd.output("answer", plant)',
                ],
                [],
            ),
            ("pushed", None, None),
            ("step", ["d.add(Jump(at=0.1))"], []),
            ("double", None, ['d.connect("ref.y", d.add(Gain(GAIN), "watched"))']),
            ("watched", None, ['d.connect("ref.y", d.add(Gain(1.0), "double"))']),
            ("nested", None, ['d.add(Gain(k=1.0), "pushed")']),
        ],
        1,
    ),
)
def test_a_block_is_deleted_with_its_connections(loop, path, gone, came):
    before = read_structure(load_diagram(loop))
    if path == "pushed":
        with pytest.raises(EditError, match="`nested` is created in the same statement, line"):
            edit(loop, kind="delete", path=path)
        return
    found = edit(loop, kind="delete", path=path)
    assert gone is None or found[0] == gone
    assert came is None or found[1] == came
    after = read_structure(load_diagram(loop))
    assert before.types.keys() - after.types.keys() == {path}
    assert not [w for w in after.wires.items() if w[0].startswith(f"{path}.")]
    for comment in ("# Settings.", "# The controller.", "# a millisecond", "# lowest", "# kept"):
        assert comment in loop.read_text()


@pytest.mark.slow
def test_the_comment_above_a_deleted_line_stays(loop):
    edit(loop, kind="delete", path="error")
    assert "# The controller.\n    p = d.add(" in loop.read_text()


@pytest.mark.slow
def test_connections_are_added_and_removed(loop):
    with pytest.raises(EditError, match=r"connected already, to `error\.y`: disconnect it first"):
        edit(loop, kind="connect", source="ref", target="p")
    gone, came = edit(loop, kind="disconnect", target="p.u")
    assert came == ['p = d.add( Gain( 0.4 ), "p" )'] and len(gone) == 1
    gone, came = edit(loop, kind="connect", source="ref", target="p")
    assert (gone, came) == ([], ['d.connect("ref.y", "p.u")'])
    assert loop.read_text().endswith('    d.connect("ref.y", "p.u")\n    return d\n')
    gone, came = edit(loop, kind="disconnect", target="p")
    assert (gone, came) == (['d.connect("ref.y", "p.u")'], [])
    assert edit(loop, kind="disconnect", target="drive.u")[1] == ["inputs={},"]
    assert edit(loop, kind="disconnect", target="plant")[1] == ['d.add(plant, "plant")']
    assert edit(loop, kind="disconnect", target="error.u2") == (
        ['d.connect(plant, error["u2"])'],
        [],
    )
    with pytest.raises(EditError, match="is not connected"):
        edit(loop, kind="disconnect", target="error.u2")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    thin(
        [
            ("nobody", "p", "there is no block `nobody`"),
            ("p", "error.u9", "no input `u9`"),
            ("error.u1", "step", "no output `u1`"),
            (3, "p", "named by a path"),
        ],
        1,
    ),
)
def test_ends_that_do_not_exist_are_refused(loop, source, target, message):
    with pytest.raises(EditError, match=message):
        open_editor(loop).edit({"kind": "connect", "source": source, "target": target})


def test_a_block_is_added_with_its_import(loop):
    gone, came = edit(loop, kind="add", type="Gain", name="new", arguments={"k": 2.5})
    assert (gone, came) == ([], ['d.add(Gain(k=2.5), "new")'])
    gone, came = edit(loop, kind="add", type="Step", name="other", arguments={"at": 1})
    assert came == ['d.add(Jump(at=1), "other")']
    gone, came = edit(loop, kind="add", type="PID", name="c", arguments={"kp": 2.0, "ki": 1.0})
    assert gone == ["from biella.blocks import Gain, Integrator, Saturation, Sine, Sum"]
    assert came[0] == "from biella.blocks import Gain, Integrator, PID, Saturation, Sine, Sum"
    assert open_editor(loop).describe()["blocks"]["c"] == ""


@pytest.mark.parametrize(
    ("request_", "message"),
    thin(
        [
            ({"type": "Gian", "name": "x"}, "no block 'Gian' to add. Did you mean"),
            ({"type": "Gain", "name": "p"}, "already used"),
            ({"type": "Gain", "name": "x", "arguments": {"q": 1.0}}, "Gain: .*unexpected keyword"),
            ({"type": "Gain", "name": "x", "arguments": [1]}, "numbers, texts and lists"),
            (
                {"type": "Gain", "name": "x", "arguments": {"k": {"a": 1}}},
                "numbers, texts and lists",
            ),
            ({"type": "Gain", "name": "x", "within": "nowhere."}, "there is no diagram 'nowhere.'"),
            ({"type": "NativeBlock", "name": "x"}, "no block 'NativeBlock'"),
        ],
        1,
    ),
)
def test_what_cannot_be_added_is_refused(loop, request_, message):
    before = loop.read_bytes()
    with pytest.raises(EditError, match=message):
        open_editor(loop).edit({"kind": "add", **request_})
    assert loop.read_bytes() == before


@pytest.mark.slow
def test_texts_of_arguments_are_quoted(loop):
    came = edit(
        loop,
        kind="add",
        type="Expression",
        name="e",
        arguments={"formula": "sin(u)", "inputs": ["u"]},
    )[1]
    assert any('formula="sin(u)"' in line for line in came)


def test_code_that_is_not_plain_has_a_reason(tmp_path):
    path = write(tmp_path, SHAPES)
    found = open_editor(path).describe()
    blocks, parameters = found["blocks"], found["parameters"]
    elsewhere = "it is not created by an add(…) with a written name in the body of diagram()"
    expected = {
        "loop0": elsewhere, "helped": elsewhere, "made inside.g": elsewhere,
        "in for": "in a `for` loop, line", "in with": "in a `with`, line",
        "in list": "in a comprehension", "in lambda": "in a `lambda`",
        "in if": "in several places", "one": "on a line with several statements",
    }  # fmt: skip
    for name, reason in expected.items():
        assert reason in blocks[name], name
    for name in ("made", "variable", "computed", "aliased", "written inside.g", "ss", "again"):
        assert blocks[name] == "", name
    assert parameters["made.k"] == "it is made by `make_gain(…)`, not by `Gain(…)`"
    assert parameters["unpacked.k"] == "its arguments are unpacked from a variable"
    assert parameters["variable.k"] == "it is not a plain number: `k`"
    assert parameters["computed.k"] == "it is not a plain number: `1.0 + 1.0`"
    for name in ("aliased.k", "written inside.g.k", "written inside.u", "ss.A", "state_space.A"):
        assert parameters[name] == "", name
    assert found["diagrams"] == ["", "written inside."]


@pytest.mark.slow
def test_subsystems_in_the_same_function_are_changed(tmp_path):
    path = write(tmp_path, SHAPES)
    assert edit(path, kind="set", path="written inside.g.k", value=9.0)[1] == [
        'w.output("y", w.add(Gain(9.0), "g", u=w.input("u", default=1.0)))'
    ]
    edit(path, kind="rename", path="written inside", name="sub")
    _, came = edit(path, kind="add", type="Gain", name="h", within="sub.", arguments={"k": 1.0})
    assert came == ['w.add(Gain(k=1.0), "h")']
    assert edit(path, kind="connect", source="sub.g", target="sub.h")[1] == [
        'w.connect("g.y", "h.u")'
    ]
    with pytest.raises(EditError, match="same diagram"):
        edit(path, kind="connect", source="sub.g", target="ss")
    with pytest.raises(EditError, match="is a subsystem"):
        edit(path, kind="delete", path="sub")


@pytest.mark.parametrize("name", thin(["chained", "again", "helped", "in if", "ref"], 1))
def test_what_is_used_otherwise_is_not_deleted(tmp_path, name):
    path = write(tmp_path, SHAPES)
    before = path.read_bytes()
    with pytest.raises(EditError):
        edit(path, kind="delete", path=name)
    assert path.read_bytes() == before


def test_a_change_with_more_effects_than_asked_for_is_refused(tmp_path):
    text = """
        from biella import Diagram
        from biella.blocks import Gain

        def diagram():
            d = Diagram("x")
            a = d.add(Gain(2.0), "a", u=d.input("u"))
            d.add(Gain(a.parameters[0].value * 2), "b", u=a)
            if "a" in d:
                d.output("y", a)
            return d
    """
    path = write(tmp_path, text)
    before = path.read_bytes()
    with pytest.raises(EditError, match=r"more than asked for would differ: `b\.k`"):
        edit(path, kind="set", path="a.k", value=3.0)
    with pytest.raises(EditError, match=r"more than asked for would differ: `y`"):
        edit(path, kind="rename", path="a", name="c")
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.rglob("*rig*") if p.name != "rig.py") in (
        [],
        sorted(p.name for p in (tmp_path / "__pycache__").glob("rig.*")),
    )


@pytest.mark.slow
def test_a_change_that_would_fail_is_refused(tmp_path):
    path = write(
        tmp_path,
        """
        from biella import Diagram
        from biella.blocks import Saturation

        def diagram():
            d = Diagram("x")
            d.add(Saturation(-1.0, 2.0), "s", u=d.input("u"))
            return d
        """,
    )
    before = path.read_bytes()
    with pytest.raises(EditError, match=r"would fail: `.*rig\.py`, line 6"):
        edit(path, kind="set", path="s.lower", value=5.0)
    assert path.read_bytes() == before


def test_a_file_that_was_changed_meanwhile_is_not_written(loop):
    editor = open_editor(loop)
    loop.write_text(loop.read_text() + "# mine\n")
    with pytest.raises(EditError, match="changed meanwhile"):
        editor.edit({"kind": "set", "path": "p.k", "value": 1.0})
    assert loop.read_text().endswith("# mine\n") and "Gain( 0.4 )" in loop.read_text()


@pytest.mark.slow
def test_changes_are_undone_in_turn(loop):
    texts = [loop.read_bytes()]
    editor = open_editor(loop)
    for request in (
        {"kind": "set", "path": "p.k", "value": 1.0},
        {"kind": "delete", "path": "step"},
    ):
        editor.edit(request)
        texts.append(loop.read_bytes())
        editor.take(texts[-1], load_diagram(loop))
    assert editor.undo == "step deleted"
    for text in texts[-2::-1]:
        editor.edit({"kind": "undo"})
        assert loop.read_bytes() == text
        editor.take(text, load_diagram(loop))
    with pytest.raises(EditError, match="no change to undo"):
        editor.edit({"kind": "undo"})


@pytest.mark.slow
def test_undo_does_not_take_away_what_the_user_wrote(loop):
    editor = open_editor(loop)
    editor.edit({"kind": "set", "path": "p.k", "value": 1.0})
    loop.write_text(loop.read_text() + "# mine\n")
    with pytest.raises(EditError, match="changed meanwhile"):
        editor.edit({"kind": "undo"})
    editor.take(loop.read_bytes(), load_diagram(loop))
    assert editor.undo == "" and loop.read_text().endswith("# mine\n")


@pytest.mark.skipif(os.name == "nt", reason="permissions and links of POSIX")
def test_permissions_and_links_stay(loop, tmp_path):
    loop.chmod(0o754)
    link = tmp_path / "link.py"
    link.symlink_to(loop)
    open_editor(link).edit({"kind": "set", "path": "p.k", "value": 1.0})
    assert link.is_symlink() and stat.S_IMODE(loop.stat().st_mode) == 0o754
    assert "Gain( 1.0 )" in loop.read_text()


@pytest.mark.parametrize("newline", thin(["\n", "\r\n"], 1))
@pytest.mark.parametrize("encoding", thin(["utf-8", "utf-8-sig", "latin-1"], 1))
def test_bytes_of_the_file_stay(tmp_path, newline, encoding):
    text = f"# -*- coding: {encoding} -*-\n# größer\n" + textwrap.dedent(LOOP)
    path = tmp_path / "rig.py"
    path.write_bytes(text.replace("\n", newline).encode(encoding))
    before = path.read_bytes()
    open_editor(path).edit({"kind": "set", "path": "p.k", "value": 0.8})
    assert path.read_bytes() == before.replace(b"0.4", b"0.8")
    open_editor(path).edit(
        {"kind": "connect", "source": "ref", "target": "step"}
    ) if False else None


@pytest.mark.slow
def test_files_that_cannot_be_changed_say_why(tmp_path):
    head = "from biella import Diagram\n"
    for body, reason in (
        ("diagram = lambda: Diagram('x')\n", "no plain `def diagram():`"),
        ("def diagram():\n    return Diagram('x')\n", "only `return` of a variable"),
        (
            "def f():\n    return Diagram('x')\ndef diagram():\n    d = f()\n    return d\n",
            "made once",
        ),
        (
            "from functools import cache\n\n@cache\ndef diagram():\n    return Diagram()\n",
            "decorator",
        ),
    ):
        path = tmp_path / "rig.py"
        path.write_text(head + body)
        editor = open_editor(path)
        assert reason in editor.describe()["reason"]
        with pytest.raises(EditError, match="cannot be changed from here"):
            editor.edit({"kind": "add", "type": "Gain", "name": "g"})
    editor = Editor(path)
    editor.take(b"", None)
    assert "has a problem" in editor.describe()["reason"]


@pytest.mark.parametrize(
    ("request_", "message"),
    thin(
        [
            ({}, "`kind` is one of set, rename"),
            ({"kind": "set", "path": "p.k", "value": "1"}, "a number or a list"),
            ({"kind": "set", "path": "p.k", "value": [1.0]}, "has the shape"),
            ({"kind": "set", "path": "p.k", "value": 10**400}, "too large"),
            ({"kind": "set", "path": "p.k", "value": float("inf")}, "is not finite"),
            ({"kind": "set", "path": "p.q", "value": 1}, "no parameter 'p.q'"),
            ({"kind": "rename", "path": 5, "name": "x"}, "no block 5"),
        ],
        1,
    ),
)
def test_wrong_requests_are_refused(loop, request_, message):
    with pytest.raises(EditError, match=message):
        open_editor(loop).edit(request_)


def test_the_palette_has_blocks_with_their_arguments():
    found = {item["type"]: item for item in list_palette()}
    assert found["Gain"]["arguments"][0]["name"] == "k" and found["Gain"]["doc"]
    assert "NativeBlock" not in found and len(found) > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_changes_do_what_was_asked_and_nothing_else(tmp_path, seed):
    """An oracle of its own: parameters and connections by simple rules, after each change."""
    draw = random.Random(seed)
    path = write(tmp_path, draw.choice([LOOP, SHAPES]))
    comments = [line.partition("#")[2] for line in path.read_text().splitlines() if "#" in line]
    written = 0
    for number in range(12):
        editor = open_editor(path)
        before, told = read_structure(load_diagram(path)), editor.describe()
        kind = draw.choice(["set", "set", "rename", "delete", "connect", "disconnect", "add"])
        block = draw.choice(sorted(told["blocks"]))
        request = {"kind": kind, "path": block, "name": f"n{number}"}
        if kind == "set":
            names = [name for name, shape in before.values.items() if shape[0] == ()]
            request["path"] = draw.choice(names)
            request["value"] = draw.choice([1.0, -2.5, 1e-9, 4096.0])
        elif kind == "connect":
            request |= {"source": block, "target": draw.choice(sorted(told["blocks"]))}
        elif kind == "disconnect":
            request["target"] = draw.choice(sorted(before.wires) or ["none"])
        elif kind == "add":
            request |= {"type": "Gain", "arguments": {"k": 2.0}}
        text = path.read_bytes()
        try:
            editor.edit(request)
        except EditError:
            assert path.read_bytes() == text
            continue
        written += 1
        after = read_structure(load_diagram(path))
        if kind == "set":
            assert told["parameters"][request["path"]] == ""
            changed = {k for k in after.values if after.values[k] != before.values[k]}
            assert changed <= {request["path"]} and after.wires == before.wires
        elif kind == "rename":
            assert len(after.types) == len(before.types) and len(after.wires) == len(before.wires)
        elif kind == "delete":
            assert set(before.types) - set(after.types) == {block}
            left = {k: v for k, v in before.wires.items() if k in after.wires}
            assert after.wires == left
        elif kind == "connect":
            (new,) = set(after.wires) - set(before.wires)
            assert new.startswith(f"{request['target']}.")
        elif kind == "disconnect":
            assert set(before.wires) - set(after.wires) == {request["target"]}
        else:
            assert set(after.types) - set(before.types) == {f"n{number}"}
        editor.edit({"kind": "undo"})
        assert path.read_bytes() == text
        path.write_bytes(text)
        open_editor(path).edit(request)
    assert written > 1
    now = path.read_text()
    if "def helper" not in now:
        own = [each for each in comments if "lowest" not in each]
        assert all(each in now for each in own if "odd" not in each and "millisecond" in each)
