"""A diagram of a notebook in the studio: it has no file that could be loaded again."""

from __future__ import annotations

from pathlib import Path

from ...scheduler.compile.diagram._diagram import Diagram
from .._messages import Message
from .._session import LiveSession


class DiagramSession(LiveSession):
    """A diagram that exists already, run as often as pages ask for it.

    Parameters
    ----------
    diagram
        The diagram.
    bind, log, factor
        As of `LiveSession`.
    """

    def __init__(
        self,
        diagram: Diagram,
        bind: Path | None = None,
        log: Path | None = None,
        factor: float | None = None,
    ) -> None:
        super().__init__(Path(), bind, log, factor)
        self._given = diagram

    def _find_file(self) -> None:
        return None

    def _read_diagram(self) -> Diagram:
        return self._given

    def _read_stamp(self) -> tuple[float, ...]:
        return ()

    def introduce(self) -> Message:
        return super().introduce() | {"name": self._given.name, "file": ""}
