"""A recorded moment: its values and poses."""

import numpy as np
import pytest

from biella import BiellaError
from biella.scheduler.results._signals import Signal
from biella.studio._scrub import find_row, show_moment, show_values
from biella.studio._session import View

from .client import open_studio, write_rig
from .test_branches import run_to

pytestmark = pytest.mark.engine

MECHANISM = """
    from biella import Diagram
    from biella.blocks.multibody.mechanisms import slider_crank

    def diagram():
        d = Diagram("crank", step=1e-3)
        d.add(slider_crank().block(outputs=["main.angle"]), "plant")
        return d
"""


def test_a_moment_has_the_values_and_the_poses_of_its_row(tmp_path):
    with open_studio(write_rig(tmp_path, MECHANISM)) as (session, _, page):
        assert "nothing is recorded yet" in page.refused("moment", t=0.0)
        run_to(session, page, 500)
        assert session.view.mechanisms
        page.binary.clear()
        assert page.do("moment", t=0.3004)["t"] == pytest.approx(0.3)
        page.wait(lambda: any(head[0] == 3 and head[4] == 1 for head, _ in page.binary))
        rows = session.view.rows.read(300, 301)[1][:, 0]
        found = [content for head, content in page.binary if head[0] == 3 and head[4] == 1]
        assert found[-1].tobytes() == rows.tobytes()
        for number, mechanism in enumerate(session.view.mechanisms):
            page.wait(lambda n=number: any(h[0] == 2 and h[1] == n for h, _ in page.binary))
            pose = [c for h, c in page.binary if h[0] == 2 and h[1] == number and h[4] == 1]
            assert pose[-1].tolist() == rows[[0, *mechanism.columns]].tolist()
        assert "`t` is a finite number" in page.refused("moment")


class Rows:
    """Rows at these times, of which the first ones may be gone; values are ten times the time."""

    interval = 1.0

    def __init__(self, times, begin=0):
        self.times, self.begin, self.end = np.asarray(times, float), begin, len(times)

    def find(self, time):
        return max(self.begin, int(np.searchsorted(self.times, time)))

    def read(self, first, end, columns=None):
        first = max(first, self.begin)
        table = np.vstack([self.times, 10 * self.times, 10 * self.times])[:, first:end]
        return first, table[range(3) if columns is None else columns]


def view_of(rows, *signals):
    columns = {signal.path: (n, 1) for n, signal in enumerate(signals, 1)}
    return View(rows, columns, {signal.path: signal for signal in signals})


@pytest.mark.parametrize(
    ("time", "row"), [(-9, 0), (0.0, 0), (0.4, 0), (0.6, 1), (2.4, 2), (2.6, 3), (3.0, 3), (9, 3)]
)
def test_the_nearest_row_is_found(time, row):
    assert find_row(view_of(Rows([0, 1, 2, 3])), time) == row
    assert find_row(view_of(Rows([0, 1, 2, 3], begin=2)), time) == max(row, 2)


def test_nothing_recorded_is_an_error():
    with pytest.raises(BiellaError, match="nothing is recorded yet"):
        show_moment(view_of(Rows([])), 1.0)


@pytest.mark.parametrize(
    ("time", "values"),
    [
        (1.0, [10, 10]),
        (1.0 - 1e-9, [10, 10]),
        (1.5, [15, 10]),
        (3.0, [30, 30]),
        (3.4, [30, 30]),
        (9.0, [np.nan, np.nan]),
        (-2.0, [np.nan, np.nan]),
    ],
)
def test_between_rows_signals_are_interpolated_unless_they_hold(time, values):
    signals = Signal("a"), Signal("b", kind="boolean")
    assert signals[1].holds_between_ticks and not signals[0].holds_between_ticks
    view = view_of(Rows([0, 1, 2, 3]), *signals)
    message = show_values(view, 7, time, view)
    assert np.frombuffer(message[:24], "<u4").tolist() == [3, 7, 2, 1, 1, 0]
    np.testing.assert_array_equal(np.frombuffer(message, "<f8", offset=24)[1:], values)
