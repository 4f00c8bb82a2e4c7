"""Strings between FMUs."""

from __future__ import annotations

import zipfile

import pytest
from specimen import compile_specimen

from biella import BiellaError, BlockError, Diagram, DiagramError, Fmu, simulate
from biella.blocks import Constant, Gain, UnitDelay
from biella.fmu.importer._archive import platform_folder, platform_names

from .runs import EVERY, EVERY_ID

pytestmark = pytest.mark.engine

FMI2 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="talker" guid="{talker}">
<CoSimulation modelIdentifier="talker" canGetAndSetFMUstate="true"/>
<ModelVariables>
<ScalarVariable name="heard" valueReference="1" causality="input" variability="discrete">
  <String start="nothing"/></ScalarVariable>
<ScalarVariable name="said" valueReference="2" causality="output" variability="discrete">
  <String/></ScalarVariable>
<ScalarVariable name="length" valueReference="3" causality="output" variability="discrete">
  <Integer/></ScalarVariable>
<ScalarVariable name="prefix" valueReference="4" causality="parameter" variability="fixed">
  <String start=""/></ScalarVariable>
<ScalarVariable name="mode" valueReference="5" causality="parameter" variability="fixed">
  <Integer start="0"/></ScalarVariable>
</ModelVariables>
<ModelStructure><Outputs><Unknown index="2" dependencies=""/>
<Unknown index="3" dependencies="1"/></Outputs>
<InitialUnknowns><Unknown index="2" dependencies=""/><Unknown index="3" dependencies="1"/>
</InitialUnknowns></ModelStructure>
</fmiModelDescription>
"""
FMI3 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="talker" instantiationToken="{talker}">
<CoSimulation modelIdentifier="talker"/>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
<String name="heard" valueReference="1" causality="input" variability="discrete">
  <Start value="nothing"/></String>
<String name="said" valueReference="2" causality="output" variability="discrete"/>
<Int32 name="length" valueReference="3" causality="output" variability="discrete"/>
<String name="prefix" valueReference="4" causality="parameter" variability="fixed">
  <Start value=""/></String>
<Int32 name="mode" valueReference="5" causality="parameter" variability="fixed" start="0"/>
</ModelVariables>
<ModelStructure><Output valueReference="2" dependencies=""/>
<Output valueReference="3" dependencies="1"/>
<InitialUnknown valueReference="2"/><InitialUnknown valueReference="3"/></ModelStructure>
</fmiModelDescription>
"""


def make(path, fmi3=False):
    folder = platform_names()[1] if fmi3 else platform_folder()
    library = compile_specimen(*(["-DFMI3"] if fmi3 else []), name="talker")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", FMI3 if fmi3 else FMI2)
        archive.writestr(f"binaries/{folder}/talker.so", library.read_bytes())
    return path


@pytest.fixture(scope="module")
def talker(tmp_path_factory):
    return make(tmp_path_factory.mktemp("talker") / "talker.fmu")


@pytest.fixture(scope="module")
def talker3(tmp_path_factory):
    return make(tmp_path_factory.mktemp("talker3") / "talker3.fmu", fmi3=True)


def chain(first, second, options=None, others=None, **diagram):
    """b hears what a says."""
    d = Diagram("talk", step=0.01, **diagram)
    one = {"parameters": {"prefix": "a: "}} | (options or {})
    two = {"parameters": {"prefix": "b: "}} | (others or {})
    a = d.add(Fmu(first, **one), name="a")
    b = d.add(Fmu(second, **two), name="b")
    d.connect(a["said"], b["heard"])
    return d


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
@pytest.mark.parametrize("both", [True, False], ids=["both", "second"])
def test_a_string_reaches_the_next_fmu(talker, options, both):
    d = chain(talker, talker, options if both else None, options)
    result = simulate(d, 0.05)
    strings = {"a.said": "a: nothing", "b.said": "b: a: nothing"}
    assert result.info["strings"] == strings
    assert result["b.length"].tolist() == [10.0] * 6  # of "a: nothing", from the first tick on
    assert set(result) == {"a.length", "b.length"}


@pytest.mark.parametrize("isolate", [False, True])
def test_strings_cross_versions_of_fmi(talker, talker3, isolate):
    how = {"isolate": isolate}
    for first, second in ((talker, talker3), (talker3, talker), (talker3, talker3)):
        result = simulate(chain(first, second, how, how), 0.02)
        assert result.info["strings"]["b.said"] == "b: a: nothing"


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_a_string_that_changes_at_every_tick_is_followed(talker, options):
    """200 texts, more than are kept; "step 9" has 6 characters, "step 10" 7."""
    counting = options | {"parameters": {"mode": 1}}
    d = chain(talker, talker, counting, options)
    lengths = simulate(d, 2.0)["b.length"].tolist()
    assert lengths == [len(f"step {k}") for k in range(201)]


def test_a_string_is_held_between_ticks_of_a_slow_fmu(talker):
    """b reads every fifth text, at its own ticks."""
    counting = {"parameters": {"mode": 1}}
    d = chain(talker, talker, counting, {"period": 0.05})
    result = simulate(d, 0.22)
    assert result.info["strings"]["b.said"] == "b: step 15"


def test_numbers_of_texts(talker):
    """The last 16 texts of a writer are kept; a number never means another text."""
    d = Diagram("alone", step=0.01)
    d.add(Constant(1.0), name="one")
    with d.compile().instantiate() as instance:
        library, handle = instance.library, instance.handle
        assert library.bl_string_read(handle, 2.0**32) is None
        first, second = library.bl_string_open(handle), library.bl_string_open(handle)
        numbers = [library.bl_string_write(handle, first, b"%d" % k) for k in range(20)]
        other = library.bl_string_write(handle, second, b"")
        assert len({*numbers, other}) == 21
        texts = [library.bl_string_read(handle, number) for number in numbers]
        assert texts == [None] * 4 + [b"%d" % k for k in range(4, 20)]
        assert library.bl_string_read(handle, other) == b""
        assert library.bl_string_write(handle, first, b"19") == numbers[-1]  # the same text
        assert library.bl_string_write(handle, first, b"x" * 1023) > 0
        assert library.bl_string_write(handle, first, b"x" * 1024) == 0.0
        assert library.bl_string_write(handle, 2, b"x") == 0.0
        # An FMU may give no text at all where there was one.
        nothing = library.bl_string_write(handle, first, None)
        assert library.bl_string_read(handle, nothing) == b""
        for wrong in (0.0, -1.0, 1.0, 3.0 * 2**32, 2.0**60, float("nan"), float("inf")):
            assert library.bl_string_read(handle, wrong) is None


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
@pytest.mark.parametrize("coupling", ["gauss-seidel", "fixed-point"])
def test_fmus_that_talk_to_each_other(talker, options, coupling):
    """Each hears at a tick what the other said before it: strings are held over a step."""
    d = Diagram("both", step=0.01)
    a = d.add(Fmu(talker, parameters={"mode": 1}, **options), name="a")
    b = d.add(Fmu(talker, **options), name="b")
    d.connect(a["said"], b["heard"])
    d.connect(b["said"], a["heard"])
    strings = simulate(d, 0.1, coupling=coupling).info["strings"]
    assert strings == {"a.said": "step 10", "b.said": "step 9"}


def test_unconnected_inputs_keep_their_start_or_take_a_parameter(talker):
    d = Diagram("alone", step=0.01)
    d.add(Fmu(talker), name="f")
    d.add(Fmu(talker, parameters={"heard": "hello"}), name="g")
    strings = simulate(d, 0.02).info["strings"]
    assert strings == {"f.said": "nothing", "g.said": "hello"}


def test_a_string_and_a_number_do_not_connect(talker):
    d = Diagram("wrong", step=0.01)
    a = d.add(Fmu(talker), name="a")
    gain, delay = d.add(Gain(2.0), name="gain"), d.add(UnitDelay(), name="delay")
    d.connect(a["said"], gain)
    d.connect(a["said"], delay)
    d.connect(d.add(Constant(1.0), name="one"), a["heard"])
    with pytest.raises(DiagramError) as caught:
        d.compile()
    text = str(caught.value)
    for part in (
        "`gain.u` expects a real signal, but `a.said` is a string",
        "`delay.u` expects a numeric signal, but `a.said` is a string. Strings connect only to",
        "`a.heard` expects a string signal, but `one.y` is real",
    ):
        assert part in text


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_a_string_that_is_too_long_is_an_error(talker, options):
    d = chain(talker, talker, options | {"parameters": {"mode": 2}})
    with pytest.raises(
        BlockError, match=r"more than 1023 bytes|1999 bytes; signals can hold up to"
    ):
        simulate(d, 0.05)


def test_an_error_of_the_function_is_reported(talker):
    d = chain(talker, talker, {"parameters": {"mode": 3}})
    with pytest.raises(BlockError, match="fmi2GetString returned fmi2Error"):
        simulate(d, 0.05)


def test_strings_are_not_recorded(talker):
    d = chain(talker, talker)
    with pytest.raises(BiellaError, match=r"`a.said` is a string, which cannot be recorded"):
        simulate(d, 0.05, record=["a.said"])
    assert set(simulate(d, 0.05, record=["a.*"])) == {"a.length"}


def test_ports_may_be_chosen_without_strings(talker):
    block = Fmu(talker, inputs=[], outputs=["length"])
    assert [port.name for port in block.outputs] == ["length"]
    assert [port.kind for port in Fmu(talker).outputs] == ["string", "integer"]
