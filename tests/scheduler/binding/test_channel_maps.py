"""Which values of a port go with which elements of channels, and what does not fit."""

import pytest

from biella.blocks.core._ports import Port
from biella.blocks.core._units import parse_unit
from biella.scheduler.binding._channel_maps import ChannelMaps, element_of, start_of
from biella.scheduler.binding._rig import Channel, DeviceEntry

NO_LIMIT = float("inf")


def entry(*receive, send=()):
    ins, outs = ({channel.name: channel for channel in side} for side in (receive, send))
    return DeviceEntry("card", None, 0.0, "stop", ins, outs, {})


@pytest.fixture
def maps():
    """Maps that note their problems."""
    made = ChannelMaps(lambda where, key, text: made.said.append(text))  # type: ignore[attr-defined]
    made.said = []  # type: ignore[attr-defined]
    return made


def tie(maps, device, *names, port=None, path="pid.u", incoming=True):
    return maps.map_channel(port or Port("u"), path, device, incoming, names, "signals", path)


def test_a_vector_takes_a_wide_channel_or_elements_in_any_order(maps):
    device = entry(Channel("force", width=3), Channel("speed"))
    whole = tie(maps, device, "force", port=Port("u", 3), path="a.u")
    assert whole.names == ["force[0]", "force[1]", "force[2]"] and whole.incoming
    other = entry(Channel("force", width=3), Channel("speed"))
    some = tie(ChannelMaps(print), other, "force[2]", "speed", "force[0]", port=Port("u", 3))
    assert some.names == ["force[2]", "speed", "force[0]"]
    assert maps.said == [] and maps.channel_maps == [whole]


@pytest.mark.parametrize(
    ("names", "width", "message"),
    [
        (("force",), 2, "`pid.u` has 2 values, but force of `card` is 3 values"),
        (("speed", "turn"), 1, "`pid.u` has 1 value, but speed, turn of `card` are 2 values"),
        (("sped",), 1, "no channel `sped` from `card`. Did you mean `speed`"),
        (("motor",), 1, "no channel `motor` from `card`. It goes to the device, not from it"),
        (("force[3]",), 1, "channel `card.force` has 3 values: there is no `force[3]`"),
        (("speed[1]",), 1, "channel `card.speed` has 1 value: there is no `speed[1]`"),
        (("speed", "speed"), 2, "channel `card.speed` is used twice"),
        (("spare",), 1, "channel `card.spare` is declared as unused"),
    ],
)
def test_what_does_not_fit_is_said(maps, names, width, message):
    device = entry(
        Channel("force", width=3), Channel("speed"), Channel("turn"),
        Channel("spare", unused=True), send=[Channel("motor")],
    )  # fmt: skip
    tie(maps, device, *names, port=Port("u", width))
    (said,) = maps.said
    assert message in said


def test_a_channel_belongs_to_one_port(maps):
    device = entry(Channel("force", width=2))
    assert tie(maps, device, "force[0]", path="a.u")
    assert tie(maps, device, "force[1]", path="b.u")
    assert tie(maps, device, "force[1]", path="c.u") is None
    assert maps.said == ["channel `card.force[1]` is used twice: by `b.u` and by `c.u`."]


def test_the_two_sides_of_a_device_are_apart(maps):
    device = entry(Channel("x"), send=[Channel("x")])
    assert tie(maps, device, "x", path="a.u")
    assert tie(maps, device, "x", path="b.y", incoming=False) and maps.said == []


def test_another_scale_is_reported_with_what_to_write(maps):
    """0.01 bar a count, limits of 0 and 5 bar: in Pa, 1000 a count, limits of 0 and 500000."""
    channel = Channel(
        "p", unit=parse_unit("bar"), scale=0.01, offset=1.0, low=0.0, high=5.0, safe=(1.0,)
    )
    assert tie(maps, entry(channel), "p", port=Port("u", unit="Pa")) is None
    assert maps.said == [
        "`pid.u` is in Pa, but channel `card.p` is in bar: same dimension, another scale. In "
        '[devices.card.receive.p] write unit = "Pa", scale = 1000, offset = 100000, '
        "limits = [0, 500000], safe = 100000."
    ]


def test_another_dimension_is_reported_with_the_channels_that_would_fit(maps):
    device = entry(Channel("v", unit=parse_unit("m/s")), Channel("f", unit=parse_unit("N")))
    assert tie(maps, device, "v", port=Port("u", unit="N")) is None
    assert maps.said == ["`pid.u` is in N, but channel `card.v` in m/s. Did you mean `f`?"]
    alone = entry(Channel("v", unit=parse_unit("m/s")))
    tie(maps, alone, "v", port=Port("u", unit="K"), path="b.u")
    assert 'write unit = "K"' in maps.said[-1]


def test_what_has_no_unit_fits_everything(maps):
    assert tie(maps, entry(Channel("v")), "v", port=Port("u", unit="N")).unit == "N"
    assert tie(maps, entry(Channel("w", unit=parse_unit("N"))), "w", path="b.u").unit is None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("force[1]", ("force", 1)),
        ("force", ("force", None)),
        ("a[0][12]", ("a[0]", 12)),
        ("force[-1]", ("force[-1]", None)),
        ("force[1] ", ("force[1] ", None)),
        ("force[123456789]", ("force[123456789]", None)),
        ("[1]", ("[1]", None)),
    ],
)
def test_names_of_elements(name, found):
    assert element_of(name) == found


def test_until_the_first_frame_a_value_is_safe_or_the_nearest_to_zero():
    assert start_of(Channel("x", width=2, safe=(3.0, 4.0)), 1) == 4.0
    assert start_of(Channel("x"), 0) == 0.0
    assert start_of(Channel("x", low=2.0, high=5.0), 0) == 2.0
    assert start_of(Channel("x", low=-5.0, high=-2.0), 0) == -2.0


def test_names_of_an_enumeration_must_be_those_of_the_port(maps):
    device = entry(Channel("mode", names=("off", "on")), Channel("plain"))
    named = Port("u", kind="enumeration", names=("off", "on"))
    assert tie(maps, device, "mode", port=named) is not None
    assert tie(maps, device, "plain", port=named, path="b.u") is not None
    maps.used.clear()
    other = Port("u", kind="enumeration", names=("on", "off"))
    assert tie(maps, device, "mode", port=other) is None
    maps.used.clear()
    assert tie(maps, device, "mode") is None
    assert maps.said == [
        "channel `card.mode` is an enumeration of off, on, but `pid.u` is one of on, off.",
        "channel `card.mode` is an enumeration of off, on, but `pid.u` has no names.",
    ]
