"""The ring of newest rows: what is in it, and that readers never see half a row."""

import threading

import numpy as np

from biella.scheduler.realtime._history import History
from biella.scheduler.results._signals import Signal


def history(rows, *widths):
    signals = [Signal(f"s{n}", width) for n, width in enumerate(widths)]
    return History(signals, 0.5, 8 * (1 + sum(widths)) * rows)


def rows(first, end, width):
    """Row n is n/2 s and then n, n + 0.1, …: each number says where it belongs."""
    numbers = np.arange(first, end, dtype=np.float64)[:, None]
    return np.hstack([0.5 * numbers, numbers + 0.1 * np.arange(width)])


def test_the_newest_rows_are_there_and_the_older_ones_are_not():
    ring = history(10, 1, 2)
    assert ring.columns == {"s0": 1, "s1": 2} and ring.capacity == 10
    ring.take(rows(0, 7, 3))
    assert (ring.begin, ring.end) == (0, 7)
    ring.take(rows(7, 13, 3))
    assert (ring.begin, ring.end) == (3, 13)
    first, found = ring.read(0, 100)
    assert first == 3
    assert np.array_equal(found.T, rows(3, 13, 3))
    first, found = ring.read(8, 11, [0, 3])
    assert first == 8
    assert np.array_equal(found.T, rows(8, 11, 3)[:, [0, 3]])


def test_more_rows_at_once_than_there_is_room_for():
    ring = history(10, 1)
    ring.take(rows(0, 4, 1))
    ring.take(rows(4, 37, 1))
    first, found = ring.read(0, 37)
    assert first == 27 and np.array_equal(found.T, rows(27, 37, 1))


def test_a_row_is_found_by_its_time():
    ring = history(10, 1)
    ring.take(rows(0, 23, 1))
    assert ring.find(0.0) == ring.begin == 13
    assert ring.find(8.0) == 16
    assert ring.find(8.1) == 17
    assert ring.find(1e9) == 23


def test_nothing_is_kept_without_room():
    ring = history(0, 2)
    ring.take(rows(0, 5, 2))
    assert (ring.begin, ring.end, ring.capacity) == (0, 0, 0)
    assert ring.read(0, 5)[1].shape == (3, 0)
    assert ring.find(1.0) == 0


def test_readers_see_whole_rows_while_they_are_written():
    ring = history(50, 1, 4)
    done = threading.Event()

    def write():
        number = 0
        generator = np.random.default_rng(1)
        while number < 200_000:
            count = int(generator.integers(1, 40))
            ring.take(rows(number, number + count, 5))
            number += count
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while not done.is_set():
        first, found = ring.read(ring.begin, ring.end)
        count = found.shape[1]
        assert np.array_equal(found.T, rows(first, first + count, 5))
        seen += count
    writer.join(60)
    assert seen
