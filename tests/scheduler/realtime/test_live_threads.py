"""The threads of a real-time run: loop and recorder, also when the process ends."""

import numpy as np
import pytest

from biella.scheduler.realtime.log._replay import find_differences, replay
from biella.scheduler.results._result import Result

from .live_runs import in_a_process, processes

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def end_processes():
    """Leave none behind, also after a failure or a time limit."""
    yield
    while processes:
        with processes.pop() as process:
            process.kill()


def test_a_process_that_ends_ends_its_runs(tmp_path):
    process = in_a_process(f"""
        import live_runs
        from biella import run_realtime
        run = run_realtime(live_runs.loop(), out={str(tmp_path / "log.h5")!r})
        run.latest("plant")
    """)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0 and not errors
    log = Result.from_hdf5(tmp_path / "log.h5")
    assert log.info["stopped"].startswith("ended with the process at t = ")


def test_a_killed_process_leaves_its_log(tmp_path):
    process = in_a_process(f"""
        import live_runs, time
        from biella import Result, run_realtime
        path = {str(tmp_path / "log.h5")!r}
        run = run_realtime(live_runs.loop(), out=path)
        live_runs.wait_until(lambda: Result.from_hdf5(path).log.ticks > 500)
        print("goes", flush=True)
        time.sleep(100)
    """)
    assert process.stdout.readline() == "goes\n"
    process.kill()
    process.communicate(timeout=300)
    log = Result.from_hdf5(tmp_path / "log.h5")
    assert log.log is not None
    assert log.length > 100 and log.log.ticks > 500
    assert log.log.input_log["tick"].max() >= log.log.ticks - 1


def test_a_run_on_a_full_disk_goes_on(tmp_path):
    """The limit of the file's size stands for a full disk, and is lifted during the run."""
    process = in_a_process(
        f"""
        import os, resource, live_runs, warnings
        from biella import run_realtime
        from biella.scheduler.results import _recorder as recorder
        recorder._BLOCK_ROWS, recorder._CHUNK_BYTES = 500, 8000
        warnings.simplefilter("always")
        run = run_realtime(live_runs.loop(), out={str(tmp_path / "log.h5")!r})
        live_runs.wait_until(lambda: run._recorder.rows_kept > 0)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        size = os.path.getsize({str(tmp_path / "log.h5")!r})
        kept = run._recorder.rows_kept
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        live_runs.wait_until(lambda: run._recorder.rows_dropped > 200)
        full = run._recorder.rows_kept
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        live_runs.wait_until(lambda: run._recorder.rows_kept > full + 2000)
        result = run.stop()
        info = result.info["realtime"]
        print(kept, info["ticks"], info["rows_lost"], info["entries_lost"], info["gaps"],
              info["recorder"], sep="|")
        """
    )
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    kept, ticks, lost, entries_lost, gaps, trouble = out.strip().split("|")
    (gap,) = eval(gaps)
    assert gap["of"] == "rows"
    log = Result.from_hdf5(tmp_path / "log.h5")
    present = np.rint(log.t / 1e-3).astype(int)
    missing = sorted(set(range(int(ticks) + 1)) - set(present.tolist()))
    assert missing == list(range(gap["first"], gap["last"] + 1))
    assert len(missing) == int(lost) > 200
    assert int(kept) <= gap["first"] and gap["last"] < int(ticks) - 500
    assert log.log is not None
    assert int(entries_lost) == 0 and log.log.ticks == int(ticks)
    assert find_differences(log, replay(log)) == []
    assert "larger than the system allows" in trouble
    span = f"lost: t = {gap['first'] * 1e-3:.9g} to {gap['last'] * 1e-3:.9g} s."
    told = f"{log.length} of {int(ticks) + 1} rows are recorded in `{tmp_path / 'log.h5'}`; {span}"
    assert log.info["recording"].startswith(told) and told in str(log)
    assert f"BiellaWarning: {told} Cannot write" in errors
