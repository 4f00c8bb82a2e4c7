"""`biella rearm`: a latched run of another process continues."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from biella import BiellaError, cli, run_realtime
from biella.scheduler.realtime._watch import choose_page, find_pages, read_page, tabulate

sys.path.insert(0, str(Path(__file__).parent))
from udp_rig import LIVE, Board, bind, build, wait_until  # type: ignore[import-not-found]

pytestmark = pytest.mark.engine


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    board = Board()
    yield board
    board.close()


def is_shown() -> bool:
    glance = read_page(choose_page(None))
    return glance is not None and glance.latched


def test_the_command_continues_a_latched_run(board, capsys):
    gate = threading.Event()
    with run_realtime(build(gate), bind=bind(board.port), watchdog=0.1) as run:
        wait_until(lambda: any(read_page(page) for page in find_pages()))
        assert cli.main(["rearm"]) == 1
        assert "is not latched" in capsys.readouterr().err
        wait_until(lambda: board.last == pytest.approx(LIVE))
        gate.set()
        wait_until(is_shown)
        glance = read_page(choose_page(None))
        assert glance is not None and "LATCHED" in str(tabulate(glance, []).title)
        assert cli.main(["watch", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["latched"] is True
        gate.clear()
        assert cli.main(["rearm", str(glance.pid)]) == 0
        assert "continues" in capsys.readouterr().out
        wait_until(lambda: board.last == pytest.approx(LIVE))
        wait_until(lambda: not is_shown())
        assert not run.latched


def test_without_a_run_there_is_nothing_to_continue(board):
    with pytest.raises(BiellaError, match="there is no live run"):
        choose_page(None)
    assert cli.main(["rearm"]) == 1
