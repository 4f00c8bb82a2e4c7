"""The order within columns: few crossings, by sweeps of barycenters and by trying every place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ._nets import Bundle, Level, Pin


def order_columns(level: Level) -> None:
    """Order the columns of `level` so that few wires cross."""
    level.columns = _Search(level).run()
    _settle_spots(level)


class _Search:
    """An order of all columns, being improved."""

    def __init__(self, level: Level) -> None:
        self.level, self.slots, self.bundles = level, level.slots, level.bundles
        self.columns = level.columns
        self.tallies = [_Tally(level, bundles) for bundles in level.bundles]

    def run(self) -> list[list[int]]:
        """Return the best order found from several first guesses."""
        ends = self._backward_ends()
        best: list[list[int]] = []
        least = np.inf
        for sign in (1, -1):
            for beside in (False, True):
                self._guess_order(sign, ends if beside else {}, ends)
                self._improve()
                cost = self._cost()
                if cost < least - 1e-9:
                    best, least = [list(column) for column in self.columns], cost
        return best

    def _backward_ends(self) -> dict[int, tuple[int, bool]]:
        """For each slot of a backward wire: a cell where it ends, and whether from above."""
        found: dict[int, tuple[int, bool]] = {}
        for bundles in self.bundles:
            for bundle in bundles:
                pins = [pin for pin in bundle.right if self.slots[pin.slot].cell >= 0]
                back = [pin.slot for pin in bundle.right if self.slots[pin.slot].backward]
                if not back:
                    continue
                if pins:
                    cell, spots = pins[0].slot, self.level.cells[pins[0].slot].spots
                    height = self.level.inputs[cell][pins[0].port]
                    above = spots is not None and height == spots[0]
                    found[back[0]] = (cell, above)
                else:
                    found[back[0]] = found[bundle.left[0].slot]
        return found

    def _guess_order(
        self,
        sign: int,
        beside: dict[int, tuple[int, bool]],
        ends: dict[int, tuple[int, bool]],
    ) -> None:
        """Start in the order of the diagram; backward wires beside their cells or outermost."""

        def key(n: int) -> tuple[float, ...]:
            slot = self.slots[n]
            if n in beside:
                cell, above = beside[n]
                return slot.part, 0, sign * cell + (-0.5 if above else 0.5), n
            outer = 0 if n not in ends else -1 if ends[n][1] else 1
            return slot.part, outer, sign * n, n

        self.columns = [sorted(column, key=key) for column in self.columns]
        self._number_rows()

    def _improve(self) -> None:
        """Sweep to and fro, keep the best order met, then try every slot everywhere."""
        best: list[list[int]] = []
        least = np.inf
        for sweep in range(9):
            cost = self._cost()
            if cost < least - 1e-9:
                best, least = [list(column) for column in self.columns], cost
            self._sweep(forward=sweep % 2 == 0)
        self.columns = best
        self._number_rows()
        for _ in range(4):
            moved = [self._sift(column, size) for size in (1, 2) for column in range(len(best))]
            if not any(moved):
                break

    def _cost(self) -> float:
        return sum(float(tally.costs(self.row[None])[0]) for tally in self.tallies)

    def _number_rows(self) -> None:
        self.row = np.zeros(len(self.slots))
        for column in self.columns:
            self.row[column] = np.arange(len(column))

    def _position(self, pin: Pin, side: str) -> float:
        return float(self.row[pin.slot]) + _inside(self.level, pin, side)

    def _sweep(self, forward: bool) -> None:
        """Order every column by the mean place of what it is wired to in the one before it."""
        count = len(self.columns)
        for column in range(1, count) if forward else range(count - 2, -1, -1):
            near: dict[int, list[float]] = {}
            for bundle in self.bundles[column if forward else column + 1]:
                here, there = (
                    (bundle.right, bundle.left) if forward else (bundle.left, bundle.right)
                )
                places = [self._position(pin, "left" if forward else "right") for pin in there]
                for pin in here:
                    near.setdefault(pin.slot, []).extend(places)
            means = {
                n: sum(near[n]) / len(near[n]) if near.get(n) else float(self.row[n])
                for n in self.columns[column]
            }
            self.columns[column].sort(key=lambda n: (self.slots[n].part, means[n], self.row[n]))
            self.row[self.columns[column]] = np.arange(len(means))

    def _sift(self, column: int, size: int) -> bool:
        """Try every place for each run of `size` slots, keep the best; tell if any improved."""
        improved = False
        for number in list(self.columns[column]):
            now = self.columns[column]
            at = now.index(number)
            group, rest = now[at : at + size], now[:at] + now[at + size :]
            trials = [now]
            for place in range(len(rest) + 1):
                trial = rest[:place] + group + rest[place:]
                parts = [self.slots[n].part for n in trial]
                if parts == sorted(parts):
                    trials.append(trial)
            rows = np.repeat(self.row[None], len(trials), axis=0)
            for row, trial in zip(rows, trials, strict=True):
                row[trial] = np.arange(len(trial))
            costs = self.tallies[column].costs(rows) + self.tallies[column + 1].costs(rows)
            best = int(np.argmin(np.round(costs, 9)))
            improved |= best > 0
            self.columns[column] = trials[best]
            self.row = rows[best]
        return improved


class _Tally:
    """Counts the crossings in a channel for any order of the columns beside it."""

    def __init__(self, level: Level, bundles: Sequence[Bundle]) -> None:
        pins: list[tuple[int, float]] = []
        across: list[tuple[int, int]] = []
        turns: list[tuple[int, int, bool]] = []
        on_left: list[bool] = []
        for bundle in bundles:
            first: dict[str, int] = {}
            for side, group in (("left", bundle.left), ("right", bundle.right)):
                first[side] = len(pins)
                pins += [(pin.slot, _inside(level, pin, side)) for pin in group]
                on_left += [side == "left"] * len(group)
                back = [n for n, pin in enumerate(group) if level.slots[pin.slot].backward]
                for n in range(len(group)):
                    if back and n != back[0]:
                        turns.append((first[side] + back[0], first[side] + n, side == "left"))
            if bundle.left:
                across += [(first["left"], first["right"] + n) for n in range(len(bundle.right))]
        self.slots = np.array([slot for slot, _ in pins], dtype=int)
        self.inside = np.array([inside for _, inside in pins])
        self.across = np.array(across, dtype=int).reshape(-1, 2)
        self.turns = np.array([turn[:2] for turn in turns], dtype=int).reshape(-1, 2)
        self.same_side = np.equal.outer([turn[2] for turn in turns], on_left)

    def costs(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the number of crossings, and a little for long turns and for turns above.

        Wires that turn back cross those that leave between their ends. Each line of `rows` gives a
        place in its column to every slot.
        """
        places = rows[:, self.slots] + self.inside
        x, y = places[:, self.across[:, 0]], places[:, self.across[:, 1]]
        slopes = (x[:, :, None] - x[:, None]) * (y[:, :, None] - y[:, None])
        total = np.count_nonzero(slopes < -1e-12, axis=(1, 2)) / 2
        if self.turns.size:
            a, b = places[:, self.turns[:, 0]], places[:, self.turns[:, 1]]
            low, high = np.minimum(a, b)[:, :, None], np.maximum(a, b)[:, :, None]
            between = (low < places[:, None]) & (places[:, None] < high) & self.same_side
            total += np.count_nonzero(between, axis=(1, 2))
            total += 0.06 * np.abs(a - b).sum(axis=1) + 0.1 * np.count_nonzero(a < b, axis=1)
        return np.asarray(total)


def _inside(level: Level, pin: Pin, side: str) -> float:
    """Return where a pin is in its slot, from 0 at the top to 1."""
    height = level.slots[pin.slot].height
    return 0.05 + 0.9 * level.offset(pin, side) / height if height else 0.5


def _settle_spots(level: Level) -> None:
    """Give the inputs of each sum the places above, at and below its middle that fit best."""
    row = {n: float(k) for column in level.columns for k, n in enumerate(column)}
    for number, cell in enumerate(level.cells):
        if cell.spots is None or len(cell.inputs) < 2:
            continue
        column = level.column_of[number]
        come: dict[int, float] = {}
        for bundle in level.bundles[column]:
            for pin in bundle.right:
                if pin.slot != number:
                    continue
                origin = bundle.left[:1]
                side = "left"
                if level.slots[bundle.right[0].slot].backward:
                    # From above or below in the same column: further out than any other.
                    origin, side = bundle.right[:1], "right"
                    shift = row[origin[0].slot] - row[number]
                    come[pin.port] = float(np.sign(shift) * 1000 + shift)
                else:
                    come[pin.port] = float(row[origin[0].slot]) + _inside(level, origin[0], side)
        ports = sorted(range(len(cell.inputs)), key=lambda n: (come.get(n, 0.0), n))
        if len(ports) == 3:
            spots = [0, 1, 2]
        else:
            far = [abs(come.get(n, 0.0)) > 500 for n in ports]
            if far[0] != far[1]:
                spots = [0, 1] if far[0] else [1, 2]
            else:
                spots = [1, 2] if ports[0] == 0 else [0, 1]
        for n, spot in zip(ports, spots, strict=True):
            level.inputs[number][n] = cell.spots[spot]
