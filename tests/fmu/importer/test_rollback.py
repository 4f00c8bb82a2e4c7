"""Steps that are repeated, through every backend and across the boundary of a process."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from specimen import STATES, TROUBLE, description, make_specimen

from biella import BlockError, Diagram, Fmu, simulate
from biella.blocks import Constant, Gain, Mux, Sum

from .runs import EVERY, EVERY_ID

pytestmark = pytest.mark.engine
ANY_STEP = f'{STATES} canHandleVariableCommunicationStepSize="true"'
INTERPOLATES = f'{ANY_STEP} canInterpolateInputs="true"'


def pair(path, others=None, **options):
    """a.s' = -b.s, b.s' = a.s + 1, so that b.s = sin t and a.s = cos t - 1."""
    d = Diagram("pair", step=0.01)
    a = d.add(Fmu(path, **options), name="a")
    b = d.add(Fmu(**({"path": path} | options | (others or {}))), name="b")
    zero, one = d.add(Constant(0.0), name="zero"), d.add(Constant(1.0), name="one")
    back, plus = d.add(Gain(-1.0), name="back"), d.add(Sum("++"), name="plus")
    d.connect(b["s"], back)
    d.connect(a["s"], plus["u1"])
    d.connect(one, plus["u2"])
    for name, source in (("a", back), ("b", plus)):
        mux = d.add(Mux(2), name=f"to_{name}")
        d.connect(source, mux["u1"])
        d.connect(zero, mux["u2"])
        d.connect(mux, d[name]["w"])
    return d


@pytest.mark.parametrize("options", EVERY[1:], ids=EVERY_ID[1:])
@pytest.mark.parametrize("method", ["fixed-point", "newton"])
def test_iterated_couplings_give_the_bits_of_the_engine(specimen, method, options):
    runs = [
        simulate(pair(specimen, others), 0.2, coupling=method, extrapolation=1)
        for others in (dict[str, Any](), options)
    ]
    for signal_name in ("a.s", "b.s", "a.q", "b.q"):
        assert np.array_equal(runs[0][signal_name], runs[1][signal_name])
    # Linear interpolation over 10 ms: the local error h^3/12 adds up to 0.2 h^2/12 = 2e-6.
    assert runs[1]["b.s"] == pytest.approx(np.sin(runs[1].t), abs=2e-5)


@pytest.mark.parametrize("extrapolation", [1, 2])
def test_derivatives_of_inputs_reach_an_isolated_fmu(tmp_path, extrapolation):
    path = make_specimen(tmp_path / "s.fmu", xml=description(INTERPOLATES))
    runs = [
        simulate(pair(path, isolate=isolate), 0.2, coupling="newton", extrapolation=extrapolation)
        for isolate in (False, True)
    ]
    assert np.array_equal(runs[0]["b.q"], runs[1]["b.q"])
    held = make_specimen(tmp_path / "held.fmu")
    other = simulate(pair(held), 0.2, coupling="newton", extrapolation=extrapolation)
    assert not np.array_equal(other["b.q"], runs[0]["b.q"])  # so they made a difference


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_a_discarded_step_is_taken_in_parts(tmp_path, options):
    """It takes no steps above 3 ms, so that 10 ms are four quarters."""
    path = make_specimen(tmp_path / "any.fmu", xml=description(ANY_STEP))
    limits = {"parameters": {"trouble": TROUBLE["too_long"], "at": 0.003}, **options}
    d = pair(path, limits)
    with d.compile(coupling="newton", extrapolation=2).instantiate() as instance:
        instance.run(20)
        assert instance.get("coupling.a+b.shortened") == 20
        assert instance.get("b.s") == pytest.approx(np.sin(0.2), abs=1e-6)


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_an_fmu_that_keeps_only_final_steps_is_coupled(tmp_path, options):
    """fmi2DoStep is promised that a repeated step starts from its own start."""
    path = make_specimen(tmp_path / "s.fmu", flags=("-DCOMMITS",))
    runs = [
        simulate(pair(path, others), 0.1, coupling="newton")
        for others in (dict[str, Any](), options)
    ]
    assert np.array_equal(runs[0]["b.s"], runs[1]["b.s"])
    assert runs[1]["b.s"][-1] > 0.09


@pytest.mark.parametrize("options", EVERY[1:], ids=EVERY_ID[1:])
def test_an_fmu_without_states_says_so(tmp_path, options):
    from biella import DiagramError

    path = make_specimen(tmp_path / "s.fmu", xml=description(flags=""))
    d = pair(path, options)
    d.couple("a", "b", method="newton")
    with pytest.raises(DiagramError, match="`a`, `b` cannot repeat a step"):
        d.compile()


@pytest.mark.parametrize("backend", ["engine", "fmpy", "pyfmi"])
@pytest.mark.parametrize("flag", ["-DFAULTY_STATES", "-DFAULTY_RESTORE"])
def test_a_crash_while_a_step_is_taken_back_is_reported(tmp_path, backend, flag):
    path = make_specimen(tmp_path / "bad.fmu", flags=(flag,))
    good = make_specimen(tmp_path / "good.fmu")
    diary = tmp_path / "diary"
    others = {"path": path, "parameters": {}, "isolate": True, "backend": backend}
    d = pair(good, others, parameters={"diary": str(diary)})
    with pytest.raises(
        BlockError, match=r"`b` .*the FMU `bad.fmu` crashed: its process was terminated by SIGSEGV"
    ) as caught:
        simulate(d, 0.1, coupling="newton")
    assert caught.value.time == 0.0
    assert diary.read_text().split()[-2:] == ["terminate", "free"]
    assert no_children()


def no_children() -> bool:
    """Whether this process has no child, not even one that waits to be collected."""
    try:
        return os.waitpid(-1, os.WNOHANG) == (0, 0) and not _workers(os.getpid())
    except ChildProcessError:
        return True


def _workers(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(state[1]) == parent and b"_worker" in (entry / "cmdline").read_bytes():
            found.append(int(entry.name))
    return found


HANGING = """
import sys
from biella import Diagram, Fmu, simulate
d = Diagram("hangs", step=0.01)
d.add(Fmu(sys.argv[1], isolate=True, parameters={"trouble": 6, "at": 0.02}), name="f")
print("ready", flush=True)
simulate(d, 0.1, progress=False)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_the_worker_ends_with_a_killed_parent(specimen):
    """Even while the FMU hangs in a step."""
    command = [sys.executable, "-c", HANGING, str(specimen)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        workers = wait_for(lambda: _workers(parent.pid))
        parent.send_signal(signal.SIGKILL)
    assert wait_for(lambda: not any(_is_alive(worker) for worker in workers))
    from biella.fmu.importer._archive import sweep

    sweep()  # what both could not remove


def _is_alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def wait_for(condition):
    for _ in itertools.repeat(None, 600):
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("not within 30 s")


@pytest.mark.parametrize("options", [EVERY[1], EVERY[3], EVERY[5]], ids=EVERY_ID[1::2])
def test_no_process_is_left_after_a_run(specimen, options):
    simulate(pair(specimen, **options), 0.05, coupling="newton")
    assert no_children()


def test_the_message_of_a_step_that_is_taken_back_goes_with_it(tmp_path):
    """It takes no step, not even the shortest part of one: the error tells of one attempt."""
    path = make_specimen(tmp_path / "any.fmu", xml=description(ANY_STEP))
    d = pair(path, {"parameters": {"trouble": TROUBLE["too_long"], "at": 0.0}})
    with pytest.raises(BlockError) as error:
        simulate(d, 0.05, coupling="newton", extrapolation=2)
    assert str(error.value).count("s are too long") == 1
