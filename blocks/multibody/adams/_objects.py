"""The objects of a model by name; names may be shortened."""

from __future__ import annotations

from collections.abc import Iterable

from ....errors import DiagramError, name_list, suggest
from ._items import Item, Key, split_name

ON_PARTS = ("marker", "floating_marker", "point")
"""Kinds of objects whose names begin with that of a part."""


class Objects:
    """Objects found by name; lower and upper case are the same in names."""

    def __init__(self) -> None:
        self.name = ""
        self.items: dict[Key, Item] = {}
        self.part: Key = ()

    def is_model(self, name: str) -> bool:
        return [part.casefold() for part in split_name(name)] == [self.name.casefold()]

    def find_model(self, name: str) -> None:
        if not self.is_model(name):
            raise DiagramError(f"there is no model `{name[:60]}`; the file has `{self.name}`.")

    def complete(self, named: str, kind: str) -> tuple[Key, str]:
        """Return key and full name of a new object."""
        parts = split_name(named)
        model = self.name.casefold()
        if not self.name:
            raise DiagramError("there is no model yet: `model create` comes first.")
        if not named.startswith(".") and parts[0].casefold() != model:
            on_part = kind in ON_PARTS and len(parts) == 1
            owner = self.items[self.part].name if on_part else f".{self.name}"
            parts = [*split_name(owner), *parts]
        if parts[0].casefold() != model or len(parts) < 2:
            raise DiagramError(
                f"`{named[:60]}` is in no model of this file: its name starts with .{self.name}."
            )
        return tuple(part.casefold() for part in parts), "." + ".".join(parts)

    def find(self, name: str, part: Key = (), kinds: Iterable[str] = ()) -> Item:
        """Return the object of a name, which may be shortened, or raise a `DiagramError`."""
        wanted = tuple(kinds)
        key = tuple(word.casefold() for word in split_name(name))
        found: list[Item] = []
        if name.startswith("."):
            found = [self.items[key]] if key in self.items else []
        else:
            for start in (part, (self.name.casefold(),), ()):
                item = self.items.get((*start, *key))
                if item is not None and (not wanted or item.kind in wanted):
                    return item
            found = [
                item
                for other, item in self.items.items()
                if other[-len(key) :] == key and (not wanted or item.kind in wanted)
            ]
        if len(found) > 1:
            raise DiagramError(
                f"`{name[:60]}` may be {name_list(item.name for item in found)}: write it in full."
            )
        what = " or ".join(wanted) or "object"
        if not found:
            names = [item.name for item in self.items.values() if item.kind in wanted or not wanted]
            raise DiagramError(f"there is no {what} `{name[:80]}`.{suggest(name, names)}")
        if wanted and found[0].kind not in wanted:
            raise DiagramError(f"`{name[:80]}` is a {found[0].kind}, where a {what} is expected.")
        return found[0]

    def key_of(self, name: str) -> Key:
        """Return the key of an object; one that is not there if there is no such object."""
        try:
            return self.find(name, self.part).key
        except DiagramError:
            return ()

    def owner(self, key: Key) -> Item | None:
        """Return the part that an object is on."""
        item = self.items.get(key[:-1])
        return item if item is not None and item.kind == "part" else None

    def list_kind(self, kind: str) -> list[Item]:
        """Return the objects of a kind that are active, in the order of the file."""
        return [item for item in self.items.values() if item.kind == kind and item.active]

    def list_names(self, kind: str) -> str:
        return name_list(f"`{item.name}`" for item in self.items.values() if item.kind == kind)
