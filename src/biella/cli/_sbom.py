"""`biella sbom`: the software that an installation of biella consists of, as CycloneDX 1.5."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import re
import sys
import uuid
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from .. import __version__
from ._shared import add_command, complain

_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # of URLs: RFC 4122


def add_commands(commands: Any) -> None:
    """Add ``sbom``."""
    sbom = add_command(
        commands,
        "sbom",
        _write,
        "list the installed software that biella consists of, as CycloneDX JSON",
        "biella sbom --out biella.cdx.json",
    )
    sbom.add_argument("--out", type=Path, help="the file to write (default: standard output)")


def _write(options: argparse.Namespace) -> None:
    text = json.dumps(make_bill(), indent=2, ensure_ascii=False) + "\n"
    if options.out is None:
        print(text, end="")
        return
    options.out.write_text(text, encoding="utf-8")
    complain(f"wrote {options.out}")


def make_bill() -> dict[str, Any]:
    """Return the bill of materials of this environment; the same environment gives the same one.

    Python packages are those that biella needs, directly or not, and the installed ones of its
    extras. C libraries are the engine and those that read data of others inside packages.
    """
    packages, depends = _find_packages()
    components = [_describe_package(found) for _, found in sorted(packages.items())]
    components += _list_c_libraries()
    own = f"pkg:pypi/biella@{__version__}"
    references = {name: _reference(found) for name, found in packages.items()}
    graph = [
        {
            "ref": own if name == "biella" else references[name],
            "dependsOn": sorted(references[other] for other in others),
        }
        for name, others in sorted(depends.items())
    ]
    component = {
        "type": "application", "bom-ref": own, "name": "biella", "version": __version__,
        "purl": own, "licenses": [{"license": {"id": "MIT"}}],
    }  # fmt: skip
    content = json.dumps([component, components, graph], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, content)}",
        "version": 1,
        "metadata": {"component": component},
        "components": components,
        "dependencies": graph,
    }


def _find_packages() -> tuple[dict[str, Distribution], dict[str, set[str]]]:
    """Return the packages below biella by normalized name, and what each one needs."""
    from packaging.requirements import Requirement

    packages: dict[str, Distribution] = {}
    depends: dict[str, set[str]] = {}
    waiting = ["biella"]
    while waiting:
        name = waiting.pop()
        if name in depends:
            continue
        depends[name] = set()
        found = distribution(name) if name == "biella" else packages[name]
        extras = (found.metadata.get_all("Provides-Extra") or []) if name == "biella" else []
        for text in found.requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": e}) for e in ["", *extras]):
                continue
            other = _normalize(requirement.name)
            if other == "biella":
                continue
            try:
                packages[other] = distribution(other)
            except PackageNotFoundError:  # of an extra that is not installed
                continue
            depends[name].add(other)
            waiting.append(other)
    return packages, depends


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _reference(found: Distribution) -> str:
    return f"pkg:pypi/{_normalize(found.metadata['Name'])}@{found.version}"


def _describe_package(found: Distribution) -> dict[str, Any]:
    about: Any = found.metadata
    described: dict[str, Any] = {
        "type": "library",
        "bom-ref": _reference(found),
        "name": about["Name"],
        "version": found.version,
        "purl": _reference(found),
    }
    license_ = about.get("License-Expression") or about.get("License") or ""
    if about.get("License-Expression"):
        described["licenses"] = [{"expression": license_}]
    elif license_ and "\n" not in license_ and license_ != "UNKNOWN":
        described["licenses"] = [{"license": {"name": license_}}]
    return described


def _list_c_libraries() -> list[dict[str, Any]]:
    """Return the engine, with its hash, and the C libraries that parse data of others."""
    import zlib
    from xml.parsers import expat

    import h5py
    from lxml import etree

    from ..scheduler.engine._library import library_path

    with library_path().open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    libc, libc_version = platform.libc_ver()
    versions = {
        "hdf5": (h5py.version.hdf5_version, "in h5py"),
        "libxml2": (".".join(map(str, etree.LIBXML_VERSION)), "in lxml"),
        "expat": (expat.EXPAT_VERSION.removeprefix("expat_"), "in Python"),
        "zlib": (zlib.ZLIB_RUNTIME_VERSION, "in Python"),
        "cpython": (platform.python_version(), f"on {sys.platform} {platform.machine()}"),
    }
    if libc:
        versions[libc] = (libc_version, "of the system")
    engine = {
        "type": "library",
        "bom-ref": "biella:engine",
        "name": library_path().name,
        "version": __version__,
        "description": "the engine of biella, in C; also in exported FMUs",
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    return [
        engine,
        *(
            {
                "type": "library",
                "bom-ref": f"c:{name}",
                "name": name,
                "version": version,
                "description": where,
            }
            for name, (version, where) in versions.items()
        ),
    ]
