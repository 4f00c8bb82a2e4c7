"""Hatchling's build hook: compile the C engine, build the page of the studio, tag the wheel.

In a checkout ``src/biella/{blocks,scheduler,fmu}`` are symbolic links. Git without
``core.symlinks`` (its default on Windows), and archives that a forge offers for download, have a
text file with the target in place of each link. Wheels and source archives are then built from
the folders themselves.
"""

import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

LINKS = ("blocks", "scheduler", "fmu")


class MissingLinksError(RuntimeError):
    """The checkout has no symbolic links; the message has the remedy."""


def find_text_links(root: Path) -> list[str]:
    """Return which of the links in ``src/biella`` are text files that hold their target."""
    found = []
    for name in LINKS:
        link = root / "src" / "biella" / name
        if link.is_dir():
            continue
        target = link.read_text(encoding="utf-8").strip() if link.is_file() else None
        if target != f"../../{name}" or not (root / name).is_dir():
            raise MissingLinksError(
                f"{link} must be a symbolic link to the folder {root / name}, and is not. Check "
                "the repository out again, or take a source archive of a release."
            )
        found.append(name)
    return found


def load_build(root: Path) -> ModuleType:
    """Load ``scheduler/engine/build.py`` alone: biella's own requirements are not installed yet."""
    linked = "scheduler" not in find_text_links(root)
    parent = root / "src" / "biella" if linked else root
    return load_alone("biella_build", parent / "scheduler" / "engine" / "build.py")


def load_page_build(root: Path) -> ModuleType:
    """Load ``src/biella/studio/page/build.py`` alone."""
    return load_alone("biella_page_build", root / "src/biella/studio/page/build.py")


def load_alone(name: str, location: Path) -> ModuleType:
    """Load a module of the package without the package."""
    spec = importlib.util.spec_from_file_location(name, location)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def gather_package(root: Path) -> Path:
    """Copy the package, with folders in place of text links, to ``build/package``; return it."""
    package = root / "build" / "package"
    shutil.rmtree(package, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "src" / "biella", package, ignore=ignored)
    for name in find_text_links(root):
        (package / name).unlink()
        shutil.copytree(root / name, package / name, ignore=ignored)
    return package


def find_platform_tag() -> str:
    """Return the tag of this very machine; a ``manylinux`` promise is not ours to make here."""
    return next(tag for tag in platform_tags() if "linux" not in tag or tag.startswith("linux"))


def find_target() -> str:
    """Return the tag of the other platform that the wheel is for, from ``$BIELLA_WHEEL``."""
    return os.environ.get("BIELLA_WHEEL", "")


def wants_page(root: Path) -> bool:
    """Whether the page is to be built: not if it is there, nor where the environment says no."""
    output = root / "src/biella/studio/static"
    return os.environ.get("BIELLA_PAGE") != "0" and not load_page_build(root).is_built(output)


class EngineBuildHook(BuildHookInterface[Any]):
    """Build in place, in ``src/biella``, where an editable install finds everything too."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for a compiler of 100 MB and a node of 60 MB only on a machine that has none."""
        if self.target_name != "wheel":
            return []
        root = Path(self.root)
        build, page = load_build(root), load_page_build(root)
        has_compiler = build.find_system_compiler() is not None and not find_target()
        needed = [] if has_compiler else [build.ZIG_REQUIREMENT]
        # Elsewhere pip would find no wheel of node, and fail: biella works without the page.
        has_wheel = platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64")
        if has_wheel and wants_page(root) and not page.has_npm():
            needed.append(page.NODE_REQUIREMENT)
        return needed

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        text_links = find_text_links(root)
        excluded = self.build_config.target_config.setdefault("exclude", [])
        excluded += [f"/src/biella/{name}" for name in text_links]
        if self.target_name == "sdist":
            for name in text_links:
                build_data["force_include"][str(root / name)] = f"src/biella/{name}"
            return
        if text_links and version == "editable":
            raise MissingLinksError(
                f"An editable install needs the symbolic links src/biella/{{{','.join(LINKS)}}}, "
                f"but this checkout has text files instead ({', '.join(text_links)}). Either "
                "install without --editable, or make the links: "
                "`git config core.symlinks true && git checkout -- src/biella` (on Windows in "
                "developer mode, or as an administrator)."
            )
        target = find_target()
        if target and version == "editable":
            raise RuntimeError("BIELLA_WHEEL is for wheels: an editable install runs here.")
        package = gather_package(root) if text_links else root / "src" / "biella"
        build = load_build(root)
        if target:
            library, contract = build.build_for_wheel(package, target, root / "build")
        else:
            library = build.build(package, stamps=root / "build")
            contract = build.contract_path(package)
        page = self._build_page(root)
        # Its sources are in the repository and in source archives; nothing at run time reads them.
        excluded.append("/src/biella/studio/page")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{target or find_platform_tag()}"
        if version == "standard":
            for name in text_links:
                build_data["force_include"][str(package / name)] = f"biella/{name}"
            for made in (library, contract):
                build_data["force_include"][str(made)] = f"biella/{made.name}"
            for made in page:
                place = made.relative_to(root / "src")
                build_data["force_include"][str(made)] = place.as_posix()

    def _build_page(self, root: Path) -> list[Path]:
        """Return the files of the page; none, with a warning, where it cannot be built."""
        page = load_page_build(root)
        output = root / "src/biella/studio/static"
        try:
            if wants_page(root):
                page.build(output)
        except page.PageError as error:
            self.app.display_warning(
                f"The page of `biella studio` was not built; all else of biella works. {error} "
                "With npm on the path and the npm registry in reach, install again, or run "
                "`python src/biella/studio/page/build.py` in a checkout."
            )
        if not page.is_built(output):
            return []
        files = (path for path in output.rglob("*") if path.is_file())
        return sorted(path for path in files if not path.name.startswith("."))
