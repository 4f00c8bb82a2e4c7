"""A recorded run as one file, opened from disk."""

import importlib.util
import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from biella import simulate
from biella.scheduler.compile._flatten import flatten
from biella.studio._mechanism import show_poses
from biella.studio._page_file import write_page_file
from biella.studio._result import ResultSession

from .chromium import PATIENCE
from .test_page import drawing, value_of

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SOURCE = Path(__file__).parents[2] / "examples" / "04_slider_crank.py"
SPEED = "plant.main.speed"

GREEN = (0.0, 158 / 255, 115 / 255)  # of the slider: the third body


def place_of_slider(browser, file, before):
    """Return where the middle of the slider is, in pixels, once it has come to rest elsewhere."""
    x, y, width, height = browser.do(
        "(() => { const r = document.querySelector('[data-testid=mechanism]')"
        ".getBoundingClientRect(); return [r.x, r.y, r.width, r.height].map(Math.round); })()"
    )
    at, end = None, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        browser.picture(file)
        part = imread(file)[y : y + height, x : x + width, :3]
        found = np.flatnonzero(np.all(np.abs(part - GREEN) < 0.06, axis=2).any(axis=0))
        seen = found.size and (found[0] + found[-1]) / 2
        if found.size and seen == at and seen != before:
            return at
        at = seen
    raise TimeoutError("the slider did not move")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("slider_crank_of_page", SOURCE)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    path = tmp_path_factory.mktemp("recorded") / "run.h5"
    d = example.diagram()
    model = d.compile(flat=show_poses(flatten(d)))
    return path, simulate(model, 2.0, record=["*"], out=path)


@pytest.mark.parametrize("every", [1, 10])
def test_a_run_opens_from_disk(browser, recorded, tmp_path, every):
    path, result = recorded
    file = tmp_path / "a run.html"
    write_page_file(ResultSession(path, SOURCE), file, every=every)
    browser.complaints.clear()
    browser.requests.clear()
    browser.open(file.as_uri())
    browser.wait("document.querySelector('[data-testid=diagram] [data-testid=block]') !== null")
    browser.wait(f"{drawing(0)} > 200 && {drawing(1)} > 200")
    browser.wait("document.querySelector('[data-testid=mechanism] canvas') !== null")

    # The legend has the values at the cursor, and the slider is where it was then.
    left, top, width, height = browser.wait(
        "(() => { const r = [...document.querySelectorAll('.u-over')]"
        f".find(e => e.closest('[data-testid=scope]').querySelector('[data-path=\"{SPEED}\"]'))"
        "?.getBoundingClientRect(); return r ? [r.x, r.y, r.width, r.height] : null; })()"
    )
    times, places, before = (0.92, 0.78, 1.03, 0.85), [], None
    for t in np.linspace(0.65, 1.05, 9):  # until the view has room for a whole turn
        browser.mouse("mouseMoved", round(left + width * t / 2.0), top + height / 2)
        before = place_of_slider(browser, tmp_path / "seen.png", before)
    for t in times:
        browser.mouse("mouseMoved", round(left + width * t / 2.0), top + height / 2)
        before = place_of_slider(browser, tmp_path / "seen.png", before)
        places.append(before)
        # A pixel is 5 ms wide.
        near = result[SPEED][np.abs(result.t - t) <= 0.005 + 1e-3 * every]
        assert near.min() - 1e-3 <= browser.do(value_of(SPEED)) <= near.max() + 1e-3
    recorded_at = np.interp(times, result.t, result["plant.slider.position"][:, 0])
    scale, offset = np.polyfit(recorded_at, places, 1)
    speed = np.abs(np.diff(result["plant.slider.position"][:, 0])).max() / 1e-3
    late = speed * (0.005 + 1e-3 * every) * scale + 1  # half a pixel at either side
    assert scale > 0 and np.ptp(places) > 3 * late
    assert np.abs(scale * recorded_at + offset - places).max() < late

    assert browser.complaints == []
    elsewhere = [at for at in browser.requests if not at.startswith(("data:", "blob:", "about:"))]
    assert elsewhere == [file.as_uri()]
    browser.open("about:blank")
