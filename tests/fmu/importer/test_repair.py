"""Descriptions that violate the FMI standard and run all the same, with one warning.

Each of them is accepted by FMPy with validate=False, or is read by importers that ignore the part
that is wrong. The run must give the bits of the FMU whose description is right.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from specimen import description, make_fmi3, make_specimen

from biella import BiellaWarning, Diagram, Fmu, simulate
from biella.fmu.importer._archive import read_archive
from biella.fmu.importer._interface import read_description

pytestmark = pytest.mark.engine
U, Y = 'name="u" valueReference="0" causality="input"', 'name="y" valueReference="1"'
K = 'causality="parameter" variability="tunable"'
EXPERIMENT = '<DefaultExperiment stopTime="1" stepSize="0.05"/>'
NOTHING = "<ModelVariables>"
VARIABLES = "<ModelVariables>"

# What is replaced in the description, by what, and a finding.
CASES = {
    "unknown attribute": (U, f'{U} vendor="7"', "attribute 'vendor' is not allowed"),
    "unknown element": (VARIABLES, f"<Vendor/>{VARIABLES}", "Element 'Vendor'"),
    "comments": (VARIABLES, f"{VARIABLES}<!-- a comment -->", None),
    "vendor annotations": (
        VARIABLES,
        f'<VendorAnnotations><Tool name="t"><x/></Tool></VendorAnnotations>{VARIABLES}',
        None,
    ),
    "duplicate name": ('name="x" valueReference="6"', 'name="y" valueReference="6"', "not unique"),
    "alias with a start": (
        "</ModelVariables>",
        '<ScalarVariable name="alias" valueReference="7" causality="parameter" variability='
        '"tunable"><Real start="2"/></ScalarVariable></ModelVariables>',
        None,
    ),
    "input without start": ('<Real start="0.5" unit="m"/>', '<Real unit="m"/>', "no start value"),
    "input with a wrong start": ('start="0.5" unit', 'start="half" unit', "got 'half'"),
    "integer beyond its range": ('<Integer start="3"/>', '<Integer start="3000000000"/>', "range"),
    "integer that is none": ('<Integer start="3"/>', '<Integer start="nan"/>', "got 'nan'"),
    "parameter with a wrong start": ('<Real start="2"/>', '<Real start="2,0"/>', "got '2,0'"),
    "start of a calculated variable": (Y, f'{Y} initial="calculated"', None),
    "no model structure": (r"(?s)<ModelStructure>.*</ModelStructure>", "", "ModelStructure"),
    "no unit definitions": ("(?s)<UnitDef.*</UnitDefinitions>", "", 'unit "m" of variable "u"'),
    "empty unit": ('start="0.5" unit="m"', 'start="0.5" unit=""', 'unit "" of variable "u"'),
    "unit that is no number": ('m="1"', 'm="one"', "has exponents or factors that are not num"),
    "dependency out of range": (
        'index="2" dependencies="1"',
        'index="2" dependencies="1 99"',
        r"variables that do not exist: dependencies 99 \(line \d+\)",
    ),
    "unknown out of range": ('<Unknown index="14"', '<Unknown index="77"', "index 77"),
    "unknown without index": ('<Unknown index="14" ', "<Unknown ", "index missing"),
    "white space in dependencies": ('dependencies="3"', 'dependencies=" 3  "', None),
    "undefined type": (
        '<Real start="0.5"',
        '<Real declaredType="Gone" start="0.5"',
        "declare a type that is not defined: u",
    ),
    "type without definition": (
        "<ModelVariables>",
        '<TypeDefinitions><SimpleType name="T"/></TypeDefinitions><ModelVariables>',
        "type `T` has no definition",
    ),
    "type with an unknown attribute": (
        "<ModelVariables>",
        '<TypeDefinitions><SimpleType name="T"><!-- c --><Real color="red"/></SimpleType>'
        "</TypeDefinitions><ModelVariables>",
        "unknown attribute `color`",
    ),
    "enumeration with a wrong item": (
        "<ModelVariables>",
        '<TypeDefinitions><SimpleType name="T"><Enumeration><Item name="a" value="one"/>'
        "</Enumeration></SimpleType></TypeDefinitions><ModelVariables>",
        "item `a`",
    ),
    "parameter that is continuous": (K, 'causality="parameter"', r"other: k \(parameter, contin"),
    "input that is fixed": (U, f'{U} variability="fixed"', r"each other: u \(input, fixed\)"),
    "integer that is continuous": (
        'causality="output" variability="discrete">\n  <Integer/>',
        'causality="output">\n  <Integer/>',
        'must have variability != "continuous"',
    ),
    "illegal initial": (U, f'{U} initial="calculated"', 'causality="input"'),
    "derivative of nothing": ('<Real start="2"/>', '<Real start="2" derivative="99"/>', "derivati"),
    "variable without type": (
        "</ModelVariables>",
        '<ScalarVariable name="odd" valueReference="99"/></ModelVariables>',
        "without a name, type or value reference are ignored: odd",
    ),
    "variable without name": (
        "</ModelVariables>",
        '<ScalarVariable valueReference="99"><Real/></ScalarVariable></ModelVariables>',
        "value reference are ignored: number 16",
    ),
    "local variable beyond the references": (
        "</ModelVariables>",
        '<ScalarVariable name="far" valueReference="4294967296"><Real/></ScalarVariable>'
        "</ModelVariables>",
        "`far` has the value reference 4294967296",
    ),
    "version with a revision": ('fmiVersion="2.0"', 'fmiVersion="2.0.3"', "fmiVersion is '2.0.3'"),
    "experiment that is no time": (NOTHING, EXPERIMENT.replace("0.05", "soon") + NOTHING, "'soon'"),
    "experiment that never ends": (NOTHING, EXPERIMENT.replace('"1"', '"1e999"') + NOTHING, "1e9"),
    "inverted experiment": (
        NOTHING,
        EXPERIMENT.replace('stepSize="0.05"', 'startTime="2"') + NOTHING,
        "stopTime before its startTime",
    ),
    "flag of another form": ('FMUstate="true"', 'FMUstate="yes"', "'yes' is not a valid value"),
    "order that is no number": (
        "<CoSimulation ",
        '<CoSimulation maxOutputDerivativeOrder="two" ',
        "maxOutputDerivativeOrder='two', which is not a number",
    ),
    "start outside of its limits": ('<Real start="2"/>', '<Real start="2" min="3" max="1"/>', None),
    "long description": ('description="drives x"', f'description="{"x" * 100000}"', None),
    "no generation tool, odd date": (
        'modelName="specimen"',
        'modelName="specimen" generationDateAndTime="yesterday"',
        "yesterday",
    ),
}  # fmt: skip


def change(xml: str, old: str, new: str) -> str:
    literal = re.escape(old) if old in xml else old
    changed = re.sub(literal, lambda _: new, xml, count=1)
    assert changed != xml
    return changed


def run(path, **options):
    """Run for 0.1 s with inputs that are all connected or given."""
    d = Diagram("d", step=0.01)
    given = {"u": 0.5, "n": 3}
    d.add(Fmu(path, period=0.01, parameters=given, **options), name="f")
    return simulate(d, 0.1)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return run(make_specimen(tmp_path_factory.mktemp("reference") / "s.fmu"))


@pytest.mark.parametrize("name", CASES)
def test_it_runs_as_if_nothing_were_wrong(tmp_path, reference, name):
    old, new, finding = CASES[name]
    path = make_specimen(tmp_path / "s.fmu", xml=change(description(), old, new))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run(path)
    messages = [str(w.message) for w in caught]
    assert len(messages) == bool(finding), messages
    if finding:
        assert caught[0].category is BiellaWarning and caught[0].filename == __file__
        assert messages[0].startswith("s.fmu violates the FMI standard, which does not prevent a")
        assert re.search(finding, messages[0]), messages[0]
    for signal in ("f.y", "f.m", "f.c", "f.s", "f.q"):
        assert np.array_equal(result[signal], reference[signal]), signal
    run(path, validate=False)  # silent: warnings are errors here


@pytest.mark.parametrize("options", [{"isolate": True}, {"backend": "fmpy"}])
def test_every_backend_accepts_it(tmp_path, reference, options):
    xml = description()
    for name in ("parameter that is continuous", "undefined type", "unknown out of range"):
        xml = change(xml, *CASES[name][:2])
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    with pytest.warns(BiellaWarning, match=r"(?s)not defined: u.*\(parameter, cont.*index 77"):
        result = run(path, **options)
    assert np.array_equal(result["f.y"], reference["f.y"])


def test_an_input_without_start_is_zero(tmp_path):
    xml = change(description(), *CASES["input without start"][:2])
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    with pytest.warns(BiellaWarning, match="the input `u` has no start value: 0 is used"):
        block = Fmu(path)
    assert next(port.default for port in block.inputs if port.name == "u") == 0.0


def test_dependencies_that_are_not_known_are_all(tmp_path):
    """Feedthrough that is declared wrongly must not be lost."""
    xml = change(description(), *CASES["dependency out of range"][:2])
    block = Fmu(make_specimen(tmp_path / "s.fmu", xml=xml), validate=False)
    names = [port.name for port in block.inputs]
    direct = [names[n] for n in block.feedthrough[0]]
    assert direct == names


def test_a_parameter_without_usable_start_is_settable(tmp_path):
    xml = change(description(), *CASES["parameter with a wrong start"][:2])
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    block = Fmu(path, validate=False, parameters={"k": 4.0})
    d = Diagram("d", step=0.01)
    d.add(block, name="f")
    assert simulate(d, 0.01)["f.y"][0] == 2.0


def test_long_lists_are_cut(tmp_path):
    xml = description()
    extra = "".join(
        f'<ScalarVariable name="v{n}" valueReference="6"><Real unit="mystery{n}"/></ScalarVariable>'
        for n in range(30)
    )
    path = make_specimen(
        tmp_path / "s.fmu", xml=xml.replace("</ModelVariables>", f"{extra}</ModelVariables>")
    )
    with pytest.warns(BiellaWarning, match=r"and 10 more, which `biella validate` lists"):
        Fmu(path)


def test_descriptions_of_fmi3_are_repaired_too(tmp_path):
    import zipfile

    good = make_fmi3(tmp_path / "good.fmu")
    path = tmp_path / "three.fmu"
    with zipfile.ZipFile(good) as read, zipfile.ZipFile(path, "w") as write:
        for name in read.namelist():
            data = read.read(name)
            if name == "modelDescription.xml":
                data = (
                    data.replace(b'valueReference="2" dependencies=""', b'valueReference="2" '
                                 b'dependencies="77"')
                    .replace(b'<Int8 name="small"', b'<Int8 declaredType="Gone" name="small"')
                    .replace(b"</ModelVariables>", b'<Complex name="z" valueReference="50"/>'
                             b"</ModelVariables>")
                )  # fmt: skip
            write.writestr(name, data)
    described = read_description(read_archive(path))
    text = "\n".join(described.findings)
    for part in ("dependencies 77", "not defined: small", "are ignored: z"):
        assert part in text
    assert described.dependencies["y"] is None
    assert {"n", "y", "small"} <= set(described.scalars)
