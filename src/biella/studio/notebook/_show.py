"""`show`: the studio in the output of a cell."""

from __future__ import annotations

import html
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, overload

from ...errors import BiellaError
from ...scheduler.compile.diagram._diagram import Diagram
from ...scheduler.results._result import Result

if TYPE_CHECKING:
    from ._widget import StudioWidget

_RESULTS = (".h5", ".hdf5")


class RecordedPage:
    """A recorded run as a page of its own, which a notebook shows in a frame.

    It stays in the saved notebook, and needs no kernel.

    Attributes
    ----------
    text
        The page, a whole HTML file.
    height
        Of the frame in pixels.
    """

    def __init__(self, text: str, name: str, height: int) -> None:
        self.text = text
        self.name = name
        self.height = height

    def __repr__(self) -> str:
        return f"RecordedPage({self.name!r}, {len(self.text) / 1e6:.1f} MB)"

    def _repr_html_(self) -> str:
        # The page is isolated: no cookies, no storage, no access to the notebook.
        return (
            f'<iframe title="{html.escape(self.name)}" sandbox="allow-scripts allow-downloads" '
            f'style="display:block;box-sizing:border-box;width:100%;height:{self.height}px;'
            f'border:1px solid rgba(128,128,128,.35);border-radius:6px" '
            f'srcdoc="{html.escape(self.text)}"></iframe>'
        )


@overload
def show(
    what: Diagram,
    *,
    height: int = 640,
    bind: str | Path | None = None,
    log: str | Path | None = None,
    factor: float | None = None,
) -> StudioWidget: ...
@overload
def show(
    what: Result,
    source: Diagram | str | Path | None = None,
    *,
    height: int = 640,
    signals: list[str] | None = None,
    largest: float = 5.0,
) -> RecordedPage: ...
@overload
def show(
    what: str | Path,
    source: Diagram | str | Path | None = None,
    *,
    height: int = 640,
    signals: list[str] | None = None,
    largest: float = 5.0,
    bind: str | Path | None = None,
    log: str | Path | None = None,
    factor: float | None = None,
) -> StudioWidget | RecordedPage: ...
def show(
    what: Diagram | Result | str | Path,
    source: Diagram | str | Path | None = None,
    *,
    height: int = 640,
    signals: list[str] | None = None,
    largest: float = 5.0,
    bind: str | Path | None = None,
    log: str | Path | None = None,
    factor: float | None = None,
) -> StudioWidget | RecordedPage:
    """Show the studio in a notebook: Jupyter, VS Code, marimo.

    A diagram is run from the page, with scopes, sliders and the moving mechanism; that needs
    anywidget (``pip install 'biella[notebook]'``). The run goes on while cells run; what is pressed
    on the page is done when no cell runs. A run that no output shows any more is paused; it ends
    with ``close()`` of what is returned, or with the kernel.

    A result is shown as a recorded run, which stays in the saved notebook and needs no kernel.

    Parameters
    ----------
    what
        A diagram, or a Python file that defines ``diagram()``; a result, or its file ``.h5``.
    source
        Of a result: its diagram or the Python file of it. The page then has a picture of the
        diagram, and mechanisms move if the poses of all their bodies were recorded.
    height
        In pixels.
    signals
        Of a result: paths or patterns of the signals on the page; by default all.
    largest
        Of a result: size of the page in MB. Longer recordings are put in bins with the smallest
        and the largest value of each.
    bind, log, factor
        Of a diagram: binding to devices, file to record each run to, and simulated seconds per
        second, as of ``biella studio``.

    Returns
    -------
    StudioWidget or RecordedPage
        What the notebook shows.

    Raises
    ------
    BiellaError
        If anywidget is not installed, the page of the studio is not built, or an option does not
        apply. Problems of a diagram are shown on the page.
    """
    if isinstance(height, bool) or not isinstance(height, int) or not 100 <= height <= 10_000:
        raise BiellaError(
            f"`height` is a whole number of pixels from 100 to 10000, got {height!r}."
        )
    file = Path(what) if isinstance(what, str | Path) else None
    if file is not None and not file.is_file():
        raise BiellaError(f"there is no file `{file}`.")
    is_file = file is not None and file.suffix.lower() in _RESULTS
    if isinstance(what, Result) or (is_file and not isinstance(what, Diagram)):
        given = {"bind": bind, "log": log, "factor": factor}
        _refuse_options(given, "a result", "they are of a diagram that is run")
        recorded = what if isinstance(what, Result) else Path(what)
        return _show_recorded(recorded, source, height, signals, largest)
    if not isinstance(what, Diagram) and file is None:
        raise BiellaError(
            f"show takes a Diagram, a Result, or the path of a file, got {type(what).__name__}. "
            f"A mechanism is shown as a block: d.add(system.block(), 'plant')."
        )
    _refuse_options({"source": source, "signals": signals}, "a diagram", "they are of a result")
    widget = _import_widget()
    from .._session import LiveSession
    from ._session import DiagramSession

    paths = (None if bind is None else Path(bind), None if log is None else Path(log), factor)
    session: LiveSession
    if isinstance(what, Diagram):
        session = DiagramSession(what, *paths)
    else:
        assert file is not None
        session = LiveSession(file, *paths)
    session.load()
    return widget(session, height)


def _refuse_options(given: Mapping[str, object], what: str, why: str) -> None:
    names = [name for name, value in given.items() if value is not None]
    if names:
        listed = ", ".join(f"`{name}`" for name in names)
        raise BiellaError(f"{what} is shown without {listed}: {why}.")


def _import_widget() -> type[StudioWidget]:
    try:
        from ._widget import StudioWidget
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("anywidget", "ipywidgets", "traitlets"):
            raise
        raise BiellaError(
            "to run a diagram in a notebook, anywidget is needed: pip install 'biella[notebook]'. "
            "Without it, show the result of a run, or open the diagram in the browser: biella "
            "studio FILE."
        ) from None
    return StudioWidget


def _show_recorded(
    recorded: Result | Path,
    source: Diagram | str | Path | None,
    height: int,
    signals: list[str] | None,
    largest: float,
) -> RecordedPage:
    from .._page_file import write_page_file
    from .._result import ResultSession

    diagram = source if source is None or isinstance(source, Diagram) else Path(source)
    with tempfile.TemporaryDirectory(prefix="biella-show-") as folder:
        if isinstance(recorded, Result):
            file = Path(folder, "run.h5")
            recorded.to_hdf5(file)
        else:
            file = recorded
        session = ResultSession(file, diagram)
        page = Path(folder, "run.html")
        write_page_file(session, page, signals=signals, largest=largest)
        return RecordedPage(page.read_text("utf-8"), str(session.introduce()["name"]), height)
