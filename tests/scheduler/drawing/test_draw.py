"""Pictures of diagrams: what must hold for the geometry of each, and for the files."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from biella import DiagramError
from biella.scheduler.drawing._arrange import arrange
from biella.scheduler.drawing._draw import draw
from biella.scheduler.drawing._paint import finish

from . import diagrams
from .diagrams import multirate, nested, oscillator


class TestFiles:
    @pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
    def test_same_bytes(self, tmp_path: Path, suffix: str) -> None:
        first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
        draw(multirate(), first)
        draw(multirate(), second)
        assert first.read_bytes() == second.read_bytes()
        start = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[suffix]
        assert first.read_bytes().startswith(start)

    def test_same_bytes_in_another_process_and_no_pyplot(self, tmp_path: Path) -> None:
        script = (
            "import sys, runpy; from biella.scheduler.drawing._draw import draw; "
            "draw(runpy.run_path(sys.argv[1])['nested'](), sys.argv[2]); "
            "assert 'matplotlib.pyplot' not in sys.modules"
        )
        # Another hash seed: nothing may depend on the order of a set of names.
        seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
        subprocess.run(
            [sys.executable, "-c", script, diagrams.__file__, str(tmp_path / "there.svg")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            timeout=300,
        )
        draw(nested(), tmp_path / "here.svg")
        assert (tmp_path / "there.svg").read_bytes() == (tmp_path / "here.svg").read_bytes()

    def test_size_and_title(self, tmp_path: Path) -> None:
        figure = draw(oscillator(), tmp_path / "x.svg", title="A heading")
        page = finish(arrange(oscillator()), "A heading")
        root = ET.parse(tmp_path / "x.svg").getroot()
        assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(page.width, abs=0.01)
        assert "A heading" in {text.get_text() for text in figure.axes[0].texts}
        assert "oscillator" not in {text.get_text() for text in figure.axes[0].texts}
        bare = draw(oscillator(), title="")
        assert bare.get_figheight() < figure.get_figheight()

    def test_unknown_extension(self, tmp_path: Path) -> None:
        with pytest.raises(DiagramError, match=r"x\.docx.*svg, pdf, png"):
            draw(oscillator(), tmp_path / "x.docx")
        assert list(tmp_path.iterdir()) == []
