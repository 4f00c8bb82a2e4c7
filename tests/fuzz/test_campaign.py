"""The record of fuzz campaigns."""

import os
import signal
import subprocess
import sys

import campaign
import pytest


def test_inputs_are_counted_in_both_forms_of_log():
    forked = "#186560: cov: 17958 ft: 22844 corp: 1387\n#210901: cov: 17974\nINFO: exiting\n"
    single = "#2\tINITED cov: 4 ft: 5\n#1024\tpulse  cov: 9 ft: 20\n#700\tNEW    cov: 9\n"
    assert campaign.inputs(forked) == 210901
    assert campaign.inputs(single) == 1024
    assert campaign.inputs("compilation failed\n") == 0


def test_slow_inputs_are_no_findings(tmp_path):
    for name in ("plan-crash-1", "plan-leak-2", "plan-oom-3", "plan-timeout-4", "plan-slow-unit-5"):
        (tmp_path / name).touch()
    (tmp_path / "plan.log").touch()
    (tmp_path / "plan").mkdir()
    found = {path.name for path in campaign.findings("plan", tmp_path)}
    assert found == {"plan-crash-1", "plan-leak-2", "plan-oom-3"}


def test_time_counts_for_the_sources_it_was_spent_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(campaign, "RECORD", tmp_path / "campaigns.csv")
    now = campaign.digest("wire")
    earlier = campaign.Campaign("2026-01-01", "1234567", "wire", "000000000000", 12.5, 1000, 1)
    current = campaign.Campaign("2026-01-02", "2345678", "wire", now, 30.0, 2000, 0)
    campaign.add(earlier)
    campaign.add(current)
    assert campaign.read() == [earlier, current]
    campaign.report()
    assert "| `wire` | 42 min | 30 min | 3,000 | 1 |" in capsys.readouterr().out


def test_processor_time_of_a_session_includes_processes_that_have_ended():
    burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    process = subprocess.Popen(
        ["sh", "-c", f"sh -c '{burn}'; echo done; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        assert campaign.processor_seconds(process.pid) > 0.0
    finally:
        process.communicate(b"\n", timeout=30)
    assert campaign.processor_seconds(process.pid) == 0.0


@pytest.mark.parametrize("target", campaign.TARGETS)
def test_targets_exist(target):
    known = (campaign.HERE / "run").read_text() + (campaign.HERE / "fuzz_files.py").read_text()
    assert target in known


def test_a_campaign_in_the_background_is_recorded_when_it_is_ended(tmp_path):
    """A shell starts it with SIGINT ignored."""
    fuzzer = tmp_path / "run"
    fuzzer.write_text("#!/bin/sh\nexec timeout 120 sh -c 'while true; do :; done'\n")
    fuzzer.chmod(0o755)
    code = f"""
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path.insert(0, {str(campaign.HERE)!r})
import campaign
campaign.HERE, campaign.RECORD = Path({str(tmp_path)!r}), Path({str(tmp_path)!r}, "record.csv")
sys.argv[1:] = ["rig"]
sys.exit(campaign.main())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**os.environ, "FUZZ_WORK": str(tmp_path / "work")},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.read(len("\rrig: "))  # it has begun
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.communicate(timeout=60)
    assert ",rig," in (tmp_path / "record.csv").read_text()
