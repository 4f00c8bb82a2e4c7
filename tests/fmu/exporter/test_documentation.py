"""The documentation inside an FMU."""

from __future__ import annotations

import subprocess
import zipfile
from html.parser import HTMLParser
from pathlib import Path

from biella.blocks import Gain

from .conftest import Exported, lag


class Tags(HTMLParser):
    """Notes what a page has, and that every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows = 0
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.rows += tag == "tr"
        self.links += [str(v) for k, v in attrs if k in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_complete_in_itself(crank: Exported) -> None:
    text = (crank.folder / "documentation" / "index.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert tags.links == []
    owners = {name.partition("[")[0] for name in crank.references}
    assert tags.rows == len(owners) + 3  # a row each, and three heads
    for name in owners:
        assert f"<td><code>{name}</code>" in text
    assert "Replaced by inputs: <code>ref</code>." in text
    for words in ("<svg", "rad/s", "0.001 s", "rk4", "controlled_crank.fmu", "N.m"):
        assert words in text
    assert (crank.folder / "model.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_diagram_too_large_to_be_read_is_not_drawn(tmp_path: Path) -> None:
    d = lag()
    for n in range(200):
        d.connect(d["u"], d.add(Gain(1.0), name=f"g{n}"))
    path = d.export_fmu(tmp_path / "x.fmu")
    with zipfile.ZipFile(path) as archive:
        assert b"<svg" not in archive.read("documentation/index.html")
        assert archive.read("model.png")[:4] == b"\x89PNG"


def test_an_export_does_not_import_matplotlib(tmp_path: Path) -> None:
    """It takes longer than everything else together."""
    import sys

    program = (
        "import sys\nfrom biella import Diagram\nfrom biella.blocks import Gain\n"
        "d = Diagram('x')\nd.connect(d.input('u'), d.add(Gain(2.0), name='k'))\n"
        "d.output('y', d['k'])\nd.export_fmu(sys.argv[1])\n"
        "print([m for m in sys.modules if m == 'matplotlib'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x.fmu")],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout == "[]\n"
