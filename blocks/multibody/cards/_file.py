"""Reading card files: blocks of keys and values, each with the line it stands on.

A card set is a folder with up to eight files ``*.s3d``. Apart from General and QRTol a card has
blocks ``begin(1)`` … ``end(1)`` of lines ``key = value``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ....errors import name_list, suggest
from ..system._problems import Problems, doubt

VERSION = "NumDyn3D ver. 7.0a"
GENERAL, CONNECTION, INERTIAL = "General.s3d", "Connection.s3d", "Inertial.s3d"
FORCE, START, SPRINGS = "Force.s3d", "Initial Configuration.s3d", "SPDamp.s3d"
DRIVERS, SOLVER = "Driving Pos.s3d", "QRTol.s3d"

_BLOCK = re.compile(r"(begin|end)\s*\(\s*([^)]*?)\s*\)$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?$", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,9}")
LONGEST = 10_000_000
"""Bytes of one card."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value and where it stands."""

    key: str
    value: str
    place: str


@dataclass(frozen=True, slots=True)
class Block:
    """Keys and values between ``begin(tag)`` and ``end(tag)``."""

    tag: str
    place: str
    problems: Problems
    entries: dict[str, Entry] = field(default_factory=dict)

    def get(self, key: str) -> Entry | None:
        """Return an entry, or None."""
        return self.entries.get(key)

    def need(self, key: str) -> Entry | None:
        """Return an entry; note a problem if it is missing."""
        if key not in self.entries:
            close = suggest(key, self.entries)
            whole = f"block {self.tag}" if self.tag else "the card"
            self.problems.add(self.place, f"{whole} has no `{key}`.{close}")
        return self.entries.get(key)

    def check_keys(self, known: Iterable[str]) -> None:
        """Warn about keys that mean nothing."""
        known = list(known)
        for key, entry in self.entries.items():
            if key not in known:
                doubt(
                    entry.place,
                    f"`{key}` is not a key of this card and is ignored.{suggest(key, known)} "
                    f"Keys: {name_list(known, limit=99)}.",
                )

    def integer(self, key: str) -> int | None:
        """Return a whole number."""
        entry = self.need(key)
        if entry is None:
            return None
        if not is_whole(entry.value.removeprefix("-").removeprefix("+")):
            self.problems.add(entry.place, f"`{key}` is a whole number, got `{entry.value[:60]}`.")
            return None
        return int(entry.value)

    def numbers(self, key: str, count: int) -> list[float] | None:
        """Return `count` numbers."""
        entry = self.need(key)
        return None if entry is None else read_numbers(entry, count, self.problems)


def read_numbers(entry: Entry, count: int, problems: Problems) -> list[float] | None:
    """Return the numbers of an entry in Fortran's free form."""
    words = entry.value.split()
    bad = [word for word in words if not _NUMBER.match(word)]
    if bad or len(words) != count:
        got = f"`{bad[0]}` is none" if bad else f"got {len(words)}"
        wanted = "one number" if count == 1 else f"{count} numbers"
        problems.add(entry.place, f"`{entry.key}` has {wanted}, {got}.")
        return None
    found = [float(word.replace("d", "e").replace("D", "e")) for word in words]
    if not all(map(math.isfinite, found)):
        problems.add(entry.place, f"`{entry.key}` is too large: `{entry.value}`.")
        return None
    return found


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number without a sign, of a size that numbers parts."""
    return _WHOLE.fullmatch(text) is not None


def find_card(folder: Path, name: str) -> Path | None:
    """Return the file of a card; case does not matter in the name of the configuration."""
    for path in sorted(folder.iterdir()):
        same = path.name.lower() == name.lower() if name == START else path.name == name
        if same and path.is_file():
            return path
    return None


def read_lines(path: Path, problems: Problems) -> list[tuple[str, str]]:
    """Return the lines that are not empty or comments, each after its place."""
    try:
        if path.stat().st_size > LONGEST:
            problems.add(path.name, f"the file is too long: at most {LONGEST} bytes.")
            return []
        data = path.read_bytes()
    except OSError as error:
        problems.add(path.name, f"cannot be read ({error.strerror}).")
        return []
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [
        (f"{path.name}, line {number}", line.strip())
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("!")
    ]


def _body(path: Path, problems: Problems) -> Iterator[tuple[str, str]]:
    """Yield the lines after the version."""
    lines = read_lines(path, problems)
    if not lines or " ".join(lines[0][1].split()) != VERSION:
        place = lines[0][0] if lines else path.name
        got = f"got `{lines[0][1][:60]}`" if lines else "the file is empty"
        problems.add(place, f"the first line must be `{VERSION}`, {got}.")
        return
    yield from lines[1:]


def _read_entry(
    place: str, line: str, lines: Iterator[tuple[str, str]], problems: Problems
) -> Entry | None:
    key, equals, value = line.partition("=")
    key, value = key.strip(), value.strip()
    if not equals or not key:
        problems.add(place, f"a line is `key = value`, got `{line[:60]}`.")
        return None
    if "!" in value and key != "name":
        problems.add(place, f"`{value[:60]}`: a comment needs a line of its own.")
        return None
    if value.startswith("[") and key != "name":
        rows = [value[1:]]
        while "]" not in rows[-1]:
            following = next(lines, None)
            if following is None or _BLOCK.match(following[1]):
                problems.add(place, f"`{key}=[` is not closed by `]`.")
                return None
            rows.append(following[1])
        last, _, rest = rows[-1].partition("]")
        if rest.strip():
            problems.add(place, f"`{rest.strip()[:60]}` follows the `]` of `{key}`.")
        value = " ".join([*rows[:-1], last])
    return Entry(key, value, place)


def read_blocks(path: Path, problems: Problems) -> dict[str, Block]:
    """Return the blocks of a card by tag, in the order of the file."""
    blocks: dict[str, Block] = {}
    current: Block | None = None
    lines = _body(path, problems)
    for place, line in lines:
        match = _BLOCK.match(line)
        if match is None:
            if current is None:
                problems.add(place, f"`{line[:60]}` stands outside of any block.")
                continue
            entry = _read_entry(place, line, lines, problems)
            if entry is not None:
                _keep(current, entry)
            continue
        word, tag = match.groups()
        if word == "end":
            if current is None or tag != current.tag:
                opened = "no block is open" if current is None else f"open is {current.tag[:60]}"
                problems.add(place, f"`end({tag[:60]})`: {opened}.")
            current = None
            continue
        if current is not None:
            problems.add(place, f"`begin({tag})`: `end({current.tag})` is missing before it.")
        tag = tag if tag == "constants" else tag.lstrip("0") or tag
        current = Block(tag, place, problems)
        if not is_whole(tag) and not (tag == "constants" and path.name == DRIVERS):
            problems.add(place, f"the tag of a block is a whole number, got `{tag[:60]}`.")
        elif tag in blocks:
            problems.add(place, f"block {tag} is there already: see {blocks[tag].place}.")
        else:
            blocks[tag] = current
    if current is not None:
        problems.add(current.place, f"block {current.tag} has no `end({current.tag})`.")
    return blocks


def _keep(block: Block, entry: Entry) -> None:
    if entry.key in block.entries:
        first = block.entries[entry.key].place
        block.problems.add(entry.place, f"`{entry.key}` is there already: see {first}.")
    else:
        block.entries[entry.key] = entry


def read_keys(path: Path, problems: Problems) -> Block:
    """Return the keys of a card without blocks."""
    block = Block("", path.name, problems)
    lines = _body(path, problems)
    for place, line in lines:
        entry = _read_entry(place, line, lines, problems)
        if entry is not None:
            _keep(block, entry)
    return block


@dataclass(frozen=True, slots=True)
class General:
    """The card General: title, names of bodies and time range."""

    title: str
    names: tuple[str, ...]
    start: float
    end: float
    intervals: int
    process: bool
    place: str


def read_general(path: Path, problems: Problems) -> General | None:
    """Read the card General; return None if it cannot be used."""
    lines = read_lines(path, problems)
    if not lines:
        problems.add(path.name, "the card is empty.")
        return None
    title = lines[0][1]
    keys = Block("", lines[0][0], problems)
    names: dict[int, Entry] = {}
    for place, line in lines[1:]:
        first, bar, second = (part.strip() for part in line.partition("|"))
        if bar:
            if first == "ID":
                continue
            entry = Entry(first, second, place)
            if not is_whole(first) or not second:
                problems.add(place, f"a body is `number | name`, got `{line[:60]}`.")
            elif int(first) in names:
                problems.add(place, f"body {first} is there already: {names[int(first)].place}.")
            else:
                names[int(first)] = entry
            continue
        key, *value = line.split(None, 1)
        if key in ("NB", "TI", "TE", "ST", "PP"):
            _keep(keys, Entry(key, value[0] if value else "", place))
        else:
            problems.add(place, f"expected NB, TI, TE, ST, PP or a body, got `{line[:60]}`.")
    before = len(problems.texts)
    count, steps = keys.integer("NB"), keys.integer("ST")
    start, end = keys.numbers("TI", 1), keys.numbers("TE", 1)
    process = keys.get("PP")
    if process is not None and process.value not in ("N", "Y"):
        problems.add(process.place, f"PP is N or Y, got `{process.value}`.")
    if count is not None and not (
        len(names) == count and all(1 <= number <= count for number in names)
    ):
        problems.add(
            keys.entries["NB"].place,
            f"NB is {count}, and the table names the bodies {name_list(map(str, sorted(names)))}.",
        )
    if count is not None and count < 1:
        problems.add(keys.entries["NB"].place, "there must be a body.")
    if steps is not None and steps < 1:
        problems.add(keys.entries["ST"].place, f"ST must be positive, got {steps}.")
    if start and end and not end[0] > start[0]:
        problems.add(keys.entries["TE"].place, "TE must be later than TI.")
    if len(problems.texts) > before or count is None or steps is None or not (start and end):
        return None
    return General(
        title,
        tuple(names[n].value for n in range(1, count + 1)),
        start[0],
        end[0],
        steps,
        process is not None and process.value == "Y",
        keys.place,
    )
