"""`biella doctor` reads a machine rightly, measures all variants in turns, and says what it saw."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from biella import cli
from biella.scheduler.host._doctor import Diagnosis, conclude, write_share
from biella.scheduler.host._latency import (
    Variant,
)
from biella.scheduler.host._privileges import Privileges

linux = pytest.mark.skipif(sys.platform != "linux", reason="not on Linux")


def test_of_none_seen_a_bound_is_reported():
    assert write_share(0.0, 3000) == "< 0.1 %"
    assert 0.049 < (1 - 0.1 / 100) ** 3000 < 0.051  # 95 % of such measurements see at least one
    assert write_share(0.0, 2) == "< 100 %"
    assert write_share(0.0123, 3000) == "1.2 %"
    assert write_share(1.0, 3000) == "100 %"


def test_the_conclusion_stops_at_the_first_rate_that_misses():
    lateness = np.zeros(10_000, np.int64)
    lateness[:5] = 600_000  # more than half a period from 1 kHz on, in 0.05 %
    lateness[5:100] = 30_000  # from 20 kHz on, in 1 %
    plain = Variant("plain", Privileges(), turns=[lateness])
    lines = conclude(Diagnosis([], [], [plain], 1000, 10, 0.5))
    assert lines[0] == (
        "plain: no deadline missed up to 500 Hz, at most one in a thousand up to 10000 Hz."
    )
    assert "has no upper bound" in lines[-1] and len(lines) == 2


@pytest.mark.engine
def test_the_command_prints_tables_and_draws(tmp_path, capsys):
    picture = tmp_path / "late.png"
    arguments = ["doctor", "--rate", "2000", "--seconds", "0.05", "--plot", str(picture)]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    for text in (
        "This machine",
        "Privileges of a real-time thread",
        "lateness at 2000 Hz",
        "no upper bound",
    ):
        assert text in out
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.engine
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--rate", "0", "--rate must be 1 Hz to 1 MHz, got 0 Hz"),
        ("--rate", "nan", "--rate must be 1 Hz to 1 MHz"),
        ("--seconds", "-1", "--seconds must be a positive"),
        ("--load", "1", "--load must be a fraction"),
    ],
)
def test_options_out_of_range_are_refused(option, value, message, capsys):
    assert cli.main(["doctor", option, value]) == 1
    assert message in capsys.readouterr().err


# Python itself may lie where nobody may read: all is imported before.
AS_NOBODY = """
import grp, os, resource, sys
from biella import cli
from biella.scheduler.host import _latency as wakeups
from biella.scheduler.host import _system_info as machine
wakeups.library()
machine.examine()
resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(cli.main(["doctor", "--seconds", "0.02", "--json"]))
"""


@linux
@pytest.mark.engine
def test_without_permissions_it_measures_the_rest_and_says_what_was_refused():
    command = [sys.executable, "-c", AS_NOBODY]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    refused = {p["name"] for p in told["privileges"] if not p["granted"]}
    assert {"priority", "locked memory"} <= refused
    variants = {v["name"]: v for v in told["variants"]}
    assert variants["priority 80"]["lateness_us"] is None
    assert variants["priority 80"]["wakeups"] == 0
    assert variants["plain"]["wakeups"] == variants["all"]["wakeups"] == 20
    assert sum(variants["plain"]["histogram"]) == 20
    assert any(text.startswith("priority: not granted") for text in variants["all"]["refused"])
    assert set(told["missed_share"]["1000"]) == {n for n in variants if variants[n]["wakeups"]}
    assert any("@realtime - rtprio 99" in text for text in told["advice"])
