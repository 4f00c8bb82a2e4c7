"""Direct feedthrough of an FMU as given by the user instead of its model description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...errors import DiagramError, FmuError, name_list, suggest
from ._interface import Description, Interface
from ._variables import Group

Feedthrough: TypeAlias = bool | Mapping[str, bool | str | Sequence[str]] | None


def override_feedthrough(
    interface: Interface, description: Description, given: Feedthrough
) -> Interface:
    """Return an interface with the feedthrough that was given; None: as declared by the FMU.

    Raises
    ------
    DiagramError
        If `given` is of another form.
    FmuError
        If a name is not that of a port.
    """
    if given is None:
        return interface
    inputs = [group.name for group in interface.inputs]
    if isinstance(given, bool):
        pairs = [(o.name, i) for o in interface.outputs for i in inputs] if given else []
        return replace(interface, given_feedthrough=pairs)
    if not isinstance(given, Mapping):
        raise DiagramError(
            f"`feedthrough` must be True, False or a dictionary such as {{'y': ['u']}}, which "
            f"lists for an output the inputs that it depends on at once; got {given!r}."
        )
    label = description.archive.path.name
    pairs = interface.feedthrough(description)
    for name, needs in given.items():
        output = _find(label, "output", name, interface.outputs)
        pairs = [pair for pair in pairs if pair[0] != output]
        if isinstance(needs, bool):
            pairs += [(output, i) for i in inputs] if needs else []
            continue
        if not isinstance(needs, str | list | tuple | set | frozenset):
            raise DiagramError(
                f"`feedthrough` of `{name}` must be a list of inputs, True or False; got {needs!r}."
            )
        found = {
            _find(label, "input", i, interface.inputs)
            for i in ([needs] if isinstance(needs, str) else needs)
        }
        pairs += [(output, i) for i in inputs if i in found]
    return replace(interface, given_feedthrough=pairs)


def _find(label: str, what: str, name: str, groups: Sequence[Group]) -> str:
    """Return the port of a name, which may also be that of an element of it."""
    for group in groups:
        if name == group.name or any(name == scalar.name for scalar in group.scalars):
            return group.name
    names = [group.name for group in groups]
    raise FmuError(
        f"`feedthrough` names the {what} `{name}`, which {label} does not have as a port."
        f"{suggest(name, names)} {what.capitalize()}s: {name_list(names)}."
    )
