"""The page without a pointer: everything that can be pressed is reached by Tab, seen and named."""

import pytest

from .test_page import STATE, has_trace, value_of

pytestmark = [pytest.mark.engine, pytest.mark.slow]

# Controls that are shown, can be pressed and are not in the order of Tab.
UNREACHED = """[...document.querySelectorAll('button, input, select, summary, [role=button]')]
  .filter(e => e.checkVisibility() && !e.disabled && e.tabIndex < 0
    && !e.classList.contains('frame'))
  .map(e => e.outerHTML.slice(0, 120))"""
UNNAMED = """[...document.querySelectorAll('button, input, select, summary, [role=button]')]
  .filter(e => e.checkVisibility() && !e.getAttribute('aria-label') && !e.title
    && !e.textContent.trim() && !e.closest('label'))
  .map(e => e.outerHTML.slice(0, 120))"""
FOCUS = """(() => {
  const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
  const outline = e.closest('.box')?.querySelector('.outline');
  const halo = e.closest('.net')?.querySelector('.halo');
  const isDrawn = outline ? parseFloat(getComputedStyle(outline).strokeWidth) > 2
    : halo ? Number(getComputedStyle(halo).opacity) > 0
    : e.role === 'separator' ? s.backgroundColor !== 'rgba(0, 0, 0, 0)'
    : s.outlineStyle !== 'none';
  return {
    name: halo ? 'wire' : e.dataset.path ?? e.getAttribute('aria-label') ?? e.textContent,
    drawn: isDrawn,
    there: box.width > 0 && e !== document.body,
  };
})()"""


def press_tab(browser):
    key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
    for kind in ("rawKeyDown", "keyUp"):
        browser._call("Input.dispatchKeyEvent", type=kind, **key)


def test_each_control_is_reached_named_and_marked(browser, studio):
    browser.press(" ")
    browser.wait(f"{STATE} === 'running'")
    browser.do("document.querySelector('[aria-label=\"Settings of the scope\"]').click()")
    for tab in range(4):
        browser.do(f"document.querySelectorAll('[role=tab]')[{tab}].click()")
        assert browser.do(UNREACHED) == [] and browser.do(UNNAMED) == []
    browser.do("document.querySelectorAll('[role=tab]')[0].click()")
    browser.do("document.activeElement.blur()")
    seen = []
    for _ in range(90):
        press_tab(browser)
        focus = browser.do(FOCUS)
        if focus["there"]:
            assert focus["drawn"], focus["name"]
            seen.append(focus["name"])
    assert {"wire", "loop.p", "Scope 1", "Restart", "Remove the scope"} <= set(seen)


def test_a_wire_is_put_into_a_scope_and_a_block_inspected_by_keys(browser, studio):
    browser.do("document.querySelector('[data-testid=wire][data-source=\"ref.y\"]').focus()")
    browser.press("Enter", text="\r")
    browser.wait(has_trace("ref.y"))
    browser.do("document.querySelector('[data-testid=block][data-path=\"loop.p\"]').focus()")
    browser.press("Enter", text="\r")
    browser.wait("document.querySelector('[data-path=\"loop.p.k\"] input')?.value === '8'")
    browser.do("document.querySelector('[data-path=\"loop.p.k\"] input').focus()")
    browser.do("document.activeElement.select()")
    browser.type("4")
    browser.press("Enter", text="\r")
    browser.do("document.activeElement.blur()")
    browser.press(" ")
    browser.wait(f"{STATE} === 'running'")
    browser.wait(f"Number.isFinite({value_of('ref.y')})")
    browser.press(" ")
    browser.wait(f"{STATE} === 'paused'")
    assert studio.session.run["loop.p.k"] == 4.0
