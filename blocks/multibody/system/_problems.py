"""What is wrong with a file that describes a mechanism: collected with places, raised together."""

from __future__ import annotations

import warnings

from ....errors import BiellaWarning, DiagramError


class Problems:
    """What is wrong with a file or folder; raised together."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, place: str, text: str) -> None:
        """Note what is wrong at a place."""
        self.texts.append(f"{place}: {text}")

    def stop(self) -> None:
        """Raise a `DiagramError` if there are any."""
        if self.texts:
            raise DiagramError(list(dict.fromkeys(self.texts)))


def doubt(place: str, text: str) -> None:
    """Warn about a place."""
    warnings.warn(f"{place}: {text}", BiellaWarning, stacklevel=2)
