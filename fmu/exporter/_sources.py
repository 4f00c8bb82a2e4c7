"""The sources of an FMU: the engine and the plan as one C file that needs no file system.

All that the files of the engine share among themselves becomes static; only FMI's functions are
seen from outside, under their names or, with ``FMI2_FUNCTION_PREFIX`` (in FMI 3.0
``FMI3_FUNCTION_PREFIX``), under longer ones. So the sources of several FMUs link into one program.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ...scheduler.engine.build import FOLDERS, find_sources, generate
from ._exchange import KIND_NAMES

PACKAGE = Path(__file__).parents[2]
_LEFT_OUT = (
    "blocks/external/python.c",
    "fmu/importer/",
    "fmu/standards/",
    "scheduler/devices/",
    "scheduler/host/",
    "scheduler/realtime/",
)
"""What runs outside the engine, and what a run against the wall clock needs."""

_INCLUDE = re.compile(r'#include "([^"]+)"\n')
_API = re.compile(r"^BL_API (?=[a-z])", re.MULTILINE)
_SHARED_FUNCTION = re.compile(
    r"^(?!static |typedef |extern |return |else )"
    r"(?=(?:const )?[a-z_]\w*(?: \w+)* \**(?:bl|mb)_\w+\()",
    re.MULTILINE,
)
_EXTERN_TABLE = re.compile(r"^extern const bl_kernel \w+\[\];\n", re.MULTILINE)
_TABLE = re.compile(r"^(?=const bl_kernel \w+\[\] = )", re.MULTILINE)
_SHARED_DATA = re.compile(
    r"^(?:extern )?(?=const (?:mb|touch)_\w+ (?:\*const )?mb_\w+\s*[\[=,;])", re.MULTILINE
)
_FMI_FUNCTIONS = {
    "2.0": re.compile(r"^FMI2_API [^(]*?\b(fmi2\w+)\(", re.MULTILINE),
    "3.0": re.compile(r"^FMI3_API \w+TYPE (fmi3\w+);", re.MULTILINE),
}
"""How each version declares its functions."""
_OTHER_VERSIONS = {"2.0": "fmu/exporter/interface/fmi3", "3.0": "fmu/exporter/interface/fmi2"}
"""Beginning of the names of files that only the other version needs."""

_HEAD = """\
/* {name}: an FMI {fmi} {kind} FMU, written by biella {version}.
 *
 * The whole engine and the plan that it runs: C11, no dependencies but the C library with its
 * mathematical part, and no file is read. For several FMUs in one program, compile each with a
 * prefix of its own, such as
 *
 *     cc -std=c11 -O2 -ffp-contract=off -D{prefix}={identifier}_ -c {identifier}.c
 *
 * Without a prefix the functions have FMI's own names, as a shared library must. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

/* A fused multiplication and addition rounds once: the results would not be the engine's. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && defined(__FP_FAST_FMA)
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

/* Parts of the engine serve other ways of running it. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

#define BL_PLAN_INSIDE
#if defined({prefix})
#define BL_STATIC
#define BL_JOIN_NAMES(a, b) a##b
#define BL_JOIN(a, b) BL_JOIN_NAMES(a, b)
{prefixed}
#endif
"""


def write_sources(
    name: str, identifier: str, plan: bytes, version: str, fmi: str = "2.0", kind: str = "cs"
) -> dict[str, bytes]:
    """Return the files of the folder ``sources/`` by name: the one C file, and how to build it.

    Parameters
    ----------
    name, identifier
        Of the model, and as a C identifier.
    plan
        The bytes that the engine loads.
    version
        Of biella, for the comment on top.
    fmi
        Version of FMI whose functions they have.
    kind
        See `Diagram.export_fmu`.
    """
    engine, functions = amalgamate(fmi)
    prefix = f"FMI{fmi[0]}_FUNCTION_PREFIX"
    prefixed = "\n".join(
        f"#define {function} BL_JOIN({prefix}, {function})" for function in functions
    )
    words = re.sub(r"[^ -~]|\*/|\\", "?", name)
    head = _HEAD.format(
        name=words,
        version=version,
        identifier=identifier,
        prefixed=prefixed,
        fmi=fmi,
        kind=KIND_NAMES[kind],
        prefix=prefix,
    )
    return {
        f"{identifier}.c": (head + "\n" + _write_plan(plan) + engine).encode(),
        "buildDescription.xml": _describe_build(identifier).encode(),
    }


@cache
def amalgamate(fmi: str = "2.0") -> tuple[str, tuple[str, ...]]:
    """Return the engine as one text of C, and the names of FMI's functions in it."""
    seen: set[str] = set()
    left_out = (*_LEFT_OUT, _OTHER_VERSIONS[fmi])
    files = [path for path in find_sources(PACKAGE) if not path.as_posix().startswith(left_out)]
    # Tables of kernels stand before the registry that lists them.
    files.sort(key=lambda path: (FOLDERS.index(path.parts[0]), path.as_posix()))
    headers = generate(PACKAGE, files).headers
    text = "".join(_expand(path.as_posix(), seen, headers) for path in files)
    functions = tuple(dict.fromkeys(_FMI_FUNCTIONS[fmi].findall(text)))
    return text, functions


def _expand(path: str, seen: set[str], generated: Mapping[str, str]) -> str:
    """Return a file with the engine's own headers in place of their first mention."""
    if path in seen:
        return ""
    seen.add(path)
    text = generated.get(path) or (PACKAGE / path).read_text(encoding="utf-8")
    text = _INCLUDE.sub(lambda found: _expand(found[1], seen, generated), text)
    return f"\n/* {path} */\n{_hide(text)}"


def _hide(text: str) -> str:
    """Make everything but FMI's functions static."""
    text = _EXTERN_TABLE.sub("", text)
    text = _TABLE.sub("static ", text)
    text = _API.sub("static ", text)
    text = _SHARED_DATA.sub("static ", text)
    return _SHARED_FUNCTION.sub("static ", text)


def _write_plan(plan: bytes) -> str:
    rows = (
        ",".join(map(str, plan[start : start + 32])) + ",\n" for start in range(0, len(plan), 32)
    )
    return (
        "/* The plan: what the engine runs. */\n"
        f"_Alignas(8) static const unsigned char bl_plan_inside[{len(plan)}] = {{\n"
        f"{''.join(rows)}}};\n"
    )


def _describe_build(identifier: str) -> str:
    root = ET.Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = ET.SubElement(root, "BuildConfiguration", modelIdentifier=identifier)
    files = ET.SubElement(configuration, "SourceFileSet", language="C11")
    ET.SubElement(files, "SourceFile", name=f"{identifier}.c")
    ET.SubElement(configuration, "Library", name="m")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
