"""The C engine, through ctypes: `Instance` is one running copy of a plan."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import struct
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import POINTER, byref, c_double, c_int64, c_void_p, create_string_buffer
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import numpy.typing as npt

from ...blocks.external._external_block import Attachment, EndOfRun, ExternalBlock, Session
from ...blocks.external._python import PythonBlock
from ...errors import BiellaError, BiellaWarning, BlockError, PlanError
from ..compile.plan._described import read_value
from ._growth import explain_growth
from ._library import contract, library

if TYPE_CHECKING:
    from ..compile.plan._plan import Plan

OK, STOP, UNCHANGED = contract.BL_OK, contract.BL_STOP, contract.BL_UNCHANGED
ERROR_STATE, ERROR_NOT_FINITE = contract.BL_ERROR_STATE, contract.BL_ERROR_NOT_FINITE
ERROR_LOOP, ERROR_SOLVER = contract.BL_ERROR_LOOP, contract.BL_ERROR_SOLVER
ERROR_BLOCK = contract.BL_ERROR_BLOCK
DIAGNOSTIC_START, DIAGNOSTIC_RUN = contract.BL_DIAGNOSTIC_START, contract.BL_DIAGNOSTIC_RUN
_NO_STATE = b"no state: "  # begins what stands for the state of a run that cannot be saved

_LENGTH = struct.Struct("<q")
Array = npt.NDArray[np.float64]


class Instance:
    """One running copy of a plan: its values, its tick.

    Attributes
    ----------
    values
        All values as one array that the engine works on: parameters, signals, states, memory. After
        writing to it call `touch`.
    is_shadow
        Whether it is not initialized, but takes over the states of another instance, which lends it
        the FMUs.
    """

    def __init__(self, plan: Plan, is_shadow: bool = False) -> None:
        self.plan, self.is_shadow = plan, is_shadow
        self.library = library()
        self.handle = c_void_p()
        message = ctypes.create_string_buffer(512)
        status = self.library.bl_open(plan.data, len(plan.data), byref(self.handle), message, 512)
        if status != OK:
            raise PlanError(f"{message.value.decode(errors='replace')}.")
        layout = contract.bl_layout()
        self.library.bl_get_layout(self.handle, byref(layout))
        self.layout = layout
        self.values: Array = np.ctypeslib.as_array(
            self.library.bl_values(self.handle), shape=(layout.total,)
        )
        self._raised: tuple[int, BaseException] | None = None
        self._failed_inputs = ""
        self.explains = True  # why a value is not finite, by another instance
        self._end = ""
        self.external: dict[int, Attachment] = {}
        try:
            with self._process_state():
                for number, block in plan.external.items():
                    self.external[number] = block.open(self, number)
        except BaseException:
            self.close()
            raise
        if plan.python_blocks:
            self._host = make_host(self, plan.python_blocks)
            self.library.bl_set_host(self.handle, self._host)

    def close(self) -> None:
        """Free the engine."""
        if self.handle:
            self.values = np.array(self.values)
            with self._process_state():
                self.library.bl_close(self.handle)
                self.handle = c_void_p()
                for attachment in self.external.values():
                    attachment.close()

    def abandon(self) -> None:
        """Never free the engine in a forked child: the parent owns external resources of blocks."""
        self.handle = c_void_p()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.close()

    @property
    def tick(self) -> int:
        """Number of the last tick."""
        return int(self.library.bl_tick(self.handle))

    @property
    def time(self) -> float:
        """The present time in seconds: that of the last tick, or within it."""
        return float(self.library.bl_time(self.handle))

    def reset(self) -> None:
        """Go back to tick 0, with the plan's own parameters, and initialize."""
        self.library.bl_reset(self.handle)
        self.initialize()

    def start_at(self, time: float) -> None:
        """Let the run start at this time, in s, before it is initialized."""
        self.library.bl_set_start(self.handle, time)

    def initialize(self) -> None:
        """Set all states from the parameters and go to tick 0."""
        self.check(self.call(self.library.bl_init))

    def evaluate(self) -> None:
        """Compute all outputs at the present time."""
        self.check(self.call(self.library.bl_outputs))

    def run(self, ticks: int, record: contract.bl_record | None = None) -> tuple[int, bool]:
        """Run `ticks` ticks; return how many were done and whether a Stop block ended the run."""
        done = c_int64()
        reference = byref(record) if record is not None else None
        status = self.call(self.library.bl_run, ticks, reference, byref(done))
        self.check(status)
        return done.value, status == STOP

    def run_to(self, time: float) -> bool:
        """Run until `time`, also within a tick; return whether a Stop block ended the run."""
        status = self.call(self.library.bl_run_to, time)
        self.check(status)
        return bool(status == STOP)

    def record_now(self, record: contract.bl_record) -> None:
        """Record the present tick."""
        self.check(self.call(self.library.bl_record_now, byref(record)))

    def derivatives(self) -> Array:
        """Return dx/dt at the present time."""
        dx = np.empty(self.layout.states)
        pointer = dx.ctypes.data_as(POINTER(c_double))
        self.check(self.library.bl_derivatives(self.handle, pointer))
        return dx

    @contextlib.contextmanager
    def frozen_modes(self) -> Iterator[None]:
        """Keep the modes of blocks with discontinuities as the present values decide them."""
        self.check(self.call(self.library.bl_freeze_modes))
        try:
            yield
        finally:
            self.library.bl_release_modes(self.handle)

    @property
    def counters(self) -> Array:
        """The counters of the solver, and then the head of its memory if it has any."""
        layout = self.layout
        first = layout.parameters + layout.signals + layout.states + layout.memory
        return self.values[first : first + layout.diagnostics]

    @property
    def event_counts(self) -> tuple[int, int, int]:
        """Located events, ticks with events that were not located, and evaluations to locate."""
        located, unlocated, searched = (
            int(self.counters[place])
            for place in (
                contract.BL_COUNT_EVENTS,
                contract.BL_COUNT_UNLOCATED,
                contract.BL_COUNT_SEARCHED,
            )
        )
        return located, unlocated, searched

    def describe_event(self, block: int, crossing: int) -> str:
        """Return what happens at an event of a block; empty if the block does not describe it."""
        text = create_string_buffer(256)
        self.library.bl_describe_event(self.handle, block, crossing, text, len(text))
        return text.value.decode(errors="replace")

    @property
    def solver_counts(self) -> dict[str, int]:
        """What the solver has counted since the start, by the names of ``solver.…`` signals."""
        ports = self.plan.solver_signals
        return {name.partition(".")[2]: int(self.values[p.slot]) for name, p in ports.items()}

    @property
    def fallback_marks(self) -> dict[int, float]:
        """For each fallback of the solver, a number that grows where it happens."""
        counters = self.counters
        marks = {
            contract.BL_FALLBACK_UNLOCATED: float(counters[contract.BL_COUNT_UNLOCATED]),
            contract.BL_FALLBACK_UNCONTROLLED: float(counters[contract.BL_COUNT_UNCONTROLLED]),
        }
        if len(counters) > contract.BL_EVENT_COUNTERS:
            stiff = counters[contract.BL_EVENT_COUNTERS + contract.BL_SOLVER_STIFF]
            marks[contract.BL_FALLBACK_STIFF] = float(stiff)
        return marks

    def list_fallbacks(self, before: Mapping[int, float]) -> list[str]:
        """Return what the solver could not do as asked, as text, since `fallback_marks` was read.

        That is, ticks with events that were not located, ticks without error control, and a
        diagram that is stiff for an explicit solver.
        """
        marks, texts, kind = self.fallback_marks, [], -1
        while (kind := self.library.bl_next_fallback(self.handle, kind)) >= 0:
            if marks[kind] > before.get(kind, 0.0):
                texts.append(f"{self._message()}.")
        return texts

    def warn_of_fallbacks(self, before: Mapping[int, float], stacklevel: int = 2) -> None:
        """Issue a warning for each of `list_fallbacks`."""
        for text in self.list_fallbacks(before):
            warnings.warn(f"{self.plan.name}: {text}", BiellaWarning, stacklevel=stacklevel + 1)

    @property
    def states(self) -> Array:
        """The continuous states, as a view; after writing to it call `touch`."""
        first = self.layout.parameters + self.layout.signals
        return self.values[first : first + self.layout.states]

    @property
    def memory(self) -> Array:
        """The discrete states and work memory, as a view."""
        first = self.layout.parameters + self.layout.signals + self.layout.states
        return self.values[first : first + self.layout.memory]

    def touch(self) -> None:
        """Say that values were written from outside."""
        self.library.bl_touch(self.handle)

    def get(self, path: str) -> Any:
        """Return a signal (at the present time) or a parameter: a number, or an array."""
        plan = self.plan
        if path in plan.parameters:
            parameter = plan.parameters[path]
            values = self.values[parameter.slot : parameter.slot + parameter.size]
            return (
                float(values[0])
                if parameter.shape == ()
                else values.reshape(parameter.shape).copy()
            )
        port = plan.find_signal(path)
        self.evaluate()
        if port.width == 1:
            return float(self.values[port.slot])
        return self.values[port.slot : port.slot + port.width].copy()

    def set(self, path: str, value: Any) -> None:
        """Set a parameter or an input of the diagram."""
        where, shape = self.plan.find_settable(path)
        self.values[where] = read_value(path, value, shape, self.values[where])
        self.touch()

    def stop_reason(self) -> str:
        """Return which Stop block ended the run, and its message."""
        number = self.library.bl_failed_block(self.handle)
        note = self._message()
        path = self.plan.blocks[number].path
        if number in self.plan.external:
            note = self._end or self._message()
        return f"by `{path}` at t = {self.time:.9g} s" + (f": {note}" if note else "")

    def warn(self, about: int, stacklevel: int = 2) -> None:
        """Issue the warnings of blocks: those of `DIAGNOSTIC_START` or `DIAGNOSTIC_RUN`.

        At the start also of algebraic loops that have no unique solution.
        """
        number = -1
        while (number := self.library.bl_next_diagnostic(self.handle, about, number)) >= 0:
            block = self.plan.blocks[number]
            text = f"`{block.path}` ({block.type}): {self._message()}"
            warnings.warn(text, BiellaWarning, stacklevel=stacklevel + 1)
        if about == DIAGNOSTIC_START:
            for text in self._check_loops():
                warnings.warn(text, BiellaWarning, stacklevel=stacklevel + 1)

    def _check_loops(self) -> list[str]:
        """Return the problems of algebraic loops at the present time."""
        if not self.plan.loops:
            return []
        try:
            self.evaluate()
        except BlockError:
            return []  # the run ends with it
        names = {
            port.slot + k: port.path if port.width == 1 else f"{port.path}[{k}]"
            for block in self.plan.blocks
            for port in block.outputs
            for k in range(port.width)
        }
        found = []
        for number, cycle in enumerate(self.plan.loops):
            size = self.library.bl_loop_size(self.handle, number)
            chosen, other, condition = (c_double * size)(), (c_double * size)(), c_double()
            verdict = self.library.bl_check_loop(
                self.handle, number, chosen, other, byref(condition)
            )
            slots = self.library.bl_loop_slots(self.handle, number)
            tears = [names.get(slots[k], "") for k in range(size)]
            where = f"the algebraic loop {' → '.join(cycle)}"
            if verdict == contract.BL_LOOP_IS_SINGULAR:
                how = f"relative errors in it are amplified {condition.value:.1g} times"
                if condition.value == math.inf:
                    how = "its Jacobian has no inverse"
                found.append(
                    f"{where} is singular at t = {self.time:.9g} s: "
                    f"{_show_values(tears, chosen, chosen)} solves it, but so do other values, "
                    f"exactly or nearly: {how}. "
                    f"The start value of Newton's method, 0 or the last solution, decides. "
                    f"A loop with a gain of 1 does not determine its signal: correct the gain, "
                    f"or put a UnitDelay into the loop."
                )
            elif verdict == contract.BL_LOOP_HAS_OTHER:
                found.append(
                    f"{where} has more than one solution at t = {self.time:.9g} s: "
                    f"{_show_values(tears, chosen, other)} was taken, because Newton's method "
                    f"starts from 0 and then from the last solution; "
                    f"{_show_values(tears, other, chosen)} is another one. Put a UnitDelay into "
                    f"the loop, or limit the signal to the intended range."
                )
        return found

    def save(self) -> bytes:
        """Return everything that the next tick depends on."""
        buffer = ctypes.create_string_buffer(self.library.bl_state_size(self.handle))
        self.library.bl_save(self.handle, buffer)
        with self._process_state():
            external = [attachment.save() for attachment in self.external.values()]
        return b"".join([buffer.raw, *(_LENGTH.pack(len(item)) + item for item in external)])

    def checkpoint(self, asked: bool = False) -> bytes:
        """Return what `save` does; if another run could not use it, the reason instead.

        The state of an FMU is saved only if `asked` is true: for nothing else does a run call
        functions that are wrong in some FMUs.
        """
        for number, attachment in self.external.items():
            block = self.plan.external[number]
            if attachment.saved_on_request and not asked:
                text = (
                    f"the run cannot be continued from its checkpoint, because the state of "
                    f"{block.external_name} was not saved. Save it with simulate(…, "
                    f"keep_state=True)."
                )
                return _NO_STATE + text.encode()
            if not attachment.portable:
                text = (
                    f"the run cannot be continued from its checkpoint, because "
                    f"{block.external_name} cannot serialize its state. Run it without "
                    f"interruption."
                )
                return _NO_STATE + text.encode()
        try:
            return self.save()
        except BiellaError as error:
            return _NO_STATE + str(error).encode()

    def restore(self, state: bytes) -> None:
        """Go back to a saved state, also one of another instance of the same plan."""
        if state.startswith(_NO_STATE):
            raise BiellaError(state[len(_NO_STATE) :].decode())
        own = self.library.bl_state_size(self.handle) if self.external else len(state)
        if self.library.bl_restore(self.handle, state[:own], len(state[:own])) != OK:
            raise BiellaError(self._message() + ".")
        for attachment in self.external.values():
            if len(state) < own + _LENGTH.size:
                raise BiellaError("the saved state is truncated: the states of FMUs are missing.")
            (length,) = _LENGTH.unpack_from(state, own)
            own += _LENGTH.size
            with self._process_state():
                attachment.restore(state[own : own + length])
            own += length

    def call(self, function: Any, *arguments: Any) -> int:
        """Call a function of the engine, keeping the `ProcessState` if FMUs run in it."""
        with self._process_state():
            return int(function(self.handle, *arguments))

    def _process_state(self) -> contextlib.AbstractContextManager[None]:
        return ProcessState() if self.plan.external else contextlib.nullcontext()

    def _message(self) -> str:
        text: bytes = self.library.bl_message(self.handle)
        return text.decode(errors="replace")

    def check(self, status: int) -> None:
        """Raise the error of an engine status, unless it is success."""
        if status in (OK, STOP):
            return
        number = self.library.bl_failed_block(self.handle)
        time, tick = self.time, self.tick
        when = f"at t = {time:.9g} s (tick {tick})"
        if status == ERROR_LOOP:
            cycle = " → ".join(self.plan.loops[-2 - number])
            raise BlockError(
                f"an algebraic loop has no solution that Newton's method finds {when}: {cycle}. "
                f"{self._message()}. Break it with a UnitDelay, or check its gain.",
                time=time,
                tick=tick,
            )
        path = self.plan.blocks[number].path if 0 <= number < len(self.plan.blocks) else ""
        named = f"`{path}` ({self.plan.blocks[number].type})" if path else "the engine"
        raised, self._raised = self._raised, None
        if status == contract.BL_ERROR_INTERRUPT and raised is not None:
            raise raised[1]
        # What a block raised before may have been tried again, and have gone well.
        failed = status in (ERROR_BLOCK, contract.BL_ERROR_STATE)
        if failed and raised is not None and number in (raised[0], -1):
            cause = raised[1]
            raise BlockError(
                f"{named} raised {type(cause).__name__} {when}: {cause}. "
                f"Inputs: {self._failed_inputs or 'none'}.",
                path=path,
                time=time,
                tick=tick,
            ) from cause
        if status == ERROR_NOT_FINITE:
            inputs = self._show_inputs(number)
            text = f"{named} returned a value that is not finite {when}. Inputs: {inputs}."
            own = self._message()
            named_formula = own.startswith("`")  # by a mechanism
            if number in self.external and own.startswith("FMU "):
                text += f" {own}."
            elif named_formula:
                text += f" {own}"
            if self.counters[contract.BL_COUNT_UNCONTROLLED]:
                since = self.counters[contract.BL_COUNT_UNCONTROLLED_TIME]
                text += (
                    f" Error control was given up at t = {since:.9g} s, because a tick needed more "
                    f"than max_steps internal steps; the diagram may be stiff: use "
                    f"solver='radau5', or a smaller step."
                )
            if self.explains and not named_formula:
                text += explain_growth(self)
        elif status == ERROR_BLOCK:
            external = self.plan.external.get(number)
            whose = (
                f"{external.external_name}: " if external and "FMU " not in self._message() else ""
            )
            text = f"{named} stopped the run {when}: {whose}{self._message()}"
        else:
            text = f"{named}: {self._message()} {when}."
        raise BlockError(text, path=path, time=time, tick=tick)

    def _show_inputs(self, number: int) -> str:
        if not 0 <= number < len(self.plan.blocks):
            return "unknown"
        ports = self.plan.blocks[number].inputs
        shown = (
            f"{port.path.rpartition('.')[2]} = "
            f"{_show(self.values[port.slot : port.slot + port.width])}"
            for port in ports
        )
        return ", ".join(shown) or "none"


class ProcessState:
    """What an FMU may change for the whole process or thread, restored on exit.

    That is the working directory, which relative file names depend on, and the floating-point
    control: rounding, flushing of subnormal numbers, trapped exceptions. The directory is one for
    all threads: the first that enters keeps it, and the last that leaves restores it.
    """

    _lock = threading.RLock()  # collecting garbage within may close another instance
    _users = 0
    _folder: str | None = None

    def __enter__(self) -> None:
        shared = ProcessState
        with shared._lock:
            if shared._users == 0:
                shared._folder = _working_folder()
            shared._users += 1
        self._control = keep_float_control()

    def __exit__(self, *_: object) -> None:
        restore_float_control(self._control)
        shared = ProcessState
        with shared._lock:
            shared._users -= 1
            folder = None if shared._users else shared._folder
            if folder is not None and _working_folder() != folder:
                with contextlib.suppress(OSError):  # it was removed meanwhile
                    os.chdir(folder)


def keep_float_control() -> Any:
    """Return the floating-point control of this thread, for `restore_float_control`."""
    control = (ctypes.c_uint32 * 2)()
    library().bl_keep_float_control(control)
    return control


def restore_float_control(control: Any) -> None:
    """Restore the floating-point control of this thread."""
    library().bl_restore_float_control(control)


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _show_values(names: Sequence[str], values: Any, others: Any) -> str:
    """Return the values by name, at most four, those first that differ most from the others."""
    ranked = sorted(range(len(names)), key=lambda k: -abs(values[k] - others[k]))
    shown = ", ".join(f"`{names[k]}` = {values[k]:.6g}" for k in sorted(ranked[:4]))
    return shown + (", …" if len(names) > 4 else "")


def _show(values: Array) -> str:
    if values.size == 1:
        return f"{values[0]:.9g}"
    return "[" + ", ".join(f"{v:.6g}" for v in values[:8]) + (", …]" if values.size > 8 else "]")


Operation = Callable[[float], None]


def make_host(instance: Instance, blocks: Mapping[int, PythonBlock]) -> Any:
    """Return the function by which the engine calls Python blocks."""
    operations: dict[int, list[Any]] = {
        n: _bind_session(cast(Session, instance.external[n]))
        if isinstance(block, ExternalBlock)
        else _bind_operations(instance, n, block)
        for n, block in blocks.items()
    }

    def call(number: int, op: int, t: float, dt: float) -> int:
        try:
            if op == contract.BL_OP_ADVANCE:
                operations[number][op](t, dt)
            elif op in (contract.BL_OP_SAVE, contract.BL_OP_RESTORE):
                operations[number][op](int(dt))
            elif op == contract.BL_OP_EXIT_INITIALIZATION:
                return OK if operations[number][op](t) else UNCHANGED
            else:
                operations[number][op](t)
        except EndOfRun as end:
            instance._end = str(end)
            return STOP
        except BaseException as error:
            instance._raised = number, error
            instance._failed_inputs = instance._show_inputs(number)
            interrupted = isinstance(error, KeyboardInterrupt)
            return contract.BL_ERROR_INTERRUPT if interrupted else ERROR_BLOCK
        return OK

    return contract.bl_host_call(call)


def _bind_session(session: Session) -> list[Any]:
    """List the operations of a block that runs elsewhere, by number."""
    names = ("update", "advance", "begin", "accept_step", "keep", "put_back")
    update, advance, begin, *rolling_back = (getattr(session, name, None) for name in names)
    return [session.start, session.output, None, update, advance, None, begin, *rolling_back]


def _bind_operations(instance: Instance, number: int, block: PythonBlock) -> list[Operation]:
    """Tie a block's methods to where its values lie in the engine."""
    info = instance.plan.blocks[number]
    memory = memoryview(instance.values.data).cast("B").cast("d")  # a view that gives plain floats
    record = instance.plan.block_records[number]
    x_first, x_count = int(record["x_first"]), int(record["x_count"])
    z_first, z_count = int(record["z_first"]), int(record["z_count"])
    state = (
        instance.states[x_first : x_first + x_count]
        if block.is_continuous
        else instance.memory[z_first : z_first + z_count]
    )
    readers = [_reader(memory, instance.values, port.slot, port.width) for port in info.inputs]
    writers = [
        _writer(memory, instance.values, port.slot, port.width, port.path.rpartition(".")[2])
        for port in info.outputs
    ]
    derivative = _derivative_view(instance, x_first, x_count)
    initial = block.initial_state

    if len(readers) == 1:
        read_all: Callable[[], Any] = readers[0]
    else:

        def read_all() -> Any:
            return tuple([read() for read in readers])

    def init(t: float) -> None:
        state[:] = initial

    method: Callable[[float, Any, Any], Any] = getattr(block, "output", lambda t, x, u: None)
    count = len(writers)
    if count == 1:
        write_one = writers[0]

        def output(t: float) -> None:
            write_one(method(t, state, read_all()))
    else:

        def output(t: float) -> None:
            results = method(t, state, read_all())
            if count == 0:
                return
            if not isinstance(results, tuple | list) or len(results) != count:
                raise TypeError(f"output must return {count} values, got {results!r}")
            for write, result in zip(writers, results, strict=True):
                write(result)

    def differentiate(t: float) -> None:
        state_derivatives = block.derivative(t, state, read_all())  # type: ignore[attr-defined]
        derivative[:] = _read_returned("derivative", state_derivatives, derivative.size)

    def update(t: float) -> None:
        new = block.update(t, state, read_all())  # type: ignore[attr-defined]
        if initial.size:
            state[:] = _read_returned("update", new, state.size)

    return [init, output, differentiate, update]


def _derivative_view(instance: Instance, first: int, count: int) -> Array:
    if not count:
        return np.empty(0)
    state_derivatives = np.ctypeslib.as_array(
        instance.library.bl_state_derivatives(instance.handle), shape=(instance.layout.states,)
    )
    return state_derivatives[first : first + count]


def _reader(memory: memoryview[float], values: Array, slot: int, width: int) -> Callable[[], Any]:
    if width == 1:
        return lambda: memory[slot]
    view = values[slot : slot + width]
    view = view.view()
    view.setflags(write=False)
    return lambda: view


def _writer(
    memory: memoryview[float], values: Array, slot: int, width: int, name: str
) -> Callable[[Any], None]:
    if width == 1:

        def write(value: Any) -> None:
            try:
                memory[slot] = value
            except TypeError:
                memory[slot] = _read_returned("output", value, 1, name)[0]

        return write
    view = values[slot : slot + width]

    def write_vector(value: Any) -> None:
        view[:] = _read_returned("output", value, width, name, every=True)

    return write_vector


def _read_returned(
    method: str, value: Any, size: int, port: str = "", every: bool = False
) -> Array:
    """Return the result of a method of a Python block as `size` numbers; raise if it is invalid.

    One number is used for all, unless `every` element is required.
    """
    wanted = f"{size} numbers" if size > 1 else "a number"
    what = f"{method} must return {wanted}" + (f" for `{port}`" if port else "")
    if value is None:
        raise TypeError(f"{what}, but returned None: every path needs a `return`")
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{what}, got {value!r}") from None
    if array.size != size and (array.ndim or every):
        shape = f" (an array of shape {array.shape})" if array.ndim else ""
        raise ValueError(f"{what}, got {array.size}{shape}")
    return np.broadcast_to(array.ravel(), size) if array.size == 1 else array.ravel()
