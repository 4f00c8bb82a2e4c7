"""What a session offers of changes of its file: nothing, and why, where libcst is missing."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import BiellaError
from ...scheduler.compile.diagram._diagram import Diagram
from .._messages import Message

if TYPE_CHECKING:
    from ._editor import Editor

_MISSING = "libcst is not installed: pip install 'biella[edit]'"
_NONE: Message = {"event": "editable", "undo": "", "blocks": {}, "parameters": {}, "diagrams": []}


class Offer:
    """Changes of the file of a session.

    Parameters
    ----------
    file
        The file; None if the diagram has none.

    Attributes
    ----------
    can
        What pages may ask for.
    message
        What pages are told.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._editor: Editor | None = None
        self._text = b""
        self.can: tuple[str, ...] = ()
        self.message = _NONE | {"reason": "the diagram has no file"}
        if file is None:
            return
        try:
            from ._editor import Editor
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "libcst":
                raise
            self.message = _NONE | {"reason": _MISSING}
            return
        self._editor = Editor(file)
        self.can = ("edit", "palette")

    def refuse(self, reason: str) -> None:
        """Offer nothing from now on."""
        self._editor, self.can, self.message = None, (), _NONE | {"reason": reason}

    def begin(self) -> None:
        """Read the file, before it is loaded: what is changed is what was loaded."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._text = self._file.read_bytes()

    def take(self, diagram: Diagram | None) -> None:
        """Take the diagram that was loaded; None if that failed."""
        if self._editor is not None:
            self._editor.take(self._text, diagram)
            self.message = self._editor.describe()

    def edit(self, request: Message) -> Message:
        """Change the file as a page asks for; it is then loaded again."""
        if self._editor is None:
            raise BiellaError(f"the file cannot be changed from here: {self.message['reason']}.")
        return self._editor.edit(request)

    def list_palette(self) -> Message:
        """Return the blocks that can be added."""
        from ._editor import list_palette

        return {"palette": list_palette()}
