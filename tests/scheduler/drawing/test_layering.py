"""Columns of a drawing: where loops are cut, and where sources stand."""

from __future__ import annotations

from biella.scheduler.drawing._layering import Cell, Link, assign_columns, rank_cells


class TestColumns:
    def test_sources_stand_beside_what_they_feed(self) -> None:
        cells = [Cell(10, 10, (5,), (5,)) for _ in range(4)]
        links = [Link(0, 0, 1, 0), Link(1, 0, 2, 0), Link(3, 0, 2, 0)]
        assert assign_columns(cells, links) == [0, 1, 2, 1]

    def test_cheapest_cut(self) -> None:
        links = [Link(0, 0, 1, 0, 3.0), Link(1, 0, 2, 0, 1.0), Link(2, 0, 0, 0, 3.0)]
        assert rank_cells(3, links) == [1, 2, 0]

    def test_loops_that_share_a_wire_are_cut_once(self) -> None:
        links = [Link(0, 0, 1, 0), Link(1, 0, 2, 0), Link(2, 0, 0, 0), Link(1, 0, 3, 0),
                 Link(3, 0, 0, 0)]  # fmt: skip
        rank = rank_cells(4, links)
        assert sum(rank[x.source] > rank[x.target] for x in links) == 1
