"""Reference experiments in an FMU, by the layered standard FMI-LS-REF.

``extra/org.fmi-standard.fmi-ls-ref/fmi-ls-manifest.xml`` lists files with their roles. One with the
role ``experiment`` has experiments: times, and files of parameters, stimuli and reference results.
Version 1.0.0-alpha.1 of the standard; the format of experiments is that of its former appendix.
"""

from __future__ import annotations

import posixpath
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ...blocks.core._exports import Experiment
from ...errors import BiellaError, FmuError
from ..importer._archive import Archive, read_member
from ..importer._encoding import read_text

FOLDER = "extra/org.fmi-standard.fmi-ls-ref"
MANIFEST = f"{FOLDER}/fmi-ls-manifest.xml"
NAMESPACE = "http://fmi-standard.org/fmi-ls-manifest"
_SSV = "http://ssp-standard.org/SSP1/SystemStructureParameterValues"
_ABOUT = {
    "fmi-ls-name": "org.fmi-standard.fmi-ls-ref",
    "fmi-ls-version": "1.0.0-alpha.1",
    "fmi-ls-description": (
        "Layered Standard providing information on related files included in an FMU."
    ),
}
EXPERIMENTS = "application/x-ma-hs-experiments"
_EXPERIMENTS = (EXPERIMENTS, "application/x-ma-ls-experiments")  # the latter in earlier drafts
_PARAMETERS = "application/x-ssp-parameter-set"


@dataclass(frozen=True, slots=True)
class Reference:
    """An experiment as a file in an FMU describes it; files are members of the archive."""

    name: str
    description: str = ""
    start: float | None = None
    stop: float | None = None
    step: float | None = None
    tolerance: float | None = None
    parameters: str = ""
    stimuli: str = ""
    results: str = ""


def read_references(archive: Archive) -> list[Reference]:
    """Return the experiments of an FMU; none if it has no manifest of this standard.

    Raises
    ------
    FmuError
        If a file is missing, or cannot be read.
    """
    root = _parse(archive, MANIFEST)
    if root is None:
        return []
    found = []
    for related in root.iter("Related"):
        role, kind = related.get("role", ""), related.get("type", "")
        if role.partition("/")[0] == "experiment" and (
            kind in _EXPERIMENTS or related.get("source", "").endswith(".exp")
        ):
            found += _read_experiments(archive, _resolve(archive, MANIFEST, related.get("source")))
    return found


def _read_experiments(archive: Archive, member: str) -> list[Reference]:
    root = _parse(archive, member)
    found = []
    for element in root.iter("Experiment"):
        files = {}
        for tag in ("Parameters", "Stimuli", "References"):
            child = element.find(tag)
            files[tag] = "" if child is None else _resolve(archive, member, child.get("source"))
        found.append(
            Reference(
                element.get("name", ""),
                element.get("description", ""),
                _number(member, element, "startTime"),
                _number(member, element, "stopTime"),
                _number(member, element, "stepSize"),
                _number(member, element, "tolerance"),
                files["Parameters"],
                files["Stimuli"],
                files["References"],
            )
        )
    return found


def _number(member: str, element: Any, key: str) -> float | None:
    text = element.get(key)
    try:
        return None if text is None else float(text)
    except ValueError:
        raise FmuError(
            f"the experiment `{element.get('name')}` in `{member}` has {key}={text!r}, which is "
            f"not a number."
        ) from None


def _resolve(archive: Archive, base: str, source: str | None) -> str:
    """Return the member of the archive that a URI refers to, relative to the file `base`."""
    parts = urlsplit(source or "")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(parts.path)))
    if parts.scheme or parts.netloc or not parts.path or path.startswith(("/", "..")):
        raise FmuError(
            f"`{base}` in {archive.path.name} refers to `{source}`, which is no file of the FMU."
        )
    if path not in archive.members:
        raise FmuError(f"`{base}` in {archive.path.name} refers to `{path}`, which is missing.")
    return path


def _parse(archive: Archive, member: str) -> Any:
    data = read_member(archive, member)
    if data is None:
        return None
    from lxml import etree

    text, _ = read_text(Path(f"{archive.path}/{member}"), data)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
    try:
        return etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise FmuError(f"`{member}` in `{archive.path}` cannot be read: {error}.") from error


def read_parameters(archive: Archive, member: str) -> dict[str, str]:
    """Return the values of a parameter set of SSP by name, as texts."""
    values = {}
    for element in _parse(archive, member).iter("{*}Parameter"):
        for child in element:
            if isinstance(child.tag, str) and child.get("value") is not None:
                values[element.get("name", "")] = child.get("value")
    return values


# ---- writing


def check_experiments(given: Experiment | Sequence[Experiment] | None) -> list[Experiment]:
    """Return the experiments of an export.

    Raises
    ------
    BiellaError
        For something else than experiments, repeated names, times that are no times and tolerances
        that are not positive.
    """
    is_list = given is None or isinstance(given, Sequence)
    chosen: list[Any] = list(given or ()) if is_list else [given]  # type: ignore[arg-type]
    for item in chosen:
        if not isinstance(item, Experiment):
            raise BiellaError(f"`reference` requires Experiment(until=…), got {item!r}.")
        if not 0 < item.tolerance < 1:
            raise BiellaError(
                f"the tolerance of the experiment `{item.name}` must be between 0 and 1, got "
                f"{item.tolerance!r}."
            )
        if item.step is not None and not item.step > 0:
            raise BiellaError(f"the step of the experiment `{item.name}` must be positive.")
    names = [item.name for item in chosen]
    if len(set(names)) < len(names) or not all(names):
        raise BiellaError(f"experiments must have different names, got {names}.")
    return chosen


def write_manifest(references: Sequence[Reference]) -> dict[str, bytes]:
    """Return the manifest and the file of experiments; other files are those that they name."""
    root = ET.Element("fmiReferences", {f"{{{NAMESPACE}}}{k}": v for k, v in _ABOUT.items()})

    def relate(kind: str, source: str, role: str, description: str) -> None:
        name = posixpath.relpath(source, FOLDER)
        ET.SubElement(
            root, "Related", type=kind, source=name, role=role, description=description
        )  # fmt: skip

    experiments = f"{FOLDER}/experiments.exp"
    relate(EXPERIMENTS, experiments, "experiment/smoke-test", "Reference experiments")
    listed = ET.Element("Experiments", name="Reference experiments")
    for item in references:
        attributes = {"name": item.name, "description": item.description}
        numbers = (item.start, item.stop, item.step, item.tolerance)
        keys = ("startTime", "stopTime", "stepSize", "tolerance")
        attributes |= {k: repr(v) for k, v in zip(keys, numbers, strict=True) if v is not None}
        element = ET.SubElement(
            listed, "Experiment", {k: v for k, v in attributes.items() if v}
        )  # fmt: skip
        for tag, member, kind, role, what in (
            ("Parameters", item.parameters, _PARAMETERS, "parameter", "Parameters"),
            ("Stimuli", item.stimuli, "text/csv", "testcase", "Stimuli"),
            ("References", item.results, "text/csv", "result", "Reference results"),
        ):
            if member:
                source = posixpath.relpath(member, FOLDER)
                ET.SubElement(element, tag, type=kind, source=source)
                relate(kind, member, role, f"{what} of the experiment {item.name}")
    ET.register_namespace("fmi-ls", NAMESPACE)
    return {MANIFEST: _text(root), experiments: _text(listed)}


def write_parameters(name: str, values: Mapping[str, float | bool | str]) -> bytes:
    """Return a parameter set of SSP."""
    ET.register_namespace("ssv", _SSV)
    root = ET.Element(f"{{{_SSV}}}ParameterSet", version="1.0", name=name)
    holder = ET.SubElement(root, f"{{{_SSV}}}Parameters")
    for path, value in values.items():
        element = ET.SubElement(holder, f"{{{_SSV}}}Parameter", name=path)
        if isinstance(value, bool):
            ET.SubElement(element, f"{{{_SSV}}}Boolean", value=str(value).lower())
        elif isinstance(value, str):
            ET.SubElement(element, f"{{{_SSV}}}String", value=value)
        else:
            ET.SubElement(element, f"{{{_SSV}}}Real", value=repr(float(value)))
    return _text(root)


def _text(root: ET.Element) -> bytes:
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()
