"""A loop to run, bindings that replay frames, and scripts in processes."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

from biella import Diagram, run_realtime
from biella.blocks import (
    PID,
    Integrator,
    Sine,
)


def loop(step=1e-3):
    """A speed loop: a sampled controller, a continuous plant."""
    d = Diagram("speed loop", step=step)
    reference = d.add(Sine(frequency=2.0), name="ref")
    pid = d.add(PID(kp=2.0, ki=8.0, period=step), name="pid")
    plant = d.add(Integrator(0.0), name="plant")
    d.connect(reference, pid["reference"])
    d.connect(plant, pid["measurement"])
    d.connect(pid, plant)
    return d


def wait_until(condition):
    """Wait, but not for ever: a run that does not do what it should would hang the tests."""
    for _ in range(60_000):
        if condition():
            return
        time.sleep(1e-3)
    raise AssertionError("it did not happen")


processes: list[subprocess.Popen[str]] = []


def in_a_process(text, **options):
    """Run Python in a process of its own; what it shares with this one stands before."""
    setup = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", setup + textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    processes.append(process)
    return process


# --- the same diagram ---


# --- changed and looked at ---


# --- how it ends ---


# --- devices, as a binding gives them ---


class FakeBinding:
    """What `open_binding` provides, around a device of test_pace."""

    def __init__(self, plan, device, run):
        self.plan, self.run, self.closed = plan, run, False
        self.check = SimpleNamespace(replace={}, channel_maps=[])
        self.devices = [
            SimpleNamespace(
                name="board",
                handle=device.handle,
                counts={"frames": 3},
                is_confirmed=False,
                standing=("connected", 0.0),
                entry=SimpleNamespace(driver=None, send={}),
            )
        ]

    def describe(self):
        return {"devices": {"board": {}}}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True


def start_bound(monkeypatch, frames, run, **options):
    """Start test_pace's loop with its device, as if it came from a binding."""
    import importlib.util

    path = Path(__file__).parent / "loop" / "test_pace.py"
    spec = importlib.util.spec_from_file_location("pace_of_live", path)
    assert spec is not None and spec.loader is not None
    test_pace = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(test_pace)
    plan = test_pace.device_plan()
    first = plan.parameters["board.received"].slot
    device = test_pace.FakeDevice(frames, first, plan.find_signal("double").slot)
    binding = FakeBinding(plan, device, run)
    monkeypatch.setattr(
        "biella.scheduler.realtime._start.open_binding", lambda diagram, bind, **options: binding
    )
    return run_realtime(Diagram("any", step=1e-3), bind="rig.toml", **options), device, binding


# --- recorders that survive a lack of room ---
