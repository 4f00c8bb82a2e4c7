"""Serial ports: a pty is a tty of the kernel like any other, but for its speed."""

import contextlib
import os
import random
import subprocess
import sys
import termios
import tty

import pytest

from ..conftest import open_serial
from ..native import ALIVE, HOLD, OK, Device, engine
from ..peer import SAFE, Frame, Peer, SerialEnd, parse, stuff, unstuff, wait_for

pytestmark = pytest.mark.engine


@pytest.fixture
def end(tmp_path):
    end = SerialEnd(tmp_path)
    yield end
    end.close()


@pytest.fixture
def line(end):
    handle, message = open_serial(end, 1, 1)
    assert handle, message
    with Device(handle, 1, 1, on_loss=HOLD) as device:
        peer = Peer()
        device.give(0.0)
        peer.hear(end.frames()[0])
        yield device, end, peer


def test_a_frame_in_pieces(line):
    device, end, peer = line
    data = stuff(peer.frame(2.5)) + b"\0"
    for k in range(len(data) - 1):
        end.write(data[k : k + 1])
        assert device.take(k) == {}
    end.write(data[-1:])
    assert device.take(99) == {0: 2.5}
    assert device.counts == {"frames": 1, "sent": 1}


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="counts calls of Linux")
def test_a_silent_line_is_not_read(line):
    """A read of an empty tty waits for a worker of the kernel, also one that must not block."""

    def reads():
        with open("/proc/self/io") as file:
            return int(file.read().split("syscr:")[1].split()[0])

    device, end, peer = line
    before = reads()
    for tick in range(1000):
        device.take(tick)
    assert reads() - before < 500
    end.write_frame(peer.frame(2.5))
    assert device.take(1001) == {0: 2.5}


def test_the_end_of_one_read_is_the_start_of_the_next(line):
    device, end, peer = line
    stream = b"".join(stuff(peer.frame(float(k))) + b"\0" for k in range(60))
    draw, newest = random.Random(3), None
    while stream:
        cut = draw.randrange(1, 200)
        end.write(stream[:cut])
        stream = stream[cut:]
        newest = device.take(0).get(0, newest)
    assert newest == 59.0
    assert device.counts == {"frames": 60, "sent": 1}


def test_garbage_before_between_and_without_end(line):
    device, end, peer = line
    draw = random.Random(5)
    end.write(draw.randbytes(50).replace(b"\0", b"\1") + b"\0\0\0")
    end.write_frame(peer.frame(1.0))
    assert device.take(0) == {0: 1.0}
    for _ in range(3):  # longer than any frame
        end.write(b"\x37" * 2000)
        assert device.take(1) == {}
    end.write(b"\0" + stuff(peer.frame(2.0)) + b"\0")
    assert device.take(2) == {0: 2.0}
    end.write(b"\x55" + stuff(peer.frame(3.0)) + b"\0")  # a byte of noise spoils it
    assert device.take(3) == {}
    end.write_frame(peer.frame(4.0))
    assert device.take(4) == {0: 4.0}
    end.write(b"\x37" * 3000)
    device.take(5)
    end.write_frame(peer.frame(5.0))  # no zero between it and the noise
    assert device.take(5) == {}
    assert device.counts == {"frames": 3, "sent": 1, "corrupt": 3, "missed": 1}


def test_a_line_joined_in_the_middle_of_a_frame_is_no_fault(end):
    handle, _ = open_serial(end, 1, 0)
    with Device(handle, 1, 0) as device:
        end.write(stuff(bytes(Frame((1.0,))))[-9:] + b"\0" + stuff(bytes(Frame((2.0,)))) + b"\0")
        assert device.take(0) == {0: 2.0}
        assert device.counts == {"frames": 1}


def test_what_came_before_opening_is_not_data(end):
    tty.setraw(end.slave)
    end.write_frame(bytes(Frame((1.0,))))
    handle, _ = open_serial(end, 1, 0)
    with Device(handle, 1, 0) as device:
        assert device.take(0) == {}
        end.write_frame(bytes(Frame((2.0,), sequence=2)))
        assert device.take(0) == {0: 2.0}


@pytest.mark.parametrize("baud", [9600, 115200, 1_000_000, 123_456])
def test_any_baud_and_no_changed_byte(end, baud):
    handle, message = open_serial(end, 1, 1, baud=baud)
    assert handle, message
    with Device(handle, 1, 1):
        told = subprocess.run(
            ["stty", "-a"], stdin=end.slave, capture_output=True, text=True, check=True, timeout=300
        ).stdout
        if sys.platform == "linux":
            assert end.speeds == (baud, baud)
        off = "icanon isig iexten echo opost ixon ixoff icrnl inlcr igncr istrip brkint parmrk"
        words = told.replace(";", " ").split()
        assert all(f"-{word}" in words for word in off.split())
        assert "cs8" in words and "clocal" in words and "-parenb" in words


def test_every_byte_arrives_as_it_is(end):
    """Values made of bytes that a terminal would act on: ^C ^D ^Q ^S CR LF 0x7F 0xFF."""
    handle, _ = open_serial(end, 64, 64)
    with Device(handle, 64, 64) as device:
        special = [bytes.fromhex(h) for h in ("03041113", "0d0a7f1c", "11131113", "ff00ff00")]
        values = [float(memoryview(b).cast("f")[0]) for b in special * 16]
        values = [v if abs(v) < 1e38 else 0.0 for v in values]
        assert device.give(*values) == OK
        peer = Peer()
        assert list(peer.hear(end.frames()[0]).values) == values
        end.write_frame(peer.frame(*values))
        assert list(device.take(0).values()) == values


def test_a_port_has_one_owner(line):
    _, end, _ = line
    handle, message = open_serial(end, 1, 1)
    assert handle is None
    assert message.startswith(f"serial port {end.path}: ")
    assert "another program uses it exclusively" in message


def test_a_closed_port_can_be_opened_again(line):
    device, end, _ = line
    device.close()
    handle, message = open_serial(end, 1, 1)
    assert handle, message
    engine().bl_device_close(handle)


@pytest.mark.parametrize("kind", ["missing", "file", "baud", "long", "values"])
def test_what_cannot_be_opened(tmp_path, end, kind):
    path, baud, ins = str(end.path), 115200, 1
    words = {
        "missing": "No such file or directory; check that it is plugged in: on Linux, ls "
        "/dev/serial/by-id",
        "file": "it is not a serial port",
        "baud": "-1 is not a baud rate",
        "long": "the name is too long",
        "values": "device `board`: a frame has 0 to 255 values",
    }[kind]
    if kind == "missing":
        path = str(tmp_path / "ttyACM9")
    elif kind == "file":
        path = str(tmp_path / "file")
        (tmp_path / "file").touch()
    elif kind == "baud":
        baud = -1
    elif kind == "long":
        path = "/dev/" + "x" * 300
    else:
        ins = 256
    for text in (False, True):
        handle, message = open_serial(path, ins, 0, baud=baud, text=text)
        assert handle is None
        assert words.replace("frame", "line" if text else "frame") in message
        if kind != "values":
            assert message.startswith("serial port /")


def test_a_device_that_is_unplugged_comes_back(line):
    device, end, peer = line
    end.write_frame(peer.frame(1.0))
    assert device.take(0) == {0: 1.0}
    end.write(b"\x09half a")
    device.take(0)
    end.pull_out()
    device.take(1)
    assert device.values[ALIVE] == 0
    assert device.why.startswith("device `board` is disconnected: it was unplugged")
    for _ in range(5):
        assert device.give(1.0) == OK
        assert device.take(2) == {}
    end.plug_in()

    def is_back() -> bool:
        device.take(3)
        device.give(3.0)
        return device.counts["sent"] > 1

    wait_for(is_back)
    again = Peer()
    assert parse(end.frames()[-1]).values == (0.0,)  # not heard yet, so still safe
    end.write_frame(again.frame(2.0))
    assert device.take(4) == {}
    again.hear(end.frames()[-1])
    end.write_frame(again.frame(2.0))
    assert device.take(5) == {0: 2.0}
    assert device.counts["losses"] == device.counts["returns"] == device.counts["stale"] == 1
    assert "corrupt" not in device.counts  # the half frame from before is forgotten


def test_closing_while_unplugged(line):
    device, end, _ = line
    end.pull_out()
    device.take(1)
    device.close()


def test_a_device_unplugged_between_take_and_give(line):
    device, end, _ = line
    end.pull_out()
    assert device.give(1.0) == OK
    assert "is disconnected" in device.why
    assert device.counts["losses"] == 1


def test_a_full_line_drops_whole_frames_and_safe_values_pass(end):
    handle, _ = open_serial(end, 0, 255)
    with Device(handle, 0, 255) as device:
        values = [float(k) for k in range(255)]
        for _ in range(40):  # nobody reads
            assert device.give(*values) == OK
        counts = device.counts
        assert counts["dropped"] > 0 and counts["sent"] + counts["dropped"] == 40
        device.make_safe()
        assert device.counts["sent"] == counts["sent"] + 1
        frames = []

        def is_safe() -> bool:  # before it stands what the line had of a frame
            for piece in end.read_until(b"\0", 0):
                with contextlib.suppress(ValueError):
                    frames.append(parse(unstuff(piece)))
            return bool(frames) and frames[-1].flags == SAFE

        wait_for(is_safe)
        assert set(frames[-1].values) == {0.0}
        assert len(frames) <= counts["sent"]  # what waited in the line is gone
        device.give(*values)
        assert parse(end.frames()[-1]).values == tuple(values)


def test_after_a_full_line_every_frame_is_whole(end):
    handle, _ = open_serial(end, 0, 255)
    draw = random.Random(1)
    with Device(handle, 0, 255) as device:
        seen = []
        for tick in range(200):
            device.give(*[float(tick)] * 255)
            if draw.random() < 0.02:
                seen += [parse(data) for data in end.frames(0)]
        seen += map(parse, end.frames())
        assert all(set(frame.values) == {frame.sequence - 1.0} for frame in seen)
        assert [f.sequence for f in seen] == sorted({f.sequence for f in seen})
        assert device.counts["dropped"] > 0


def test_a_device_that_never_stops_talking_does_not_stop_a_tick(line):
    device, end, _ = line
    for _ in range(20):
        end.write(b"\x42" * 3000)
        assert device.take(0) == {}


def test_a_terminal_that_this_program_has_is_none_of_its_own(end):
    """Opening a port must not make it the controlling terminal, whose hang-up ends a program."""
    code = (
        "import os, sys; os.setsid(); sys.path[:0] = sys.argv[2:];"
        "import ctypes; from biella.scheduler.engine._library import library; lib = library();"
        "m = ctypes.create_string_buffer(200);"
        "d = lib.bl_serial_open(b'b', sys.argv[1].encode(), 9600, 0, 0, 0, m, 200);"
        "assert d, m.value\n"
        "try: os.open('/dev/tty', os.O_RDWR)\n"
        "except OSError: sys.exit(0)\n"
        "sys.exit(3)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(end.path), *sys.path], timeout=300)
    assert done.returncode == 0
    assert termios.tcgetattr(end.slave)


def test_a_port_may_have_the_first_descriptor(end):
    """That of the standard input, which a service may have closed."""
    kept = os.dup(0)
    os.close(0)
    try:
        handle, message = open_serial(end, 1, 1)
        assert handle, message
        with Device(handle, 1, 1, on_loss=HOLD) as device:
            assert os.ttyname(0) == os.ttyname(end.slave)
            peer = Peer()
            device.give(0.0)
            peer.hear(end.frames()[0])
            end.write(stuff(peer.frame(2.5)) + b"\0")
            assert device.take(1) == {0: 2.5}
    finally:
        os.dup2(kept, 0)
        os.close(kept)


@pytest.mark.parametrize("seed", range(3))
def test_a_noisy_line_gives_nothing_that_was_not_sent(line, seed):
    """Bits flip, bytes vanish and appear: what is accepted was sent, and in order."""
    device, end, peer = line
    draw = random.Random(seed)
    sent, got = [], []
    for _ in range(400):
        value = draw.uniform(-1e6, 1e6)
        frame = peer.frame(value)
        sent.append(parse(frame).values[0])
        data = bytearray(stuff(frame) + b"\0")
        for _ in range(draw.choice([0, 0, 1, 2])):
            at = draw.randrange(len(data))
            how = draw.randrange(3)
            if how == 0:
                data[at] ^= 1 << draw.randrange(8)
            elif how == 1:
                data[at:at] = draw.randbytes(draw.randrange(1, 5))
            elif len(data) > 1:
                del data[at]
        end.write(bytes(data))
        got += device.take(0).values()
        end.frames(0)
    places = [sent.index(value) for value in got]
    assert places == sorted(set(places))
    assert 100 < len(got) < 400 and device.counts["corrupt"] > 50
