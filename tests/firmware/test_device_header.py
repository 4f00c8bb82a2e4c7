"""biella_device.h, compiled for this machine with sanitizers, against frames made in Python."""

from __future__ import annotations

import math
import os
import random
import shutil
import struct
import subprocess
import tomllib
import zlib
from pathlib import Path
from typing import Any

import pytest
from board_peer import FLOAT64, SAFE, TRIPPED, Frame, cobs, uncobs, unpack

ROOT = Path(__file__).parents[2]

CC = os.environ.get("CC", "cc")
pytestmark = pytest.mark.skipif(not shutil.which(CC), reason="needs a C compiler")
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
SANITIZED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

COMMON = tomllib.loads(
    (ROOT / "tests" / "scheduler" / "devices" / "wire" / "frames.toml").read_text()
)

# From the description of the frame, byte by byte; CRCs by zlib. No value here comes from our C.
GOLDEN = {
    "b1000200341200000100000000000000000020410000f041": Frame((10.0, 30.0), 1),
    "b1000200341200000a000000090000000000000000000080": Frame((0.0, -0.0), 10, 9),
    "b1070200ffff0000ffffffff000000800000000000c05e4000000000000000c0": Frame(
        (123.0, -2.0), 0xFFFFFFFF, 0x80000000, 0xFFFF, FLOAT64 | SAFE | TRIPPED
    ),
}


class Probe:
    """One process with one device in it."""

    def __init__(self, program: Path) -> None:
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *commands: str) -> list[str]:
        answers = []
        for at in range(0, len(commands), 500):  # less than what a pipe holds
            some = commands[at : at + 500]
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.stdin.write("".join(f"{command}\n" for command in some))
            self.process.stdin.flush()
            answers += [self.process.stdout.readline().strip() for _ in some]
        assert self.process.poll() is None and all(answers), "the sanitizer has stopped it"
        return answers

    def tell(self, command: str) -> State:
        return State(self.ask(command)[0])

    def feed(self, *frames: Frame | bytes) -> State:
        data = b"".join(f.encode() if isinstance(f, Frame) else f for f in frames)
        return self.tell(f"feed {data.hex()}")


class State:
    def __init__(self, line: str) -> None:
        ones, session, sequence, flags, tripped, safe, refused, *values = line.split()
        self.accepted, self.session, self.sequence = int(ones), int(session), int(sequence)
        self.flags, self.tripped, self.safe = int(flags), int(tripped), int(safe)
        self.refused, self.values = int(refused), tuple(map(float, values))


def compile_probe(folder: Path, receives: int = 2, sends: int = 1, *options: str) -> Path:
    program = folder / "probe"
    counts = [f"-DBIELLA_RECEIVES={receives}", f"-DBIELLA_SENDS={sends}"]
    source = Path(__file__).parent / "probe.c"
    header = f"-I{ROOT / 'examples' / 'firmware'}"
    command = [CC, "-std=c99", *STRICT, *SANITIZED, *counts, *options, header, str(source)]
    subprocess.run([*command, "-o", str(program)], check=True, timeout=300)
    return program


def start(program: Path):
    probe = Probe(program)
    yield probe
    assert probe.process.stdin is not None
    probe.process.stdin.close()
    assert probe.process.wait() == 0
    assert probe.process.stdout is not None
    probe.process.stdout.close()


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """With and without the table of the CRC; with double; with the largest frames."""
    variants: dict[str, Any] = {
        "plain": (2, 1),
        "table": (2, 1, "-DBIELLA_CRC_TABLE=1"),
        "double": (2, 1, "-DBIELLA_DOUBLE=1"),
        "long": (255, 255, "-DBIELLA_DOUBLE=1"),
        "empty": (0, 0),
    }
    return {
        name: compile_probe(tmp_path_factory.mktemp(name), *variant)
        for name, variant in variants.items()
    }


@pytest.fixture(params=["plain", "table", "double"])
def probe(programs, request):
    yield from start(programs[request.param])


@pytest.fixture
def plain(programs):
    yield from start(programs["plain"])


def test_the_frames_of_the_tests_are_those_of_the_description():
    for golden, frame in GOLDEN.items():
        assert frame.pack()[:-4].hex() == golden
        assert unpack(uncobs(frame.encode()[:-1])) == frame
    assert cobs(b"\x11\x22\0\x33") == bytes([3, 0x11, 0x22, 2, 0x33])
    assert cobs(b"\0\0") == b"\1\1\1"


def test_crc_is_the_usual_one(probe):
    assert probe.ask(f"crc {b'123456789'.hex()}") == ["cbf43926"]


@pytest.mark.parametrize("frame", GOLDEN.values())
def test_golden_frames_are_taken(probe, frame):
    state = probe.feed(frame)
    assert (state.accepted, state.session, state.sequence) == (1, frame.session, frame.sequence)
    assert state.values == frame.values and state.flags == frame.flags
    probe.ask("new 100")
    assert probe.tell(f"datagram {frame.pack().hex()}").values == frame.values


def read_hex(text: str) -> bytes:
    return bytes.fromhex("".join(text.split()))


@pytest.mark.parametrize("name", [name for name in COMMON["frames"] if name != "empty"])
def test_it_reads_the_frames_that_all_implementations_read(tmp_path, name):
    """`empty` is one of a device, with session 0: see below."""
    frame = COMMON["frames"][name]
    values = (frame["values"] * frame["count"])[: frame["count"]]
    program = compile_probe(tmp_path, frame["count"], 0, "-DBIELLA_DOUBLE=1")
    for probe in start(program):
        stuffed, plain = (read_hex(frame[key]).hex() for key in ("stuffed", "bytes"))
        for command in (f"feed {stuffed}00", f"datagram {plain}"):
            probe.ask("new 100")
            state = probe.tell(command)
            assert state.accepted == 1 and list(state.values) == values
            found = state.session, state.sequence, state.flags
            assert found == (frame["session"], frame["sequence"], frame["flags"])


def test_it_refuses_the_frames_that_all_implementations_refuse(probe):
    refused = {name: read_hex(text) for name, text in COMMON["refused"].items()}
    fine = refused.pop("fine")
    for data in (*refused.values(), read_hex(COMMON["frames"]["empty"]["bytes"])):
        assert probe.tell(f"datagram {data.hex()}").accepted == 0
        assert probe.feed(cobs(data) + b"\0").accepted == 0
    assert probe.tell(f"datagram {fine.hex()}").accepted == 1


def test_what_it_sends(probe, request):
    wide = FLOAT64 if "double" in request.node.name else 0
    probe.feed(Frame((1.0, 2.0), 41))
    for count, value in enumerate((1.5, -2.0, 0.0), start=1):
        sent = bytes.fromhex(probe.ask(f"encode {value}")[0])
        assert sent == Frame((value,), count, 41, flags=wide).encode()
    assert bytes.fromhex(probe.ask("pack 3")[0]) == Frame((3.0,), 4, 41, flags=wide).pack()


def test_frames_of_any_length_go_through_cobs(programs):
    random.seed(1)
    for name, count in (("long", 255), ("empty", 0)):
        for probe in start(programs[name]):
            for _ in range(20):
                kinds = random.choice([[0.0, 1.0], [random.random()], [0.0, random.random()]])
                values = tuple(random.choice(kinds) for _ in range(count))
                wide = FLOAT64 if count else 0
                probe.ask("new 100")
                state = probe.feed(Frame(values, 7, flags=wide))
                assert state.accepted == 1 and state.values == values
                sent = bytes.fromhex(probe.ask("encode " + " ".join(map(repr, values)))[0])
                assert sent == Frame(values, 1, 7, flags=wide).encode()


def test_every_truncation_is_refused(probe):
    for frame in GOLDEN.values():
        sound, coded = frame.pack(), frame.encode()
        for end in range(len(sound)):
            assert probe.tell(f"datagram {sound[:end].hex() or '-'}").accepted == 0
            assert probe.feed(coded[:end] + b"\0").accepted == 0
            assert probe.feed(coded[end + 1 :] + b"\0").accepted == 0
            assert probe.feed(cobs(sound[:end] + sound[end + 1 :]) + b"\0").accepted == 0
        assert probe.tell(f"datagram {(sound + bytes(1)).hex()}").accepted == 0
        assert probe.tell(f"datagram {(sound * 3).hex()}").accepted == 0
        assert probe.feed(frame).accepted == 1, "and the next sound one is taken"
        probe.ask("new 100")


def test_every_single_flipped_bit_is_refused(probe):
    for frame in GOLDEN.values():
        for command, sound in (("datagram", frame.pack()), ("feed", frame.encode())):
            flipped = []
            for bit in range(8 * len(sound)):
                damaged = bytearray(sound)
                damaged[bit // 8] ^= 1 << bit % 8
                flipped.append(f"{command} {damaged.hex()}")
            answers = [State(answer) for answer in probe.ask("new 100", *flipped)]
            assert [answer.accepted for answer in answers] == [0] * len(answers)
            assert answers[-1].session == 0 and answers[-1].values == (0.0, 0.0)


def test_frames_that_are_sound_but_not_for_us_are_refused(probe):
    sound = Frame((1.0, 2.0), 5)
    nan, inf = float("nan"), float("inf")
    for wrong in (
        Frame((1.0,), 5),
        Frame((1.0, 2.0, 3.0), 5),
        Frame((1.0, 2.0, 3.0, 4.0), 5),  # as long as two of float64
        Frame((1.0, 2.0), 5, session=0),
        Frame((nan, 2.0), 5),
        Frame((1.0, inf), 5),
        Frame((1.0, -inf), 5, flags=FLOAT64),
        Frame((nan, 1.0), 5, flags=FLOAT64),
    ):
        assert probe.feed(wrong).accepted == 0
    body = sound.pack()[:-4]
    for at, byte in ((0, 0xB2), (0, 0xA1), (2, 1), (2, 4), (3, 1), (6, 1), (7, 128)):
        changed = bytearray(body)
        changed[at] = byte
        whole = bytes(changed) + struct.pack("<I", zlib.crc32(changed))
        assert probe.feed(cobs(whole) + b"\0").accepted == 0
    assert probe.feed(sound).accepted == 1


def test_noise_is_never_a_frame_and_frames_between_noise_are_heard(probe):
    random.seed(7)
    noise = [random.randbytes(random.randrange(1, 90)) for _ in range(10_000)]
    for at, burst in enumerate(noise):  # noise that looks like a frame, as far as it goes
        if at % 3 == 0:
            noise[at] = cobs(Frame((1.0, 2.0), 9).pack()[: len(burst)] + burst[20:]) + b"\0"
    answers = [State(line) for line in probe.ask(*(f"feed {burst.hex()}" for burst in noise))]
    assert not any(answer.accepted for answer in answers) and answers[-1].session == 0
    assert answers[-1].refused > 4_000
    for sequence, burst in enumerate(noise[:200], start=1):
        frame = Frame((float(sequence), -1.0), sequence)
        assert probe.feed(burst, b"\0", frame).values == frame.values


def test_only_newer_frames_are_taken_across_the_wrap(probe):
    start, half = 0xFFFFFFF0, 1 << 31
    taken = start
    assert probe.feed(Frame((0.0, 0.0), start)).accepted == 1
    for ahead, accepted in [
        (0, 0), (-1, 0), (1, 1), (1, 0), (0, 0), (3, 1), (2, 0), (20, 1), (15, 0), (20, 0),
        (20 - half, 0), (20 + half, 0), (20 + half - 1, 1), (20, 0),
    ]:  # fmt: skip
        state = probe.feed(Frame((float(ahead), 0.0), (start + ahead) % 2**32))
        taken = (start + ahead) % 2**32 if accepted else taken
        assert (state.accepted, state.sequence) == (accepted, taken)


def test_replayed_frames_are_refused_even_after_a_silence(probe):
    frames = [Frame((float(k), 0.0), k) for k in range(1, 30)]
    assert probe.feed(*frames).accepted == len(frames)
    assert probe.feed(*frames).accepted == 0
    assert probe.tell("elapsed 200").tripped
    assert probe.feed(*frames).accepted == 0 and probe.feed().safe
    assert probe.feed(Frame((5.0, 0.0), 30)).safe == 0


def test_a_session_is_kept_until_its_host_is_silent_or_has_ended(probe):
    assert probe.feed(Frame((1.0, 0.0), 100, session=1)).session == 1
    other = Frame((2.0, 0.0), 1, session=2)
    assert probe.feed(other).session == 1
    probe.tell("elapsed 99")
    assert probe.feed(other).session == 1, "what is refused does not feed the watchdog"
    assert probe.tell("elapsed 1").accepted == 1, "it trips"
    state = probe.feed(other)
    assert (state.session, state.sequence, state.values, state.safe) == (2, 1, (2.0, 0.0), 0)
    assert probe.feed(Frame((0.0, 0.0), 2, session=2, flags=SAFE)).safe == 1
    assert probe.feed(Frame((1.0, 0.0), 101, session=1)).session == 1
    assert probe.feed(Frame((1.0, 0.0), 3, session=2)).session == 1


def test_the_watchdog(probe, request):
    wide = FLOAT64 if "double" in request.node.name else 0

    def told() -> tuple[int, int]:
        frame = unpack(uncobs(bytes.fromhex(probe.ask("encode 0")[0])[:-1]))
        return frame.session, frame.flags & ~wide

    assert probe.tell("elapsed 255").tripped == 0, "nobody has been there yet"
    assert told() == (0, SAFE)
    probe.feed(Frame((1.0, 2.0), 1))
    assert told() == (0x1234, 0)
    assert [probe.tell("elapsed 50").accepted for _ in range(4)] == [0, 1, 0, 0], "told once"
    assert told() == (0x1234, SAFE | TRIPPED)
    state = probe.feed(Frame((1.0, 2.0), 2, flags=SAFE))
    assert state.accepted and state.safe and state.tripped, "asked, it says that it had tripped"
    assert told() == (0x1234, SAFE | TRIPPED)
    assert probe.feed(Frame((1.0, 2.0), 3)).safe == 0
    assert told() == (0x1234, 0)
    probe.feed(Frame((1.0, 2.0), 4, flags=SAFE))
    assert told() == (0x1234, SAFE)
    for _ in range(300):  # a silence longer than its counter
        probe.tell("elapsed 255")
    assert told() == (0x1234, SAFE | TRIPPED)


def test_every_frame_feeds_the_watchdog_and_time_runs_only_between_them(probe):
    for k in range(1, 9):
        assert probe.feed(Frame((1.0, 2.0), k)).accepted
        assert not probe.tell("elapsed 99").tripped
    assert probe.tell("elapsed 1").tripped
    probe.ask("new 65535")
    probe.feed(Frame((1.0, 2.0), 1))
    trips = [probe.tell("elapsed 254").accepted for _ in range(260)]
    assert trips.index(1) == math.ceil(65535 / 254) - 1 and sum(trips) == 1


def test_a_host_that_has_lost_us_is_still_a_host(probe):
    state = probe.feed(Frame((1.0, 2.0), 1, flags=TRIPPED))
    assert state.accepted and state.flags & TRIPPED and not state.safe


def nearest_single(value: float) -> str:
    try:
        return struct.pack(">f", value).hex()
    except OverflowError:
        return "7f800000" if value > 0 else "ff800000"


def test_float64_becomes_the_nearest_float32(plain):
    """Against the conversion of this machine: IEEE 754, ties to even."""
    random.seed(3)
    tie = 1.0 + 2.0**-24
    values = [0.0, -0.0, 5e-324, 1e300, -1e300, tie, math.nextafter(tie, 2), math.nextafter(tie, 0)]
    values += [1.0 + 3 * 2.0**-24, 2.0**-149, 2.0**-150, math.nextafter(2.0**-150, 1), 2.0**-151]
    values += [3 * 2.0**-150, 2.0**-126, math.nextafter(2.0**-126, 0), 1e-40, -1.5e-42]
    largest = (2 - 2.0**-23) * 2.0**127
    values += [largest, largest + 2.0**102, largest + 2.0**103, math.nextafter(2.0**128, 0)]
    values += [struct.unpack("<d", random.randbytes(8))[0] for _ in range(2000)]
    values += [random.gauss(0, 1) * 2.0 ** random.randrange(-160, 135) for _ in range(20_000)]
    values = [value for value in values if math.isfinite(value)]
    bits = [struct.pack(">d", value).hex() for value in values]
    found = plain.ask(*(f"narrow {word[:8]} {word[8:]}" for word in bits))
    assert found == [nearest_single(value) for value in values]


def test_numbers_that_float32_cannot_hold_are_refused(plain):
    assert plain.feed(Frame((1e39, 0.0), 1, flags=FLOAT64)).accepted == 0
    assert plain.feed(Frame((0.1, 3e38), 1, flags=FLOAT64)).values[0] == pytest.approx(
        0.1, abs=1e-8
    )


@pytest.mark.parametrize(
    ("language", "options"),
    [("c", ["-std=c99"]), ("c", ["-std=c11", "-DBIELLA_CRC_TABLE=1"]), ("c++", ["-std=c++11"])],
)
def test_it_compiles_clean_as_c_and_as_cpp(tmp_path, language, options):
    source = tmp_path / "use"
    source.write_text(
        "#define BIELLA_RECEIVES 1\n#define BIELLA_SENDS 3\n#include <biella_device.h>\n"
        "int main(void) { biella_device d; biella_init(&d, 9); return biella_feed(&d, 0); }\n"
    )
    include = f"-I{ROOT / 'examples' / 'firmware'}"
    command = [CC, "-x", language, *options, *STRICT, include, "-fsyntax-only", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_missing_counts_are_explained(tmp_path):
    header = ROOT / "examples" / "firmware" / "biella_device.h"
    command = [CC, "-x", "c", "-fsyntax-only", str(header)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode and "Define BIELLA_RECEIVES" in done.stderr
