"""What a user asks of an export."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy.typing as npt

from ...blocks.core._exports import Experiment, Terminals
from ...errors import BiellaError


@dataclass(frozen=True, kw_only=True)
class FmuOptions:
    """What a user asks of an export, besides inputs and outputs; see `biella.fmu.export_fmu`."""

    parameters: Sequence[str] | Mapping[str, npt.ArrayLike | None] | None = None
    platforms: Sequence[str] | None = None
    sources: bool = True
    version: str = "2.0"
    kind: str = "cs"
    about: Mapping[str, str] | None = None
    local: Sequence[str] = ()
    limits: Mapping[str, tuple[float | None, float | None]] | None = None
    nominal: Mapping[str, float] | None = None
    types: Mapping[str, str] | None = None
    clocks: bool = False
    terminals: Terminals = True
    reference: Experiment | Sequence[Experiment] | None = None

    def __post_init__(self) -> None:
        """Refuse what is neither a list nor a mapping of names, before anything is compiled."""
        check_names("parameters", self.parameters)
        check_names("platforms", self.platforms)
        check_names("local", self.local)
        for what, given, example in (
            ("limits", self.limits, '{"torque": (-40.0, 40.0)}'),
            ("nominal", self.nominal, '{"torque": 10.0}'),
            ("types", self.types, '{"speed": "Float32"}'),
            ("about", self.about, '{"author": "…", "license": "…"}'),
        ):
            if given is not None and not isinstance(given, Mapping):
                raise BiellaError(f"`{what}` must be a dict, such as {example}.")
            check_names(what, given)


def check_names(what: str, given: object) -> None:
    """Raise unless `given` is None, or a list or mapping of texts; one text alone is no list."""
    if isinstance(given, str):
        raise BiellaError(f"`{what}` must be a list, such as [{given!r}].")
    if given is None or isinstance(given, Iterator):  # which can be read once only
        return
    wrong = [n for n in given if not isinstance(n, str)] if isinstance(given, Iterable) else [given]
    if wrong:
        form = "have names as keys" if isinstance(given, Mapping) else "be a list of names"
        raise BiellaError(f"`{what}` must {form}; got {wrong[0]!r}.")


def check_path(path: object) -> None:
    """Raise unless `path` can be the name of a file."""
    if not isinstance(path, (str, os.PathLike)):
        raise BiellaError(f"the FMU needs a file name, such as 'model.fmu'; got {path!r}.")
    if os.path.isdir(path):
        raise BiellaError(f"cannot write `{path}`: it is a folder. Name a file in it.")
