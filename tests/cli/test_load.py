"""Loading the user's file, and telling its errors by line."""

import os
import sys

import pytest

from biella import BiellaError, Diagram, System
from biella.cli._load import load_diagram, load_model

HEAD = "from biella import Diagram, System\nfrom biella.blocks import Gain\n"


@pytest.fixture
def file(tmp_path):
    """Write a Python file."""

    def write(text, name="model.py"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else (HEAD + text).encode())
        return path

    return write


def test_a_diagram_is_made_by_a_function_or_is_there(file):
    assert load_diagram(file("def diagram(): return Diagram('made')")).name == "made"
    assert load_diagram(file("diagram = Diagram('there')")).name == "there"


def test_a_model_is_a_diagram_or_else_a_system(file):
    system = "def system(): return System('mechanism')\n"
    assert isinstance(load_model(file(system)), System)
    assert isinstance(load_model(file(system + "def diagram(): return Diagram('d')")), Diagram)


def test_a_file_that_changes_within_a_second_is_read_again(tmp_path, monkeypatch):
    """To the same length: its bytecode would still seem to fit."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "d.py"
    names = []
    for name in ("before", "behind"):
        path.write_text(f"from biella import Diagram\ndiagram = Diagram({name!r})\n")
        os.utime(path, (1e9, 1e9))
        names.append(load_diagram(path).name)
    assert names == ["before", "behind"]


def test_the_file_may_import_what_is_beside_it(file, tmp_path):
    (tmp_path / "beside_it.py").write_text("NAME = 'from beside'\n")
    before = list(sys.path)
    path = file("import beside_it\ndef diagram(): return Diagram(beside_it.NAME)")
    assert load_diagram(path).name == "from beside"
    assert sys.path == before
    del sys.modules["beside_it"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", r"does not define diagram\(\)"),
        ("def diagram(): return 3", r"diagram\(\) of .* returned 3, not a Diagram"),
        ("def diagram(:\n  pass", r"`model.py`, line 3: "),
        ("\nx = 1 / 0", r"line 4: ZeroDivisionError: division by zero"),
        ("def diagram():\n  d = Diagram()\n  return d.ad(3)", r"line 5: .*Did you mean `add`"),
        ("from biella.blocks import Gian", r"line 3: .*Did you mean `Gain`"),
        ("def diagram(): Gain(kk=3)", r"line 3: TypeError.*Did you mean `k`"),
        ("def diagram(): Diagram(step=-1)", r"line 3: the step must be a positive time"),
        (b"x = '\xff'", "model.py"),
        (b"x = 1\0", "model.py"),
    ],
)
def test_a_mistake_is_reported_by_its_line(file, text, message):
    with pytest.raises(BiellaError, match=message) as caught:
        load_diagram(file(text))
    assert "line None" not in str(caught.value)


def test_a_mistake_in_another_file_is_reported_by_the_line_that_led_there(file, tmp_path):
    (tmp_path / "helper_of_it.py").write_text("def make():\n    raise ValueError('deep')\n")
    with pytest.raises(BiellaError, match=r"model.py`, line 4: ValueError: deep"):
        load_diagram(file("import helper_of_it\ndef diagram(): helper_of_it.make()"))
    del sys.modules["helper_of_it"]


def test_what_is_no_file_is_said(tmp_path):
    with pytest.raises(BiellaError, match="is a folder: specify a Python file"):
        load_diagram(tmp_path)
    with pytest.raises(BiellaError, match="there is no file"):
        load_diagram(tmp_path / "none.py")
    (tmp_path / "notes.txt").write_text("text")
    with pytest.raises(BiellaError, match="is not a Python file"):
        load_diagram(tmp_path / "notes.txt")
    with pytest.raises(BiellaError, match=r"neither diagram\(\) nor system\(\)"):
        (tmp_path / "empty.py").write_text("")
        load_model(tmp_path / "empty.py")
