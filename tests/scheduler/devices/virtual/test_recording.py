"""Recordings that a device is replayed from: ticks of their rows, units, and ends."""

from __future__ import annotations

from ctypes import c_double, c_int64
from typing import Any

import numpy as np
import pytest

from biella import Diagram
from biella.blocks import Constant
from biella.errors import DeviceError
from biella.scheduler.binding._bind import check_binding, open_binding
from biella.scheduler.engine._library import contract, library
from biella.scheduler.results._result import Result

from ..native import Device

pytestmark = pytest.mark.engine


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


def test_before_the_first_row_there_is_no_value_yet(ticks, tmp_path):
    """The signal keeps its own value, which is 0, and the device is not heard."""
    file = recording(tmp_path / "log.csv", np.arange(3, 6) * 1e-3, [5.0, 6.0, 7.0])
    force, age, _ = replayed(ticks, str(file), 6)
    np.testing.assert_array_equal(force, [0, 0, 0, 5, 6, 7])
    np.testing.assert_array_equal(age[3:], [0, 0, 0])


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


def test_before_the_first_row_nothing_is_written():
    handle = library().bl_replay_open(
        b"r", 1, 0, (c_int64 * 2)(1, 2), (c_double * 2)(5.0, 6.0), 2, contract.BL_REPLAY_HOLDS
    )
    with Device(handle, 1) as device:
        device.state.received[0] = 7.0
        assert device.take(0) == {} and device.state.received[0] == 7.0
        device.tick = 1
        assert device.take(0) == {0: 5.0}


def test_a_closed_device_leaves_no_memory(allocated):
    ticks, values = (c_int64 * 1)(0), (c_double * 1)(1.0)
    for count in (10, 5000):
        before = allocated()
        for _ in range(count):
            library().bl_device_close(
                library().bl_replay_open(b"r", 1, 0, ticks, values, 1, contract.BL_REPLAY_HOLDS)
            )
    assert allocated() - before < 32 * 5000
