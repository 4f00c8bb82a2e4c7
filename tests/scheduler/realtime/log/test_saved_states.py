"""Saved states of a live run: how many, how far apart, and when none are saved."""

import numpy as np
import pytest

from biella import Diagram
from biella.blocks import Delay, Sine
from biella.scheduler.engine._engine import Instance
from biella.scheduler.realtime._start import start_run
from biella.scheduler.realtime.log._saved_states import SavedStates

from ..live_runs import loop, wait_until

pytestmark = pytest.mark.engine


def open_states(size, diagram=None, **options):
    """Start a run that saves states, and end it at once."""
    given = {"record": ["*"], "clock": "free", **options}
    run = start_run(diagram or loop(), given, {}, states=size, paused=True)
    run.stop()
    return run.states


def test_the_spacing_follows_from_the_memory():
    run = start_run(loop(), {"clock": "free"}, {}, states=1 << 24, paused=True)
    run.stop()
    size = run.states.bytes
    assert run.states.every == 250  # 240 states in 60 s
    assert open_states(10 * size).every == 6000
    assert open_states(0).every == 0
    assert open_states(7 * size).every == 0  # too few to be of use
    assert open_states(1 << 24, loop(step=0.5)).every == 32


def test_the_oldest_states_go_first():
    other = start_run(loop(), {"clock": "free"}, {}, states=1 << 24, paused=True)
    with other:
        room = 10 * other.states.bytes
    with start_run(loop(0.5), {"clock": "free"}, {}, states=room, paused=True) as run:
        for _ in range(25):
            end = run.tick + 32
            run.step(32)
            wait_until(lambda end=end: any(tick == end for tick, _ in run.states.kept))
        ticks = [tick for tick, _ in run.states.kept]
        assert ticks == list(range(16 * 32, 26 * 32, 32))
        assert run.states.find(16 * 32 - 1) is None
        assert run.states.find(640) == run.states.find(671)
        assert (run.states.find(671) or (0, b""))[0] == 640


def test_a_state_is_what_the_engine_saves():
    with start_run(loop(), {"clock": "free"}, {}, states=1 << 24, paused=True) as run:
        run.step(300)
        wait_until(lambda: run.tick == 300 and run.states.kept)
    ((tick, state),) = run.states.kept
    assert tick == 250
    with Instance(run.plan) as instance:
        instance.initialize()
        instance.run(250)
        assert instance.save() == state
        instance.restore(state)
        assert instance.tick == 250


def test_a_state_that_takes_a_noticeable_part_of_the_period_is_not_copied():
    d = Diagram("large", step=1e-4)
    d.add(Delay(20_000), "delay", u=d.add(Sine(), "wave"), period=1e-4)
    assert open_states(1 << 26, d, clock="wall").every == 0
    assert open_states(1 << 26, d, clock="wall", factor=1e-3).every > 0


def test_states_of_a_continued_run_come_before_its_own():
    states = SavedStates(0)
    states.inherit([(1, b"x")])
    assert list(states.kept) == []
    states = open_states(1 << 24)
    states.inherit([(k, b"x") for k in range(300)])
    assert len(states.kept) == 240 and states.kept[-1][0] == 299
    assert np.all(np.diff([tick for tick, _ in states.kept]) == 1)
