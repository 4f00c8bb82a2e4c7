"""Write .ci/requirements.txt: the versions and hashes that CI installs.

    python .ci/lock.py        # after a change of dependencies in pyproject.toml, or to update

Resolves the extra `dev` and the build requirements with pip, for this Python and platform, which
must be those of CI. Where the files come from is pip's configuration and not part of the file.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / ".ci" / "requirements.txt"
_OWN = re.compile(r"biella\[([\w,]+)\]$")


def list_requirements(extra: str = "dev") -> list[str]:
    """Return what biella, an extra and the build require, with extras of its own resolved."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras: dict[str, list[str]] = about["project"]["optional-dependencies"]
    found = [*about["build-system"]["requires"], *about["project"]["dependencies"]]
    waiting = list(extras[extra])
    while waiting:
        requirement = waiting.pop(0)
        if own := _OWN.match(requirement):
            waiting += [r for name in own[1].split(",") for r in extras[name]]
        else:
            found.append(requirement)
    return sorted(set(found))


def describe_platform() -> str:
    """Return the first line of the file, by which CI knows whether it applies."""
    version = ".".join(platform.python_version_tuple()[:2])
    return f"# Python {version}, {sys.platform} {platform.machine()}; written by .ci/lock.py"


def main() -> None:
    """Resolve, and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--only-binary", ":all:", "--report", str(report)]
        subprocess.run([*command, *list_requirements()], check=True)
        resolved = json.loads(report.read_text())["install"]
    lines = [describe_platform()]
    for item in sorted(resolved, key=lambda item: item["metadata"]["name"].lower()):
        about = item["metadata"]
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{about['name']}=={about['version']} --hash=sha256:{digest}")
    LOCK.write_text("\n".join(lines) + "\n")
    print(f"{LOCK.relative_to(ROOT)}: {len(resolved)} packages")


if __name__ == "__main__":
    if sys.argv[1:] == ["--platform"]:
        print(describe_platform())
    else:
        main()
