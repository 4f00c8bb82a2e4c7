"""`Diagram`: blocks and the wires between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...._deprecation import renamed_keywords, warn_deprecated
from ....blocks.basic.routing._bus import Bus, BusType, Elements
from ....blocks.core._block import AbstractBlock
from ....blocks.core._exports import Experiment, Terminals
from ....blocks.core._ports import (
    Kind,
    Numbers,
    Port,
    PortRef,
    Rate,
    main_output,
    periodic,
)
from ....blocks.core._terminals import TerminalRef
from ....errors import DiagramError, name_list, suggest
from ...run._preflight import warn_of_steps
from .._compiler import compile_diagram
from .._model import Model
from ..coupling._coupling_options import Coupling
from ._boundary import Inport, Outport
from ._solver_options import (
    MAX_EVENTS,
    MAX_STEPS,
    MAX_SUBSTEPS,
    SOLVERS,
    StepControl,
    Tolerance,
    check_step,
)
from ._terminals import match_terminals

if TYPE_CHECKING:
    from ....blocks.core._figure import ShownFigure

B = TypeVar("B", bound=AbstractBlock)
Endpoint = AbstractBlock | PortRef | TerminalRef | str
"""A block, ``block["port"]``, or a name: ``"pid"``, ``"pid.measurement"``; in `connect` also a
terminal of an FMU."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_ \-]*\Z")


class Diagram:
    """A block diagram.

    Parameters
    ----------
    name
        Shown in plots and reports.
    step
        The base step in seconds. Every period must be a whole multiple of it.
    solver
        How continuous states are integrated: ``"euler"``, ``"heun"``, ``"rk3"``, ``"rk4"``,
        ``"dopri5"``; for stiff diagrams ``"backward_euler"`` or ``"trapezoidal"``.
    tolerance
        Relative tolerance of the local error, or the pair (relative, absolute). With it,
        ``"dopri5"`` chooses its steps, within a tick and across ticks where nothing is sampled.
        Without it, a step of the solver is a tick.
    events
        ``"locate"``: discontinuities of continuous blocks are located within a tick, and a step of
        the solver ends there. ``"tick"``: they take effect at a tick.
    max_events, max_steps
        The most events and solver steps in one tick. What exceeds them has the resolution of a
        tick, and is counted.
    start_time
        Time of the first tick in seconds.
    algebraic_loops
        ``"solve"`` them at each tick, or treat them as an ``"error"``.
    coupling, extrapolation
        How blocks with an internal solver (FMUs, mechanisms with ``mode="internal"``) exchange
        signals within a step: ``"jacobi"``, ``"gauss-seidel"``, ``"fixed-point"`` or ``"newton"``,
        and the order 0, 1 or 2 of their inputs in time. See `couple`.
    coupling_tolerance
        Divide base steps so that these inputs are followed to this part of their largest values;
        None or 0: communicate at every base step. See `couple`.

    ``d["pid"]`` is the block called pid, ``"pid" in d`` whether there is one, ``len(d)`` how many
    blocks there are. Iteration gives their names, inputs of the diagram included, in the order in
    which they were added.

    Examples
    --------
    >>> d = Diagram("decay")
    >>> x = d.add(Integrator(1.0), "x")
    >>> k = d.add(Gain(-2.0), "k", u=x)
    >>> d.connect(k, x)
    """

    @renamed_keywords(hold="extrapolation")
    def __init__(
        self,
        name: str = "diagram",
        step: float = 1e-3,
        solver: str = "rk4",
        *,
        start_time: float = 0.0,
        algebraic_loops: str = "solve",
        coupling: str = "jacobi",
        extrapolation: int = 0,
        coupling_tolerance: float | None = None,
        tolerance: Tolerance | None = None,
        events: str = "locate",
        max_events: int = MAX_EVENTS,
        max_steps: int = MAX_STEPS,
        start: float | None = None,
    ) -> None:
        if start is not None:
            warn_deprecated("`Diagram(start=…)`", "`Diagram(start_time=…)`")
            start_time = start
        if solver not in SOLVERS:
            raise DiagramError(
                f"unknown solver `{solver}`.{suggest(solver, SOLVERS)} "
                f"Solvers: {name_list(SOLVERS)}."
            )
        if algebraic_loops not in ("solve", "error"):
            raise DiagramError(
                f"algebraic_loops must be 'solve' or 'error', got {algebraic_loops!r}."
            )
        self.name = name
        self.step = check_step(step)
        self.solver = solver
        self.tolerance = tolerance
        self.events, self.max_events, self.max_steps = events, max_events, max_steps
        StepControl.read(solver, tolerance, events, max_events, max_steps)
        self.start_time = float(start_time)
        self.algebraic_loops = algebraic_loops
        self.blocks: dict[str, AbstractBlock] = {}
        self.names: dict[AbstractBlock, str] = {}
        self.rates: dict[AbstractBlock, Rate] = {}
        """Rates that were given to `add`; all other blocks have their own, see `rate_of`."""
        self.sources: dict[tuple[AbstractBlock, int], PortRef] = {}
        """For each connected input (block, number of the port): the output that feeds it."""
        self.outports: dict[str, Outport] = {}
        self.double_sources: list[str] = []
        self.coupling = Coupling(
            coupling,
            extrapolation,
            coupling_tolerance=0.0 if coupling_tolerance is None else coupling_tolerance,
        )
        self.couplings: list[tuple[tuple[AbstractBlock, ...], Coupling]] = []
        """Options set by `couple` for certain blocks; `coupling` applies to all others."""
        self.substeps: list[tuple[tuple[AbstractBlock, ...], int]] = []
        """Numbers of substeps set by `integrate` for certain blocks."""
        self.bonds: dict[str, tuple[PortRef, PortRef]] = {}

    @property
    def start(self) -> float:
        """Deprecated name of `start_time`."""
        warn_deprecated("`Diagram.start`", "`Diagram.start_time`")
        return self.start_time

    def __repr__(self) -> str:
        return f"Diagram({self.name!r}, {len(self.blocks)} blocks)"

    def _repr_html_(self) -> str:
        from ...notebook._diagram import show_diagram

        return show_diagram(self)

    def __getitem__(self, name: str) -> AbstractBlock:
        try:
            return self.blocks[name]
        except KeyError:
            raise DiagramError(
                f"there is no block `{name}` in {self.name!r}.{suggest(name, self.blocks)} "
                f"Blocks: {name_list(self.blocks)}."
            ) from None

    def __contains__(self, item: object) -> bool:
        return (item in self.blocks) if isinstance(item, str) else (item in self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def __bool__(self) -> bool:
        return True  # also without blocks

    def add(
        self,
        block: B,
        /,
        name: str | None = None,
        *,
        inputs: Endpoint | Mapping[str, Endpoint] | None = None,
        period: float | None = None,
        offset: float = 0.0,
        **wires: Endpoint,
    ) -> B:
        """Put `block` into the diagram and return it; connect its inputs.

        The diagram is unchanged if an argument is invalid. ::

            pid = d.add(PID(2.0, 5.0), "pid", reference=ref, measurement=encoder["speed"])
            d.add(Gain(0.5), "half", inputs=pid, period=5e-3)
            d.add(plant, "plant", inputs={"motor.torque": pid})

        Parameters
        ----------
        block
            A new block.
        name
            By default the name of its class, with a number if that is taken.
        inputs
            Sources by the names of the block's inputs, including names that are not identifiers or
            equal ``name``, ``inputs``, ``period`` or ``offset``. Or one source, for the input that
            `connect` would choose.
        period, offset
            Sample time in seconds: the block runs at ``offset + n·period``. By default the block
            has its own rate, usually that of its inputs. A block whose coefficients depend on the
            period takes it in its constructor instead.
        wires
            Sources by the names of the block's inputs.
        """
        if not isinstance(block, AbstractBlock):
            hint = " Create it first: add(Gain(2.0))." if isinstance(block, type) else ""
            raise DiagramError(f"add requires a block, got {block!r}.{hint}")
        if block in self.names:
            raise DiagramError(
                f"this {block} is in the diagram already, as `{self.names[block]}`; "
                f"make a second one."
            )
        if name is None:
            base = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(block).__name__).lower()
            name, n = base, 1
            while name in self.blocks:
                n += 1
                name = f"{base}_{n}"
        if isinstance(name, AbstractBlock | PortRef):
            raise DiagramError(
                f"the name of a block must be a string, got {name!r}. To connect that, name "
                f"the input: "
                f"d.add({block}(…), inputs=…)."
            )
        self._claim_name(name)
        rate = self._make_rate(name, block, period, offset)
        self.blocks[name] = block
        self.names[block] = name
        try:
            found = self._find_wires(block, inputs, wires)
        except BaseException:
            del self.blocks[name], self.names[block]
            raise
        self.sources.update(found)
        if rate is not None:
            self.rates[block] = rate
        return block

    def input(
        self,
        name: str,
        *,
        unit: str | None = None,
        default: float | tuple[float, ...] | None = 0.0,
        width: int = 1,
        kind: Kind = "real",
        doc: str = "",
        bus: BusType | Elements | None = None,
    ) -> AbstractBlock:
        """Declare an input of the whole diagram and return it as a source to connect from.

        Parameters
        ----------
        name
            Its name.
        unit, width, kind
            What it carries.
        default
            Its value when nothing is connected, or one for each element; None makes a connection
            obligatory.
        doc
            One line.
        bus
            Makes it a bus: its `BusType`, or what one is made of. Elements without a default of
            their own have `default`.
        """
        if bus is None:
            Port(name, default=default).default_values(width)  # a mistake is named by the input
            port = Port("y", width=width, unit=unit, kind=kind, default=default, doc=doc)
            return self.add(Inport(port), name)
        if unit is not None or width != 1 or kind != "real" or isinstance(default, tuple | list):
            raise DiagramError(
                f"the input `{name}` is a bus: its elements have units, widths, kinds and vectors "
                f"of defaults; give them in `bus`."
            )
        made = bus if isinstance(bus, BusType) else BusType(bus)
        doc = doc or f"bus of {name_list(made)}"
        return self.add(Inport(Port("y", default=default, doc=doc), made), name)

    def output(self, name: str, source: Endpoint) -> None:
        """Declare an output of the whole diagram: another name for a block's port."""
        self._claim_name(name, among=self.outports)
        self.outports[name] = Outport(name, self.find_output(source))

    def connect(self, source: Endpoint, *destinations: Endpoint) -> None:
        """Wire an output to one or more inputs, or the members of terminals to each other.

        Each end is a block (its only output, or the one called ``y``; its only input, or the only
        one that must be connected), ``block["port"]``, or a name. Terminals of FMUs,
        ``fmu.terminal("bus")``, connect to terminals only: outputs of each to inputs of the other.
        """
        if not destinations:
            raise DiagramError(f"connect({source!r}) requires at least one destination.")
        if any(isinstance(end, TerminalRef) for end in (source, *destinations)):
            wires = match_terminals(self.names, source, destinations)
            for origin, target in [(self.find_output(o), self.find_input(i)) for o, i in wires]:
                self._wire(origin, target)
            return
        origin = self.find_output(source)
        for target in [self.find_input(destination) for destination in destinations]:
            self._wire(origin, target)

    def chain(self, *blocks: Endpoint) -> AbstractBlock:
        """Wire blocks of the diagram in a row, each to the next, and return the last one.

        A wire goes from a block's only output, or the one called ``y``, to the only input of the
        next, or the only one that must be connected. Where a block has more, name the port:
        ``d.chain(ref, pid["reference"], drive, motor["torque"])``. In the middle of a chain, a
        named input is followed by the block's default output, and a named output is preceded by
        its default input. No wire is added if an argument is invalid.
        """
        if len(blocks) < 2:
            raise DiagramError("chain requires at least two blocks.")
        middle = [self._split(end) for end in blocks[1:-1]]
        sources: list[Endpoint] = [blocks[0]]
        sources += [PortRef(b, port if port not in b.input_index else "") for b, port in middle]
        targets: list[Endpoint]
        targets = [PortRef(b, port if port not in b.output_index else "") for b, port in middle]
        targets.append(blocks[-1])
        origins = [self.find_output(source) for source in sources]
        ends = [self.find_input(target) for target in targets]
        for origin, target in zip(origins, ends, strict=True):
            self._wire(origin, target)
        return self._split(blocks[-1])[0]

    @renamed_keywords(hold="extrapolation")
    def couple(
        self,
        *blocks: AbstractBlock | str,
        method: str | None = None,
        extrapolation: int | None = None,
        tolerance: float | None = None,
        iterations: int | None = None,
        failure: str | None = None,
        halvings: int | None = None,
        coupling_tolerance: float | None = None,
    ) -> None:
        """Set how blocks with an internal solver are coupled within a step.

        Omitted options keep the values of the diagram.

        Parameters
        ----------
        blocks
            One or more blocks of a coupling. The options apply to all blocks that are mutually
            dependent with them. A block with continuous states represents all such states.
            Without any, the options apply to the whole diagram.
        method
            ``"jacobi"``: all blocks in parallel, with inputs extrapolated from the past.
            ``"gauss-seidel"``: in sequence, each with the new outputs of the blocks before it.
            ``"fixed-point"`` (with Aitken's relaxation) and ``"newton"``: iterated until inputs
            and outputs agree.
        extrapolation
            Order 0, 1 or 2 of the inputs in time.
        tolerance
            Tolerance of the iteration, relative to the largest past value of a signal.
        iterations
            Maximum number of iterations per step.
        failure
            Reaction to an iteration that does not converge: ``"warn"`` after the run, or end the
            run with an ``"error"``.
        halvings
            How often a step that does not converge, that a block rejects, or whose error exceeds
            `coupling_tolerance`, may be halved: it bounds the execution time of a tick.
        coupling_tolerance
            Divide the base step into communication steps within which the inputs deviate from
            their polynomials by at most this part of their largest values; 0: do not divide it.
        """
        said: dict[str, Any] = {
            "method": method,
            "extrapolation": extrapolation,
            "tolerance": tolerance,
            "iterations": iterations,
            "failure": failure,
            "halvings": halvings,
            "coupling_tolerance": coupling_tolerance,
        }
        given = {name: value for name, value in said.items() if value is not None}
        how = replace(self.coupling, **given)
        if not blocks:
            self.coupling = how
            return
        self.couplings.append((self._find_blocks(blocks), how))

    def integrate(self, *blocks: AbstractBlock | str, substeps: int) -> None:
        """Integrate the states of fast blocks with several substeps in each step.

        The other states keep the step of the diagram. Both parts are integrated with a multirate
        method (MRI-GARK) of the order of the solver, which must be ``"rk4"``, ``"rk3"``, ``"heun"``
        or ``"euler"`` with fixed steps: the slow blocks are evaluated once in each stage of a step,
        five times for ``"rk4"``, whatever the number of substeps. Under error control the
        setting has no effect: the solver chooses its steps.

        Parameters
        ----------
        blocks
            Blocks with continuous states, or subsystems that contain any. All blocks that are
            named so in a diagram and its subsystems form one fast part, with the largest of
            their numbers of substeps.
        substeps
            Number of substeps in a step, from 2 to 100000. It is rounded up to a whole number in
            each stage, of which ``"rk4"`` has 5, ``"rk3"`` 3, ``"heun"`` 2 and ``"euler"`` 1.

        Examples
        --------
        >>> d.integrate(circuit, substeps=20)
        """
        if not blocks:
            raise DiagramError(
                "integrate requires the fast blocks: d.integrate(circuit, substeps=20)."
            )
        if (
            not isinstance(substeps, int)
            or isinstance(substeps, bool)
            or not 2 <= substeps <= MAX_SUBSTEPS
        ):
            raise DiagramError(
                f"substeps is a whole number from 2 to {MAX_SUBSTEPS}, got {substeps!r}."
            )
        self.substeps.append((self._find_blocks(blocks), substeps))

    def _find_blocks(self, blocks: Sequence[AbstractBlock | str]) -> tuple[AbstractBlock, ...]:
        named = tuple(self[block] if isinstance(block, str) else block for block in blocks)
        for block in named:
            if block not in self.names:
                raise DiagramError(f"{block} is not in {self.name!r} yet: add it first.")
        return named

    def power_bond(self, effort: Endpoint, flow: Endpoint, name: str | None = None) -> None:
        """Declare two inputs whose product is the power that passes between two blocks.

        One input is an effort, such as a force, that one block receives from the other. The other
        input is a flow, such as a speed, that the other block receives in return. The signals
        ``coupling.<name>.power`` and ``.energy`` are the power that one block absorbs in excess of
        the power that the other delivers, over the last step, and the total energy.
        """
        ends = self.find_input(effort), self.find_input(flow)
        if name is None:
            name = f"{self.names[ends[0].block]}_{self.names[ends[1].block]}"
        self._claim_name(name, among=self.bonds)
        self.bonds[name] = ends

    @property
    def inports(self) -> dict[str, Inport]:
        """The inputs of the diagram, by name."""
        return {n: b for n, b in self.blocks.items() if isinstance(b, Inport)}

    def rate_of(self, block: AbstractBlock) -> Rate:
        """Return the rate of a block of the diagram: that given to `add`, or its own."""
        return self.rates.get(block, block.rate)

    def find_output(self, end: Endpoint) -> PortRef:
        """Return the output port that `end` names."""
        block, port = self._split(end)
        return self._pick(block, port, "output", block.output_index, block.input_index)

    def find_input(self, end: Endpoint) -> PortRef:
        """Return the input port that `end` names."""
        block, port = self._split(end)
        return self._pick(block, port, "input", block.input_index, block.output_index)

    def name_port(self, ref: PortRef) -> str:
        """Return ``name.port`` for messages."""
        return f"{self.names.get(ref.block, str(ref.block))}.{ref.name}"

    def compile(self, **options: Any) -> Model:
        """Check the diagram and return its `Model`; all problems are reported together.

        Parameters
        ----------
        step, solver
            Override those of the diagram.
        inputs
            Source blocks to replace by inputs of the whole diagram; the default of such an input is
            the initial output of its block.
        outputs
            Signals to make outputs of the whole diagram, in addition to the declared ones.
        coupling, extrapolation, coupling_tolerance
            Override those of the diagram; settings of single blocks by `couple` are kept.
        estimate_error
            Estimate the coupling error at every n-th tick: the step is repeated in halves and in
            quarters, which costs six additional steps. 0 for none.
        tolerance, events
            Override those of the diagram.
        replace
            Blocks to use in place of those at the given paths, with ports of the same names. A path
            may also name a subsystem or an input of the diagram.
        extra
            Source blocks to add, by name; nothing is connected to them.
        reroute
            Outputs to replace, each by the output ``(name, port)`` of an extra source, for all
            readers and recorders. The output of the block itself is recorded as ``…_simulated``.

        Raises
        ------
        DiagramError
            If the diagram has errors; the message lists all of them.

        Warns
        -----
        BiellaWarning
            If the step is too large for a block.
        """
        model = compile_diagram(self, **options)
        warn_of_steps(model, stacklevel=2)
        return model

    def draw(self, path: str | Path | None = None, *, title: str | None = None) -> ShownFigure:
        """Draw the block diagram from left to right.

        Wires and outlines are colored by rate. Vectors are thick and labeled with their width.
        Buses are double lines. Subsystems are framed with their blocks inside. A diagram that does
        not compile is drawn without rates.

        Parameters
        ----------
        path
            File of the picture: ``.svg``, ``.pdf`` or ``.png``. Equal diagrams have equal files.
        title
            Replaces the name of the diagram; ``""`` for none.

        Raises
        ------
        DiagramError
            If `path` has another extension.
        """
        from ...drawing._draw import draw

        return draw(self, path, title=title)

    def export_fmu(
        self,
        path: str | Path,
        *,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        parameters: Sequence[str] | Mapping[str, Numbers | None] | None = None,
        platforms: Sequence[str] | None = None,
        sources: bool = True,
        version: str = "2.0",
        kind: str = "cs",
        about: Mapping[str, str] | None = None,
        local: Sequence[str] = (),
        limits: Mapping[str, tuple[float | None, float | None]] | None = None,
        nominal: Mapping[str, float] | None = None,
        types: Mapping[str, str] | None = None,
        clocks: bool = False,
        terminals: Terminals = True,
        reference: Experiment | Sequence[Experiment] | None = None,
    ) -> Path:
        """Write an FMU of FMI 2.0 or 3.0; see `biella.fmu.export_fmu`."""
        from ....fmu.exporter._export import export_fmu

        return export_fmu(
            self,
            path,
            inputs=inputs,
            outputs=outputs,
            parameters=parameters,
            platforms=platforms,
            sources=sources,
            version=version,
            kind=kind,
            about=about,
            local=local,
            limits=limits,
            nominal=nominal,
            types=types,
            clocks=clocks,
            terminals=terminals,
            reference=reference,
        )

    def _claim_name(self, name: str, among: Mapping[str, object] | None = None) -> None:
        if not isinstance(name, str) or not NAME.match(name):
            raise DiagramError(
                f"{name!r} cannot be a name: letters a to z, digits, `_`, `-` and "
                f"spaces, starting with a letter."
            )
        if name in (self.blocks if among is None else among):
            raise DiagramError(f"the name `{name}` is already used in {self.name!r}.")

    def _make_rate(
        self, name: str, block: AbstractBlock, period: float | None, offset: float
    ) -> Rate | None:
        """Return the rate that `add` assigns to a block; None if the block keeps its own."""
        given = periodic(period, offset)
        if period is None:
            return None
        why = block.refuse_period()
        if why:
            raise DiagramError(f"`{name}` ({block}) does not accept a period in add: {why}")
        return replace(given, outputs=block.rate.outputs)

    def _find_wires(
        self,
        block: AbstractBlock,
        inputs: Endpoint | Mapping[str, Endpoint] | None,
        wires: Mapping[str, Endpoint],
    ) -> dict[tuple[AbstractBlock, int], PortRef]:
        """Return the entries that `add` stores in `sources`."""
        name = self.names[block]
        named: list[tuple[str, Endpoint]] = list(wires.items())
        if isinstance(inputs, Mapping):
            named += inputs.items()
        elif isinstance(inputs, AbstractBlock | PortRef | str):
            named.append((self.find_input(block).name, inputs))
        elif inputs is not None:
            raise DiagramError(
                f"`inputs` of `{name}` must be names and sources, {{'port': source}}, or one "
                f"source "
                f"for its only input; got {inputs!r}. Inputs of `{name}`: "
                f"{name_list(block.input_index)}."
            )
        found: dict[tuple[AbstractBlock, int], PortRef] = {}
        for port, source in named:
            if port not in block.input_index and any(p.name == port for p in block.parameters):
                raise DiagramError(
                    f"`{name}` has no input `{port}`: that is a parameter; pass it to "
                    f"{block}(…). Inputs of `{name}`: {name_list(block.input_index)}."
                )
            target = self._pick(block, port, "input", block.input_index, block.output_index)
            key = (block, block.input_index[target.name])
            origin = self.find_output(source)
            if key in found:
                raise DiagramError(
                    f"input `{name}.{port}` has two sources: `{self.name_port(found[key])}` and "
                    f"`{self.name_port(origin)}`. Keep one, or add them with a Sum."
                )
            found[key] = origin
        return found

    def _wire(self, origin: PortRef, target: PortRef) -> None:
        key = (target.block, target.block.input_index[target.name])
        if key in self.sources:
            self.double_sources.append(
                f"input `{self.name_port(target)}` has two sources: "
                f"`{self.name_port(self.sources[key])}` and `{self.name_port(origin)}`. "
                f"Keep one, or add them with a Sum."
            )
        else:
            self.sources[key] = origin

    def _split(self, end: Endpoint) -> tuple[AbstractBlock, str]:
        if isinstance(end, str):
            if end in self.blocks:
                return self.blocks[end], ""
            name, _, port = end.partition(".")
            return self[name], port
        block, port = (end.block, end.name) if isinstance(end, PortRef) else (end, "")
        if not isinstance(block, AbstractBlock):
            raise DiagramError(f"connect requires blocks, ports or names, got {end!r}.")
        if block not in self.names:
            raise DiagramError(
                f"{block} is not in {self.name!r} yet: add it first, d.add({block}(…), name=…)."
            )
        return block, port

    def _pick(
        self,
        block: AbstractBlock,
        port: str,
        side: str,
        index: Mapping[str, int],
        others: Mapping[str, int],
    ) -> PortRef:
        name = self.names[block]
        if not port:
            needed = [item.name for item in block.inputs if item.default is None]
            only = needed if side == "input" and len(needed) == 1 else list(index)
            main = only[0] if len(only) == 1 else None
            if main is None and side == "output":
                main = main_output(only)
            if main is not None:
                return PortRef(block, main)
            if not index:
                raise DiagramError(f"`{name}` ({block}) has no {side}s.")
            raise DiagramError(
                f"`{name}` has {len(index)} {side}s: select one with "
                f"{name}[{next(iter(index))!r}]. "
                f"{side.capitalize()}s of `{name}`: {name_list(index)}."
            )
        if port not in index:
            hint = block.describe_missing_port(port) or suggest(port, index)
            if port in others:
                hint = " It is an output." if side == "input" else " It is an input."
                if isinstance(block, Bus) and side == "output":
                    hint = f" Take it from the bus with BusSelector({port!r})."
            raise DiagramError(
                f"`{name}` has no {side} `{port}`.{hint} "
                f"{side.capitalize()}s of `{name}`: {name_list(index)}."
            )
        return PortRef(block, port)
