"""The past in the browser: a moment of the run, branches, results side by side, exports."""

import csv
import io
import json

import numpy as np
import pytest

from biella import simulate
from biella.cli import load_diagram
from biella.studio._result import ResultSession
from biella.studio._session import LiveSession

from ..scheduler.realtime.live_runs import wait_until
from ..studio.client import serving
from .test_page import STATE, TIME, has_trace, run, value_of

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SCRUB = "document.querySelector('[data-testid=scrub]')"
HOLD_BLOBS = """(() => {
  window.kept = [];
  const original = URL.createObjectURL;
  URL.createObjectURL = (blob) => { window.kept.push(blob); return original(blob); };
  window.names = [];
  HTMLAnchorElement.prototype.click = function () { window.names.push(this.download); };
})()"""


def drag_to(browser, share):
    """Drag the time slider to a share of its length; return the time that it then has."""
    left, top, width, height = browser.do(
        f"(() => {{ const r = {SCRUB}.getBoundingClientRect();"
        "return [r.x, r.y, r.width, r.height]; })()"
    )
    now = browser.do(
        f"(() => {{ const s = {SCRUB}; return (s.value - s.min) / (s.max - s.min); }})()"
    )
    y = top + height / 2
    browser.drag((left + 8 + now * (width - 16), y), (left + 8 + share * (width - 16), y))
    return float(browser.wait(f"parseFloat({SCRUB}.value)"))


def find_value(session, path, time):
    """Return the recorded value of a signal at a time."""
    number = round(time / 1e-3)
    rows = session.view.rows.read(number, number + 1, [session.view.signals[path][0]])[1]
    return float(rows[0, 0])


def count_dashed(browser):
    """Return how many runs the legend of the first scope names."""
    return browser.do("document.querySelectorAll('[data-testid=run-values]').length")


def set_gain(browser, value):
    """Set the gain of the loop as a page does, in its side panel."""
    browser.click('[data-testid=block][data-path="loop.p"]')
    field = "[data-testid=panel] input[type=text]"
    browser.wait(f"document.querySelector({json.dumps(field)}) !== null")
    browser.do(f"document.querySelector({json.dumps(field)}).select()")
    browser.click(field)
    browser.do(f"document.querySelector({json.dumps(field)}).select()")
    browser.type(str(value))
    browser.press("Enter")


def test_a_moment_is_shown_and_continued_as_a_branch(browser, studio):
    session = studio.session
    run(browser)
    browser.wait(f"{TIME} > 2")
    browser.wait(has_trace("loop.plant.y"))
    browser.click("[data-testid=pause]")
    browser.wait(f"{STATE} === 'paused'")
    end = session.run.time

    at = drag_to(browser, 0.5)
    assert 0.3 * end < at < 0.7 * end
    number, expected = round(at / 1e-3), find_value(session, "loop.plant.y", at)
    browser.wait(f"Math.abs({value_of('loop.plant.y')} - {expected}) < 1e-4")
    assert f"{at:.3f}" in browser.text("[data-testid=scrub-time]")
    # Arrow keys and brackets go row by row.
    browser.press("]")
    browser.wait(f"Math.abs(parseFloat({SCRUB}.value) - {at + 1e-3}) < 1e-6")
    browser.press("[")

    browser.click("[data-testid=branch]")
    browser.wait(f"Math.abs({TIME} - {at}) < 2e-3")
    assert session.run.tick == number
    browser.wait("document.querySelector('[data-testid=show-runs]').textContent === '2 runs'")
    set_gain(browser, 0.5)
    wait_until(lambda: session.run["loop.p.k"] == 0.5)
    browser.click("[data-testid=run]")
    browser.wait(f"{TIME} > {at + 0.4}")
    browser.click("[data-testid=pause]")
    browser.wait(f"{STATE} === 'paused'")
    assert count_dashed(browser) >= 1
    drag_to(browser, 0.999)
    browser.wait(
        "/Δ [+−][0-9]/.test(document.querySelector('[data-testid=run-values]').textContent)"
    )

    # Continue the first run, rename it, delete the branch.
    browser.click("[data-testid=show-runs]")
    browser.click("[data-testid=run-item][data-name=run] [data-testid=continue]")
    browser.wait(f"Math.abs({TIME} - {end}) < 2e-3")
    assert session.run["loop.p.k"] == 8.0
    browser.click("[data-testid=run-item][data-name=run] .name")
    browser.wait("document.activeElement.tagName === 'INPUT'")
    browser.type("first")
    browser.press("Enter")
    browser.wait("document.querySelector('[data-testid=run-item][data-name=first]') !== null")
    browser.click('[data-testid=run-item][data-name="branch 1"] [data-testid=delete-run]')
    browser.wait("document.querySelectorAll('[data-testid=run-item]').length === 1")
    browser.wait("document.querySelectorAll('[data-testid=run-values]').length === 0")


def test_a_moment_of_a_run_that_goes_on_stands_still_until_it_is_left(browser, studio):
    run(browser)
    browser.wait(f"{TIME} > 1")
    browser.wait(has_trace("loop.plant.y"))
    at = drag_to(browser, 0.4)
    value, expected = value_of("loop.plant.y"), find_value(studio.session, "loop.plant.y", at)
    browser.wait(f"Math.abs({value} - {expected}) < 1e-4")
    time = browser.do(TIME)
    browser.wait(f"{TIME} > {time + 0.5}")
    assert browser.do(f"Math.abs({value} - {expected}) < 1e-4")
    browser.press("l")
    browser.wait(f"Math.abs({value} - {expected}) > 1e-4")
    browser.wait("document.querySelector('[data-testid=newest]').disabled")


def test_results_are_compared_and_exported(browser, rig, tmp_path):
    diagram = load_diagram(rig)
    a = simulate(diagram, 2.0, record=["*"], out=tmp_path / "stiff.h5")
    simulate(
        diagram, 1.5, step=2e-3, record=["*"], parameters={"loop.p.k": 2.0},
        out=tmp_path / "soft.h5",
    )  # fmt: skip
    session = ResultSession(tmp_path / "stiff.h5", rig, others=[tmp_path / "soft.h5"])
    with serving(session) as server:
        browser.complaints.clear()
        browser.open(server.url)
        browser.wait("document.querySelector('[data-testid=run-values][data-name=soft]') !== null")
        browser.do(HOLD_BLOBS)
        drag_to(browser, 0.5)
        browser.wait(
            "/Δ [+−]?[0-9]/.test(document.querySelector('[data-testid=run-values]').textContent)"
        )
        browser.click("[aria-label='Settings of the scope']")
        for kind in ("svg", "png", "csv", "h5"):
            browser.click(f"[data-testid=export-{kind}]")
        browser.wait("window.kept.length === 6")  # of both runs: CSV and HDF5
        names = browser.do("window.names")
        assert sorted(names) == sorted(
            ["browser rig scope 1.svg", "browser rig scope 1.png"]
            + [f"{run}.{kind}" for run in ("stiff", "soft") for kind in ("csv", "h5")]
        )
        svg = browser.do(f"window.kept[{names.index('browser rig scope 1.svg')}].text()")
        document = f"new DOMParser().parseFromString({json.dumps(svg)}, 'image/svg+xml')"
        assert browser.do(f"{document}.querySelector('parsererror') === null")
        assert "· soft</text>" in svg and "stroke-dasharray" in svg
        number = names.index("browser rig scope 1.png")
        width = browser.do(f"createImageBitmap(window.kept[{number}]).then(image => image.width)")
        assert width > 300
        table = browser.do(f"window.kept[{names.index('stiff.csv')}].text()")
        heading, *lines = csv.reader(io.StringIO(table))
        column = heading.index(next(name for name in heading if name.startswith("loop.plant.y")))
        values = np.array([line[column] for line in lines], float)
        assert np.array_equal(values, a["loop.plant.y"])
        browser.open("about:blank")
        assert browser.complaints == []


def test_the_time_slider_fits_a_phone(browser, studio):
    browser.resize(390, 844, mobile=True)
    try:
        run(browser)
        browser.wait(f"{TIME} > 0.5")
        browser.click("[data-testid=pause]")
        browser.wait(f"{STATE} === 'paused'")
        drag_to(browser, 0.5)
        browser.click("[data-testid=branch]")
        browser.wait("document.querySelector('[data-testid=show-runs]') !== null")
        browser.click("[data-testid=show-runs]")
        browser.wait("document.querySelector('[data-testid=runs]').checkVisibility()")
        assert browser.do("document.documentElement.scrollWidth") <= 390
        outside = browser.do(
            "[...document.querySelectorAll('[data-testid=timeline] > *, [data-testid=runs] *')]"
            ".filter(e => e.getBoundingClientRect().right > 390).length"
        )
        assert outside == 0
    finally:
        browser.resize(1440, 900)


def test_the_page_says_why_there_is_no_branch(browser, rig, tmp_path):
    binding = tmp_path / "rig.toml"
    binding.write_text(
        '[devices.echo]\ndriver = "loopback"\non_loss = "hold"\n'
        "[devices.echo.receive.y]\n[devices.echo.send.u]\nsafe = 0\n"
        '[blocks.gain]\ndevice = "echo"\ninputs = { u = "u" }\noutputs = { y = "y" }\n'
    )
    session = LiveSession(rig, bind=binding)
    session.load()
    with serving(session) as server:
        browser.complaints.clear()
        browser.open(server.url)
        browser.wait("document.querySelector('[data-testid=diagram] [data-testid=block]') !== null")
        run(browser)
        browser.wait("document.querySelector('[data-testid=branch][aria-disabled=true]') !== null")
        browser.click("[data-testid=branch]")
        browser.wait(
            "document.body.textContent.includes('No branch: the run has devices (`echo`)')"
        )
        browser.click("[data-testid=stop]")
        browser.wait("document.querySelector('[data-testid=branch][aria-disabled=false]') !== null")
        browser.open("about:blank")
        assert browser.complaints == []
