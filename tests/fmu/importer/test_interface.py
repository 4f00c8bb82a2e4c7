"""Ports and parameters of an FMU, from its description."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from specimen import description, make_fmi3, make_specimen
from typed import describe, make_typed

from biella import (
    BlockError,
    Diagram,
    DiagramError,
    Fmu,
    simulate,
)
from biella.blocks import (
    Constant,
    Convert,
    Mux,
    Pulse,
    StateMachine,
    Step,
)
from biella.errors import BiellaWarning, FmuError
from biella.fmu.importer._interface import _item_names, group_elements

from .runs import BACKENDS, IDS, plant

pytestmark = pytest.mark.engine


def test_ports_carry_units_kinds_and_defaults_and_parameters_their_names(tmp_path):
    path = plant().export_fmu(tmp_path / "plant.fmu")
    block = Fmu(path)
    (torque,) = block.inputs
    assert (torque.name, str(torque.unit), torque.default) == ("torque", "N.m", 0.0)
    assert str(block.outputs[0].unit) == "rad"
    assert block.rate.period == 1e-3
    assert "pendulum.initial_angle" in {p.name for p in block.parameters}
    assert block.can_roll_back
    d = Diagram("wrong", step=1e-3)
    fmu = d.add(Fmu(path), name="fmu")
    d.connect(d.add(Constant(1.0, unit="m"), name="c"), fmu)
    with pytest.raises(DiagramError, match=r"torque.* N\.m"):
        d.compile()


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_types_vectors_and_substeps(specimen, options):
    d = Diagram("types", step=0.01)
    f = d.add(Fmu(specimen, parameters={"x": 1.0, "k": 3}, substeps=2, **options), name="f")
    assert [(p.name, p.width, p.kind, p.default) for p in f.inputs] == [
        ("u", 1, "real", 0.5),
        ("n", 1, "integer", 3.0),
        ("b", 1, "boolean", 1.0),
        ("w", 2, "real", (0.0, 0.0)),
    ]
    d.connect(d.add(Step(at=0.05, to=1.0, unit="m"), name="u"), f["u"])
    w = d.add(Mux(2), name="w")
    d.connect(d.add(Constant(1.0), name="one"), w["u1"])
    d.connect(d.add(Constant(0.5), name="half"), w["u2"])
    d.connect(w, f["w"])
    b = d.add(Convert("boolean"), name="b")
    d.connect(d.add(Pulse(0.04, 0.5), name="pulse"), b)
    d.connect(b, f["b"])
    r = simulate(d, 0.1)
    x, expected = 1.0, []
    for u in r["u"]:
        expected.append(3.0 * u + x)
        for _ in range(2):
            x += 0.005 * (u - x)
    assert r["f.y"] == pytest.approx(expected, abs=1e-15)
    assert r["f.s"] == pytest.approx(6.0 * r.t, abs=1e-14)
    assert set(r["f.m"]) == {4.0}
    assert np.array_equal(r["f.c"], 1.0 - r["b"])


def test_inputs_and_outputs_may_be_chosen(specimen):
    block = Fmu(specimen, inputs=["u"], outputs=["x", "y"], parameters={"w": [1.0, 2.0], "n": 7})
    assert [p.name for p in block.inputs] == ["u"]
    assert [p.name for p in block.outputs] == ["x", "y"]
    for inputs in (["u"], None):  # as a parameter, as what the input is while nothing is connected
        d = Diagram("chosen", step=0.01)
        block = Fmu(specimen, inputs=inputs, outputs=["s"], parameters={"w": [1.0, 2.0]})
        d.add(block, name="f")
        assert simulate(d, 0.1)["f"][-1] == pytest.approx(2.1)


@pytest.mark.parametrize(
    "options", [{}, {"isolate": True}, {"backend": "fmpy"}], ids=["engine", "isolated", "fmpy"]
)
def test_an_output_may_be_any_variable(specimen, options):
    """A parameter, a state with a given start and an input: each shows what it has, and is set."""
    names = ["k", "x", "at", "u", "y"]
    d = Diagram("any", step=0.01)
    block = Fmu(specimen, outputs=names, parameters={"k": 3.0, "x": 0.25}, **options)
    d.add(block, name="f")
    assert [p.name for p in block.outputs] == names
    # Parameters follow no input, so that they may feed one without a loop.
    reached = dict(zip(names, block.feedthrough, strict=True))
    assert reached["k"] == reached["at"] == () and reached["y"]
    result = simulate(d, 0.02)
    assert np.array_equal(result["f.k"], [3.0, 3.0, 3.0])
    assert (result["f.at"][0], result["f.u"][0], result["f.x"][0]) == (1e300, 0.5, 0.25)
    assert result["f.y"][0] == 3.0 * 0.5 + 0.25
    assert simulate(d, 0.0, parameters={"f.k": 4.0})["f.k"][0] == 4.0
    with d.compile().instantiate() as instance:
        instance.set("f.k", 5.0)
        instance.run(1)
        assert instance.get("f.k") == 5.0
        assert instance.get("f.y") == pytest.approx(5.0 * 0.5 + 0.2525)


def test_an_output_that_lists_no_dependencies_depends_on_every_input(tmp_path):
    xml = description().replace('<Unknown index="2" dependencies="1"/>', '<Unknown index="2"/>')
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    assert Fmu(path).feedthrough == ((0, 1, 2, 3), (1,), (2,), (), ())


def test_integers_that_fmi_does_not_have_are_refused(specimen):
    d = Diagram("large", step=0.01)
    f = d.add(Fmu(specimen), name="f")
    n = d.add(Convert("integer"), name="n")
    d.connect(d.add(Step(at=0.03, to=3e9), name="s"), n)
    d.connect(n, f["n"])
    with pytest.raises(
        BlockError, match=r"value reference 2 cannot be 3000000000: the range of FMI 2.0"
    ):
        simulate(d, 0.1)


@pytest.mark.parametrize("value, sent", [(2.7, 3), (-2.7, -3), (2.2, 2), (-1e-9, 0)])
def test_a_number_that_is_not_whole_is_rounded_to_the_nearest_integer(specimen, value, sent):
    """Blocks give whole integers, but a command may set any number."""
    d = Diagram("rounded", step=0.01)
    f = d.add(Fmu(specimen, outputs=["m"]), name="f")
    d.connect(d.input("n", kind="integer"), f["n"])
    with d.compile().instantiate() as instance:
        instance.set("n", value)
        instance.run(1)
        assert instance.get("f.m") == sent + 1  # which this FMU adds


CHOSEN: dict[str, Any] = {"backend": "fmpy", "inputs": ["n", "small"], "outputs": ["y"]}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    return make_fmi3(tmp_path_factory.mktemp("three") / "three.fmu")


def test_variables_that_no_signal_holds_are_named(three):
    with pytest.warns(BiellaWarning) as caught:
        block = Fmu(three, backend="fmpy")
    (warning,) = caught
    assert (
        "three.fmu has variables that cannot become ports, because signals are numbers, strings or "
        "binaries: output bytes (array of Binary)."
    ) in str(warning.message)
    assert [p.name for p in (*block.inputs, *block.outputs)] == ["n", "small", "text", "y", "row"]
    Fmu(three, **CHOSEN)
    with pytest.raises(FmuError, match=r"`bytes` of three.fmu is an array of Binary, which"):
        Fmu(three, **(CHOSEN | {"outputs": ["bytes"]}))


@pytest.mark.engine
def test_enumerations_keep_the_names_of_their_items(tmp_path):
    machine = StateMachine()
    machine.transition(machine.state("waiting"), machine.state("done"), after=10)
    d = Diagram("machine", step=0.1)
    d.add(machine, "machine")
    d.output("state", machine["state"])
    fmu = Fmu(d.export_fmu(tmp_path / "machine.fmu"))
    ports = {port.name: port for port in (*fmu.inputs, *fmu.outputs)}
    assert ports["state"].kind == "enumeration"
    assert ports["state"].names == ("waiting", "done")
    outer = Diagram("outer", step=0.1)
    outer.add(fmu, "fmu")
    result = simulate(outer, 0.3)
    assert result.signals["fmu.state"].names == ("waiting", "done")
    assert result.timeline("fmu").at(0.2) == ("waiting",)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1, 2), ("a", "b")),
        ((2, 1), ("b", "a")),
        ((0, 1), ()),
        ((1, 3), ()),
        ((1, 1), ()),
        ((), ()),
    ],
)
def test_names_are_those_of_values_from_1_on(values, expected):
    items = [
        SimpleNamespace(name=name, value=str(n)) for name, n in zip("ab", values, strict=False)
    ]
    assert _item_names(SimpleNamespace(items=items)) == expected
    assert _item_names(None) == ()


@pytest.mark.parametrize("index", ["²", "٣", "1" * 5000])
def test_an_index_that_is_no_number_is_part_of_the_name(index):
    like = {"fmi_type": "Real", "unit": None, "variability": "continuous", "causality": "output"}
    scalars: Any = [SimpleNamespace(name=f"x[{text}]", **like) for text in (index, "0", "1")]
    groups = group_elements(scalars, set())
    assert [(group.name, len(group.scalars)) for group in groups] == [(f"x[{index}]", 1), ("x", 2)]


def test_logging_is_off_unless_asked_for(tmp_path):
    path = make_specimen(tmp_path / "specimen.fmu")

    def logs(**options):
        block: Any = Fmu(path, **options)
        return block.options.logging

    assert logs() is False
    assert logs(logging=True) is True
    assert logs(logging=["warning"]) is True


def test_what_cannot_be_a_port_is_named_where_none_were_chosen(tmp_path):
    """Inputs and outputs are chosen one without the other."""
    large = f'<Dimension start="{2**40}"/></Float64>'
    extra = "".join(
        f'<Float64 name="{name}" valueReference="{n}" causality="{causality}" {start}>{large}'
        for n, (name, causality, start) in enumerate(
            [("big_in", "input", 'start="0"'), ("big_out", "output", "")], 80
        )
    )
    path = make_typed(tmp_path / "typed.fmu", xml=describe(extra=extra))

    def warned(**chosen):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Fmu(path, validate=False, **chosen)
        text = " ".join(str(w.message) for w in caught)
        return {name for name in ("big_in", "big_out") if name in text}

    assert warned() == {"big_in", "big_out"}
    assert warned(inputs=[]) == {"big_out"}
    assert warned(outputs=[]) == {"big_in"}
    assert warned(inputs=[], outputs=[]) == set()
