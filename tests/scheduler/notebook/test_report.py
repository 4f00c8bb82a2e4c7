"""Reports of real-time runs in notebooks and terminals."""

import pytest

from biella import Diagram, run_realtime
from biella.blocks import Gain, Sine
from biella.scheduler.realtime._realtime_report import RealtimeReport

from ..realtime.test_realtime_report import FIGURES, info

BINS = [[0.0, 1.6e-8, 3], [1e-6, 1.2e-6, 90], [1e-3, 1.2e-3, 1]]


def test_a_report_has_its_tables_and_the_histogram_of_lateness():
    late = {**FIGURES, "bins": BINS}
    blocks = {"<b>pid": FIGURES}
    made = RealtimeReport(info(lateness=late, blocks=blocks), "loop <x>")._repr_html_()
    assert "loop &lt;x&gt;" in made and "200 ticks on the wall clock" in made
    assert made.count("<rect") == 3 and "1000 to 1200: 1<" in made
    assert '<td>lateness</td><td class="number">1</td>' in made
    assert "<td>&lt;b&gt;pid</td>" in made and "100.0 %" in made


def test_a_report_of_an_earlier_release_has_no_histogram():
    made = RealtimeReport(info())._repr_html_()
    assert "<svg" not in made and "Real-time run" in made and "p99" in made


def test_a_report_is_one_line_in_a_terminal():
    told = repr(RealtimeReport(info(), "loop"))
    assert told == (
        "RealtimeReport('loop': 200 ticks on the wall clock; it ended: its end time; "
        "lateness p99 5 µs)"
    )


@pytest.mark.engine
def test_the_bins_of_a_run_count_its_ticks():
    d = Diagram("run")
    d.add(Gain(1.0), "g", u=d.add(Sine(), "s"))
    with run_realtime(d, until=0.05) as run:
        report = run.wait().realtime_report()
    figures = report.info["lateness"]
    assert sum(count for *_, count in figures["bins"]) == figures["count"] > 0
    assert figures["bins"][0][0] <= figures["min"] and figures["bins"][-1][1] >= figures["max"]
    assert "<rect" in report._repr_html_()
