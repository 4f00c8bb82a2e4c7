"""Finding a command in the tables by its words, which may be abbreviated.

Words and names of parameters may be abbreviated as long as only one known one starts with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ....errors import DiagramError, name_list, suggest
from ._commands import BRANCHES, COMMON, IGNORED, LOOKS, PASSED, READ, REFUSED
from ._file import Command, Given
from ._units import choose

Verdict = Literal["read", "look", "ignore", "refuse", "branch"]


@dataclass(slots=True)
class _Branch:
    below: dict[str, _Branch] = field(default_factory=dict)
    verdict: Verdict | None = None
    path: str = ""


def _plant() -> _Branch:
    root = _Branch()
    tables: tuple[tuple[Verdict, Iterable[str]], ...] = (
        ("read", READ), ("read", ("model modify",)), ("look", LOOKS), ("ignore", IGNORED),
        ("refuse", REFUSED), ("branch", BRANCHES),
    )  # fmt: skip
    for verdict, paths in tables:
        for path in paths:
            at = root
            for word in path.split():
                at = at.below.setdefault(word, _Branch())
            at.verdict, at.path = verdict, path
    return root


_ROOT = _plant()


def find_command(command: Command) -> tuple[Verdict, str]:
    """Return what to do with a command, and its words in full.

    Raises
    ------
    DiagramError
        If no command starts so, or several do.
    """
    at = _ROOT
    said: list[str] = []
    for word in command.words:
        if not at.below:
            if at.verdict in ("ignore", "refuse"):
                break
            raise DiagramError(f"`{word.text[:60]}` follows the command `{' '.join(said)}`.")
        if at.verdict in ("ignore", "refuse") and word.text.lower() not in at.below:
            break
        name = choose_word(" ".join(said), word.text, at.below)
        at = at.below[name]
        said.append(name)
    if at.verdict is None:
        raise DiagramError(
            f"the command `{' '.join(said)}` is not complete: it goes on with "
            f"{name_list(sorted(at.below), limit=20)}."
        )
    return at.verdict, at.path


def choose_word(said: str, given: str, known: Mapping[str, object]) -> str:
    """Return the word of a command that `given` is or abbreviates."""
    word = given.lower()
    if word in known:
        return word
    found = sorted(name for name in known if name.startswith(word))
    after = f" after `{said}`" if said else ""
    if len(found) > 1:
        raise DiagramError(f"`{given}`{after} may mean {name_list(found)}: write more of it.")
    if found:
        return found[0]
    raise DiagramError(
        f"there is no command `{given[:60]}`{after} that is known here.{suggest(word, known)}"
    )


def name_parameters(path: str, command: Command) -> dict[str, Given]:
    """Return the parameters of a command by full name, without those that mean nothing here."""
    known = READ.get(path, ())
    passed = (*COMMON, *PASSED.get(path, ()))
    found: dict[str, Given] = {}
    problems = []
    for given in command.given:
        try:
            name = choose(f"a parameter of `{path}`", given.name, (*known, *passed))
        except DiagramError as error:
            problems += [f"{given.place}: {text}" for text in error.problems]
            continue
        if name in found:
            problems.append(
                f"{given.place}: `{name}` is given already: see {found[name].place.split(', ')[1]}."
            )
        found[name] = given
    if problems:
        raise DiagramError(problems)
    return {name: given for name, given in found.items() if name in known}
