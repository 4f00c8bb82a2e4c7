"""The page of the studio, used as people use it: with mouse and keyboard."""

import json

import pytest

from biella.studio._server import StudioServer

from .chromium import PageError
from .conftest import open_page

pytestmark = pytest.mark.engine
slow = pytest.mark.slow

TIME = "parseFloat(document.querySelector('[data-testid=time]').textContent)"
STATE = "document.querySelector('[data-testid=state]').textContent"


def value_of(path):
    """Return a script for the value of a signal in the legend of a scope."""
    return (
        f'parseFloat((document.querySelector(\'[data-testid=trace][data-path="{path}"] '
        "[data-testid=trace-value]')?.textContent ?? 'NaN').replace('\u2212', '-'))"
    )


def has_trace(path):
    selector = json.dumps(f'[data-testid=trace][data-path="{path}"]')
    return f"document.querySelector({selector}) !== null"


def wire(source):
    return f'[data-testid=wire][data-source="{source}"]'


COUNT_COLORED = """number => {
  const canvas = document.querySelectorAll('[data-testid=scope] canvas')[number];
  if (!canvas) return [0];
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return Array.from({length: canvas.width}, (_, x) => {
    let count = 0;
    for (let y = 0; y < canvas.height; y++) {
      const [r, g, b, opacity] = data.subarray(4 * (y * canvas.width + x));
      if (opacity > 60 && Math.max(r, g, b) - Math.min(r, g, b) > 60) count++;
    }
    return count;
  });
}"""


def drawing(number):
    """Return a script for the columns of a scope that have pixels neither paper nor gray."""
    return f"({COUNT_COLORED})({number}).filter(n => n > 0).length"


def click_wire(browser, source):
    """Click the middle of the first level stretch of a wire."""
    at = browser.wait(
        f"(() => {{ const p = document.querySelector({json.dumps(wire(source))});"
        "if (!p) return null; const q = p.getPointAtLength(12);"
        "const m = p.getScreenCTM(); return [m.a * q.x + m.e, m.d * q.y + m.f]; })()"
    )
    browser.click_at(*at)


def run(browser):
    browser.click("[data-testid=run]")
    browser.wait(f"{TIME} > 0.3")


def test_a_diagram_runs_and_its_curves_move(browser, studio):
    assert browser.text("[data-testid=state]") == "ready"
    assert browser.do("document.querySelectorAll('[data-testid=block]').length") >= 8
    run(browser)
    browser.wait(f"{STATE} === 'running'")
    # The outputs of the diagram are in the first scopes; the curve of `answer` grows to the right.
    browser.wait(has_trace("loop.plant.y"))
    before = browser.do(value_of("loop.plant.y"))
    browser.wait(f"Number.isFinite({value_of('loop.plant.y')})")
    browser.wait(f"{value_of('loop.plant.y')} !== {json.dumps(before)}")
    browser.wait(f"{drawing(0)} > 20")
    first = browser.do(drawing(0))
    browser.wait(f"{drawing(0)} > {first}")
    browser.click("[data-testid=pause]")
    browser.wait(f"{STATE} === 'paused'")


@slow
def test_a_slider_is_dragged_and_its_signal_follows(browser, studio):
    run(browser)
    browser.wait(f"{value_of('gain.y')} === 0.5")
    slider = "[data-testid=setting][data-path=push] [data-testid=slider]"
    x, y = browser.place(slider)
    wide = browser.do(f"document.querySelector('{slider}').getBoundingClientRect().width")
    # The slider begins in its middle, from 0 to 1.
    browser.drag((x, y), (x + 0.3 * wide, y))
    value = browser.do(f"Number(document.querySelector('{slider}').value)")
    assert 0.7 < value < 0.95
    browser.wait(f"Math.abs({value_of('gain.y')} - {value}) < 1e-3")


@slow
def test_a_typed_value_is_set_and_a_bad_one_is_not(browser, studio):
    run(browser)
    field = "[data-testid=setting][data-path=push] input[type=text]"
    browser.click(field)
    browser.do(f"document.querySelector('{field}').select()")
    browser.type("-3.25")
    browser.press("Enter", text="\r")
    browser.wait(f"{value_of('gain.y')} === -3.25")
    browser.click(field)
    browser.do(f"document.querySelector('{field}').select()")
    browser.type("fast")
    browser.wait(f"document.querySelector('{field}').getAttribute('aria-invalid') === 'true'")
    browser.press("Enter", text="\r")
    browser.wait(f"document.querySelector('{field}').value === '-3.25'")


@slow
def test_a_clicked_wire_appears_in_the_selected_scope_and_goes_again(browser, studio):
    run(browser)
    assert not browser.do(has_trace("ref.y"))
    click_wire(browser, "ref.y")
    browser.wait(has_trace("ref.y"))
    browser.wait(f"Number.isFinite({value_of('ref.y')})")
    assert "ref" in browser.text("[data-testid=panel]")
    click_wire(browser, "ref.y")
    browser.wait(f"!({has_trace('ref.y')})")


@slow
def test_a_wire_from_a_subsystem_is_the_signal_inside(browser, studio):
    # The first scope has it already, as the output `answer` of the diagram.
    browser.wait(has_trace("loop.plant.y"))
    click_wire(browser, "loop.y")
    browser.wait(f"!({has_trace('loop.plant.y')})")


@slow
def test_a_clicked_block_shows_its_parameters_and_values(browser, studio):
    run(browser)
    browser.click('[data-testid=block][data-path="loop.p"] .outline')
    browser.wait("document.querySelector('[data-testid=panel]').textContent.includes('Gain')")
    browser.wait("document.querySelector('[data-path=\"loop.p.k\"] input')?.value === '8'")
    browser.wait("document.querySelector('[data-testid=signal-row] .value').textContent !== '–'")


@slow
def test_pause_holds_the_time_and_a_step_is_one_tick(browser, studio):
    run(browser)
    browser.click("[data-testid=pause]")
    browser.wait(f"{STATE} === 'paused'")
    browser.do("new Promise(done => setTimeout(done, 500))")
    before = browser.do(TIME)
    browser.do("new Promise(done => setTimeout(done, 500))")
    assert browser.do(TIME) == before
    browser.click("[data-testid=step]")
    browser.wait(f"{TIME} !== {before}")
    assert browser.do(TIME) == pytest.approx(before + 1e-3, abs=1e-9)
    browser.click("[data-testid=restart]")
    browser.wait(f"{TIME} < {before}")


@slow
def test_the_keyboard_runs_pauses_searches_and_helps(browser, studio):
    browser.press(" ")
    browser.wait(f"{STATE} === 'running'")
    browser.press(" ")
    browser.wait(f"{STATE} === 'paused'")
    browser.press("/")
    browser.wait("document.activeElement?.dataset.testid === 'search'")
    browser.type("sampled.y")
    browser.press("Enter", text="\r")
    browser.wait(has_trace("sampled.y"))
    browser.press("?")
    browser.wait("document.querySelector('dialog')?.open === true")
    browser.press("Escape")
    browser.wait("document.querySelector('dialog') === null")


@slow
def test_scopes_and_pins_are_there_again_after_a_reload(browser, studio):
    browser.click('[aria-label="Pin push"]')
    click_wire(browser, "ref.y")
    browser.wait(has_trace("ref.y"))
    browser.open(studio.url)
    browser.wait(has_trace("ref.y"))
    browser.wait("document.querySelector('.full[data-path=push]') !== null")


@slow
def test_a_part_of_a_curve_is_held_measured_and_left(browser, studio):
    run(browser)
    browser.wait(f"{TIME} > 1.5")
    box = browser.do(
        "(() => { const r = document.querySelector('.u-over').getBoundingClientRect();"
        "return [r.x, r.y, r.width, r.height]; })()"
    )
    x, y, wide, tall = box
    hold = "document.querySelector('[data-testid=scope-hold]').getAttribute('aria-pressed')"
    assert browser.do(hold) == "false"
    # Ten seconds across: from 0.2 s to 1 s.
    browser.drag((x + 0.02 * wide, y + tall / 2), (x + 0.1 * wide, y + tall / 2))
    browser.wait(f"{hold} === 'true'")
    browser.click("[title^='Cursors A and B']")
    browser.wait("document.querySelector('[data-testid=cursor-differences]') !== null")
    # Cursors stand at 35 % and 65 % of 0.8 s, up to a pixel of the drag.
    words = browser.text("[data-testid=cursor-differences]")
    gap = float(words.split("Δt")[1].split()[0])
    assert "ms" in words and gap == pytest.approx(0.3 * 800, abs=0.3 * 2 * 1e4 / wide)
    browser.click("[data-testid=scope-hold]")
    browser.wait(f"{hold} === 'false'")


@slow
def test_a_signal_is_held_and_released(browser, studio):
    run(browser)
    click_wire(browser, "ref.y")
    field = "[aria-label='Hold ref.y at']"
    browser.click(field)
    browser.do(f'document.querySelector("{field}").select()')
    browser.type("0.125")
    browser.press("Enter", text="\r")
    browser.wait(f"{value_of('ref.y')} === 0.125")
    browser.wait("document.querySelector('footer').textContent.includes('1 held')")
    browser.do(
        "[...document.querySelectorAll('button')].find(b => b.textContent === 'Release').click()"
    )
    browser.wait(f"{value_of('ref.y')} !== 0.125")


@slow
def test_a_subsystem_is_looked_into_and_left(browser, studio):
    at = browser.do(
        "(() => { const r = document.querySelector('rect.frame').getBoundingClientRect();"
        "return [r.x + 6, r.y + 6]; })()"
    )
    browser.mouse("mouseMoved", *at)
    for count in (1, 2):
        more = {"button": "left", "clickCount": count}
        browser.mouse("mousePressed", *at, buttons=1, **more)
        browser.mouse("mouseReleased", *at, **more)
    browser.wait("document.querySelector('nav[aria-label=Subsystem]') !== null")
    browser.click("nav[aria-label=Subsystem] button")
    browser.wait("document.querySelector('nav[aria-label=Subsystem]') === null")


@slow
def test_a_lost_server_is_said_and_found_again(browser, rig):
    events = "document.querySelectorAll('.item.event').length"
    with open_page(browser, rig) as server:
        click_wire(browser, "ref.y")
        browser.wait(has_trace("ref.y"))
        session, port, token = server.session, server.port, server.token
        session._note("", "told again with each connection")
        browser.do("document.querySelectorAll('[role=tab]')[2].click()")
        browser.wait(f"{events} === 1")
        server.close()
        browser.wait("document.querySelector('[data-testid=banner]') !== null")
        with StudioServer(session, port) as second:
            second.token = token
            browser.wait("document.querySelector('[data-testid=banner]') === null")
            browser.wait(has_trace("ref.y"))
            run(browser)
            browser.wait(f"Number.isFinite({value_of('ref.y')})")
            browser.wait(f"{drawing(0)} > 20")
            assert browser.do(events) == 1


@slow
def test_a_wrong_token_is_refused_for_good(browser, studio):
    browser.open(studio.url.split("#")[0] + "#token=wrong")
    browser.wait("document.querySelector('[data-testid=banner]')?.textContent.includes('refused')")


@slow
def test_a_problem_is_shown_where_it_is_and_goes_with_it(browser, rig):
    with open_page(browser, rig) as server:
        good = rig.read_text()
        rig.write_text(good.replace('"sampled", u=loop["y"]', '"sampled"'))
        browser.wait("document.querySelector('[data-testid=problem]') !== null")
        assert "sampled" in browser.text("[data-testid=problem]")
        browser.wait("document.querySelector('.box.bad[data-path=sampled]') !== null")
        rig.write_text(good + "\n")
        browser.wait("document.querySelector('[data-testid=problem]') === null")
        assert server.session is not None


@slow
def test_a_diagram_that_does_not_compile_is_drawn_with_its_faulty_wire(browser, rig):
    good = rig.read_text()
    sums = 'u1=d.add(Sine(unit="m"), "m"), u2=d.add(Sine(unit="s"), "s")'
    rig.write_text(good.replace("return d\n", f'd.add(Sum("++"), "both", {sums}); return d\n'))
    marked = (
        "[...document.querySelectorAll('[data-testid=faulty-wire]')].map(w => w.dataset.target)"
    )
    with open_page(browser, rig):
        browser.wait(f"{marked}.length === 1")
        assert browser.do(marked) == ["both.u2"]
        assert "both.u2" in browser.text("[data-testid=problem]")
        rig.write_text(good)
        browser.wait(f"{marked}.length === 0")
        run(browser)
        browser.wait(f"{drawing(0)} > 20")
    assert browser.complaints == []


@slow
def test_a_narrow_page_shows_one_part_at_a_time(browser, studio):
    browser.resize(390, 844, mobile=True)
    try:
        for number, part in enumerate(("diagram", "scope")):
            browser.do(f"document.querySelectorAll('nav.panes button')[{number}].click()")
            browser.wait(
                f"document.querySelector('[data-testid={part}]').offsetParent !== null || "
                f"document.querySelector('[data-testid={part}]').checkVisibility()"
            )
        assert not browser.do("document.querySelector('[data-testid=diagram]').checkVisibility()")
        assert browser.do("document.documentElement.scrollWidth") <= 390
    finally:
        browser.resize(1440, 900)


@slow
def test_scripts_that_fail_are_noticed(browser, studio):
    with pytest.raises(PageError, match="boom"):
        browser.do("(() => { throw new Error('boom'); })()")
