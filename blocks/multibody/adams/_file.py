"""Reading an Adams View command file: commands as words and parameters, each with its line.

A command is words, then ``name = value, value …``. ``&`` at the end of a line continues it, ``!``
starts a comment. A value is a word or number, a text in quotes, or an expression in parentheses.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..system._problems import Problems

LONGEST = 20_000_000
"""Bytes of a file."""

Kind = Literal["word", "text", "expression"]

_SPACE = re.compile(r"\s*")
# A part of a name in quotes follows a dot: ."Latch Design".PART_2
_WORD = re.compile(r'(?:(?<=\.)"[^"]*"|[^\s,=&!"\'(){}])+')
_CLOSING = {"(": ")", "{": "}"}


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a parameter: its text without quotes or outer parentheses."""

    kind: Kind
    text: str
    place: str


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter and its values."""

    name: str
    values: tuple[Value, ...]
    place: str


@dataclass(slots=True)
class Command:
    """Words and parameters of a command; `place` is that of its first word."""

    place: str
    words: list[Value] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Line:
    """A command with its continuation lines: text, and where each line of the file starts in it."""

    text: str
    starts: list[int]
    numbers: list[int]

    def number(self, at: int) -> int:
        return self.numbers[bisect_right(self.starts, at) - 1]


def read_commands(path: Path, problems: Problems) -> Iterator[Command]:
    """Yield the commands of a file; note what cannot be read."""
    for line in _join_lines(path, problems):
        command = _Reader(path.name, line, problems).read()
        if command is not None:
            yield command


def _read_text(path: Path, problems: Problems) -> list[str]:
    """Return the lines of a file; note what is not text."""
    try:
        if path.stat().st_size > LONGEST:
            problems.add(path.name, f"the file is too long: at most {LONGEST} bytes.")
            return []
        data = path.read_bytes()
    except OSError as error:
        problems.add(str(path), f"cannot be read ({error.strerror}).")
        return []
    if b"\0" in data:
        number = data[: data.index(b"\0")].count(b"\n") + 1
        problems.add(
            f"{path.name}, line {number}",
            "there is a NUL character: this is no text file. Adams View writes command files with "
            "File > Export; a binary model (.bin) is another format.",
        )
        return []
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        # Comments in the encoding of some country do no harm; in commands they are refused below.
        text = "\n".join(_decode(line) for line in data.splitlines())
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _decode(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("ascii", "replace")


def _join_lines(path: Path, problems: Problems) -> Iterator[_Line]:
    """Yield every command as one line, without comments."""
    current: _Line | None = None
    for number, raw in enumerate(_read_text(path, problems), 1):
        text, continues, closed = _strip(raw)
        place = f"{path.name}, line {number}"
        if not closed:
            problems.add(place, f"a quote is not closed: `{raw.strip()[:60]}`.")
            return  # what follows would be read inside out
        if "\ufffd" in text:
            problems.add(place, "there are bytes that are not UTF-8: convert the file to UTF-8.")
            text = text.replace("\ufffd", "_")
        if not text and not continues:
            continue  # empty lines and comments may stand inside a command
        if current is None:
            current = _Line("", [], [])
        start = len(current.text)
        current = _Line(
            current.text + text + " ", [*current.starts, start], [*current.numbers, number]
        )
        if not continues:
            yield current
            current = None
    if current is not None:
        problems.add(
            f"{path.name}, line {current.numbers[-1]}",
            "the file ends within a command: nothing follows the last `&`. Is the file complete?",
        )


def _strip(raw: str) -> tuple[str, bool, bool]:
    """Return a line without comment and `&`, whether it continues, and whether quotes close.

    Within parentheses `!` means "not".
    """
    quote = ""
    level = 0
    for at, character in enumerate(raw):
        if quote:
            if character == quote:
                quote = ""
        elif character in "\"'":
            quote = character
        elif character in "()":
            level += 1 if character == "(" else -1
        elif character == "!" and level <= 0:
            return raw[:at].strip(), False, True
        elif character == "&":
            return raw[:at].strip(), True, True
    return raw.strip(), False, not quote


class _Reader:
    """Reads one command from left to right."""

    def __init__(self, name: str, line: _Line, problems: Problems) -> None:
        self.name, self.line, self.problems = name, line, problems
        self.text, self.at = line.text, 0

    def place(self, at: int) -> str:
        return f"{self.name}, line {self.line.number(at)}"

    def read(self) -> Command | None:
        """Return the command, or None after a problem."""
        self.skip()
        command = Command(self.place(self.at))
        while self.at < len(self.text):
            start = self.at
            word = self.read_word()
            if word is None:
                self.fail(f"`{self.text[start]}` is not expected here")
                return None
            if self.peek() != "=":
                if command.given:
                    self.fail(
                        f"`{word.text[:60]}` follows the parameter `{command.given[-1].name}`: is "
                        f"a comma or `=` missing, or a `&` too many at the end of a line",
                        start,
                    )
                    return None
                command.words.append(word)
                continue
            self.at += 1
            self.skip()
            values = self.read_values(word)
            if values is None:
                return None
            command.given.append(Given(word.text.lower(), tuple(values), word.place))
        if not command.words:
            self.fail("a command starts with words, such as `marker create`", 0)
            return None
        return command

    def read_values(self, name: Value) -> list[Value] | None:
        values = []
        while True:
            value = self.read_value()
            if value is None:
                if self.at < len(self.text):
                    self.fail(f"`{self.text[self.at]}` is no value of `{name.text[:60]}`")
                else:
                    self.fail(f"`{name.text[:60]} =` has no value", self.at - 1)
                return None
            values.append(value)
            if self.peek() != ",":
                return values
            self.at += 1
            self.skip()

    def read_value(self) -> Value | None:
        start = self.at
        first = self.peek()
        if first and first in "\"'":
            end = self.text.index(first, start + 1)  # closed, or the line was refused
            self.at = end + 1
            self.skip()
            return Value("text", self.text[start + 1 : end], self.place(start))
        if first == "(":
            closed = self.find_end(start)
            if closed is None:
                return None
            self.at = closed + 1
            self.skip()
            return Value("expression", self.text[start + 1 : closed].strip(), self.place(start))
        return self.read_word()

    def find_end(self, start: int) -> int | None:
        """Return where the parenthesis at `start` is closed."""
        expected: list[str] = []
        quote = ""
        for at in range(start, len(self.text)):
            character = self.text[at]
            if quote:
                quote = "" if character == quote else quote
            elif character in "\"'":
                quote = character
            elif character in _CLOSING:
                expected.append(_CLOSING[character])
            elif character in ")}":
                if not expected or character != expected.pop():
                    return None
                if not expected:
                    return at
        return None

    def read_word(self) -> Value | None:
        match = _WORD.match(self.text, self.at)
        if match is None:
            return None
        word = Value("word", match.group(), self.place(self.at))
        self.at = match.end()
        self.skip()
        return word

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def fail(self, why: str, at: int | None = None) -> None:
        at = min(self.at if at is None else at, len(self.text) - 1)
        self.problems.add(self.place(at), f"{why}, in `{self.text.strip()[:100]}`.")
