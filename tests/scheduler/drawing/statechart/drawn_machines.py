"""Machines to draw."""

from biella.blocks import StateMachine


def make_heater() -> StateMachine:
    heater = StateMachine(inputs=["T"], outputs={"power": "W"})
    off, on = heater.state("off", power=0), heater.state("on", power=2e3)
    heater.transition(off, on, when="T < 19", after=60)
    heater.transition(on, off, when="T > 21")
    return heater


def make_traffic_light() -> StateMachine:
    """Return a light for cars that turns red after a request of a pedestrian."""
    light = StateMachine(
        events=["button"],
        outputs=["cars", "pedestrians"],
        data={"requested": False},
    )
    green = light.state("green", cars=3, pedestrians=1)
    yellow = light.state("yellow", cars=2)
    red = light.state("red", cars=1)
    walk = light.state("walk", pedestrians=3, exit={"pedestrians": 1, "requested": 0})
    clear = light.state("clear")
    ready = light.state("ready", cars=4)
    light.transition(green, None, on="button", do={"requested": 1}, priority=2)
    light.transition(green, yellow, when="requested", after=20, priority=1)
    light.transition(yellow, red, after=3)
    light.transition(red, walk, after=1)
    light.transition(walk, clear, after=8)
    light.transition(clear, ready, after=4)
    light.transition(ready, green, after=1)
    return light


def make_supervisor() -> StateMachine:
    """Return a supervisor with states inside states, regions and history."""
    m = StateMachine(
        events=["start", "stop", "reset", "save"],
        inputs={"speed": "rad/s", "current": "A", "T": "degC"},
        outputs={"torque": "N.m", "lamp": None},
        emits=["alarm"],
        data={"trips": 0},
    )
    off = m.state("off", torque=0, lamp=0)
    startup = m.state("startup")
    precharge = startup.state("precharge", lamp=1)
    ramp = startup.state("ramp", during={"torque": "5*elapsed"})
    run = m.parallel("run", lamp=2)
    drive = run.state("drive", history="shallow")
    normal = drive.state("normal", torque=10)
    overload = drive.state("overload", torque=12)
    cooling = drive.state("cooling", torque=4)
    logging = run.state("logging")
    idle, writing = logging.state("idle"), logging.state("writing")
    safe = m.state("safe", entry={"torque": 0, "trips": "trips + 1"}, emit="alarm")
    braking = safe.state("braking")
    locked = safe.state("locked", exit={"lamp": 0})
    m.transition(off, startup, on="start")
    m.transition(precharge, ramp, after=0.5)
    m.transition(ramp, run, when="speed > 100")
    m.transition(startup, off, on="stop", priority=1)
    m.transition(startup, safe, after=10, priority=2)
    m.transition(normal, overload, when="current > 20")
    m.transition(overload, normal, when="current < 18", priority=2)
    m.transition(overload, cooling, after=5, priority=1)
    m.transition(cooling, normal, when="T < 60", after=2)
    m.transition(idle, writing, on="save")
    m.transition(writing, idle, after=1)
    m.transition(writing, writing, on="save", when="elapsed > 0.1", do={"lamp": 3})
    m.transition(run, off, on="stop", priority=2)
    m.transition(run, safe, when="T > 90", priority=1, emit="alarm")
    m.transition(cooling, locked, when="current > 30", priority=1, do={"trips": "trips + 10"})
    m.transition(braking, locked, when="speed < 1", after=0.2)
    m.transition(locked, off, on="reset", when="trips < 3")
    m.transition(safe, None, on="save", do={"lamp": 4})
    return m
