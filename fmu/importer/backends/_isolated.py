"""An FMU in a separate process: a crash or hang of the FMU does not affect the run's process.

Each call is one request and one reply through the worker's standard input and output:

    request  operation, t, dt, number of bytes; then the bytes
    reply    outcome, number of bytes; then the bytes

The operations are those that the engine calls a block with, whatever the version of FMI and the
backend: L(oad the description), N (load the binary), I(nitialize), O(utput), B(egin, the end of
initialization), A(dvance), D (advance with derivatives of inputs), C (accept a step), K(eep) and
P(ut back) a snapshot, S(ave), R(estore), W(arning), Q(uit); X of FMUs for model exchange, see
``_isolated_exchange.py``. Strings and binaries are sent as bytes: T, those of inputs, before a
request that uses them, and U, those of outputs, after their numbers.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from ....blocks.external._external_block import EndOfRun
from ....errors import BiellaError, BiellaWarning, FmuError
from ....scheduler.engine._engine import Instance
from .._archive import Folder, provide_binary, sweep
from .._interface import Description
from .._kinds import interface_of, is_exchange
from .._variables import text_places
from . import _strict
from ._called import AbstractCalledFmu, Values
from ._stderr import StderrLog, printable

REQUEST = struct.Struct("<cddq")
REPLY = struct.Struct("<bq")
DONE, STOPPED, FAILED = 0, 1, -1
_START_SECONDS = (
    60.0  # more than the timeout, for the interpreter to start and the FMU to be unpacked
)
_LARGEST_ANSWER = 1 << 31  # bytes; a process that an FMU has taken over may announce any number
_LARGEST_TEXT = 1 << 20  # bytes, of what is shown
_ENDING = (b"I", b"O", b"B", b"A", b"D", b"C", b"X")  # requests in which an FMU may end the run
_LOOK_SECONDS = 0.2  # between two looks whether the worker lives, where nothing reports its end


def pack_texts(values: Sequence[str | bytes | None]) -> bytes:
    """Return strings and binaries as one message: the sizes, -1 for none, then the bytes."""
    data = [value.encode() if isinstance(value, str) else value for value in values]
    sizes = np.array([-1 if value is None else len(value) for value in data], dtype="<i8")
    return sizes.tobytes() + b"".join(value or b"" for value in data)


def unpack_texts(message: bytes, count: int) -> list[bytes | None]:
    """Return the bytes of `count` strings and binaries of a message.

    Raises
    ------
    FmuError
        The message has other sizes: an FMU may have taken over the process that sent it.
    """
    at = 8 * count
    sizes = np.frombuffer(message[:at], dtype="<i8").tolist() if len(message) >= at else []
    if len(sizes) != count or at + sum(max(size, 0) for size in sizes) != len(message):
        raise FmuError(f"{count} texts in {len(message)} bytes have other sizes than announced.")
    texts: list[bytes | None] = []
    for size in sizes:
        texts.append(None if size < 0 else message[at : at + size])
        at += max(size, 0)
    return texts


@dataclass(slots=True)
class Isolation:
    """How the worker runs the FMU."""

    backend: str
    timeout: float | None
    limits: _strict.IsolationLimits | None = None
    """With isolate="strict"."""
    report: _strict.Report = field(default_factory=_strict.Report)
    """Of the last run, likewise."""

    @property
    def isolation(self) -> dict[str, dict[str, Any]] | None:
        """What strict isolation granted and refused in the last run; None: it is not strict."""
        return None if self.limits is None else self.report.to_info()


class IsolatedFmu(AbstractCalledFmu):
    """An FMU in a separate process, which runs the block `inner`; made by `Fmu` with isolate=True.

    What the block can do is what `inner` can: each operation of the engine is passed on.
    """

    def __init__(self, inner: Any, input_values: Mapping[str, list[float]], how: Isolation) -> None:
        description: Description = inner.description
        super().__init__(description, inner.interface, input_values, inner.options)
        if how.timeout is not None and not how.timeout > 0:
            raise FmuError(f"the timeout must be a positive time in s, got {how.timeout!r}.")
        self.can_serialize = bool(inner.can_serialize)
        self.takes_any_step = inner.takes_any_step
        self.takes_input_derivatives = inner.takes_input_derivatives
        self.can_roll_back = inner.can_roll_back
        self.kernel = "python_internal_rollback" if self.can_roll_back else "python_internal"
        self.how = how

    @property
    def isolation(self) -> dict[str, dict[str, Any]] | None:
        """What strict isolation granted and refused in the last run; None: it is not strict."""
        return self.how.isolation

    def open(self, instance: Instance, number: int) -> IsolatedSession:
        """Start the process and load the FMU in it."""
        return IsolatedSession(self, Values(instance, number, self))


def make_order(block: Any, more: Mapping[str, Any] | None) -> bytes:
    """Return the data from which the worker creates the same block; `more`: of model exchange."""
    scalars = block.description.scalars
    pairs = block.interface.feedthrough(block.description)
    names = {s.reference: n for n, s in scalars.items() if not (s.is_number or s.alias)}
    given: dict[str, Any] = {names[r]: text for r, text in block.interface.strings.items()}
    for group in block.interface.parameters:
        values = list(block.interface.values[group.name])
        for scalar in group.scalars:
            own, values = values[: scalar.size], values[scalar.size :]
            if scalar.name in block.interface.given:
                given[scalar.name] = own if scalar.shape else own[0]
    return json.dumps({
        "path": str(block.description.archive.path),
        "digest": block.description.archive.digest,
        "instance_name": block.options.name,
        "substeps": block.options.substeps,
        "tolerance": block.options.tolerance,
        "parameters": given,
        "binaries": {
            names[r]: [value.hex() for value in values]
            for r, values in block.interface.binaries.items()
        },
        "event_mode": block.options.event_mode or None,
        "inputs": [group.name for group in block.interface.inputs],
        "outputs": [group.name for group in block.interface.outputs],
        "feedthrough": {
            output.name: [i for o, i in pairs if o == output.name]
            for output in block.interface.outputs
        },
        "logging": (block.options.categories or True) if block.options.logging else False,
        "backend": block.how.backend,
        "kind": "me" if is_exchange(block.description) else "cs",
        "exchange": more,
        "validate": False,  # findings were reported by this process
    }).encode()  # fmt: skip


class IsolatedSession:
    """The worker process of one block in one run."""

    saved_on_request = True
    more: Mapping[str, Any] | None = None
    """What the worker needs besides, of FMUs for model exchange."""

    def __init__(self, block: Any, values: Values) -> None:
        self.block, self.values = block, values
        self.portable = block.can_serialize
        self._in_call = self._started = self._told = False
        self._listener: _strict.Listener | None = None
        self._stderr: StderrLog | None = None
        self._folder: Folder | None = None
        worker = f"{__package__}._worker"
        if block.how.limits is None:
            folders = [folder or os.getcwd() for folder in sys.path]
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", worker, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
                # Ctrl-C in a terminal reaches every process of its foreground group.
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
            self._life = _open_life(self.process)
        else:
            self._start_confined(worker, block.how.limits)
        self.text_inputs = text_places(block.interface.inputs)
        self.text_outputs = text_places(block.interface.outputs)
        self._sent: dict[int, str | bytes | None] = {}
        try:
            self._call(b"L", payload=make_order(block, self.more), extra=_START_SECONDS)
            if self._listener is not None:
                self._listener.report.refused.clear()  # those of Python
            self._call(b"N", extra=_START_SECONDS)
        except BaseException:
            self.close()
            raise

    def _start_confined(self, worker: str, limits: _strict.IsolationLimits) -> None:
        """Start the process with a folder that only this process can write to."""
        archive = self.block.description.archive
        self._folder = Folder(archive)
        try:
            with contextlib.suppress(FmuError):  # a missing binary is reported when it is loaded
                kind = interface_of(self.block.description)
                provide_binary(self._folder.path, archive, kind.modelIdentifier)
            self.process, channel = _strict.start(worker, self._folder.path, archive.path, limits)
        except BaseException:
            self._folder.remove()
            raise
        self._life = _open_life(self.process)
        errors = os.dup(self._pipe("stderr").fileno())
        self._pipe("stderr").close()
        self._stderr = StderrLog(errors, self.block.external_name)
        with channel:
            try:
                limit = self.block.how.timeout
                limit = None if limit is None else limit + _START_SECONDS
                answer = self._exchange(None, limit)[1]
                name = self.block.external_name
                self._listener = _strict.receive(channel, answer, name, limits)
            except BaseException:
                self.close()
                raise
        self.block.how.report = self._listener.report

    def start(self, t: float) -> None:
        """Begin a run."""
        self._call(b"I", t, payload=self.values.parameters.tobytes())
        self._started = True

    def output(self, t: float) -> None:
        """Ask for the outputs."""
        answer = self._call(b"O", t, payload=self._present())
        if len(answer) != 8 * self.values.output_count:  # it would be written beyond its place
            raise FmuError(f"{self.block.external_name} sent an answer of {len(answer)} bytes.")
        self._show(np.frombuffer(answer).copy())

    def _show(self, outputs: Any) -> None:
        if self.text_outputs:
            texts = unpack_texts(self._call(b"U"), len(self.text_outputs))
            for (place, type_), text in zip(self.text_outputs.items(), texts, strict=True):
                outputs[place] = self.values.number(place, text, type_)
        self.values.set_outputs(outputs)

    def begin(self, t: float) -> bool:
        """End the initialization; return whether it had not ended before."""
        return self._call(b"B", t, payload=self._present()) != b"\0"

    def advance(self, t: float, dt: float) -> None:
        """Take a step; in a coupling the inputs may have derivatives."""
        derivatives = self.values.input_derivatives if self.block.takes_input_derivatives else None
        if derivatives is None:
            self._call(b"A", t, dt, self._present())
        else:
            self._call(b"D", t, dt, self._present() + derivatives.tobytes())

    def accept_step(self, t: float) -> None:
        """Start a coupled step."""
        self._call(b"C", t, payload=self._present())

    def keep(self, snapshot: int) -> None:
        """Save the state in the worker under a number."""
        self._call(b"K", dt=float(snapshot))

    def put_back(self, snapshot: int) -> None:
        """Restore the state saved under a number."""
        self._call(b"P", dt=float(snapshot))

    def save(self) -> bytes:
        """Return the FMU's state."""
        if not self.portable:
            raise BiellaError(f"{self.block.external_name} cannot serialize its state.")
        return self._call(b"S")

    def restore(self, state: bytes) -> None:
        """Go back to a saved state."""
        self._call(b"R", payload=state)

    def close(self) -> None:
        """End the worker: by asking it to, else by force."""
        with contextlib.suppress(OSError, FmuError):
            if self.process.poll() is None:
                self._warn()
                if os.name == "nt" or select.select([], [self._pipe("stdin")], [], 0)[1]:
                    self._send(b"Q")
        with contextlib.suppress(OSError):
            self._pipe("stdin").close()
        try:
            self._join(self.block.how.timeout or 5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self._listener is not None:
            self._listener.close()
        if self._folder is not None:
            self._folder.remove()
        self._pipe("stdout").close()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None
        if self._life is not None:
            os.close(self._life)
            self._life = None
        if self.process.returncode:
            sweep()  # it could not clean up after itself
        if self._listener is not None and self._listener.report.refused and not self._told:
            self._told = True
            warnings.warn(
                f"{self.block.external_name}: {self._refusals()}", BiellaWarning, stacklevel=3
            )

    def _join(self, seconds: float) -> None:
        """Wait for the end of the process, and answer what it still asks for."""
        if self._listener is None:
            self.process.wait(seconds)
            return
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            left = end - time.monotonic()
            if left <= 0.0:
                raise subprocess.TimeoutExpired(self.process.args, seconds)
            descriptors = [d for d in (self._listener.descriptor, self._life) if d is not None]
            select.select(descriptors, [], [], min(left, _LOOK_SECONDS))
            self._listener.answer()

    def _refusals(self) -> str:
        """Return what strict isolation has to do with an error or the run; empty: nothing."""
        if self._listener is None:
            return ""
        refused = self._listener.report.describe_refused()
        if refused:
            return (
                f'isolate="strict" refused system calls of the FMU: {refused}. If you trust it and '
                f"it needs them, use isolate=True."
            )
        return (
            'The FMU ran with isolate="strict": it can read its own folder, Python and system '
            "libraries only (more: IsolationLimits(read=…)), and has no network."
        )

    def _warn(self) -> None:
        """Issue the warning of the block about the run, if there is one."""
        text = b"" if self._in_call or not self._started else self._call(b"W")
        if text:
            message = f"{self.block.external_name}: {printable(text)}"
            warnings.warn(message, BiellaWarning, stacklevel=3)

    def _present(self) -> bytes:
        inputs = self.values.inputs
        if self.text_inputs:  # their numbers mean nothing in the other process
            places = self.text_inputs.items()
            texts = {place: self.values.text(inputs[place], type_) for place, type_ in places}
            if texts != self._sent:
                self._call(b"T", payload=pack_texts(list(texts.values())))
                self._sent = texts
        return self.values.tunable.tobytes() + inputs.tobytes()

    def _pipe(self, name: str) -> IO[bytes]:
        pipe = getattr(self.process, name)
        assert pipe is not None
        return pipe  # type: ignore[no-any-return]

    def _send(
        self,
        op: bytes,
        t: float = 0.0,
        dt: float = 0.0,
        payload: bytes = b"",
        watch: _Watch | None = None,
    ) -> None:
        """Send a request, in parts that do not block if the process does not read them."""
        pipe = self._pipe("stdin")
        message = memoryview(REQUEST.pack(op, t, dt, len(payload)) + payload)
        if watch is None or os.name == "nt":
            pipe.write(message)
            pipe.flush()
            return
        while message:
            watch.wait(pipe.fileno(), writes=True)
            message = message[os.write(pipe.fileno(), message[: select.PIPE_BUF]) :]

    def _call(
        self,
        op: bytes,
        t: float = 0.0,
        dt: float = 0.0,
        payload: bytes = b"",
        extra: float = 0.0,
    ) -> bytes:
        limit = None if self.block.how.timeout is None else self.block.how.timeout + extra
        if self._in_call:
            raise FmuError(f"{self.block.external_name} was interrupted during a call.")
        self._in_call = True  # for good, if Ctrl-C ends the wait for the answer
        outcome, answer = self._exchange((op, t, dt, payload), limit)
        self._in_call = False
        if outcome == STOPPED:
            raise EndOfRun(printable(answer))
        if outcome == FAILED:
            raise FmuError(self._explain(printable(answer)))
        return answer

    def _exchange(
        self, request: tuple[bytes, float, float, bytes] | None, limit: float | None
    ) -> tuple[int, bytes]:
        """Send a request, if there is one, and return the outcome and the answer."""
        expired = False
        try:
            with _Watch(self.process, self._life, limit, self._listener) as watch:
                try:
                    if request is not None:
                        self._send(*request, watch)
                    outcome, size = REPLY.unpack(self._read(REPLY.size, watch))
                    ends = request is not None and request[0] in _ENDING
                    known = (DONE, FAILED, STOPPED) if ends else (DONE, FAILED)
                    most = _LARGEST_ANSWER if outcome == DONE else _LARGEST_TEXT
                    if not 0 <= size <= most or outcome not in known:
                        self.process.kill()
                        raise FmuError(
                            self._explain(
                                f"{self.block.external_name} has written to the pipe of its "
                                f"process, which was terminated."
                            )
                        )
                    return outcome, self._read(size, watch)
                finally:
                    expired = watch.expired
        except (BrokenPipeError, EOFError):
            self._in_call = False
            raise FmuError(self._explain(self._obituary(expired, limit))) from None

    def _explain(self, text: str) -> str:
        """Return an error with what strict isolation has to do with it."""
        why = self._refusals()
        if not why:
            return text
        self._told = True
        return f"{text} {why}"

    def _read(self, size: int, watch: _Watch) -> bytes:
        descriptor = self._pipe("stdout").fileno()
        parts = []
        while size > 0:
            watch.wait(descriptor)
            part = os.read(descriptor, min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _obituary(self, expired: bool, limit: float | None) -> str:
        """Say how the worker ended."""
        if expired:
            return (
                f"{self.block.external_name} did not respond within {limit:g} s, and its "
                f"process was terminated."
            )
        code = self.process.wait()
        limits = self.block.how.limits
        if limits is not None and -code == getattr(signal, "SIGXCPU", 0):
            return (
                f"{self.block.external_name} has used more than cpu_time={limits.cpu_time:g} s of "
                f"processor time, and its process was terminated."
            )
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            return f"{self.block.external_name} crashed: its process was terminated by {name}."
        return f"{self.block.external_name} exited its process with code {code}."


def _open_life(process: subprocess.Popen[bytes]) -> int | None:
    """Return a descriptor that becomes readable when the process ends; None: there is none here."""
    try:
        return os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # other systems, and Linux before 5.3
        return None


class _Watch:
    """Waits for an answer, and ends a process that takes too long over one call.

    The end of a process does not close its pipe if the FMU has forked: it is observed as well.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        life: int | None,
        limit: float | None,
        listener: _strict.Listener | None = None,
    ) -> None:
        self.process, self.life, self.limit, self.listener = process, life, limit, listener
        self.expired = False
        self._end = math.inf if limit is None else time.monotonic() + limit
        self._timer: threading.Timer | None = None

    def __enter__(self) -> _Watch:
        if self.limit is not None and os.name == "nt":  # there, select knows no pipes
            self._timer = threading.Timer(self.limit, self._expire)
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def wait(self, descriptor: int, writes: bool = False) -> None:
        """Return when there is something to read, or, with `writes`, room for some bytes.

        Raises
        ------
        EOFError
            Nothing will come: the process has ended, or was ended after its time.
        """
        if os.name == "nt":
            return
        refused = None if self.listener is None else self.listener.descriptor
        own = None if writes else descriptor
        descriptors = [d for d in (own, self.life, refused) if d is not None]
        written = [descriptor] if writes else []
        while True:
            left = self._end - time.monotonic()
            pause = min(left, _LOOK_SECONDS if self.life is None else math.inf)
            limit = None if pause == math.inf else max(pause, 0)
            ready = select.select(descriptors, written, [], limit)
            if self.listener is not None:
                self.listener.answer()
            # What it wrote before its end is read first.
            if descriptor in ready[0] or ready[1]:
                return
            ended = self.process.poll() is not None
            if ended and (writes or not select.select([descriptor], [], [], 0)[0]):
                raise EOFError
            if left <= 0.0:
                self._expire()
                raise EOFError  # a process that the FMU has forked may hold the pipe

    def _expire(self) -> None:
        self.expired = True
        self.process.kill()
