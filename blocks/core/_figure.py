"""Figures that are made without pyplot, and can still be shown."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ...errors import BiellaError


class ShownFigure(Figure):
    """A matplotlib figure that a notebook shows by itself and a script shows by ``show()``."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()

    def show(self, warn: bool = True, block: bool | None = None) -> None:
        """Open a window with the figure.

        Parameters
        ----------
        warn
            Not used; it is that of matplotlib's own method.
        block
            Whether to wait until the window is closed. If not given: in a script, but not in an
            interactive session.

        Raises
        ------
        BiellaError
            If there is no display, or matplotlib has no toolkit to open windows with.
        """
        import matplotlib.pyplot as plt
        from matplotlib.backends.registry import BackendFilter, backend_registry

        backend = plt.get_backend().lower()
        if backend in backend_registry.list_builtin(BackendFilter.NON_INTERACTIVE):  # type: ignore[no-untyped-call]
            raise BiellaError(
                f"no window can be opened here: matplotlib's backend is `{backend}`. Save the "
                f"figure instead, by path='….png' or savefig; or, where there is a display, "
                f"install a toolkit (pip install pyqt6) and leave MPLBACKEND unset."
            )
        if not plt.fignum_exists(getattr(self, "number", -1)):
            width, height = self.get_size_inches()
            adopt: Any = lambda **_: self  # noqa: E731
            plt.figure(FigureClass=adopt)
            self.set_size_inches(width, height)
        plt.show(block=block)


def check_picture_format(path: Path) -> str:
    """Return the format that the extension of `path` names.

    Raises
    ------
    BiellaError
        If it is none that matplotlib writes.
    """
    formats = sorted(Figure().canvas.get_supported_filetypes())
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in formats:
        raise BiellaError(
            f"cannot save a plot as `{path.name}`: give it one of the extensions "
            f"{', '.join(formats)}."
        )
    return suffix
