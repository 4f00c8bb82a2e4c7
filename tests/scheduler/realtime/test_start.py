"""Starting a real-time run: options, bindings, and starts that are refused."""

import pytest

from biella import BiellaError, run_realtime
from biella.blocks import (
    Constant,
)

from .live_runs import loop, start_bound

pytestmark = pytest.mark.engine


def test_the_name_realtime_may_not_be_taken_by_something_else():
    d = loop()
    d.add(Constant(1.0), name="realtime")
    with pytest.raises(BiellaError, match="name `realtime` is already used"):
        run_realtime(d, 0.01)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clock": "sun"}, "clock must be `wall`, `free` or `device:NAME`"),
        ({"clock": "device:board"}, "no device `board` to use as the clock"),
        ({"overrun": "skipp"}, "Did you mean `skip`"),
        ({"factor": 0.0}, "factor must be positive"),
        ({"every": 0}, "every must be at least 1"),
        ({"until": -1.0}, "is before the start"),
        ({"record": ["plnat"]}, "no signal `plnat`"),
        ({"parameters": {"pid.kq": 1.0}}, "no parameter or input"),
    ],
)
def test_a_bad_start_starts_nothing(options, words):
    with pytest.raises(BiellaError, match=words):
        run_realtime(loop(), **options)
    with pytest.raises(BiellaError, match="requires a Diagram or a Plan"):
        run_realtime("loop")  # type: ignore[arg-type]
    with pytest.raises(BiellaError, match="the step and the solver of a Plan"):
        run_realtime(loop().compile(), step=1e-3)


def test_a_bound_run_takes_its_options_from_the_binding_unless_they_are_given(monkeypatch):
    frames = [(k, float(k)) for k in range(1, 50)]
    said = {"clock": "device:board", "until": 0.02, "every": 2}
    run, device, binding = start_bound(monkeypatch, frames, said, every=1)
    result = run.wait()
    assert result["board.y"][:20].tolist() == list(range(1, 21))
    assert result.info["realtime"]["clock"] == "device:board"
    assert result.info["realtime"]["devices"] == {"board": {"frames": 3}}
    assert binding.closed
    assert device.safe_sent == [-7.0] * 3
    device.__exit__()


def test_a_plan_cannot_be_bound():
    """Its blocks cannot be replaced any more, so devices would be ignored silently."""
    with pytest.raises(BiellaError, match="a Plan cannot be bound to devices"):
        run_realtime(loop().compile(), 0.01, bind={"devices": {}}).wait()
