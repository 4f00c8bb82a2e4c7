"""The driver of docs/guides/devices.md, installed as a package, for a made-up card."""

from __future__ import annotations

import importlib
import re
import sys
import time
import tomllib
from pathlib import Path

import pytest

from biella import Diagram
from biella.blocks import Constant, Gain
from biella.scheduler.binding._bind import check_binding, open_binding
from biella.scheduler.devices._registry import find_driver, list_drivers

pytestmark = pytest.mark.engine

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "devices.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.S | re.M)

VENDOR = '''
class Card:
    """A tank: its pressure in volts is 20 times what the valve, in volts, lets in."""

    made = []

    def __init__(self, serial):
        if serial != "4711":
            raise OSError(f"no card {serial} on this bus")
        self.pins, self.log = {0: 5.0}, ["init"]
        Card.made.append(self)

    def start_sampling(self):
        self.log.append("start")

    def volts(self, pin):
        assert pin == 3
        return 0.4 * self.pins[0]

    def set_volts(self, pin, value):
        self.pins[pin] = value
        self.log.append(value)

    def release(self):
        self.log.append("release")
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install the page's driver, and a vendor's package that it needs."""
    (code,) = (code for language, code in BLOCKS if code.startswith("# acme_biella.py"))
    (entry,) = (code for language, code in BLOCKS if code.startswith("[project.entry-points"))
    assert len(code.splitlines()) <= 40
    points = tomllib.loads(entry)["project"]["entry-points"]
    (tmp_path / "acme_biella.py").write_text(code)
    (tmp_path / "acme_daq.py").write_text(VENDOR)
    (tmp_path / "no_driver.py").write_text("something = 3\n")
    about = tmp_path / "acme_biella-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-biella\nVersion: 1.0\n")
    lines = [f"[{group}]\n{name} = {value}" for group, made in points.items()
             for name, value in made.items()]  # fmt: skip
    more = "wrong = no_driver:something\nabsent = not_there:DeviceDriver\n"
    (about / "entry_points.txt").write_text("\n".join(lines) + f"\n{more}")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("acme_daq", "acme_biella"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield tmp_path
    for name in ("acme_daq", "acme_biella"):
        sys.modules.pop(name, None)


def rig():
    (text,) = (code for language, code in BLOCKS if code.startswith("[devices.card]"))
    return tomllib.loads(text) | {"signals": {"pressure": "card.pressure", "opening": "card.valve"}}


def diagram():
    d = Diagram("tank", step=1e-3)
    pressure = d.add(Constant(0.0, unit="bar"), name="pressure")
    opening = d.add(Constant(0.8, unit="1"), name="opening")
    d.connect(pressure, d.add(Gain(1.0), name="gauge"))
    d.connect(opening, d.add(Gain(1.0), name="lever"))
    return d


def test_the_driver_of_the_page_runs_the_vendors_card(ticks, package):
    assert "acme" in list_drivers()
    bound = open_binding(diagram(), rig())
    card = importlib.import_module("acme_daq").Card.made[-1]
    run = ticks(bound)
    end = time.monotonic() + 10.0
    # Opening 0.8 is 8 V, of which the card makes 3.2 V, which are 80 bar.
    signals = ["gauge", "card.alive", "card.delay"]
    while (row := run.advance(1, signals=signals)[0])[0] != pytest.approx(80.0):
        assert time.monotonic() < end, row
        time.sleep(1e-3)
    assert row[1] == 1.0
    assert row[2] >= 1.0
    bound.close()
    assert card.log[:2] == ["init", "start"]
    assert card.log[-2:] == [0.0, "release"]


def test_what_the_card_says_when_it_is_not_there(package):
    table = rig()
    table["devices"]["card"]["serial"] = "4712"
    with pytest.raises(Exception, match="`card` cannot be opened: OSError: no card 4712 on this"):
        open_binding(diagram(), table)


def test_its_checks_are_those_of_the_binding(package):
    table = rig()
    table["devices"]["card"]["send"]["second"] = {"pin": 0, "safe": 0, "unused": True}
    table["devices"]["card"]["receive"]["pressure"]["pin"] = 16
    assert check_binding(diagram(), table).problems == [
        "[devices.card.receive.pressure] pin: must be between 0 and 15, got 16."
    ]
    table["devices"]["card"]["receive"]["pressure"]["pin"] = 3
    assert check_binding(diagram(), table).problems == ["[devices.card]: pin 0 has two outputs."]


def test_entry_points_that_are_no_drivers(package):
    assert find_driver("wrong") == (
        None,
        "`wrong` (no_driver:something) is not a biella.devices.DeviceDriver.",
    )
    kind, why = find_driver("absent")
    assert kind is None
    assert why == "`absent` (not_there:DeviceDriver) cannot be loaded: No module named 'not_there'."


SECTIONS = {"can": "CAN", "modbus": "Modbus", "opcua": "OPC UA"}


def test_the_page_names_every_driver_and_option():
    for name in ("serial", "text", "udp", "tcp", "loopback", "replay", *SECTIONS):
        kind, _ = find_driver(name)
        assert kind is not None
        (line,) = re.findall(rf"^\| `{name}` \|.*$", PAGE, re.M)
        text = line
        if name in SECTIONS:
            text = PAGE.partition(f"### {SECTIONS[name]}\n")[2].partition("\n## ")[0]
            text = text.partition("\n### ")[0]
        for option in [*kind.options, *kind.channel_options]:
            assert f"`{option}`" in text, f"{option} of {name}"
        assert line.endswith(f"| {kind.timeout:g} s |" if kind.timeout else "| never |")
