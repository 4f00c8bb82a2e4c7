"""Blocks and lines of cards."""

import pytest

from biella import DiagramError
from biella.blocks.multibody.cards._file import read_blocks, read_general, read_numbers
from biella.blocks.multibody.system._problems import Problems


def read(tmp_path, text, name="Force.s3d"):
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    problems = Problems()
    return read_blocks(tmp_path / name, problems), problems


def test_blanks_comments_and_order(tmp_path):
    text = (
        "NumDyn3D  ver. 7.0a\r\n! note\r\n\r\n  begin( 02 )\r\n  K =  1.D-2 \r\n ! more\r\n"
        "name=a = b ! c\r\nend(2)\r\nbegin(1)\r\nm=[\r\n1. 2\r\n3 4\r\n]\r\nend(1)\r\n"
    )
    blocks, problems = read(tmp_path, text)
    assert not problems.texts
    assert list(blocks) == ["2", "1"]
    assert blocks["2"].entries["name"].value == "a = b ! c"
    assert blocks["2"].entries["K"].place == "Force.s3d, line 5"
    assert blocks["2"].numbers("K", 1) == [0.01]
    assert blocks["1"].numbers("m", 4) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("K=1", "line 2: `K=1` stands outside of any block"),
        ("begin(1)\nK=1", r"line 2: block 1 has no `end\(1\)`"),
        ("begin(1)\nK\nend(1)", "line 3: a line is `key = value`, got `K`"),
        ("begin(1)\nK=1 ! one\nend(1)", "line 3: .* a comment needs a line of its own"),
        ("begin(x)\nend(x)", "line 2: the tag of a block is a whole number"),
        ("begin(constants)\nend(constants)", "line 2: the tag of a block is a whole number"),
        ("end(1)", r"line 2: `end\(1\)`: no block is open"),
        ("begin(1)\nK=1\nK=2\nend(1)", "line 4: `K` is there already: see Force.s3d, line 3"),
        ("begin(1)\nm=[\n1 2", "line 3: `m=\\[` is not closed"),
    ],
)
def test_bad_lines(tmp_path, body, message):
    _, problems = read(tmp_path, "NumDyn3D ver. 7.0a\n" + body)
    with pytest.raises(DiagramError, match=message):
        problems.stop()


@pytest.mark.parametrize("number", ["nan", "inf", "1e999", "1_0", "0x1", "1,5", ""])
def test_bad_numbers(tmp_path, number):
    blocks, problems = read(tmp_path, f"NumDyn3D ver. 7.0a\nbegin(1)\nK={number}\nend(1)")
    assert read_numbers(blocks["1"].entries["K"], 1, problems) is None
    assert problems.texts[0].startswith("Force.s3d, line 3: `K` ")


def test_general(tmp_path):
    path = tmp_path / "General.s3d"
    path.write_text("My title\nNB 2\nTI 0.\nTE 1.D1\nST 10\nPP N\nID | NAME\n2 | b b\n1 | a\n")
    problems = Problems()
    general = read_general(path, problems)
    assert not problems.texts and general is not None
    assert (general.title, general.names, general.end) == ("My title", ("a", "b b"), 10.0)
    path.write_text("My title\nNB 2\nTI 0.\nTE 1\nST 10\n1 | a\n1 | b\nXX 3\n")
    assert read_general(path, problems) is None
    assert len(problems.texts) == 3
