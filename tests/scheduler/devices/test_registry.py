"""Drivers by name."""

import pytest

from biella.scheduler.devices import DeviceDriver
from biella.scheduler.devices import _registry as registry
from biella.scheduler.devices._registry import find_driver, kind_of, list_drivers


class Entry:
    """An entry point, as importlib.metadata gives them."""

    def __init__(self, name, load):
        self.name, self.value, self.load = name, f"package:{name}", load


def fail():
    raise ImportError("no such library")


class Card(DeviceDriver):
    """A card for tests.

    More words.
    """

    timeout = 0.25


@pytest.fixture
def points(monkeypatch):
    found = [Entry("card", lambda: Card), Entry("broken", fail), Entry("wrong", lambda: int)]
    monkeypatch.setattr(registry, "entry_points", lambda group: found)


def test_the_engine_has_drivers_of_its_own():
    assert {"serial", "text", "udp", "tcp", "loopback", "replay"} <= set(list_drivers())
    kind, problem = find_driver("udp")
    assert problem == "" and kind and kind.name == "udp" and kind.paces


def test_entry_points_of_other_packages_are_drivers(points):
    assert list_drivers()[-3:] == ["broken", "card", "wrong"]
    kind, problem = find_driver("card")
    assert problem == "" and kind and kind.doc == "A card for tests" and kind.timeout == 0.25


@pytest.mark.parametrize(
    ("name", "why"), [("broken", "no such library"), ("wrong", "DeviceDriver")]
)
def test_one_that_cannot_be_used_says_why(points, name, why):
    kind, problem = find_driver(name)
    assert kind is None and f"`{name}`" in problem and why in problem


def test_an_unknown_name_is_reported_with_those_that_there_are():
    kind, problem = find_driver("serail")
    assert kind is None and "serial" in problem and "loopback" in problem


def test_a_driver_is_described_by_the_first_line_of_its_docstring():
    assert kind_of("x", Card).doc == "A card for tests"
