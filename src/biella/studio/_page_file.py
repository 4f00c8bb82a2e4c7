"""A recorded run as one HTML file: the page of the studio with the rows inside, for any browser.

Values are kept as they are while the file stays small enough; else rows are put in bins, with the
smallest and the largest value of each, so that no peak is lost.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..errors import BiellaError, name_list, suggest
from ..scheduler.results._files import replacing
from ..scheduler.run._progress import Progress
from ._messages import Message, encode
from ._result import ResultSession
from ._scopes import decimate
from ._server import FILES, PROTOCOL
from .mechanism._meshes import read_mesh

Array = NDArray[np.float64]

LARGEST = 20.0
"""Size of a file in MB, unless another one is asked for."""
MARK = '<meta name="generator" content="biella page" />'
"""What tells pages of biella from other files."""

_CAN = ("subscribe", "unsubscribe", "watch", "window", "poses")  # what the file answers
_MARK_BYTES = 1000  # where it is looked for
_MEGABYTE = 1_000_000
_PACKED = 16  # times that rows of a run are made smaller at most, as a first guess
_COMPRESSION = 6
_TURNS = 8
_LINKS = re.compile(r' *<(script[^>]*></script|title>[^<]*</title|link rel="stylesheet"[^>]*)>\n?')


@dataclass(frozen=True)
class PageFile:
    """What was written.

    Attributes
    ----------
    path
        The file.
    size
        In bytes.
    signals
        Number of signals.
    every
        Rows in each bin; 1: all values are in the file.
    mechanisms
        Number of mechanisms that move.
    """

    path: Path
    size: int
    signals: int
    every: int
    mechanisms: int


UNBUILT = (
    "the page of the studio was not built when biella was installed: that needs npm or the "
    "registry of npm. Install biella again with access to it."
)


def has_page() -> bool:
    """Whether the page was built when biella was installed."""
    return (FILES / "index.html").is_file()


def write_page_file(
    session: ResultSession,
    path: Path,
    *,
    signals: Sequence[str] | None = None,
    every: int | None = None,
    largest: float = LARGEST,
) -> PageFile:
    """Write a recorded run as one HTML file, which replaces an earlier one of biella.

    Parameters
    ----------
    session
        The run.
    signals
        Paths or patterns of the signals in the file; by default all.
    every
        Rows in each bin; by default as few as `largest` allows.
    largest
        Size of the file in MB.

    Raises
    ------
    BiellaError
        If the page is not built, `path` is a file of something else, no signal matches, or the
        run does not fit.
    """
    if not has_page():
        raise BiellaError(UNBUILT)
    if not 0 < largest < math.inf:
        raise BiellaError(f"--size must be a number of MB above 0, got {largest:g}.")
    _check_target(path)
    chosen = _choose(list(session.view.signals), signals)
    rows = session.view.rows.end
    if every is not None and not 1 <= every <= rows:
        raise BiellaError(f"--every must be from 1 to {rows}, the rows of the run, got {every}.")
    bare = {"hello": session.introduce(), "events": session.describe()}
    room = int(largest * _MEGABYTE) - len(_insert(bare).encode())
    meshes = (path for mechanism in session.view.mechanisms for path in mechanism.meshes)
    room -= sum(4 * path.stat().st_size // 3 for path in meshes)
    columns = session.view.find_columns(chosen)
    posed = sum(len(item.columns + item.effort_columns) for item in session.view.mechanisms)
    size = every or max(1, rows * (len(columns) + posed) * 8 // (_PACKED * max(room, 1)))
    for _ in range(_TURNS):
        text = _insert(_describe(session, chosen, size))
        length = len(text.encode())
        if length <= largest * _MEGABYTE:
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="\n")
            return PageFile(path, length, len(chosen), size, len(session.view.mechanisms))
        if every is not None or size >= rows or room <= 0:
            break
        # Bins of two rows or more have two values, and those of poses three.
        over = 1.1 * (length - largest * _MEGABYTE + room) / room
        parts = 1 if size > 1 else 3 if posed else 2
        size = min(max(size + 1, math.ceil(parts * size * over)), rows)
    raise BiellaError(
        f"the file would have {length / _MEGABYTE:.1f} MB, more than {largest:g}. Name fewer "
        f"signals with --signals{', a larger --every' if every else ''} or a larger --size."
    )


def _check_target(path: Path) -> None:
    if not path.exists():
        return
    if path.is_file():
        with path.open("rb") as file:
            if MARK.encode() in file.read(_MARK_BYTES):
                return
    raise BiellaError(
        f"`{path}` exists and was not written by `biella page`: it is kept. Name another file with "
        f"-o, or remove it."
    )


def _choose(paths: Sequence[str], patterns: Sequence[str] | None) -> list[str]:
    """Return the signals that patterns name, in the order of the run."""
    found = set(paths) if patterns is None else set()
    for pattern in patterns or ():
        short = {path for path in paths if pattern in (path, path.removesuffix(".y"))}
        matching = short or {path for path in paths if fnmatchcase(path, pattern)}
        if not matching:
            raise BiellaError(
                f"no signal matches `{pattern}`.{suggest(pattern, paths)} Signals: "
                f"{name_list(paths)}; * and ? match."
            )
        found |= matching
    return [path for path in paths if path in found]


def _describe(session: ResultSession, chosen: Sequence[str], every: int) -> Message:
    """Return what the file has of a run; `Recorded` in page/src/recording.ts reads it."""
    view = session.view
    events = [*session.describe(), session.state()]
    for k, event in enumerate(events):
        if event["event"] == "signals":
            events[k] = event | {"list": list(_place(event["list"], chosen))}
    columns = view.find_columns(chosen)
    posed = [mechanism.columns for mechanism in view.mechanisms]
    acting = [mechanism.effort_columns for mechanism in view.mechanisms]
    blocks: dict[int, list[str]] = {}
    firsts: dict[int, str] = {}
    drawn = (column for own in (*posed, *acting) for column in own)
    wanted = dict.fromkeys([*columns, *drawn])
    bins, newest = 0, {}
    with Progress(len(wanted), "packing the run", unit="signals") as progress:
        for column in wanted:
            _, found = view.rows.read(0, view.rows.end, [0, column])
            table = decimate(0, found, every)
            bins, newest[column] = len(table), float(found[1, -1])
            least = pack(table[:, 1])
            blocks[column] = [least] if every == 1 else [least, pack(table[:, 2])]
            firsts[column] = least if every == 1 else pack(found[1, ::every])
            progress.advance(1)
    _, found = view.rows.read(0, view.rows.end, [0])
    hello = {"event": "hello", "protocol": PROTOCOL, "biella": __version__, "mode": "result"}
    return {
        "hello": hello | {"can": _CAN} | session.introduce(),
        "events": events,
        "bins": bins,
        "every": every,
        "times": pack(found[0, ::every]),
        "columns": [blocks[column] for column in columns],
        "poses": [[firsts[column] for column in own] for own in posed],
        "efforts": [[firsts[column] for column in own] for own in acting],
        "meshes": [
            [_pack_file(path) for path in mechanism.meshes] for mechanism in view.mechanisms
        ],
        "newest": [newest[column] for column in columns],
        "last": float(found[0, -1]),
    }


def _place(signals: Sequence[Message], chosen: Sequence[str]) -> Iterator[Message]:
    """Yield the chosen signals, with the places of their values among those that are left."""
    offset, known = 0, set(chosen)
    for signal in signals:
        if signal["path"] in known:
            yield signal | {"element_offset": offset}
            offset += signal["width"]


def _pack_file(path: Path) -> tuple[int, str]:
    form, content = read_mesh(path)
    return form, base64.b64encode(content).decode()


def pack(values: Array) -> str:
    """Return values as a block: all first bytes, then all second ones, …; zlib; base64.

    Neighbors have most of their high bytes in common: together, these nearly vanish.
    """
    planes = np.ascontiguousarray(values, dtype="<f8").view(np.uint8).reshape(-1, 8).T
    return base64.b64encode(zlib.compress(planes.tobytes(), _COMPRESSION)).decode()


def _insert(recorded: Message) -> str:
    """Return the page with a recorded run inside."""
    return assemble_page(str(recorded["hello"]["name"]), "biella-run", recorded)


def assemble_page(name: str, kind: str, content: Message) -> str:
    """Return the page as one HTML text, with its styles, its scripts and `content` inside.

    Its security policy allows these scripts and no connection. `kind` is the id by which the page
    finds the content; see page/src/main.ts.
    """
    assets = FILES / "assets"
    # Neither the end of a script nor that of a style may be in what is inserted.
    data = encode(content).replace("<", "\\u003c")
    code = (assets / "index.js").read_text("utf-8")
    code = code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    style = (assets / "index.css").read_text("utf-8").replace("</", "<\\/")
    scene = base64.b64encode((assets / "scene.js").read_bytes()).decode()
    # A module that is loaded later needs an address; relative ones lead to other files.
    links = json.dumps({"imports": {"./scene.js": f"data:text/javascript;base64,{scene}"}})
    hashes = " ".join(f"'sha256-{_hash(text)}'" for text in (links, code))
    policy = (
        f"default-src 'none'; script-src {hashes} data:; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'{MARK}\n    <meta http-equiv="Content-Security-Policy" content="{policy}" />\n'
        f"    <title>{html.escape(name)} – biella</title>\n"
        f"    <style>{style}</style>\n"
    )
    body = (
        f'<script type="application/json" id="{kind}">{data}</script>\n'
        f'    <script type="importmap">{links}</script>\n'
        f'    <script type="module">{code}</script>\n  </body>'
    )
    page = (FILES / "index.html").read_text("utf-8")
    page = _LINKS.sub("", page)
    before, rest = page.split("<head>", 1)
    inside, after = rest.split("</body>", 1)
    charset, _, inside = inside.lstrip().partition("\n")
    return f"{before}<head>\n    {charset}\n    {head}{inside}{body}{after}"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
