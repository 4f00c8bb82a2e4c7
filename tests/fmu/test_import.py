"""FMUs as blocks: ours against the native diagram, and one that misbehaves on demand."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from specimen import TROUBLE, description, make_exchange, make_fmi3, make_specimen

import biella
from biella import (
    BiellaError,
    BlockError,
    Diagram,
    DiagramError,
    Fmu,
    linearize,
    run_realtime,
    simulate,
)
from biella.blocks import (
    Constant,
    Convert,
    Gain,
    Integrator,
    Mux,
    Pendulum,
    Pulse,
    Sine,
    Step,
    Sum,
    UnitDelay,
)
from biella.errors import BiellaWarning, FmuError
from biella.scheduler.compile.subsystem import Subsystem
from biella.scheduler.engine.engine import Instance

pytestmark = pytest.mark.engine

BACKENDS: list[dict[str, Any]] = [{}, {"isolate": True}, {"backend": "fmpy"}]
IDS = ["engine", "isolated", "fmpy"]


@pytest.fixture(scope="module")
def specimen(tmp_path_factory):
    return make_specimen(tmp_path_factory.mktemp("specimen") / "specimen.fmu")


@pytest.fixture(autouse=True)
def no_folder_is_left(tmp_path, monkeypatch):
    """Every test unpacks below a folder of its own, which must be empty afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield
    assert list(tmp_path.glob("biella-fmu-*")) == []


def alone(path, until=0.1, step=0.01, **options):
    """Run a specimen with its inputs at their starts."""
    d = Diagram("alone", step=step)
    d.add(Fmu(path, **options), name="f")
    return simulate(d, until)


def plant():
    d = Diagram("plant", step=1e-3)
    torque = d.input("torque", unit="N.m")
    pendulum = d.add(Pendulum(angle=0.2, damping=0.1), name="pendulum")
    d.connect(torque, pendulum)
    d.output("angle", pendulum["angle"])
    return d


def controller():
    d = Diagram("controller", step=1e-3)
    angle = d.input("angle", unit="rad")
    p = d.add(Gain(-3.0, unit="N.m"), name="p", period=0.01)
    delay = d.add(UnitDelay(), name="delay", period=0.01)
    d.connect(angle, p)
    d.connect(p, delay)
    d.output("torque", delay)
    return d


def native():
    d = Diagram("native", step=1e-3)
    pendulum = d.add(Pendulum(angle=0.2, damping=0.1), name="pendulum")
    p = d.add(Gain(-3.0, unit="N.m"), name="p", period=0.01)
    delay = d.add(UnitDelay(), name="delay", period=0.01)
    d.connect(pendulum["angle"], p)
    d.connect(p, delay)
    d.connect(delay, pendulum)
    return d


# -- our own FMUs


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_a_loop_of_two_fmus_gives_the_bits_of_the_native_diagram(tmp_path, options):
    paths = [d.export_fmu(tmp_path / f"{d.name}.fmu") for d in (plant(), controller())]
    d = Diagram("split", step=1e-3)
    a, b = d.add(Fmu(paths[0], **options), name="a"), d.add(Fmu(paths[1], **options), name="b")
    d.connect(a["angle"], b["angle"])
    d.connect(b["torque"], a["torque"])
    split, whole = simulate(d, 0.5), simulate(native(), 0.5)
    assert np.array_equal(split["a.angle"], whole["pendulum.angle"])
    assert np.array_equal(split["b.torque"], whole["delay"])


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


def test_two_instances_of_one_file_have_their_own_parameters(tmp_path):
    path = plant().export_fmu(tmp_path / "plant.fmu")
    d = Diagram("two", step=1e-3)
    d.add(Fmu(path), name="a")
    d.add(Fmu(path, parameters={"pendulum.initial_angle": 1.0}), name="b")
    result = simulate(d, 0.2, parameters={"a.pendulum.initial_angle": 0.7})
    assert result["a.angle"][0] == 0.7 and result["b.angle"][0] == 1.0
    alone_ = simulate(plant(), 0.2, parameters={"pendulum.initial_angle": 0.7})
    assert np.array_equal(result["a.angle"], alone_["pendulum.angle"])


def test_an_fmu_runs_at_its_period_and_is_held_in_between(tmp_path):
    path = plant().export_fmu(tmp_path / "plant.fmu")
    d = Diagram("slow", step=1e-3)
    d.add(Fmu(path, period=5e-3), name="f")
    result = simulate(d, 0.1)
    whole = simulate(plant(), 0.1)
    assert np.array_equal(result["f.angle"], np.repeat(whole["pendulum.angle"][::5], 5)[:101])


def test_a_run_continues_from_its_checkpoint_with_the_same_bits(tmp_path):
    path = plant().export_fmu(tmp_path / "plant.fmu")
    for options in BACKENDS:
        d = Diagram("outer", step=1e-3)
        f = d.add(Fmu(path, **options), name="f")
        d.connect(d.add(Sine(0.3, 5.0, unit="N.m"), name="s"), f)
        whole = simulate(d, 0.3)
        half = simulate(d, 0.1, keep_state=True)
        rest = simulate(d, 0.3, checkpoint=half.checkpoint)
        assert np.array_equal(rest["f.angle"], whole["f.angle"][100:])


def test_algebraic_loops_through_fmus_are_solved_from_the_first_tick(tmp_path):
    """y = 2 (1 - y / 4): 4/3, with the FMU still in initialization mode at the first tick."""
    d = Diagram("double", step=1e-3)
    d.output("y", d.add(Gain(2.0), name="g"))
    d.connect(d.input("u"), "g")
    path = d.export_fmu(tmp_path / "double.fmu")
    loop = Diagram("loop", step=1e-3)
    f = loop.add(Fmu(path), name="f")
    k = loop.add(Gain(0.25), name="k")
    e = loop.add(Sum("+-"), name="e")
    loop.connect(loop.add(Constant(1.0), name="one"), e["u1"])
    loop.connect(f, k)
    loop.connect(k, e["u2"])
    loop.connect(e, f)
    assert simulate(loop, 0.01)["f"] == pytest.approx(np.full(11, 4 / 3), abs=1e-12)


# -- all types, and what is set when


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


def test_backends_agree_to_the_last_bit(specimen):
    runs = []
    for options in BACKENDS:
        d = Diagram("same", step=0.01)
        f = d.add(Fmu(specimen, **options), name="f")
        d.connect(d.add(Sine(1.0, 3.0, unit="m"), name="u"), f["u"])
        runs.append(simulate(d, 0.5)["f.y"])
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])


def test_fmpy_itself_gives_the_same_trajectory(specimen):
    outside = fmpy.simulate_fmu(
        str(specimen), stop_time=0.1, output_interval=0.01, output=["y", "s"]
    )
    inside = alone(specimen)
    assert np.allclose(outside["y"], inside["f.y"], rtol=0, atol=1e-15)


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_a_tunable_parameter_changes_during_a_run(specimen, options):
    d = Diagram("tune", step=0.01)
    d.add(Fmu(specimen, **options), name="f")
    with d.compile().instantiate() as instance:
        assert instance.get("f.y") == 1.0
        instance.set("f.k", 4.0)
        assert instance.get("f.y") == 2.0
        instance.run(1)
        instance.set("f.k", 1.0)
        assert instance.get("f.y") == 0.5 + 0.005


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


def test_the_life_of_an_instance(specimen, tmp_path):
    diary = tmp_path / "diary"
    alone(specimen, 0.02, tolerance=1e-4, parameters={"diary": str(diary)})
    assert diary.read_text().split("\n") == [
        "instantiate", "setup 1 0.0001 0 0", "enter", "exit", "terminate", "free", "",
    ]  # fmt: skip
    diary.unlink()
    with_log = Diagram("logged", step=0.01, start_time=5.0)
    with_log.add(Fmu(specimen, logging=["one", "two"], parameters={"diary": str(diary)}), name="f")
    with Instance(with_log.compile()) as instance:
        instance.initialize()
        instance.evaluate()
        instance.initialize()
    assert diary.read_text().split("\n") == [
        "instantiate", "one", "two", "setup 0 0 5 0", "enter", "exit", "terminate", "free",
        "instantiate", "one", "two", "setup 0 0 5 0", "enter", "free", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parameters": {"kk": 1}}, "has no variable `kk`. Did you mean `k`"),
        ({"parameters": {"n": 2.5}}, "`n` is Integer, and 2.5 is not whole"),
        ({"parameters": {"diary": 3}}, "`diary` of specimen.fmu is a String"),
        ({"parameters": {"k": "much"}}, "`k` is Real"),
        ({"parameters": {"y": 1.0}}, "`y` of specimen.fmu cannot be set before a run"),
        ({"parameters": {"w": [1.0]}}, "`w` has 2 values, got 1"),
        ({"inputs": ["v"]}, "has no input `v`"),
        ({"outputs": ["z"]}, "has no output `z`.*Outputs: y, m, c, s"),
        ({"substeps": 0}, "`substeps` is a whole number"),
        ({"period": -1.0}, "a period must be positive"),
        ({"backend": "dymola"}, "`backend` is one of"),
        ({"timeout": 1.0}, "a timeout needs isolate=True"),
        ({"isolate": True, "backend": "fmpy"}, "isolate=True goes with backend='engine'"),
    ],
)
def test_wrong_arguments_are_explained(specimen, given, message):
    with pytest.raises(BiellaError, match=message):
        Fmu(specimen, **given)


# -- FMUs that fail


def fail(specimen, trouble, tmp_path, **options):
    """Run a specimen into trouble at 0.05 s beside a healthy one; return error and diaries."""
    d = Diagram("trouble", step=0.01)
    diaries = [tmp_path / "bad", tmp_path / "good"]
    bad = {"trouble": TROUBLE[trouble], "at": 0.05, "diary": str(diaries[0])}
    d.add(Fmu(specimen, instance_name="culprit", parameters=bad, **options), name="bad")
    d.add(Fmu(specimen, parameters={"diary": str(diaries[1])}), name="good")
    with pytest.raises(BlockError) as caught:
        simulate(d, 0.1)
    texts = [path.read_text().split()[-2:] if path.exists() else [] for path in diaries]
    return caught.value, *texts


@pytest.mark.parametrize(
    ("trouble", "message", "end"),
    [
        (
            "error",
            r"`bad` \(EngineFmu\) stopped the run at t = 0.05 s \(tick 5\): FMU `specimen.fmu` "
            r"\(instance `culprit`\): fmi2DoStep returned fmi2Error at t = 0.05; its last messages:"
            r" \[fmi2Error, error\] x = 0.02",
            ["exit", "free"],
        ),
        (
            "discard",
            "fmi2DoStep returned fmi2Discard at t = 0.05 and did not say why; logging=True asks",
            ["terminate", "free"],
        ),
        ("fatal", "fmi2DoStep returned fmi2Fatal", ["enter", "exit"]),
        ("get_error", "fmi2GetReal returned fmi2Error", ["exit", "free"]),
        ("pending", "fmi2Pending at t = 0.05, though", ["exit", "free"]),
    ],
)
def test_a_failure_names_the_fmu_and_keeps_the_rest(specimen, tmp_path, trouble, message, end):
    error, bad, good = fail(specimen, trouble, tmp_path)
    assert error.path == "bad" and error.tick == 5
    with pytest.raises(BlockError, match=message):
        raise error
    assert error.result.t[-1] == pytest.approx(0.05 if trouble != "get_error" else 0.04)
    assert bad == end
    assert good == ["terminate", "free"]


@pytest.mark.parametrize("options", BACKENDS[:2], ids=IDS[:2])
def test_an_fmu_may_end_the_run_without_error(specimen, options):
    result = alone(specimen, parameters={"trouble": TROUBLE["terminated"], "at": 0.05}, **options)
    assert "`f` at t = 0.05 s: FMU `specimen.fmu`" in result.info["stopped"]
    assert "it ended the simulation" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.05)


def test_messages_are_formatted_and_percent_signs_do_no_harm(specimen, tmp_path):
    error, *_ = fail(specimen, "chatter", tmp_path)
    text = str(error)
    for line in (
        "[fmi2Warning, warning] load is 100%;",
        "[fmi2Warning, warning] 100%n of 5%hhn;",
        "[fmi2Warning] valve 7 at 12.50 %, state open;",
        "[fmi2Warning, warning] two lines",
    ):
        assert line in text


def test_only_the_last_messages_are_kept(specimen):
    d = Diagram("many", step=0.01)
    chatter = {"trouble": TROUBLE["chatter"], "at": 0.0}
    d.add(Fmu(specimen, parameters=chatter), name="f")
    with Instance(d.compile()) as instance:
        for _ in range(10):
            instance.initialize()
            with pytest.raises(BlockError):
                instance.run(1)
        attached: Any = instance.external[0]
        assert len(attached.messages) == 4


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("segfault", "the FMU `specimen.fmu` crashed: its process was ended by SIGSEGV"),
        ("abort", "its process was ended by SIGABRT"),
        ("exit", "ended its own process with exit code 3"),
        ("hang", "did not answer within 1 s, so its process was ended"),
        ("error", "fmi2DoStep returned fmi2Error at t = 0.05; its last messages"),
    ],
)
def test_an_isolated_fmu_cannot_take_the_run_with_it(specimen, tmp_path, trouble, message):
    timeout = 1.0 if trouble == "hang" else None
    error, _, good = fail(specimen, trouble, tmp_path, isolate=True, timeout=timeout)
    with pytest.raises(BlockError, match=message):
        raise error
    assert error.result.t[-1] == pytest.approx(0.05)
    assert error.result["bad.y"][0] == 1.0
    assert good == ["terminate", "free"]


def test_an_isolated_fmu_that_crashed_is_still_reported_afterwards(specimen):
    d = Diagram("trouble", step=0.01)
    trouble = {"trouble": TROUBLE["segfault"], "at": 0.05}
    d.add(Fmu(specimen, parameters=trouble, isolate=True), name="bad")
    with d.compile().instantiate() as instance:
        for _ in range(2):
            with pytest.raises(BlockError, match="its process was ended by SIGSEGV"):
                instance.run(20)


def test_an_fmu_that_gives_no_instance(specimen, tmp_path):
    xml = description().replace("{specimen}", "{other}")
    path = make_specimen(tmp_path / "other.fmu", xml=xml)
    with pytest.raises(BlockError, match=r"fmi2Instantiate gave no instance; its last messages: "):
        alone(path)


# -- saved states


def test_states_are_kept_in_slots_and_as_bytes(specimen):
    d = Diagram("states", step=0.01)
    d.add(Fmu(specimen), name="f")
    with d.compile().instantiate() as instance:
        kept = [instance.save()]
        instance.run(5)
        kept.append(instance.save())
        values = [instance.get("f.y")]
        instance.run(5)
        values.append(instance.get("f.y"))
        instance.restore(kept[1])
        assert instance.get("f.y") == values[0]
        instance.run(5)
        assert instance.get("f.y") == values[1]
        instance.restore(kept[0])  # in initialization mode
        assert instance.time == 0.0 and instance.get("f.y") == 1.0
        instance.run(10)
        assert instance.get("f.y") == values[1]


def test_inputs_are_set_again_after_a_state_was_put_back(specimen):
    """The state that comes back holds old inputs: what was set since then must be set again."""
    d = Diagram("inputs", step=0.01)
    f = d.add(Fmu(specimen), name="f")
    d.connect(d.input("w", width=2), f["w"])
    d.connect(d.input("u", unit="m"), f["u"])
    with d.compile().instantiate() as instance:
        instance.run(1)
        kept = instance.save()
        for _ in range(2):
            instance.restore(kept)
            instance.set("w", [1.0, 0.0])
            instance.set("u", 3.0)
            assert instance.get("f.y") == 6.0
            instance.run(1)
            assert instance.get("f.s") == 0.01


def test_a_parameter_is_set_again_after_a_state_was_put_back(specimen):
    """The state was saved between a change of `k` and the outputs that tell the FMU of it."""
    d = Diagram("tune", step=0.01)
    d.add(Fmu(specimen), name="f")
    with d.compile().instantiate() as instance:
        instance.run(1)
        instance.set("f.k", 4.0)
        kept, values = instance.save(), []
        for _ in range(2):
            values.append(instance.get("f.y"))
            instance.restore(kept)
        assert values == [2.005, 2.005]


def test_an_output_that_lists_no_dependencies_depends_on_every_input(tmp_path):
    xml = description().replace('<Unknown index="2" dependencies="1"/>', '<Unknown index="2"/>')
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    assert Fmu(path).feedthrough == ((0, 1, 2, 3), (1,), (2,), (), ())


def test_a_state_that_cannot_be_serialized_is_good_for_its_run_only(tmp_path):
    path = make_specimen(tmp_path / "s.fmu", xml=description('canGetAndSetFMUstate="true"'))
    d = Diagram("states", step=0.01)
    d.add(Fmu(path), name="f")
    with d.compile().instantiate() as instance, d.compile().instantiate() as other:
        instance.run(5)
        kept, first = instance.save(), instance.get("f.y")
        instance.run(5)
        instance.restore(kept)
        assert instance.get("f.y") == first
        other.save()
        with pytest.raises(BiellaError, match="good only for the run that it was saved in"):
            other.restore(kept)
        instance.reset()
        instance.save()  # also the first of its run
        with pytest.raises(BiellaError, match="good only for the run that it was saved in"):
            instance.restore(kept)
    result = simulate(d, 0.1, keep_state=True)
    with pytest.raises(BiellaError, match=r"cannot be continued .* the FMU `s.fmu` cannot seri"):
        simulate(d, 0.2, checkpoint=result.checkpoint)


def test_an_fmu_without_states_is_named(tmp_path):
    path = make_specimen(tmp_path / "s.fmu", xml=description(""), flags=("-DWITHOUT_STATES",))
    d = Diagram("states", step=0.01)
    assert not d.add(Fmu(path), name="f").can_roll_back
    with d.compile().instantiate() as instance:
        instance.run(3)
        with pytest.raises(BiellaError, match=r"`s.fmu` .*: it cannot save its state"):
            instance.save()
    assert simulate(d, 0.1)["f.y"][-1] > 1.0


# -- where external FMUs cannot go


def test_foreign_fmus_are_refused_by_name(specimen, tmp_path):
    d = Diagram("outer", step=0.01)
    f = d.add(Fmu(specimen), name="f")
    d.output("y", f["y"])
    d.connect(d.input("u", unit="m"), f["u"])
    named = r"`f` \(the FMU `specimen.fmu`\)"
    with pytest.raises(
        DiagramError,
        match=r"`f` \(Fmu\('specimen.fmu'\)\) cannot leave in an FMU: it is an external",
    ):
        d.export_fmu(tmp_path / "outer.fmu")
    with pytest.raises(BiellaError, match=f"{named} cannot be linearized"):
        linearize(d, period=0.01)
    with pytest.raises(BiellaError, match=f"cannot be saved with {named}"):
        d.compile().save(tmp_path / "outer.plan")
    assert not (tmp_path / "outer.fmu").exists()


def test_time_cannot_stand_still_for_an_fmu(specimen):
    inner = Diagram("inner", step=0.01)
    inner.add(Fmu(specimen), name="f")
    d = Diagram("outer", step=0.01)
    s = d.add(Subsystem(inner, enable=True), name="s")
    d.connect(d.add(Constant(1.0), name="on"), s["enable"])
    with pytest.raises(DiagramError, match=r"`s.f` is the FMU .* `s` is conditional"):
        d.compile()


def test_a_plan_alone_does_not_run(specimen):
    d = Diagram("outer", step=0.01)
    d.add(Fmu(specimen), name="f")
    plan = d.compile()
    with pytest.raises(BlockError, match="no FMU is attached to this block"):
        biella.Plan(plan.data, {}).instantiate()


# -- binaries that cannot be loaded


def test_a_missing_function_is_named(tmp_path):
    path = make_specimen(tmp_path / "s.fmu", flags=("-DWITHOUT_STATES",))
    with pytest.raises(
        FmuError, match=r"FMU `s.fmu`: its binary has no function fmi2GetFMUstate, "
    ):
        alone(path)


def test_a_binary_of_another_version_is_refused(tmp_path):
    path = make_specimen(tmp_path / "s.fmu", flags=('-DVERSION="1.0"',))
    with pytest.raises(FmuError, match=r"its binary says that it is FMI 1.0"):
        alone(path)


def test_a_binary_that_is_none_is_refused(tmp_path):
    from biella.fmu.importer.archive import platform_folder

    path = make_specimen(
        tmp_path / "s.fmu", extra={f"binaries/{platform_folder()}/specimen.so": b"not a library"}
    )
    with pytest.raises(FmuError, match=r"FMU `s.fmu`: its binary cannot be loaded: "):
        alone(path)


def test_an_fmu_that_can_be_instantiated_once_says_so(tmp_path):
    xml = description('canBeInstantiatedOnlyOncePerProcess="true"')
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    d = Diagram("two", step=0.01)
    d.add(Fmu(path), name="a")
    d.add(Fmu(path), name="b")
    with pytest.raises(FmuError, match=r"only once in a process, .* Use isolate=True"):
        simulate(d, 0.1)
    d = Diagram("two", step=0.01)
    d.add(Fmu(path), name="a")
    d.add(Fmu(path, isolate=True), name="b")
    result = simulate(d, 0.1)
    assert np.array_equal(result["a.y"], result["b.y"])


# -- packages that may be absent


def test_without_fmpy_the_message_says_what_to_install(specimen):
    code = f"""
import sys
sys.modules["fmpy"] = None
import biella
try:
    biella.Fmu({str(specimen)!r})
except biella.BiellaError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs FMPy: install it with `pip install fmpy`" in done.stdout


def test_importing_biella_imports_neither_fmpy_nor_the_importer():
    code = "import sys, biella; print([m for m in sys.modules if 'fmpy' in m or 'importer' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert "Fmu" in biella.__all__ and callable(biella.Fmu)


def test_without_pyfmi_the_message_says_where_it_is(specimen, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyfmi", None)
    with pytest.raises(FmuError, match=r"needs PyFMI, which is not installed.*conda-forge"):
        Fmu(specimen, backend="pyfmi")


def test_what_only_fmpy_runs_is_said(tmp_path):
    xml = description(version="3.0")
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    with pytest.raises(FmuError):
        Fmu(path)
    exchange = description().replace("<CoSimulation", "<ModelExchange")
    path = make_specimen(tmp_path / "e.fmu", xml=exchange)
    with pytest.raises(FmuError, match=r"e.fmu is for model exchange only.*backend='fmpy'"):
        Fmu(path)


def test_integrators_beside_an_fmu_agree_with_a_closed_form(specimen):
    """x' = u - x in forward steps of h: x_n = u (1 - (1 - h)^n); y - 2u is x."""
    d = Diagram("both", step=0.01)
    f = d.add(Fmu(specimen), name="f")
    i = d.add(Integrator(), name="i")
    d.connect(f["y"], i)
    r = simulate(d, 1.0)
    n = np.arange(101)
    assert r["f.y"] == pytest.approx(1.0 + 0.5 * (1 - 0.99**n), abs=1e-13)
    assert r["i"][-1] == pytest.approx(np.sum(r["f.y"][:-1]) * 0.01, abs=1e-12)


def test_names_of_files_with_odd_characters(tmp_path):
    folder = tmp_path / "a b%20ü#"
    folder.mkdir()
    assert alone(make_specimen(folder / "sp é.fmu"))["f.y"][-1] > 1.0
    assert Path(folder / "sp é.fmu").exists()


def test_model_exchange_through_fmpy_follows_the_closed_form(tmp_path):
    """x' = u - x with u = 0, then 2 from t = 1; x jumps up by 1 at 0.25 and where it falls to 0.6.

    x = e^-t, then (1 + e^0.25) e^-t, which is 0.6 at t1 = ln((1 + e^0.25) / 0.6) > 1, so the step
    of u comes first. With a second run at u = 0 the state event comes at t1.
    """
    path = make_exchange(tmp_path / "exchange.fmu")
    d = Diagram("exchange", step=0.01)
    f = d.add(Fmu(path, backend="fmpy", tolerance=1e-9), name="f")
    d.connect(d.add(Step(at=1.0, to=2.0), name="u"), f)
    r = simulate(d, 2.0)
    grown = 1 + np.exp(0.25)
    exact = np.where(r.t < 0.2499, np.exp(-r.t), grown * np.exp(-r.t))
    after = 2 + (grown * np.exp(-1.0) - 2) * np.exp(1.0 - r.t)
    exact = np.where(r.t <= 1.0, exact, after)
    assert r["f.x"] == pytest.approx(exact, abs=1e-6)
    assert set(r["f.count"]) == {0.0}

    d = Diagram("exchange", step=0.01)
    d.add(Fmu(path, backend="fmpy", tolerance=1e-9), name="f")
    r = simulate(d, 2.0)
    first = np.log(grown / 0.6)
    assert r["f.count"][-1] == 2.0
    assert r["f.x"][-1] == pytest.approx(1.6 * np.exp(first - 2.0), abs=1e-6)
    assert np.all(r["f.count"][r.t < first] == 0.0)


# -- what an FMU must not do to the run, and what a run must tell it


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_an_fmu_that_keeps_a_step_only_if_it_is_final_moves(tmp_path, options):
    """In 0.1 it was told of every step that it might be taken back."""
    path = make_specimen(tmp_path / "s.fmu", flags=("-DCOMMITS",))
    r = alone(path, 0.5, **options)
    assert r["f.y"] == pytest.approx(1.0 + 0.5 * (1 - 0.99 ** np.arange(51)), abs=1e-13)


def test_after_a_state_was_handed_out_steps_may_be_taken_back(tmp_path):
    diary = tmp_path / "diary"
    path = make_specimen(tmp_path / "s.fmu", flags=("-DCOMMITS",))
    d = Diagram("states", step=0.01)
    d.add(Fmu(path, parameters={"diary": str(diary)}), name="f")
    with d.compile().instantiate() as instance:
        instance.run(1)
        instance.save()
        instance.run(2)
        instance.reset()
        instance.run(1)
    steps = [line for line in diary.read_text().split("\n") if line.startswith("step")]
    assert steps == ["step 0 1", "step 0.01 1", "step 0.02 0", "step 0 1"]


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_outputs_at_the_start_are_read_after_initialization_mode(tmp_path, options):
    path = make_specimen(tmp_path / "s.fmu", flags=("-DOUTPUTS_AFTER_EXIT",))
    r = alone(path, **options)
    assert r["f.y"][0] == 1.0
    d = Diagram("through", step=0.01)
    f = d.add(Fmu(path, **options), name="f")
    g = d.add(Fmu(path, **options), name="g")
    d.connect(f["y"], g["u"])
    assert simulate(d, 0.0)["g.y"].tolist() == [2.0]


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
@pytest.mark.parametrize("flag", ["-DROUNDS", "-DFLUSHES"])
def test_an_fmu_does_not_change_our_arithmetic(tmp_path, flag, options):
    if flag == "-DFLUSHES" and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("needs an x86 processor")
    path = make_specimen(tmp_path / "s.fmu", flags=(flag,))

    def run(with_fmu):
        d = Diagram("rounding", step=0.01)
        if with_fmu:
            d.add(Fmu(path, substeps=3, **options), name="f")
        p = d.add(Pendulum(angle=1.0, damping=0.1), name="p")
        d.connect(d.add(Sine(0.3, 5.0, unit="N.m"), name="s"), p)
        return simulate(d, 2.0, record=["p.*"])

    assert np.array_equal(run(True)["p.angle"], run(False)["p.angle"])
    third, small = 1.0, sys.float_info.min
    third /= 3.0
    assert (third, -third) == (0x15555555555555 / 2**54, -0x15555555555555 / 2**54)
    assert small / 4.0 * 4.0 == small


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_an_fmu_does_not_change_our_working_directory(tmp_path, monkeypatch, options):
    path = make_specimen(tmp_path / "s.fmu", flags=("-DWANDERS",))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    d = Diagram("folder", step=0.01)
    d.add(Fmu(path, **options), name="f")
    with Instance(d.compile()) as instance:
        assert Path.cwd() == here
        instance.initialize()
        assert Path.cwd() == here
        instance.evaluate()
        assert Path.cwd() == here
        instance.run(3)
        assert Path.cwd() == here
        instance.restore(instance.save())
        assert Path.cwd() == here
    assert Path.cwd() == here
    simulate(d, 0.1, out="run.h5")
    assert (here / "run.h5").exists()


def test_nor_do_fmus_in_several_threads(tmp_path, monkeypatch):
    """The directory that one thread would restore may be that of another's FMU."""
    path = make_specimen(tmp_path / "s.fmu", flags=("-DWANDERS",))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    d = Diagram("folder", step=0.01)
    d.add(Fmu(path), name="f")
    plan = d.compile()

    def run(_: int) -> None:
        with plan.instantiate() as instance:
            instance.run(3)
            instance.restore(instance.save())

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run, range(600)))
    assert Path.cwd() == here


def test_a_program_may_change_its_working_directory_during_a_live_run(
    specimen, tmp_path, monkeypatch
):
    d = Diagram("folder", step=0.01)
    d.add(Fmu(specimen), name="f")
    with run_realtime(d, clock="free") as run:
        monkeypatch.chdir(tmp_path)
        run.stop()
        assert Path.cwd() == tmp_path


@pytest.mark.parametrize(
    "environment", ["((void *)0x1234)", "NULL", "(i)", "((void *)(i)->name)", "((void *)-1L)"]
)
def test_a_message_with_a_wrong_environment_is_kept_all_the_same(tmp_path, environment):
    path = make_specimen(tmp_path / "s.fmu", flags=(f"-DENVIRONMENT(i)={environment}",))
    error, *_ = fail(path, "chatter", tmp_path)
    assert "valve 7 at 12.50 %, state open;" in str(error)


def test_no_state_is_saved_that_nobody_asked_for(tmp_path):
    """In 0.1 the process crashed here, after the run."""
    path = make_specimen(tmp_path / "s.fmu", flags=("-DFAULTY_STATES",))
    d = Diagram("states", step=0.01)
    d.add(Fmu(path), name="f")
    result = simulate(d, 0.1)
    assert result["f.y"][-1] > 1.0
    with pytest.raises(BiellaError, match=r"`s.fmu` was not saved. Ask .*keep_state=True"):
        simulate(d, 0.2, checkpoint=result.checkpoint)
    assert simulate(d, 0.1, keep_state=False).checkpoint is None


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_the_sample_of_the_last_step_before_an_fmu_ends_the_run_is_kept(specimen, options):
    """The step from 0.05 is done, and discarded with fmi2Terminated."""
    trouble = {"trouble": TROUBLE["ends_after"], "at": 0.05}
    result = alone(specimen, parameters=trouble, **options)
    assert "it ended the simulation at t = 0.06" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.06)
    assert result["f.y"][-1] == pytest.approx(1.0 + 0.5 * (1 - 0.99**6))


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_a_state_from_before_an_fmu_ended_the_run_goes_on(specimen, options):
    d = Diagram("ends", step=0.01)
    trouble = {"trouble": TROUBLE["ends_after"], "at": 0.05}
    d.add(Fmu(specimen, parameters=trouble, **options), name="f")
    with d.compile().instantiate() as instance:
        instance.run(3)
        states = [instance.save()]
        assert instance.run(10) == (3, True)
        states.append(instance.save())
        for state, ticks in zip(states, (3, 0), strict=True):
            instance.restore(state)
            assert instance.run(10) == (ticks, True)


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_an_fmu_that_ends_the_run_within_a_step_says_when(specimen, options):
    trouble = {"trouble": TROUBLE["ends_within"], "at": 0.05}
    result = alone(specimen, parameters=trouble, **options)
    assert "it ended the simulation at t = 0.055" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.05)


def test_integers_that_fmi_does_not_have_are_refused(specimen):
    d = Diagram("large", step=0.01)
    f = d.add(Fmu(specimen), name="f")
    n = d.add(Convert("integer"), name="n")
    d.connect(d.add(Step(at=0.03, to=3e9), name="s"), n)
    d.connect(n, f["n"])
    with pytest.raises(
        BlockError, match=r"value reference 2 cannot be 3000000000: FMI 2.0 has int"
    ):
        simulate(d, 0.1)


# -- FMI 3.0, through FMPy

CHOSEN: dict[str, Any] = {"backend": "fmpy", "inputs": ["n", "small"], "outputs": ["y"]}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    return make_fmi3(tmp_path_factory.mktemp("three") / "three.fmu")


def test_variables_that_no_signal_holds_are_named(three):
    with pytest.warns(BiellaWarning) as caught:
        block = Fmu(three, backend="fmpy")
    (warning,) = caught
    assert (
        "three.fmu has variables that cannot become ports, because signals are numbers: "
        "input text (String), output bytes (Binary), output row (array of Float64)."
    ) in str(warning.message)
    assert [p.name for p in (*block.inputs, *block.outputs)] == ["n", "small", "y"]
    Fmu(three, **CHOSEN)
    for wrong in ({"outputs": ["row"]}, {"parameters": {"matrix": [1, 2, 3, 4]}}):
        with pytest.raises(FmuError, match=r"`(row|matrix)` of three.fmu is of type array of Fl"):
            Fmu(three, **(CHOSEN | wrong))


def test_fmi3_may_end_the_run_and_the_last_sample_is_kept(three):
    result = alone(three, **CHOSEN, parameters={"ends": 0.05})
    assert "it ended the simulation at t = 0.05" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.05) and result["f.y"][-1] == 5.0
    result = alone(three, **CHOSEN, parameters={"ends": 0.055})
    assert "it ended the simulation at t = 0.055" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.05)


def test_a_step_that_returns_early_is_completed(three):
    """Two steps of 5 ms make one of 10 ms."""
    result = alone(three, **CHOSEN, parameters={"early": True})
    assert result["f.y"].tolist() == list(range(0, 22, 2))


def test_integers_of_64_bits_do_not_wrap(three):
    result = alone(three, 0.03, **CHOSEN, parameters={"n": 2**52})
    assert result["f.y"][:3].tolist() == [0.0, 2.0**52, 2.0**53]
    with pytest.warns(
        BiellaWarning, match=r"`y` of the FMU `three.fmu` is 27021597764222982, whic"
    ):
        alone(three, 0.04, **CHOSEN, parameters={"n": 2**53 // 2 * 2 + 2, "small": 1})
    for name, value, message in (
        ("n", 2**63, "`n` cannot be 9.2233720368547758e\\+18: Int64 holds integers from"),
        ("n", 2**53 + 1, "`n` cannot be 9007199254740993: .* exactly only up to 2\\^53"),
        ("n", 10**400, "`n` is Int64, and 1000.* is none"),
        ("n", float("inf"), "`n` is Int64, and inf is not whole"),
        ("small", 128, "`small` cannot be 128: Int8 holds integers from -128 to 127"),
        ("small", -129, "`small` cannot be -129"),
    ):
        with pytest.raises(FmuError, match=message):
            Fmu(three, **CHOSEN, parameters={name: value})
    d = Diagram("small", step=0.01)
    f = d.add(Fmu(three, **CHOSEN), name="f")
    n = d.add(Convert("integer"), name="n")
    d.connect(d.add(Step(at=0.03, to=300.0), name="s"), n)
    d.connect(n, f["small"])
    with pytest.raises(BlockError, match=r"`small` cannot be 300: Int8 holds integers"):
        simulate(d, 0.1)


# -- Ctrl-C

LONG_RUN = """
import signal, sys
from biella import Diagram, Fmu, simulate
signal.signal(signal.SIGINT, signal.default_int_handler)
d = Diagram("long", step=1e-4)
d.add(Fmu(sys.argv[1], isolate=True, parameters={"diary": sys.argv[2]}), name="f")
result = simulate(d, 1e4, every=10**6, progress=False)
print(result.info["stopped"], "after", result.info["ticks"], "ticks")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
def test_ctrl_c_in_a_terminal_does_not_end_an_isolated_fmu(specimen, tmp_path):
    """A terminal sends SIGINT to all processes in front; the FMU's must not be one of them."""
    import pty

    diary, said = tmp_path / "diary", b""
    child, terminal = pty.fork()
    if child == 0:
        command = [sys.executable, "-c", LONG_RUN, str(specimen), str(diary)]
        os.execv(sys.executable, command)
    try:
        while not (diary.exists() and "exit" in diary.read_text()):  # the run has begun
            if os.waitpid(child, os.WNOHANG)[0]:
                raise AssertionError(os.read(terminal, 10000).decode())
            time.sleep(0.01)
        os.write(terminal, b"\x03")
        with contextlib.suppress(OSError):  # which is how a terminal ends
            while part := os.read(terminal, 1000):
                said += part
        os.waitpid(child, 0)
    finally:
        os.close(terminal)
    assert re.search(rb"interrupted at t = [\d.e-]+ s after \d+ ticks", said), said.decode()
