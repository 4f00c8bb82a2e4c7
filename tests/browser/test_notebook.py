"""The studio as a widget: the module in a minimal host, the page in its frame, a real run."""

import time

import numpy as np
import pytest
from matplotlib.image import imread

from biella import simulate
from biella.cli._load import load_diagram
from biella.studio import show

from .chromium import PATIENCE
from .notebook_host import hosting

pytest.importorskip("anywidget")
pytestmark = [pytest.mark.engine, pytest.mark.slow]


def look(browser, folder):
    """Return a screenshot: the page is in a frame of its own, which scripts cannot look into."""
    browser.picture(folder / "seen.png")
    return imread(folder / "seen.png")[:, :, :3]


def count_colored(pixels):
    """Return how many pixels are neither paper nor gray nor pale."""
    return int(np.count_nonzero(np.ptp(pixels, axis=2) > 0.35))


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what} did not come true"
        time.sleep(0.05)


@pytest.mark.parametrize("paper", ["#ffffff", "#111418"])
def test_a_diagram_runs_in_the_widget(browser, rig, tmp_path, paper):
    widget = show(load_diagram(rig), height=600)
    with hosting(widget, tmp_path, paper) as url:
        browser.complaints.clear()
        browser.open(url)
        browser.wait("document.querySelector('iframe') !== null")
        wait_for(lambda: count_colored(look(browser, tmp_path)) > 500, "the diagram is drawn")
        dark = look(browser, tmp_path)[300:560].mean() < 0.4
        assert dark == (paper == "#111418")

        def scopes():
            return look(browser, tmp_path)[:, 720:]

        def press_until(state):
            """Press the space bar, which does what the page believes to be the other state."""

            def is_there():
                if widget.session.state()["state"] != state:
                    browser.press(" ")
                    time.sleep(1.0)
                return widget.session.state()["state"] == state

            wait_for(is_there, state)

        before = count_colored(scopes())
        browser.click_at(300, 560)
        browser.press(" ")
        wait_for(lambda: widget.session.run is not None, "the run begins")
        wait_for(lambda: count_colored(scopes()) > before + 500, "a curve is drawn")
        first = scopes()
        wait_for(lambda: np.abs(scopes() - first).max() > 0.3, "the curve moves")
        press_until("paused")
        assert widget.session.run is not None and widget.session.run.tick > 100

        # A run that no view shows any more is paused.
        press_until("running")
        browser.do("leave()")
        wait_for(lambda: widget.session.state()["state"] == "paused", "nobody looks")
        assert browser.do("document.querySelector('iframe')") is None

        # It is shown again: the page has what there is.
        browser.do("show()")
        wait_for(lambda: count_colored(scopes()) > before + 500, "the curves are back")
        assert browser.complaints == []
        browser.open("about:blank")
    widget.close()
    assert not widget.session.run.running
    assert not widget._worker.is_alive()


def test_a_result_is_shown_without_a_kernel(browser, rig, tmp_path):
    d = load_diagram(rig)
    page = show(simulate(d, 2.0, record=["*"]), d, height=600)
    file = tmp_path / "saved.html"
    file.write_text(f"<!doctype html><meta charset=utf-8>{page._repr_html_()}", encoding="utf-8")
    browser.complaints.clear()
    browser.requests.clear()
    browser.open(file.as_uri())
    browser.wait("document.querySelector('iframe') !== null")
    wait_for(lambda: count_colored(look(browser, tmp_path)[:, 720:]) > 1500, "curves are drawn")
    assert browser.complaints == []
    assert [at for at in browser.requests if at.startswith(("http", "ws"))] == []
    browser.open("about:blank")
