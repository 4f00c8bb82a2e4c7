"""Models that a real-time run does not wait for: FMUs, blocks, diagrams, each in its own engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import Port
from ...blocks.external._asynchronous import AbstractAsynchronous, Values
from ...blocks.external._external_block import EndOfRun, ExternalBlock
from ...errors import DiagramError
from ..compile._compiler import compile_flat, outline_flat, read_settings
from ..compile._flatten import FlatDiagram, flatten
from ..compile._model import Model
from ..compile.diagram._diagram import Diagram
from ..compile.plan._plan import slots_of
from ..engine._engine import Instance
from ..run._preflight import warn_of_steps


class AsynchronousModel(AbstractAsynchronous, ExternalBlock):
    """A model with its own time that a worker advances; created by `Asynchronous`."""

    stays = "it runs in a separate engine. Export its contents as a separate FMU"

    def __init__(self, what: object, period: float) -> None:
        if not isinstance(what, AbstractBlock | Diagram):
            raise DiagramError(f"Asynchronous requires a block or a Diagram, got {what!r}.")
        self.what = what
        self.external_name = str(self)
        self.diagram = what if isinstance(what, Diagram) else _alone(what, period)
        self.flat = flatten(self.diagram)
        self._models: dict[tuple[float, str], Model] = {}
        if isinstance(what, Diagram):
            super().__init__(*_ports_of(what, self.flat), period)
        else:
            super().__init__(what.inputs, what.outputs, period)
        self.ticks = round(period / self.diagram.step)
        if self.ticks < 1 or abs(self.ticks * self.diagram.step - period) > 1e-9 * period:
            raise DiagramError(
                f"a period of {period:g} s is not an integer multiple of the step of {what}, "
                f"{self.diagram.step:g} s."
            )

    def __str__(self) -> str:
        return f"Asynchronous({self.what})"

    def begin(self, start_time: float, path: str) -> ModelRun:
        return ModelRun(self, start_time, path)

    def compile(self, start_time: float, path: str) -> Model:
        """Return the model as it runs under `path` in a diagram that starts at `start_time`."""
        if (start_time, path) not in self._models:
            settings = replace(read_settings(self.diagram), start=start_time)
            model = compile_flat(replace(self.flat, within=path), settings)
            warn_of_steps(model, stacklevel=3)
            self._models[start_time, path] = model
        return self._models[start_time, path]

    def first_results(self, start_time: float, path: str) -> Values:
        model = self.begin(start_time, path)
        try:
            return model.results()
        finally:
            model.close()

    def open(self, instance: Any, number: int) -> ModelSession:
        """Open it for an offline run."""
        return ModelSession(self, instance, number)

    def update(self, t: float, x: Any, u: Any) -> None:
        """Is the session's; that it is here makes the block a discrete one."""
        raise NotImplementedError

    output = update


def _ports_of(diagram: Diagram, flat: FlatDiagram) -> tuple[list[Port], list[Port]]:
    """Return the diagram's inputs and outputs as ports, as they turn out when it is compiled."""
    plan = outline_flat(flat, read_settings(diagram))
    declared = {item.name: item.port for item in flat.inputs}
    inputs = [
        Port(name, port.width, port.unit, port.kind, declared[name].default, port.doc)
        for name, port in plan.inputs.items()
    ]
    outputs = [
        Port(name, port.width, port.unit, port.kind, doc=port.doc)
        for name, port in plan.outputs.items()
    ]
    return inputs, outputs


def _alone(block: AbstractBlock, period: float) -> Diagram:
    """Return a diagram of the block alone; what its inputs are is written where defaults lie."""
    inside = block.copy_with(
        inputs=tuple(
            replace(port, default=0.0) if port.default is None else port for port in block.inputs
        )
    )
    step = block.rate.period if block.rate.kind == "periodic" else period
    diagram = Diagram(str(block), step=step)
    diagram.add(inside, name="model")
    return diagram


class ModelRun:
    """A model in a separate engine, advanced by a worker or by an offline run.

    It may end the run by raising `EndOfRun`.
    """

    skips = False

    def __init__(self, slow: AsynchronousModel, start_time: float, path: str) -> None:
        plan = slow.compile(start_time, path)
        self.ticks = slow.ticks
        self.instance = plan.instantiate()
        alone = slow.diagram is not slow.what
        block = plan.blocks[0]
        inputs = block.inputs if alone else plan.inputs.values()
        outputs = block.outputs if alone else plan.outputs.values()
        self._inputs, self._outputs = slots_of(inputs), slots_of(outputs)

    @property
    def portable(self) -> bool:
        """Whether a saved state is good for another run too."""
        return all(attachment.portable for attachment in self.instance.external.values())

    @property
    def saved_on_request(self) -> bool:
        """Whether the state at the end of a run is saved only on request."""
        return any(attachment.saved_on_request for attachment in self.instance.external.values())

    def compute(self, t: float, inputs: Sequence[Values]) -> Values:
        """Go one period ahead with the inputs held, whatever time it is outside."""
        instance = self.instance
        if len(self._inputs):
            instance.values[self._inputs] = np.concatenate([np.empty(0), *inputs])
            instance.touch()
        _, stopped = instance.run(self.ticks)
        if stopped:
            raise EndOfRun(instance.stop_reason())
        return self.results()

    def results(self) -> Values:
        """Return the outputs as they are now."""
        self.instance.evaluate()
        return self.instance.values[self._outputs].copy()

    def close(self) -> None:
        self.instance.close()


class ModelSession:
    """A model in an offline run: a result is there exactly one period after its inputs."""

    def __init__(self, slow: AsynchronousModel, outer: Instance, number: int) -> None:
        info = outer.plan.blocks[number]
        self._outer = outer
        self._inputs = [slots_of([port]) for port in info.inputs]
        self._outputs = slots_of(info.outputs)
        self._model = slow.begin(outer.plan.start_time, info.path)
        self._newest = np.zeros(sum(slow.widths) + 1)  # results, and since when

    @property
    def portable(self) -> bool:
        """Whether a saved state is good for another run too."""
        return self._model.portable

    @property
    def saved_on_request(self) -> bool:
        """Whether the state at the end of a run is saved only on request."""
        return self._model.saved_on_request

    def start(self, t: float) -> None:
        """Begin a run."""
        self._model.instance.reset()
        self._newest[:] = [*self._model.results(), t]

    def output(self, t: float) -> None:
        """Show the newest result."""
        self._outer.values[self._outputs] = [*self._newest, t - self._newest[-1]]

    def update(self, t: float) -> None:
        """Compute the next one."""
        values = self._outer.values
        self._newest[:] = [*self._model.compute(t, [values[at] for at in self._inputs]), t]

    def save(self) -> bytes:
        """Return the state."""
        return self._newest.tobytes() + self._model.instance.save()

    def restore(self, state: bytes) -> None:
        """Go back to a state."""
        size = self._newest.nbytes
        self._newest[:] = np.frombuffer(state[:size])
        self._model.instance.restore(state[size:])

    def close(self) -> None:
        """Close the engine inside."""
        self._model.close()
