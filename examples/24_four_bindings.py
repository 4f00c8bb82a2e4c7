"""One diagram, four bindings: simulated, plant as an FMU, controller on a board, replay.

The torque of tick k acts in tick k + 1, as that of a board does. What is real is said by a binding
alone, so all four runs leave the same log, and one report has them all. The board's torque takes
the place of the simulated one; the simulated PID goes on beside it. The board is an emulated
ATmega328P or, where there is no emulator, its firmware as a process.
"""

import tempfile
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from firmware.board import Board

from biella import Diagram, replay, run_realtime
from biella.blocks import PID, Step, UnitDelay
from biella.blocks.multibody.mechanisms import slider_crank

STEP, UNTIL, LIMIT = 1e-3, 1.5, 300.0  # s, s, N m
GAINS = {"kp": 600.0, "ki": 6000.0, "kd": 0.0, "filter_time": 0.0, "b": 1.0, "c": 0.0}
MACROS = {"GAINS": ",".join(f"{x}f" for x in (*GAINS.values(), -LIMIT, LIMIT, STEP))}
PLANT_IS_FMU = {"blocks": {"plant": {"fmu": "crank.fmu"}}}


def diagram() -> Diagram:
    d = Diagram("four bindings", step=STEP)
    plant = d.add(slider_crank(planar=True).block(["motor.torque"], ["main.speed"]), name="plant")
    reference = d.add(Step(at=0.2, to=6.0, unit="rad/s"), name="reference")
    pid = d.add(PID(**GAINS, limits=(-LIMIT, LIMIT), unit="N.m", period=STEP), name="pid")
    torque = d.add(UnitDelay(), name="torque", period=STEP)
    d.connect(reference, pid["reference"])
    d.connect(plant["main.speed"], pid["measurement"])
    d.connect(pid, torque)
    d.connect(torque, plant["motor.torque"])
    return d


def controller_is_board(port: str) -> dict:
    """Return what the file says, with the port of an emulated board in place of a real one."""
    rig = Path(__file__).parent / "rigs" / "controller_is_board.toml"
    return tomllib.loads(rig.read_text().replace("/dev/ttyACM0", port))


def run_all() -> dict:
    slider_crank(planar=True).export_fmu("crank.fmu", outputs=["main.speed"], step=STEP)
    runs = {"simulated": run_realtime(diagram(), UNTIL, clock="free").wait()}
    runs["plant is an FMU"] = run_realtime(diagram(), UNTIL, clock="free", bind=PLANT_IS_FMU).wait()
    with tempfile.TemporaryDirectory() as folder, Board(folder, TIMEOUT=5000, **MACROS) as board:
        label = f"controller is a board ({board.kind})"
        runs[label] = run_realtime(diagram(), UNTIL, bind=controller_is_board(board.port)).wait()
    runs["replay of that"] = replay(runs[label], diagram())
    return runs


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    runs = run_all()
    simulated = runs["simulated"]["plant.main.speed"]
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(9, 8), layout="constrained")
    looks = zip(("0.8", "C0", "C2", "k"), (7, 4, 2, 0.6), strict=True)
    for (label, run), (color, width) in zip(runs.items(), looks, strict=True):
        off = np.abs(run["plant.main.speed"] - simulated)
        print(f"{label}: {len(run)} signals, speed within {off.max():.1e} rad/s of the simulated")
        curves = run["plant.main.speed"], run["torque"], 1e6 * off
        for ax, values in zip(axes, curves, strict=True):
            ax.plot(run.t, values, c=color, lw=width, label=label)
    axes[0].set(ylabel="speed, rad/s", title="One diagram, four bindings")
    axes[1].set(ylabel="torque, N m")
    axes[2].set(ylabel="speed off the simulated, µrad/s", xlabel="t, s")
    axes[0].legend(loc="lower right")
    figure.savefig("four_bindings.png", dpi=110)


if __name__ == "__main__":
    main()
