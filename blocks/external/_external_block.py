"""Blocks whose state is outside the engine, and the session that a run opens for each."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

EXPORT_BLOCKER = (
    "it is an external FMU, and an FMU holds no other. Leave it outside and connect it to the "
    "exported one in the tool that runs both"
)
"""Why such a block does not leave in an FMU of ours, for `AbstractBlock.export_blocker`."""


class EndOfRun(Exception):
    """Raised by a session whose block ends the run without a failure; its text is the reason."""


class Attachment(Protocol):
    """Resources that one run holds open for one external block."""

    @property
    def portable(self) -> bool:
        """Whether a saved state is good for another run too."""
        ...

    @property
    def saved_on_request(self) -> bool:
        """Whether the state at the end of a run is saved only if that was asked for."""
        ...

    def save(self) -> bytes:
        """Return the state; raise a `BiellaError` that names the block's file if there is none."""
        ...

    def restore(self, state: bytes) -> None:
        """Go back to a state."""
        ...

    def close(self) -> None:
        """Let go of everything; the engine has closed already."""
        ...


class Session(Attachment, Protocol):
    """An attachment that runs the block in Python; the engine calls it back.

    A block with an internal solver also has ``advance(t, dt)``, which goes from `t` to `t` + `dt`
    with the inputs held, and ``begin(t)``, which ends the initialization when all outputs at the
    start are known, and returns whether there was anything to end. One whose steps can be repeated
    has ``keep(snapshot)`` and ``put_back(snapshot)``, which save the state under a small number and
    restore it, and ``accept_step(t)``, called before the first attempt of a coupled step. Any other
    block has ``update(t)``, called after the outputs of a tick.
    """

    def start(self, t: float) -> None:
        """Begin a run at time `t` with the parameters as they are."""
        ...

    def output(self, t: float) -> None:
        """Compute the outputs from the inputs with direct feedthrough."""
        ...


class ExternalBlock:
    """Marks a block that needs something opened for each run, such as the file of an FMU.

    Such a block cannot be exported in an FMU. One whose states are not in the engine cannot be
    linearized, and its time cannot be paused, so it is rejected in conditional subsystems.
    """

    has_engine_states: bool = False
    """Whether its continuous states are in the engine, and all else changes at events only."""

    can_be_lent: bool = False
    """Whether what is outside the engine can also run the shadow of an error estimate."""

    can_save: bool = True
    """Whether the state of what is outside the engine can be saved."""

    can_be_repeated: bool = True
    """Whether a second run may have one while the first is still open."""

    external_name: str
    """Name for messages: ``the FMU `crank.fmu```."""

    @property
    def code_digest(self) -> str:
        """SHA-256 of the file whose code it runs; empty if there is none."""
        return ""

    @property
    def isolation(self) -> dict[str, dict[str, Any]] | None:
        """What strict isolation granted and refused in the last run; None: it is not strict."""
        return None

    @abstractmethod
    def open(self, instance: Any, number: int) -> Attachment:
        """Open it for block `number` of a running plan; a Python block returns a `Session`."""
