"""Results in MDF4 files."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Integrator, Relay
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError, Signal

STEP = 1e-4


T = np.arange(100_001) * STEP


class TestMdf4:
    def result(self) -> Result:
        return Result.from_arrays(
            T[:500],
            {
                Signal("pid.u", unit="N.m"): np.sin(7 * T[:500]),
                Signal("adc.code", 2, "count", "integer"): np.outer(np.arange(500), [1, 65536]),
                Signal("pid.limited", kind="boolean"): np.arange(500) % 2,
            },
            info={"diagram": "loop"},
        )

    def test_asammdf_opens_it_again(self, tmp_path: Path) -> None:
        mdf = pytest.importorskip("asammdf")
        result = self.result()
        result.to_mdf4(tmp_path / "run.mf4")
        assert [p.name for p in tmp_path.iterdir()] == ["run.mf4"]
        with mdf.MDF(tmp_path / "run.mf4") as file:
            assert file.version == "4.10"
            torque = file.get("pid.u")
            assert np.array_equal(torque.samples, result["pid.u"]) and torque.unit == "N.m"
            assert np.array_equal(torque.timestamps, result.t)
            code = file.get("adc.code[1]")
            assert np.array_equal(code.samples, result["adc.code[1]"])
            assert code.samples.dtype.kind == "i" and code.unit == "count"
            assert file.get("pid.limited").samples.dtype == np.uint8
            assert "loop" in file.header.comment

    def test_enumerations_are_shown_by_name(self, tmp_path: Path) -> None:
        mdf = pytest.importorskip("asammdf")
        signal = Signal("heater.state", kind="enumeration", names=("off", "on"))
        Result.from_arrays(T[:4], {signal: [1, 2, 2, 1]}).to_mdf4(tmp_path / "run.mf4")
        with mdf.MDF(tmp_path / "run.mf4") as file:
            assert file.get("heater.state").samples.tolist() == [b"off", b"on", b"on", b"off"]
            assert file.get("heater.state", raw=True).samples.tolist() == [1, 2, 2, 1]

    def test_events_are_a_channel_of_text(self, tmp_path: Path) -> None:
        mdf = pytest.importorskip("asammdf")
        d = Diagram("oscillator", step=1e-2)
        x = d.add(Integrator(0.055), "x")
        d.connect(d.add(Relay(0.1, -0.1, -1.0, 1.0), "relay", u=x), x)
        result = simulate(d, 1.0)
        result.to_mdf4(tmp_path / "run.mf4")
        with mdf.MDF(tmp_path / "run.mf4") as file:
            events = file.get("events")
            assert np.array_equal(events.timestamps, result.events.times())
            assert events.samples.tolist() == [b"relay: switch"] * 5
            assert np.array_equal(file.get("x.y").samples, result["x"])

    def test_another_name_is_refused(self, tmp_path: Path) -> None:
        pytest.importorskip("asammdf")
        with pytest.raises(ResultError, match=r"must have the extension .mf4, got `run.mdf`"):
            self.result().to_mdf4(tmp_path / "run.mdf")

    def test_without_asammdf_the_message_says_what_to_install(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "asammdf", None)
        with pytest.raises(ResultError, match=r"pip install 'biella\[mdf\]'"):
            self.result().to_mdf4(tmp_path / "run.mf4")
        assert list(tmp_path.iterdir()) == []
