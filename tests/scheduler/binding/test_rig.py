"""Bindings as text and tables: bad TOML, wrong structures, wrong names."""

from __future__ import annotations

import contextlib
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biella import Diagram
from biella.blocks import StateMachine
from biella.errors import BiellaError, BindingError
from biella.scheduler.binding._bind import check_binding, open_binding, read_binding

from .speed_loop import GOOD, diagram

pytestmark = pytest.mark.engine


def test_bad_toml_is_reported_with_its_line(check):
    with pytest.raises(
        BindingError, match=r"rig.toml` is not TOML: .*line 13.*'limits = -40, 40\]'"
    ):
        check(GOOD.replace("[-40, 40]", "-40, 40]"))
    with pytest.raises(BindingError, match=r"cannot read .*nowhere.toml`: No such file"):
        read_binding("nowhere.toml")


_WORDS = """
run devices blocks signals board driver inputs outputs receive send torque speed pid y unit
scale limits safe width device fmu clock timeout on_loss loopback udp replay can message dbc file
pid.y speed.y ref
"""


_KEYS = st.sampled_from(_WORDS.split())


_LEAVES = st.one_of(
    _KEYS,
    st.text(max_size=5),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.sampled_from(["board.torque", "board.torque[0]", "device:board", "N.m", "serial"]),
    st.lists(st.one_of(st.integers(-5, 5), _KEYS, st.floats()), max_size=3),
)


_TABLES = st.recursive(
    _LEAVES, lambda inner: st.dictionaries(_KEYS, inner, max_size=5), max_leaves=25
)


@pytest.mark.filterwarnings("ignore::biella.BiellaDeprecationWarning")
@given(st.dictionaries(_KEYS, _TABLES, max_size=5))
def test_any_structure_gives_problems_and_never_a_crash(table):
    with contextlib.suppress(BiellaError):
        check_binding(_DIAGRAM, table)


@pytest.mark.filterwarnings("ignore::biella.BiellaDeprecationWarning")
@given(st.data())
def test_a_good_binding_with_anything_in_one_place_never_crashes(data):
    table = tomllib.loads(GOOD)
    at = table
    while True:
        key = data.draw(st.sampled_from(sorted(at)))
        if not isinstance(at[key], dict) or not at[key] or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(_TABLES)
    found = check_binding(_DIAGRAM, table)
    if not found.problems:
        open_binding(_DIAGRAM, table).close()


_DIAGRAM = diagram()


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(text.encode(errors="surrogatepass"))
    with contextlib.suppress(BiellaError):
        check_binding(_DIAGRAM, path)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("port = /dev/ttyACM0", 'Text must be quoted: port = "/dev/ttyACM0"'),
        ("driver = “udp”", 'Text must be quoted: driver = "udp"'),
        ("double = True", "Use lower case: double = true"),
        ("timeout = 0,05", "The decimal separator is a point: timeout = 0.05"),
        ("timeout = 0,05  # s", "The decimal separator is a point: timeout = 0.05"),
        ("limits = [-40, 40", "A bracket before this line is not closed."),
        ('on_loss = "stop', "Is a quote missing?"),
        ("baud = 9600", "The table is defined twice: merge the two."),
        ("[devices.board]", "The table is defined twice: merge the two."),
        ("double", "Each line must be a [table] or one key = value."),
    ],
)
def test_bad_toml_is_reported_with_what_is_usually_behind_it(tmp_path, line, advice):
    file = tmp_path / "rig.toml"
    file.write_text(f"[devices.board]\nbaud = 115200\n{line}\nport = 'x'\n")
    with pytest.raises(BindingError, match="is not TOML") as caught:
        read_binding(file)
    assert advice in str(caught.value)


def test_a_binding_that_is_not_there(tmp_path):
    with pytest.raises(
        BindingError,
        match=r"No such file.*rig.toml --template BLOCK` writes "
        "a template",
    ):
        read_binding(tmp_path / "rig.toml")
    with pytest.raises(BindingError, match=r"cannot read .*: Is a directory\.$"):
        read_binding(tmp_path)


def machine_diagram() -> Diagram:
    machine = StateMachine()
    machine.transition(machine.state("off"), machine.state("on"), after=1)
    d = Diagram("room", step=1e-3)
    d.add(machine, "heater")
    return d


NAMED = """
[devices.board]
driver = "loopback"
[devices.board.receive.echo]
[devices.board.send.mode]
names = ["off", "on"]
limits = ["off", "on"]
safe = "off"
[signals]
"heater.state" = "board.mode"
"""


def test_values_of_enumerations_are_given_by_name(tmp_path):
    (tmp_path / "rig.toml").write_text(NAMED)
    found = check_binding(machine_diagram(), tmp_path / "rig.toml")
    assert found.problems == []
    channel = found.binding.devices["board"].send["mode"]
    assert channel.safe == (1.0,) and (channel.low, channel.high) == (1.0, 2.0)
    assert channel.names == ("off", "on")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('safe = "off"', 'safe = "of"', "Did you mean `off`? Names: off, on."),
        ('names = ["off", "on"]\n', "", 'list all of them: names = ["off", "on", …]'),
        ('names = ["off", "on"]', 'names = ["off", "off"]', "names: must be the names of all"),
        ('names = ["off", "on"]', "names = []", "names: must be the names of all"),
        ('names = ["off", "on"]', 'names = "off"', "names: must be the names of all"),
        ('["off", "on"]\nsafe = "off"', '["on", "off"]\nsafe = "off"', "limits: are reversed"),
        (
            '["off", "on"]\nlimits',
            '["off", "on", "x"]\nlimits',
            "of off, on, x, but `heater.state`",
        ),
    ],
)
def test_names_that_do_not_fit_are_reported(tmp_path, old, new, message):
    assert old in NAMED
    (tmp_path / "rig.toml").write_text(NAMED.replace(old, new))
    problems = check_binding(machine_diagram(), tmp_path / "rig.toml").problems
    assert message in "\n".join(problems)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("safe = true", "safe: must be a number, got true"),
        ("safe = [1, 2]", "safe: must be a number, got"),
        ("width = 3\nsafe = [1, 2]", "safe: must be a number or a list of 3, got"),
    ],
)
def test_safe_values_that_do_not_fit_are_reported(tmp_path, new, message):
    (tmp_path / "rig.toml").write_text(NAMED.replace('safe = "off"', new))
    problems = check_binding(machine_diagram(), tmp_path / "rig.toml").problems
    assert message in "\n".join(problems)
