"""Layout of the parameters and tables of a mechanism."""

from __future__ import annotations

import numpy as np
import pytest

from biella import _contract as contract
from biella.blocks.multibody import System
from biella.blocks.multibody.plant._outputs import find_record
from biella.blocks.multibody.plant._tables import Tables, nearest_first
from biella.errors import DiagramError

from ..elements.test_outputs import CASES


def make(system: System, inputs: list[str] | None = None) -> tuple[Tables, list[int]]:
    tables = Tables(system, inputs or [], True, 1, None)
    return tables, tables.write(list, lambda path: find_record(tables, path))


@pytest.mark.parametrize("case", CASES)
def test_a_parameter_lies_where_its_place_says(case: str) -> None:
    """The values of all parameters in a row, at the place of each, are those of the system."""
    system = CASES[case]()
    tables, _ = make(system)
    row = np.concatenate([np.ravel(item.value) for item in tables.parameters])
    for path, item in system.parameters().items():
        at = tables.place(path)
        assert row[at : at + item.value.size].tolist() == np.ravel(item.value).tolist(), path


@pytest.mark.parametrize("case", CASES)
def test_tables_follow_each_other_without_gaps(case: str) -> None:
    """The head has the counts, then where each table starts; the last one ends the integers."""
    _, integers = make(CASES[case]())
    starts = integers[contract.MB_AT_LINKS : contract.MB_HEAD]
    assert starts[0] == contract.MB_HEAD
    assert starts == sorted(starts)
    links = integers[contract.MB_LINKS]
    assert starts[1] - starts[0] == links * contract.MB_LINK_FIELDS
    signals = integers[contract.MB_SIGNALS]
    assert len(integers) == starts[-1] + signals * contract.MB_SIGNAL_FIELDS


def test_every_element_has_a_name_for_messages() -> None:
    system = CASES["rubbing"]()
    tables, integers = make(system)
    start, count = integers[contract.MB_AT_NAMES], integers[contract.MB_NAMES]
    texts = bytes(integers[start : start + count]).decode().split("\0")
    after = len(tables.tree.links) + integers[contract.MB_CUTS]
    elements = [element.name for element in system.elements]
    assert texts[after : after + len(elements)] == elements
    bodies = [body.name for body in system.bodies]
    assert texts[after + len(elements) :][: len(bodies)] == bodies


def test_a_marker_and_a_measure_are_written_once() -> None:
    system = CASES["loop"]()
    tables, _ = make(system)
    joint = tables.tree.cuts[0]
    before = tables.marker_count
    assert tables.coordinate(joint, 0) == tables.coordinate(joint, 0)
    assert tables.coordinate(joint, 0).sign == 0, "measured, because the joint is cut"
    assert len(tables.measures) == 1
    assert tables.marker(joint.first, joint.frame_i) == tables.marker(joint.first, joint.frame_i)
    assert tables.marker_count == before


def test_the_path_of_a_closure_leaves_common_ancestors_out() -> None:
    s = System("branch", planar=True)
    trunk = s.body("trunk", mass=1.0, inertia=0.1)
    left = s.body("left", mass=1.0, inertia=0.1, position=(-1, 0))
    right = s.body("right", mass=1.0, inertia=0.1, position=(1, 0))
    s.revolute("root", s.ground, trunk, at=(0, 0))
    s.revolute("a", trunk, left, at=(-0.5, 0))
    s.revolute("b", trunk, right, at=(0.5, 0))
    tables = Tables(s, [], True, 1, None)
    path = tables.path(left.marker("m"), right.marker("m"))
    speeds = {tables.tree.coordinates[name, 0].v: side for side, name in enumerate("ab")}
    assert {row[0]: row[3] for row in path} == speeds


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (["spring.stifness"], r"no parameter `spring.stifness`.*Did you mean.*spring.stiffness"),
        (["a.com"], "`a.com` is a vector"),
        (["stop.stiffness"], "`stop.stiffness` cannot be an input"),
    ],
)
def test_what_cannot_be_an_input_is_refused(inputs: list[str], text: str) -> None:
    with pytest.raises(DiagramError, match=text):
        make(CASES["spatial"](), inputs)


def test_names_are_listed_the_nearest_first() -> None:
    assert nearest_first("sprng", ["mass", "spring", "string"]) == ["spring", "string", "mass"]
