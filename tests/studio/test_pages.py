"""What a page subscribes to."""

import numpy as np
import pytest

from .client import Client, open_studio, write_rig

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with open_studio(write_rig(tmp_path_factory.mktemp("rig"))) as (session, server, page):
        page.do("factor", value=0.0)
        page.do("run")
        page.wait(lambda: session.run.time > 3.0)
        page.do("pause")
        page.wait_state("paused")
        yield session, server, page


def test_latest_values_are_in_the_order_of_signals(studio):
    _, server, _ = studio
    with Client(server) as page:
        page.do("watch", on=True)
        head, content = page.wait(lambda: [m for m in page.binary if m[0][0] == 3])[0]
        signals = page.events["signals"]["list"]
        assert head[2] == len(content) - 1 == sum(item["width"] for item in signals)
        place = {item["path"]: 1 + item["element_offset"] for item in signals}
        expected = np.sin(4.0 * np.pi * content[0])
        assert content[place["ref.y"]] == pytest.approx(expected, abs=1e-9)
        page.do("watch", on=False)


def test_history_windows_and_unsubscribe(studio):
    _, server, _ = studio
    with Client(server) as page:
        page.do("subscribe", scope=7, signals=["ref.y", "plant.y"], rate=50.0, history=2.0)
        page.wait(lambda: len(page.samples(7)))
        bins = page.samples(7)
        assert bins.shape[1] == 5
        assert bins[-1, 0] - bins[0, 0] == pytest.approx(2.0, abs=0.05)
        assert bins[:, 1].min() == pytest.approx(-1.0, abs=1e-4)
        page.do("window", scope=7, t0=1.0, t1=1.01, bins=500)
        head, content = page.wait(lambda: [m for m in page.binary if m[0][4] & 2])[0]
        table = content.reshape(head[3], head[2])
        assert head[4] & 4 and len(table) == pytest.approx(12, abs=1)
        assert table[:, 1] == pytest.approx(np.sin(4 * np.pi * table[:, 0]), abs=1e-9)
        page.do("unsubscribe", scope=7)
        assert "subscribe first" in page.refused("window", scope=7, t0=0, t1=1, bins=5)


@pytest.mark.parametrize(
    ("name", "fields", "text"),
    [
        ("subscribe", {"scope": -1, "signals": []}, "`scope` is a whole number"),
        ("subscribe", {"scope": 1, "signals": "ref.y"}, "`signals` is a list of paths"),
        ("subscribe", {"scope": 1, "signals": ["reff.y"]}, "no signal `reff.y`"),
        ("subscribe", {"scope": 1, "signals": ["ref.y"] * 300}, "up to 256"),
        ("subscribe", {"scope": 1, "signals": ["ref.y"], "rate": "x"}, "`rate` is a number"),
        ("window", {"scope": 99, "t0": 0, "t1": 1, "bins": 5}, "subscribe first"),
        ("poses", {"mechanism": "plant", "on": True}, "no mechanism 'plant'"),
    ],
)
def test_what_cannot_be_shown_says_why(studio, name, fields, text):
    _, _, page = studio
    assert text in page.refused(name, **fields)


def test_a_page_has_a_bounded_number_of_scopes(studio):
    _, server, _ = studio
    with Client(server) as page:
        for number in range(64):
            page.do("subscribe", scope=number, signals=[])
        assert "up to 64 scopes" in page.refused("subscribe", scope=64, signals=[])
        page.do("subscribe", scope=5, signals=["ref.y"])
