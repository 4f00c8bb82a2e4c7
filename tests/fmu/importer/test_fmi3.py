"""FMUs of FMI 3.0 in the engine: types, arrays, events, early return, states, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from specimen import make_fmi3
from typed import FLAGS, TROUBLE, describe, make_typed

from biella import BiellaError, BlockError, Diagram, Fmu, linearize, replay, run_realtime, simulate
from biella.blocks import Convert, Expression, Gain, Integrator, Step, Sum
from biella.errors import BiellaWarning, FmuError

pytestmark = pytest.mark.engine

BACKENDS: list[dict[str, Any]] = [{}, {"isolate": True}, {"backend": "fmpy"}]
IDS = ["engine", "isolated", "fmpy"]
EVENTS: dict[str, Any] = {"event_mode": True, "inputs": [], "outputs": ["x", "hits", "entries"]}


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    return make_typed(tmp_path_factory.mktemp("typed") / "typed.fmu")


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    return make_fmi3(tmp_path_factory.mktemp("three") / "three.fmu")


def run(path, until=0.1, record=None, **options):
    d = Diagram("alone", step=0.01)
    d.add(Fmu(path, **options), name="f")
    return simulate(d, until, record=record)


def trouble(name, at=0.05, **more):
    return {"trouble": TROUBLE[name], "at": at, **more}


def calls(diary):
    return diary.read_text().splitlines()


# -- the life of an instance


def test_the_life_of_an_instance(typed, tmp_path):
    diary = tmp_path / "diary"
    run(typed, 0.02, tolerance=1e-4, parameters={"diary": str(diary)})
    assert calls(diary) == [
        "instantiate", "enter 1 0.0001 0 0", "exit", "step 0 0.01 1", "step 0.01 0.01 1",
        "terminate", "free",
    ]  # fmt: skip
    diary.unlink()
    run(typed, 0.01, logging=["one", "two"], event_mode=True,
        parameters={"diary": str(diary), "n": 3, "w": [1, 2, 3]})  # fmt: skip
    assert calls(diary) == [
        "instantiate with events", "one", "two", "configure", "configured", "enter 0 0 0 0",
        "exit", "step mode", "step 0 0.01 1", "terminate", "free",
    ]  # fmt: skip


def test_a_binary_without_what_is_needed_is_refused(tmp_path):
    path = make_typed(tmp_path / "t.fmu", flags=("-DWITHOUT_INT8",))
    with pytest.raises(FmuError, match=r"`t.fmu`: its binary has no function fmi3SetInt8\."):
        run(path)
    run(path, inputs=["u"], outputs=["y"])  # where it is not needed it is not missed
    path = make_typed(tmp_path / "v.fmu", flags=('-DVERSION="2.0"',))
    with pytest.raises(FmuError, match=r"binary reports FMI version 2.0 instead of 3.0"):
        run(path)
    wrong = describe().replace("{typed}", "{other}")
    with pytest.raises(BlockError, match=r"fmi3InstantiateCoSimulation returned no instance; its"):
        run(make_typed(tmp_path / "w.fmu", xml=wrong))


# -- values


LIMITS = {
    "i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767), "u16": (0, 65535),
    "i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1), "i64": (-(2**53), 2**53),
    "u64": (0, 2**51), "b": (0, 1), "kind": (1, 2), "f32": (-1.5, 2.0**127),
}  # fmt: skip


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_every_type_passes_its_limits(typed, options):
    """What goes in as input comes out; `u64` is tripled."""
    for values in zip(*LIMITS.values(), strict=True):
        given = dict(zip(LIMITS, values, strict=True))
        result = run(typed, 0.01, parameters=given, **options)
        for name, value in given.items():
            factor = 3 if name == "u64" else 1
            assert result[f"f.{name}_out"][-1] == factor * value, name


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
@pytest.mark.parametrize(
    "name, value, range_",
    [("i8", 128, "Int8 is -128 to 127"), ("i8", -129, "Int8 is"), ("u8", -1, "UInt8 is 0 to 255"),
     ("i16", 40000, "Int16 is -32768 to 32767"), ("u16", 65536, "UInt16 is 0 to 65535"),
     ("i32", 2.0**31, "Int32 is -2147483648 to 2147483647"), ("u32", 2.0**32, "UInt32 is 0 to 4"),
     ("i64", 2.0**63, "Int64 is -9223372036854775808 to 9"), ("u64", -1, "UInt64 is 0 to 18"),
     ("f32", 1e39, "Float32 is -3.4e38 to 3.4e38")],
)  # fmt: skip
def test_a_value_out_of_range_is_an_error_that_names_it(typed, options, name, value, range_):
    """As a parameter when the block is made, as a signal when it occurs."""
    with pytest.raises(FmuError, match=rf"`{name}` cannot be .*: the range of {range_}"):
        Fmu(typed, parameters={name: value}, **options)
    d = Diagram("out of range", step=0.01)
    f = d.add(Fmu(typed, inputs=[name], outputs=[f"{name}_out"], **options), name="f")
    source: Any = d.add(Step(at=0.02, to=float(value)), name="s")
    if name != "f32":
        whole = d.add(Convert("integer"), name="n")
        d.connect(source, whole)
        source = whole
    d.connect(source, f[name])
    with pytest.raises(BlockError, match=rf"`{name}` cannot be .*: the range of {range_}") as e:
        simulate(d, 0.1)
    assert e.value.result is not None and e.value.result.t[-1] == pytest.approx(0.01)


@pytest.mark.parametrize("options", BACKENDS[:2], ids=IDS[:2])
def test_integers_that_are_rounded_are_reported_with_their_name(typed, three, options):
    chosen = {"inputs": ["n"], "outputs": ["y"], **options}
    exact = run(three, 0.03, parameters={"n": 2**52}, **chosen)
    assert exact["f.y"][:3].tolist() == [0.0, 2.0**52, 2.0**53]
    with pytest.warns(BiellaWarning, match=r"`y` is 27021597764222973 at t = 0.03 s. Signals rep"):
        run(three, 0.05, parameters={"n": 2**53 - 1}, **chosen)
    with pytest.warns(BiellaWarning, match=r"`u64_out` is 27021597764222973 at t = 0 s"):
        run(typed, 0.05, inputs=["u64"], outputs=["u64_out"], parameters={"u64": 2**53 - 1},
            **options)  # fmt: skip


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_arrays_are_ports_and_parameters(typed, options):
    """s = 2 w, and r is the transpose of A."""
    d = Diagram("arrays", step=0.01)
    f = d.add(Fmu(typed, inputs=["w"], outputs=["s", "r"], **options), name="f")
    d.connect(d.add(Step(at=0.02, to=[1.0, 5.0]), name="w"), f["w"])
    result = simulate(d, 0.05)
    assert result["f.s"][-1].tolist() == [2.0, 10.0] and result["f.s"][0].tolist() == [0.0, 0.0]
    assert result["f.r"][-1].tolist() == [1.0, 3.0, 2.0, 4.0]
    result = simulate(d, 0.05, parameters={"f.A": [[1.0, 7.0], [8.0, 9.0]]})
    assert result["f.r"][-1].tolist() == [1.0, 8.0, 7.0, 9.0]
    block = Fmu(typed, parameters={"A": [[5, 6], [7, 8]]}, outputs=["r"], inputs=[], **options)
    d = Diagram("given", step=0.01)
    d.add(block, name="f")
    assert simulate(d, 0.01)["f"][-1].tolist() == [5.0, 7.0, 6.0, 8.0]


def test_an_array_parameter_is_tuned_as_a_whole(typed):
    d = Diagram("tune", step=0.01)
    d.add(Fmu(typed, inputs=[], outputs=["r"]), name="f")
    with d.compile().instantiate() as instance:
        instance.run(1)
        instance.set("f.A", [[1.0, 2.0], [30.0, 4.0]])
        instance.run(1)
        assert list(instance.get("f.r")) == [1.0, 30.0, 2.0, 4.0]


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_a_structural_parameter_sets_the_widths_of_ports(typed, options):
    given: dict[str, Any] = {"n": 5, "w": [1, 2, 3, 4, 5]}
    block = Fmu(typed, outputs=["s"], parameters=given, **options)
    assert {p.name: p.width for p in block.inputs}["w"] == 5 and block.outputs[0].width == 5
    result = run(typed, 0.01, outputs=["s"], parameters=given, **options)
    assert result["f"][-1].tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert Fmu(typed, outputs=["s"], inputs=[], **options).outputs[0].width == 2


def test_wrong_sizes_are_refused(typed):
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"n": -1}, "`n` cannot be -1: the range of UInt64"),
        ({"n": 2.5}, "`n` is of type UInt64, got 2.5, which is not an integer"),
        ({"w": [1, 2, 3]}, "`w` has 2 values, got 3"),
        ({"n": 3, "w": [1, 2]}, "`w` has 3 values, got 2"),
        ({"A": [1, 2, 3]}, "`A` has 4 values, got 3"),
        ({"A": [[1], [2], [3], [4]]}, "`A` is an array of 2 × 2 values, got 4 × 1"),
        ({"A": "abc"}, "`A` is of type Float64, got 'abc'"),
        ({"texts": ["a"] * 3}, "`texts` of typed.fmu must be 2 × string"),
        ({"text": 1}, "`text` of typed.fmu must be a string, got 1"),
        ({"texts": ["a", "b\0c"]}, "`texts` of typed.fmu cannot be .* first NUL"),
        ({"blob": "text"}, "`blob` of typed.fmu must be bytes, got 'text'"),
    ]
    for given, message in wrong:
        with pytest.raises(FmuError, match=message):
            Fmu(typed, parameters=given)
    with pytest.raises(FmuError, match=r"`w\[0\]` is an element of the array `w` of typed.fmu"):
        Fmu(typed, inputs=["w[0]"])
    with pytest.raises(BlockError, match=r"fmi3SetUInt64 returned fmi3Error"):  # it has 8 at most
        run(typed, inputs=[], outputs=["y"], parameters={"n": 9})
    d = Diagram("later", step=0.01)
    d.add(Fmu(typed, inputs=[], outputs=["s"], parameters={"n": 3}), name="f")
    with pytest.raises(BiellaError, match=r"there is no parameter or input `f.n`"):
        simulate(d, 0.01, parameters={"f.n": 4})


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_strings_and_binaries_are_parameters(typed, options):
    """`length` is 3 + 10 × 1 + 100 × 2 characters + 1000 × the sum of the bytes."""
    given = {"text": "abc", "texts": ["x", "yz"], "blob": b"\x00\x05\x02"}
    result = run(typed, 0.01, inputs=[], outputs=["length"], parameters=given, **options)
    assert result["f"][-1] == 3 + 10 + 200 + 7000


def test_enumerations_have_names(typed):
    block = Fmu(typed, inputs=["kind"], outputs=["kind_out"], parameters={"kind": "high"})
    assert block.outputs[0].names == ("low", "high") and block.outputs[0].kind == "enumeration"
    result = run(typed, 0.01, inputs=["kind"], outputs=["kind_out"], parameters={"kind": "high"})
    assert result["f"][-1] == 2.0
    assert result.signals["f.kind_out"].names == ("low", "high")


def test_aliases_are_other_names_of_a_variable(typed):
    plain = Fmu(typed)
    assert "position" not in [p.name for p in plain.inputs]
    assert "shown" not in [p.name for p in plain.outputs]
    chosen: dict[str, Any] = {"inputs": ["position"], "outputs": ["shown", "y"]}
    block = Fmu(typed, **chosen, parameters={"position": 3.0})
    assert [p.name for p in (*block.inputs, *block.outputs)] == ["position", "shown", "y"]
    assert str(block.outputs[0].unit) == "m"
    result = run(typed, 0.01, **chosen, parameters={"position": 3.0})
    assert result["f.shown"].tolist() == result["f.y"].tolist() and result["f.y"][0] == 6.0
    with pytest.raises(FmuError, match=r"`u` and `position` are two names of one input"):
        Fmu(typed, inputs=["u", "position"])


# -- steps


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_terminate_simulation_ends_the_run(typed, options):
    """The sample at the end of a completed step is kept; within a step the run ends before it."""
    shown: dict[str, Any] = {"inputs": [], "outputs": ["x"], **options}
    result = run(typed, parameters=trouble("ends_after"), **shown)
    assert "it requested the end of the simulation at t = 0.05" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.05)
    result = run(typed, parameters=trouble("ends_within", 0.055), **shown)
    assert "it requested the end of the simulation at t = 0.055" in result.info["stopped"]
    assert result.t[-1] == pytest.approx(0.05)


def test_a_step_that_returns_early_is_completed(typed, tmp_path):
    """Euler's method in two halves: x' = u - x, from 0.05 s on."""
    diary = tmp_path / "diary"
    given = trouble("early", diary=str(diary))
    result = run(typed, inputs=[], outputs=["x"], parameters=given)
    x = [0.0]
    for k in range(10):
        parts = 1 if k < 4 else 2
        x.append(x[-1])
        for _ in range(parts):
            x[-1] += 0.01 / parts * (0.5 - x[-1])
    assert result["f"] == pytest.approx(np.array(x), rel=1e-14)
    assert calls(diary)[6:9] == ["step 0.03 0.01 1", "step 0.04 0.01 1", "step 0.045 0.005 1"]


@pytest.mark.parametrize(
    "name, message",
    [("error", r"fmi3DoStep returned fmi3Error at t = 0.04; its last messages: \[fmi3Error, error\]"
               r" x is too large: 100%n"),
     ("discard", "fmi3DoStep returned fmi3Discard at t = 0.04 without a message; logging=True"),
     ("fatal", "fmi3DoStep returned fmi3Fatal at t = 0.04"),
     ("stuck", "fmi3DoStep returned early more than 1000 times without an advance of time at t = "),
     ("outside", "returned early at t = 0.04 with lastSuccessfulTime = -0.96, which is outside"),
     ("state_event", "requested event mode at t = 0.05, although it is not used: event_mode=True")],
)  # fmt: skip
@pytest.mark.parametrize("options", BACKENDS[:2], ids=IDS[:2])
def test_failures_of_a_step(typed, options, name, message):
    with pytest.raises(BlockError, match=message) as caught:
        run(typed, inputs=[], outputs=["x"], parameters=trouble(name), **options)
    assert caught.value.result is not None
    assert caught.value.result.t[-1] == pytest.approx(0.04)


# -- events


@pytest.mark.parametrize("isolate", [False, True])
def test_time_events_are_met_exactly(typed, tmp_path, isolate):
    """One every 4 ms: each step of 10 ms is divided at 4 and 8 ms, 12, 16 and 20 ms, …"""
    diary = tmp_path / "diary"
    given = {"tick": 0.004, "diary": str(diary)}
    result = run(typed, 0.02, parameters=given, isolate=isolate, **EVENTS)
    assert result["f.hits"].tolist() == [0.0, 2.0, 5.0]
    steps = [line.split()[1:3] for line in calls(diary) if line.startswith("step 0")]
    ends = [float(a) + float(b) for a, b in steps]
    assert ends == pytest.approx([0.004, 0.008, 0.01, 0.012, 0.016, 0.02])


def test_a_state_event_is_handled_where_it_occurs(typed):
    """x' = 0.5 - x by Euler's method; x jumps up by 1 at 0.053, within a step."""
    result = run(typed, parameters=trouble("state_event", 0.053), **EVENTS)
    x = 0.5 - 0.5 * 0.99**5
    x += 0.003 * (0.5 - x) + 1.0
    x += 0.007 * (0.5 - x)
    assert result["f.x"][6] == pytest.approx(x, rel=1e-13)
    assert result["f.entries"].tolist() == [0.0] * 6 + [1.0] * 5
    (event,) = result.events
    assert event.time == pytest.approx(0.053) and event.kind == "event in event mode"


def test_discrete_inputs_change_in_event_mode(typed, tmp_path):
    """The FMU refuses a discrete input in step mode, and takes it over in an event only."""
    diary = tmp_path / "diary"
    d = Diagram("discrete", step=0.01)
    options: dict[str, Any] = {"event_mode": True, "parameters": {"diary": str(diary)}}
    f = d.add(
        Fmu(typed, inputs=["u", "d", "i8"], outputs=["latched", "i8_out"], **options), name="f"
    )
    step = d.add(Step(at=0.03, to=7.0), name="s")
    whole = d.add(Convert("integer"), name="n")
    d.connect(step, f["d"])
    d.connect(step, whole)
    d.connect(whole, f["i8"])
    result = simulate(d, 0.05)
    assert result["f.i8_out"].tolist() == [0.0, 0.0, 0.0, 7.0, 7.0, 7.0]  # direct feedthrough
    assert result["f.latched"].tolist() == [0.0, 0.0, 0.0, 0.0, 7.0, 7.0]
    assert calls(diary).count("event") == 1


@pytest.mark.parametrize("method", ["jacobi", "gauss-seidel", "fixed-point", "newton"])
def test_a_coupled_step_enters_event_mode_only_for_a_change(typed, method):
    """The discrete input changes at 0.03 s, once; the continuous one in every step."""
    d = Diagram("coupled", step=0.01)
    options: dict[str, Any] = {"event_mode": True, "inputs": ["u", "d", "i8"]}
    f = d.add(Fmu(typed, outputs=["y", "x", "latched", "entries"], **options), name="f")
    lag = d.add(Integrator(1.0), name="lag")
    step = d.add(Step(at=0.03, to=7.0), name="s")
    whole = d.add(Convert("integer"), name="n")
    back = d.add(Expression("y - 3*x", unit="m"), "back", y=f["y"], x=lag)
    d.connect(step, f["d"], whole)
    d.connect(whole, f["i8"])
    d.connect(back, lag)
    d.connect(d.add(Expression("x", unit="m"), "drive", x=lag), f["u"])
    d.couple("f", method=method, extrapolation=1)
    result = simulate(d, 0.08)
    assert result["f.latched"].tolist() == [0.0] * 4 + [7.0] * 5
    # At the tick itself the input with direct feedthrough is set in event mode, which ends there.
    assert result["f.entries"].tolist() == [0.0] * 3 + [1.0] * 6


@pytest.mark.parametrize(
    "name, message",
    [("endless", "fmi3UpdateDiscreteStates requested more than 1000 iterations at t = 0.0"),
     ("not_a_time", "fmi3UpdateDiscreteStates returned nextEventTime = NaN at t = 0"),
     ("always_due", "more than 1000 times without an advance of time")],
)  # fmt: skip
def test_failures_in_event_mode(typed, name, message):
    with pytest.raises(BlockError, match=message):
        run(typed, parameters=trouble(name, tick=0.02), **EVENTS)


def test_the_run_may_end_in_an_event(typed):
    result = run(typed, parameters=trouble("ends_in_event", 0.045, tick=0.045), **EVENTS)
    assert "it requested the end of the simulation at t = 0.045" in result.info["stopped"]
    result = run(typed, parameters=trouble("ends_in_event", 0.0), **EVENTS)
    assert "it requested the end of the simulation at t = 0" in result.info["stopped"]


def test_event_mode_must_be_there(tmp_path):
    path = make_typed(tmp_path / "t.fmu", xml=describe(FLAGS.replace("hasEventMode", "canRun")))
    with pytest.raises(FmuError, match=r"t.fmu has no event mode: event_mode=True requires hasEv"):
        Fmu(path, event_mode=True, validate=False)


def test_clocked_ports_are_refused_by_name(tmp_path):
    clock = (
        '<Clock name="c" valueReference="90" causality="input" intervalVariability="triggered"/>'
    )
    port = '<Float64 name="p" valueReference="91" causality="output" variability="discrete"'
    xml = describe(extra=f'{clock}{port} clocks="90"/>').replace(
        "</ModelStructure>", '<Output valueReference="91"/></ModelStructure>'
    )
    path = make_typed(tmp_path / "t.fmu", xml=xml)
    with pytest.raises(
        FmuError, match=r"`p` of t.fmu is activated by the clock `c`, which has to be trig.*add `c`"
    ):
        Fmu(path, inputs=[])
    block: Any = Fmu(path, outputs=["y"])
    assert block.options.event_mode  # FMI requires it of an FMU with clocks


# -- states


@pytest.mark.parametrize("options", [{}, {"event_mode": True}])
def test_states_are_saved_and_restored(typed, options):
    d = Diagram("states", step=0.01)
    given = {"tick": 0.004} if options else {}
    d.add(Fmu(typed, parameters=given, inputs=[], outputs=["x", "hits"], **options), name="f")
    with d.compile().instantiate() as instance:
        kept = [instance.save()]
        instance.run(5)
        kept.append(instance.save())
        values = [instance.get("f.x"), instance.get("f.hits")]
        instance.run(5)
        values += [instance.get("f.x"), instance.get("f.hits")]
        instance.restore(kept[1])
        assert [instance.get("f.x"), instance.get("f.hits")] == values[:2]
        instance.run(5)
        assert [instance.get("f.x"), instance.get("f.hits")] == values[2:]
        instance.restore(kept[0])  # in initialization mode
        assert instance.get("f.x") == 0.0
        instance.run(10)
        assert [instance.get("f.x"), instance.get("f.hits")] == values[2:]


@pytest.mark.parametrize("options", BACKENDS[:2], ids=IDS[:2])
def test_a_run_is_continued_from_its_checkpoint(typed, options):
    d = Diagram("states", step=0.01)
    d.add(Fmu(typed, inputs=[], outputs=["x"], **options), name="f")
    whole = simulate(d, 0.1)
    half = simulate(d, 0.05, keep_state=True)
    assert simulate(d, 0.1, checkpoint=half.checkpoint)["f"][-1] == whole["f"][-1]


def test_an_fmu_that_can_only_get_and_set_states_has_tickets(tmp_path):
    xml = describe(FLAGS.replace('canSerializeFMUState="true"', ""))
    path = make_typed(tmp_path / "t.fmu", xml=xml)
    d = Diagram("tickets", step=0.01)
    d.add(Fmu(path, inputs=[], outputs=["x"]), name="f")
    with d.compile().instantiate() as instance:
        instance.run(2)
        kept, x = instance.save(), instance.get("f.x")
        instance.run(2)
        instance.restore(kept)
        assert instance.get("f.x") == x
        instance.reset()
        with pytest.raises(BiellaError, match=r"canSerializeFMUState is false"):
            instance.restore(kept)
        # A program that saves in every step does not use up the memory.
        first = instance.save()
        several = [instance.save() for _ in range(100)]
        instance.restore(several[0])
        with pytest.raises(BiellaError, match=r"its last 100 saved states are kept, and 100 were"):
            instance.restore(first)
    path = make_typed(tmp_path / "n.fmu", xml=describe('hasEventMode="true"'))
    d = Diagram("none", step=0.01)
    d.add(Fmu(path, inputs=[], outputs=["x"]), name="f")
    with (
        d.compile().instantiate() as instance,
        pytest.raises(BiellaError, match=r"canGetAndSetFMUState is false"),
    ):
        instance.run(1)
        instance.save()


def test_no_state_is_saved_that_nobody_asked_for(tmp_path):
    path = make_typed(tmp_path / "t.fmu", flags=("-DFAULTY_STATES",))
    assert run(path, outputs=["x"], inputs=[])["f"][-1] > 0.0


def test_intermediate_updates_are_declined(typed, tmp_path):
    """An FMU that calls the callback, whether there is one or not, runs as it does without."""
    path, diary = make_typed(tmp_path / "t.fmu", flags=("-DUPDATES",)), tmp_path / "diary"
    chosen = {"inputs": ["u"], "outputs": ["x"]}
    found = run(path, 0.02, parameters={"diary": str(diary)}, **chosen)
    assert calls(diary).count("update") == 2
    assert "update requests an early return" not in calls(diary)
    np.testing.assert_array_equal(found["f"], run(typed, 0.02, **chosen)["f"])


@pytest.mark.parametrize("environment", ["NULL", "((void *)0x1234)", "(i)"])
def test_a_message_with_a_wrong_environment_is_kept_all_the_same(tmp_path, environment):
    path = make_typed(tmp_path / "t.fmu", flags=(f"-DENVIRONMENT(i)={environment}",))
    with pytest.raises(BlockError, match=r"\[fmi3Error, error\] x is too large: 100%n"):
        run(path, inputs=[], outputs=["x"], parameters=trouble("error"))


# -- in a diagram


def loop(path, gain, **options):
    """Return a diagram with u = 1 - gain y, so that y = k u at the start."""
    d = Diagram("loop", step=0.01)
    f = d.add(Fmu(path, inputs=["u"], outputs=["y"], **options), name="f")
    total = d.add(Sum("+-"), name="sum")
    back = d.add(Gain(gain), name="back")
    d.connect(d.add(Step(at=0.0, to=1.0, unit="m"), name="one"), total["u1"])
    d.connect(f, back)
    d.connect(back, total["u2"])
    d.connect(total, f)
    d.output("y", f["y"])
    return d


def test_an_algebraic_loop_is_solved_with_derivatives_of_the_fmu(tmp_path):
    """y = 2 u + x, u = 1 - 3 y: y = (2 + x) / 7, with x = 0 at the start."""
    xml = describe(f'{FLAGS} providesDirectionalDerivatives="true"')
    for name, text, count in (("with", xml, 1), ("without", describe(), 0)):
        diary = tmp_path / name
        path = make_typed(tmp_path / f"{name}.fmu", xml=text)
        result = simulate(loop(path, 3.0, parameters={"diary": str(diary)}), 0.02)
        assert result["y"][0] == pytest.approx(2.0 / 7.0, rel=1e-12)
        assert (calls(diary).count("derivative") > 0) == bool(count)


def test_its_states_are_not_linearized(typed):
    d = Diagram("linear", step=0.01)
    f = d.add(Fmu(typed, inputs=["u"], outputs=["y"]), name="f")
    d.connect(d.input("u", unit="m"), f["u"])
    d.output("y", f["y"])
    with pytest.raises(BiellaError, match=r"`f` .* cannot be linearized: its states are not acc"):
        linearize(d)


def test_isolated_and_native_agree_to_the_bit(typed):
    native, isolated = (simulate(loop(typed, 0.3, **options), 0.2) for options in BACKENDS[:2])
    assert native["y"].tobytes() == isolated["y"].tobytes()


def pair(path, **options):
    """Return two FMUs with x' = u - x that turn each other: u = -x of the other, and u = x."""
    d = Diagram("pair", step=0.01)
    shown: dict[str, Any] = {"inputs": ["u"], "outputs": ["x"], "substeps": 2, **options}
    a = d.add(Fmu(path, parameters={"x": 1.0}, **shown), name="a")
    b = d.add(Fmu(path, **shown), name="b")
    back = d.add(Gain(-3.0), name="back")
    d.connect(a, b)
    d.connect(b, back)
    d.connect(back, a)
    return d


@pytest.mark.parametrize("extrapolation", [0, 1, 2])
@pytest.mark.parametrize("coupling", ["jacobi", "gauss-seidel", "newton"])
def test_couplings_are_those_of_fmi2(typed, specimen, coupling, extrapolation):
    """The FMI 2.0 specimen has the same state, by the same method: equal to the bit."""
    chosen = {"coupling": coupling, "extrapolation": extrapolation}
    new, old = (simulate(pair(path), 0.3, **chosen) for path in (typed, specimen))
    assert new["a"].tobytes() == old["a"].tobytes()
    assert new["b"].tobytes() == old["b"].tobytes() and np.ptp(new["b"]) > 0.1


def test_a_step_is_rolled_back(typed, tmp_path):
    diary = tmp_path / "diary"
    d = pair(typed)
    d.add(Fmu(typed, inputs=[], outputs=["x"], parameters={"diary": str(diary)}), name="alone")
    simulate(d, 0.02, coupling="newton", extrapolation=1)
    assert [line for line in calls(diary) if line.startswith("step")] == [
        "step 0 0.01 1", "step 0.01 0.01 1",
    ]  # fmt: skip
    diary.unlink()
    d = Diagram("pair", step=0.01)
    shown: dict[str, Any] = {"inputs": ["u"], "outputs": ["x"]}
    a = d.add(Fmu(typed, parameters={"x": 1.0, "diary": str(diary)}, **shown), name="a")
    b = d.add(Fmu(typed, **shown), name="b")
    d.connect(a, b)
    d.connect(b, a)
    simulate(d, 0.01, coupling="newton", extrapolation=1)
    assert calls(diary).count("step 0 0.01 1") > 1


def test_a_real_time_run_is_replayed_to_the_bit(typed):
    """With a parameter that changes during the run; without its diagram the FMU is missing."""

    def build():
        return loop(typed, 0.3)

    with run_realtime(build(), until=0.1) as live:
        live["f.k"] = 3.0
        result = live.wait()
    again = replay(result, build())
    assert result["y"].tobytes() == again["y"].tobytes()
    with pytest.raises(BiellaError, match=r"the run has Python blocks or FMUs, .*pass its diagram"):
        replay(result)
