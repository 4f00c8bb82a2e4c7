"""The studio as a widget of Jupyter, VS Code and marimo; imports anywidget."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ...errors import BiellaError
from .._page_file import UNBUILT, assemble_page, has_page
from .._session import LiveSession
from ._channel import Channel

_SCRIPT = Path(__file__).with_name("widget.js")
_CLOSE_SECONDS = 30.0


class StudioWidget(anywidget.AnyWidget):
    """The page of a session, in the output of a cell.

    Runs go on in the kernel, also while cells run; what is pressed on the page is done when no
    cell runs. `close` ends the run.

    Parameters
    ----------
    session
        What the page sees and controls.
    height
        In pixels.
    """

    _esm = _SCRIPT.read_text(encoding="utf-8")
    page = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(640).tag(sync=True)

    def __init__(self, session: LiveSession, height: int = 640) -> None:
        if not has_page():
            raise BiellaError(UNBUILT)
        name = str(session.introduce()["name"])
        super().__init__(page=assemble_page(name, "biella-port", {}), height=height)
        self.session = session
        self._name = name
        self._channel = Channel(session, self.send)
        self.on_msg(self._receive)
        self._worker = threading.Thread(target=session.serve, name="biella studio", daemon=True)
        self._worker.start()

    def _receive(self, widget: object, content: Any, buffers: object) -> None:
        self._channel.receive(content)

    def close(self) -> None:
        """End the run and the widget."""
        if hasattr(self, "_channel"):  # not if it could not be made
            self.session.end()
            self._worker.join(_CLOSE_SECONDS)
            self._channel.close()
        super().close()

    def __repr__(self) -> str:
        return f"StudioWidget({self._name!r})"
