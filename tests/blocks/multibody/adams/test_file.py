"""Commands, words and values of command files."""

import pytest

from biella.blocks.multibody.adams._file import read_commands
from biella.blocks.multibody.system._problems import Problems


def read(tmp_path, data):
    path = tmp_path / "model.cmd"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    problems = Problems()
    return list(read_commands(path, problems)), problems.texts


def flatten(command):
    given = {one.name: [(v.kind, v.text) for v in one.values] for one in command.given}
    return [word.text for word in command.words], given


def test_words_parameters_and_values(tmp_path):
    text = (
        "! a comment with 'a quote\n\n"
        "marker create  &  ! why\n"
        '   marker_name = .m."my part".a  &\n'
        "!  inside a command\n"
        "\n"
        "   Location= 1.0,-2E-03 , (.m.DV_1 * (2 + 1))  &\n"
        '   comments = "it\'s ! & here", \'say "x"\'\n'
        "view erase\r\n"
        "\n"
    )
    commands, problems = read(tmp_path, text)
    assert not problems
    assert [command.place for command in commands] == ["model.cmd, line 3", "model.cmd, line 9"]
    assert flatten(commands[0]) == (
        ["marker", "create"],
        {
            "marker_name": [("word", '.m."my part".a')],
            "location": [
                ("word", "1.0"), ("word", "-2E-03"), ("expression", ".m.DV_1 * (2 + 1)"),
            ],
            "comments": [("text", "it's ! & here"), ("text", 'say "x"')],
        },
    )  # fmt: skip
    assert [one.place for one in commands[0].given] == [f"model.cmd, line {n}" for n in (4, 7, 8)]


DAMAGE = {
    "cut within a command": ("model create  &\n", 1, "nothing follows the last `&`. Is the file"),
    "cut within a quote": ('a b\nx y=1 function = "STEP(', 2, "a quote is not closed"),
    "no value": ("a b x =", 1, "`x =` has no value"),
    "no value between commas": ("a b x = 1,,2", 1, "`,` is no value of `x`"),
    "missing comma": ("a b location = 1 2, 3", 1, "`2` follows the parameter `location`"),
    "missing ampersand": ("a b x = 1 &\n y = 2\nz = 3", 3, "a command starts with words"),
    "too many ampersands": ("a b x = 1 &\nc d y = 2", 2, "`c` follows the parameter `x`"),
    "open parenthesis": ("a b x = (1 + 2", 1, "`(` is no value of `x`"),
    "crossed parentheses": ("a b x = ({1)}", 1, "`(` is no value of `x`"),
    "stray text": ("a 'b'", 1, "`'` is not expected here"),
    "NUL": (b"a b\nc \0 d", 2, "there is a NUL character: this is no text file"),
    "not UTF-8": (b"! caf\xe9 is a comment\nmarker \xff create", 2, "bytes that are not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_named_with_its_line(tmp_path, case):
    data, line, message = DAMAGE[case]
    _, problems = read(tmp_path, data)
    assert len(problems) == 1
    assert problems[0].startswith(f"model.cmd, line {line}: ") and message in problems[0]


def test_comments_in_another_encoding_do_no_harm(tmp_path):
    commands, problems = read(
        tmp_path, b"\xef\xbb\xbf! BOM\n! Auf\xfcllung\nview erase ! \xe9t\xe9\n"
    )
    assert len(commands) == 1 and not problems


def test_files_that_cannot_be_read(tmp_path):
    problems = Problems()
    assert not list(read_commands(tmp_path / "none.cmd", problems))
    assert not list(read_commands(tmp_path, problems))
    assert "none.cmd: cannot be read (No such file" in problems.texts[0]
    assert "cannot be read" in problems.texts[1]


def test_long_files(tmp_path, monkeypatch):
    monkeypatch.setattr("biella.blocks.multibody.adams._file.LONGEST", 10)
    assert "too long: at most 10 bytes" in read(tmp_path, "view erase all")[1][0]
