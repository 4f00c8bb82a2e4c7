"""The studio: a page that shows a run and controls it, in the browser or in a notebook.

`_command` is the command line, `_server` talks to pages, `_session` holds the diagram and its run,
`_result` a recorded one, `_attached` a run of another process. `_messages`, `_mechanism` and
`_scopes` turn what they have into messages. ``page/`` is the source of the page, ``notebook/``
shows it in notebooks.
"""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from .notebook._show import show
else:
    __getattr__, __dir__ = attach(__name__, {".notebook._show": ("show",)})

__all__ = ["show"]
