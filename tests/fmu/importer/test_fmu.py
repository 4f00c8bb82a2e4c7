"""FMUs as blocks: ours against the native diagram, and one that misbehaves on demand."""

from __future__ import annotations

import re
import subprocess
import sys
from ctypes import POINTER, c_double, c_int64, cast
from pathlib import Path

import numpy as np
import pytest
from specimen import TROUBLE, description, make_specimen

import biella
from biella import (
    BiellaError,
    BlockError,
    Diagram,
    DiagramError,
    Fmu,
    linearize,
    simulate,
)
from biella.blocks import (
    Constant,
    Gain,
    Integrator,
    Pendulum,
    Sine,
    Sum,
    UnitDelay,
)
from biella.errors import FmuError
from biella.scheduler.compile.diagram._subsystem import Subsystem
from biella.scheduler.engine._library import contract

from .runs import BACKENDS, EVERY, EVERY_ID, IDS, alone, fail, plant

pytestmark = pytest.mark.engine


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


def test_backends_agree_to_the_last_bit(specimen):
    runs = []
    for options in BACKENDS:
        d = Diagram("same", step=0.01)
        f = d.add(Fmu(specimen, **options), name="f")
        d.connect(d.add(Sine(1.0, 3.0, unit="m"), name="u"), f["u"])
        runs.append(simulate(d, 0.5)["f.y"])
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parameters": {"kk": 1}}, "has no variable `kk`. Did you mean `k`"),
        ({"parameters": {"n": 2.5}}, "`n` is of type Integer, got 2.5"),
        ({"parameters": {"diary": 3}}, "`diary` of specimen.fmu must be a string"),
        ({"parameters": {"diary": "a\0b"}}, r"`diary` of .* cannot be 'a.x00b': .* first NUL"),
        ({"instance_name": "a\0b"}, "a name of FMI cannot contain a NUL"),
        ({"logging": ["a\0b"]}, "a name of FMI cannot contain a NUL"),
        ({"parameters": {"k": "much"}}, "`k` is of type Real"),
        ({"parameters": {"y": 1.0}}, "`y` of specimen.fmu cannot be set before a run"),
        ({"parameters": {"w": [1.0]}}, "`w` has 2 values, got 1"),
        ({"inputs": ["v"]}, "has no input `v`"),
        ({"outputs": ["z"]}, "has no output `z`.*Outputs: y, m, c, s"),
        ({"substeps": 0}, "`substeps` must be an integer"),
        ({"period": -1.0}, "the period must be a positive"),
        ({"backend": "dymola"}, "`backend` must be one of"),
        ({"kind": ["me"]}, r"`kind` must be 'cs', 'me' or None; got \['me'\]"),
        ({"parameters": ["k"]}, r"`parameters` must be a dict, such as .*; got \['k'\]"),
        ({"tolerance": "fine"}, "`tolerance` must be a positive number; got 'fine'"),
        ({"event_mode": "x"}, "`event_mode` must be True, False or None; got 'x'"),
        ({"logging": 3}, "`logging` must be True, False or a list of texts; got 3"),
        ({"timeout": 1.0}, "timeout requires isolate=True"),
        ({"isolate": True, "timeout": 0.0}, "the timeout must be a positive time in s"),
    ],
)
def test_wrong_arguments_are_explained(specimen, given, message):
    with pytest.raises(BiellaError, match=message):
        Fmu(specimen, **given)


def test_what_is_no_file_name():
    with pytest.raises(BiellaError, match=r"name of a file, such as 'engine\.fmu'; got None"):
        Fmu(None)  # type: ignore[arg-type]


# -- FMUs that fail


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
            "fmi2DoStep returned fmi2Discard at t = 0.05 without a message; logging=True shows",
            ["terminate", "free"],
        ),
        ("fatal", "fmi2DoStep returned fmi2Fatal", ["enter", "exit"]),
        ("get_error", "fmi2GetReal returned fmi2Error", ["exit", "free"]),
        ("pending", "fmi2Pending at t = 0.05, although", ["exit", "free"]),
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


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_an_fmu_may_end_the_run_without_error(specimen, options):
    result = alone(specimen, parameters={"trouble": TROUBLE["terminated"], "at": 0.05}, **options)
    assert re.search("`f` at t = 0.05 s: (the )?FMU `specimen.fmu`", result.info["stopped"])
    assert "it requested the end of the simulation" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.05)


def test_an_isolated_fmu_that_crashed_is_still_reported_afterwards(specimen):
    d = Diagram("trouble", step=0.01)
    trouble = {"trouble": TROUBLE["segfault"], "at": 0.05}
    d.add(Fmu(specimen, parameters=trouble, isolate=True), name="bad")
    with d.compile().instantiate() as instance:
        for _ in range(2):
            with pytest.raises(BlockError, match="its process was terminated by SIGSEGV"):
                instance.run(20)


def test_an_fmu_that_gives_no_instance(specimen, tmp_path):
    xml = description().replace("{specimen}", "{other}")
    path = make_specimen(tmp_path / "other.fmu", xml=xml)
    with pytest.raises(
        BlockError, match=r"fmi2Instantiate returned no instance; its last messages: "
    ):
        alone(path)


# -- saved states


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
        with pytest.raises(BiellaError, match="valid only within its run"):
            other.restore(kept)
        instance.reset()
        instance.save()  # also the first of its run
        with pytest.raises(BiellaError, match="valid only within its run"):
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
        match=r"`f` \(Fmu\('specimen.fmu'\)\) cannot be exported in an FMU: it is an external",
    ):
        d.export_fmu(tmp_path / "outer.fmu")
    with pytest.raises(BiellaError, match=f"{named} cannot be linearized"):
        linearize(d, period=0.01)
    with pytest.raises(BiellaError, match=f"contains {named} cannot be saved"):
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
    with pytest.raises(FmuError, match=r"its binary reports FMI version 1.0"):
        alone(path)


def test_a_binary_that_is_none_is_refused(tmp_path):
    from biella.fmu.importer._archive import platform_folder

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
    with pytest.raises(FmuError, match=r"only once per process .* Use isolate=True"):
        simulate(d, 0.1)
    d = Diagram("two", step=0.01)
    d.add(Fmu(path), name="a")
    d.add(Fmu(path, isolate=True), name="b")
    result = simulate(d, 0.1)
    assert np.array_equal(result["a.y"], result["b.y"])


# -- packages that may be absent


def test_importing_biella_imports_neither_fmpy_nor_the_importer():
    code = "import sys, biella; print([m for m in sys.modules if 'fmpy' in m or 'importer' in m])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "[]"
    assert "Fmu" in biella.__all__ and callable(biella.Fmu)


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


# -- what an FMU must not do to the run, and what a run must tell it


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_an_fmu_that_keeps_a_step_only_if_it_is_final_moves(tmp_path, options):
    """In 0.1 it was told of every step that it might be taken back."""
    path = make_specimen(tmp_path / "s.fmu", flags=("-DCOMMITS",))
    r = alone(path, 0.5, **options)
    assert r["f.y"] == pytest.approx(1.0 + 0.5 * (1 - 0.99 ** np.arange(51)), abs=1e-13)


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_outputs_at_the_start_are_read_after_initialization_mode(tmp_path, options):
    path = make_specimen(tmp_path / "s.fmu", flags=("-DOUTPUTS_AFTER_EXIT",))
    r = alone(path, **options)
    assert r["f.y"][0] == 1.0
    d = Diagram("through", step=0.01)
    f = d.add(Fmu(path, **options), name="f")
    g = d.add(Fmu(path, **options), name="g")
    d.connect(f["y"], g["u"])
    assert simulate(d, 0.0)["g.y"].tolist() == [2.0]


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_the_sample_of_the_last_step_before_an_fmu_ends_the_run_is_kept(specimen, options):
    """The step from 0.05 is done, and discarded with fmi2Terminated."""
    trouble = {"trouble": TROUBLE["ends_after"], "at": 0.05}
    result = alone(specimen, parameters=trouble, **options)
    assert "it requested the end of the simulation at t = 0.06" in result.info["stopped"]
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


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_an_fmu_that_ends_the_run_within_a_step_says_when(specimen, options):
    trouble = {"trouble": TROUBLE["ends_within"], "at": 0.05}
    result = alone(specimen, parameters=trouble, **options)
    assert "it requested the end of the simulation at t = 0.055" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.05)


@pytest.mark.parametrize(("trouble", "when"), [("ends_after", 0.06), ("ends_within", 0.055)])
def test_the_end_that_an_fmu_requests_is_an_event(specimen, trouble, when):
    d = Diagram("ends", step=0.01)
    parameters = {"trouble": TROUBLE[trouble], "at": 0.05}
    d.add(Fmu(specimen, parameters=parameters), name="f")
    buffer = np.zeros(1 << 14, dtype=[("time", "f8"), ("block", "i4"), ("crossing", "i4")])
    none, pick = np.zeros(2), np.zeros(1, dtype=np.int64)
    record = contract.bl_record(
        pick=cast(pick.ctypes.data, POINTER(c_int64)),
        every=1 << 40,
        out=cast(none.ctypes.data, POINTER(c_double)),
        capacity=1,
        events=cast(buffer.ctypes.data, POINTER(contract.bl_event)),
        event_capacity=buffer.size,
    )
    with d.compile().instantiate() as instance:
        instance.run(10, record)
        assert record.event_count == instance.event_counts[0] == 1
        assert buffer[0]["time"] == pytest.approx(when, rel=1e-9)
        what = instance.describe_event(int(buffer[0]["block"]), int(buffer[0]["crossing"]))
        assert what == "ends the simulation"


# -- FMI 3.0, through FMPy


# -- Ctrl-C
