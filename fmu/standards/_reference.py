"""Reference results: written into an exported FMU, and compared with a run of any FMU."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...blocks.core._exports import Experiment
from ...errors import BiellaError, FmuError, name_list
from ...scheduler.results._result import Result
from .._run_file import simulate_fmu_file
from ..importer._archive import Archive, read_archive, read_member
from ..importer._interface import Description, read_description
from ._experiments import (
    FOLDER,
    Reference,
    read_parameters,
    read_references,
    write_manifest,
    write_parameters,
)

Array = npt.NDArray[np.float64]
DEFAULT_TOLERANCE = 1e-3
"""Of an experiment that declares none."""
_MOST_ROWS = 1000
_ELEMENT = re.compile(r"\[(\d+)\]\Z")


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far an output is from its reference.

    Attributes
    ----------
    largest, time
        Largest absolute deviation, and when it occurs.
    allowed
        Tolerance times the largest magnitude of the reference; the tolerance itself if that is 0.
    """

    variable: str
    largest: float
    allowed: float
    time: float

    @property
    def passed(self) -> bool:
        """Whether the deviation is within the tolerance."""
        return self.largest <= self.allowed  # not for NaN


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of one experiment."""

    experiment: str
    tolerance: float
    deviations: list[Deviation] = field(default_factory=list)
    problem: str = ""
    """Why it could not be run or compared."""

    @property
    def passed(self) -> bool:
        """Whether the experiment ran, and every output agrees with its reference."""
        return not self.problem and all(item.passed for item in self.deviations)


def check_reference(path: str | Path, tolerance: float | None = None) -> list[Comparison]:
    """Run the reference experiments in an FMU (FMI-LS-REF) and compare their results.

    Parameters
    ----------
    path
        The FMU.
    tolerance
        Largest deviation of an output, relative to the largest magnitude of its reference; by
        default that which the experiment declares, else 1e-3.

    Raises
    ------
    FmuError
        If the FMU has no reference experiments, or their files cannot be read.
    """
    archive = read_archive(path)
    references = read_references(archive)
    if not references:
        raise FmuError(
            f"{archive.path.name} has no reference experiments: no file with the role `experiment` "
            f"in {FOLDER}/fmi-ls-manifest.xml (FMI-LS-REF)."
        )
    description = read_description(archive, validate=False)
    return [_compare_one(archive, description, item, tolerance) for item in references]


def _compare_one(
    archive: Archive, description: Description, item: Reference, tolerance: float | None
) -> Comparison:
    allowed = tolerance or item.tolerance or DEFAULT_TOLERANCE
    if not item.results:
        return Comparison(item.name, allowed, problem="it has no reference results")
    try:
        times, columns = read_table(item.results, read_member(archive, item.results) or b"")
        result = _run(archive, description, item)
        found = compare(times, columns, *name_outputs(description, result), tolerance=allowed)
    except BiellaError as error:
        return Comparison(item.name, allowed, problem=str(error))
    return Comparison(item.name, allowed, found)


def _run(archive: Archive, description: Description, item: Reference) -> Result:
    given: dict[str, Any] = {}
    if item.parameters:
        texts = read_parameters(archive, item.parameters)
        scalars = description.scalars
        given = {
            name: text if name not in scalars or scalars[name].is_number else str(text)
            for name, text in texts.items()
        }
    with tempfile.TemporaryDirectory(prefix="biella-reference-") as folder:
        stimuli = None
        if item.stimuli:
            stimuli = Path(folder) / Path(item.stimuli).name
            stimuli.write_bytes(read_member(archive, item.stimuli) or b"")
        return simulate_fmu_file(
            archive.path,
            start=item.start,
            stop=item.stop,
            step=item.step,
            inputs=stimuli,
            parameters=given,
            validate=False,
        )


def compare(
    times: Array,
    references: Mapping[str, Array],
    own_times: Array,
    own: Mapping[str, tuple[Array, bool]],
    *,
    tolerance: float,
) -> list[Deviation]:
    """Return how far each output is from its reference, at the times of the reference.

    Between its own times, a real output is interpolated linearly, and a discrete one is the value
    before or after, whichever is nearer. Where the reference has two rows of one time, a jump, any
    value between them is accepted.

    Raises
    ------
    FmuError
        If none of the references is an output, or one of them is no variable of the FMU.
    """
    unknown = [name for name in references if name not in own]
    if unknown:
        raise FmuError(
            f"the reference results have {name_list(unknown)}, which the FMU does not have as "
            f"outputs. Outputs: {name_list(own)}."
        )
    slack = 1e-9 * max(1.0, float(np.abs(own_times).max()))
    if times[0] < own_times[0] - slack or times[-1] > own_times[-1] + slack:
        raise FmuError(
            f"the reference results are from {times[0]:g} s to {times[-1]:g} s, the run from "
            f"{own_times[0]:g} s to {own_times[-1]:g} s."
        )
    found = []
    for name, values in references.items():
        actual, is_real = own[name]
        low, high = _range_at(times, values)
        before, after = _around(times, own_times, actual, is_real, slack)
        error = np.minimum(_distance(before, low, high), _distance(after, low, high))
        worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        scale = float(np.abs(values).max())
        found.append(
            Deviation(name, float(error[worst]), tolerance * (scale or 1.0), float(times[worst]))
        )
    return found


def _range_at(times: Array, values: Array) -> tuple[Array, Array]:
    """Return the smallest and largest value of the rows with the time of each row."""
    _, place = np.unique(times, return_inverse=True)
    low = np.full(place.max() + 1, np.inf)
    high = np.full(place.max() + 1, -np.inf)
    np.minimum.at(low, place, values)
    np.maximum.at(high, place, values)
    return low[place], high[place]


def _around(
    times: Array, own_times: Array, actual: Array, is_real: bool, slack: float
) -> tuple[Array, Array]:
    if is_real:
        at = np.interp(times, own_times, actual)
        return at, at
    last = own_times.size - 1
    before = np.clip(np.searchsorted(own_times, times + slack, "right") - 1, 0, last)
    after = np.clip(np.searchsorted(own_times, times - slack, "left"), 0, last)
    return actual[before], actual[after]


def _distance(value: Array, low: Array, high: Array) -> Array:
    distance: Array = np.maximum(np.maximum(low - value, value - high), 0.0)
    return np.where(np.isnan(value), np.nan, distance)


def name_outputs(
    description: Description, result: Result
) -> tuple[Array, dict[str, tuple[Array, bool]]]:
    """Return the times of a run and its outputs by the names of variables, elements apart."""
    found = {}
    for path, signal in result.signals.items():
        port = path.partition(".")[2]
        values = np.asarray(result[path], dtype=float)
        names = _element_names(description, port, signal.width)
        columns = values.reshape(values.shape[0], -1).T
        for name, column in zip(names, columns, strict=True):
            found[name] = column, signal.kind == "real"
    return np.asarray(result.t, dtype=float), found


def _element_names(description: Description, port: str, width: int) -> list[str]:
    scalar = description.scalars.get(port)
    if scalar is not None:
        return scalar.element_names
    elements = [
        n for n in description.scalars if _ELEMENT.sub("", n) == port and _ELEMENT.search(n)
    ]
    return elements if len(elements) == width else [f"{port}[{k}]" for k in range(width)]


# ---- tables


def read_table(name: str, data: bytes) -> tuple[Array, dict[str, Array]]:
    """Return the times and columns of a CSV file; a unit in brackets after a name is left out.

    Raises
    ------
    FmuError
        With the line, if a cell is not a number, a row has too few cells, or times fall.
    """
    try:
        rows = [row for row in csv.reader(io.StringIO(data.decode("utf-8-sig"))) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FmuError(f"`{name}` is not a CSV file in UTF-8: {error}.") from error
    if len(rows) < 2 or len(rows[0]) < 2:
        raise FmuError(f"`{name}` needs a row of names, a column of times and one of values.")
    heads = [re.sub(r"\s+\[[^\]]*\]\Z", "", cell.strip()) for cell in rows[0]]
    table = np.empty((len(rows) - 1, len(heads)))
    for line, row in enumerate(rows[1:], 2):
        try:
            if len(row) != len(heads):
                raise ValueError(f"{len(row)} cells instead of {len(heads)}")
            table[line - 2] = [float({"true": "1", "false": "0"}.get(c.strip(), c)) for c in row]
        except ValueError as error:
            raise FmuError(f"`{name}`, row {line}: {error}.") from None
    if (np.diff(table[:, 0]) < 0).any() or not np.isfinite(table[:, 0]).all():
        raise FmuError(f"the times of `{name}` must not fall, and must be finite.")
    return table[:, 0], {head: table[:, n] for n, head in enumerate(heads) if n > 0}


def write_table(times: Array, columns: Mapping[str, tuple[Array, bool]]) -> bytes:
    """Return a CSV file with all digits; what is not real is written as an integer."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["time", *columns])
    every = -(-max(times.size - 1, 1) // _MOST_ROWS)
    chosen = sorted({*range(0, times.size, every), times.size - 1})
    for n in chosen:
        cells = (
            repr(float(v[n])) if real else str(int(v[n])) for v, real in columns.values()
        )  # fmt: skip
        writer.writerow([repr(float(times[n])), *cells])
    return file.getvalue().encode()


def make_references(
    experiments: Sequence[Experiment], start: float, step: float, write: Callable[[Path], Path]
) -> dict[str, bytes]:
    """Return the files of experiments, for which the FMU that `write` writes is run.

    Raises
    ------
    FmuError
        If an experiment fails, with its name.
    """
    files: dict[str, bytes] = {}
    references = []
    with tempfile.TemporaryDirectory(prefix="biella-reference-") as folder:
        path = write(Path(folder) / "reference.fmu")
        for number, item in enumerate(experiments, 1):
            reference = _describe(number, item, start, step, files)
            references.append(reference)
            try:
                files[reference.results] = _results(path, item, reference)
            except BiellaError as error:
                raise FmuError(f"the reference experiment `{item.name}` failed: {error}") from error
    lines = [f"- {r.name}: {r.description or 'to t = ' + repr(r.stop) + ' s'}" for r in references]
    note = "Reference experiments of this FMU (FMI-LS-REF), in " + FOLDER + ":\n" + "\n".join(lines)
    files["documentation/fmi-ls-ref.txt"] = f"{note}\n".encode()
    return files | write_manifest(references)


def _describe(
    number: int, item: Experiment, start: float, step: float, files: dict[str, bytes]
) -> Reference:
    base = f"{FOLDER}/{number:02d}-{re.sub(r'[^A-Za-z0-9_]+', '-', item.name)}"
    parameters = stimuli = ""
    if item.parameters:
        parameters = f"{base}-parameters.ssv"
        files[parameters] = write_parameters(item.name, item.parameters)
    if item.inputs is not None:
        stimuli = f"{base}-in.csv"
        files[stimuli] = _read_file(item, item.inputs)
    stop, own = float(item.until), float(item.step or step)
    return Reference(
        item.name, item.description, start, stop, own, item.tolerance, parameters, stimuli,
        f"{base}-ref.csv",
    )  # fmt: skip


def _results(path: Path, item: Experiment, reference: Reference) -> bytes:
    if item.results is not None:
        data = _read_file(item, item.results)
        read_table(str(item.results), data)
        return data
    result = simulate_fmu_file(
        path,
        start=reference.start,
        stop=reference.stop,
        step=reference.step,
        inputs=None if item.inputs is None else Path(item.inputs),
        parameters=dict(item.parameters),
        validate=False,
    )
    times, columns = name_outputs(read_description(read_archive(path), False), result)
    return write_table(times, columns)


def _read_file(item: Experiment, path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FmuError(
            f"the reference experiment `{item.name}` needs `{path}`: {error.strerror}."
        ) from error
