"""Mutation testing: change the sources in one place at a time, and see whether a test fails.

    python tests/mutation/run.py                  # all 300 mutants; continues where it was ended
    python tests/mutation/run.py --area coupling  # those of one area
    python tests/mutation/run.py --again          # survivors once more, after tests were written
    python tests/mutation/run.py --list           # what is drawn
    python tests/mutation/run.py --report         # the table

Copies of the checkout are changed, never the checkout. The first run executes all tests with an
instrumented engine, to know which test executes which line; a mutant then gets only the tests of
its line, quickest first, until one fails. Needs gcc, binutils and ``pip install ".[dev]"``.

A mutant whose object file is the same as the original's is replaced by the next one drawn; so is
one that does not compile. `equivalent.toml` lists those that no test can notice, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import cover  # noqa: E402
from mutants import AREAS, Mutant, draw  # noqa: E402

from biella.scheduler.engine import build  # noqa: E402

LEFT_OUT = ("packaging", "documents", "benchmarks", "demo", "peers", "mutation", "examples")
"""Folders of tests that check other things than the behavior of the engine, or take minutes."""

TESTS_SECONDS = 60.0
"""How long, measured in the first run, the tests of one mutant may take together."""

TEST_SECONDS = 30.0
"""Time limit of one test of a mutant. Tests that took a fifth of it before are left out."""

TIMED = ("tests/scheduler/realtime", "tests/scheduler/devices", "tests/scheduler/host", "tests/cli")
"""Tests of real time: a failure counts only if the same test passes without the mutant."""


@dataclass
class Tree:
    """A copy of the checkout, with the object files of its engine."""

    root: Path

    @property
    def package(self) -> Path:
        return self.root / "src/biella"

    @property
    def objects(self) -> Path:
        return self.root / "build/objects"

    def environment(self, **more: str) -> dict[str, str]:
        """Return variables with which Python imports this copy."""
        search = os.pathsep.join([str(self.root / "src"), str(self.root / "tests/mutation")])
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BIELLA", "COVERAGE"))}
        return (
            kept
            | {"PYTHONPATH": search, "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg"}
            | more
        )

    def object_of(self, source: str) -> Path:
        return self.objects / (source.replace("/", "+") + ".o")

    def compile(self, source: str, flags: tuple[str, ...]) -> bool:
        """Compile one source; False if the compiler refuses it."""
        target = self.object_of(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        options = [*build.CFLAGS, "-fPIC", "-pthread", "-w", "-I.", f"-I{self.objects}/headers"]
        command = ["gcc", *options, *flags, "-c", source, "-o", str(target)]
        return subprocess.run(command, cwd=self.package, capture_output=True).returncode == 0

    def link(self) -> None:
        objects = sorted(str(path) for path in self.objects.glob("*.o"))
        fresh = self.package / ".fresh.so"
        command = ["gcc", "-shared", "-Wl,-Bsymbolic", *objects, "-lm", "-pthread", "-ldl"]
        subprocess.run([*command, "-o", str(fresh)], check=True)
        fresh.replace(self.package / build.library_name())

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
        self.link()

    def test(self, tests: list[str]) -> tuple[int, str]:
        """Run tests until one fails; returns pytest's exit code and the test that failed."""
        selected = self.root / "build/selected.txt"
        selected.write_text("\n".join(tests))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-rfE"]
        command += ["--no-header", "--tb=no", f"--timeout={TEST_SECONDS:.0f}", f"@{selected}"]
        run = subprocess.run(
            command, cwd=self.root, env=self.environment(), capture_output=True, text=True
        )
        named = [
            line.partition(" ")[2].split(" - ")[0]  # a name may have spaces
            for line in run.stdout.splitlines()
            if line.startswith(("FAILED ", "ERROR "))
        ]
        if run.returncode in (2, 4, 5) and not named:
            raise SystemExit(f"pytest ended with {run.returncode}:\n{run.stdout}{run.stderr}")
        crash = f"exit code {run.returncode}" if run.returncode else ""
        return run.returncode, named[0] if named else crash


def copy_checkout(target: Path) -> Tree:
    """Copy the files that git knows."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, names):
        source = ROOT / name
        if source.is_symlink() or source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    return Tree(target)


def drawn(areas: list[str], spare: int = 1) -> Iterator[tuple[str, list[Mutant]]]:
    """Yield the mutants of each area; no place is drawn in two areas."""
    taken: set[str] = set()
    for area in AREAS:
        mutants = [mutant for mutant in draw(ROOT, area) if mutant.key not in taken]
        mutants = mutants[: spare * AREAS[area][0]]
        taken.update(mutant.key for mutant in mutants)
        if area in areas:
            yield area, mutants


def measure_coverage(work: Path, jobs: int) -> None:
    """Run all tests once with the instrumented engine, and write which execute each mutant."""
    tree = copy_checkout(work / "traced")
    shutil.copy(HERE / "trace.c", tree.root / "scheduler/engine/trace.c")
    tree.build(("-O1", "-g", "-fno-inline", "-fsanitize-coverage=trace-pc"))
    folder = work / "traces"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    mutants = [mutant for _, several in drawn(list(AREAS), spare=2) for mutant in several]
    files = sorted({mutant.path for mutant in mutants if mutant.path.endswith(".py")})
    settings = work / "coverage.ini"
    settings.write_text(
        "[run]\nparallel = true\npatch = subprocess\ncontext = ${PYTEST_CURRENT_TEST-}\n"
        f"data_file = {folder}/python\ninclude =\n"
        + "".join(f"    {tree.package}/{name}\n    {tree.root}/{name}\n" for name in files)
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(jobs), "-p", "no:cacheprovider"]
    command += [
        "-p",
        "cover",
        "--cov",
        f"--cov-config={settings}",
        "--cov-context=test",
        "--cov-report=",
    ]
    command += [f"--ignore=tests/{name}" for name in LEFT_OUT]
    with (work / "traced.log").open("w") as log:
        subprocess.run(
            command,
            cwd=tree.root,
            env=tree.environment(BIELLA_TRACE=str(folder)),
            stdout=log,
            stderr=log,
        )
    seconds = cover.read_tests(folder)
    (work / "tests.json").write_text(json.dumps(seconds))
    chosen = tests_of_c(mutants, tree, folder) | tests_of_python(mutants, tree, folder)
    (work / "chosen.json").write_text(
        json.dumps({key: sorted(tests & seconds.keys()) for key, tests in chosen.items()})
    )


def tests_of_c(mutants: list[Mutant], tree: Tree, folder: Path) -> dict[str, set[str]]:
    """Return the tests that execute the line of each mutant of the engine."""
    blocks = cover.block_addresses(tree.package / build.library_name())
    wanted: dict[str, set[int]] = {}
    for mutant in mutants:
        if mutant.path.endswith(".c"):
            # A statement of several lines may have code on its first one only.
            near = (blocks.get((mutant.path, mutant.line - back)) for back in range(6))
            wanted[mutant.key] = next((found for found in near if found), set())
    executed = cover.read_traces(folder, {a for several in wanted.values() for a in several})
    return {
        key: {test for address in several for test in executed.get(address, ())}
        for key, several in wanted.items()
    }


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


def select_tests(
    mutant: Mutant, chosen: dict[str, list[str]], seconds: dict[str, float]
) -> list[str]:
    """Return the tests of a mutant: those of its own module first, then the quickest."""
    own = f"/test_{Path(mutant.path).stem.lstrip('_')}.py::"
    tests = sorted(chosen.get(mutant.key, []), key=lambda test: (own not in test, seconds[test]))
    tests = [test for test in tests if seconds[test] < TEST_SECONDS / 5]
    selected: list[str] = []
    total = 0.0
    for test in tests:
        total += seconds[test]
        if selected and total > TESTS_SECONDS:
            break
        selected.append(test)
    return selected


def try_mutant(tree: Tree, mutant: Mutant, tests: list[str]) -> dict[str, object]:
    """Change the copy, test it, and change it back."""
    source = tree.root / mutant.path
    text = source.read_text("utf-8")
    result: dict[str, object] = {
        "key": mutant.key,
        "change": mutant.describe(text),
        "tests": len(tests),
    }
    in_c = mutant.path.endswith(".c")
    try:
        source.write_text(mutant.apply(text), "utf-8")
        if in_c:
            original = tree.object_of(mutant.path).read_bytes()
            if not tree.compile(mutant.path, ()):
                return result | {"status": "invalid"}
            if tree.object_of(mutant.path).read_bytes() == original:
                return result | {"status": "identical"}
            tree.link()
        else:
            try:
                compile(mutant.apply(text), mutant.path, "exec")
            except SyntaxError:
                return result | {"status": "invalid"}
        if not tests:
            return result | {"status": "survived", "by": "no test executes the line"}
        code, failed = tree.test(tests)
    finally:
        source.write_text(text, "utf-8")
        if in_c:
            tree.compile(mutant.path, ())
            tree.link()
    if code and failed.startswith(TIMED) and tree.test([failed])[0]:
        remaining = [test for test in tests if test != failed]
        return try_mutant(tree, mutant, remaining)
    return result | {"status": "killed" if code else "survived", "by": failed}


def run(work: Path, areas: list[str], jobs: int, again: bool) -> None:
    """Try every mutant that has no result yet."""
    if not (work / "chosen.json").is_file():
        print("running all tests once with the instrumented engine …", flush=True)
        measure_coverage(work, jobs)
    chosen = json.loads((work / "chosen.json").read_text())
    seconds = json.loads((work / "tests.json").read_text())
    results = read_results(work)
    equivalent = read_equivalent()
    trees: Queue[Tree] = Queue()
    for index in range(jobs):
        tree = copy_checkout(work / f"tree{index}")
        tree.build()
        trees.put(tree)

    def attempt(mutant: Mutant) -> dict[str, object]:
        tree = trees.get()
        try:
            return try_mutant(tree, mutant, select_tests(mutant, chosen, seconds))
        finally:
            trees.put(tree)

    with (
        (work / "results.jsonl").open("a", encoding="utf-8") as file,
        ThreadPoolExecutor(jobs) as pool,
    ):
        for area, mutants in drawn(areas, spare=2):
            waiting = iter(mutants)
            counted = 0
            while counted < AREAS[area][0]:
                batch = [m for _, m in zip(range(AREAS[area][0] - counted), waiting, strict=False)]
                if not batch:
                    break
                old = {m.key: results[m.key] for m in batch if m.key in results}
                redo = {
                    k
                    for k, r in old.items()
                    if again and r["status"] == "survived" and k not in equivalent
                }
                todo = [m for m in batch if m.key not in old or m.key in redo]
                for result in pool.map(attempt, todo):
                    results[str(result["key"])] = result
                    file.write(json.dumps(result, ensure_ascii=False) + "\n")
                    file.flush()
                    print(f"{result['status']:9} {area}: {result['key']}", flush=True)
                    print(f"          {result['change']}", flush=True)
                counted += sum(results[m.key]["status"] in ("killed", "survived") for m in batch)


def read_results(work: Path) -> dict[str, dict[str, object]]:
    path = work / "results.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return {result["key"]: result for result in map(json.loads, lines)}


def read_equivalent() -> dict[str, str]:
    """Return the reason for each mutant that is declared equivalent."""
    return tomllib.loads((HERE / "equivalent.toml").read_text("utf-8"))


def report(work: Path) -> None:
    """Print a table of the areas, and every survivor."""
    results, equivalent = read_results(work), read_equivalent()
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
        "--work", type=Path, default=ROOT / "build/mutation", help="copies and results"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--area", action="append", choices=list(AREAS), help="by default all")
    parser.add_argument("--again", action="store_true", help="try survivors once more")
    parser.add_argument("--list", action="store_true", help="print what is drawn")
    parser.add_argument("--report", action="store_true", help="print the table")
    options = parser.parse_args()
    areas = options.area or list(AREAS)
    options.work.mkdir(parents=True, exist_ok=True)
    if options.list:
        for area, mutants in drawn(areas):
            for mutant in mutants:
                change = mutant.describe((ROOT / mutant.path).read_text("utf-8"))
                print(f"{area}: {mutant.path}:{mutant.line} {mutant.operator}\n    {change}")
        return
    if not options.report:
        run(options.work, areas, options.jobs, options.again)
    report(options.work)


if __name__ == "__main__":
    main()
