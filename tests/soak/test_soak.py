"""The soak, one minute of it; and that its judgments fail when what they judge is wrong."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOAK = Path(__file__).with_name("soak.py")
OURS = 7  # session


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """What a minute of the soak has left; it holds."""
    from soak_judge import Soaked

    folder = tmp_path_factory.mktemp("soak") / "left"
    done = subprocess.run(
        [sys.executable, SOAK, "--seconds", "60", "--seed", "1", "--keep", folder],
        capture_output=True, text=True, timeout=300
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    return Soaked(folder)


@pytest.fixture
def soaked(left):
    """A copy that may be spoilt."""
    s = copy.copy(left)
    s.report = copy.deepcopy(left.report)
    s.wires = {name: wire.copy() for name, wire in left.wires.items()}
    return s


def failed(part, *arguments):
    return [row.what for row in part(*arguments) if not row.holds]


@pytest.mark.soak
def test_a_minute_of_faults(left):
    assert len(left.done) > 14


@pytest.mark.soak
def test_an_overrun_too_many_fails(soaked):
    import soak_judge

    assert not failed(soak_judge.judge_overruns, soaked)
    soaked.report["overruns"] += 2
    assert failed(soak_judge.judge_overruns, soaked) == ["overruns, as reported"]
    soaked.busy = soaked.busy.copy()
    soaked.busy[np.argmax(soaked.busy > 2e-3)] = 5e-4
    assert len(failed(soak_judge.judge_overruns, soaked)) > 1


@pytest.mark.soak
def test_a_gap_that_is_not_marked_fails(soaked):
    import soak_judge

    assert not failed(soak_judge.judge_recorder, soaked)
    soaked.report["gaps"][0]["last"] -= 1
    assert "ticks missing but not marked" in failed(soak_judge.judge_recorder, soaked)


@pytest.mark.soak
def test_a_replay_with_other_bits_fails(soaked):
    import soak_judge

    assert not failed(soak_judge.judge_replay, soaked)
    soaked.logged = np.maximum(0, soaked.logged - 1)
    assert len(failed(soak_judge.judge_replay, soaked)) == 1


@pytest.mark.soak
def test_a_change_that_did_not_enter_fails(soaked):
    import soak_judge

    assert not failed(soak_judge.judge_changes, soaked)
    soaked.changes = soaked.changes[:-1]
    assert "live changes that entered" in failed(soak_judge.judge_changes, soaked)


@pytest.mark.soak
def test_memory_that_grows_fails(soaked):
    import soak_judge

    assert not failed(soak_judge.judge_memory, soaked)
    soaked.memory = [(s, size + 2e5 * s) for s, size in soaked.memory]
    assert failed(soak_judge.judge_memory, soaked)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["net", "line", "card"])
def test_a_device_that_was_not_commanded_to_be_safe_fails(soaked, name):
    import soak_judge

    assert not failed(soak_judge.judge_sent, soaked, name)
    wire = soaked.wires[name]
    soaked.wires[name] = wire[(wire["flags"] & soak_judge.SAFE) == 0]
    found = failed(soak_judge.judge_sent, soaked, name)
    assert f"{name}: losses without safe values on the wire" in found
    assert f"{name}: safe values as its last frames" in found


@pytest.mark.soak
@pytest.mark.parametrize("name", ["net", "line", "card"])
def test_values_that_nobody_has_said_fail(soaked, name):
    import soak_judge

    assert not failed(soak_judge.judge_values, soaked, name)
    wire = soaked.wires[name]
    wire["values"][wire["way"] == soak_judge.UP] += 1e6
    found = failed(soak_judge.judge_values, soaked, name)
    assert f"{name}: values that the device has not said" in found


@pytest.mark.soak
@pytest.mark.parametrize("name", ["net", "line", "card"])
def test_a_loss_that_was_not_seen_fails(soaked, name):
    import soak_judge

    assert not failed(soak_judge.judge_losses, soaked, name)
    # A machine that stalls makes losses of its own: this one is where none was.
    quiet = next(
        tick
        for tick in range(1000, soaked.whole.length, 10)
        if not any(a <= tick + 11 and b >= tick for a, b in soaked.losses(name))
    )
    never = {"device": name, "kind": "peer killed", "first": quiet, "last": quiet + 10}
    soaked.done = [*soaked.done, never]
    assert failed(soak_judge.judge_losses, soaked, name) == [f"{name}: caused losses, all seen"]
    soaked.report["devices"][name]["losses"] += 1
    assert f"{name}: losses, as reported" in failed(soak_judge.judge_losses, soaked, name)


@pytest.mark.soak
def test_a_datagram_too_many_fails(soaked):
    import soak_judge

    assert not failed(soak_judge.judge_datagrams, soaked)
    soaked.report["devices"]["net"]["stale"] += 1
    assert "net: datagrams accounted for" in failed(soak_judge.judge_datagrams, soaked)
    soaked.report["devices"]["line"]["frames"] += 2000
    assert failed(soak_judge.judge_line, soaked)
    soaked.report["devices"]["card"]["frames"] += 100
    assert failed(soak_judge.judge_card, soaked)


def frames(*items):
    """Records of (session, sequence, echo, life, time); None is a corrupt one."""
    from soak_peers import WIRE

    made = np.zeros(len(items), dtype=WIRE)
    for record, item in zip(made, items, strict=True):
        if item is not None:
            session, sequence, echo, life, when = item
            record["valid"], record["session"], record["sequence"] = 1, session, sequence
            record["echo"], record["time"], record["values"] = echo, when, (life, 0, 0)
    return made


def test_frames_are_accounted_for_by_the_rules_of_the_page():
    from soak_judge import Account, account

    came = frames(
        (0, 1, 0, 1, 0.000), (OURS, 2, 1, 1, 0.001), (OURS, 3, 2, 1, 0.002), None,
        (OURS, 3, 2, 1, 0.003),  # twice
        (OURS, 6, 5, 1, 0.006), (OURS, 5, 4, 1, 0.007),  # two are missed, one comes late
        (0, 1, 0, 2, 0.100), (OURS, 2, 90, 2, 0.101),  # restarted, and said so
        (OURS, 7, 6, 1, 0.102),  # newer by its number, of the life before
    )  # fmt: skip
    assert account(came, OURS) == Account(frames=4, corrupt=1, stale=5, missed=2)


def test_a_restart_that_was_not_announced_is_taken_after_silence():
    from soak_judge import Account, account

    came = frames((OURS, 50, 49, 1, 0.0), (OURS, 1, 60, 2, 0.05), (OURS, 2, 300, 2, 0.3))
    assert account(came, OURS) == Account(frames=2, stale=1, unsure=2)
