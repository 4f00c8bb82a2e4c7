"""Hatchling's build hook: compile the C engine, put it in the wheel and tag the wheel."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags


def load_build(package: Path) -> ModuleType:
    """Load ``scheduler/engine/build.py`` alone: biella's own requirements are not installed yet."""
    location = package / "scheduler" / "engine" / "build.py"
    if not location.is_file():
        raise FileNotFoundError(
            f"{location} is missing. src/biella/{{blocks,scheduler,fmu}} are symbolic links; on "
            "Windows, check the repository out again with `git config core.symlinks true`."
        )
    spec = importlib.util.spec_from_file_location("biella_build", location)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def find_platform_tag() -> str:
    """Return the tag of this very machine; a ``manylinux`` promise is not ours to make here."""
    return next(tag for tag in platform_tags() if "linux" not in tag or tag.startswith("linux"))


class EngineBuildHook(BuildHookInterface[Any]):
    """Compile the engine in place, in ``src/biella``, where an editable install finds it too."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for ziglang, a compiler of 100 MB, only on a machine that has none."""
        build = load_build(Path(self.root, "src", "biella"))
        return [] if build.find_system_compiler() else [build.ZIG_REQUIREMENT]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        package = Path(self.root, "src", "biella")
        build = load_build(package)
        library = build.build(package, stamps=Path(self.root, "build"))
        contract = build.contract_path(package)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{find_platform_tag()}"
        if version == "standard":
            for made in (library, contract):
                build_data["force_include"][str(made)] = f"biella/{made.name}"
