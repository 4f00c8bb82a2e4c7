"""The studio in Chromium: real pages, a real server, a real run."""

import contextlib
import importlib.util
import textwrap

import pytest

from biella.studio import _server
from biella.studio._session import LiveSession

from ..studio.client import serving
from .chromium import Chromium, find_chromium

RIG = """
    from biella import Diagram, Subsystem
    from biella.blocks import Gain, Integrator, Sine, Sum, UnitDelay

    def inner():
        s = Diagram("loop")
        ref = s.input("ref")
        error = s.add(Sum("+-"), "error", u1=ref)
        plant = s.add(Integrator(), "plant", u=s.add(Gain(8.0), "p", u=error))
        s.connect(plant, error["u2"])
        s.output("y", plant)
        return Subsystem(s)

    def diagram():
        d = Diagram("browser rig", step=1e-3)
        ref = d.add(Sine(frequency=2.0), "ref")
        loop = d.add(inner(), "loop", ref=ref)
        d.add(UnitDelay(), "sampled", u=loop["y"], period=0.05)
        push = d.input("push", default=0.5)
        d.output("pushed", d.add(Gain(1.0), "gain", u=push))
        d.output("answer", loop["y"])
        return d
"""


def _find_page():
    """Build the page if it is missing or older than its sources; skip where that is impossible."""
    location = _server.FILES.with_name("page") / "build.py"
    if location.exists():  # an editable install; a wheel has the page only
        spec = importlib.util.spec_from_file_location("biella_page_build", location)
        assert spec is not None and spec.loader is not None
        page = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(page)
        try:
            page.build()
        except page.PageError as error:
            pytest.skip(f"the page of the studio cannot be built: {error}")
    if not (_server.FILES / "index.html").exists():
        pytest.skip("the page of the studio is not built: there was no npm")


@pytest.fixture(scope="session")
def _page():
    if find_chromium() is None:
        pytest.skip("needs Chromium")
    _find_page()


@pytest.fixture(scope="module")
def browser(_page, tmp_path_factory):
    """One browser for a module; each test opens a page of its own."""
    with Chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def rig(tmp_path):
    path = tmp_path / "rig.py"
    path.write_text(textwrap.dedent(RIG))
    return path


@contextlib.contextmanager
def open_page(browser, file):
    """Yield the server of a file, its page open in the browser and connected."""
    session = LiveSession(file)
    session.load()
    with serving(session) as server:
        browser.complaints.clear()
        browser.open(server.url)
        browser.wait("document.querySelector('[data-testid=diagram] [data-testid=block]') !== null")
        try:
            yield server
        finally:
            browser.open("about:blank")


@pytest.fixture
def studio(browser, rig):
    """The rig in the browser, not yet running."""
    with open_page(browser, rig) as server:
        yield server
    assert browser.complaints == []
