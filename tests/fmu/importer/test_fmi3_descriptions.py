"""Descriptions of FMI 3.0 that are wrong: sizes, references, types, and random changes."""

from __future__ import annotations

import contextlib
import re
import warnings

import numpy as np
import pytest
from typed import describe, make_typed

from biella import BiellaError, Diagram, Fmu, simulate
from biella.errors import BiellaWarning

pytestmark = pytest.mark.engine


def run(path, until):
    d = Diagram("alone", step=0.01)
    d.add(Fmu(path), name="f")
    return simulate(d, until)


SIZED = '<UInt64 name="m" valueReference="80" causality="structuralParameter" start="{}"/>'
ARRAY = '<Float64 name="z" valueReference="81" causality="output"><Dimension {}/></Float64>'


@pytest.mark.parametrize(
    "extra",
    [
        ARRAY.format(""),
        ARRAY.format('start="0"'),
        ARRAY.format('start="-3"'),
        ARRAY.format('start="many"'),
        ARRAY.format('start="1.5"'),
        ARRAY.format('valueReference="99"'),
        ARRAY.format('valueReference="81"'),  # itself
        ARRAY.format('valueReference="x"'),
        ARRAY.format('valueReference="1"'),  # not an integer
        SIZED.format("three") + ARRAY.format('valueReference="80"'),
        SIZED.format("-1") + ARRAY.format('valueReference="80"'),
        SIZED.replace('start="{}"', "") + ARRAY.format('valueReference="80"'),
        # Two arrays that are each other's size.
        '<UInt64 name="m" valueReference="80" causality="local"><Dimension valueReference="81"/>'
        '</UInt64><UInt64 name="z" valueReference="81" causality="output">'
        '<Dimension valueReference="80"/></UInt64>',
    ],
)
def test_an_array_without_a_size_is_left_out(tmp_path, extra):
    path = make_typed(tmp_path / "t.fmu", xml=describe(extra=extra))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        block = Fmu(path)
    assert "z" not in [port.name for port in block.outputs]
    assert any(
        "arrays whose dimensions have no size are ignored: " in str(w.message) for w in caught
    )


def test_an_array_that_is_too_large_is_left_out(tmp_path):
    for size in ("1000000000000", f"{2**64 - 1}"):
        path = make_typed(
            tmp_path / f"{size}.fmu", xml=describe(extra=ARRAY.format(f'start="{size}"'))
        )
        with pytest.warns(BiellaWarning, match=rf"output z \(array of {size} Float64\)"):
            block = Fmu(path, validate=False)
        assert "z" not in [port.name for port in block.outputs]
    with pytest.warns(BiellaWarning, match=r"output s \(array of 1048577 Float64\)"):
        Fmu(path, validate=False, parameters={"n": 2**20 + 1})


@pytest.mark.parametrize(
    "old, new",
    [
        ('valueReference="5" causality', 'valueReference="five" causality'),
        ("<UInt64", "<UInt128"),
        ("<Float64", "<Clock"),
        ('start="1 2 3 4"', 'start="1 2 3"'),
        ('start="1 2 3 4"', 'start="1 2 3 x"'),
        ('start="0 0"', ""),
        ('declaredType="Gear"', 'declaredType="Gone"'),
        ('value="2"', 'value="two"'),
        ('dependencies="1"', 'dependencies="1 77"'),
        ('dependencies="1"', 'dependencies="one"'),
        ('<Alias name="position"/>', "<Alias/>"),
        ('<Alias name="position"/>', '<Alias name="u"/>'),
        ('<Alias name="position"/>', '<Alias name="y"/>'),
        ('variability="discrete"', 'variability="discrete" clocks="77"'),
        ('variability="discrete"', 'variability="discrete" clocks=""'),
        ('variability="discrete"', 'variability="discrete" clocks="30 x"'),
        ('initial="exact"', 'initial="exact" derivative="77"'),
        ('modelIdentifier="typed"', ""),
        ('instantiationToken="{typed}"', ""),
        ("<ModelVariables>", "<ModelVariables><Float64/>"),
        ("<ModelStructure>", '<ModelStructure><Output/><Output valueReference="x"/>'),
        ('<Start value="00"/>', '<Start value="zz"/>'),
        ('fmiVersion="3.0"', 'fmiVersion="3.0-rc.1"'),
    ],
)
def test_a_damaged_description_runs_or_says_why_not(tmp_path, old, new):
    """An error is ours, and an FMU that is accepted runs or fails with a message of its own."""
    xml = describe()
    assert old in xml
    path = make_typed(tmp_path / "t.fmu", xml=xml.replace(old, new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiellaWarning)
        try:
            run(path, 0.02)
        except BiellaError as error:
            assert "Traceback" not in str(error) and "object has no" not in str(error)


@pytest.mark.parametrize("seed", range(40))
def test_mutated_descriptions_raise_no_other_errors(tmp_path, seed):
    """Attributes, tags and numbers at random: only errors of ours, never another exception."""
    random = np.random.default_rng(seed)
    words = [
        "Float64", "UInt64", "Int8", "Clock", "String", "Binary", "Dimension", "start", "clocks",
        "valueReference", "causality", "input", "output", "structuralParameter", "-1", "0", "2",
        "18446744073709551616", "1e400", "nan", "", "fixed", "tunable", "discrete", "Alias",
    ]  # fmt: skip
    pieces = re.split(r'(\w+|")', describe())
    places = [n for n, piece in enumerate(pieces) if re.fullmatch(r"\w+", piece)]
    for place in random.choice(places, size=3, replace=False):
        pieces[place] = str(random.choice(words))
    path = make_typed(tmp_path / "t.fmu", xml="".join(pieces))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiellaWarning)
        with contextlib.suppress(BiellaError):
            Fmu(path)
