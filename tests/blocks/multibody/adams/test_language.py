"""Which commands are read, ignored and refused, and their abbreviations."""

import pytest

from biella import DiagramError
from biella.blocks.multibody.adams._commands import (
    BRANCHES,
    IGNORED,
    LOOKS,
    PASSED,
    READ,
    REFUSED,
)
from biella.blocks.multibody.adams._file import Command, Given, Value
from biella.blocks.multibody.adams._language import find_command, name_parameters


def command(text, *parameters):
    words = [Value("word", word, "f, line 1") for word in text.split()]
    value = Value("word", "1", "f, line 2")
    return Command("f, line 1", words, [Given(name, (value,), "f, line 2") for name in parameters])


def test_every_command_is_found_by_its_words():
    tables = {"read": READ, "look": LOOKS, "ignore": IGNORED, "refuse": REFUSED, "branch": BRANCHES}
    for verdict, table in tables.items():
        for path in table:
            assert find_command(command(path)) == (verdict, path)
            assert find_command(command(path.upper())) == (verdict, path)
    assert set(PASSED) <= {*READ, "model modify"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("mar cre", ("read", "marker create")),
        ("PART CRE RIG NAM", ("read", "part create rigid_body name_and_position")),
        ("cons cre joi rev", ("read", "constraint create joint revolute")),
        ("forc mod dir sing", ("read", "force modify direct single_component_force")),
        ("def uni", ("read", "defaults units")),
        ("geom cre sha cyl", ("ignore", "geometry")),
        ("geometry create shape whatever_comes", ("ignore", "geometry")),
        ("data_element create spline", ("ignore", "data_element")),
        ("contact create", ("refuse", "contact")),
        ("part cre flex", ("refuse", "part create flexible_body")),
        ("for", ("refuse", "for")),
    ],
)
def test_abbreviations(given, found):
    assert find_command(command(given)) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("p cre", "`p` may mean panel, part, pause, plot, plot3d, plotcurve3d, plugin, point"),
        ("part create rig m", None),
        ("part create rigid_body", "is not complete: it goes on with initial_velocity, mass_prop"),
        ("constraint create joint s", "`s` after `constraint create joint` may mean screw, spher"),
        ("markr create", "no command `markr` that is known here. Did you mean `marker`"),
        ("constraint create joint revolut_e", "after `constraint create joint`"),
        ("marker create now", "`now` follows the command `marker create`"),
        ("qq", "there is no command `qq`"),
    ],
)
def test_words_that_mean_nothing(given, message):
    if message is None:
        assert find_command(command(given))[0] == "read"
        return
    with pytest.raises(DiagramError, match=message):
        find_command(command(given))


def test_parameters():
    found = name_parameters(
        "marker create", command("marker create", "marker", "loc", "adams_id", "comm")
    )
    assert list(found) == ["marker_name", "location"]
    with pytest.raises(DiagramError) as caught:
        name_parameters(
            "constraint create joint revolute",
            command("constraint create joint revolute", "joint_name", "i", "ratio", "joint"),
        )
    assert caught.value.problems[0].startswith("f, line 2: `i` may mean i_marker_name, i_part_name")
    assert "is `ratio`" in caught.value.problems[1]
    assert "`joint_name` is given already: see line 2" in caught.value.problems[2]
