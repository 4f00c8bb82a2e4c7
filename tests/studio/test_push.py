"""Bodies pushed by pages: through inputs of the run, so that a replay pushes them again."""

from typing import Any

import numpy as np
import pytest

from biella import replay, simulate
from biella.blocks.multibody.elements._push import INPUTS
from biella.results import Result
from biella.scheduler.compile._flatten import flatten
from biella.scheduler.realtime.log._replay import find_differences
from biella.studio._mechanism import show_mechanisms
from biella.studio._session import LiveSession

from .client import Client, open_studio, serving, write_rig

pytestmark = pytest.mark.engine

RIG = """
    from biella import Diagram
    from biella.blocks.multibody import System

    def diagram():
        s = System("sled", gravity=(0.0, 0.0), planar=True)
        sled = s.body("sled", mass=2.0, inertia=0.1)
        s.prismatic("rail", s.ground, sled, at=(0.0, 0.0), axis=(1, 0))
        arm = s.body("arm", mass=1.0, inertia=0.1, com=(0.0, -0.5))
        s.revolute("pin", sled, arm, at=(0.0, 0.0))
        d = Diagram("sled", step=1e-3)
        d.add(s.block(outputs=["sled.velocity", "pin.angle"]), name="plant")
        return d
"""
BODY = "plant.push.body"
HERE = [0.0, 0.0, 0.0]


def wait_ticks(session, page, count=50):
    tick = session.run.tick
    page.wait(lambda: session.run.tick > tick + count)


def test_a_push_is_replayed_bit_for_bit(tmp_path):
    log = tmp_path / "push.h5"
    with open_studio(write_rig(tmp_path, RIG), log=log) as (session, _, page):
        assert "push" in page.hello["can"]
        page.wait(lambda: "parameters" in page.events and "mechanisms" in page.events)
        assert page.events["mechanisms"]["list"][0]["can_push"]
        assert page.events["parameters"]["inputs"] == []  # pages set them by `push` alone
        page.do("run")
        page.do("factor", value=0.0)
        wait_ticks(session, page)
        page.do("push", mechanism="plant", body=0, point=HERE, force=[6.0, 0.0, 0.0])
        wait_ticks(session, page)
        page.do("push", mechanism="plant", body=1, point=[0.0, -0.5, 0.0], force=[-3.0, 1.0, 0.0])
        wait_ticks(session, page)
        page.do("push", mechanism="plant", body=None)
        wait_ticks(session, page)
        page.do("stop")
    recorded = Result.from_hdf5(log)
    force = recorded["plant.push.force"]
    assert [list(force[k]) for k in np.flatnonzero(np.any(np.diff(force, axis=0), axis=1))] == [
        [0.0, 0.0, 0.0], [6.0, 0.0, 0.0], [-3.0, 1.0, 0.0],
    ]  # fmt: skip
    speed = recorded["plant.sled.velocity"][:, 0]
    begun = np.flatnonzero(force[:, 0] == 6.0)
    # At rest, with l from pin to center: F = (M + m - (m l)² / (J + m l²)) a.
    inertia = 2.0 + 1.0 - 0.5**2 / (0.1 + 0.5**2)
    assert np.diff(speed)[begun[0]] / 1e-3 == pytest.approx(6.0 / inertia, rel=1e-6)
    assert not find_differences(recorded, replay(recorded))


def test_inputs_of_a_push_take_effect_at_one_tick(tmp_path):
    """Never the point of one push with the force or the body of another."""
    log = tmp_path / "push.h5"
    with open_studio(write_rig(tmp_path, RIG), log=log) as (session, _, page):
        page.do("run")
        for k in range(1, 40):
            point, force = [0.1 * k, 0.0, 0.0], [float(k), -float(k), 0.0]
            page.do("push", mechanism="plant", body=k % 2, point=point, force=force)
        wait_ticks(session, page, 5)
        page.do("stop")
    run = Result.from_hdf5(log)
    forces, at = run["plant.push.force"], run["plant.push.point"]
    seen = set()
    for row in np.flatnonzero(forces[:, 0]):
        k = int(forces[row, 0])
        body = ("sled", "arm")[k % 2]
        turned = 2.0 * np.arctan2(*run[f"plant.{body}.rotation"][row, [3, 0]])
        arm = 0.1 * k * np.array([np.cos(turned), np.sin(turned), 0.0])
        assert forces[row].tolist() == [k, -k, 0.0]
        assert at[row] == pytest.approx(run[f"plant.{body}.position"][row] + arm, abs=1e-9)
        seen.add(k)
    assert len(seen) > 5


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"mechanism": "plan"}, "no mechanism 'plan'"),
        ({"mechanism": "plant", "body": 2}, "`body` is a number from 0 to 1"),
        ({"mechanism": "plant", "body": True}, "`body` is a number"),
        ({"mechanism": "plant", "body": 0}, "`point` is three finite numbers"),
        ({"mechanism": "plant", "body": 0, "point": HERE, "force": [1, 2]}, "`force` is three"),
        ({"mechanism": "plant", "body": 0, "point": HERE, "force": [1, 2, "x"]}, "`force` is"),
        ({"mechanism": "plant", "body": 0, "point": HERE, "force": [1, 2, 10**400]}, "`force` is"),
        ({"mechanism": ["plant"], "body": None}, "no mechanism"),
    ],
)
def test_what_is_no_push_changes_nothing(pushing, fields, text):
    session, page = pushing
    assert text in page.refused("push", **fields)
    assert session.run[BODY] == 0.0


@pytest.fixture(scope="module")
def pushing(tmp_path_factory):
    with open_studio(write_rig(tmp_path_factory.mktemp("rig"), RIG)) as (session, _, page):
        page.do("step", ticks=1)
        yield session, page


def test_a_push_ends_with_its_page_and_with_the_run(tmp_path):
    session = LiveSession(write_rig(tmp_path, RIG))
    session.load()
    with serving(session) as server, Client(server) as other:
        assert "nothing runs" in other.refused("push", mechanism="plant", body=None)
        with Client(server) as page:
            page.do("step", ticks=1)
            page.do("push", mechanism="plant", body=0, point=HERE, force=[1.0, 0.0, 0.0])
            assert session.run is not None and session.run[BODY] == 1.0
        run = session.run
        other.wait(lambda: run[BODY] == 0.0)
        other.do("push", mechanism="plant", body=1, point=HERE, force=[1.0, 0.0, 0.0])
        other.do("restart")
        other.wait_state("running")
        assert session.run is not run and session.run[BODY] == 0.0


def test_a_branch_from_within_a_push_is_not_pushed(tmp_path):
    """Whoever pushed has let go since, and nobody else would."""
    with open_studio(write_rig(tmp_path, RIG)) as (session, _, page):

        def step(ticks):
            end = ticks + (session.run.tick if session.run else 0)
            page.do("step", ticks=ticks)
            page.wait(lambda: session.run.tick == end and session.view.rows.end >= end)

        step(10)
        page.do("push", mechanism="plant", body=0, point=HERE, force=[6.0, 0.0, 0.0])
        step(10)
        page.do("push", mechanism="plant", body=None)
        step(10)
        page.do("branch", t=0.015)
        page.wait(lambda: session.run.tick == 15)
        step(10)
        column = session.view.signals["plant.push.force"][0]
        _, rows = session.view.rows.read(0, 25, [column])
        assert rows[0].tolist() == 10 * [0.0] + 5 * [6.0] + 10 * [0.0]
        page.do("restart")
        page.wait(lambda: session.run.tick > 30)
        assert session.run[BODY] == 0.0


def test_runs_with_devices_can_be_pushed_on_request_only(tmp_path):
    rig = tmp_path / "rig.toml"
    rig.write_text("[run]\nuntil = 1.0\n")
    file = write_rig(tmp_path, RIG)
    for pushes, names in ((None, False), (True, True)):
        session = LiveSession(file, bind=rig, pushes=pushes)
        session.load()
        assert session._model is not None
        assert ("push" in session.can) is names
        assert (BODY in session._model.inputs) is names
        assert "plant.pin.force" not in session._model.signals  # reactions cost accelerations


def test_inputs_and_outputs_that_are_added_change_no_bit(tmp_path):
    namespace: dict[str, Any] = {}
    exec(write_rig(tmp_path, RIG).read_text(), namespace)
    d = namespace["diagram"]()
    plain = simulate(d, 0.2, record=["*"])
    model = d.compile(flat=show_mechanisms(flatten(d)))
    shown = simulate(model, 0.2, record=["*"])
    assert all(plain[path].tobytes() == shown[path].tobytes() for path in plain)
    assert list(model.inputs) == [f"plant.push.{name}" for name in INPUTS]


def test_a_push_does_not_go_on_in_a_branch_or_after_a_restart(tmp_path):
    """The page that pushed has let go since: nobody would end the push of the branch."""
    with open_studio(write_rig(tmp_path, RIG)) as (session, _, page):
        page.do("step", ticks=100)
        page.wait(lambda: session.run is not None and session.run.tick == 100)
        page.do("push", mechanism="plant", body=0, point=HERE, force=[6.0, 0.0, 0.0])
        page.do("step", ticks=100)
        page.wait(lambda: session.run.tick == 200)
        page.do("push", mechanism="plant", body=None)
        page.do("step", ticks=100)
        page.wait(lambda: session.run.tick == 300)
        page.do("branch", t=0.15)
        page.do("step", ticks=50)
        page.wait(lambda: session.run.tick == 200 and session.view.rows.end >= 200)
        column = session.view.signals["plant.push.force"][0]
        _, found = session.view.rows.read(0, 200, [column])
        assert (found[0, 110:150] == 6.0).all() and (found[0, 151:] == 0.0).all()
        assert session._set == {}
        page.do("restart")
        page.wait(lambda: session.run.tick > 10 and session.view.rows.end > 10)
        _, found = session.view.rows.read(0, 10, [session.view.signals["plant.push.force"][0]])
        assert (found == 0.0).all()


def test_inputs_that_push_are_not_those_of_the_file(tmp_path):
    """The page offers inputs of blocks to connect: the file has none of a push."""
    session = LiveSession(write_rig(tmp_path, RIG))
    session.load()
    assert session._model is not None and BODY in session._model.inputs
    assert session._picture["blocks"]["plant"]["inputs"] == []
