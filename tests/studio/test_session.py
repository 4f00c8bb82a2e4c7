"""The session of a file: what pages do reaches the run, enters its log, and survives a reload."""

import os
import time
from concurrent.futures import Future

import numpy as np
import pytest

from biella import BiellaError, replay
from biella.results import Result
from biella.scheduler.realtime import _live_exit as live_exit
from biella.scheduler.realtime._start import start_run
from biella.scheduler.realtime.log._replay import find_differences
from biella.studio import _session
from biella.studio._session import LiveSession

from .client import RIG, Client, open_studio, write_rig

pytestmark = pytest.mark.engine


def save(file, text):
    """Save another text under the name of a file, at another time."""
    write_rig(file.parent, text)
    now = time.time_ns() + 10**9
    os.utime(file, ns=(now, now))


def test_a_slider_moves_a_signal(tmp_path):
    with open_studio(write_rig(tmp_path)) as (_, _, page):
        assert page.hello["mode"] == "studio" and page.hello["name"] == "loop"
        page.do("subscribe", scope=1, signals=["pushed.y"], rate=1000.0, history=10.0)
        page.do("run")
        page.wait(lambda: len(page.samples(1)))
        page.do("set", path="push", value=3.5)
        page.do("set", path="pushed.k", value=2.0)
        page.wait(lambda: page.samples(1)[-1, 2] == 7.0)
        assert page.changes == [("push", 3.5), ("pushed.k", 2.0)]
        assert page.samples(1)[0].tolist() == [0.0, 0.5, 0.5]
        page.do("override", path="pushed.y", value=-1.0)
        page.wait(lambda: page.samples(1)[-1, 1] == -1.0)
        assert page.wait_state("running")["overridden"] == ["pushed.y"]
        page.do("release")
        page.wait(lambda: page.samples(1)[-1, 1] == 7.0)


def test_what_was_set_before_a_run_and_during_it_holds_after_a_restart(tmp_path):
    with open_studio(write_rig(tmp_path)) as (session, _, page):
        assert page.wait_state("none")["tick"] == 0
        page.do("set", path="p.k", value=3.0)
        page.do("run")
        assert session.run["p.k"] == 3.0
        page.do("set", path="push", value=9.0)
        page.do("restart")
        page.wait_state("running")
        assert session.run["p.k"] == 3.0 and session.run["push"] == 9.0
        page.do("stop")
        assert page.wait_state("ended")["reason"] == "stopped from the studio"
        page.wait(lambda: page.events["parameters"])
        said = {item["path"]: item for item in page.events["parameters"]["list"]}
        assert (said["p.k"]["value"], said["p.k"]["default"]) == (3.0, 8.0)


def test_pause_step_and_speed(tmp_path):
    with open_studio(write_rig(tmp_path)) as (session, _, page):
        page.do("subscribe", scope=1, signals=["ref.y"], rate=1000.0)
        page.do("step", ticks=3)  # starts a paused run
        page.wait(lambda: session.run.tick == 3)
        assert page.wait_state("paused")["tick"] == 3
        page.wait(lambda: len(page.samples(1)) == 3)  # the row of tick 3 comes when it is computed
        page.do("factor", value=0)
        page.do("run")
        page.wait(lambda: session.run.time > 5.0)
        assert page.wait_state("running")["factor"] == 0.0
        page.do("pause")
        tick = page.wait_state("paused")["tick"]
        page.do("step")
        page.wait(lambda: session.run.tick == tick + 1)
        page.do("factor", value=2.5)
        assert page.wait_state("paused")["factor"] == 2.5
        times = page.samples(1)[:, 0]
        assert (np.diff(times) > 0.0).all()


def test_a_session_is_replayed_bit_for_bit(tmp_path):
    log = tmp_path / "session.h5"
    with open_studio(write_rig(tmp_path), log=log) as (session, _, page):
        page.do("run")
        page.do("set", path="p.k", value=2.5)
        page.do("pause")
        page.do("step", ticks=20)
        page.do("set", path="push", value=-4.0)
        page.do("override", path="drive.y", value=0.125)
        page.do("factor", value=5.0)
        page.do("run")
        tick = session.run.tick
        page.wait(lambda: session.run.tick > tick + 100)
        page.do("factor", value=0.0)
        page.do("release", path="drive.y")
        tick = session.run.tick
        page.wait(lambda: session.run.tick > tick + 100)
        page.do("stop")
    recorded = Result.from_hdf5(log)
    assert recorded.log is not None
    assert {2.5, -4.0, 0.125} <= set(recorded.log.input_log["value"].tolist())
    assert recorded["pushed"][-1] == -4.0 and 0.125 in recorded["drive"]
    assert not find_differences(recorded, replay(recorded))


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"do": "set", "path": "p.q", "value": 1}, "no parameter or input `p.q`.*did you mean"),
        ({"do": "set", "path": "p.k", "value": "x"}, "`value` is a number"),
        ({"do": "set", "path": "p.k", "value": [1, 2]}, "expects one number"),
        ({"do": "set", "path": "p.k", "value": "NaN"}, "`value` is a number"),
        ({"do": "set", "path": "p.k", "value": "Infinity"}, "must be finite"),
        ({"do": "set", "path": "plant.initial", "value": 1}, "fixed after the start"),
        ({"do": "set", "path": 3, "value": 1}, "`path` is a text"),
        ({"do": "set", "path": "p.k"}, "`value` is missing"),
        ({"do": "override", "path": "p.y", "value": [1, 2, 3]}, "expects 1 numbers"),
        ({"do": "release", "path": "p.y"}, "not overridden"),
        ({"do": "factor", "value": -1}, "factor must be 0 or more"),
        ({"do": "factor", "value": True}, "`value` is a number"),
        ({"do": "step", "ticks": 1}, "not paused"),
        ({"do": "rearm"}, "`do` is one of"),
        ({"do": "safe_stop"}, "`do` is one of"),
    ],
)
def test_what_cannot_be_done_says_why(studio, request_, text):
    _, _, page = studio
    request = dict(request_)
    error = page.refused(request.pop("do"), **request)
    with pytest.raises(BiellaError, match=f"(?i){text}"):
        raise BiellaError(error)


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with open_studio(write_rig(tmp_path_factory.mktemp("rig"))) as (session, server, page):
        page.do("run")
        yield session, server, page


def test_two_pages_see_each_other(studio):
    _, server, page = studio
    with Client(server) as other:
        other.do("set", path="p.k", value=5.0)
        page.wait(lambda: ("p.k", 5.0) in page.changes)
        other.wait(lambda: ("p.k", 5.0) in other.changes)
        other.do("pause")
        page.wait_state("paused")
    page.do("run")
    page.wait_state("running")
    with Client(server) as third:  # comes later, and knows it
        third.wait(lambda: "parameters" in third.events)
        values = {item["path"]: item["value"] for item in third.events["parameters"]["list"]}
        assert values["p.k"] == 5.0


def test_a_saved_file_is_loaded_again_and_one_with_an_error_leaves_the_run_alone(tmp_path):
    file = write_rig(tmp_path)
    with open_studio(file) as (session, _, page):
        page.do("set", path="p.k", value=3.0)
        page.do("set", path="push", value=2.0)
        page.do("run")
        run = session.run
        save(file, RIG.replace("error = d.add", "error = d.ad"))
        problem = page.wait(lambda: page.events["problems"]["list"])[0]
        assert "`add`" in problem["text"] and "line 8" in problem["text"]
        save(file, RIG.replace('"+-"', '"+-+"'))
        problem = page.wait(
            lambda: page.events["problems"]["list"][0]["where"] and page.events["problems"]
        )["list"][0]
        assert problem["where"] == ["error"] and problem["severity"] == "error"
        assert session.run is run and run.running
        save(file, RIG.replace("Gain(8.0)", "Gain(6.0)").replace('"pushed"', '"shifted"'))
        page.wait(lambda: page.events["problems"]["list"] == [] and "reload" in page.events)
        page.wait(lambda: session.run is not run and page.wait_state("running"))
        assert not run.running
        signals = [item["path"] for item in page.events["signals"]["list"]]
        assert "shifted.y" in signals and "pushed.y" not in signals
        assert session.run["p.k"] == 6.0, "the file has another value now"
        assert session.run["push"] == 2.0, "the file has not changed it"


def test_a_diagram_that_does_not_compile_is_drawn_unless_a_run_shows_another(tmp_path):
    def list_boxes(page):
        return {box["path"] for box in page.events["diagram"]["picture"]["boxes"]}

    file = write_rig(tmp_path, RIG.replace('"+-"', '"+-+"'))
    with open_studio(file) as (session, _, page):
        page.wait(lambda: page.events.get("problems", {}).get("list"))
        page.wait(lambda: "diagram" in page.events)
        assert page.events["problems"]["list"][0]["where"] == ["error"]
        assert {"ref", "error", "drive"} <= list_boxes(page)
        save(file, RIG)
        page.wait(lambda: page.events["problems"]["list"] == [] and "signals" in page.events)
        page.do("run")
        page.wait_state("running")
        save(file, RIG.replace("return d", 'd.add(Gain(2.0), "extra"); return d'))
        page.wait(lambda: page.events["problems"]["list"])
        assert page.events["problems"]["list"][0]["where"] == ["extra"]
        assert "extra" not in list_boxes(page) and session.run.running
        page.do("stop")
        page.wait_state("ended")
        save(file, RIG.replace("return d", 'd.add(Gain(2.0), "more"); return d'))
        page.wait(lambda: "more" in list_boxes(page))
        assert page.events["diagram"]["blocks"]["p"]["type"] == "Gain"


def test_a_file_that_never_worked_is_explained_and_can_be_corrected(tmp_path):
    file = write_rig(tmp_path, "import nothing_like_it")
    with open_studio(file) as (_, _, page):
        page.wait(lambda: page.events.get("problems", {}).get("list"))
        assert "nothing_like_it" in page.events["problems"]["list"][0]["text"]
        assert "correct it first" in page.refused("run")
        assert "correct it first" in page.refused("set", path="p.k", value=1.0)
        save(file, RIG)
        page.wait(lambda: page.events["problems"]["list"] == [])
        page.do("run")
        page.wait_state("running")
        assert page.events["diagram"]["name"] == "loop"


def test_a_run_that_fails_says_so_and_can_be_started_again(tmp_path):
    text = RIG.replace(
        "return d",
        """from biella.blocks import Port, python_block

        @python_block(inputs=[Port("u")], outputs=[Port("y")])
        def fragile(u):
            if u > 5.0:
                raise RuntimeError("too much")
            return u

        d.connect(push, d.add(fragile(), "fragile"))
        return d""",
    )
    with open_studio(write_rig(tmp_path, text)) as (_, _, page):
        page.do("run")
        page.do("set", path="push", value=6.0)
        state = page.wait_state("failed")
        page.wait(lambda: "too much" in page.wait_state("failed")["reason"])
        assert state["tick"] >= 0
        page.wait(lambda: any("too much" in e["text"] for e in page.events["events"]["list"]))
        page.do("set", path="push", value=1.0)
        page.do("run")
        page.wait_state("running")


def test_a_start_that_fails_leaves_no_run_behind_and_its_problem_goes_with_the_next(tmp_path):
    """The binding wants a clock without a factor, which is known only once the run has begun."""
    rig = tmp_path / "rig.toml"
    rig.write_text('[run]\nclock = "free"\n')
    with open_studio(write_rig(tmp_path), bind=rig, factor=0.0) as (session, _, page):
        before = set(live_exit._live)
        assert "it has no factor" in page.refused("run")
        assert set(live_exit._live) == before
        page.wait(lambda: page.events["problems"]["list"])
        session._factor = None
        page.do("run")
        page.wait(lambda: page.events["problems"]["list"] == [])


def test_any_exception_of_the_users_blocks_is_a_problem_and_the_studio_goes_on(
    tmp_path, monkeypatch
):
    file = write_rig(tmp_path)
    with open_studio(file) as (_, _, page):
        page.do("run")
        with monkeypatch.context() as patch:

            def fail(diagram):
                raise ZeroDivisionError("in a block")

            patch.setattr(_session, "flatten", fail)
            save(file, RIG.replace("8.0", "9.0"))
            page.wait(lambda: page.events["problems"]["list"])
            patch.setattr(_session, "start_run", lambda *_, **__: 1 / 0)
            assert "ZeroDivisionError" in page.refused("restart")
        assert page.events["problems"]["list"][0]["text"] == "ZeroDivisionError: in a block"
        page.do("run")
        page.wait_state("running")


def test_what_is_set_while_a_run_is_started_holds_in_it(tmp_path, monkeypatch):
    start = start_run
    with open_studio(write_rig(tmp_path)) as (session, _, page):

        def start_slowly(*given, **options):
            run = start(*given, **options)
            session.act("set", {"path": "push", "value": 7.0})
            return run

        monkeypatch.setattr(_session, "start_run", start_slowly)
        page.do("set", path="p.k", value=2.0)
        page.do("run")
        assert session.run["push"] == 7.0 and session.run["p.k"] == 2.0


def test_a_run_that_is_being_started_is_stopped(tmp_path, monkeypatch):
    start = start_run
    stopped = []
    with open_studio(write_rig(tmp_path)) as (session, _, page):

        def start_slowly(*given, **options):
            stopped.append(session.act("stop", {}))
            return start(*given, **options)

        monkeypatch.setattr(_session, "start_run", start_slowly)
        page.do("run")
        try:
            assert stopped[0].result(timeout=20) is None
            page.wait_state("ended")
        finally:
            session.run._end("the test is over")  # else the main thread may wait for it


def test_a_request_that_comes_while_the_studio_is_closed_is_answered(tmp_path):
    session = LiveSession(write_rig(tmp_path))
    session.load()
    session.end()
    refused = session.act("run", {})
    assert isinstance(refused, Future)
    with pytest.raises(BiellaError, match="is being closed"):
        refused.result(timeout=20)


def test_events_of_one_instant_are_all_told(tmp_path, monkeypatch):
    session = LiveSession(write_rig(tmp_path))
    keys = []
    session.announce = lambda message, key="": keys.append(key)
    monkeypatch.setattr(time, "monotonic", lambda: 1.0)  # some clocks count 16 ms
    for number in range(3):
        session._note("", f"{number}")
    assert len(set(keys)) == 3
