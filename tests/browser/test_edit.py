"""Changes of the user's file from the page."""

import json

import pytest

pytest.importorskip("libcst")
pytestmark = [pytest.mark.engine, pytest.mark.slow]


def click_block(browser, path):
    browser.click(f'[data-testid=block][data-path="{path}"]')


def unfold(browser, what):
    """Open what can be unfolded; the page may still move under the first click."""
    for _ in range(20):
        if browser.do(f"document.querySelector('[data-testid={what}]')?.open === true"):
            return
        browser.click(f"[data-testid={what}] summary")
    raise AssertionError(f"{what} does not open")


def fill(browser, label, text):
    browser.click(f'[aria-label="{label}"]')
    browser.do(f"document.querySelector('[aria-label=\"{label}\"]').select()")
    browser.type(text)


def test_a_value_is_written_to_the_file(browser, studio, rig):
    click_block(browser, "gain")
    field = '[data-testid=setting][data-path="gain.k"]'
    browser.click(f"{field} input[type=text]")
    browser.do(f"document.querySelector('{field} input[type=text]').select()")
    browser.type("2.5")
    browser.press("Enter", text="\r")
    browser.click(f"{field} [data-testid=write]")
    browser.wait("document.querySelector('[data-testid=note]')?.textContent.includes('gain.k')")
    assert 'd.add(Gain(2.5), "gain", u=push)' in rig.read_text()
    browser.wait(f"document.querySelector('{field} [data-testid=write]') === null")

    # Of a block of a helper function, the reason is shown instead.
    click_block(browser, "loop.p")
    field = '[data-testid=setting][data-path="loop.p.k"]'
    browser.click(f"{field} input[type=text]")
    browser.do(f"document.querySelector('{field} input[type=text]').select()")
    browser.type("3")
    browser.press("Enter", text="\r")
    browser.wait(f"document.querySelector('{field}')?.textContent.includes('not written')")
    assert "Gain(8.0)" in rig.read_text()


def test_blocks_come_and_go(browser, studio, rig):
    before = rig.read_text()
    unfold(browser, "edit-diagram")
    fill(browser, "Type of the new block", "Gain")
    browser.wait("document.querySelector('[data-testid=edit-diagram] p') !== null")
    fill(browser, "Name of the new block", "extra")
    fill(browser, "Arguments of the new block", "k=4")
    browser.click("[data-testid=add]")
    wanted = json.dumps('[data-testid=block][data-path="extra"]')
    # It has no input yet: the page shows the problem at the block that it names.
    browser.wait("document.body.textContent.includes('extra.u')")
    assert 'd.add(Gain(k=4), "extra")' in rig.read_text()
    browser.click("[role=tab]:first-child")
    unfold(browser, "edit-diagram")
    fill(browser, "From the output", "gain")
    fill(browser, "To the input", "extra.u")
    browser.click("[data-testid=connect]")
    browser.wait(f"document.querySelector({wanted}) !== null")
    click_block(browser, "extra")
    unfold(browser, "edit-block")
    fill(browser, "New name of extra", "more")
    browser.press("Enter", text="\r")
    browser.wait("document.querySelector('[data-testid=block][data-path=more]') !== null")
    assert 'd.connect("gain.y", "more.u")' in rig.read_text()
    click_block(browser, "more")
    browser.wait("document.querySelector('[aria-label=\"New name of more\"]') !== null")
    unfold(browser, "edit-block")
    browser.click("[data-testid=edit-block] .line:last-child button")
    browser.click("[data-testid=delete]")
    browser.wait("document.querySelector('[data-testid=block][data-path=more]') === null")
    assert rig.read_text() == before
