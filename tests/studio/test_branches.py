"""Branches of a session: continued, compared, switched, named and deleted by pages."""

import numpy as np
import pytest

from biella import replay
from biella.results import Result
from biella.scheduler.realtime.log._replay import find_differences
from biella.studio import _branches

from .client import LIMIT, RIG, open_studio, write_rig

pytestmark = pytest.mark.engine

HIDES = RIG.replace(
    "return d",
    """from biella.blocks import PythonBlock

        class Hiding(PythonBlock):
            count = 0.0

            def output(self, t, x, u):
                return self.count

            def update(self, t, x, u):
                self.count += 1.0
                return x

        hiding = Hiding(inputs=["u"], outputs=["y"], state=[0.0], period=1e-3, feedthrough=False)
        d.add(hiding, "hiding", u=push)
        return d""",
)


def runs_of(page):
    """Return the runs by name, as a page sees them."""
    return {item["name"]: item for item in page.events["runs"]["list"]}


def run_to(session, page, tick):
    """Step to a tick; starts a run that is paused if there is none."""
    page.do("step", ticks=tick - (session.run.tick if session.run else 0))
    page.wait(lambda: session.run.tick == tick and session.view.rows.end >= tick)
    return page.wait_state("paused")


def rows_of(view, first, last):
    """Return the rows between two times, of which the last one is not included."""
    rows = view.rows
    return rows.read(rows.find(first - 5e-4), rows.find(last - 5e-4))[1]


def test_a_branch_repeats_the_run_and_goes_on_with_other_parameters(tmp_path):
    with open_studio(write_rig(tmp_path)) as (session, _, page):
        run_to(session, page, 1500)
        page.do("set", path="p.k", value=4.0)
        tick = run_to(session, page, 2300)["tick"]
        answer = page.do("branch", t=1.0004, name="softer")
        assert answer["t"] == 1.0
        assert page.wait_state("paused")["tick"] == 1000
        # What was set after the moment is not set in the branch.
        page.wait(lambda: "softer" in runs_of(page))
        values = {item["path"]: item["value"] for item in page.events["parameters"]["list"]}
        assert values["p.k"] == 8.0 and session.run["p.k"] == 8.0
        page.do("set", path="p.k", value=2.0)
        run_to(session, page, 1700)
        runs = runs_of(page)
        assert [*runs] == ["run", "softer"]
        assert runs["softer"]["parent"] == runs["run"]["number"] and runs["softer"]["since"] == 1.0
        assert runs["run"]["end"] == tick * 1e-3 and runs["softer"]["end"] is None
        assert page.events["runs"]["present"] == runs["softer"]["number"]
        before = session.find_view(runs["run"]["number"])
        one, other = (rows_of(view, 0.0, 1.0) for view in (before, session.view))
        assert one.shape[1] == 1000 and one.tobytes() == other.tobytes()
        one, other = (rows_of(view, 1.0, 1.5) for view in (before, session.view))
        column = session.view.signals["plant.y"][0]
        assert one[0].tobytes() == other[0].tobytes()
        assert np.abs(one[column] - other[column]).max() > 0.01


def test_a_paused_branch_at_the_start_waits_for_no_row(tmp_path, monkeypatch):
    """It has none, and there is nothing to compare."""
    monkeypatch.setattr(_branches, "_ROWS_SECONDS", 2 * LIMIT)
    with open_studio(write_rig(tmp_path)) as (session, _, page):
        run_to(session, page, 50)
        page.do("branch", t=0.0, name="anew")
        assert page.wait_state("paused")["tick"] == 0


def test_switching_continues_a_run_where_it_ended(tmp_path):
    with open_studio(write_rig(tmp_path)) as (session, _, page):
        page.do("set", path="push", value=7.0)
        first = run_to(session, page, 1200)["tick"]
        rows = rows_of(session.view, 0.0, first * 1e-3)
        page.do("branch", t=0.6)
        page.do("set", path="push", value=-2.0)
        second = run_to(session, page, 900)["tick"]
        page.wait(lambda: "branch 1" in runs_of(page))
        runs = runs_of(page)
        assert page.do("switch", run=runs["run"]["number"])["t"] == first * 1e-3
        assert page.wait_state("paused")["tick"] == first
        assert session.run["push"] == 7.0
        assert rows_of(session.view, 0.0, first * 1e-3).tobytes() == rows.tobytes()
        run_to(session, page, first + 100)
        page.do("switch", run=runs["branch 1"]["number"])
        assert page.wait_state("paused")["tick"] == second
        assert session.run["push"] == -2.0
        page.wait(lambda: page.events["runs"]["present"] == runs["branch 1"]["number"])
        assert [*runs_of(page)] == ["run", "branch 1"]


def test_a_compared_run_is_shown_up_to_the_newest_time(tmp_path):
    with open_studio(write_rig(tmp_path)) as (session, _, page):
        end = run_to(session, page, 2000)["time"]
        page.do("branch", t=1.0)
        number = page.wait(lambda: "runs" in page.events and runs_of(page)["run"]["number"])
        page.do("subscribe", scope=1, signals=["plant.y"], rate=1e3, history=100.0)
        page.do("subscribe", scope=2, signals=["plant.y"], rate=1e3, history=100.0, run=number)
        page.wait(lambda: len(page.samples(2)))
        assert page.samples(2)[-1, 0] == pytest.approx(page.samples(1)[-1, 0])
        page.do("step", ticks=100)
        page.wait(lambda: page.samples(2)[-1, 0] >= 1.098)
        assert page.samples(2)[-1, 0] <= 1.1005
        # A window has what lies ahead, too.
        page.binary.clear()
        page.do("window", scope=2, t0=0.5, t1=end, bins=4000)
        window = page.wait(lambda: [c for h, c in page.binary if h[1] == 2 and h[4] & 2])
        assert window[0].reshape(-1, 3)[-1, 0] == pytest.approx(end, abs=0.01)
        page.do("delete", run=number)
        assert "was deleted" in page.refused("window", scope=2, t0=0.0, t1=1.0, bins=10)
        assert "is the number of a run" in page.refused(
            "subscribe", scope=3, signals=["plant.y"], run=number
        )


def test_runs_are_renamed_and_deleted(tmp_path):
    with open_studio(write_rig(tmp_path)) as (session, _, page):
        assert "nothing was run yet" in page.refused("branch", t=0.0)
        run_to(session, page, 300)
        page.do("branch", t=0.2)
        page.wait(lambda: "branch 1" in runs_of(page))
        first, present = (item["number"] for item in runs_of(page).values())
        page.do("rename", run=present, name=" stiff ")
        page.do("rename", run=first, name="soft")
        page.wait(lambda: [*runs_of(page)] == ["soft", "stiff"])
        for request, text in [
            ({"do": "rename", "run": first, "name": "stiff"}, "a run `stiff` already"),
            ({"do": "rename", "run": first, "name": ""}, "`name` is a text"),
            ({"do": "rename", "run": 99, "name": "x"}, "number of a kept run"),
            ({"do": "delete", "run": present}, "number of a kept run"),
            ({"do": "switch", "run": present}, "number of a kept run"),
            ({"do": "switch", "run": [1]}, "number of a kept run"),
            ({"do": "branch"}, "`t` is a finite number"),
            ({"do": "branch", "t": 0.1, "name": "soft"}, "a run `soft` already"),
            ({"do": "branch", "t": 0.1, "name": "a\nb"}, "`name` is a text"),
        ]:
            assert text in page.refused(request.pop("do"), **request)
        page.do("delete", run=first)
        page.wait(lambda: [*runs_of(page)] == ["stiff"])
        page.do("restart")
        page.wait(lambda: [*runs_of(page)] == ["run"])


def test_the_number_of_runs_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(_branches, "_MOST_RUNS", 2)
    with open_studio(write_rig(tmp_path)) as (session, _, page):
        run_to(session, page, 100)
        page.do("branch", t=0.05)
        assert "up to 2 runs are kept" in page.refused("branch", t=0.01)


def test_a_run_that_failed_is_continued_before_it_failed(tmp_path):
    text = RIG.replace(
        "return d",
        """from biella.blocks import Assertion, Compare, Constant
        near = d.add(Compare("<"), "near", u1=plant, u2=d.add(Constant(0.2), "most"))
        d.connect(near, d.add(Assertion("too far"), "limit"))
        return d""",
    )
    with open_studio(write_rig(tmp_path, text)) as (session, _, page):
        page.do("factor", value=0)
        page.do("run")
        state = page.wait_state("failed", "ended")
        page.do("branch", t=state["time"] - 0.02, name="saved")
        page.do("set", path="p.k", value=0.0)
        run_to(session, page, session.run.tick + 300)
        assert session.run.running


def test_hidden_state_of_a_python_block_is_named_and_viewing_goes_on(tmp_path):
    with open_studio(write_rig(tmp_path, HIDES)) as (session, _, page):
        tick = run_to(session, page, 600)["tick"]
        assert "`hiding.y`" in page.refused("branch", t=0.5)
        state = page.wait_state("ended")
        assert "hiding.y" in state["obstacle"] and state["tick"] == tick
        page.wait(lambda: [*runs_of(page)] == ["run"])
        assert "hiding.y" in page.refused("branch", t=0.4)
        assert page.do("moment", t=0.3)["t"] == pytest.approx(0.3)
        page.do("restart")
        assert page.wait_state("running")["obstacle"] == ""


def test_each_branch_is_streamed_to_a_file_of_its_own(tmp_path):
    log = tmp_path / "session.h5"
    with open_studio(write_rig(tmp_path), log=log) as (session, _, page):
        run_to(session, page, 400)
        page.do("branch", t=0.2)
        page.do("set", path="push", value=9.0)
        run_to(session, page, 300)
        page.do("stop")
    first, second = Result.from_hdf5(log), Result.from_hdf5(tmp_path / "session-2.h5")
    assert first["plant"][:200].tobytes() == second["plant"][:200].tobytes()
    assert (second["push"][201:] == 9.0).all() and (first["push"] == 0.5).all()
    for recorded in (first, second):
        assert not find_differences(recorded, replay(recorded))


def test_a_run_with_devices_is_viewed_while_it_goes_on_and_continued_when_it_has_ended(tmp_path):
    rig = tmp_path / "rig.toml"
    rig.write_text(
        '[devices.echo]\ndriver = "loopback"\non_loss = "hold"\n'
        "[devices.echo.receive.y]\n[devices.echo.send.u]\nsafe = 0\n"
        '[blocks.p]\ndevice = "echo"\ninputs = { u = "u" }\noutputs = { y = "y" }\n'
    )
    with open_studio(write_rig(tmp_path), bind=rig) as (session, _, page):
        page.do("run")
        page.wait(lambda: session.run.tick > 200)
        assert "`echo`" in page.wait_state("running")["obstacle"]
        assert "`echo`" in page.refused("branch", t=0.1)
        page.do("moment", t=0.1)
        page.do("stop")
        end = page.wait_state("ended")["time"]
        assert page.wait_state("ended")["obstacle"] == ""
        page.do("branch", t=0.1)
        texts = [
            page.wait(
                lambda: [e["text"] for e in page.events["events"]["list"] if "`echo`" in e["text"]]
            )
        ]
        assert f"{end:.6g} s" in str(texts)
        assert page.wait_state("paused")["devices"] == []
