"""biella_device.h with BIELLA_AUTH, against a host written from the description of the protocol."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from board_peer import SAFE, TRIPPED, Frame, cobs, uncobs

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
from tests.firmware.test_device_header import (  # noqa: E402
    CC,
    STRICT,
    Probe,
    State,
    compile_probe,
    start,
)
from tests.scheduler.devices.keyed import HOST, KEY, Hello, KeyedHost, Session, sign  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which(CC), reason="needs a C compiler")
AUTH = "-DBIELLA_AUTH=1"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    variants: dict[str, Any] = {
        "plain": (2, 1, AUTH),
        "double": (2, 1, AUTH, "-DBIELLA_DOUBLE=1"),
        "long": (255, 255, AUTH, "-DBIELLA_DOUBLE=1"),
    }
    return {
        name: compile_probe(tmp_path_factory.mktemp(name), *variant)
        for name, variant in variants.items()
    }


def boot(probe: Probe, number: int = 1, key: bytes = KEY) -> None:
    probe.ask("new 100", f"key {key.hex()} {number.to_bytes(16, 'little').hex()}")


@pytest.fixture(params=["plain", "double"])
def probe(programs, request):
    for probe in start(programs[request.param]):
        boot(probe)
        yield probe


def give(probe: Probe, data: bytes) -> State:
    return probe.tell(f"datagram {data.hex()}")


def said(probe: Probe, values: str = "0") -> bytes:
    return bytes.fromhex(probe.ask(f"pack {values}")[0])


def begin(probe: Probe, host: KeyedHost, **options) -> Session:
    assert give(probe, host.call()).accepted == 2
    start = host.begin(said(probe), **options)
    assert give(probe, start).accepted == 2
    assert Hello.parse(said(probe)).host == host.nonce
    assert host.session is not None
    return host.session


def test_nothing_is_accepted_before_there_is_a_key(programs):
    for probe in start(programs["plain"]):
        probe.ask("new 100")
        assert give(probe, KeyedHost().call()).accepted == 0
        assert give(probe, Frame((1.0, 2.0), 1).pack()).accepted == 0


def test_a_session_in_both_directions(probe):
    beacon = Hello.parse(said(probe))
    assert (beacon.session, beacon.host) == (0, bytes(16))
    session = begin(probe, KeyedHost(), number=40)
    state = give(probe, session.pack(1.5, -2.0))
    assert (state.accepted, state.values, state.sequence, state.safe) == (1, (1.5, -2.0), 41, 0)
    for count, value in enumerate((0.5, -1.0), start=1):
        frame = session.parse(said(probe, str(value)))
        assert (frame.values, frame.sequence, frame.echo) == ((value,), count, 41)
    stuffed = bytes.fromhex(probe.ask("encode 3")[0])
    assert stuffed[-1] == 0 and session.parse(uncobs(stuffed[:-1])).values == (3.0,)
    assert probe.feed(cobs(session.pack(5.0, 6.0)) + b"\0").values == (5.0, 6.0)


def test_no_frame_with_a_crc_is_accepted(probe):
    session = begin(probe, KeyedHost())
    for frame in (Frame((1.0, 2.0), 9), Frame((1.0, 2.0), 9, session=session.number)):
        assert give(probe, frame.pack()).accepted == 0
        assert probe.feed(frame).accepted == 0


def test_every_flipped_bit_and_every_truncation_is_refused(probe):
    host = KeyedHost()
    session = begin(probe, host)
    for sound in (session.pack(1.0, 2.0), host.call()):
        commands = [f"datagram {sound[:end].hex() or '-'}" for end in range(len(sound))]
        for bit in range(8 * len(sound)):
            damaged = bytearray(sound)
            damaged[bit // 8] ^= 1 << bit % 8
            commands.append(f"datagram {damaged.hex()}")
        answers = [State(answer) for answer in probe.ask(*commands)]
        assert not any(answer.accepted for answer in answers)
        assert answers[-1].refused >= len(commands)
        assert give(probe, sound).accepted in (1, 2)


def test_other_keys_and_the_other_direction_are_refused(probe):
    session = begin(probe, KeyedHost())
    body = session.pack(1.0, 2.0, sent=5)[:-16]
    for key in (KEY, session.incoming, bytes(32)):
        assert give(probe, sign(key, body)).accepted == 0
    assert give(probe, said(probe)).accepted == 0, "its own frame"
    probe.ask("new 100", f"key {KEY.hex()} {bytes(16).hex()}")
    assert give(probe, said(probe)).accepted == 0, "its own hello"


def test_numbers_increase_and_do_not_wrap(probe):
    session = begin(probe, KeyedHost())
    recorded = session.pack(66.0, 0.0, sent=2**31 + 9)
    for number, accepted in [
        (3, 1), (3, 0), (2, 0), (2**31, 1), (2**31 + 9, 1), (2**32 - 1, 1), (2**32 - 1, 0),
        (2**32 + 2, 1), (2**32 + 1, 0), (2**32 + 2**31, 1), (2**33 + 1, 1),
    ]:  # fmt: skip
        assert give(probe, session.pack(1.0, 0.0, sent=number)).accepted == accepted, number
    assert give(probe, recorded).accepted == 0


def test_frames_and_hellos_of_an_earlier_boot_are_refused(probe):
    host = KeyedHost()
    give(probe, host.call())
    hello = host.begin(said(probe))
    give(probe, hello)
    said(probe)
    assert host.session is not None
    frames = [host.session.pack(float(k), 0.0) for k in range(1, 5)]
    assert all(give(probe, frame).accepted == 1 for frame in frames)
    for number in (2, 3):
        boot(probe, number)
        for data in (hello, *frames):
            assert give(probe, data).accepted in (0, 2)
            assert probe.feed().session == 0
    boot(probe, 1)  # a counter that went back: what the header warns of
    assert give(probe, hello).accepted == 2 and probe.feed().session == host.session.number


def test_a_recorded_begin_ends_no_session(probe):
    host = KeyedHost()
    give(probe, host.call())
    hello = host.begin(said(probe))
    give(probe, hello)
    said(probe)
    assert host.session is not None
    live = host.session.pack(1.0, 2.0)
    give(probe, live)
    probe.tell("elapsed 200")
    for data in (hello, live, host.call()):
        state = give(probe, data)
        assert state.accepted in (0, 2) and state.safe and state.tripped


def test_frames_that_were_held_back_are_no_values_after_a_trip(probe):
    session = begin(probe, KeyedHost())
    give(probe, session.pack(1.0, 2.0))
    held = [session.pack(66.0, 0.0) for _ in range(3)]
    assert probe.tell("elapsed 200").tripped
    assert all(give(probe, frame).accepted == 0 for frame in held)
    assert Hello.parse(said(probe)).session == 0
    again = begin(probe, KeyedHost(nonce=b"\x22" * 16))
    held = [again.pack(66.0, 0.0) for _ in range(3)]
    probe.tell("elapsed 60")
    assert again.parse(said(probe)).flags & TRIPPED, "until it is in control again"
    probe.tell("elapsed 60")
    assert all(give(probe, frame).accepted == 0 for frame in held), "nor those of a new session"
    third = begin(probe, KeyedHost(nonce=b"\x33" * 16))
    state = give(probe, third.pack(3.0, 4.0))
    assert (state.accepted, state.safe, state.tripped) == (1, 0, 0)


def test_frames_that_are_held_back_longer_and_longer_are_refused(probe):
    """No gap is long enough to trip: frame k arrives at the time 2 k. Others go on for long."""
    session = begin(probe, KeyedHost())
    echo = 0
    for k in range(125):  # 5 s without an attack
        assert give(probe, session.pack(float(k), 0.0, echo=echo)).accepted == 1
        echo = session.parse(said(probe)).sequence
        assert not probe.tell("elapsed 40").tripped
    made = []
    for k in range(125):
        made.append(session.pack(float(k), 0.0, echo=echo))
        if k % 2 == 0 and not give(probe, made[k // 2]).accepted:
            break
        echo = session.parse(said(probe)).sequence
        assert not probe.tell("elapsed 40").tripped
    assert 1000 <= 40 * (k - k // 2) <= 2000 + 2 * 40
    assert probe.tell("elapsed 40").tripped


def test_a_host_is_kept_until_it_is_gone_and_may_itself_begin_again(probe):
    first = begin(probe, KeyedHost(nonce=b"\x11" * 16))
    assert give(probe, first.pack(1.0, 0.0)).accepted == 1
    for replaces, session in ((0, 0x1111), (0x3333, 0x1111), (0x1111, 0x2222)):
        host = KeyedHost(nonce=b"\x22" * 16)
        begin(probe, host, replaces=replaces)
        state = probe.feed()
        assert state.session == session and state.safe == (session == 0x2222)
    assert give(probe, first.pack(2.0, 0.0)).accepted == 0
    assert host.session is not None
    give(probe, host.session.pack(0.0, 0.0, flags=SAFE))
    begin(probe, KeyedHost(nonce=b"\x44" * 16))
    assert probe.feed().session == 0x4444, "the last host has ended"


def test_the_watchdog_waits_for_authenticated_frames(probe):
    session = begin(probe, KeyedHost())
    give(probe, session.pack(1.0, 2.0))
    probe.tell("elapsed 60")
    give(probe, Frame((1.0, 2.0), 9, session=session.number).pack())
    give(probe, KeyedHost().call())
    assert probe.tell("elapsed 60").tripped
    said(probe)  # the answer to the call
    session = begin(probe, KeyedHost(nonce=b"\x22" * 16))
    assert session.parse(said(probe)).flags & (SAFE | TRIPPED) == SAFE | TRIPPED


def test_hellos_are_answered_each_in_its_turn_and_nonces_are_new(probe):
    nonces = set()
    for number in range(1, 20):
        boot(probe, number)
        for _ in range(3):
            host = KeyedHost()
            give(probe, host.call())
            answer = said(probe)
            nonces.add(Hello.parse(answer).device)
            give(probe, host.begin(answer))
            said(probe)
            assert host.session is not None
            give(probe, host.session.pack(0.0, 0.0, flags=SAFE))
    assert len(nonces) == 57


def test_long_frames_take_several_blocks(programs):
    draw = random.Random(1)
    for probe in start(programs["long"]):
        boot(probe)
        session = begin(probe, KeyedHost())
        values = [draw.random() for _ in range(255)]
        state = give(probe, session.pack(*values, flags=1))
        assert state.accepted == 1 and list(state.values) == values
        assert list(session.parse(said(probe, " ".join(map(repr, values)))).values) == values


def test_a_hello_from_a_session_zero_is_refused(probe):
    assert give(probe, Hello(HOST, b"\0\0" + bytes(range(14))).pack()).accepted == 0


@pytest.mark.parametrize(("language", "standard"), [("c", "c99"), ("c++", "c++11")])
def test_it_compiles_clean(tmp_path, language, standard):
    source = tmp_path / "use"
    source.write_text(
        "#define BIELLA_AUTH 1\n#define BIELLA_RECEIVES 1\n#define BIELLA_SENDS 3\n"
        "#include <biella_device.h>\nint main(void) { biella_device d; biella_init(&d, 9);\n"
        "uint8_t k[32] = {1}; biella_set_key(&d, k, k); return biella_feed(&d, 0); }\n"
    )
    include = f"-I{ROOT / 'examples' / 'firmware'}"
    command = [CC, "-x", language, f"-std={standard}", *STRICT, include, "-fsyntax-only", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_no_number_of_a_boot_comes_twice_where_the_power_fails(tmp_path):
    """Nonces of the board are made of it: a counter that goes back would accept records."""
    (tmp_path / "avr").mkdir()
    (tmp_path / "avr" / "eeprom.h").write_text(
        "#include <stdint.h>\n"
        "uint32_t eeprom_read_dword(const uint32_t *);\n"
        "void eeprom_update_dword(uint32_t *, uint32_t);\n"
        "void eeprom_write_dword(uint32_t *, uint32_t);\n"
    )
    program = tmp_path / "power_cuts"
    folders = ["-I", tmp_path, "-I", ROOT / "examples" / "firmware"]
    source = Path(__file__).with_name("power_cuts.c")
    subprocess.run([CC, *STRICT, *folders, "-o", program, source], check=True, timeout=1800)
    done = subprocess.run([program], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0 and int(done.stdout) > 300_000
