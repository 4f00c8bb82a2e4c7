"""Mutation testing: change the sources in one place at a time, and see whether a test fails.

    python tests/mutation/run.py                  # all 300 mutants; continues where it was ended
    python tests/mutation/run.py --area coupling  # those of one area
    python tests/mutation/run.py --again          # survivors once more, after tests were written
    python tests/mutation/run.py --with tests/scheduler/engine/test_loop.py  # with these tests only
    python tests/mutation/run.py --sanitize       # survivors in C, under ASan and UBSan
    python tests/mutation/run.py --list           # what is drawn
    python tests/mutation/run.py --report         # the table

Copies of the checkout are changed, never the checkout. The tests of an area are first executed
with an instrumented engine, to know which test executes which line; a file of tests is executed
again only when it has changed. A mutant then gets the tests of its line, those of its own module
first, then the nearest and the quickest, until one fails. Needs gcc, binutils and
``pip install ".[dev]"``.

A mutant whose object file is the same as the original's is replaced by the next one drawn; so is
one that does not compile. `equivalent.toml` lists those that no test can notice, with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import cover  # noqa: E402
from mutants import AREAS, Mutant, draw  # noqa: E402

from biella.scheduler.engine import build  # noqa: E402

_ENGINE = ("tests/scheduler/engine", "tests/scheduler/run")
_REALTIME = ("tests/scheduler/realtime", "tests/scheduler/host")
_DEVICES = ("tests/scheduler/devices", "tests/scheduler/binding")
_FMI = ("tests/fmu/importer", "tests/fmu/slave", "tests/fmu/exporter", "tests/fmu")

RESULTS = HERE / "results.jsonl"
"""What became of each mutant, by its place and text; committed: a run continues anywhere."""

TESTS: dict[str, tuple[str, ...]] = {
    "engine": (*_ENGINE, "tests/scheduler/compile/plan", *_FMI),
    "plan loader": (*_ENGINE, "tests/scheduler/compile/plan", *_FMI),
    "coupling": ("tests/scheduler/engine", "tests/scheduler/compile/coupling", *_FMI),
    "real-time loop": (*_REALTIME, *_DEVICES),
    "device links": (*_DEVICES, *_REALTIME),
    "FMI": _FMI,
    "recorder": ("tests/scheduler/results", *_REALTIME),
    "replay": (*_REALTIME, *_DEVICES),
    "safety": (*_DEVICES, *_REALTIME),
}
"""Folders whose tests are tried on the mutants of an area."""

TESTS_SECONDS = 20.0
"""What the tests of one mutant may take together: processor time with the instrumented engine."""

FIRST_TESTS = 8
"""How many are tried before all others where a module has no file of tests of its own."""

TEST_SECONDS = 4.0
"""Slower tests are tried only if no other test executes the line."""

CLOCK_SECONDS = 900.0
"""Time limit of one test on the clock. Others come first: see `forks.py`."""

SPARE_SECONDS = 10.0
"""A test of a mutant may use three times the processor time that was measured, and this."""

TIMED = ("tests/scheduler/realtime", "tests/scheduler/devices", "tests/scheduler/host", "tests/cli")
"""Tests of real time: a failure counts only if the same test fails twice, and then passes without
the change."""

WAITED_SECONDS = 10.0
"""So does the failure of a test that did not compute for so long: it may have been too slow."""

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")

NOT_SANITIZED = (
    "tests/fmu/test_coupling.py",
    "tests/scheduler/devices/test_two_processes.py",
    "tests/scheduler/realtime/test_live.py",
)
"""Tests that `.ci/run` does not repeat under the sanitizers."""

CORPUS = {
    "scheduler/engine/": ("plan",),
    "fmu/exporter/": ("fmi2", "fmi3", "exchange"),
    "scheduler/devices/wire/": ("wire",),
}
"""The fuzz targets whose corpus executes the sources of a folder."""


@dataclass
class Tree:
    """A copy of the checkout, with the object files of its engine."""

    root: Path
    server: subprocess.Popen[str] | None = None

    @property
    def package(self) -> Path:
        return self.root / "src/biella"

    @property
    def objects(self) -> Path:
        return self.root / "build/objects"

    @property
    def library(self) -> Path:
        return self.package / build.library_name()

    def environment(self, **more: str) -> dict[str, str]:
        """Return variables with which Python imports this copy."""
        search = os.pathsep.join([str(self.root / "src"), str(self.root / "tests/mutation")])
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BIELLA", "COVERAGE"))}
        return kept | {"PYTHONPATH": search, "MPLBACKEND": "Agg"} | more

    def compile(self, source: str, flags: tuple[str, ...] = (), kind: str = "objects") -> bool:
        """Compile one source; False if the compiler refuses it."""
        target = self.object_of(source, kind)
        target.parent.mkdir(parents=True, exist_ok=True)
        options = [*build.CFLAGS, "-fPIC", "-pthread", "-w", "-I.", f"-I{self.objects}/headers"]
        command = ["gcc", *options, *flags, "-c", source, "-o", str(target)]
        return subprocess.run(command, cwd=self.package, capture_output=True).returncode == 0

    def object_of(self, source: str, kind: str = "objects") -> Path:
        return self.root / "build" / kind / (source.replace("/", "+") + ".o")

    def list_objects(self, kinds: dict[str, str]) -> list[str]:
        """Return the object files, those of some sources compiled in another way."""
        replaced = {self.object_of(source).name: kind for source, kind in kinds.items()}
        names = sorted(path.name for path in self.objects.glob("*.o"))
        return [str(self.root / "build" / replaced.get(name, "objects") / name) for name in names]

    def link(
        self, target: Path, kinds: dict[str, str] | None = None, flags: tuple[str, ...] = ()
    ) -> None:
        fresh = target.with_suffix(".fresh")
        command = ["gcc", "-shared", "-Wl,-Bsymbolic", *flags, *self.list_objects(kinds or {})]
        subprocess.run([*command, "-lm", "-pthread", "-ldl", "-o", str(fresh)], check=True)
        fresh.replace(target)

    def build(self, flags: tuple[str, ...] = ()) -> None:
        """Compile and link all sources."""
        generated = build.generate(self.package)
        build.contract_path(self.package).write_text(generated.module)
        build.write_headers(generated, self.objects / "headers")
        sources = [path.as_posix() for path in build.find_sources(self.package)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiled = pool.map(lambda source: self.compile(source, flags), sources)
            for source, done in zip(sources, compiled, strict=True):
                if not done:
                    raise SystemExit(f"{source} does not compile")
        self.link(self.library)

    @contextmanager
    def changed(self, path: str, text: str) -> Iterator[None]:
        """Change a source; what is left of it when this process is killed, `repair` finds."""
        source, note = self.root / path, self.root / "build/changed.txt"
        original = source.read_text("utf-8")
        note.write_text(path)
        try:
            self._write(source, text)
            yield
        finally:
            self._write(source, original)
            note.unlink()

    def _write(self, source: Path, text: str) -> None:
        # Two changes within a second may have the same size: what Python has compiled must go.
        for compiled in source.parent.glob(f"__pycache__/{source.stem}.*.pyc"):
            compiled.unlink()
        source.write_text(text, "utf-8")

    def repair(self) -> None:
        note = self.root / "build/changed.txt"
        if note.is_file():
            path = note.read_text()
            self._write(self.root / path, (ROOT / path).read_text("utf-8"))
            if path.endswith(".c"):
                self.compile(path)
                self.link(self.library)
            note.unlink()

    def test(
        self, tests: list[str], seconds: dict[str, float], *options: str, **environment: str
    ) -> tuple[int, str, float]:
        """Run tests until one fails; returns pytest's exit code, the test that failed, and how long
        the run waited.

        A test that computes for ever is ended by its limit of processor time; one that waits for
        ever, by `forks.py`.
        """
        selected, output = self.root / "build/selected.txt", self.root / "build/output.txt"
        selected.write_text("\n".join(tests))
        arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rfE", "--no-header"]
        arguments += [
            "--tb=no",
            f"--override-ini=timeout={CLOCK_SECONDS:g}",
            *options,
            f"@{selected}",
        ]
        limits = {test: SPARE_SECONDS + 3 * seconds.get(test, 10.0) for test in tests}
        last, waited = Path(f"{output}.test"), 0.0
        if environment:
            limit = f"--cpu={20 + sum(limits.values()):.0f}"
            command = ["prlimit", limit, sys.executable, "-m", "pytest", *arguments]
            last.unlink(missing_ok=True)
            with output.open("w") as file:
                code = subprocess.run(
                    command,
                    cwd=self.root,
                    env=self.environment(**environment),
                    stdout=file,
                    stderr=file,
                ).returncode
        else:
            code, waited = self._fork(arguments, limits, output)
        shown = output.read_text("utf-8", errors="replace")
        named = [
            line.partition(" ")[2].split(" - ")[0]  # a name may have spaces
            for line in shown.splitlines()
            if line.startswith(("FAILED ", "ERROR "))
        ]
        if code == 5:
            return 0, "", waited
        if code in (2, 4) and not named:
            raise SystemExit(f"pytest ended with {code}:\n{shown}")
        if code and not named:
            named = [last.read_text("utf-8") if last.is_file() else f"exit code {code}"]
        return code, named[0] if named else "", waited

    def _fork(
        self, arguments: list[str], limits: dict[str, float], output: Path
    ) -> tuple[int, float]:
        for _ in range(2):  # a mutant may end the process that forks, too
            if self.server is None:
                self.server = subprocess.Popen(
                    [sys.executable, HERE / "forks.py"],
                    cwd=self.root,
                    env=self.environment(OPENBLAS_NUM_THREADS="1"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            assert self.server.stdin is not None and self.server.stdout is not None
            with suppress(BrokenPipeError):
                request = json.dumps([arguments, limits, str(output)])
                print(request, file=self.server.stdin, flush=True)
                if answer := self.server.stdout.readline():
                    code, processor, clock = json.loads(answer)
                    return int(code), clock - processor
            print(f"the process that forks ended with {self.server.wait()}", flush=True)
            self.server = None
        return 1, 0.0

    def close(self) -> None:
        if self.server is not None and self.server.stdin is not None:
            self.server.stdin.close()
            self.server.wait()


def copy_checkout(target: Path) -> None:
    """Copy the files that git knows."""
    shutil.rmtree(target, ignore_errors=True)
    for name in list_files():
        copy_file(name, target)


def list_files(*under: str) -> list[str]:
    """Return the files that git knows, of some folders or of all."""
    found = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *under],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [name for name in found.stdout.split("\0") if name]


def copy_file(name: str, target: Path) -> None:
    source = ROOT / name
    if source.is_symlink() or source.is_file():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).unlink(missing_ok=True)
        shutil.copy2(source, target / name, follow_symlinks=False)


def make_tree(target: Path, flags: tuple[str, ...] = (), traced: bool = False) -> tuple[Tree, bool]:
    """Return a compiled copy of the checkout, and whether its engine has changed."""
    tree = Tree(target)
    folders = ("blocks", "scheduler", "fmu", "src/biella")
    if (target / "build/done").is_file():
        tree.repair()
        names = [name for name in list_files(*folders) if (ROOT / name).is_file()]
        changed = [
            name
            for name in names
            if not (ROOT / name).is_symlink()
            and not ((target / name).is_file() and _hash([target / name]) == _hash([ROOT / name]))
        ]
        if all(name.endswith((".c", ".py")) and (target / name).is_file() for name in changed):
            for name in list_files("tests", *changed):
                copy_file(name, target)
            sources = [name for name in changed if name.endswith(".c")]
            for name in sources:
                tree.compile(name, flags)
            if sources:
                tree.link(tree.library)
            return tree, bool(sources)
    copy_checkout(target)
    if traced:
        shutil.copy(HERE / "trace.c", target / "scheduler/engine/trace.c")
    tree.build(flags)
    (target / "build/done").touch()
    return tree, True


def _hash(paths: Iterable[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def drawn(areas: list[str], spare: int = 1) -> Iterator[tuple[str, list[Mutant]]]:
    """Yield the mutants of each area; no place is drawn in two areas."""
    taken: set[str] = set()
    for area in AREAS:
        mutants = [mutant for mutant in draw(ROOT, area) if mutant.key not in taken]
        mutants = mutants[: spare * AREAS[area][0]]
        taken.update(mutant.key for mutant in mutants)
        if area in areas:
            yield area, mutants


class Coverage:
    """Which test executes which mutant, how long it takes, and of which files that is known."""

    def __init__(self, work: Path) -> None:
        self.work, self.path = work, work / "coverage.json"
        state = json.loads(self.path.read_text()) if self.path.is_file() else {}
        self.addresses: dict[str, list[int]] = state.get("addresses", {})
        self.files: dict[str, str] = state.get("files", {})
        self.seconds: dict[str, float] = state.get("seconds", {})
        self.tests: dict[str, list[str]] = state.get("tests", {})

    def save(self) -> None:
        names = ("addresses", "files", "seconds", "tests")
        fresh = self.path.with_suffix(".fresh")
        fresh.write_text(json.dumps({name: getattr(self, name) for name in names}))
        fresh.replace(self.path)

    def measure(self, areas: list[str], jobs: int) -> None:
        """Run the tests of the areas whose files have changed since they were measured."""
        for folder in dict.fromkeys(folder for area in areas for folder in TESTS[area]):
            found = sorted(
                (ROOT / folder).glob("test_*.py" if folder == "tests/fmu" else "**/test_*.py")
            )
            hashes = {path.relative_to(ROOT).as_posix(): _hash([path]) for path in found}
            changed = [name for name, text in hashes.items() if self.files.get(name) != text]
            if changed:
                print(f"measuring {len(changed)} files of {folder} …", flush=True)
                self._run(self._instrumented(), changed, jobs)
                self.files |= {name: hashes[name] for name in changed}
                self.save()

    def _instrumented(self) -> Tree:
        flags = ("-O1", "-g", "-fno-inline", "-fsanitize-coverage=trace-pc")
        tree, built = make_tree(self.work / "traced", flags, traced=True)
        if built or not self.addresses:
            blocks = cover.block_addresses(tree.library)
            for _, mutants in drawn(list(AREAS), spare=2):
                for mutant in mutants:
                    # A statement of several lines may have code on its first one only.
                    near = (blocks.get((mutant.path, mutant.line - back)) for back in range(6))
                    found: set[int] = next((several for several in near if several), set())
                    self.addresses[mutant.key] = sorted(found)
            self.save()
        return tree

    def _run(self, tree: Tree, files: list[str], jobs: int) -> None:
        folder = self.work / "trace"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        mutants = [mutant for _, several in drawn(list(AREAS), spare=2) for mutant in several]
        modules = sorted({mutant.path for mutant in mutants if mutant.path.endswith(".py")})
        settings = folder / "coverage.ini"
        settings.write_text(
            "[run]\nparallel = true\npatch = subprocess\ncontext = ${PYTEST_CURRENT_TEST-}\n"
            f"data_file = {folder}/python\ninclude =\n"
            + "".join(f"    {tree.package}/{name}\n    {tree.root}/{name}\n" for name in modules)
        )
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(jobs if jobs > 1 else 0)]
        command += ["-p", "no:cacheprovider", "-p", "cover", "--cov", f"--cov-config={settings}"]
        command += ["--cov-context=test", "--cov-report="]
        command += [f"--override-ini=timeout={CLOCK_SECONDS:g}"]
        tests = files
        for _ in range(2):  # a test that fails because the machine is busy has a second try
            with (self.work / "traced.log").open("a") as log:
                subprocess.run(
                    [*command, *tests],
                    cwd=tree.root,
                    env=tree.environment(BIELLA_TRACE=str(folder)),
                    stdout=log,
                    stderr=log,
                )
            if not (tests := cover.read_failed(folder)):
                break
        self.read(folder, files, mutants, tree)

    def read(self, folder: Path, files: list[str], mutants: list[Mutant], tree: Tree) -> None:
        """Replace what is known of some files of tests by what a run of them has written."""
        passed = cover.read_tests(folder)
        old = {test for test in self.seconds if test.split("::")[0] in files}
        self.seconds = {k: v for k, v in self.seconds.items() if k not in old} | passed
        executed = cover.read_traces(
            folder, {a for several in self.addresses.values() for a in several}
        )
        python = tests_of_python(mutants, tree, folder)
        for mutant in mutants:
            known = set(self.tests.get(mutant.key, ())) - old
            for address in self.addresses.get(mutant.key, ()):
                known |= executed.get(address, set())
            known |= python.get(mutant.key, set())
            self.tests[mutant.key] = sorted(known & self.seconds.keys())

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant; of code that is new, those of its function."""
        if mutant.key in self.tests:
            return self.tests[mutant.key]
        function = f"{mutant.path}:{mutant.function}:"
        near = {t for key, tests in self.tests.items() if key.startswith(function) for t in tests}
        module = {
            t for key, tests in self.tests.items() if key.startswith(mutant.path) for t in tests
        }
        return sorted(near or module)


def tests_of_python(mutants: list[Mutant], tree: Tree, folder: Path) -> dict[str, set[str]]:
    """Return the tests that execute the line of each mutant of a module."""
    import coverage

    data = coverage.CoverageData(str(folder / "python"))
    data.read()
    contexts: dict[str, dict[int, list[str]]] = {}
    for measured in data.measured_files():
        path = Path(measured)
        for base in (tree.package, tree.root):
            if path.is_relative_to(base):
                contexts.setdefault(path.relative_to(base).as_posix(), {})
                for line, names in data.contexts_by_lineno(measured).items():
                    contexts[path.relative_to(base).as_posix()].setdefault(line, []).extend(names)
                break
    chosen = {}
    for mutant in mutants:
        if mutant.path.endswith(".py"):
            lines = contexts.get(mutant.path, {})
            near = (lines.get(mutant.line - back) for back in range(6))
            names = next((found for found in near if found), [])
            chosen[mutant.key] = {name.split("|")[0].split(" (")[0] for name in names if name}
    return chosen


def select_tests(mutant: Mutant, tests: list[str], seconds: dict[str, float]) -> list[str]:
    """Return the tests to try: those of its own module first, then the nearest and quickest."""
    own = _own_file(mutant)
    near = f"tests/{Path(mutant.path).parent}/"
    tests = [test for test in tests if test in seconds]
    quick = [test for test in tests if seconds[test] < TEST_SECONDS] or tests
    quick.sort(key=lambda test: (own not in test, not test.startswith(near), seconds[test]))
    selected: list[str] = []
    total = 0.0
    for test in quick:
        total += seconds[test]
        if selected and total > TESTS_SECONDS:
            break
        selected.append(test)
    return selected


def _own_file(mutant: Mutant) -> str:
    return f"/test_{Path(mutant.path).stem.lstrip('_')}.py::"


def try_mutant(
    tree: Tree, mutant: Mutant, tests: list[str], seconds: dict[str, float]
) -> dict[str, object]:
    """Change the copy, test it, and change it back.

    A test that was not measured may fail without the change, too.
    """
    text = (tree.root / mutant.path).read_text("utf-8")
    changed = mutant.apply(text)
    result: dict[str, object] = {
        "key": mutant.key,
        "change": mutant.describe(text),
        "tests": len(tests),
    }
    while True:
        # The few that are likely to fail first: to collect those of many files takes seconds.
        own = sum(_own_file(mutant) in test for test in tests) or FIRST_TESTS
        with _applied(tree, mutant, changed) as status:
            if status:
                return result | {"status": status}
            verdict = judge(tree, tests[:own], tests[own:], seconds)
        # A test that waits may have failed because the machine is busy: then it fails without the
        # change, too.
        failed = str(verdict["by"])
        if not verdict.pop("doubtful", False) or not tree.test([failed], seconds)[0]:
            return result | verdict
        if failed not in tests:
            return result | {"status": "survived", "by": ""}
        tests = [test for test in tests if test != failed]


@contextmanager
def _applied(tree: Tree, mutant: Mutant, changed: str) -> Iterator[str]:
    """Change the copy and its engine; the result is why that makes no mutant."""
    with tree.changed(mutant.path, changed):
        if not mutant.path.endswith(".c"):
            try:
                compile(changed, mutant.path, "exec")
            except SyntaxError:
                yield "invalid"
                return
            yield ""
            return
        target, library = tree.object_of(mutant.path), tree.library.read_bytes()
        original = target.read_bytes()
        try:
            if not tree.compile(mutant.path):
                yield "invalid"
            elif target.read_bytes() == original:
                yield "identical"
            else:
                tree.link(tree.library)
                yield ""
        finally:
            target.write_bytes(original)
            fresh = tree.library.with_suffix(".fresh")
            fresh.write_bytes(library)
            fresh.replace(tree.library)


def judge(
    tree: Tree, first: list[str], then: list[str], seconds: dict[str, float]
) -> dict[str, object]:
    """Run the tests of a mutant."""
    if not first:
        return {"status": "survived", "by": "no test executes the line"}
    for remaining in (first, then):
        while remaining:
            code, failed, waited = tree.test(remaining, seconds)
            if not code:
                break
            doubtful = "::" in failed and (
                failed.startswith(TIMED) or waited > WAITED_SECONDS or failed not in seconds
            )
            if not doubtful or tree.test([failed], seconds)[0]:
                return {"status": "killed", "by": failed, "doubtful": doubtful}
            if failed not in remaining:  # a file of tests was given, and one of them is in doubt
                break
            remaining = [test for test in remaining if test != failed]
    return {"status": "survived", "by": ""}


def sanitize(tree: Tree, mutant: Mutant, tests: list[str], seconds: dict[str, float]) -> str:
    """Try the corpus and the tests that `.ci/run` repeats under sanitizers; returns a finding.

    Only the changed source is instrumented: that is less than `.ci/run` does, but quickly built.
    """
    tests = [test for test in tests if test.split("::")[0] not in NOT_SANITIZED]
    targets = next((t for folder, t in CORPUS.items() if mutant.path.startswith(folder)), ())
    text = (tree.root / mutant.path).read_text("utf-8")
    with tree.changed(mutant.path, mutant.apply(text)):
        damaged = [target for target in targets if not _replay(tree, target, mutant.path)]
        code, failed = 0, ""
        if not damaged and tests:
            code, failed = _test_sanitized(tree, mutant.path, tests, seconds)
    if damaged:
        # It counts only if the sources as they are pass.
        return f"corpus of {damaged[0]}" if _replay(tree, damaged[0], mutant.path) else ""
    again = [failed] if "::" in failed else tests
    if code and not _test_sanitized(tree, mutant.path, again, seconds)[0]:
        return f"sanitizers: {failed}"
    return ""


def _test_sanitized(
    tree: Tree, source: str, tests: list[str], seconds: dict[str, float]
) -> tuple[int, str]:
    tree.compile(source, SANITIZERS, "sanitized")
    library = tree.root / "build/sanitized.so"
    tree.link(library, {source: "sanitized"}, SANITIZERS)
    preload = (_find_library(name) for name in ("libasan.so", "libstdc++.so.6"))
    environment = {
        "BIELLA_LIBRARY": str(library),
        "LD_PRELOAD": " ".join(preload),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    slow = {test: 4 * seconds.get(test, 10.0) for test in tests}
    marked = ("-m", "engine and not slow and not soak")
    return tree.test(tests, slow, *marked, **environment)[:2]


def _replay(tree: Tree, target: str, source: str) -> bool:
    """Whether the corpus of a fuzz target passes."""
    fuzz, program = tree.root / "tests/fuzz", tree.root / f"build/replay_{target}"
    flags = (*SANITIZERS, "-fsanitize=float-cast-overflow", "-DBL_FUZZING")
    kinds = dict.fromkeys(
        (source, "scheduler/engine/plan.c", "scheduler/devices/wire/frame.c"), "fuzzed"
    )
    for name in kinds:
        tree.compile(name, flags, "fuzzed")
    command = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-w", *flags, f"-I{tree.package}", f"-I{fuzz}"]
    command += [f"-I{tree.objects}/headers", str(fuzz / f"fuzz_{target}.c"), str(fuzz / "replay.c")]
    command += [*tree.list_objects(kinds), "-lm", "-ldl", "-pthread", "-o", str(program)]
    subprocess.run(command, check=True)
    options = "allocator_may_return_null=1:max_allocation_size_mb=32:detect_leaks=1:handle_abort=1"
    inputs = sorted(str(path) for path in (fuzz / "corpus" / target).iterdir())
    run = subprocess.run(
        ["prlimit", "--cpu=120", str(program), *inputs],
        env=os.environ | {"ASAN_OPTIONS": options, "FUZZ_PLANS": str(fuzz / "plans")},
        capture_output=True,
    )
    return run.returncode == 0


def _find_library(name: str) -> str:
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def run(
    work: Path, areas: list[str], jobs: int, again: bool, sanitized: bool, given: list[str]
) -> None:
    """Try every mutant that has no result yet, or survivors once more, with given tests."""
    covered = Coverage(work)
    if not given:
        covered.measure(areas, jobs)
    results = read_results()
    equivalent = read_equivalent()
    trees: Queue[Tree] = Queue()
    for index in range(jobs):
        trees.put(make_tree(work / f"tree{index}")[0])

    def attempt(mutant: Mutant) -> dict[str, object]:
        tests = given or select_tests(mutant, covered.tests_of(mutant), covered.seconds)
        tree = trees.get()
        try:
            if not sanitized:
                return try_mutant(tree, mutant, tests, covered.seconds)
            found = sanitize(tree, mutant, tests, covered.seconds)
            result = results[mutant.key] | {"sanitized": True}
            return result | {"status": "killed", "by": found} if found else result
        finally:
            trees.put(tree)

    def waits(mutant: Mutant) -> bool:
        result = results.get(mutant.key)
        survived = result is not None and result["status"] == "survived"
        if sanitized:
            in_c = mutant.path.endswith(".c") and mutant.key not in equivalent
            return survived and in_c and (again or not result.get("sanitized"))  # type: ignore[union-attr]
        if given:
            return survived and mutant.key not in equivalent
        return result is None or (again and survived and mutant.key not in equivalent)

    with (
        RESULTS.open("a", encoding="utf-8") as file,
        ThreadPoolExecutor(jobs) as pool,
    ):
        for area, mutants in drawn(areas, spare=2):
            waiting = iter(mutants)
            counted = 0
            while counted < AREAS[area][0]:
                batch = [m for _, m in zip(range(AREAS[area][0] - counted), waiting, strict=False)]
                if not batch:
                    break
                for result in pool.map(attempt, filter(waits, batch)):
                    results[str(result["key"])] = result
                    file.write(json.dumps(result, ensure_ascii=False) + "\n")
                    file.flush()
                    print(f"{result['status']:9} {area}: {result['key']}", flush=True)
                    print(f"          {result['change']}", flush=True)
                tried = [results[m.key] for m in batch if m.key in results]
                counted += sum(result["status"] in ("killed", "survived") for result in tried)
    while not trees.empty():
        trees.get().close()


def read_results() -> dict[str, dict[str, object]]:
    lines = RESULTS.read_text("utf-8").splitlines() if RESULTS.is_file() else []
    return {result["key"]: result for result in map(json.loads, lines)}


def read_equivalent() -> dict[str, str]:
    """Return the reason for each mutant that is declared equivalent."""
    return tomllib.loads((HERE / "equivalent.toml").read_text("utf-8"))


def report() -> None:
    """Print a table of the areas, and every survivor."""
    results, equivalent = read_results(), read_equivalent()
    total: Counter[str] = Counter()
    survivors = []
    print(f"{'area':16}{'drawn':>7}{'tried':>7}{'killed':>8}{'equivalent':>12}{'survived':>10}")
    for area, mutants in drawn(list(AREAS), spare=2):
        tried = [results[m.key] for m in mutants if m.key in results]
        tried = [r for r in tried if r["status"] in ("killed", "survived")][: AREAS[area][0]]
        row = Counter(
            "equivalent"
            if r["key"] in equivalent and r["status"] == "survived"
            else str(r["status"])
            for r in tried
        )
        survivors += [r for r in tried if r["status"] == "survived" and r["key"] not in equivalent]
        total += row + Counter({"drawn": AREAS[area][0], "tried": len(tried)})
        _print_row(area, row + Counter({"drawn": AREAS[area][0], "tried": len(tried)}))
    _print_row("all", total)
    if total["tried"]:
        print(f"killed {100 * total['killed'] / total['tried']:.1f} % of those tried")
    for result in survivors:
        tests = result["by"] or f"{result['tests']} tests passed"
        print(f"\n{result['key']}\n    {result['change']}\n    {tests}")


def _print_row(name: str, row: Counter[str]) -> None:
    print(
        f"{name:16}{row['drawn']:7}{row['tried']:7}{row['killed']:8}{row['equivalent']:12}{row['survived']:10}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build/mutation", help="copies and coverage"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--area", action="append", choices=list(AREAS), help="by default all")
    parser.add_argument("--again", action="store_true", help="try survivors once more")
    parser.add_argument(
        "--sanitize", action="store_true", help="try survivors in C under ASan and UBSan"
    )
    parser.add_argument(
        "--with",
        dest="tests",
        metavar="TEST",
        nargs="+",
        default=[],
        help="try survivors with these tests, of any folder, instead of those of their lines",
    )
    parser.add_argument("--list", action="store_true", help="print what is drawn")
    parser.add_argument("--report", action="store_true", help="print the table")
    options = parser.parse_args()
    areas = options.area or list(AREAS)
    options.work = options.work.resolve()  # the compiler runs in another folder
    options.work.mkdir(parents=True, exist_ok=True)
    if options.list:
        for area, mutants in drawn(areas):
            for mutant in mutants:
                change = mutant.describe((ROOT / mutant.path).read_text("utf-8"))
                print(f"{area}: {mutant.path}:{mutant.line} {mutant.operator}\n    {change}")
        return
    if not options.report:
        run(options.work, areas, options.jobs, options.again, options.sanitize, options.tests)
    report()


if __name__ == "__main__":
    main()
