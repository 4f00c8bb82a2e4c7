"""The ring of FMUs: every participant does the same work, and a wrong one is not measured."""

from __future__ import annotations

import math

import pytest

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ring")


@pytest.fixture(scope="module")
def ring_fmu(folder):
    from fmu import export_ring_fmu

    return export_ring_fmu(folder)


def expected_output(count):
    """Return the last output of the last FMU, by the equations in
    `benchmarks/workloads/ring.py`."""
    from workloads.ring import GAIN, STEP, starts, steps

    x = starts(count)
    for _ in range(steps(count)):
        x = [x[n] + STEP * GAIN * x[n - 1] for n in range(count)]
    return x[-1]


@pytest.mark.parametrize("count", [1, 2, 10, 100])
@pytest.mark.usefixtures("c_compiler")
def test_ours_and_the_bare_loop_run_the_ring(ring_fmu, folder, count):
    from fmu import build_loop, run_ours
    from workloads.ring import starts

    assert len(set(starts(count))) == count  # or the ring could be wired in any way
    ours = run_ours(ring_fmu, count)
    first, again = ours()[1], ours()[1]
    assert first == again == build_loop(ring_fmu, folder)(count)()[1]
    # 20,000 roundings of 1e-16 of numbers near 1.
    assert first == pytest.approx(expected_output(count), abs=1e-11)


@pytest.mark.usefixtures("c_compiler")
def test_fmi_3_gives_the_bits_of_fmi_2(ring_fmu, folder):
    """The bare loop with the calls of each version."""
    from fmu import build_loop, compare_versions, export_ring_fmu

    three = export_ring_fmu(folder, "3.0")
    loops = {"2.0": build_loop(ring_fmu, folder), "3.0": build_loop(three, folder)}
    for count in (1, 10):
        assert loops["2.0"](count)()[1] == loops["3.0"](count)()[1]
    row, note = compare_versions(loops, quick=True)
    assert row.ratio is not None and row.ratio > 0
    assert "FMI 3.0" in note


@pytest.mark.parametrize("package", ["fmpy", "libcosimpy", "cofmupy", "pyfmi"])
def test_a_peer_runs_the_ring(ring_fmu, package):
    from fmu import run_ours
    from peers.process import Peer
    from workloads.ring import work

    pytest.importorskip(package, reason=f"{package} is not installed")
    peer = Peer(package, None, str(ring_fmu))
    assert peer.version
    elapsed, output = peer.run(work(2), 1.0)
    assert elapsed > 0
    assert output == run_ours(ring_fmu, 2)()[1]
    assert peer.run("open", 1.0)[1] == pytest.approx(1.0, abs=1e-3)
    peer.close()


def test_different_outputs_are_not_measured():
    from fmu import check_agreement
    from turns import Entrant

    def entrants(*outputs):
        return [Entrant(f"e{n}", None, 1.0, output=output) for n, output in enumerate(outputs)]

    check_agreement("ring", entrants(1.0, 1.0, 1.0))
    for wrong in (math.nextafter(1.0, 2.0), math.nan, None):
        with pytest.raises(SystemExit, match="ring: the last outputs differ: e0"):
            check_agreement("ring", entrants(1.0, 1.0, wrong))
    for nothing in (math.nan, None):
        with pytest.raises(SystemExit, match="differ"):
            check_agreement("ring", entrants(nothing, nothing))


def test_rows_of_a_ring():
    from fmu import Contest, judge
    from turns import Entrant
    from workloads.ring import FMU_STEPS

    def enter(name, us):
        return Entrant(name, None, 1.0, rounds_best=[us * 1e-6 * FMU_STEPS])

    peers = {"fmpy": enter("FMPy 1", 3.0), "pyfmi": None}
    loop, fmpy, pyfmi = judge(Contest(1, enter("C", 0.05), enter("ours", 0.151), peers))
    assert (loop.ratio, loop.met) == (pytest.approx(3.02), False)
    assert (fmpy.ratio, fmpy.met) == (pytest.approx(3.0 / 0.151), False)
    assert (pyfmi.theirs, pyfmi.met) == (None, None)
    assert pyfmi.peer == "PyFMI: conda install -c conda-forge pyfmi"
    loop, fmpy, _ = judge(Contest(1, enter("C", 0.05), enter("ours", 0.149), peers))
    assert loop.met and fmpy.met
