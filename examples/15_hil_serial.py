"""Hardware in the loop: the speed of a slider-crank under a controller that runs on a board.

A crank, and a PID whose torque comes one tick late, as that of a board does. With a binding, the
PID answers on a serial line: an emulated ATmega328P with `firmware/pid_uno.c`, or a process.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from firmware.board import Board, find_missing

from biella import Diagram, Subsystem, run_realtime, simulate
from biella.blocks import PID, Step, UnitDelay
from biella.blocks.multibody.mechanisms import slider_crank

STEP, UNTIL, LIMITS = 1e-3, 3.0, (-300.0, 300.0)  # s, s, N m
GAINS = {"kp": 600.0, "ki": 6000.0, "kd": 0.0, "filter_time": 0.0, "b": 1.0, "c": 0.0}


def controller() -> Subsystem:
    d = Diagram("controller")
    speed, reference = d.input("speed", unit="rad/s"), d.input("reference", unit="rad/s")
    pid = PID(**GAINS, limits=LIMITS, unit="N.m", period=STEP)
    d.add(pid, "pid", measurement=speed, reference=reference)
    d.output("torque", d.add(UnitDelay(), "late", u=pid, period=STEP))
    return Subsystem(d)


def diagram() -> Diagram:
    d = Diagram("crank with a board", step=STEP)
    plant = d.add(slider_crank(planar=True).block(["motor.torque"], ["main.speed"]), name="plant")
    reference = d.add(Step(at=0.5, to=6.0, unit="rad/s"), "reference")
    board = d.add(controller(), "controller", speed=plant["main.speed"], reference=reference)
    d.connect(board["torque"], plant["motor.torque"])
    d.output("speed", plant["main.speed"])
    d.output("torque", board["torque"])
    return d


def rig(port: str) -> dict[str, object]:
    """What a file rig.toml says; a real Uno is /dev/ttyACM0."""
    rate, torque = {"unit": "rad/s", "safe": 0.0}, {"unit": "N.m", "limits": list(LIMITS)}
    lines = {"receive": {"torque": torque}, "send": {"speed": rate, "reference": rate}}
    board = {"driver": "serial", "port": port, "baud": 1_000_000, "timeout": 10.0, **lines}
    blocks = {"controller": {"device": "board"}}
    return {"run": {"clock": "device:board"}, "devices": {"board": board}, "blocks": blocks}


def make_board(folder: str, kind: str, timeout: int = 5000) -> Board:
    """Its watchdog trips after `timeout` ms: long, since this machine may stall."""
    gains = ",".join(f"{number!r}f" for number in (*GAINS.values(), *LIMITS, STEP))
    return Board(folder, kind, GAINS=gains, TIMEOUT=timeout)


def main() -> None:
    runs = {"simulated": simulate(diagram(), UNTIL)}
    for kind, label in (("process", "its C as a process"), ("simavr", "emulated ATmega328P")):
        if missing := find_missing(kind):
            print(f"Left out: {label}, which needs {missing}.")
            continue
        with tempfile.TemporaryDirectory() as folder, make_board(folder, kind) as board:
            runs[label] = run_realtime(diagram(), UNTIL, bind=rig(board.port)).wait()
    figure, axes = plt.subplots(3, sharex=True, figsize=(8, 7), layout="constrained")
    for (label, run), look in zip(runs.items(), (("C0", 6), ("C1", 3), ("k", 1)), strict=False):
        difference = np.abs(run["speed"] - runs["simulated"]["speed"])
        print(f"{label}: at most {difference.max():.1e} rad/s from the simulated speed")
        for ax, values in zip(axes, (run["speed"], run["torque"], difference), strict=True):
            ax.plot(run.t, values, c=look[0], lw=look[1], label=label)
    for ax, label in zip(axes, ("speed, rad/s", "torque, N m", "difference, rad/s"), strict=True):
        ax.set(ylabel=label, xlabel="t, s" if ax is axes[2] else "")
    axes[0].legend(loc="lower right")
    figure.savefig("hil_serial.png", dpi=120)


if __name__ == "__main__":
    main()
