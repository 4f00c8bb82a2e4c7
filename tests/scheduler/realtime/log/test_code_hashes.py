"""A replay runs the code that the user names, and only if it is what was run."""

import numpy as np
import pytest

from biella import BiellaError, Diagram, Fmu, replay, run_realtime
from biella.blocks import Expression, Gain, Integrator, Port, PythonBlock, Sine, python_block
from biella.scheduler.realtime.log._code_hashes import check_table, hash_code
from biella.scheduler.realtime.log._replay import find_differences
from biella.scheduler.results._result import Result

pytestmark = pytest.mark.engine


def export(path, gain):
    d = Diagram("stage", step=1e-3)
    u = d.input("u", default=0.0)
    d.output("y", d.add(Expression(f"{gain} * u"), name="k", u=u))
    d.export_fmu(path, sources=False)
    return path


def loop(block=None):
    d = Diagram("loop", step=1e-3)
    stage = d.add(block or Gain(1.0), name="stage", u=d.add(Sine(frequency=2.0), name="ref"))
    d.connect(stage, d.add(Integrator(0.0), name="x"))
    return d


def run(d, path, **options):
    return run_realtime(d, 0.02, clock="free", out=path, **options).wait()


def test_an_fmu_that_has_changed_is_named(tmp_path):
    file = export(tmp_path / "stage.fmu", 2.0)
    first = run(loop(Fmu(file)), tmp_path / "log.h5")
    assert find_differences(first, replay(tmp_path / "log.h5", loop(Fmu(file)))) == []
    digest = first.info["code"]["stage"]
    assert len(digest) == 64
    (tmp_path / "other").mkdir()
    other = export(tmp_path / "other" / "stage.fmu", 3.0)
    with pytest.raises(
        BiellaError, match=rf"`stage` ran code with SHA-256 {digest[:16]}…, and has"
    ):
        replay(tmp_path / "log.h5", loop(Fmu(other)))
    changed = replay(tmp_path / "log.h5", loop(Fmu(other)), allow_changed_code=True)
    np.testing.assert_allclose(changed["stage.y"], 1.5 * first["stage.y"], atol=1e-12)


def test_an_fmu_that_only_the_log_names_is_not_loaded(tmp_path):
    """The binding of the run is in the log; its FMU may have been exchanged by anybody."""
    file = export(tmp_path / "stage.fmu", 2.0)
    (tmp_path / "rig.toml").write_text('[blocks.stage]\nfmu = "stage.fmu"\n')
    first = run(loop(), tmp_path / "log.h5", bind=tmp_path / "rig.toml")
    with pytest.raises(BiellaError, match=r"names the FMU `stage\.fmu`\. Code is not loaded by"):
        replay(tmp_path / "log.h5", loop())
    again = replay(tmp_path / "log.h5", loop(), bind=tmp_path / "rig.toml")
    assert find_differences(first, again) == []
    export(file, 3.0)
    with pytest.raises(BiellaError, match="the code of the run has changed"):
        replay(tmp_path / "log.h5", loop(), bind=tmp_path / "rig.toml")


def test_a_driver_of_another_package_is_not_loaded_by_a_log():
    check_table({"devices": {"a": {"driver": "udp"}, "b": {"driver": "modbus"}}})
    with pytest.raises(BiellaError, match="names the driver `vendor`"):
        check_table({"devices": {"a": {"driver": "udp"}, "b": {"driver": "vendor"}}})
    with pytest.raises(BiellaError, match=r"names the FMU `a\.fmu`, the FMU `b\.fmu`"):
        check_table({"blocks": {"x": {"fmu": "a.fmu"}, "s": {"inner": {"fmu": "b.fmu"}}}})


def make(factor):
    if factor == 2:

        class Scale(PythonBlock):
            def __init__(self):
                super().__init__(inputs=[Port("u")], outputs=[Port("y")], period=1e-3)

            def output(self, t, x, u):
                return 2 * u  # this is not code

    else:

        class Scale(PythonBlock):  # type: ignore[no-redef]
            def __init__(self):
                super().__init__(inputs=[Port("u")], outputs=[Port("y")], period=1e-3)

            def output(self, t, x, u):
                return 3 * u

    return Scale()


def test_a_python_block_that_has_changed_is_named(tmp_path):
    run(loop(make(2)), tmp_path / "log.h5")
    replay(tmp_path / "log.h5", loop(make(2)))
    with pytest.raises(BiellaError, match=r"the code of the run has changed.*`stage` ran code"):
        replay(tmp_path / "log.h5", loop(make(3)))
    changed = replay(tmp_path / "log.h5", loop(make(3)), allow_changed_code=True)
    log = Result.from_hdf5(tmp_path / "log.h5")
    assert find_differences(log, changed) == ["stage.y", "x.y"]


def test_the_hash_of_a_function_is_of_its_own_code():
    @python_block(inputs=["u"], outputs=["y"])
    def one(u):
        return 2 * u

    @python_block(inputs=["u"], outputs=["y"])
    def two(u):
        return 3 * u

    found = [hash_code(loop(block()).compile())["stage"] for block in (one, one, two)]
    assert found[0] == found[1] != found[2] and all(found)
