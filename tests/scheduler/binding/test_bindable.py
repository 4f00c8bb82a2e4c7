"""Which blocks and signals can be bound to a device."""

from __future__ import annotations

import pytest

from biella import Diagram, Subsystem
from biella.blocks import Compare, Constant, Gain
from biella.scheduler.binding._bind import check_binding
from biella.scheduler.binding._bindable import list_blocks
from biella.scheduler.binding._report import write_template

pytestmark = pytest.mark.engine


def nested():
    """Subsystems of every kind, two deep, with outputs that only pass an input on."""

    def part(**kind):
        inner = Diagram("inner")
        u = inner.input("u", unit="m")
        g = inner.add(Gain(2.0, unit="m"), name="g")
        inner.connect(u, g)
        inner.output("y", g)
        inner.output("through", u)
        return Subsystem(inner, **kind)

    middle = Diagram("middle")
    u = middle.input("u")
    one = middle.add(Constant(1.0), name="one")
    on = middle.add(Compare(">", 0.5), name="on")
    middle.connect(one, on)
    for name, kind, control in (
        ("plain", {}, None),
        ("enabled", {"enable": True}, on),
        ("restarted", {"reset": "rising"}, one),
        ("triggered", {"trigger": "rising"}, one),
    ):
        sub = middle.add(part(**kind), name=name)
        middle.connect(u, sub["u"])
        if control is not None:
            middle.connect(control, sub[sub.control])
        for port in ("y", "through"):
            middle.output(f"{name}_{port}", sub[port])
    d = Diagram("nested", step=1e-2)
    source = d.add(Constant(1.0, unit="m"), name="source")
    outer = d.add(Subsystem(middle), name="outer")
    d.connect(source, outer)
    for port in outer.output_index:
        d.connect(outer[port], d.add(Gain(1.0, unit="m"), name=f"from_{port}"))
    return d


def test_every_block_and_subsystem_of_any_depth_can_be_a_device(tmp_path):
    d = nested()
    blocks = dict(list_blocks(d, d.compile()))
    assert len(blocks) == 20
    for path, ports in blocks.items():
        (tmp_path / "rig.toml").write_text(write_template(d, path))
        found = check_binding(d, tmp_path / "rig.toml")
        assert found.problems == []
        plan = d.compile(replace=found.replace, extra=found.extra)
        for port in ports.outputs:
            unit = plan.signals[f"{path}.{port.name}"].unit
            assert unit == (None if path in ("outer.one", "outer.on") else "m")


def test_every_signal_can_come_from_a_device_and_keeps_its_names():
    d = nested()
    plan = d.compile()
    for path, info in plan.signals.items():
        channel = {"width": info.width, "safe": 3.0}
        rig = {
            "devices": {"b": {"driver": "udp", "bind_port": 5000, "receive": {"a": channel}}},
            "signals": {path: "b.a"},
        }
        found = check_binding(d, rig)
        assert found.problems == []
        bound = d.compile(extra=found.extra, reroute=found.reroute)
        assert set(bound.signals) == {
            *plan.signals, f"{path}_simulated", "b.age", "b.alive", "b.delay",
        }  # fmt: skip
        assert bound.aliases.items() >= plan.aliases.items()
        with bound.instantiate() as run:
            assert run.get(path) == 3.0
