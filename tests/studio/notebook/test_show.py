"""`show`: what it takes, what it returns, and what it needs."""

import html
import re
import sys

import pytest

from biella import BiellaError, System, simulate
from biella.studio import _page_file, show
from biella.studio.notebook._show import RecordedPage

from .diagrams import make_loop

PARTS = {
    "index.html": "<!doctype html>\n<html>\n  <head>\n    <meta charset='utf-8' />\n"
    '    <title>x</title>\n  </head>\n  <body><div id="app"></div></body>\n</html>\n',
    "assets/index.js": "code",
    "assets/index.css": "style",
    "assets/scene.js": "scene",
}


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Stand in for the built page, which needs npm."""
    for name, text in PARTS.items():
        path = tmp_path / "static" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(_page_file, "FILES", tmp_path / "static")


@pytest.mark.engine
def test_a_result_is_a_frame_with_a_whole_page(page, tmp_path):
    d = make_loop()
    result = simulate(d, 0.1, record=["*"])
    found = show(result, d, height=500)
    assert isinstance(found, RecordedPage) and repr(found) == "RecordedPage('loop', 0.0 MB)"
    made = found._repr_html_()
    frame = re.fullmatch(r'<iframe [^<>]*srcdoc="([^"]*)"></iframe>', made, re.S)
    assert frame is not None and html.unescape(frame[1]) == found.text and "height:500px" in made
    assert 'sandbox="allow-scripts allow-downloads"' in made
    assert 'id="biella-run"' in found.text and '"event": "diagram"' in found.text

    result.to_hdf5(tmp_path / "run.h5")
    few = show(tmp_path / "run.h5", signals=["x"])
    assert len(few.text) < len(found.text) and '"event": "diagram"' not in few.text


@pytest.mark.engine
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((System("s"),), {}, "takes a Diagram, a Result, or the path of a file, got System"),
        (("nowhere.py",), {}, "there is no file `nowhere.py`"),
        ((make_loop(),), {"height": 20}, "from 100 to 10000, got 20"),
        ((make_loop(), make_loop()), {}, "a diagram is shown without `source`: they are of a res"),
        ((make_loop(),), {"signals": ["x"]}, "shown without `signals`"),
    ],
)
def test_wrong_arguments_are_told(arguments, options, message):
    with pytest.raises(BiellaError, match=re.escape(message)):
        show(*arguments, **options)


@pytest.mark.engine
def test_options_of_a_run_do_not_fit_a_result(page):
    with pytest.raises(BiellaError, match="a result is shown without `bind`, `factor`"):
        show(simulate(make_loop(), 0.01), bind="rig.toml", factor=2.0)  # type: ignore[call-overload]


@pytest.mark.engine
def test_without_the_built_page_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(_page_file, "FILES", tmp_path)
    with pytest.raises(BiellaError, match="was not built when biella was installed"):
        show(simulate(make_loop(), 0.01))


def test_without_anywidget_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "biella.studio.notebook._widget", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(BiellaError, match=r"pip install 'biella\[notebook\]'"):
        show(make_loop())
