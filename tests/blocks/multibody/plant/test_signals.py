"""What a mechanism can show and take: lists that are tables and data."""

from __future__ import annotations

import pytest

from biella import Diagram, DiagramError
from biella.blocks import Gain
from biella.blocks.multibody import mechanisms


def test_outputs_are_a_table_and_data():
    """Every name is one that a block takes, with the unit and width of its port."""
    s = mechanisms.crank_pin("force")
    table = s.outputs()
    plant = s.block(outputs=list(table))
    assert [port.name for port in plant.outputs] == list(table)
    for port in plant.outputs:
        signal = table[port.name]
        assert (signal.name, signal.width, signal.doc) == (port.name, port.width, port.doc)
        assert signal.unit == ("" if port.unit is None else str(port.unit))
        assert signal.doc
    assert (table["main.angle"].unit, table["rod.rotation"].width) == ("rad", 4)
    lines = str(table).splitlines()
    assert lines[0] == f"outputs of slider-crank: {len(table)}"
    assert [line.split()[0] for line in lines[1:]] == list(table)
    assert any(line.split()[:3] == ["rod.position", "m", "[3]"] for line in lines)


@pytest.mark.parametrize(
    "make",
    [mechanisms.cardan, mechanisms.mcpherson, mechanisms.rotor, mechanisms.five_bar],
)
def test_inputs_are_what_a_block_takes(make):
    s = make()
    table = s.inputs()
    named = [name for name in table if not table[name].always and name in s.parameters()]
    plant = s.block(inputs=named)
    assert {port.name for port in plant.inputs} == set(table)
    for name in s.parameters():
        if name not in named and s.parameters()[name].value.size == 1:
            with pytest.raises(DiagramError, match=r"cannot be an input.*system\.inputs\(\)"):
                s.block(inputs=[name])


def test_inputs_of_laws_are_always_there():
    s = mechanisms.crank_pin("open")
    assert [name for name, signal in s.inputs().items() if signal.always] == [
        port.name for port in s.block().inputs
    ]
    assert "always there" in str(s.inputs())
    assert str(mechanisms.five_bar().inputs()) == "inputs of five-bar: none"


def test_an_unknown_output_shows_the_nearest_and_where_all_are():
    s = mechanisms.slider_crank()
    with pytest.raises(DiagramError) as caught:
        s.block(outputs=["wrist_pin.anlge"])
    text = str(caught.value)
    assert "Did you mean `wrist_pin.angle`" in text
    assert "the nearest first: wrist_pin.angle," in text
    assert "print(system.outputs())" in text
    with pytest.raises(DiagramError, match=r"nearest first: motor\.torque,.*system\.inputs\(\)"):
        s.block(inputs=["motor.troque"])


def test_a_port_that_was_not_asked_for_says_where_to_name_it():
    d = Diagram("crank")
    plant = d.add(mechanisms.slider_crank().block(outputs=["main.angle"]), name="plant")
    gain = d.add(Gain(1.0), name="gain")
    shows = r"name it in System\.block\(outputs=\[…, 'main\.speed'\]\)"
    with pytest.raises(DiagramError, match=shows):
        d.connect("plant.main.speed", gain)
    with pytest.raises(DiagramError, match=shows):
        plant["main.speed"]
    with pytest.raises(DiagramError, match=r"System\.block\(inputs=\[…, 'motor\.torque'\]\)"):
        d.connect(gain, "plant.motor.torque")
    with pytest.raises(DiagramError, match=r"no port `main\.angel`\. Did you mean `main\.angle`"):
        plant["main.angel"]
