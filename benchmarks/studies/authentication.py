"""What authenticated frames cost, and what hostile ones do: the figures of docs/reference/frame.md.

``python -m benchmarks.studies.authentication`` prints all; ``--only host``, ``board`` or ``flood``
a part. ``flood --seconds 5 --turns 5``: runs with and without 50,000 hostile datagrams per second,
in turns. Boards need avr-gcc and libsimavr, arm-none-eabi-gcc and qemu-system-arm.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT))
from tests.scheduler.devices.keyed import KEY, KeyedDevice, is_hello, sign  # noqa: E402
from tests.scheduler.devices.peer import Frame  # noqa: E402

FALSE = -66.0
RATE = 50_000
EXTRA = 2.0  # s that the device lives longer than the run


def measure_host(count: int = 9) -> None:
    """Time of writing and reading a frame with a tag and with a CRC; calls from Python cancel."""
    from biella.scheduler.engine._library import contract, library

    lib, key = library(), contract.bl_mac_key()
    lib.bl_mac_set_key(ctypes.byref(key), (ctypes.c_uint8 * 32)(*KEY))
    head, values = contract.bl_frame_head(1, 1, 1, 0, 0), (ctypes.c_double * 255)(*([1.5] * 255))
    room, found = (ctypes.c_uint8 * 4096)(), (ctypes.c_double * 255)()
    print("values  CRC write       read  tag write       read   (µs)")
    for n in (1, 4, 12, 60, 255):
        times = []
        for tail, write, read in (
            ([], lib.bl_frame_write, lib.bl_frame_read),
            ([ctypes.byref(key)], lib.bl_frame_write_signed, lib.bl_frame_read_signed),
        ):
            size = write(ctypes.byref(head), values, n, *tail, room)
            calls = (
                lambda w=write, k=n, t=tail: w(ctypes.byref(head), values, k, *t, room),
                lambda r=read, s=size, k=n, t=tail: r(room, s, k, *t, ctypes.byref(head), found),
            )
            empty = lambda w=write, t=tail: w(ctypes.byref(head), values, -1, *t, room)  # noqa: E731
            base = (
                min(timeit.repeat(empty, timer=time.process_time, number=20_000, repeat=count))
                / 20_000
            )
            for call in calls:
                spent = timeit.repeat(call, timer=time.process_time, number=20_000, repeat=count)
                times.append(min(spent) / 20_000 - base)
        print(f"{n:6}", *(f"{1e6 * t:10.2f}" for t in times))


def measure_boards() -> None:
    """Code, RAM and time on an ATmega328P and a Cortex-M3."""
    source, header = HERE / "authentication_board.c", ROOT / "examples" / "firmware"
    with tempfile.TemporaryDirectory() as folder:
        sim = f"{folder}/sim"
        subprocess.run(
            ["cc", "-O2", "-o", sim, HERE / "authentication_avr.c", "-lsimavr"], check=True
        )
        avr = ["avr-gcc", "-mmcu=atmega328p", "-DF_CPU=16000000UL", "-Os"]
        arm = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-Os", "-DREPEATS=100"]
        arm += ["-nostartfiles", "-Wl,-Ttext=0x8,-e,main,--section-start=.vectors=0x0"]
        arm += ["-Wl,-Tdata=0x20000000"]
        qemu = ["qemu-system-arm", "-M", "mps2-an385", "-icount", "shift=0", "-nographic"]
        qemu += ["-monitor", "null", "-serial", "null", "-kernel"]
        semihosting = ["-semihosting-config", "enable=on,target=native"]
        print("board          frames         flash    RAM      in     out  handshake")
        for name, compiler, size, command, unit in (
            ("ATmega328P", avr, "avr-size", [sim], "cycles"),
            ("Cortex-M3", arm, "arm-none-eabi-size", [*semihosting, *qemu], "instructions"),
        ):
            for auth in (0, 1):
                program = f"{folder}/{name}{auth}.elf"
                subprocess.run([*compiler, "-std=c99", f"-DBIELLA_AUTH={auth}", f"-I{header}",
                                "-o", program, source], check=True)  # fmt: skip
                run = [*qemu[:1], *semihosting, *qemu[1:]] if command[0] != sim else command
                done = subprocess.run([*run, program], capture_output=True, text=True, timeout=60)
                told = dict(re.findall(r"(\w+) (\d+)$", done.stdout + done.stderr, re.MULTILINE))
                assert told["good"] == "1", done.stderr
                sizes = subprocess.run([size, program], capture_output=True, text=True, check=True)
                text, data, bss = map(int, sizes.stdout.splitlines()[1].split()[:3])
                kind = "authenticated" if auth else "with CRC"
                print(f"{name:13}  {kind:13}  {text + data:5}  {data + bss:5}", end="")
                print(
                    f"  {told['in']:>6}  {told['out']:>6}  {told.get('handshake', '-'):>9}  {unit}"
                )


def play_device(seconds: float, hostile: bool) -> None:
    """Answer a host; between the answers send what it must not accept, from the same address."""
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.bind(("127.0.0.1", 0))
    line.setblocking(False)
    print(line.getsockname()[1], flush=True)
    device, draw, said, peer = KeyedDevice(), random.Random(1), [], None
    end, sent, genuine = time.monotonic() + seconds, 0, 0
    begin = 0.0
    pool: list[bytes] = []
    while time.monotonic() < end:
        time.sleep(2e-4)
        heard = len(device.heard)
        try:
            while True:
                data, peer = line.recvfrom(4096)
                reply = device.hear(data)
                if reply:
                    line.sendto(reply, peer)
        except (BlockingIOError, ConnectionError):
            pass
        if len(device.heard) > heard:
            genuine += 1
            said.append(device.frame(float(genuine)))
            line.sendto(said[-1], peer)
            if hostile and genuine % 50 == 1:
                pool = make_hostile(draw, device, said)
                said = said[-200:]
        if pool and peer:
            begin = begin or time.monotonic()
            for _ in range(min(400, int((time.monotonic() - begin) * RATE) - sent)):
                sent += 1
                line.sendto(pool[sent % len(pool)], peer)
    print(genuine, sent, flush=True)


def make_hostile(draw: random.Random, device: KeyedDevice, said: list[bytes]) -> list[bytes]:
    """Return frames of each kind: wrong key, flipped bits, replayed, truncated, with a CRC."""
    session = device.session
    assert session is not None
    pool = []
    for _ in range(40):
        future = said[-1][:8] + (session.sent + draw.randrange(1, 9999)).to_bytes(4, "little")
        body = future + said[-1][12:16] + np.float32(FALSE).tobytes()
        flipped = bytearray(draw.choice(said))
        flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        pool += [
            sign(draw.randbytes(32), body),
            sign(KEY, body),
            bytes(flipped),
            draw.choice(said),
            draw.choice(said)[: draw.randrange(1, 36)],
            bytes(Frame((FALSE,), session.number, session.sent + 5)),
            device.answer(draw.randbytes(16)),
            draw.randbytes(36),
        ]
    assert any(map(is_hello, pool))
    return pool


def run_once(seconds: float, hostile: bool) -> tuple[Any, dict[str, int], int, int]:
    """Return the lateness in µs, the counters, and how many frames of each kind were sent."""
    from biella import Diagram, run_realtime
    from biella.blocks import Constant, Gain

    d = Diagram("flood", step=1e-3)
    one, k = d.add(Constant(1.0), name="one"), d.add(Gain(1.0), name="k")
    d.connect(one, k)
    d.output("y", k["y"])
    os.environ["RIG_KEY"] = KEY.hex()
    command = [sys.executable, "-m", "benchmarks.studies.authentication", "--only", "device"]
    command += ["--seconds", str(seconds + EXTRA)] + ["--hostile"] * hostile
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as peer:
        assert peer.stdout is not None
        port = int(peer.stdout.readline())
        rig = {
            "devices": {
                "rig": {
                    "driver": "udp", "host": "127.0.0.1", "port": port, "key": "env:RIG_KEY",
                    "timeout": 5.0, "on_loss": "hold",
                    "receive": {"y": {"safe": 0}}, "send": {"u": {"safe": 0}},
                }
            },
            "blocks": {"k": {"device": "rig"}},
        }  # fmt: skip
        result = run_realtime(d, seconds, bind=rig).wait()
        genuine, sent = map(int, peer.stdout.readline().split())
    values = result["k"]
    assert not (values == FALSE).any() and (np.diff(values) >= 0.0).all(), "a false value"
    counts = result.info["realtime"]["devices"]["rig"]
    assert counts["frames"] <= genuine
    late = 1e6 * result["realtime.lateness"][len(result.t) // 4 :]
    return late, counts, genuine, sent


def measure_flood(seconds: float, turns: int) -> None:
    """Print the lateness of runs with and without hostile frames, in turns."""
    print("hostile/s   lateness µs: median    p99    max   accepted of genuine   rejected")
    for turn in range(2 * turns):
        hostile = bool(turn % 2)
        late, counts, genuine, sent = run_once(seconds, hostile)
        rejected = counts["corrupt"] + counts["stale"] + counts["unauthenticated"]
        median, most = np.median(late), late.max()
        taken = f"{counts['frames']:8} of {genuine:7}"
        high = np.percentile(late, 99)
        print(f"{sent / (seconds + EXTRA):9.0f}   {median:19.0f}  {high:5.0f}", end="")
        print(f"  {most:5.0f}   {taken}   {rejected:8}")


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("host", "board", "flood", "device"))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--hostile", action="store_true")
    options = parser.parse_args()
    if options.only == "device":
        play_device(options.seconds, options.hostile)
        return
    if options.only in (None, "host"):
        measure_host()
    if options.only in (None, "board"):
        measure_boards()
    if options.only in (None, "flood"):
        measure_flood(options.seconds, options.turns)


if __name__ == "__main__":
    main()
