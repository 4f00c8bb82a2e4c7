"""The process of an isolated FMU: its protocol, without the run around it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from biella.fmu.importer.backends._isolated import DONE, FAILED, REPLY, REQUEST

pytestmark = pytest.mark.engine


def ask(*requests: tuple[bytes, bytes]) -> list[tuple[int, bytes]]:
    """Return the outcome and the answer to each request of a worker that then ends."""
    sent = b"".join(REQUEST.pack(op, 0.0, 1.0, len(data)) + data for op, data in requests)
    command = [sys.executable, "-m", "biella.fmu.importer.backends._worker"]
    done = subprocess.run(command, input=sent, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers, rest = [], done.stdout
    while rest:
        outcome, size = REPLY.unpack(rest[: REPLY.size])
        answers.append((outcome, rest[REPLY.size : REPLY.size + size]))
        rest = rest[REPLY.size + size :]
    return answers


def test_a_file_that_has_changed_is_refused(specimen):
    order = json.dumps({"path": str(specimen), "digest": "other"}).encode()
    [(outcome, answer)] = ask((b"L", order))
    assert outcome == FAILED
    assert b"`specimen.fmu` has changed since the block was created" in answer


def test_a_request_before_an_fmu_is_loaded_is_answered_and_the_next_one_too():
    answers = ask((b"O", b""), (b"L", b"not json"), (b"Q", b""))
    assert [outcome for outcome, _ in answers] == [FAILED, FAILED]
    assert answers[0][1].startswith(b"AssertionError")
    assert answers[1][1].startswith(b"JSONDecodeError")


def test_nothing_that_an_fmu_prints_gets_among_the_answers(specimen):
    from biella.fmu import Fmu

    digest = Fmu(specimen, period=1.0).description.archive.digest  # type: ignore[attr-defined]
    order = json.dumps({"path": str(specimen), "digest": digest}).encode()
    answers = ask((b"L", order), (b"N", b""), (b"S", b""))
    assert answers[:2] == [(DONE, b"")] * 2
    assert len(answers) == 3
