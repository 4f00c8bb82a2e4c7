"""A binding that is opened: stand-ins in the plan, slots in the devices, values both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import Diagram, Subsystem, simulate
from biella.blocks import Compare, Constant, Gain, Integrator, Mux
from biella.errors import DeviceError
from biella.scheduler.binding._bind import check_binding, open_binding
from biella.scheduler.results._result import Result

from . import diagrams

pytestmark = pytest.mark.engine


def device(ins, outs, **options):
    return {
        "driver": "loopback",
        "receive": {name: dict(about) for name, about in ins.items()},
        "send": {name: {"safe": 0, **about} for name, about in outs.items()},
        **options,
    }


def loop():
    d = diagrams.loop()
    d.output("rate", d["k"])
    return d


def test_a_block_is_a_device(ticks):
    """k is gone: what the device says, which is the scaled x of one tick before, moves x."""
    rig = {
        "devices": {"b": device({"y": {"scale": -4.0, "offset": 1.0}}, {"u": {"scale": 2.0}})},
        "blocks": {"k": {"device": "b"}},
    }
    run = ticks(open_binding(loop(), rig))
    rows = run.advance(5, signals=["x", "k", "rate", "b.age", "b.alive", "b.delay"])
    x, rate = 1.0, 0.0  # until the first frame
    for n, row in enumerate(rows):
        assert row[:3] == [pytest.approx(x), pytest.approx(rate), pytest.approx(rate)]
        assert row[3:] == ([1.0, 0.0, 0.0] if n == 0 else [0.0, 1.0, 1.0])
        x, rate = x + 1e-3 * rate, -4.0 * (x / 2.0) + 1.0


def test_a_subsystem_is_a_device(ticks):
    inner = Diagram("inner")
    u = inner.input("u")
    g = inner.add(Gain(5.0), name="g")
    inner.connect(u, g)
    inner.output("y", g)
    d = Diagram("outer", step=1e-2)
    one = d.add(Constant(3.0), name="one")
    sub = d.add(Subsystem(inner), name="sub")
    out = d.add(Gain(2.0), name="out")
    d.connect(one, sub)
    d.connect(sub, out)
    rig = {"devices": {"b": device({"y": {}}, {"u": {}})}, "blocks": {"sub": {"device": "b"}}}
    run = ticks(open_binding(d, rig))
    assert run.advance(2, signals=["out"]) == [[0.0], [6.0]]


def test_a_signal_comes_from_a_device_for_everyone_and_in_the_log(ticks):
    d = Diagram("chain", step=1e-3)
    one = d.add(Constant(1.0, unit="m"), name="one")
    g = d.add(Gain(10.0), name="g")
    h = d.add(Gain(1.0), name="h")
    d.connect(one, g)
    d.connect(g, h)
    d.output("all", g)
    rig = {
        "devices": {"b": device({"a": {"safe": 7.0}}, {"z": {}})},
        "signals": {"g": "b.a", "one": "b.z"},
    }
    bound = open_binding(d, rig)
    run = ticks(bound)
    # Until the first frame the safe value; then what `one` was a tick before.
    assert run.advance(2, signals=["g", "g.y", "h", "all", "g.y_simulated"]) == [
        [7.0, 7.0, 7.0, 7.0, 10.0],
        [1.0, 1.0, 1.0, 1.0, 10.0],
    ]
    result = simulate(bound.plan, until=1e-3)
    assert result["g"][0] == result["all"][0] == 7.0
    assert result["g.y_simulated"][0] == 10.0


def test_an_input_of_the_diagram_comes_from_a_device(ticks):
    d = Diagram("in", step=1e-3)
    u = d.input("u", default=4.0)
    g = d.add(Gain(2.0), name="g")
    d.connect(u, g)
    rig = {
        "devices": {"b": device({"a": {"offset": 1.0}}, {"z": {}})},
        "signals": {"u": "b.a", "g": "b.z"},
    }
    run = ticks(open_binding(d, rig))
    assert run.advance(3, signals=["g"]) == [[8.0], [18.0], [38.0]]


def test_vectors_go_both_ways(ticks):
    d = Diagram("vector", step=1e-3)
    a = d.add(Constant(1.0), name="a")
    b = d.add(Constant(2.0), name="b")
    mux = d.add(Mux(2), name="mux")
    g = d.add(Gain(1.0), name="g")
    d.connect(a, mux["u1"])
    d.connect(b, mux["u2"])
    d.connect(mux, g)
    rig = {
        "devices": {"v": device({"p": {"width": 2, "safe": [8, 9]}}, {"q": {}, "r": {}})},
        "blocks": {"g": {"device": "v", "inputs": {"u": ["r", "q"]}, "outputs": {"y": "p"}}},
    }
    run = ticks(open_binding(d, rig))
    rows = run.advance(2, signals=["g"])
    np.testing.assert_array_equal(rows, [[[8.0, 9.0]], [[2.0, 1.0]]])


def test_outputs_of_other_widths_stand_one_after_the_other(ticks):
    inner = Diagram("inner")
    u = inner.input("u", width=2)
    pair = inner.add(Gain(1.0), name="pair")
    one = inner.add(Constant(1.0), name="one")
    inner.connect(u, pair)
    inner.output("pair", pair)
    inner.output("one", one)
    d = Diagram("outer", step=1e-3)
    both = d.add(Constant([5.0, 6.0]), name="both")
    sub = d.add(Subsystem(inner), name="sub")
    d.connect(both, sub)
    d.connect(sub["pair"], d.add(Gain(1.0), name="first"))
    d.connect(sub["one"], d.add(Gain(1.0), name="second"))
    rig = {
        "devices": {"v": device({"one": {}, "pair": {"width": 2}}, {"u": {"width": 2}, "x": {}})},
        "blocks": {"sub": {"device": "v"}},
    }
    rig["devices"]["v"]["send"]["x"] |= {"unused": True, "safe": 7}
    (row,) = ticks(open_binding(d, rig)).advance(2, signals=["first", "second"])[1:]
    np.testing.assert_array_equal(row[0], [6.0, 7.0])
    assert row[1] == 5.0


def test_a_device_can_switch_a_subsystem(ticks):
    inner = Diagram("inner")
    g = inner.add(Gain(1.0), name="g")
    inner.connect(inner.input("u"), g)
    inner.output("y", g)
    d = Diagram("outer", step=1e-3)
    one = d.add(Constant(1.0), name="one")
    on = d.add(Compare(">", 0.5), name="on")
    sub = d.add(Subsystem(inner, enable=True), name="sub")
    out = d.add(Gain(1.0), name="out")
    d.connect(one, on, sub["u"])
    d.connect(on, sub["enable"])
    d.connect(sub, out)
    rig = {
        "devices": {"b": device({"on": {}}, {"one": {}})},
        "signals": {"on": "b.on", "one": "b.one"},
    }
    # Off until the device says 1, though the simulated switch is on.
    assert ticks(open_binding(d, rig)).advance(2, signals=["out"]) == [[0.0], [1.0]]


def test_limits_end_the_run_unless_they_saturate(ticks):
    rig = {
        "devices": {"b": device({"y": {"limits": [-1.5, 1.5]}}, {"u": {"scale": 0.5}})},
        "blocks": {"k": {"device": "b"}},
    }
    run = ticks(open_binding(loop(), rig))
    run.advance(1)
    with pytest.raises(ticks.ended, match=r"channel `y` \(from it\): 2 exceeds its limit 1.5"):
        run.advance(1)
    rig["devices"]["b"]["receive"]["y"]["saturate"] = True
    assert ticks(open_binding(loop(), rig)).advance(2, signals=["k"]) == [[0.0], [1.5]]


def test_an_unused_output_has_its_safe_value(ticks):
    rig = {
        "devices": {"b": device({"y": {}, "echo": {}}, {"u": {}, "on": {}})},
        "blocks": {"k": {"device": "b", "outputs": {"y": "echo"}}},
    }
    rig["devices"]["b"]["send"]["on"] |= {"unused": True, "safe": 5.0}
    assert ticks(open_binding(loop(), rig)).advance(3, signals=["k"]) == [[0.0], [5.0], [5.0]]


def test_compile_options_are_kept(ticks):
    rig = {"devices": {"b": device({"y": {}}, {"u": {}})}, "blocks": {"k": {"device": "b"}}}
    bound = open_binding(loop(), rig, step=5e-4, extra={"more": Constant(3.0)})
    assert ticks(bound).advance(1, signals=["more"]) == [[3.0]]
    assert bound.plan.step == 5e-4
    assert [d.name for d in bound.devices] == ["b"]
    assert bound.devices[0].describe() == ("b: loopback, delay=1, jitter=0, loss=0.0, noise=0.0")


def test_a_block_is_an_fmu(tmp_path):
    inner = Diagram("inner", step=1e-3)
    u = inner.input("u")
    g = inner.add(Gain(-2.0), name="g")
    inner.connect(u, g)
    inner.output("y", g)
    inner.output("more", g)
    inner.export_fmu(tmp_path / "gain.fmu", sources=False)
    (tmp_path / "rig.toml").write_text('[blocks.k]\nfmu = "gain.fmu"\nparameters = {"g.k" = -4.0}')
    with open_binding(loop(), tmp_path / "rig.toml") as bound:
        assert bound.check.warnings == [
            "[blocks.k]: outputs of gain.fmu that `k` has not are not used: more."
        ]
        assert bound.devices == []
        result = simulate(bound.plan, until=0.5)
    # An FMU holds its input through a step: x loses 4 h x in each.
    assert result["x"][-1] == pytest.approx((1 - 4e-3) ** 500, rel=1e-9)


def test_an_fmu_without_a_port_is_refused(tmp_path):
    inner = Diagram("inner", step=1e-3)
    u = inner.input("v", unit="m")
    g = inner.add(Gain(-2.0), name="g")
    inner.connect(u, g)
    inner.output("y", g)
    inner.export_fmu(tmp_path / "gain.fmu", sources=False)
    (tmp_path / "rig.toml").write_text('[blocks.k]\nfmu = "gain.fmu"')
    with pytest.raises(DeviceError, match=r"`k` has the input `u`, but gain\.fmu has not"):
        open_binding(loop(), tmp_path / "rig.toml")


# The loopback.


def echoes(ticks, count, name="b", **options):
    """Send 0, 1, 2, … and return what comes back at each tick."""
    d = Diagram("count", step=1.0, solver="euler")
    x = d.add(Integrator(0.0), name="x")
    one = d.add(Constant(1.0), name="one")
    back = d.add(Gain(1.0), name="back")
    d.connect(one, x)
    d.connect(x, back)
    rig = {
        "devices": {name: device({"y": {"safe": -1.0}}, {"u": {}}, **options)},
        "blocks": {"back": {"device": name}},
    }
    bound = open_binding(d, rig)
    rows = ticks(bound).advance(count, signals=["back", f"{name}.delay"])
    return np.array(rows).T, bound.devices[0].counts


@pytest.mark.parametrize("delay", [1, 2, 7])
def test_what_is_sent_comes_back_after_the_delay(ticks, delay):
    (came, delays), counts = echoes(ticks, 20, delay=delay)
    np.testing.assert_array_equal(came[delay:], np.arange(20.0)[:-delay])
    assert (came[:delay] == -1.0).all()
    assert (delays[delay:] == delay).all()
    assert counts["missed"] == counts["stale"] == 0
    assert counts["frames"] == 20 - delay


def test_loss_is_counted_and_the_last_value_held(ticks):
    (came, _), counts = echoes(ticks, 2000, loss=0.05, seed=3)
    lost = 2000 - 1 - counts["frames"]
    # Binomial: 100 ± 9.7; five of these.
    assert 50 < lost < 150
    assert counts["missed"] in (lost, lost - 1)  # a loss at the very end is not noticed yet
    steps = np.diff(came[1:])
    assert ((steps == 0) | (steps >= 1)).all()
    assert (steps == 0).sum() in (lost, lost - 1)


def test_jitter_delays_some_and_never_goes_back(ticks):
    (came, delays), counts = echoes(ticks, 2000, delay=2, jitter=3, seed=1)
    assert set(delays[10:]) <= {2.0, 3.0, 4.0, 5.0}
    assert len(set(delays[10:])) > 2
    assert (np.diff(came[10:]) >= 0).all()
    assert counts["stale"] > 0
    # What was overtaken is missing first and stale when it comes.
    assert abs(counts["missed"] - counts["stale"]) <= 3


def test_noise_is_that_of_the_seed(ticks):
    (first, _), _ = echoes(ticks, 3000, noise=0.5, seed=9)
    (again, _), _ = echoes(ticks, 3000, noise=0.5, seed=9)
    (other, _), _ = echoes(ticks, 3000, noise=0.5, seed=10)
    np.testing.assert_array_equal(first, again)
    assert (first != other)[1:].all()
    noise = first[1:] - np.arange(2999.0)
    # Standard errors of mean and deviation: 0.5/√n and 0.5/√(2n); five of these.
    assert abs(noise.mean()) < 5 * 0.5 / np.sqrt(2999)
    assert abs(noise.std() - 0.5) < 5 * 0.5 / np.sqrt(2 * 2999)


def test_without_a_seed_each_device_has_noise_of_its_own(ticks):
    (first, _), _ = echoes(ticks, 100, noise=0.5)
    (again, _), _ = echoes(ticks, 100, noise=0.5)
    (other, _), _ = echoes(ticks, 100, "other", noise=0.5)
    np.testing.assert_array_equal(first, again)
    assert (first != other)[1:].all()


# The replay.


def replayed(ticks, file, count, step=1e-3, **options):
    d = Diagram("played", step=step)
    d.add(Constant(0.0), name="force")
    channel = {"signal": "pull"} if options.pop("renamed", False) else {}
    rig = {
        "devices": {"r": {
            "driver": "replay", "file": file, "receive": {"force": channel}, **options,
        }},
        "signals": {"force": "r.force"},
    }  # fmt: skip
    rows = ticks(open_binding(d, rig)).advance(count, signals=["force", "r.age", "r.alive"])
    return np.array(rows).T


def recording(path, times, values, name="force"):
    result = Result.from_arrays(np.asarray(times), {name: np.asarray(values)})
    (result.to_csv if path.suffix == ".csv" else result.to_hdf5)(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".h5"])
def test_a_recording_is_played_tick_by_tick(ticks, tmp_path, suffix):
    values = np.sin(np.arange(50.0))
    file = recording(tmp_path / f"log{suffix}", np.arange(50) * 1e-3, values)
    force, age, alive = replayed(ticks, str(file), 60)
    np.testing.assert_array_equal(force[:50], values)
    assert (force[50:] == values[-1]).all()
    assert (age == 0).all()
    assert (alive == 1).all()


def test_a_slower_recording_is_held_and_grows_old(ticks, tmp_path):
    file = recording(tmp_path / "log.csv", np.arange(4) * 3e-3, [1.0, 2.0, 3.0, 4.0], "pull")
    force, age, _ = replayed(ticks, str(file), 9, renamed=True)
    np.testing.assert_array_equal(force, [1, 1, 1, 2, 2, 2, 3, 3, 3])
    np.testing.assert_array_equal(age, [0, 1, 2] * 3)


def test_a_faster_recording_gives_the_newest(ticks, tmp_path):
    file = recording(tmp_path / "log.csv", np.arange(12) * 0.5e-3, np.arange(12.0))
    force, _, _ = replayed(ticks, str(file), 5)
    np.testing.assert_array_equal(force, [0, 2, 4, 6, 8])


def test_the_end_of_a_recording_may_be_a_loss_or_a_new_start(ticks, tmp_path):
    file = recording(tmp_path / "log.csv", np.arange(3) * 1e-3, [1.0, 2.0, 3.0])
    force, _, _ = replayed(ticks, str(file), 8, end="repeat")
    np.testing.assert_array_equal(force, [1, 2, 3, 1, 2, 3, 1, 2])
    force, _, alive = replayed(ticks, str(file), 5, end="lost", on_loss="hold")
    np.testing.assert_array_equal(force, [1, 2, 3, 3, 3])
    np.testing.assert_array_equal(alive, [1, 1, 1, 0, 0])
    with pytest.raises(ticks.ended, match="device `r` is disconnected: the recording has ended"):
        replayed(ticks, str(file), 5, end="lost")


def test_a_recording_that_does_not_fit_is_a_problem_of_the_binding(ticks, tmp_path):
    file = recording(tmp_path / "log.csv", [0.0, 1.0], [1.0, 2.0], "pull")
    with pytest.raises(DeviceError, match=r"\[devices.r\] file: .*has no signal `force`.*pull"):
        replayed(ticks, str(file), 1)
    with pytest.raises(DeviceError, match=r"\[devices.r\] file: .*there is no file"):
        replayed(ticks, str(tmp_path / "none.csv"), 1)


def forces():
    times, values = np.arange(4) * 1e-3, np.arange(4.0)
    return Result.from_arrays(times, {"force": values}, units={"force": "kN"})


def test_the_result_of_a_run_is_played(ticks):
    result = forces()
    force, _, _ = replayed(ticks, result, 4)
    np.testing.assert_array_equal(force, [0, 1, 2, 3])


def test_a_recording_in_another_unit_is_refused_unless_it_is_scaled():
    result = forces()
    d = Diagram("played", step=1e-3)
    d.add(Constant(0.0, unit="N"), name="force")
    channel: dict[str, Any] = {"unit": "N"}
    rig = {
        "devices": {"r": {"driver": "replay", "file": result, "receive": {"force": channel}}},
        "signals": {"force": "r.force"},
    }
    assert check_binding(d, rig).problems == [
        "[devices.r] file: `force` of the result is in kN, but its channel in N: set unit and "
        "scale of the channel."
    ]
    channel["scale"] = 1000.0
    assert check_binding(d, rig).problems == []


def test_a_closed_device_still_reports_what_happened(ticks):
    rig = {"devices": {"b": device({"y": {}}, {"u": {}})}, "blocks": {"k": {"device": "b"}}}
    bound = open_binding(loop(), rig)
    ticks(bound).advance(3)
    bound.close()
    bound.close()
    assert bound.devices[0].counts["frames"] == 2
    assert bound.devices[0].why == ""


def test_what_only_the_bound_diagram_has_wrong_is_a_problem_too(tmp_path):
    inner = Diagram("inner", step=1e-3)
    g = inner.add(Gain(-2.0), name="g")
    inner.connect(inner.input("u"), g)
    inner.output("y", g)
    inner.export_fmu(tmp_path / "gain.fmu", sources=False)
    (tmp_path / "rig.toml").write_text('[blocks.k]\nfmu = "gain.fmu"\nperiod = 0.0015')
    (problem,) = check_binding(loop(), tmp_path / "rig.toml").problems
    assert problem.startswith(
        "the diagram with this binding is not valid: the period of `k`, 0.0015 s, is not a"
    )
