"""modelDescription.xml as FMPy's objects, and findings about it that do not prevent a run."""

from __future__ import annotations

import io
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import FmuError
from ._archive import Archive
from ._clocks import note_clock_times
from ._repair import repair

_SCHEMAS = {
    "1": "fmi1/fmiModelDescription.xsd",
    "2": "fmi2/fmi2ModelDescription.xsd",
    "3": "fmi3/fmi3ModelDescription.xsd",
}

_ANY_BYTES = "application/octet-stream"  # the default of FMI 3.0


def read_model(archive: Archive, validate: bool) -> tuple[Any, list[str]]:
    """Return FMPy's model description, and findings; without `validate`, only those of repairs.

    Raises
    ------
    FmuError
        If the description cannot be read, or its version of FMI is unknown.
    """
    from fmpy.model_description import read_model_description
    from lxml import etree

    path = archive.path
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
        root = etree.fromstring(archive.description, parser)
    except etree.XMLSyntaxError as error:
        raise FmuError(f"the description in `{path}` cannot be read: {error}") from error
    violations = _schema_violations(root) if validate else []
    repairs = repair(root)
    version = root.get("fmiVersion") or ""
    if version not in ("1.0", "2.0") and not version.startswith("3."):
        raise FmuError(
            f"the description in `{path}` cannot be read: fmiVersion={version!r} is not supported. "
            f"Supported versions are 1.0, 2.0 and 3.0."
        )
    # FMPy sees the checked text only, not the file, which may change meanwhile.
    copy = io.BytesIO()
    with zipfile.ZipFile(copy, "w") as packed:
        text = etree.tostring(root.getroottree(), encoding="UTF-8", xml_declaration=True)
        packed.writestr("modelDescription.xml", text)
    try:
        model = read_model_description(copy, validate=False)
    except Exception as error:
        reason = [f" {violation}" for violation in violations[:3]]
        raise FmuError(
            f"the description in `{path}` cannot be read: {error}{'.' if reason else ''}"
            f"{''.join(reason)}"
        ) from error
    if version.startswith("3") and model.coSimulation is not None:  # FMPy does not read it
        flag = root.find("CoSimulation").get("providesDirectionalDerivatives")
        model.coSimulation.providesDirectionalDerivative = flag in ("true", "1")
    if version.startswith("3"):
        note_clock_times(root, model)
    return model, [*violations, *(_inconsistencies(model) if validate else []), *repairs]


def read_mime_types(archive: Archive) -> dict[int, tuple[str]]:
    """Return the MIME types of binaries, which FMPy does not read, by value reference.

    Parameters of a type, such as versions, are left out, and so are variables that declare no type
    or the default, which is any sequence of bytes.
    """
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, recover=True)
    root = etree.fromstring(archive.description, parser)
    declared = {t.get("name"): t.get("mimeType") for t in root.iter("BinaryType")}
    found: dict[int, tuple[str]] = {}
    for variable in root.iter("Binary"):
        text = variable.get("mimeType") or declared.get(variable.get("declaredType")) or _ANY_BYTES
        mime_type = text.partition(";")[0].strip().lower()
        reference = variable.get("valueReference") or ""
        if mime_type != _ANY_BYTES and reference.isdigit():
            found[int(reference)] = (mime_type,)
    return found


@lru_cache(maxsize=3)
def _schema(major: str) -> Any:
    import fmpy
    from lxml import etree

    return etree.XMLSchema(file=str(Path(fmpy.__file__).parent / "schema" / _SCHEMAS[major]))


def _schema_violations(root: Any) -> list[str]:
    major = (root.get("fmiVersion") or "")[:1]
    if major not in _SCHEMAS:
        return []
    schema = _schema(major)
    schema.validate(root)
    return [f"line {e.line}: {e.message}" for e in schema.error_log]


def _inconsistencies(model: Any) -> list[str]:
    """Return what FMPy finds beyond the schema."""
    from fmpy.validation import validate_model_description

    try:
        return [str(problem) for problem in validate_model_description(model)]
    except Exception as error:  # it relies on what the schema requires
        return [f"not all checks were possible: {type(error).__name__}: {error}."]
