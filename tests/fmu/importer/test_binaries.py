"""Binaries between FMUs, with the FMI 3.0 FMU that ``courier.c`` is."""

from __future__ import annotations

import ctypes
import zipfile

import pytest
from specimen import compile_specimen

from biella import BiellaError, BlockError, Diagram, DiagramError, Fmu, FmuError, simulate
from biella.blocks import Constant, Gain, UnitDelay
from biella.fmu.importer._archive import platform_names
from biella.scheduler.run._texts import read_binary

from .runs import BACKENDS, IDS

pytestmark = pytest.mark.engine

START = bytes([0xFF, 0, 1])
DESCRIPTION = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="courier" instantiationToken="{{courier}}">
<CoSimulation modelIdentifier="courier" canGetAndSetFMUState="true" canSerializeFMUState="true"
  canHandleVariableCommunicationStepSize="true"/>
<TypeDefinitions><BinaryType name="Frame" mimeType="application/x-frame"/></TypeDefinitions>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
<Binary name="received" valueReference="1" causality="input" variability="discrete" {taken}>
  <Start value="ff0001"/></Binary>
<Binary name="sent" valueReference="2" causality="output" variability="discrete" {given}/>
<Int32 name="size" valueReference="3" causality="output" variability="discrete"/>
<Binary name="prefix" valueReference="4" causality="parameter" variability="fixed">
  <Start value=""/></Binary>
<Int32 name="mode" valueReference="5" causality="parameter" variability="fixed" start="0"/>
<Int32 name="sum" valueReference="6" causality="output" variability="discrete"/>
</ModelVariables>
<ModelStructure><Output valueReference="2" dependencies=""/>
<Output valueReference="3" dependencies="1"/><Output valueReference="6" dependencies="1"/>
<InitialUnknown valueReference="2"/><InitialUnknown valueReference="3"/>
<InitialUnknown valueReference="6"/></ModelStructure>
</fmiModelDescription>
"""


def make(path, given="", taken=""):
    library = compile_specimen(name="courier")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", DESCRIPTION.format(given=given, taken=taken))
        archive.writestr(f"binaries/{platform_names()[1]}/courier.so", library.read_bytes())
    return path


@pytest.fixture(scope="module")
def courier(tmp_path_factory):
    return make(tmp_path_factory.mktemp("courier") / "courier.fmu")


def chain(first, second, options=None, others=None, **diagram):
    """b receives what a sends."""
    d = Diagram("mail", step=0.01, **diagram)
    a = d.add(Fmu(first, **({"parameters": {"prefix": b"\0a"}} | (options or {}))), name="a")
    b = d.add(Fmu(second, **({"parameters": {"prefix": b"b\0"}} | (others or {}))), name="b")
    d.connect(a["sent"], b["received"])
    return d


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
@pytest.mark.parametrize("both", [True, False], ids=["both", "second"])
def test_a_binary_reaches_the_next_fmu(courier, options, both):
    """Bytes of value 0 are bytes like others."""
    result = simulate(chain(courier, courier, options if both else None, options), 0.05)
    first = b"\0a" + START
    assert result.info["binaries"] == {"a.sent": first.hex(), "b.sent": (b"b\0" + first).hex()}
    assert result["b.size"].tolist() == [5.0] * 6  # from the first tick on
    assert result["b.sum"].tolist() == [float(sum(first))] * 6
    assert set(result) == {"a.size", "a.sum", "b.size", "b.sum"}


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_a_binary_that_changes_and_grows_at_every_tick_is_followed(courier, options):
    """3000 bytes at the end, in 3000 values: more than are kept, and more than fit at first."""
    d = chain(courier, courier, options | {"parameters": {"mode": 1}}, options)
    steps = 300 if options else 3000
    result = simulate(d, 0.01 * steps)
    assert result["b.size"].tolist() == list(range(steps + 1))
    assert result["b.sum"].tolist() == [k * (k % 256) for k in range(steps + 1)]


def test_a_binary_is_held_between_ticks_of_a_slow_fmu(courier):
    d = chain(courier, courier, {"parameters": {"mode": 1}}, {"period": 0.05})
    assert simulate(d, 0.22).info["binaries"]["b.sent"] == (b"b\0" + bytes([15]) * 15).hex()


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
@pytest.mark.parametrize("coupling", ["gauss-seidel", "fixed-point"])
def test_fmus_that_send_to_each_other(courier, options, coupling):
    """Each receives at a tick what the other sent before it, also where steps are repeated."""
    d = Diagram("both", step=0.01)
    a = d.add(Fmu(courier, parameters={"mode": 1}, **options), name="a")
    b = d.add(Fmu(courier, **options), name="b")
    d.connect(a["sent"], b["received"])
    d.connect(b["sent"], a["received"])
    binaries = simulate(d, 0.1, coupling=coupling).info["binaries"]
    assert binaries == {"a.sent": (bytes([10]) * 10).hex(), "b.sent": (bytes([9]) * 9).hex()}


def test_saved_states_are_restored_with_their_binaries(courier):
    d = chain(courier, courier, {"parameters": {"mode": 1}})
    with d.compile().instantiate() as instance:
        sizes = instance.plan.signals["b.size"].slot
        instance.run(5)
        state = instance.save()
        instance.run(40)
        late = instance.values[sizes]
        instance.restore(state)
        instance.run(40)
        assert instance.values[sizes] == late == 44.0  # outputs are those of the last tick


def test_numbers_of_binaries(courier):
    d = Diagram("alone", step=0.01)
    d.add(Constant(1.0), name="one")
    with d.compile().instantiate() as instance:
        library, handle = instance.library, instance.handle
        writer, other = library.bl_binary_open(handle), library.bl_string_open(handle)

        def write(data, size=None, which=writer):
            pointer = ctypes.cast(ctypes.c_char_p(data), ctypes.POINTER(ctypes.c_uint8))
            return library.bl_binary_write(
                handle, which, pointer, len(data) if size is None else size
            )

        empty = write(b"")
        assert read_binary(instance, empty) == b""
        numbers = [write(bytes([0, k])) for k in range(20)]
        assert len({*numbers, empty}) == 21
        assert write(b"\0\x13") == numbers[-1]  # the same value
        assert write(b"\0") != numbers[-1]  # one that begins like it
        kept = [read_binary(instance, number) for number in numbers]
        assert kept == [None] * 5 + [bytes([0, k]) for k in range(5, 20)]
        large = b"xy" * (1 << 23)
        assert read_binary(instance, write(large)) == large
        assert write(large + b"z") == 0.0
        assert write(b"a", -1) == write(b"a", 1, 7) == write(b"a", 1, -1) == 0.0
        assert library.bl_binary_write(handle, writer, None, 1) == 0.0
        assert library.bl_string_write(handle, other, b"text") not in numbers
        assert library.bl_string_read(handle, numbers[-1]) is None  # it has no terminator
        for wrong in (0.0, -1.0, 1.0, 5.0 * 2**32, 2.0**60, float("nan"), float("inf")):
            assert read_binary(instance, wrong) is None


def test_unconnected_inputs_keep_their_start_or_take_a_parameter(courier):
    d = Diagram("alone", step=0.01)
    d.add(Fmu(courier), name="f")
    d.add(Fmu(courier, parameters={"received": b"\x07"}), name="g")
    assert simulate(d, 0.02).info["binaries"] == {"f.sent": START.hex(), "g.sent": "07"}


def test_a_binary_connects_to_binaries_only(courier):
    d = Diagram("wrong", step=0.01)
    a = d.add(Fmu(courier), name="a")
    gain, delay = d.add(Gain(2.0), name="gain"), d.add(UnitDelay(), name="delay")
    d.connect(a["sent"], gain)
    d.connect(a["sent"], delay)
    d.connect(d.add(Constant(1.0), name="one"), a["received"])
    with pytest.raises(DiagramError) as caught:
        d.compile()
    for part in (
        "`gain.u` expects a real signal, but `a.sent` is a binary. Binaries connect only to binary",
        "`delay.u` expects a numeric signal, but `a.sent` is a binary",
        "`a.received` expects a binary signal, but `one.y` is real",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("given", "taken", "connects"),
    [
        ('mimeType="application/x-frame"', 'mimeType="Application/X-Frame; version=2"', True),
        ('declaredType="Frame"', 'mimeType="application/x-frame"', True),
        ('mimeType="application/x-frame"', "", True),
        ('mimeType="application/octet-stream"', 'declaredType="Frame"', True),
        ('mimeType="image/png"', 'declaredType="Frame"', False),
    ],
)
def test_mime_types_are_compared_where_both_declare_one(tmp_path, given, taken, connects):
    first, second = make(tmp_path / "a.fmu", given=given), make(tmp_path / "b.fmu", taken=taken)
    d = chain(first, second)
    if connects:
        assert simulate(d, 0.02)["b.size"][-1] == 5.0
        return
    with pytest.raises(
        DiagramError,
        match=r"`b\.received` expects binaries of the MIME type application/x-frame, but `a\.sent` "
        r"provides image/png",
    ):
        d.compile()


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_a_binary_that_is_too_long_is_an_error(courier, options):
    d = chain(courier, courier, options | {"parameters": {"mode": 2}})
    with pytest.raises(BlockError, match=r"16777217 bytes.*signals can hold up to 16777216"):
        simulate(d, 0.05)


def test_errors_of_the_function_are_reported(courier):
    d = chain(courier, courier, {"parameters": {"mode": 3}})
    with pytest.raises(BlockError, match="fmi3GetBinary returned fmi3Error"):
        simulate(d, 0.05)
    d = chain(courier, courier, {"parameters": {"mode": 4}})
    with pytest.raises(
        BlockError, match="fmi3GetBinary returned 3 bytes and no pointer for `sent`"
    ):
        simulate(d, 0.05)


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_an_empty_binary_is_a_value(courier, options):
    """A size of 0 without a pointer, which FMI allows: it replaces the start value of b."""
    d = chain(courier, courier, options | {"parameters": {"mode": 5}}, options)
    result = simulate(d, 0.03)
    assert result["b.size"].tolist() == [0.0] * 4


def test_binaries_are_not_recorded(courier, tmp_path):
    d = chain(courier, courier)
    with pytest.raises(BiellaError, match=r"`a.sent` is a binary.*result.info\['binaries'\] has"):
        simulate(d, 0.05, record=["a.sent"])
    result = simulate(d, 0.05, record=["a.*"])
    assert set(result) == {"a.size", "a.sum"}
    result.to_hdf5(tmp_path / "run.h5")


def with_array(courier, path, size):
    text = DESCRIPTION.format(given="", taken="").replace(
        'causality="output" variability="discrete" />',
        f'causality="output" variability="discrete"><Dimension start="{size}"/></Binary>',
    )
    with zipfile.ZipFile(courier) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            is_text = name == "modelDescription.xml"
            target.writestr(name, text if is_text else source.read(name))
    return path


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_an_array_of_one_binary_is_a_port(courier, tmp_path, options):
    path = with_array(courier, tmp_path / "one.fmu", 1)
    result = simulate(chain(path, courier, options, options), 0.02)
    assert result["b.size"].tolist() == [5.0] * 3


def test_arrays_of_binaries_are_not_ports(courier, tmp_path):
    path = with_array(courier, tmp_path / "arrays.fmu", 2)
    with pytest.raises(FmuError, match=r"`sent` of arrays\.fmu is an array of Binary, which"):
        Fmu(path, outputs=["sent"])
