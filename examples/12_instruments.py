"""What instruments cost: crank speed control with encoder, torque meter and a converter of 16 bits.

The speed controller asks for a torque. The motor is a fifth too weak; a loop around the torque
meter in its shaft corrects that. The same diagram runs with ideal instruments, with an optical
encoder that counts lines, and with the toothed wheel of the torque meter, timed.
"""

import matplotlib.pyplot as plt

from biella import Diagram, simulate
from biella.blocks import ADC, PID, Encoder, RateLimiter, Scaling, Step, TorqueMeter
from biella.blocks import TransferFunction as Lag
from biella.blocks.multibody import System
from biella.blocks.sensors import presets

CRANK, ROD, T = 0.1, 0.3, 1e-3  # m, m, and the period of both controllers in s
PORTS = ["motor.torque", "load.torque"], ["main.angle", "main.speed"]
METER = presets.TORQUE_METER
IDEAL = {"counts": 2**24, "method": "both"}
COUNTED = presets.OPTICAL_ENCODER | {"window": 10}  # of 0.1 ms
TIMED = presets.TORQUE_METER_PULSES | {"method": "both", "clock": 1e6}


def mechanism() -> System:
    s = System("slider-crank", planar=True)
    crank = s.body("crank", mass=4.0, inertia=0.15, com=(-0.06, 0), position=(CRANK / 2, 0))
    rod = s.body("rod", mass=0.4, inertia=3e-3, position=(CRANK + ROD / 2, 0))
    slider = s.body("slider", mass=0.8, inertia=1e-3, position=(CRANK + ROD, 0))
    main = s.revolute("main", s.ground, crank, at=(0, 0))
    s.revolute("crank_pin", crank, rod, at=(CRANK, 0))
    s.revolute("wrist_pin", rod, slider, at=(CRANK + ROD, 0))
    s.prismatic("slide", s.ground, slider, at=(CRANK + ROD, 0), axis=(1, 0))
    for name in ("motor", "load"):
        s.torque(name, main, 0.0)
    return s


def diagram(meter=METER, disc=COUNTED, bits=16) -> Diagram:
    d = Diagram("crank speed", step=1e-4)
    plant = d.add(mechanism().block(*PORTS), name="plant")
    load = d.add(Step(at=0.8, to=-8.0, unit="N.m"), name="load")
    ref = d.add(RateLimiter(100.0, initial=0.0), name="ref")
    encoder, torque = d.add(Encoder(**disc), name="encoder"), d.add(TorqueMeter(meter, seed=1))
    converter = d.add(ADC(bits, (-10.0, 10.0), unit="V", period=T), name="converter")
    measured = d.add(Scaling(1 / METER.gain, unit="N.m", reading_unit="V"), name="measured")
    demand = d.add(PID(3.0, 20.0, limits=(-40, 40), unit="N.m", period=T), name="demand")
    trim = d.add(PID(0.0, 60.0, limits=(-40, 40), unit="N.m", period=T), name="trim")
    motor = d.add(Lag([0.8], [3e-3, 1.0], unit="N.m"), name="motor")
    wires = [(d.add(Step(at=0.0, to=40.0, unit="rad/s")), ref), (ref, demand["reference"])]
    wires += [(plant["main.angle"], encoder), (encoder["speed"], demand["measurement"])]
    wires += [(demand["y"], trim["reference"], trim["feedforward"]), (torque, converter)]
    wires += [(converter["y"], measured), (measured, trim["measurement"]), (trim["y"], motor)]
    wires += [(motor, plant["motor.torque"], torque), (load, plant["load.torque"])]
    for source, *targets in wires:
        d.connect(source, *targets)
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    signals = ("plant.main.speed", "encoder.speed", "motor.y")
    real = simulate(diagram(), 1.2, record=[*signals, "ref", "demand.y", "measured"])
    real.plot(["ref", *signals[1::-1]], ["demand.y", "measured", "motor.y"], path="crank_loop.png")
    figure, axes = plt.subplots(3, 1, figsize=(9, 8), sharex=True, layout="constrained")
    kinds = {"1024 lines, counted": (METER, COUNTED), "60 pulses, timed": (METER, TIMED)}
    for name, kind in (kinds | {"ideal": (METER.ideal(), IDEAL, 32)}).items():
        r, late = simulate(diagram(*kind), 1.0, record=list(signals)), slice(6500, None)
        moves = r["motor.y"][6510::10] - r["motor.y"][6500:-10:10]
        print(f"{name}: torque moves by {moves.std():.2f} N m (rms) in a period")
        for ax, signal in zip(axes, signals, strict=True):
            ax.plot(r.t[late], r[signal][late], lw=0.9, label=name)
            ax.set_ylabel(f"{signal} in {r.units[signal]}")
    axes[0].legend()
    axes[2].set_xlabel("time in s")
    figure.savefig("instruments.png", dpi=110)


if __name__ == "__main__":
    main()
