"""Construction of a block: its arguments are stored, then its attributes are frozen."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DiagramError

if TYPE_CHECKING:
    from ._block import AbstractBlock

_LONGEST = 30  # characters of one argument
_MOST = 4  # numbers of a list that are shown


def complete_construction(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap a block's ``__init__``: the outermost one notes the arguments and fixes the block."""
    signature = inspect.signature(init)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())

    @functools.wraps(init)
    def construct(self: AbstractBlock, *args: Any, **kwargs: Any) -> None:
        refused = [
            name
            for name in ("period", "offset")
            if name in kwargs and not takes_any and name not in signature.parameters
        ]
        if refused:
            init(self, *args, **{n: v for n, v in kwargs.items() if n not in refused})
            raise DiagramError(_explain_period(self, refused[0]))
        init(self, *args, **kwargs)
        if type(self).__init__ is construct:
            vars(self)["_arguments"] = _write_arguments(signature.bind(self, *args, **kwargs))
            vars(self)["_complete"] = True

    return construct


def _explain_period(block: AbstractBlock, name: str) -> str:
    why = block.refuse_period()
    if why:
        return f"{block} takes no `{name}`: {why}"
    return (
        f"{block} takes no `{name}`: give it where the block is added, "
        f"d.add({block}(…), period=…{', offset=…' * (name == 'offset')})."
    )


def _write_arguments(bound: inspect.BoundArguments) -> str:
    """Return the arguments as they would be written, long ones shortened."""
    written = []
    for name, value in list(bound.arguments.items())[1:]:
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            written += [f"{key}={shorten(item)}" for key, item in value.items()]
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            written += [shorten(item) for item in value]
        else:
            written.append(f"{name}={shorten(value)}")
    return ", ".join(written)


def shorten(value: object) -> str:
    """Return a value in a few characters: of arrays the shape, of other objects the type."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.size <= _MOST:
        value = value.tolist()
    if isinstance(value, np.ndarray):
        return f"<{'×'.join(map(str, value.shape))} array>"
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…")
    if isinstance(value, Mapping):
        return f"<{len(value)} entries>" if value else "{}"
    if isinstance(value, Sequence):
        text = ", ".join(shorten(item) for item in value[:_MOST])
        if len(value) > _MOST or len(text) > _LONGEST:
            return f"<{len(value)} items>"
        return f"({text}{',' * (len(value) == 1)})" if isinstance(value, tuple) else f"[{text}]"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    text = repr(value)
    return text if len(text) <= _LONGEST and "\n" not in text else f"<{type(value).__name__}>"
