"""Instances of FMUs in C: calls, messages, saved states."""

from __future__ import annotations

from typing import Any

import pytest
from specimen import TROUBLE, make_specimen

from biella import (
    BiellaError,
    BlockError,
    Diagram,
    Fmu,
    simulate,
)
from biella.scheduler.engine._engine import Instance
from biella.scheduler.engine._library import contract, library

from .runs import alone, fail

pytestmark = pytest.mark.engine


def test_the_life_of_an_instance(specimen, tmp_path):
    diary = tmp_path / "diary"
    alone(specimen, 0.02, tolerance=1e-4, parameters={"diary": str(diary)})
    assert diary.read_text().split("\n") == [
        "instantiate", "setup 1 0.0001 0 0", "enter", "exit", "terminate", "free", "",
    ]  # fmt: skip
    diary.unlink()
    with_log = Diagram("logged", step=0.01, start_time=5.0)
    with_log.add(Fmu(specimen, logging=["one", "two"], parameters={"diary": str(diary)}), name="f")
    with Instance(with_log.compile()) as instance:
        instance.initialize()
        instance.evaluate()
        instance.initialize()
    assert diary.read_text().split("\n") == [
        "instantiate", "one", "two", "setup 0 0 5 0", "enter", "exit", "terminate", "free",
        "instantiate", "one", "two", "setup 0 0 5 0", "enter", "free", "",
    ]  # fmt: skip


def test_messages_are_formatted_and_percent_signs_do_no_harm(specimen, tmp_path):
    error, *_ = fail(specimen, "chatter", tmp_path)
    text = str(error)
    for line in (
        "[fmi2Warning, warning] load is 100%;",
        "[fmi2Warning, warning] 100%n of 5%hhn;",
        "[fmi2Warning] valve 7 at 12.50 %, state open;",
        "[fmi2Warning, warning] two lines",
    ):
        assert line in text


def test_only_the_last_messages_are_kept(specimen):
    d = Diagram("many", step=0.01)
    chatter = {"trouble": TROUBLE["chatter"], "at": 0.0}
    d.add(Fmu(specimen, parameters=chatter), name="f")
    with Instance(d.compile()) as instance:
        for _ in range(10):
            instance.initialize()
            with pytest.raises(BlockError):
                instance.run(1)
        attached: Any = instance.external[0]
        assert len(attached.messages) == 4


def test_states_are_kept_in_slots_and_as_bytes(specimen):
    d = Diagram("states", step=0.01)
    d.add(Fmu(specimen), name="f")
    with d.compile().instantiate() as instance:
        kept = [instance.save()]
        instance.run(5)
        kept.append(instance.save())
        values = [instance.get("f.y")]
        instance.run(5)
        values.append(instance.get("f.y"))
        instance.restore(kept[1])
        assert instance.get("f.y") == values[0]
        instance.run(5)
        assert instance.get("f.y") == values[1]
        instance.restore(kept[0])  # in initialization mode
        assert instance.time == 0.0 and instance.get("f.y") == 1.0
        instance.run(10)
        assert instance.get("f.y") == values[1]


def test_inputs_are_set_again_after_a_state_was_put_back(specimen):
    """The state that comes back holds old inputs: what was set since then must be set again."""
    d = Diagram("inputs", step=0.01)
    f = d.add(Fmu(specimen), name="f")
    d.connect(d.input("w", width=2), f["w"])
    d.connect(d.input("u", unit="m"), f["u"])
    with d.compile().instantiate() as instance:
        instance.run(1)
        kept = instance.save()
        for _ in range(2):
            instance.restore(kept)
            instance.set("w", [1.0, 0.0])
            instance.set("u", 3.0)
            assert instance.get("f.y") == 6.0
            instance.run(1)
            assert instance.get("f.s") == 0.01


def test_a_parameter_is_set_again_after_a_state_was_put_back(specimen):
    """The state was saved between a change of `k` and the outputs that tell the FMU of it."""
    d = Diagram("tune", step=0.01)
    d.add(Fmu(specimen), name="f")
    with d.compile().instantiate() as instance:
        instance.run(1)
        instance.set("f.k", 4.0)
        kept, values = instance.save(), []
        for _ in range(2):
            values.append(instance.get("f.y"))
            instance.restore(kept)
        assert values == [2.005, 2.005]


def test_after_a_state_was_handed_out_steps_may_be_taken_back(tmp_path):
    diary = tmp_path / "diary"
    path = make_specimen(tmp_path / "s.fmu", flags=("-DCOMMITS",))
    d = Diagram("states", step=0.01)
    d.add(Fmu(path, parameters={"diary": str(diary)}), name="f")
    with d.compile().instantiate() as instance:
        instance.run(1)
        instance.save()
        instance.run(2)
        instance.reset()
        instance.run(1)
    steps = [line for line in diary.read_text().split("\n") if line.startswith("step")]
    assert steps == ["step 0 1", "step 0.01 1", "step 0.02 0", "step 0 1"]


@pytest.mark.parametrize(
    "environment", ["((void *)0x1234)", "NULL", "(i)", "((void *)(i)->name)", "((void *)-1L)"]
)
def test_a_message_with_a_wrong_environment_is_kept_all_the_same(tmp_path, environment):
    path = make_specimen(tmp_path / "s.fmu", flags=(f"-DENVIRONMENT(i)={environment}",))
    error, *_ = fail(path, "chatter", tmp_path)
    assert "valve 7 at 12.50 %, state open;" in str(error)


@pytest.mark.parametrize(
    "wrong",
    [
        {"library": None},
        *({f"{name}_count": -1} for name in (
            "string", "string_reference", "binary", "binary_reference", "log_category", "name",
        )),
        None,
    ],
)  # fmt: skip
def test_a_source_that_describes_no_fmu_is_refused(specimen, wrong):
    d = Diagram("attached", step=0.01)
    d.add(Fmu(specimen), name="f")
    with Instance(d.compile()) as instance:
        source = None
        if wrong is not None:
            source = contract.bl_fmu_source(**({"library": b"nothing.so"} | wrong))
        assert library().bl_attach_fmu(instance.handle, 0, source) < 0
        assert library().bl_message(instance.handle) == b"block 0 cannot hold an FMU"
        instance.initialize()  # what it holds is still there
        instance.run(1)


def test_what_an_fmu_was_given_is_freed_with_it(specimen, allocated):
    """Each of ten instances is given 4 MB of text."""
    d = Diagram("freed", step=0.01)
    d.add(Fmu(specimen, parameters={"diary": "/" * (1 << 22)}), name="f")
    plan = d.compile()

    def hold() -> int:
        with Instance(plan):
            pass
        return allocated()

    before = hold()
    assert max(hold() for _ in range(10)) < before + (1 << 24)


def test_no_state_is_saved_that_nobody_asked_for(tmp_path):
    """In 0.1 the process crashed here, after the run."""
    path = make_specimen(tmp_path / "s.fmu", flags=("-DFAULTY_STATES",))
    d = Diagram("states", step=0.01)
    d.add(Fmu(path), name="f")
    result = simulate(d, 0.1)
    assert result["f.y"][-1] > 1.0
    with pytest.raises(BiellaError, match=r"`s.fmu` was not saved. Save it .*keep_state=True"):
        simulate(d, 0.2, checkpoint=result.checkpoint)
    assert simulate(d, 0.1, keep_state=False).checkpoint is None
