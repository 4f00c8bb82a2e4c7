"""Bins of samples: no peak is lost, bins do not move while rows come, and gaps stay."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biella.scheduler.realtime._history import History
from biella.scheduler.results._signals import Signal
from biella.studio import _scopes
from biella.studio._scopes import HISTORY, SINGLE, WINDOW, Scope, decimate


def read(message):
    kind, _, columns, rows, flags, _ = struct.unpack_from("<6I", message)
    assert kind == 1
    return flags, np.frombuffer(message, offset=24).reshape(rows, columns)


def fill(history, begin, end, seed=7):
    """Noise, the same for each row whenever it is added."""
    noise = np.random.default_rng(seed).normal(size=(20_000, 2))[begin:end]
    history.take(np.column_stack([1e-3 * np.arange(begin, end), noise]))


def ring(rows=20_000):
    return History([Signal("a"), Signal("b")], 1e-3, 8 * 3 * rows)


@given(
    st.integers(0, 50),
    st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=200),
    st.integers(1, 30),
)
def test_each_bin_has_the_least_and_the_most_of_its_rows(first, values, size):
    times = np.arange(first, first + len(values), dtype=float)
    bins = decimate(first, np.array([times, values]), size)
    groups: dict[int, list[float]] = {}
    for time, value in zip(times, values, strict=True):
        groups.setdefault(int(time) // size, []).append(value)
    assert bins[:, 1].tolist() == [min(group) for group in groups.values()]
    assert bins[:, 2].tolist() == [max(group) for group in groups.values()]
    assert bins[:, 0].tolist() == [max(first, number * size) for number in groups]


def test_rows_without_a_value_do_not_hide_others():
    rows = np.array([[0.0, 1.0, 2.0, 3.0], [np.nan, 5.0, np.nan, np.nan]])
    bins = decimate(0, rows, 2)
    assert bins[0].tolist() == [0.0, 5.0, 5.0]
    assert np.isnan(bins[1, 1:]).all()


def test_a_peak_of_one_sample_survives_live_history_and_window():
    history = ring()
    scope = Scope(3, ["a"], [1], rate=20.0, history=10.0)
    shown = np.empty((0, 3))
    peaks = (137, 4_003, 9_999)
    for begin in range(0, 10_000, 700):
        end = min(begin + 700, 10_000)
        rows = np.zeros((end - begin, 3))
        rows[:, 0] = 1e-3 * np.arange(begin, end)
        for peak in peaks:
            rows[rows[:, 0] == 1e-3 * peak, 1] = peak
        history.take(rows)
        message = scope.take(history)
        assert message is not None
        flags, bins = read(message)
        if len(shown) and bins[0, 0] == shown[-1, 0]:
            shown = shown[:-1]  # the last bin has grown
        shown = np.vstack([shown, bins])
        assert bool(flags & HISTORY) == (begin == 0)
    assert len(shown) == 200 and np.array_equal(shown[:, 0], 1e-3 * (50 * np.arange(200)))
    assert sorted(shown[:, 2])[-3:] == list(peaks)
    assert scope.take(history) is None
    flags, bins = read(scope.window(history, 0.0, 10.0, 7))
    assert flags & WINDOW and len(bins) == 7
    assert sorted(bins[:, 2])[-3:] == list(peaks)
    flags, bins = read(scope.window(history, 4.001, 4.005, 100))
    assert flags & SINGLE and bins[:, 0] == pytest.approx(np.arange(4.0, 4.0065, 1e-3))
    late = Scope(4, ["a"], [1], rate=1.0, history=10.0)
    message = late.take(history)
    assert message is not None
    assert sorted(read(message)[1][:, 2])[-3:] == list(peaks)


def test_a_window_beside_the_rows_is_empty_and_a_slow_reader_gets_coarser_bins():
    history = ring()
    scope = Scope(1, ["a", "gone"], [1, -1], rate=1e6, history=0.0)
    assert not len(read(scope.take(history))[1]) and scope.take(history) is None
    fill(history, 0, 10)
    assert scope.take(history) is not None
    fill(history, 10, 15_000)
    message = scope.take(history)
    assert message is not None
    flags, bins = read(message)
    assert not flags & SINGLE and len(bins) <= 4000
    noise = np.random.default_rng(7).normal(size=(20_000, 2))[9:15_000, 0]
    assert bins[:, 2].max() == noise.max() and bins[:, 1].min() == noise.min()
    assert np.isnan(bins[:, 3:]).all()
    for first, last in ((-5.0, -1.0), (100.0, 101.0)):
        assert len(read(scope.window(history, first, last, 10))[1]) <= 2


def test_long_times_are_read_in_pieces_with_the_same_bins(monkeypatch):
    """A recording may be larger than the memory; and a tick may wait for who holds the GIL."""
    history = ring()
    fill(history, 0, 15_000)
    counts = []
    read_rows = history.read

    def count(first, end, columns=None):
        counts.append(end - first)
        return read_rows(first, end, columns)

    monkeypatch.setattr(history, "read", count)
    scope = Scope(1, ["a", "gone"], [1, -1], rate=50.0, history=14.0)
    spans = [(1.234, 14.321, 77), (0.0, 15.0, 4000), (3.0, 3.1, 10)]
    whole = [scope.window(history, *span) for span in spans] + [scope.take(history)]
    monkeypatch.setattr(_scopes, "_MOST_VALUES", 500)
    scope = Scope(1, ["a", "gone"], [1, -1], rate=50.0, history=14.0)
    counts.clear()
    assert [scope.window(history, *span) for span in spans] + [scope.take(history)] == whole
    assert max(counts) <= 250 and sum(counts) > 40_000


def test_rows_that_are_gone_leave_a_gap():
    history = ring(100)
    scope = Scope(1, ["a"], [1], rate=1000.0, history=0.0)
    fill(history, 0, 50)
    scope.take(history)
    fill(history, 50, 1000)
    message = scope.take(history)
    assert message is not None
    assert read(message)[1][0, 0] == pytest.approx(0.9)


def test_a_run_without_rows_clears_what_the_page_shows_of_another():
    """A paused run has none until it is resumed or stepped."""
    scope, history = Scope(3, ["a"], [1], rate=100.0, history=1.0), ring()
    fill(history, 0, 100)
    assert len(read(scope.take(history))[1])
    scope.restart([1])
    flags, bins = read(scope.take(ring()))
    assert flags & HISTORY and bins.shape == (0, 3)
    assert scope.take(ring()) is None
    flags, bins = read(scope.take(history))
    assert flags & HISTORY and len(bins)
