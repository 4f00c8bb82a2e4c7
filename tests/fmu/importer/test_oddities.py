"""FMUs with one oddity each: they run as blocks, or fail with the message of the guide.

Others are tested where they belong: descriptions in ``test_repair.py``, archives in
``test_archive.py``, loggers and faulty state functions in ``test_host.py`` and
``test_rollback.py``,
late outputs, discard and termination in ``test_fmu.py``, repeated times in ``test_commands.py``.
"""

from __future__ import annotations

import pytest
from specimen import STATES, TROUBLE, description, make_specimen

from biella import BlockError, Diagram, Fmu, simulate
from biella.errors import FmuError

from .runs import BACKENDS, EVERY, EVERY_ID, IDS, alone

pytestmark = pytest.mark.engine


def both(path, first, second):
    d = Diagram("both", step=0.01)
    d.add(Fmu(path, **first), name="a")
    d.add(Fmu(path, **second), name="b")
    return simulate(d, 0.05)


@pytest.fixture
def single(tmp_path):
    xml = description(f'{STATES} canBeInstantiatedOnlyOncePerProcess="true"')
    return make_specimen(tmp_path / "single.fmu", xml=xml, flags=("-DSINGLE",))


@pytest.mark.parametrize("backend", ["engine", "fmpy"])
def test_an_fmu_of_one_instance_per_process(single, backend):
    for _ in range(2):  # one after the other is allowed
        assert alone(single, backend=backend)["f.y"][0] == 1.0
    own = {"backend": backend}
    with pytest.raises(FmuError, match=r"only once per process and is already.*isolate=True"):
        both(single, own, own)
    for first, second in (({"isolate": True}, {}), ({"isolate": True}, {"isolate": True})):
        result = both(single, own | first, own | second)
        assert result["a.y"].tolist() == result["b.y"].tolist()


def test_an_fmu_of_one_instance_that_does_not_say_so(tmp_path):
    path = make_specimen(tmp_path / "s.fmu", flags=("-DSINGLE",))
    with pytest.raises(BlockError, match=r"fmi2Instantiate returned no instance; .*there is one"):
        both(path, {}, {})


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_an_fmu_that_does_not_use_our_memory(tmp_path, options):
    xml = description(f'{STATES} canNotUseMemoryManagementFunctions="true"')
    path = make_specimen(tmp_path / "s.fmu", xml=xml, flags=("-DOWN_MEMORY",))
    assert alone(path, **options)["f.y"][0] == 1.0


def test_an_fmu_that_needs_its_tool(tmp_path):
    """It may be there; if no instance can be made, the message mentions it."""
    xml = description(f'{STATES} needsExecutionTool="true"')
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    assert alone(path)["f.y"][0] == 1.0
    path = make_specimen(tmp_path / "t.fmu", xml=xml.replace("{specimen}", "{other}"))
    with pytest.raises(BlockError, match=r"no instance \(its description requires the tool"):
        alone(path)


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_an_fmu_that_takes_one_length_of_steps(tmp_path, options):
    path = make_specimen(tmp_path / "s.fmu", flags=("-DREJECTS_STEPS",))
    assert alone(path, step=0.01, **options).t[-1] == pytest.approx(0.1)
    assert alone(path, step=0.02, substeps=2, **options).t[-1] == pytest.approx(0.1)
    with pytest.raises(BlockError, match=r"fmi2Discard|status 2|returned 2"):
        alone(path, step=0.02, **options)


@pytest.mark.parametrize("options", BACKENDS[:2], ids=IDS[:2])
def test_an_fmu_that_wants_to_run_asynchronously(tmp_path, options):
    """canRunAsynchronuously is allowed; it may then not return fmi2Pending unasked."""
    xml = description(f'{STATES} canRunAsynchronuously="true"')
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    assert alone(path, **options)["f.y"][0] == 1.0
    trouble = {"trouble": TROUBLE["pending"], "at": 0.05}
    with pytest.raises(BlockError, match=r"returned fmi2Pending at t = 0.05, although"):
        alone(path, parameters=trouble, **options)


@pytest.mark.parametrize("flags", ["", 'canSerializeFMUstate="true"'])
def test_flags_of_states_that_contradict_each_other(tmp_path, flags):
    """To serialize a state one must be able to get it: then there is none."""
    path = make_specimen(tmp_path / "s.fmu", xml=description(flags))
    block = Fmu(path)
    assert not block.can_roll_back
    assert alone(path)["f.y"][0] == 1.0


def test_functions_for_states_that_are_declared_but_missing(tmp_path):
    path = make_specimen(tmp_path / "s.fmu", flags=("-DWITHOUT_STATES",))
    with pytest.raises(FmuError, match=r"has no function fmi2GetFMUstate, although its descript"):
        alone(path)
    path = make_specimen(tmp_path / "t.fmu", xml=description(""), flags=("-DWITHOUT_STATES",))
    assert alone(path)["f.y"][0] == 1.0


def test_start_times_and_names_that_are_not_usual(tmp_path):
    experiment = '<DefaultExperiment startTime="-5" stepSize="0.01"/>'
    path = make_specimen(tmp_path / "s.fmu", xml=description(experiment=experiment))
    d = Diagram("early", step=0.01, start_time=-5.0)
    d.add(Fmu(path, instance_name="ünïcode name / 7"), name="f")
    assert simulate(d, -4.9).t[0] == -5.0
