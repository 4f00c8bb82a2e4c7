"""The page of `biella serve` and of live runs: key, devices, timing, marks, safe stop."""

import json
import textwrap

import pytest

from biella.cli import load_diagram
from biella.scheduler.realtime._start import start_run
from biella.studio._access import Access
from biella.studio._attached import AttachedSession
from biella.studio._session import LiveSession

from ..studio.client import serving

pytestmark = [pytest.mark.engine, pytest.mark.slow]

KEY = bytes(range(100, 132))
TAB = "document.querySelectorAll('[role=tab]')[{}].click()"
STATE = "document.querySelector('[data-testid=state]').textContent"

RIG = """
    from biella import Diagram
    from biella.blocks import Gain, Integrator, Relay, Sine

    def diagram():
        d = Diagram("live", step=1e-3, solver="rk4")
        wave = d.add(Sine(frequency=20.0), "wave")
        speed = d.add(Integrator(), "speed", u=d.add(Relay(on=0.2, off=-0.2), "relay", u=wave))
        d.output("y", d.add(Gain(1.0), "k", u=speed))
        return d
"""
BINDING = """
    [devices.board]
    driver = "loopback"
    receive.y = {}
    send.u = { safe = 0 }
    [blocks.k]
    device = "board"
"""


def type_key(browser, digits):
    browser.click("[data-testid=key-text]")
    browser.do("document.querySelector('[data-testid=key-text]').select()")
    browser.type(digits)
    browser.click("[data-testid=key-send]")


@pytest.fixture
def served(browser, rig):
    session = LiveSession(rig)
    session.load()
    with serving(session, Access(guarded=True, key=KEY)) as server:
        browser.complaints.clear()
        browser.open(server.url)
        browser.wait("document.querySelector('[data-testid=unlock]') !== null")
        yield session, server
        browser.open("about:blank")
    assert browser.complaints == []


def test_a_page_looks_until_it_has_the_key(browser, served):
    session, server = served
    assert browser.do("document.querySelector('[data-testid=run]').disabled")
    browser.do(TAB.format(1))
    browser.wait("document.querySelector('[data-testid=locked]') !== null")
    browser.click("[data-testid=unlock]")
    type_key(browser, "00" * 32)
    problem = "document.querySelector('[data-testid=key-problem]')?.textContent ?? ''"
    browser.wait(f"({problem}).includes('not the key')")
    type_key(browser, "12")
    browser.wait(f"({problem}).includes('64 hexadecimal digits')")
    sent = "WebSocket.prototype.send"
    browser.do(
        f"(() => {{ window.said = []; const old = {sent};"
        f"{sent} = function (text) {{ window.said.push(text); old.call(this, text); }}; }})()"
    )
    type_key(browser, KEY.hex())
    browser.wait("document.querySelector('[data-testid=lock]') !== null")
    browser.click("[data-testid=run]")
    browser.wait(f"{STATE} === 'running'")
    said = browser.do("window.said")
    assert not any(KEY.hex()[:8] in text for text in said)
    keyed = [json.loads(text) for text in said if '"keyed"' in text]
    assert [json.loads(item["text"])["do"] for item in keyed] == ["run"]
    # The key is kept over a lost connection, until it is forgotten.
    server._loop.call_soon_threadsafe(_drop_all, server)
    browser.wait("document.querySelector('[data-testid=lock]') === null")
    browser.wait("document.querySelector('[data-testid=lock]') !== null")
    browser.click("[data-testid=pause]")
    browser.wait(f"{STATE} === 'paused'")
    browser.click("[data-testid=lock]")
    browser.wait("document.querySelector('[data-testid=unlock]') !== null")
    assert browser.do("document.querySelector('[data-testid=run]').disabled")
    assert not any(KEY.hex() in (text or "") for text in browser.do("Object.values(localStorage)"))
    assert session.run is not None


def _drop_all(server):
    for socket in list(server._listener._accepted):
        socket.shutdown(2)


def test_devices_timing_and_marks_of_a_live_run_and_its_safe_stop(browser, tmp_path):
    (tmp_path / "live.py").write_text(textwrap.dedent(RIG))
    (tmp_path / "rig.toml").write_text(textwrap.dedent(BINDING))
    diagram = load_diagram(tmp_path / "live.py")
    run = start_run(diagram, {"record": ["*"]}, {}, bind=tmp_path / "rig.toml", history=1 << 22)
    with run, serving(AttachedSession(run, diagram)) as server:
        browser.open(server.url)
        browser.wait("document.querySelectorAll('[role=tab]').length === 3")
        browser.do(TAB.format(1))
        device = "document.querySelector('[data-testid=device][data-name=board]')"
        browser.wait(f"{device}?.textContent.includes('connected')")
        age = browser.text("[data-testid=device-age]")
        assert age.endswith("s") and age != "–"
        browser.wait("document.querySelectorAll('[data-testid=histogram] rect').length > 4")
        browser.do(TAB.format(2))
        browser.wait("document.querySelector('[data-testid=mark]')?.textContent.includes('relay')")
        browser.resize(390, 844, mobile=True)
        try:
            stop = "document.querySelector('[data-testid=safe-stop]').getBoundingClientRect()"
            assert browser.do(f"{stop}.left") >= 0 and browser.do(f"{stop}.right") <= 390
            browser.click("[data-testid=safe-stop]")
            browser.wait(f"{STATE} === 'ended'")
        finally:
            browser.resize(1440, 900)
        browser.open("about:blank")
    assert not run.running
