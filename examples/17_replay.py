"""Record and replay: a real-time run with a device and changes by hand, then again without them.

The load of a motor is what a load cell says: here a loopback that answers late, loses frames and
adds noise. While the motor runs, its reference is turned up and the load cell is overridden. All
that came from outside is in the log, tick by tick, so the same bits come out again without a
device. And what if the same load had met another gain?
"""

import time

import matplotlib.pyplot as plt

from biella import Diagram, replay, run_realtime
from biella.blocks import PID, Constant, Gain, Integrator, Sine, Sum
from biella.realtime import find_differences

CHANNEL = {"unit": "N.m", "safe": 0.0}
CELL = {"driver": "loopback", "delay": 2, "jitter": 5, "loss": 0.2, "noise": 0.1, "seed": 7}
RIG = {
    "devices": {"cell": CELL | {"receive": {"load": CHANNEL}, "send": {"truth": CHANNEL}}},
    "blocks": {"load": {"device": "cell", "inputs": {"u": "truth"}, "outputs": {"y": "load"}}},
}


def diagram() -> Diagram:
    d = Diagram("motor", step=1e-3)
    reference = d.add(Constant(20.0, unit="rad/s"), name="reference")
    waves = d.add(Sine(amplitude=1.5, frequency=2.0, unit="N.m"), name="waves")
    load = d.add(Gain(1.0, unit="N.m"), name="load")  # with the rig: the load cell
    pid = d.add(PID(kp=0.4, ki=2.0, limits=(-6, 6), period=2e-3, unit="N.m"), name="pid")
    net = d.add(Sum("+-"), name="net")
    inverse_inertia = d.add(Gain(20.0, unit="rad/s2"), name="inverse_inertia")
    speed = d.add(Integrator(), name="speed")
    wires = [(waves, load), (reference, pid["reference"]), (speed, pid["measurement"])]
    wires += [(pid, net["u1"]), (load, net["u2"]), (net, inverse_inertia), (inverse_inertia, speed)]
    for source, target in wires:
        d.connect(source, target)
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    with run_realtime(diagram(), 2.0, bind=RIG, out="motor.h5") as run:
        time.sleep(0.7)
        run["reference.value"] = 30.0
        time.sleep(0.5)
        run.override("load", 3.0)
        time.sleep(0.2)
        run.release("load")
        result = run.wait()
    again = replay("motor.h5", diagram())
    different = find_differences(result, again)
    entries = len(result.log.input_log)
    print(f"{entries} entries from outside; {len(result)} signals, of which differ: {different}")
    other = replay("motor.h5", diagram(), parameters={"pid.kp": 1.6, "pid.ki": 16.0})

    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(9, 6), layout="constrained")
    axes[0].plot(result.t, result["reference"], "k:", lw=1, label="reference, turned by hand")
    axes[0].plot(result.t, result["speed"], lw=4, alpha=0.35, label="recorded")
    axes[0].plot(again.t, again["speed"], "k", lw=0.8, label="replayed: the same bits")
    axes[0].plot(other.t, other["speed"], "C2", lw=1, label="what if kp = 1.6, ki = 16?")
    axes[0].set(ylabel="speed, rad/s", title="One outside world, two controllers")
    axes[1].plot(result.t, result["waves"], "k:", lw=1, label="true load")
    axes[1].plot(result.t, result["load"], lw=0.8, label="load, by the cell; overridden once")
    axes[1].set(xlabel="t, s", ylabel="torque, N m")
    axes[0].legend(loc="lower right")
    axes[1].legend(loc="upper left")
    figure.savefig("replay.png", dpi=110)


if __name__ == "__main__":
    main()
