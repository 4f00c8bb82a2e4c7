"""Watching a live run from another process: pages, and who may read them."""

import json
import os
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from biella import BiellaError, Diagram, cli, run_realtime
from biella.blocks import Constant, Gain, Integrator, Relay, Sine, StateMachine
from biella.scheduler.realtime import _watch as watch
from biella.scheduler.realtime._watch import Page, find_pages, read_page, runtime_folder

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "biella"


def loop():
    d = Diagram("watched", step=1e-3)
    d.add(Constant([3.0, -4.0], unit="m"), name="place")
    d.connect(d.add(Sine(frequency=1.0), name="ref"), d.add(Gain(2.0), name="twice"))
    return d


def first_page():
    for _ in range(10_000):
        for page in find_pages():
            if read_page(page) is not None:
                return page
        time.sleep(1e-3)
    raise AssertionError("there is no page")


def test_another_process_sees_the_latest_values(folder):
    with run_realtime(loop()) as run:
        page = first_page()
        told = subprocess.run(
            [sys.executable, "-m", "biella", "watch", "--json", "--signal", "place"],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        assert json.loads(told.stdout)["values"] == {"place.y": [3.0, -4.0]}
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        glance = read_page(page)
        assert glance is not None
        assert glance.name == "watched" and glance.pid == os.getpid()
        assert glance.values["twice.y"] == 2.0 * glance.values["ref.y"]
        assert glance.units["place.y"] == "m"
        assert 0 <= glance.tick <= run.tick
    assert find_pages() == [] and list(folder.iterdir()) == []


def test_the_command_shows_a_table_and_explains_what_is_missing(capsys):
    assert cli.main(["watch", "--once"]) == 1
    assert "no live run of yours" in capsys.readouterr().err
    with run_realtime(loop()):
        first_page()
        assert cli.main(["watch", "--once", "--signal", "re*"]) == 0
        shown = capsys.readouterr().out
        assert "watched: t = " in shown and "\n ref.y " in shown and "twice" not in shown
        assert cli.main(["watch", "--once", "--signal", "tvice"]) == 1
        assert "Did you mean" in capsys.readouterr().err
        assert cli.main(["watch", "nothing"]) == 1
        with run_realtime(loop()):
            while len([page for page in find_pages() if read_page(page)]) < 2:
                time.sleep(1e-3)
            assert cli.main(["watch", "--once"]) == 1
            assert "select the run to watch" in capsys.readouterr().err


def test_it_ends_with_the_run():
    with run_realtime(loop(), 0.5):
        page = first_page()
        ticks = [glance.tick for glance in watch.glances(page)]
    assert ticks == sorted(ticks) and len(ticks) >= 1


def test_readers_never_see_half_a_page():
    """A writer without a pause: all values of a page are of one tick."""
    plan = loop().compile()
    page = Page(plan, lambda slot: 1 + slot)
    over = threading.Event()

    def write():
        n = 0.0
        while not over.is_set():
            page.write(np.full(page._count, n))
            n += 1.0

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while seen < 300:
        glance = read_page(page.path)
        if glance is not None:
            seen += 1
            assert {glance.values["ref.y"], glance.values["twice.y"]} == {float(glance.tick)}
    over.set()
    writer.join(60)
    page.close()


def test_a_page_that_is_being_written_is_not_read():
    page = Page(loop().compile(), lambda slot: 1 + slot)
    assert read_page(page.path) is None  # nothing yet
    page.write(np.ones(page._count))
    page._count_up()  # as within a write
    assert read_page(page.path) is None
    page._count_up()
    assert read_page(page.path) is not None
    page.close()


def test_what_killed_processes_left_is_removed_and_what_is_no_page_is_not_read(folder):
    runtime_folder()
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], stdout=-1, timeout=300
    )
    dead = folder / f"{int(done.stdout)}-00.live"
    dead.write_bytes(b"anything")
    own = folder / f"{os.getpid()}-00.live"
    good = Page(loop().compile(), lambda slot: 1 + slot)
    good.write(np.zeros(good._count))
    whole = good.path.read_bytes()
    broken = whole[:32] + b"}" * 99
    for content in (b"", b"anything", whole[:40], whole[:-8], b"x" + whole[1:], broken):
        own.write_bytes(content)
        assert read_page(own) is None
    assert read_page(good.path) is not None
    assert dead not in find_pages() and not dead.exists()
    good.close()


def test_a_folder_of_somebody_else_is_refused(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BiellaError, match="belongs to another user"):
        runtime_folder()
    assert run_realtime(loop(), 0.01).wait().length == 11  # the run goes on without


def test_a_folder_with_another_owner_is_refused(monkeypatch):
    owner = runtime_folder().stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(BiellaError, match="belongs to another user"):
        runtime_folder()


@pytest.mark.parametrize("mode", [0o710, 0o701, 0o777])
def test_a_folder_that_others_may_enter_is_closed_to_them(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    assert stat.S_IMODE(runtime_folder().stat().st_mode) == 0o700


def test_enumerations_are_shown_by_name(capsys):
    d = Diagram("machine", step=1e-3)
    machine = StateMachine()
    machine.transition(machine.state("waiting"), machine.state("done"), after=1000.0)
    d.add(machine, "machine")
    with run_realtime(d):
        glance = read_page(first_page())
        assert glance is not None
        assert glance.values["machine.state"] == 1.0
        assert glance.show("machine.state") == "waiting"
        assert cli.main(["watch", "--once"]) == 0
        assert "waiting" in capsys.readouterr().out


def test_a_page_has_timing_and_events_of_its_run():
    d = Diagram("watched", step=1e-3, solver="rk4")
    wave = d.add(Sine(frequency=20.0), name="wave")
    d.add(Integrator(), "speed", u=d.add(Relay(on=0.2, off=-0.2), "relay", u=wave))
    with run_realtime(d) as run:
        page = first_page()
        for _ in range(60_000):
            glance = read_page(page)
            if glance is not None and glance.about["events"]["total"]:
                break
            time.sleep(1e-3)
        assert glance is not None
        assert glance.on_request and glance.on_request <= glance.values.keys()
        about = glance.about
        at, source, kind = about["events"]["newest"][-1]
        assert (source, kind) == ("relay", "switch") and 0 < at <= run.time
        assert about["timing"]["period"] == 1e-3 and about["devices"] == []
        for name in ("lateness", "execution"):
            timing = about["timing"][name]
            assert sum(count for _, count in timing["bars"]) > 0
            assert timing["p50"] <= timing["p99"] <= timing["max"]


def test_what_has_no_room_is_left_out(tmp_path):
    page = Page(loop().compile(), lambda slot: slot + 1, 8)
    page.write(np.zeros(20), about={"long": "x" * 100})
    glance = read_page(page.path)
    assert glance is not None and glance.about == {} and glance.name == "watched"
    page.write(np.zeros(20), about={"a": 1})
    glance = read_page(page.path)
    assert glance is not None and glance.about == {"a": 1}
    page.close()
