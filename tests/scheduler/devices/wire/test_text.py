"""Lines of numbers, as functions and over a real serial line."""

import ctypes
import locale
import math
import random
from ctypes import c_double
from functools import reduce

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ..conftest import open_serial
from ..native import CHECKSUM, DOUBLE, HOLD, MS, OK, Device, engine
from ..peer import SerialEnd, wait_for

pytestmark = pytest.mark.engine


def read(line: str | bytes, count: int, checksum: bool = False) -> list[float] | None:
    """Return the numbers that the engine reads from a line; None if it refuses."""
    data = line.encode() if isinstance(line, str) else line
    call = engine().bl_text_read
    values = (c_double * (count + 1))()
    buffer = ctypes.create_string_buffer(data, len(data) + 1)
    return values[:count] if call(buffer, len(data), count, checksum, values) else None


def write(values: list[float], wide: bool = False, checksum: bool = False) -> str:
    call = engine().bl_text_write
    line = ctypes.create_string_buffer(8191)
    size = call((c_double * (len(values) + 1))(*values), len(values), wide, checksum, line)
    return line.raw[:size].decode()


def summed(text: str) -> str:
    return f"{text}*{reduce(lambda a, b: a ^ b, text.encode(), 0):02X}"


@pytest.mark.parametrize(
    "line, values",
    [
        ("1", [1.0]),
        ("1,2", [1.0, 2.0]),
        ("1 2", [1.0, 2.0]),
        ("1\t2", [1.0, 2.0]),
        (" 1 ,  -2.5e-3 ", [1.0, -0.0025]),
        ("+.5 5. 1E5", [0.5, 5.0, 1e5]),
        ("1e-400,0", [0.0, 0.0]),
        ("0.1,17976931348623157e292", [0.1, 1.7976931348623157e308]),
        ("", []),
        ("1,2*2F", [1.0, 2.0]),
        ("1,2*2f", [1.0, 2.0]),
    ],
)
def test_lines_that_are_read(line, values):
    assert read(line, len(values)) == values


@pytest.mark.parametrize(
    "line",
    [
        "1", "1,2,3", "1,", ",1", "1,,2", ", 1 2", "1 2,", "1;2", "1,2x", "x1,2", "1-2", "1+2",
        "--1,2", "nan,1", "1,inf", "-Infinity 1", "0x10,1", "1e,2", "1e+,2", ".,1", "-,1", "1.2.3",
        "1,2e999", "1,5*00", "1,2*1", "1,2*2FF", "1,2*", "1,2*2F*2F", "1,2*GG", "1,2 *2F",
        "1\0,2", "1,2\0", "1,2\n", "\uff11,\uff12", "1\xa02", "1,2#", "",
    ],
)  # fmt: skip
def test_lines_that_are_refused(line):
    assert read(line, 2) is None


def test_a_checksum_may_be_demanded():
    assert read("1,2", 2, checksum=True) is None
    assert read(summed("1,2"), 2, checksum=True) == [1.0, 2.0]
    assert summed("1,2") == "1,2*2F"  # 0x31 ^ 0x2C ^ 0x32
    for bit in range(8 * 6):
        spoilt = bytearray(summed("1,2").encode())
        spoilt[bit // 8] ^= 1 << bit % 8
        assert read(bytes(spoilt), 2, checksum=True) in (None, [1.0, 2.0])  # F and f are the same


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, max_size=20), st.booleans())
@example([-1.7976931348623157e308] * 255, True)
@example([-2.2250738585072014e-308] * 255, True)
def test_what_is_written_is_read_again(values, checksum):
    line = write(values, wide=True, checksum=checksum)
    text = line.removesuffix("\n")
    assert text == (summed if checksum else str)(",".join(f"{v:.17g}" for v in values))
    assert read(text, len(values), checksum) == values
    assert write(values).removesuffix("\n") == ",".join(f"{v:.9g}" for v in values)


@given(st.text(alphabet="0123456789+-.eE, \t*ABnaif", max_size=40))
def test_what_is_read_python_reads_too(text):
    """No line is understood in a way that Python's own reading of numbers does not share."""
    values = read(text, 2)
    if values is None:
        return
    body = text.partition("*")[0]
    assert [float(word) for word in body.replace(",", " ").split()] == values
    assert all(map(math.isfinite, values))


def test_numbers_do_not_depend_on_the_locale():
    """A decimal comma, where the system has a locale with one, changes nothing."""
    before = locale.setlocale(locale.LC_ALL)
    try:
        for name in ("de_DE.UTF-8", "it_IT.UTF-8", "fr_FR.UTF-8", "C.UTF-8"):
            try:
                locale.setlocale(locale.LC_ALL, name)
            except locale.Error:
                continue
            assert read("1.5,2.25", 2) == [1.5, 2.25]
            assert write([1.5, -2.25]) == "1.5,-2.25\n"
            break
    finally:
        locale.setlocale(locale.LC_ALL, before)


@pytest.fixture
def end(tmp_path):
    end = SerialEnd(tmp_path)
    yield end
    end.close()


def opened(end, ins=2, outs=1, flags=0, before=b"\n", **options):
    """Open a device, which then hears the end of the line that was under way."""
    handle, message = open_serial(end, ins, outs, flags=flags, text=True)
    assert handle, message
    end.write(before)
    return Device(handle, ins, outs, on_loss=HOLD, **options)


def test_without_memory_there_is_no_device_and_a_reason(run_failing):
    code = """
        char why[300] = "";
        printf("%d %s", bl_text_open("board", "/dev/null", 9600, 1, 1, 0, why, 300) != NULL, why);
    """
    said = run_failing("scheduler/devices/wire/text.c", "calloc(...) NULL", code)
    assert said == "0 device `board`: out of memory"


def test_lines_both_ways(end):
    with opened(end) as device:
        end.write(b"3.5,-4\r\n")
        assert device.take(0) == {0: 3.5, 1: -4.0}
        device.give(0.1)
        assert end.read_until(b"\n") == [b"0.1"]
        device.make_safe()
        assert end.read_until(b"\n") == [b"0"]
    with opened(end, flags=CHECKSUM | DOUBLE) as device:
        device.give(0.1)
        assert end.read_until(b"\n") == [summed("0.10000000000000001").encode()]
        end.write(b"1,2\n" + b"3,4\n" + summed("5,6").encode() + b"\n")
        assert device.take(0) == {0: 5.0, 1: 6.0}
        assert device.counts == {"frames": 1, "sent": 1, "corrupt": 2}


@pytest.mark.parametrize("flags", [0, CHECKSUM])
def test_the_end_of_a_line_that_was_under_way_is_no_data(end, flags):
    """What is left of 113.5,-4 may look like a line, with its checksum too: "11" adds nothing."""
    line = (summed if flags else str)("113.5,-4").encode() + b"\r\n"
    with opened(end, flags=flags, before=line[2:]) as device:
        assert device.take(0) == {} and device.counts == {}
        end.write(line)
        assert device.take(1) == {0: 113.5, 1: -4.0}
        end.pull_out()
        device.take(2)
        end.plug_in()
        wait_for(lambda: device.take(3) or device.give(1.0) or device.counts.get("sent", 0))
        end.write(line[2:])
        assert device.take(4) == {} and device.counts["frames"] == 1
        end.write(line)
        assert device.take(5) == {0: 113.5, 1: -4.0}


def test_lines_in_pieces_garbage_and_several_at_once(end):
    with opened(end, before=b"half a line, as one joins in\n") as device:
        assert device.take(0) == {} and device.counts == {}
        for piece in (b"1", b"2,", b"3", b"\n4,5\n6,7\n8"):
            assert device.take(0) == {}
            end.write(piece)
        assert device.take(1) == {0: 6.0, 1: 7.0}
        end.write(b",9\n\n\nboot: version 3\n")
        assert device.take(2) == {0: 8.0, 1: 9.0}
        for _ in range(4):
            end.write(b"1" * 3000)
            assert device.take(3) == {}
        end.write(b"\n1,2\n")
        assert device.take(4) == {0: 1.0, 1: 2.0}
        assert device.counts == {"frames": 5, "corrupt": 2}


def test_age_and_loss_are_as_with_frames(end):
    with opened(end, timeout=10 * MS) as device:
        end.write(b"1,2\n")
        device.take(0)
        device.take(11 * MS)
        assert device.counts["losses"] == 1
        end.write(b"1,2\n")
        device.take(12 * MS)
        assert device.counts["returns"] == 1


def test_a_text_device_that_is_unplugged_comes_back(end):
    with opened(end) as device:
        end.write(b"1,2\n3,")
        assert device.take(0) == {0: 1.0, 1: 2.0}
        end.pull_out()
        device.take(1)
        assert "is disconnected" in device.why
        end.plug_in()
        sent = device.counts.get("sent", 0)

        def is_back() -> bool:
            device.take(2)
            device.give(1.0)
            return device.counts.get("sent", 0) > sent

        wait_for(is_back)
        end.write(b"4\n5,6\n")  # the half line from before is forgotten
        assert device.take(3) == {0: 5.0, 1: 6.0}
        assert device.status == OK and device.counts["frames"] == 2


@pytest.mark.parametrize("seed", range(3))
def test_spoilt_lines_are_never_data(end, seed):
    draw = random.Random(seed)
    with opened(end, flags=CHECKSUM) as device:
        end.write(summed("0,0").encode() + b"\n")
        device.take(0)
        refused = 0
        for k in range(200):
            good = summed(f"{draw.uniform(-9, 9):.6g},{k}").encode()
            how = draw.randrange(4)
            if how == 0:
                bad = draw.randbytes(draw.randrange(1, 40)).replace(b"\n", b"?")
            elif how == 1:
                bad = good[: draw.randrange(1, len(good))]
            elif how == 2:
                bad = good[: good.index(b",")] + good[good.index(b"*") :]
            else:
                at = draw.randrange(good.index(b"*"))
                bad = good[:at] + bytes([good[at] ^ 1 << draw.randrange(7)]) + good[at + 1 :]
            if b"\n" in bad or bad.strip(b"\r") == b"":
                continue
            end.write(bad + b"\n")
            refused += 1
            assert device.take(1) == {}, bad
            end.write(good + b"\n")
            assert device.take(1)[1] == float(k)
        assert device.counts["corrupt"] == refused
