"""Located events as pages get them: all while they are few, the newest when they are many."""

import numpy as np

from biella.scheduler.results.events._event_log import EventLog
from biella.scheduler.results.events._events import EVENT, EventSource
from biella.studio._marks import AT_ONCE, Marks


def append(log, count):
    events = np.zeros(count, EVENT)
    events["time"] = len(log.read()) + np.arange(count)
    log.append(events)


def test_few_events_come_once_and_of_many_the_newest():
    log = EventLog([EventSource("relay", "Relay", 1)])
    marks = Marks(3, log)
    assert marks.look() is None
    append(log, 2)
    told = marks.look()
    assert told == {
        "event": "marks",
        "run": 3,
        "total": 2,
        "list": [{"time": float(k), "block": "relay", "text": "switch"} for k in (0, 1)],
    }
    assert marks.look() is None
    append(log, 10_000)
    told = marks.look()
    assert told is not None and told["total"] == 10_002
    assert [item["time"] for item in told["list"]] == list(range(10_002 - AT_ONCE, 10_002))
    assert marks.describe()["list"][:2] == [
        {"time": float(k), "block": "relay", "text": "switch"} for k in (0, 1)
    ]


def test_what_later_pages_get_is_bounded():
    marks = Marks()
    for total in range(1, 3000):
        marks.take(total, [(float(total), "a", "limit")])
    kept = marks.describe()
    assert len(kept["list"]) == 1000 and kept["list"][-1]["time"] == kept["total"] == 2999
    assert marks.look() is None  # it has no log
