"""Judgments of a soak: what biella has counted and recorded, against what others have seen.

A run is judged from what it has left in its folder: the log, each frame on each wire, and what was
done to it. First its input log is replayed; where that gives the bits of the log, it also tells
what
the log has lost while the disk was full, so that all else is judged at every tick.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from soak_peers import DOWN, TIMEOUT, UP, WIRE, mark
from soak_run import DEVICES, SAFE_IN, SAFE_OUT, STEP

from biella.scheduler.realtime.log._replay import replay
from biella.scheduler.realtime.loop._pace import FROM_LIVE
from biella.scheduler.results._result import Result

Array = npt.NDArray[Any]

SAFE = 2  # the flag of a frame
LOSSES = {
    "cable cut", "peer silent", "peer killed", "line pulled out", "driver stuck", "driver raises",
    "driver says NaN",
}  # fmt: skip
HARM = {"network slow", "process stopped", "processors taken", "disk full"}
_GROWTH = 6e6  # bytes from the second quarter to the last, whatever the length of the run


@dataclass(frozen=True)
class Judgment:
    """One line of the table."""

    what: str
    expected: str
    found: str
    holds: bool


def equal(what: str, expected: object, found: object) -> Judgment:
    """Judge that two are the same."""
    return Judgment(what, str(expected), str(found), expected == found)


def between(what: str, least: float, most: float, found: float) -> Judgment:
    """Judge that a count lies within bounds."""
    text = f"{least}" if least == most else f"{least} … {most}"
    return Judgment(what, text, f"{found}", least <= found <= most)


def none_of(what: str, wrong: Array, of: int) -> Judgment:
    """Judge that there is no exception among `of` cases, which must be some."""
    where = f", first at {np.flatnonzero(wrong)[0]}" if wrong.any() else ""
    found = f"{np.count_nonzero(wrong)} of {of}{where}"
    return Judgment(what, "0", found, not wrong.any() and of > 0)


class Soaked:
    """What a soak has left.

    Attributes
    ----------
    log, whole
        The recorded run, and its replay, which has every tick.
    told, done, memory
        How the run ended; what was done to it; its memory as (s, bytes).
    """

    def __init__(self, folder: Path) -> None:
        about = json.loads((folder / "soak.json").read_text())
        self.told: dict[str, Any] = about["told"]
        self.done: list[dict[str, Any]] = about["done"]
        self.memory: list[tuple[float, int]] = about["memory"]
        run = json.loads((folder / "run.json").read_text())
        self.slots: dict[str, int] = run["slots"]
        self.changes: list[tuple[int, str, float]] = [
            json.loads(line) for line in (folder / "changes.txt").read_text().splitlines()
        ]
        self.log = Result.from_hdf5(folder / "run.h5")
        self.report: Any = self.log.info["realtime"]
        self.whole = replay(self.log, out=folder / "replay.h5")
        names = ("net", "net_peer", "line", "card")
        self.wires = {name: np.fromfile(folder / f"{name}.wire", dtype=WIRE) for name in names}

    @cached_property
    def logged(self) -> Array:
        """Ticks that are in the log."""
        return np.rint(self.log.t / STEP).astype(int)

    def get(self, path: str) -> Array:
        return np.array(self.whole[path])

    @cached_property
    def busy(self) -> Array:
        """Of each tick but the last, seconds from its deadline to its end."""
        return self.get("realtime.lateness")[:-1] + self.get("realtime.execution")[1:]

    @cached_property
    def skipped(self) -> Array:
        """Deadlines that were dropped before each tick."""
        missed = np.ceil((self.busy - STEP) / STEP - 1e-6)
        return np.concatenate([[0], np.cumsum(np.maximum(0, missed))])

    @cached_property
    def deadlines(self) -> Array:
        """Of each tick, in s of the monotonic clock: no value was seen before it was computed."""
        down = self.wires["card"][self.wires["card"]["way"] == DOWN]
        down = down[down["flags"] == 0]
        grid = (np.arange(len(self.skipped)) + self.skipped) * STEP
        return grid + np.min(down["time"] - grid[down["values"][:, 0].astype(int)])

    def losses(self, name: str) -> list[tuple[int, int]]:
        """First and last tick of each stretch in which a device was lost, after it was heard."""
        alive = self.get(f"{name}.alive") > 0.5
        alive[: np.argmax(alive)] = True
        edges = np.flatnonzero(np.diff(np.concatenate([[1], alive, [1]])))
        return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def judge(folder: Path) -> list[Judgment]:
    """Judge all."""
    s = Soaked(folder)
    parts: list[Callable[[Soaked], Iterator[Judgment]]] = [
        judge_end, judge_replay, judge_recorder, judge_overruns, judge_changes, judge_memory,
    ]  # fmt: skip
    rows = [row for part in parts for row in part(s)]
    for name in DEVICES:
        rows += judge_losses(s, name)
        rows += judge_values(s, name)
        rows += judge_sent(s, name)
    rows += judge_datagrams(s)
    rows += judge_line(s)
    rows += judge_card(s)
    return rows


def judge_end(s: Soaked) -> Iterator[Judgment]:
    """No crash; and the run ended because it was told to."""
    yield equal("exit code of the run", 0, s.told["exit"])
    yield equal("the run ended, since", "cancel: stopped", f"{s.report['end']}: {s.report['why']}")
    missing = sorted((LOSSES | HARM) - {done["kind"] for done in s.done})
    yield equal(f"kinds of faults that are not among the {len(s.done)} injected", [], missing)


def judge_replay(s: Soaked) -> Iterator[Judgment]:
    """The journal gives the bits of the log."""
    different = [
        path
        for path in s.log
        if s.log[path].tobytes() != np.ascontiguousarray(s.whole[path][s.logged]).tobytes()
    ]
    yield equal("signals that a replay gives otherwise", [], different)
    yield equal("ticks of the replay", s.report["ticks"], s.whole.length - 1)
    yield equal("entries of the input log lost", 0, s.report["entries_lost"])


def judge_recorder(s: Soaked) -> Iterator[Judgment]:
    """Rows are complete but for gaps, each of which is marked with its ticks and has a cause."""
    missing = np.setdiff1d(np.arange(s.report["ticks"] + 1), s.logged)
    gaps = [gap for gap in s.report["gaps"] if gap["of"] == "rows"]
    marked = np.concatenate([[], *(np.arange(gap["first"], gap["last"] + 1) for gap in gaps)])
    yield equal("rows missing, all within marked gaps", len(marked), len(missing))
    yield none_of("ticks missing but not marked", ~np.isin(missing, marked), len(missing))
    yield equal("rows lost, as reported", len(missing), s.report["rows_lost"])
    full = [done for done in s.done if done["kind"] == "disk full"]
    explained = [
        gap for gap in gaps
        if any(gap["first"] <= done["last"] and gap["last"] >= done["first"] for done in full)
    ]  # fmt: skip
    yield equal("gaps of rows / times the disk was full", len(full), len(gaps))
    yield equal("gaps while the disk was full", len(gaps), len(explained))
    yield equal("order of ticks in the log", True, bool((np.diff(s.logged) > 0).all()))
    yield equal("trouble of the recorder is told", bool(full), bool(s.report["recorder"]))


def judge_overruns(s: Soaked) -> Iterator[Judgment]:
    """Each overrun is counted, and each stop of the process is one."""
    counted = np.diff(s.get("realtime.overruns"))
    is_over = s.busy > STEP
    clear = np.abs(s.busy - STEP) > 2e-9
    yield none_of(
        "ticks counted as overruns otherwise than their times say",
        clear & (counted != is_over), len(counted),
    )  # fmt: skip
    seen = int(s.get("realtime.overruns")[-1])
    yield between("overruns, as reported", seen, seen + 1, s.report["overruns"])
    skipped = int(s.skipped[-1])
    rounding = 2 + np.count_nonzero(~clear)
    yield between(
        "deadlines skipped, as reported", skipped - rounding, skipped + rounding,
        s.report["skipped"],
    )  # fmt: skip
    over = np.flatnonzero(is_over)
    begin, end = s.deadlines[over], s.deadlines[over] + s.busy[over]
    causes = np.full(len(over), "the machine", dtype=object)
    missed = 0
    for done in s.done:
        within = (begin < done["to"]) & (end > done["from"])
        if done["kind"] in ("process stopped", "processors taken", "disk full"):
            causes[within] = done["kind"]
        if done["kind"] == "process stopped":
            shared = np.minimum(end, done["to"]) - np.maximum(begin, done["from"])
            missed += not (shared > 0.5 * (done["to"] - done["from"])).any()
    stops = sum(done["kind"] == "process stopped" for done in s.done)
    yield equal(f"stops of the process, of {stops}, without an overrun", 0, missed)
    names, counts = np.unique(causes.astype(str), return_counts=True)
    told = ", ".join(f"{name} {n}" for name, n in zip(names, counts, strict=True))
    yield Judgment("overruns by cause", f"{len(over)} in all", told, counts.sum() == len(over))


def judge_changes(s: Soaked) -> Iterator[Judgment]:
    """Each live change entered once, in order, at a tick after it was made; and had its effect."""
    assert s.log.log
    input_log = s.log.log.input_log
    live = input_log[(input_log["from"] == FROM_LIVE) & (input_log["tick"] >= 0)]
    made = [(s.slots[path], value) for _, path, value in s.changes]
    entered = list(zip(live["slot"].tolist(), live["value"].tolist(), strict=True))
    yield equal("live changes that entered", len(made), len(entered))
    yield equal("in their order, with their values", True, made == entered)
    if made != entered:
        return
    asked = np.array([tick for tick, _, _ in s.changes])
    until = np.append(asked[1:] + 1, s.report["ticks"])
    late = (live["tick"] < asked) | (live["tick"] > until)
    yield none_of("changes at another tick than the next", late, len(live))
    k = np.ones(s.whole.length)
    for entry in live[live["slot"] == s.slots["scaled.k"]]:
        k[entry["tick"] :] = entry["value"]
    wrong = s.get("scaled") != k * s.get("count")
    yield none_of("ticks at which a change had no effect", wrong, len(wrong))


def judge_memory(s: Soaked) -> Iterator[Judgment]:
    """Memory is flat."""
    memory = np.array([size for _, size in s.memory])
    quarter = max(1, len(memory) // 4)
    growth = np.median(memory[-quarter:]) - np.median(memory[quarter : 2 * quarter])
    text = f"{growth / 1e6:+.1f} MB, {memory[0] / 1e6:.0f} → {memory[-1] / 1e6:.0f} MB"
    limit = f"≤ {_GROWTH / 1e6:g} MB"
    yield Judgment("growth from second quarter to last", limit, text, bool(growth <= _GROWTH))


def judge_losses(s: Soaked, name: str) -> Iterator[Judgment]:
    """Each loss that was caused is seen, and each that is seen was caused, or shows on the wire."""
    counts, windows = s.report["devices"][name], s.losses(name)
    heard = s.get(f"{name}.alive").any()
    yield equal(f"{name}: losses, as reported", len(windows), counts["losses"] if heard else -1)
    open_end = bool(windows) and windows[-1][1] == s.whole.length - 1
    yield equal(f"{name}: returns", len(windows) - open_end, counts["returns"])
    caused = [done for done in s.done if done["device"] == name and done["kind"] in LOSSES]
    hits = [[a <= done["last"] + 1 and b >= done["first"] for a, b in windows] for done in caused]
    yield equal(f"{name}: caused losses, all seen", len(caused), sum(map(any, hits)))
    others = [n for n in range(len(windows)) if not any(hit[n] for hit in hits)]
    silent = [n for n in others if _was_silent(s, name, windows[n][0])]
    yield equal(f"{name}: other losses, all silences on the wire", len(others), len(silent))


def _has_stalled(s: Soaked, done: dict[str, Any]) -> bool:
    """Whether a tick took so long that a device may have come back before anybody looked."""
    during = slice(max(0, done["first"] - 1), done["last"] + 1)
    return bool((s.busy[during] > 0.5 * TIMEOUT).any())


def _was_silent(s: Soaked, name: str, tick: int) -> bool:
    """Whether nothing came in half of the timeout or more before a tick.

    What was written to a line a moment before may still be in the kernel, which had no time to
    bring it; then it comes afterwards.
    """
    wire = s.wires[name]
    up = wire[(wire["way"] == UP) & (wire["valid"] == 1)]
    lost_at = s.deadlines[tick] + s.get("realtime.lateness")[tick]
    recent = up[(up["time"] > lost_at - TIMEOUT) & (up["time"] < lost_at)]
    times = np.concatenate([[lost_at - TIMEOUT], recent["time"], [lost_at]])
    if np.diff(times).max() >= 0.5 * TIMEOUT:
        return True
    held = s.get(f"from_{name}")[tick]
    late = recent[recent["values"][:, 1] > held[1]]
    later = s.get(f"from_{name}")[tick:]
    return name == "line" and len(late) == len(recent) and (later[:, 1] > held[1]).any()


def judge_values(s: Soaked, name: str) -> Iterator[Judgment]:
    """Only what the device has said enters, none of it twice; while it is lost, what was agreed."""
    values = s.get(f"from_{name}")
    alive = s.get(f"{name}.alive") > 0.5
    age = s.get(f"{name}.age")
    first = int(np.argmax(alive))
    wire = s.wires[name]
    said = wire[(wire["way"] == UP) & (wire["valid"] == 1)]["values"]
    marks = np.array([mark(life, number) for life, number, _ in values[alive]])
    yield none_of(f"{name}: rows with a wrong mark", marks != values[alive][:, 2], len(marks))
    keys = values[:, 0] * 2.0**32 + values[:, 1]
    known = np.isin(keys[alive], said[:, 0] * 2.0**32 + said[:, 1])
    yield none_of(f"{name}: values that the device has not said", ~known, len(known))
    age[-1] = 1  # the row of the tick that was not run repeats what the one before has taken
    fresh = keys[alive & (age == 0)]
    yield none_of(f"{name}: old values as new ones", np.diff(fresh) <= 0, len(fresh))
    lost = ~alive
    if name == "line":  # hold
        held = lost[1:] & (np.arange(1, len(lost)) > first)
        wrong = held & (values[1:] != values[:-1]).any(axis=1)
        yield none_of(f"{name}: not held while lost", wrong, np.count_nonzero(held))
    else:
        wrong = (values[lost] != SAFE_IN).any(axis=1)
        yield none_of(f"{name}: not safe while lost", wrong, np.count_nonzero(lost))


def judge_sent(s: Soaked, name: str) -> Iterator[Judgment]:
    """On the wire: the values of a tick, or safe ones; the latter whenever it was lost."""
    wire = s.wires[name]
    down = wire[(wire["way"] == DOWN) & (wire["valid"] == 1)]
    is_safe = down["flags"] & SAFE > 0
    wrong = (down["values"][:, :2] != SAFE_OUT).any(axis=1)
    yield none_of(f"{name}: safe frames with other values", wrong[is_safe], is_safe.sum())
    usual = down[~is_safe]["values"][:, :2]
    ticks = usual[:, 0].astype(int)
    sent = np.stack([s.get("count"), s.get("scaled")], axis=1)[ticks]
    yield none_of(f"{name}: frames unlike their tick", (usual != sent).any(axis=1), len(usual))
    lost = np.zeros(s.whole.length, dtype=bool)
    unsafe = 0
    for a, b in s.losses(name):
        lost[a : b + 1] = True
        # Frames between the last of the tick before and the first after it.
        before = np.flatnonzero(~is_safe & (down["values"][:, 0] < a))
        after = np.flatnonzero(~is_safe & (down["values"][:, 0] > b))
        stretch = is_safe[before[-1] + 1 if len(before) else 0 : after[0] if len(after) else None]
        unsafe += not stretch.any()
    yield none_of(f"{name}: frames not safe while it is lost", lost[ticks], len(ticks))
    if name != "net":
        # A line that is pulled out carries none, and may speak at once when it is back. A driver
        # whose thread had no time to run may hear only what is newest afterwards.
        reached = {"peer silent"} if name == "line" else LOSSES
        caused = [done for done in s.done if done["device"] == name and done["kind"] in reached]
        unsafe = sum(
            not (is_safe & (down["time"] > done["from"]) & (down["time"] < done["to"] + 0.1)).any()
            for done in caused
        )
    yield equal(f"{name}: losses without safe values on the wire", 0, unsafe)
    last = len(is_safe) - (np.flatnonzero(~is_safe)[-1] + 1 if (~is_safe).any() else 0)
    yield Judgment(f"{name}: safe values as its last frames", "≥ 1", str(last), last >= 1)
    if name == "net":
        seen = s.wires["net_peer"]
        yield equal("net: the last that its peer heard is safe", True,
                    bool(seen[-1]["flags"] & SAFE))  # fmt: skip


@dataclass
class Account:
    """What must become of frames that came in this order; `unsure` are decided by the clock."""

    frames: int = 0
    corrupt: int = 0
    stale: int = 0
    missed: int = 0
    unsure: int = 0


def account(frames: Array, session: int) -> Account:
    """Apply the rules of docs/reference/frame.md to all that came."""
    a = Account()
    heard = restarted = False
    sequence = echo = 0
    life = moment = 0.0
    columns = ("valid", "session", "sequence", "echo", "time")
    for (valid, its, number, its_echo, when), its_life in zip(
        zip(*(frames[name].tolist() for name in columns), strict=True),
        frames["values"][:, 0].tolist(), strict=True,
    ):  # fmt: skip
        if not valid:
            a.corrupt += 1
            continue
        if its != session:
            a.stale += 1
            restarted = True
            continue
        newer = 0 < (number - sequence) % 2**32 < 2**31
        is_late = heard and echo and its_echo and 0 < (echo - its_echo) % 2**32 < 2**31
        accepted = not heard or (newer and not is_late)
        if heard and not newer and not is_late and its_life != life:
            knows = 0 < (its_echo - echo) % 2**32 < 2**31
            accepted = knows and (restarted or when - moment > TIMEOUT)
            a.unsure += not restarted
        if not accepted:
            a.stale += 1
            continue
        if heard and newer and not restarted:
            a.missed += (number - sequence) % 2**32 - 1
        a.frames += 1
        heard, restarted = True, False
        sequence, echo, life, moment = number, its_echo, its_life, when
    return a


def judge_datagrams(s: Soaked) -> Iterator[Judgment]:
    """Of the datagrams that the UDP proxy has passed on, none is unaccounted for."""
    wire, counts = s.wires["net"], s.report["devices"]["net"]
    up, drops = wire[wire["way"] == UP], s.told["drops"]
    a = account(up, int(wire[(wire["way"] == DOWN) & (wire["valid"] == 1)]["session"][0]))
    known = counts["frames"] + counts["corrupt"] + counts["stale"]
    yield equal("net: datagrams accounted for", len(up) - drops, known)
    slack = a.unsure + drops
    for kind in ("frames", "corrupt", "stale", "missed"):
        most = getattr(a, kind)
        loose = drops if kind == "corrupt" else slack
        yield between(f"net: {kind}", most - loose, most + loose, counts[kind])
    relay = s.told["relay"]["to host"]
    share = relay.get("dropped", 0) / relay["arrived"]
    yield Judgment("net: part of datagrams dropped", "≈ 5 %", f"{100 * share:.2f} %", share > 0.03)
    delay = s.get("net.delay")
    slow = [done for done in s.done if done["kind"] == "network slow"]
    worst = [int(delay[done["first"] : done["last"] + 1].max()) for done in slow]
    if worst:
        text = f"{min(worst)} … {max(worst)} in {len(worst)} times"
        yield Judgment("net: largest delay while slow, ticks", "≥ 50", text, min(worst) >= 50)


def judge_line(s: Soaked) -> Iterator[Judgment]:
    """Of the frames on the serial line, none is unaccounted for but those at a pulled plug."""
    wire, counts = s.wires["line"], s.report["devices"]["line"]
    up = wire[wire["way"] == UP]
    a = account(up, int(wire[(wire["way"] == DOWN) & (wire["valid"] == 1)]["session"][0]))
    cuts = [d for d in s.done if d["kind"] in ("line pulled out", "peer killed")]
    cuts = [d for d in cuts if d["device"] == "line"]
    slack = _count_unread(wire, cuts) + a.unsure
    known = counts["frames"] + counts["corrupt"] + counts["stale"]
    yield between("line: frames accounted for", len(up) - slack, len(up) + len(cuts), known)
    for kind in ("frames", "corrupt", "stale"):
        most = getattr(a, kind)
        yield between(f"line: {kind}", most - slack, most + len(cuts) + a.unsure, counts[kind])


def _count_unread(wire: Array, cuts: list[dict[str, Any]]) -> int:
    """Count frames that may be lost: on the line when it is pulled out, or before it is opened."""
    up, down = wire[wire["way"] == UP]["time"], wire[wire["way"] == DOWN]["time"]
    unread = 0
    for begin, pulled in ((-np.inf, -np.inf), *((d["from"] - 0.1, d["from"]) for d in cuts)):
        back = down[down > pulled + 0.1]
        end = back[0] if len(back) else np.inf
        unread += np.count_nonzero((up > begin) & (up < end))
    return int(unread)


def judge_card(s: Soaked) -> Iterator[Judgment]:
    """Of what the driver has read, all came, up to the last tick; some too late before a loss."""
    wire, counts = s.wires["card"], s.report["devices"]["card"]
    up = wire[wire["way"] == UP]
    after = np.count_nonzero(up["time"] > s.deadlines[-1] - 5 * STEP)
    known = counts["frames"] + counts["stale"]
    yield between("card: frames accounted for", len(up) - after, len(up), known)
