"""Buses: the same model as without them, under names; what does not fit is named at both ends."""

import random
import re
import time
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import (
    Diagram,
    DiagramError,
    Fmu,
    Result,
    Subsystem,
    linearize,
    replay,
    run_realtime,
    simulate,
    sweep,
)
from biella.blocks import (
    Asynchronous,
    Bus,
    BusSelector,
    BusType,
    Compare,
    Constant,
    Expression,
    Gain,
    Integrator,
    Port,
    Ramp,
    Scope,
    Sine,
    StateMachine,
    Step,
    Switch,
    UnitDelay,
)
from biella.blocks.authoring import AbstractBlock
from biella.scheduler.binding._bind import open_binding
from biella.scheduler.compile._flatten import flatten
from biella.scheduler.drawing._arrange import arrange
from biella.scheduler.drawing._paint import finish
from biella.scheduler.drawing._svg import write_svg

pytestmark = pytest.mark.engine

POSE = BusType({"x": "m", "v": Port("v", width=2)})
SENSORS = BusType({"speed": "rad/s", "torque": "N.m", "pose": POSE})


def controller() -> Diagram:
    """Return a controller with a bus in and a bus out."""
    c = Diagram("controller")
    sensors = c.input("sensors", bus=SENSORS)
    pick = c.add(BusSelector(["speed", "pose.v", "pose"]), "pick", bus=sensors)
    gain = c.add(Gain(2.0), "gain", u=pick["speed"])
    twice = c.add(Gain(3.0), "twice", u=pick["pose.v"])
    command = c.add(Bus(["speed", "v", "pose"]), "command", speed=gain, v=twice, pose=pick["pose"])
    c.output("command", command)
    return c


def plant(inside: Subsystem | None = None) -> Diagram:
    """Return sensors in a bus, read by a subsystem."""
    d = Diagram("plant")
    speed = d.add(Sine(1.0, 3.0, unit="rad/s"), "speed")
    torque = d.add(Constant(2.0, unit="N.m"), "load")
    pose = d.add(Bus(POSE), "pose", x=d.add(Ramp(1.0), "x"), v=d.add(Constant([1.0, 2.0]), "v"))
    sensors = d.add(Bus(SENSORS), "sensors", speed=speed, torque=torque, pose=pose)
    sub = d.add(inside or Subsystem(controller()), "sub", sensors=sensors)
    d.output("command", sub)
    return d


def test_a_bus_costs_nothing():
    """The blocks of the plan are those that compute, and each is read by its readers directly."""
    model = plant().compile()
    assert [block.path for block in model.blocks] == [
        "speed", "load", "x", "v", "sub.gain", "sub.twice",
    ]  # fmt: skip
    assert model.blocks[4].inputs[0].slot == model.signals["speed.y"].slot


def test_results_have_the_elements_under_the_name_of_the_bus():
    result = simulate(plant(), 0.01)
    for name, path in {
        "sensors.speed": "speed",
        "sensors.torque": "load",
        "sensors.pose.x": "x",
        "pose.v": "v",
        "sub.command.speed": "sub.gain",
        "command.speed": "sub.gain",
        "command.pose.v": "v",
    }.items():
        assert result[name].tobytes() == result[path].tobytes()
    with pytest.raises(
        KeyError, match=r"`sensors` was not recorded. Did you mean `sensors\.speed`"
    ):
        result["sensors"]


@pytest.mark.parametrize(
    ("record", "paths"),
    [
        (["sensors"], {"speed.y", "load.y", "x.y", "v.y"}),
        (["sensors.pose"], {"x.y", "v.y"}),
        (["sensors.pose.*"], {"x.y", "v.y"}),
        (["sensors.pose.x", "x"], {"x.y"}),
        (["command"], {"sub.gain.y", "sub.twice.y", "x.y", "v.y"}),
    ],
)
def test_a_bus_or_an_element_is_recorded_by_its_name(record, paths):
    assert set(simulate(plant(), 0.01, record=record)) == paths


def test_results_in_a_file_keep_the_names(tmp_path):
    simulate(plant(), 0.01, out=tmp_path / "run.h5")
    found = Result.from_hdf5(tmp_path / "run.h5")
    assert found["sensors.pose.x"][-1] == pytest.approx(0.01)


def test_inputs_and_outputs_of_a_diagram_are_its_elements():
    c = controller()
    model = c.compile()
    assert list(model.inputs) == [
        "sensors.speed",
        "sensors.torque",
        "sensors.pose.x",
        "sensors.pose.v",
    ]
    assert [port.unit for port in model.inputs.values()] == ["rad/s", "N.m", "m", None]
    assert list(model.outputs) == ["command.speed", "command.v", "command.pose.x", "command.pose.v"]
    result = simulate(c, 0.01, parameters={"sensors.speed": 4.0, "sensors.pose.v": [1.0, 2.0]})
    assert result["command.speed"][-1] == 8.0 and list(result["command.v"][-1]) == [3.0, 6.0]
    assert set(result) >= {"sensors.speed", "sensors.pose.x"}


def test_defaults_of_elements():
    """Those of their own win over that of the input."""
    c = Diagram("c")
    s = c.input("s", bus=[Port("a", default=3.0), "b"], default=1.0)
    pick = c.add(BusSelector(["a", "b"]), "pick", bus=s)
    c.add(Gain(1.0), "a", u=pick["a"])
    c.add(Gain(1.0), "b", u=pick["b"])
    result = simulate(c, 0.01)
    assert (result["a"][-1], result["b"][-1]) == (3.0, 1.0)
    d = Diagram("d")
    d.add(Subsystem(c), "sub")
    result = simulate(d, 0.01)
    assert (result["sub.a"][-1], result["sub.b"][-1]) == (3.0, 1.0)


def test_an_input_without_default_must_be_connected():
    c = Diagram("c")
    s = c.input("s", bus=["a"], default=None)
    c.add(Gain(1.0), "g", u=c.add(BusSelector("a"), "pick", bus=s))
    d = Diagram("d")
    d.add(Subsystem(c), "sub")
    with pytest.raises(DiagramError, match=r"input `sub\.s` is not connected"):
        d.compile()


def test_an_enumeration_without_default_has_its_first_value():
    d = Diagram("d")
    mode = Port("mode", kind="enumeration", names=("off", "run"))
    s = d.input("s", bus=[mode, "u"])
    d.output("mode", d.add(BusSelector("mode"), "pick", bus=s))
    d.add(Gain(1.0), "g", u=d.add(BusSelector("u"), "other", bus=s))
    assert simulate(d, 0.01)["s.mode"][-1] == 1.0


def test_an_element_of_an_input_is_replaced():
    c = controller()
    model = c.compile(replace={"sensors.speed": Constant(3.0, unit="rad/s")})
    assert simulate(model, 0.01)["command.speed"][-1] == 6.0
    assert "sensors.speed" not in model.inputs


def test_a_bus_of_inputs_is_an_output():
    d = Diagram("d")
    d.add(Bus(["a", "b"]), "bus", a=d.input("u"), b=d.add(Sine(), "s"))
    model = d.compile(outputs=["bus"])
    assert list(model.outputs) == ["bus.a", "bus.b"]
    assert (model.aliases["bus.a"], model.aliases["bus.b"]) == ("u", "s.y")
    assert d.compile().aliases["bus.a"] == "u"


def test_an_element_is_not_a_port():
    d = plant()
    d.add(Gain(1.0), "g")
    for source in ("sensors.speed", "sub.command.speed"):
        with pytest.raises(DiagramError, match=r"BusSelector\('speed'\)"):
            d.connect(source, "g")
    with pytest.raises(DiagramError, match=r"Take it from the bus with BusSelector\('pose.x'\)"):
        controller()["sensors"]["pose.x"]


def test_options_of_a_plain_input_do_not_go_with_a_bus():
    with pytest.raises(DiagramError, match="the input `s` is a bus: its elements have units"):
        Diagram("d").input("s", bus=["a"], unit="m")


def test_wires_by_string_and_chain():
    d = plant()
    d.add(BusSelector("pose.x"), "pick")
    d.connect("sensors", "pick")
    d.add(Gain(5.0), "five")
    d.connect("pick.pose.x", "five.u")
    d.add(BusSelector("torque"), "other")
    d.add(Gain(2.0), "two")
    d.chain("sensors", "other", "two")
    result = simulate(d, 0.01)
    assert result["five"][-1] == 5 * result["x"][-1] and result["two"][-1] == 4.0


def test_elements_that_nobody_takes_are_no_problem():
    """A subsystem declares what it reads of a larger bus."""
    c = Diagram("c")
    s = c.input("s", bus={"pose": {"x": "m"}})
    c.add(Gain(2.0), "g", u=c.add(BusSelector("pose.x"), "pick", bus=s))
    d = plant()
    d.add(Subsystem(c), "less", s="sensors")
    result = simulate(d, 0.01)
    assert result["less.g"][-1] == 2 * result["x"][-1]


def test_a_conditional_subsystem_holds_each_element():
    d = plant(Subsystem(controller(), enable=True))
    d.connect(d.add(Compare("<", 5e-3), "early", u=d.add(Ramp(1.0), "t")), "sub.enable")
    result = simulate(d, 0.01)
    held = result["sub.command.speed"]
    assert held.tobytes() == result["sub.command.speed.y"].tobytes()
    running = np.asarray(result["early"]) > 0
    assert np.array_equal(held[running], 2 * result["speed"][running])
    assert set(held[~running]) == {held[running][-1]}
    assert result["command.pose.v"].shape == (len(result.t), 2)


def test_units_kinds_and_widths_are_checked_for_each_element():
    d = Diagram("d")
    a = d.add(Constant(1.0, unit="N"), "a")
    two = d.add(Constant([1.0, 2.0]), "two")
    yes = d.add(Compare(">", 0.0), "yes", u=a)
    d.add(Bus({"speed": "rad/s", "b": None, "c": None}), "bus", speed=a, b=two, c=yes)
    with pytest.raises(DiagramError) as caught:
        d.compile()
    text = str(caught.value)
    assert "`bus.speed` expects 1 signal in rad/s, but `a.y` provides 1 signal in N." in text
    assert "`bus.b` expects 1 signal, but `two.y` provides 2 signals." in text
    assert "`bus.c` expects a real signal, but `yes.y` is boolean." in text


def test_elements_of_a_bus_are_checked_at_the_border_of_a_subsystem():
    c = Diagram("c")
    s = c.input("s", bus={"pose": {"x": "m"}})
    c.add(Gain(2.0), "g", u=c.add(BusSelector("pose.x"), "pick", bus=s))
    d = Diagram("d")
    inner = d.add(Bus(["x"]), "inner", x=d.add(Constant(1.0, unit="s"), "t"))
    outer = d.add(Bus(["pose"]), "outer", pose=inner)
    d.add(Subsystem(c), "sub", s=outer)
    with pytest.raises(DiagramError, match=r"`sub\.s\.pose\.x` expects 1 signal in m, but "
                       r"`outer\.pose\.x` \(`t\.y`\) provides 1 signal in s"):  # fmt: skip
        d.compile()


def test_an_element_with_a_unit_gives_it_to_a_signal_without():
    """A typed bus is what its readers are checked against, also where its source has no unit."""
    d = Diagram("d")
    bus = d.add(Bus({"speed": "rad/s"}), "bus", speed=d.add(Constant(1.0), "k"))
    pick = d.add(BusSelector("speed"), "pick", bus=bus)
    d.add(UnitDelay(), "g", u=pick)
    assert d.compile().signals["g.y"].unit == "rad/s"
    c = Diagram("c")
    c.add(Gain(1.0), "g", u=c.input("torque", unit="N.m"))
    d.add(Subsystem(c), "sub", torque=pick)
    with pytest.raises(DiagramError, match=r"`sub\.torque` expects 1 signal in N\.m, but "
                       r"`bus\.speed` \(`k\.y`\) provides 1 signal in rad/s"):  # fmt: skip
        d.compile()


def machine() -> StateMachine:
    """Return a machine with the states off and run."""
    made = StateMachine(inputs=["u"])
    off, run = made.state("off"), made.state("run")
    made.transition(off, run, when="u > 0")
    return made


def test_names_of_enumerations_pass_and_are_checked():
    d = Diagram("d")
    mode = d.add(machine(), "machine", u=d.add(Step(5e-3), "step"))
    right = Port("mode", kind="enumeration", names=("off", "run"))
    bus = d.add(Bus([right]), "bus", mode=mode["state"])
    d.output("out", bus)
    model = d.compile()
    assert model.outputs["out.mode"].names == ("off", "run")
    other = Port("mode", kind="enumeration", names=("idle", "run"))
    d.add(Bus([other]), "other", mode=mode["state"])
    with pytest.raises(DiagramError, match=r"`other\.mode` is an enumeration of idle, run, but "
                       r"`machine\.state` is one of off, run"):  # fmt: skip
        d.compile()


def refused(message: str, *others: str):
    """Check that a diagram does not compile, and why."""

    def check(d: Diagram) -> None:
        with pytest.raises(DiagramError) as caught:
            d.compile()
        for text in (message, *others):
            assert text in str(caught.value)

    return check


def test_a_bus_to_a_plain_input_is_refused():
    d = plant()
    d.add(Gain(1.0), "g", u="sensors")
    d.add(UnitDelay(), "delay", u="sub")
    d.add(Scope(1), "scope", inputs="pose")
    refused(
        "`g.u` takes a signal, but `sensors` is a bus. Select an element with "
        "BusSelector('speed'). Elements of `sensors`: speed, torque, pose.",
        "`delay.u` takes a signal, but `sub.command` is a bus.",
        "takes a signal, but `pose` is a bus.",
    )(d)


def test_a_switch_of_buses_is_refused():
    d = plant()
    d.add(Switch(), "switch", on_true="sensors", on_false="sensors", condition="load")
    refused("`switch.on_true` takes a signal, but `sensors` is a bus.")(d)


def test_a_signal_to_a_bus_input_is_refused():
    d = Diagram("d")
    k = d.add(Constant(1.0), "k")
    d.add(Subsystem(controller()), "sub", sensors=k)
    d.add(BusSelector("a"), "pick", bus=k)
    d.add(Bus({"pose": POSE}), "bus", pose=k)
    refused(
        "`sub.sensors` takes a bus with speed, torque, pose, but `k.y` is one signal. Group "
        "signals with Bus([…]).",
        "`pick.bus` takes a bus with a, but `k.y` is one signal.",
        "`bus.pose` takes a bus with x, v, but `k.y` is one signal.",
    )(d)


def test_missing_elements_are_named():
    d = plant()
    d.add(BusSelector(["speeed", "pose.z", "speed.x"]), "pick", bus="sensors")
    d.add(Subsystem(controller()), "again", sensors="pose")
    refused(
        "`sensors` has no element `speeed`, which `pick.bus` takes. Did you mean `speed`? "
        "Elements of `sensors`: speed, torque, pose.",
        "`sensors.pose` has no element `z`, which `pick.bus` takes. Elements of `sensors.pose`: "
        "x, v.",
        "`pick.bus` takes `speed.x`, but `sensors.speed` is one signal, not a bus.",
        "`pose` has no element `speed`, which `again.sensors` takes. Elements of `pose`: x, v.",
    )(d)


def test_a_bus_inside_a_subsystem_is_named_by_its_path():
    c = Diagram("c")
    c.add(BusSelector("speeed"), "pick", bus=c.input("sensors", bus=SENSORS))
    d = Diagram("d")
    d.add(Subsystem(c), "plant")
    refused("`plant.sensors` has no element `speeed`, which `plant.pick.bus` takes.")(d)


def test_an_element_that_is_a_bus_where_a_signal_is_declared():
    d = plant()
    d.add(Bus({"x": "m"}), "wrong", x="pose")
    d.add(Bus({"p": {"x": {"deep": None}}}), "deep", p=d.add(Bus(["x"]), "b", x="x"))
    refused(
        "`wrong.x` takes a signal, but `pose` is a bus.",
        "`deep.p.x` takes a bus with deep, but `b.x` is one signal.",
    )(d)


def test_unconnected_elements_are_named():
    d = Diagram("d")
    d.add(Bus(["a", "b"]), "bus", a=d.add(Constant(1.0), "k"))
    d.add(BusSelector("a"), "pick")
    refused(
        "input `bus.b` is not connected: d.connect(…, 'bus.b').",
        "input `pick.bus` is not connected",
    )(d)


def test_a_bus_that_contains_itself_is_refused():
    d = Diagram("d")
    d.add(Bus(["a"]), "bus")
    d.connect("bus", "bus.a")
    refused("the bus `bus.bus` contains itself.")(d)
    assert d.draw() is not None


def test_an_element_that_feeds_itself_is_refused():
    d = Diagram("d")
    bus = d.add(Bus({"a": None}), "bus")
    d.add(BusSelector("a"), "pick", bus=bus)
    d.connect("pick", "bus.a")
    d.add(Gain(1.0), "g", u="pick")
    refused("is connected to itself through a bus without a block in between")(d)


def test_feedback_through_a_bus():
    d = Diagram("d")
    x = d.add(Integrator(1.0), "x")
    bus = d.add(Bus(["x", "rate"]), "bus", x=x)
    rate = d.add(Gain(-2.0), "k", u=d.add(BusSelector("x"), "pick", bus=bus))
    d.connect(rate, "bus.rate")
    d.connect(d.add(BusSelector("rate"), "back", bus=bus), x)
    result = simulate(d, 0.5)
    assert result["bus.x"][-1] == pytest.approx(np.exp(-1.0), rel=1e-9)


def test_a_name_means_one_signal():
    """A bus that is an output may not take the name of another signal."""
    c = Diagram("c")
    c.add(Sine(), "motor")
    c.output("motor", c.add(Bus(["y"]), "bus", y=c.add(Constant(1.0), "k")))
    refused("`motor.y` is the name of two signals, one of them an element of a bus")(c)
    d = Diagram("d")
    d.add(Subsystem(c), "sub")
    refused("`sub.motor.y` is the name of two signals")(d)


def test_the_bus_of_an_output_may_have_its_name():
    c = Diagram("c")
    bus = c.add(Bus(["a"]), "out", a=c.add(Sine(), "s"))
    c.output("out", bus)
    for enabled in (False, True):
        d = Diagram("d")
        d.add(Subsystem(c, enable=enabled), "sub")
        if enabled:
            on = d.add(Compare(">", 0.0), "on", u=d.add(Constant(1.0), "k"))
            d.connect(on, "sub.enable")
        result = simulate(d, 0.01)
        assert result["sub.out.a"].tobytes() == result["sub.s"].tobytes()


def test_a_subsystem_with_buses_is_replaced_by_a_block_with_their_elements():
    """An FMU of the subsystem has such ports."""
    names = ["sensors.speed", "sensors.torque", "sensors.pose.x", "sensors.pose.v"]
    found = flatten(plant()).groups[0]
    assert [port.name for port in found.inputs] == names
    outputs = ["command.speed", "command.v", "command.pose.x", "command.pose.v"]
    assert [port.name for port in found.outputs] == outputs
    with pytest.raises(DiagramError, match=r"`sub` has the inputs sensors\.speed, sensors\.torque"):
        plant().compile(replace={"sub": Gain(1.0)})


def test_an_fmu_takes_the_place_of_a_subsystem_with_buses(tmp_path):
    path = controller().export_fmu(tmp_path / "controller.fmu", sources=False)
    fmu = Fmu(path)
    before, after = simulate(plant(), 0.05), plant().compile(replace={"sub": fmu})
    result = simulate(after, 0.05)
    assert result["command.v"][-1] == pytest.approx(before["command.v"][-1])
    assert result["sub.command.speed"][-1] == pytest.approx(before["command.speed"][-2], rel=0.02)


def test_an_fmu_has_structured_names(tmp_path):
    c = controller()
    mode = c.add(machine(), "machine", u=c.add(BusSelector("torque"), "load", bus="sensors"))
    c.output("status", c.add(Bus(["mode"]), "status", mode=mode["state"]))
    path = c.export_fmu(tmp_path / "controller.fmu", sources=False, parameters=[])
    assert validate_fmu(str(path)) == []
    described = fmpy.read_model_description(str(path))
    assert described.variableNamingConvention == "structured"
    names = {v.name: v for v in described.modelVariables}
    assert list(names) == [
        "sensors.speed", "sensors.torque", "sensors.pose.x",
        "sensors.pose.v[0]", "sensors.pose.v[1]",
        "command.speed", "command.v[0]", "command.v[1]",
        "command.pose.x", "command.pose.v[0]", "command.pose.v[1]", "status.mode",
    ]  # fmt: skip
    assert names["sensors.speed"].unit == "rad/s" and names["sensors.pose.x"].unit == "m"
    assert [item.name for item in names["status.mode"].declaredType.items] == ["off", "run"]
    result = fmpy.simulate_fmu(
        str(path), stop_time=0.01, start_values={"sensors.speed": 2.5}, output=["command.speed"]
    )
    assert result["command.speed"][-1] == 5.0


def test_an_fmu_takes_a_bus_as_inputs_and_outputs_by_name(tmp_path):
    path = plant().export_fmu(tmp_path / "p.fmu", outputs=["sensors"], sources=False, parameters=[])
    names = [v.name for v in fmpy.read_model_description(str(path)).modelVariables]
    assert {"sensors.speed", "sensors.pose.x", "command.speed"} <= set(names)
    path = controller().export_fmu(tmp_path / "c.fmu", inputs=["sensors"], sources=False)
    names = [v.name for v in fmpy.read_model_description(str(path)).modelVariables]
    assert "sensors.pose.x" in names


def test_a_bus_is_linearized_by_its_elements():
    d = Diagram("d")
    u = d.input("u", bus={"force": "N", "other": None})
    force = d.add(BusSelector("force"), "pick", bus=u)
    x = d.add(Integrator(0.0), "x", u=d.add(Expression("f - 3*x", inputs=["f", "x"]), "f", f=force))
    d.connect(x, "f.x")
    d.output("y", d.add(Bus(["x"]), "state", x=x))
    linear = linearize(d, inputs=["u.force", "u.other"], outputs=["state.x"])
    assert np.allclose(linear.A, [[-3.0]]) and np.allclose(linear.B, [[1.0, 0.0]])
    assert np.allclose(linear.C, [[1.0]])


def test_a_sweep_reads_elements():
    cases = {"load.value": [1.0, 2.0, 3.0]}
    found = sweep(plant(), 0.01, cases, lambda result: float(result["sensors.torque"][-1]))
    assert [value for _, value in found] == [1.0, 2.0, 3.0]


def test_a_rig_names_elements():
    """A device takes over an element, for every reader, and reads another."""
    device = {"driver": "loopback", "receive": {"n": {}}, "send": {"t": {"safe": 0}}}
    table = {
        "devices": {"board": device},
        "signals": {
            "sensors.speed": "board.n",
            "command.speed": "board.t",
        },
    }
    with open_binding(plant(), table) as bound:
        assert bound.plan.aliases["sensors.speed"] == "speed.y"
        assert "speed.y_simulated" in bound.plan.signals
        gain = next(block for block in bound.plan.blocks if block.path == "sub.gain")
        assert gain.inputs[0].slot == bound.plan.signals["speed.y"].slot


def test_a_rig_binds_a_subsystem_by_its_elements():
    receive: dict[str, Any] = {f"command.{n}": {} for n in ("speed", "pose.x")}
    receive |= {f"command.{n}": {"width": 2} for n in ("v", "pose.v")}
    send: dict[str, Any] = {f"sensors.{n}": {"safe": 0} for n in ("speed", "torque", "pose.x")}
    send["sensors.pose.v"] = {"safe": 0, "width": 2}
    send["again"] = {"safe": 0}
    units = {"speed": "rad/s", "torque": "N.m", "pose.x": "m"}
    for name, unit in units.items():
        send[f"sensors.{name}"]["unit"] = unit
    receive["command.speed"]["unit"] = "rad/s"
    receive["command.pose.x"]["unit"] = "m"
    table = {
        "devices": {"board": {"driver": "loopback", "receive": receive, "send": send}},
        "blocks": {"sub": {"device": "board"}},
        "signals": {"sensors.torque": "board.again"},
    }
    with open_binding(plant(), table) as bound:
        assert "sub.command.pose.x" in bound.plan.signals
        assert not any(block.path.startswith("sub.") for block in bound.plan.blocks)


def test_a_real_time_run_is_replayed(tmp_path):
    result = run_realtime(plant(), 0.05, out=tmp_path / "log.h5").wait()
    again = replay(tmp_path / "log.h5", plant())
    assert result["sensors.speed"].tobytes() == again["sensors.speed"].tobytes()
    assert result["command.speed"].tobytes() == (2 * result["sensors.speed"]).tobytes()


def test_a_running_model_is_read_and_overridden_by_element():
    with run_realtime(plant()) as run:
        run.override("sensors.torque", 7.0)
        time.sleep(0.05)
        result = run.stop()
    assert result["sensors.torque"][-1] == result["load"][-1] == 7.0


def test_an_asynchronous_diagram_has_a_port_for_each_element():
    block = Asynchronous(controller(), period=2e-3)
    assert "sensors.pose.x" in block.input_index and "command.pose.v" in block.output_index


def test_one_diagram_at_several_places():
    d = plant()
    shared = controller()
    d.add(Subsystem(shared), "one", sensors="sensors")
    d.add(Subsystem(shared), "two", sensors="sensors")
    result = simulate(d, 0.01)
    assert result["one.command.speed"].tobytes() == result["two.command.speed"].tobytes()


def test_a_subsystem_that_only_passes_a_bus_on():
    c = Diagram("c")
    c.output("out", c.input("in", bus=SENSORS))
    d = plant()
    d.add(Subsystem(c), "through", inputs={"in": "sensors"})
    d.add(Gain(1.0), "g", u=d.add(BusSelector("pose.x"), "pick", bus="through"))
    result = simulate(d, 0.01)
    assert result["g"].tobytes() == result["x"].tobytes() == result["through.out.pose.x"].tobytes()


def test_a_bus_is_drawn_as_one_double_wire():
    picture = arrange(plant())
    wires = {(wire.source, wire.target): wire for wire in picture.wires}
    bus = wires["sensors.bus", "sub.sensors"]
    assert bus.is_bus and bus.width == 5
    assert wires["pose.bus", "sensors.pose"].is_bus
    assert not wires["sub.pick.pose.v", "sub.twice.u"].is_bus
    assert wires["sub.pick.pose.v", "sub.twice.u"].width == 2
    assert wires["speed.y", "sensors.speed"].rate == "continuous"
    # A line in the color of its rate, and a thinner one in that of the paper upon it.
    lines = re.findall(
        r'<polyline points="([^"]*)".*stroke-width="([^"]*)"', write_svg(finish(picture))
    )
    double = [points for points, width in lines if width == "3.4"]
    assert len(double) == sum(wire.is_bus for wire in picture.wires)
    assert {(points, "1.1") for points in double} <= set(lines)


class Wired:
    """A random chain of subsystems, wired with buses or signal by signal."""

    def __init__(self, seed: int, buses: bool) -> None:
        self.random, self.buses = random.Random(seed), buses
        self.kind = self.make_type(0)
        self.signals = [path for path, _ in self.kind.list_signals()]

    def make_type(self, depth: int) -> BusType:
        names = self.random.sample("abcdef", self.random.randint(1, 3))
        elements = {}
        for name in names:
            deeper = depth < 2 and self.random.random() < 0.4
            width = self.random.choice([1, 1, 2])
            elements[name] = self.make_type(depth + 1) if deeper else Port(name, width=width)
        return BusType(elements)

    def group(self, d: Diagram, name: str, kind: BusType, wires: dict, typed: bool):
        """Return a bus of some signals, by their paths in it."""
        found = {}
        for element, what in kind.items():
            if isinstance(what, BusType):
                inside = {
                    p.partition(".")[2]: w
                    for p, w in wires.items()
                    if p.partition(".")[0] == element
                }
                found[element] = self.group(d, f"{name}_{element}", what, inside, typed)
            else:
                found[element] = wires[element]
        return d.add(Bus(kind if typed else list(kind)), name, inputs=found)

    def select(self, d: Diagram, name: str, kind: BusType, bus, nested: bool) -> dict:
        """Return the signals of a bus, in one step or level by level."""
        if not nested:
            pick = d.add(BusSelector([p for p, _ in kind.list_signals()]), name, bus=bus)
            return {p: pick[p] for p, _ in kind.list_signals()}
        pick = d.add(BusSelector(list(kind)), name, bus=bus)
        found: dict[str, Any] = {}
        for element, what in kind.items():
            if isinstance(what, BusType):
                inside = self.select(d, f"{name}_{element}", what, pick[element], nested)
                found |= {f"{element}.{p}": w for p, w in inside.items()}
            else:
                found[element] = pick[element]
        return found

    def stage(self, depth: int) -> Diagram:
        """Return a subsystem that changes some signals, and may have another one inside."""
        draw = self.random.random
        nested, typed, inner = draw() < 0.5, draw() < 0.5, depth < 2 and draw() < 0.5
        c = Diagram("stage")
        if self.buses:
            taken = c.input("bus", bus=self.kind)
            wires = self.select(c, "pick", self.kind, taken, nested)
        else:
            wires = {p: c.input(p.replace(".", "_"), width=self.width(p)) for p in self.signals}
        for n, path in enumerate(self.signals):
            what = self.random.choice(["", "gain", "delay", "integrator"])
            if what or n == 0:
                wires[path] = c.add(self.block(what, path), f"block{n}", u=wires[path])
        if inner:
            wires = self.connect(c, "inner", wires, depth + 1)
        if self.buses:
            c.output("bus", self.group(c, "out", self.kind, wires, typed))
        else:
            for path, wire in wires.items():
                c.output(path.replace(".", "_"), wire)
        return c

    def block(self, what: str, path: str) -> AbstractBlock:
        if what == "delay":
            return UnitDelay()
        if what == "integrator":
            return Integrator([0.5] * self.width(path))
        return Gain(self.random.uniform(-2, 2))

    def width(self, path: str) -> int:
        width = dict(self.kind.list_signals())[path].width
        assert isinstance(width, int)
        return width

    def connect(self, d: Diagram, name: str, wires: dict, depth: int) -> dict:
        """Put a stage behind some signals; return those behind it."""
        draw = self.random.random
        enabled, nested, typed = draw() < 0.3, draw() < 0.5, draw() < 0.5
        sub = Subsystem(self.stage(depth), enable=enabled)
        if self.buses:
            d.add(sub, name, bus=self.group(d, f"{name}_in", self.kind, wires, typed))
        else:
            d.add(sub, name, inputs={p.replace(".", "_"): w for p, w in wires.items()})
        if enabled:
            t = d.add(Sine(1.0, 200.0), f"{name}_t")
            d.connect(d.add(Compare(">", 0.3), f"{name}_on", u=t), sub["enable"])
        if self.buses:
            return self.select(d, f"{name}_out", self.kind, sub["bus"], nested)
        return {p: sub[p.replace(".", "_")] for p in self.signals}

    def build(self) -> Diagram:
        d = Diagram("random")
        wires = {}
        for n, path in enumerate(self.signals):
            width = self.width(path)
            wires[path] = d.add(
                Sine([float(n + 1)] * width, [3.0 + k for k in range(width)]), f"source{n}"
            )
        for n in range(self.random.randint(1, 3)):
            wires = self.connect(d, f"stage{n}", wires, 0)
        for n, path in enumerate(self.signals):
            d.add(Gain(1.0), f"sink{n}", u=wires[path])
        return d


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_random_buses_give_the_bits_of_the_same_diagram_without(seed):
    with_buses, without = Wired(seed, True).build(), Wired(seed, False).build()
    one, other = simulate(with_buses, 0.05), simulate(without, 0.05)
    held = {p for p in other if p.endswith(".y") and p not in one}  # names of held outputs differ
    assert len(one) == len(other)
    for path in set(other) - held:
        assert one[path].tobytes() == other[path].tobytes()
    for n in range(sum(name.startswith("sink") for name in without)):
        assert f"sink{n}.y" in one
