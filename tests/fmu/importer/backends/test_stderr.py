"""Standard error of a confined process, in the log of the run."""

from __future__ import annotations

import os
import sys

import pytest

from biella.fmu.importer.backends._stderr import StderrLog

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


@pytest.fixture
def pipe():
    """A log, and the end of its pipe to write to."""
    reading, writing = os.pipe()
    return StderrLog(reading, "FMU `f`"), writing


def end(log, writing):
    """Close both ends once all is read."""
    os.close(writing)
    log._thread.join(60)
    log.close()


def test_lines_are_warnings_without_what_controls_a_terminal(pipe, caplog):
    log, writing = pipe
    os.write(writing, b"one\n\x1b[2Jt\xff")
    os.write(writing, b"wo\r\nrest " + b"x" * 3000)
    end(log, writing)
    assert [r.levelname for r in caplog.records] == ["WARNING"] * 3
    one, two, rest = caplog.messages
    assert one == "FMU `f`: one" and two == "FMU `f`: \N{REPLACEMENT CHARACTER}[2Jt" + (
        "\N{REPLACEMENT CHARACTER}wo\N{REPLACEMENT CHARACTER}"
    )
    assert rest == f"FMU `f`: rest {'x' * 495}…"


def test_a_flood_is_dropped_and_counted(pipe, caplog):
    log, writing = pipe
    for _ in range(20):
        os.write(writing, b"again\n" * 1000)
    end(log, writing)
    *lines, last = caplog.messages
    assert 100 <= len(lines) == 20_000 - log.dropped < 10_000
    assert last == f"FMU `f`: {log.dropped} more lines of its standard error were dropped."


def test_a_line_without_end_takes_no_memory(pipe, caplog):
    log, writing = pipe
    for _ in range(100):
        os.write(writing, b"x" * 60_000)
    end(log, writing)
    assert len(log._rest) <= 2000 and [len(text) for text in caplog.messages] == [510]


def test_what_is_written_for_ever_does_not_keep_it_open(pipe):
    """Such as by a child that has the pipe: nothing more is expected once it closes."""
    log, writing = pipe
    log.close()
    os.close(writing)
