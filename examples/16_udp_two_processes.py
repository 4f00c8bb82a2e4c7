"""A plant and its controller in two processes, and a bad network between them.

Both run this one diagram. At the plant's end the PID is a device on UDP, and the crank an FMU; at
the controller's end (`biella run-realtime … --bind controller_0.toml`) the crank is the device.
Each frame of the plant is a tick of the controller. A relay delays, drops and reorders frames.
"""

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import matplotlib.pyplot as plt

from biella import Diagram, run_realtime, simulate
from biella.blocks import PID, Step
from biella.blocks.multibody.mechanisms import slider_crank
from biella.devices import Faults, UdpProxy

PORTS, STEP, UNTIL = (["motor.torque"], ["main.speed"]), 1e-3, 1.2
RIGS = Path(__file__).parent / "rigs"
BAD = {"jitter": 3e-3, "drop": 0.3, "duplicate": 0.05, "reorder": 0.1, "corrupt": 0.02}
NETWORKS = {"4 ms each way": {}, "and jitter, 30 % lost, reordered": BAD}


def diagram() -> Diagram:
    d = Diagram("crank speed", step=STEP)
    plant = d.add(slider_crank(planar=True).block(*PORTS), name="plant")
    ref = d.add(Step(at=0.1, to=6.0, unit="rad/s"), name="ref")
    pid = d.add(PID(kp=300.0, ki=1500.0, limits=(-300, 300), unit="N.m", period=STEP), name="pid")
    d.connect(ref, pid["reference"])
    d.connect(plant["main.speed"], pid["measurement"])
    d.connect(pid, plant["motor.torque"])
    return d


def write_rig(end: str, number: int, port: int) -> str:
    """Write the binding of one end with another port; return its name."""
    text = (RIGS / f"{end}_end.toml").read_text()
    Path(f"{end}_{number}.toml").write_text(text.replace("5001", str(port)))
    return f"{end}_{number}.toml"


def start_controller(number: int, stack: ExitStack) -> tuple[subprocess.Popen, int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    rig = write_rig("controller", number, port)
    command = [sys.executable, "-m", "biella", "run-realtime", __file__, "--bind", rig]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    stack.callback(lambda: process.communicate(process.terminate()))
    return process, port


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    slider_crank(planar=True).export_fmu("crank.fmu", outputs=PORTS[1], step=STEP)
    ideal = simulate(diagram(), UNTIL)
    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(9, 6), layout="constrained")
    top.plot(ideal.t, ideal["plant.main.speed"], "k", lw=1, label="one process")
    with ExitStack() as stack:
        ends = [start_controller(k, stack) for k in range(2)]
        for k, (label, faults) in enumerate(NETWORKS.items()):
            process, port = ends[k]
            assert b"running" in process.stderr.readline()  # its port is open
            with UdpProxy(("127.0.0.1", port), seed=1, faults=Faults(delay=4e-3, **faults)) as link:
                run = run_realtime(diagram(), UNTIL, bind=write_rig("plant", k, link.port)).wait()
            off = (run["plant.main.speed"] - ideal["plant.main.speed"]).std()
            print(f"{label}: {off:.2f} rad/s (rms) off the loop in one process; {link.counts}")
            top.plot(run.t, run["plant.main.speed"], f"C{2 * k}", lw=1, label=label)
            bottom.plot(run.t[50:], run["controller.delay"][50:], f"C{2 * k}.", ms=3)
    top.set(ylabel="speed of the crank, rad/s", title="One loop in two processes")
    top.legend(loc="upper left")
    bottom.set(xlabel="t, s", ylabel="from value to answer, ticks")
    figure.savefig("two_processes.png", dpi=110)


if __name__ == "__main__":
    main()
