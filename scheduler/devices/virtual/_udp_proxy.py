"""A bad network on purpose: a UDP proxy between two UDP ends that delays, drops, repeats and
spoils.

The n-th datagram of a direction has the same fate in every run with the same seed, whatever the
times at which datagrams arrive::

    python -m biella.udp_proxy --listen 5000 --to rig:5001 --drop 0.05

The host then talks to port 5000 in place of the device.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import random
import selectors
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from ....errors import BiellaError

TO_DEVICE, TO_HOST = "to device", "to host"
_REMEMBERED = 100  # datagrams that may come again
_LONGEST_HOLD = 0.05  # s, for one that is to come after the next
_LARGEST = 65536

Address = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What happens to datagrams, in each direction by itself.

    Attributes
    ----------
    delay, jitter
        Seconddelay of every datagram in s, and up to how many more, evenly distributed.
    drop, duplicate, reorder, corrupt, replay
        Probabilities from 0 to 1: it is lost; comes twice; comes after the next one; comes with one
        to three bits flipped; an earlier one comes again with it.
    """

    delay: float = 0.0
    jitter: float = 0.0
    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    replay: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_time = field.name in ("delay", "jitter")
            if not 0.0 <= value <= (3600.0 if is_time else 1.0):
                wanted = "a time in s, at most an hour" if is_time else "a probability, 0 to 1"
                raise BiellaError(f"{field.name} = {value:g} of a UDP proxy must be {wanted}.")


class Lane:
    """One direction: decides what becomes of each datagram. Knows no socket and no clock.

    Every datagram takes the same number of draws, so that its fate depends on its number only.
    """

    def __init__(self, faults: Faults, seed: int, name: str) -> None:
        self.faults = faults
        self.counts: Counter[str] = Counter()
        self._draw = random.Random(f"{seed} {name}")
        self._held: list[bytes] = []
        self._held_since = 0.0
        self._past: deque[bytes] = deque(maxlen=_REMEMBERED)

    def take(self, data: bytes, now: float) -> list[tuple[float, bytes]]:
        """Return the datagrams to forward for a received one, with their times."""
        faults, draw = self.faults, self._draw
        chances = [draw.random() for _ in range(7)]
        self.counts["arrived"] += 1
        self._past.append(data)
        due = now + faults.delay + faults.jitter * chances[0]
        out = []
        if chances[1] < faults.drop:
            self.counts["dropped"] += 1
        else:
            if chances[2] < faults.corrupt and data:
                data = _flip_bits(data, chances[6])
                self.counts["corrupted"] += 1
            copies = 1
            if chances[3] < faults.duplicate:
                copies = 2
                self.counts["duplicated"] += 1
            if chances[4] < faults.reorder:
                self.counts["reordered"] += 1
                held, self._held = self._held, [data] * copies
                self._held_since = now
                return [(due, late) for late in held]
            out += [(due, data)] * copies
        if chances[5] < faults.replay:
            self.counts["replayed"] += 1
            out.append((due, self._past[int(chances[6] * len(self._past))]))
        out += [(due, late) for late in self._held]
        self._held = []
        return out

    def release(self, now: float) -> list[tuple[float, bytes]]:
        """Return what was held back for a next one that has not come."""
        if not self._held or now < self._held_since + _LONGEST_HOLD:
            return []
        held, self._held = self._held, []
        return [(now, late) for late in held]

    @property
    def holds(self) -> bool:
        """Whether something waits for the next datagram."""
        return bool(self._held)


def _flip_bits(data: bytes, chance: float) -> bytes:
    draw = random.Random(chance)
    spoilt = bytearray(data)
    for bit in draw.sample(range(8 * len(data)), min(8 * len(data), draw.randint(1, 3))):
        spoilt[bit // 8] ^= 1 << bit % 8
    return bytes(spoilt)


class UdpProxy:
    """Forwards datagrams between a host and a device, in a separate thread.

    Parameters
    ----------
    to
        Address of the device.
    listen
        Address for the host; port 0 is any free one. Whoever sends to it last gets the answers.
    seed
        Of all chances.
    faults
        Of both directions, or ``back`` for those from the device to the host.
    watch
        Called by the UDP proxy's thread for each datagram with its direction, what becomes of it
        (``arrived``, ``cut``, ``passed``, ``refused`` by the system) and its bytes.

    Attributes
    ----------
    port
        Where the UDP proxy listens.
    faults
        Of each direction; may be set at any time, for datagrams that arrive from then on.
    is_cut
        While true nothing passes, as with a cable that is pulled out.
    """

    def __init__(
        self,
        to: Address,
        listen: Address = ("127.0.0.1", 0),
        *,
        seed: int = 0,
        faults: Faults | None = None,
        back: Faults | None = None,
        watch: Callable[[str, str, bytes], None] | None = None,
    ) -> None:
        faults = faults or Faults()
        self.is_cut = False
        self._watch = watch
        self._lanes = {
            TO_DEVICE: Lane(faults, seed, TO_DEVICE),
            TO_HOST: Lane(back or faults, seed, TO_HOST),
        }
        self._host: Any = None
        self._queue: list[tuple[float, int, str, bytes]] = []
        self._queued = 0
        with contextlib.ExitStack() as stack:
            self._front = stack.enter_context(_open_socket(listen, bind=True))
            self._back = stack.enter_context(_open_socket(to, bind=False))
            self._wake, self._waker = socket.socketpair()
            stack.pop_all()
        self.port: int = self._front.getsockname()[1]
        self._thread = threading.Thread(target=self.run, name="relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()
        for line in (self._front, self._back, self._wake, self._waker):
            line.close()

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """What has happened so far, by direction."""
        return {name: dict(lane.counts) for name, lane in self._lanes.items()}

    @property
    def faults(self) -> dict[str, Faults]:
        """What happens to datagrams, by direction."""
        return {name: lane.faults for name, lane in self._lanes.items()}

    @faults.setter
    def faults(self, faults: Mapping[str, Faults]) -> None:
        for name, kind in faults.items():
            self._lanes[name].faults = kind

    def stop(self) -> None:
        """End `run`."""
        self._waker.send(b"x")

    def run(self) -> None:
        """Carry datagrams until `stop`."""
        with selectors.DefaultSelector() as selector:
            for line in (self._front, self._back, self._wake):
                selector.register(line, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select(self._patience())}
                if self._wake in ready:
                    return
                if self._front in ready:
                    self._take(self._front, TO_DEVICE)
                if self._back in ready:
                    self._take(self._back, TO_HOST)
                self._pass_on()

    def _patience(self) -> float | None:
        if self._queue:
            return max(0.0, self._queue[0][0] - time.monotonic())
        return _LONGEST_HOLD if any(lane.holds for lane in self._lanes.values()) else None

    def _take(self, line: socket.socket, way: str) -> None:
        for data, sender in _read_all(line):
            if way == TO_DEVICE:
                self._host = sender
            now = time.monotonic()
            if self.is_cut:
                self._lanes[way].counts["cut"] += 1
                self._report(way, "cut", data)
            else:
                self._report(way, "arrived", data)
                self._enqueue(way, self._lanes[way].take(data, now))

    def _enqueue(self, way: str, items: list[tuple[float, bytes]]) -> None:
        for due, data in items:
            self._queued += 1
            heapq.heappush(self._queue, (due, self._queued, way, data))

    def _pass_on(self) -> None:
        now = time.monotonic()
        for way, lane in self._lanes.items():
            self._enqueue(way, lane.release(now))
        while self._queue and self._queue[0][0] <= now:
            _, _, way, data = heapq.heappop(self._queue)
            fate = "passed" if self._send(way, data) else "refused"
            self._lanes[way].counts[fate] += 1
            self._report(way, fate, data)

    def _send(self, way: str, data: bytes) -> bool:
        """Return False if the receiver is absent or its buffer is full, as on a network."""
        if way == TO_HOST and self._host is None:
            return False
        try:
            if way == TO_DEVICE:
                self._back.send(data)
            else:
                self._front.sendto(data, self._host)
        except OSError:
            return False
        return True

    def _report(self, way: str, fate: str, data: bytes) -> None:
        if self._watch is not None:
            self._watch(way, fate, data)


def _open_socket(address: Address, *, bind: bool) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
        line = socket.socket(family, kind, protocol)
        try:
            line.setblocking(False)
            if bind:
                line.bind(place)
            else:
                line.connect(place)
        except OSError:
            line.close()
            raise
    except OSError as error:
        what = "listen at" if bind else "reach"
        raise BiellaError(
            f"the UDP proxy cannot {what} {address[0]}:{address[1]}: {error}."
        ) from error
    return line


def _read_all(line: socket.socket) -> Iterator[tuple[bytes, Any]]:
    while True:
        try:
            yield line.recvfrom(_LARGEST)
        except BlockingIOError:
            return
        except OSError:  # the other end was not there for an earlier one
            continue


def read_address(text: str) -> Address:
    """Read ``host:port``, ``[::1]:port`` or a port of this machine."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise BiellaError(f"`{text}` is not an address: use host:port, or a port of this machine.")
    return host.strip("[]") or "127.0.0.1", int(port)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a UDP proxy from the shell, until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m biella.udp_proxy",
        description="Proxy between a host and a device on UDP that simulates a bad network.",
    )
    parser.add_argument(
        "--listen", required=True, help="address to which the host sends: port or host:port"
    )
    parser.add_argument("--to", required=True, help="the device: host:port")
    parser.add_argument(
        "--seed", type=int, default=0, help=("seed of the random generator (default: 0)")
    )
    parser.add_argument("--seconds", type=float, help="duration in s (default: until Ctrl-C)")
    words = {
        "delay": "delay of every datagram in s",
        "jitter": "largest additional delay in s",
        "drop": "probability that a datagram is lost",
        "duplicate": "probability that it is duplicated",
        "reorder": "probability that it is reordered",
        "corrupt": "probability that bits are flipped",
        "replay": "probability that an earlier one is repeated",
    }
    for name, text in words.items():
        parser.add_argument(f"--{name}", type=float, default=0.0, metavar="X", help=text)
    options = parser.parse_args(arguments)
    try:
        faults = Faults(**{name: getattr(options, name) for name in words})
        relay = UdpProxy(
            read_address(options.to), read_address(options.listen), seed=options.seed, faults=faults
        )
    except BiellaError as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    with relay:
        print(f"relay: port {relay.port} to {options.to}, seed {options.seed}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait(options.seconds)
        for way, counts in relay.counts.items():
            told = ", ".join(f"{number} {what}" for what, number in counts.items())
            print(f"{way}: {told or 'no datagrams'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
