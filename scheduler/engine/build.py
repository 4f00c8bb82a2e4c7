"""Compile the C engine: every ``.c`` file of the package becomes one shared library.

It also writes ``_contract.py``, the Python view of the library: see ``contract.py``.

Stands alone on the standard library, because the packaging hook loads this file before anything
else of biella is installed. From a checkout, ``python scheduler/engine/build.py`` compiles in
place; ``--output`` and ``--flags`` make another library, such as one with sanitizers::

    python scheduler/engine/build.py --output /tmp/libbiella.so --flags "-fsanitize=address -g -O1"
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

FOLDERS = ("blocks", "scheduler", "fmu")
LIBRARY_NAMES = {"darwin": "libbiella.dylib", "win32": "biella.dll"}
ZIG_REQUIREMENT = "ziglang>=0.13"
WHEEL_TARGETS = {
    "win_amd64": ("x86_64-windows-gnu", "win32"),
    "macosx_11_0_x86_64": ("x86_64-macos.11.0", "darwin"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", "darwin"),
}
"""Wheels that are built on any machine: their tags, zig's target, the name in ``sys.platform``."""

CFLAGS = [
    "-std=c11",
    "-O3",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-D_GNU_SOURCE",
]

# Those that cost nothing: the table is in docs/explanation/security.md.
HARDENING = ["-fstack-protector", "-fstack-clash-protection"]
LINK_HARDENING = ["-Wl,-z,relro,-z,now,-z,noexecstack"]
FORTIFY = ["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]


class BuildError(RuntimeError):
    """The engine cannot be compiled; the message lists what was tried and what to do."""


def _load_beside(name: str) -> ModuleType:
    """Load a module that lies beside this one, also where biella is not a package yet."""
    full = f"biella_build_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)
    return sys.modules[full]


_c_headers, _contract = _load_beside("c_headers"), _load_beside("contract")


@dataclass(frozen=True)
class Generated:
    """What is written from the sources before they are compiled.

    Attributes
    ----------
    module
        The text of ``_contract.py``.
    headers
        The text of each generated header, by the name that sources include it by.
    digest
        By which a library and a module are known to belong together.
    """

    module: str
    headers: dict[str, str]
    digest: str


@dataclass(frozen=True)
class Compiler:
    """A command that takes the options of ``cc``, and the ``sys.platform`` that it compiles for."""

    command: tuple[str, ...]
    platform: str = sys.platform
    linker_options: tuple[str, ...] = ()

    @property
    def compile_flags(self) -> list[str]:
        if self.platform == "win32":
            return CFLAGS
        hardening = HARDENING if self.platform == "linux" else []
        return [*CFLAGS, "-fPIC", "-pthread", *hardening]

    @property
    def link_flags(self) -> list[str]:
        if self.platform == "win32":
            # Stripped, because what names the debug information is new in every link.
            return ["-shared", "-s", *self.linker_options]
        # Two FMUs in one process each carry an engine: a library must call its own functions.
        symbolic = [] if self.platform == "darwin" else ["-Wl,-Bsymbolic"]
        # dlopen is in a library of its own where glibc is older than 2.34.
        loader = ["-ldl", *LINK_HARDENING] if self.platform == "linux" else []
        return ["-shared", *symbolic, "-lm", "-pthread", *loader, *self.linker_options]


def library_name(platform: str = sys.platform) -> str:
    """Return the file name of the engine on a platform named as in ``sys.platform``."""
    return LIBRARY_NAMES.get(platform, "libbiella.so")


def find_sources(package: Path, suffix: str = ".c") -> list[Path]:
    """Return the sources below `package`, relative to it and sorted.

    The three folders are symbolic links in a checkout and real folders in a wheel. Only
    `package` is searched, so that no file is found under two names.
    """
    missing = [folder for folder in FOLDERS if not (package / folder).is_dir()]
    if missing:
        raise BuildError(
            f"{package} has no folder {', '.join(missing)}. In a checkout these are "
            "symbolic links; on Windows, check the repository out again with "
            "`git config core.symlinks true`."
        )
    return sorted(
        Path(root, name).relative_to(package)
        for folder in FOLDERS
        for root, _, names in os.walk(package / folder, followlinks=True)
        for name in names
        if name.endswith(suffix)
    )


def generate(package: Path, sources: Sequence[Path] | None = None) -> Generated:
    """Write the contract with Python and the registry of kernels for the sources below `package`.

    Parameters
    ----------
    package
        The folder that holds ``blocks``, ``scheduler`` and ``fmu``.
    sources
        The ``.c`` files whose kernels are registered; by default all.

    Raises
    ------
    BuildError
        A declaration that Python cannot mirror, or a table of kernels in another form.
    """
    sources = find_sources(package) if sources is None else sources
    try:
        headers = _c_headers.read_headers(package, find_sources(package, ".h"))
        _c_headers.read_shared_enums(package, find_sources(package), headers)
        contract = _contract.write_contract(headers)
        tables = _contract.find_kernel_tables(package, sources)
        kernels = _contract.write_kernels_header(tables, contract.digest)
    except (_c_headers.HeaderError, _contract.ContractError) as error:
        raise BuildError(str(error)) from error
    return Generated(contract.module, {_contract.KERNELS_HEADER: kernels}, contract.digest)


def contract_path(package: Path) -> Path:
    """Return where the generated module of `package` is."""
    return package / str(_contract.MODULE)


def write_headers(generated: Generated, folder: Path) -> None:
    """Write the generated headers below `folder`."""
    for name, text in generated.headers.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def find_system_compiler() -> Compiler | None:
    """Return ``$CC``, or the first of cc, gcc and clang that compiles; None without one."""
    try:
        return next(_system_compilers([]))
    except StopIteration:
        return None


def find_zig_compiler(target: str | None = None, platform: str = sys.platform) -> Compiler | None:
    """Return the compiler in the ziglang package, None where that is not installed.

    Parameters
    ----------
    target
        A zig target such as ``x86_64-windows-gnu``; by default this machine, on Linux with a
        glibc old enough (2.17) for the library to load on other machines too.
    platform
        The ``sys.platform`` that `target` stands for.
    """
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return None
    zig = Path(spec.submodule_search_locations[0], "zig.exe" if os.name == "nt" else "zig")
    target = target or _portable_target()
    # Without an explicit processor zig compiles for this one, and the library runs nowhere else.
    # It adds debug information, with paths, unless it is told not to.
    command = [str(zig), "cc", "-mcpu=baseline", "-g0"]
    # Windows libraries carry the time of the link, unless it is to be repeatable.
    repeatable = ("-Wl,-Brepro",) if platform == "win32" else ()
    return Compiler((*command, *(["-target", target] if target else [])), platform, repeatable)


def find_compiler() -> Compiler:
    """Return the system's compiler, else zig, else raise a `BuildError` that lists the attempts."""
    attempts: list[str] = []
    for compiler in _system_compilers(attempts):
        return compiler
    zig = find_zig_compiler()
    if zig is not None:
        return zig
    attempts.append("ziglang: not installed")
    raise BuildError(
        "biella needs a C compiler to build its engine, and found none.\n"
        + "".join(f"  tried {attempt}\n" for attempt in attempts)
        + "Install one (Debian, Ubuntu: `apt install gcc libc6-dev`; Fedora: `dnf install gcc`; "
        "macOS: `xcode-select --install`; anywhere: `pip install ziglang`), "
        "or set CC to the command of yours."
    )


def build(
    package: Path,
    output: Path | None = None,
    *,
    compiler: Compiler | None = None,
    flags: Sequence[str] = (),
    stamps: Path | None = None,
    objects: Path | None = None,
) -> Path:
    """Compile the engine and return the path of the library.

    A library in place gets the module ``_contract.py`` beside it.

    Parameters
    ----------
    package
        The folder that holds ``blocks``, ``scheduler`` and ``fmu``.
    output
        The library to write; by default the one in `package`.
    compiler
        By default the one of `find_compiler`.
    flags
        More options, for compiling and linking; those in ``$BIELLA_CFLAGS`` follow.
    stamps
        A folder with a record of the sources of the library; an unchanged one is not
        compiled again. Without it the library is always compiled.
    objects
        A folder that keeps object files: a source is compiled again only if it or one of its
        headers has changed. Without it every source is compiled.

    Raises
    ------
    BuildError
        No compiler, or an error in a source; carries the compiler's own words.
    """
    compiler = compiler or find_compiler()
    in_place = output is None
    output = (output or package / library_name(compiler.platform)).absolute()
    sources = find_sources(package)
    if not sources:
        raise BuildError(f"{package} holds no C source, so there is no engine to compile.")
    flags = [*flags, *shlex.split(os.environ.get("BIELLA_CFLAGS", ""))]
    # Needs an optimizer, and hides overruns from sanitizers.
    if compiler.platform == "linux" and not any(f.startswith(("-O0", "-fsan")) for f in flags):
        flags = [*FORTIFY, *flags]
    generated = generate(package, sources)

    made_from = digest_inputs(package, compiler, flags)
    stamp = stamps / f"{output.name}.stamp" if stamps else None
    if (
        stamp
        and output.is_file()
        and stamp.is_file()
        and stamp.read_text() == f"{made_from} {_digest_file(output)}\n"
    ):
        if in_place:
            _replace_text(contract_path(package), generated.module)
        return output

    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="biella-build-") as folder:
        # Relative names keep this machine's paths out of the library.
        write_headers(generated, Path(folder))
        compile_ = [
            *compiler.compile_flags,
            "-I.",
            f"-I{folder}",
            f"-ffile-prefix-map={package.absolute()}=.",
            f"-ffile-prefix-map={folder}=.",
            *flags,
        ]
        names = [f"{index}.o" for index in range(len(sources))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            runs = [
                pool.submit(_compile, compiler, compile_, package, c, Path(folder, name), objects)
                for c, name in zip(sources, names, strict=True)
            ]
        for run in runs:
            run.result()

        linked = Path(folder, output.name)
        _run(
            compiler,
            [*names, *flags, *compiler.link_flags, "-o", linked.name],
            Path(folder),
        )
        # A process that runs the old library keeps it: the new one takes its name in one step.
        fresh = output.with_name(f".{output.name}.{os.getpid()}")
        shutil.copy(linked, fresh)
        os.replace(fresh, output)
    if in_place:
        _replace_text(contract_path(package), generated.module)

    if stamp:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(f"{made_from} {_digest_file(output)}\n")
    return output


def _compile(
    compiler: Compiler,
    options: Sequence[str],
    package: Path,
    source: Path,
    made: Path,
    objects: Path | None,
) -> None:
    """Compile a source, or copy its object file from `objects` if it would be the same."""
    command = [*options, "-c", str(source), "-o", str(made)]
    if objects is None:
        _run(compiler, command, package)
        return
    # The folder of this build has a new name each time, and a copy of the project another place.
    folders = {str(made.parent): "build", str(package.absolute()): "package"}
    options = [_replace_words(option, folders) for option in options]

    def digest(read: Sequence[str]) -> str | None:
        summed = hashlib.sha256("\0".join([*compiler.command, *options]).encode())
        for name in read:
            path = made.parent / name[1:] if name.startswith("@") else package / name
            if not path.is_file():
                return None
            summed.update(f"\0{name}\0".encode() + path.read_bytes())
        return summed.hexdigest()

    variant = hashlib.sha256("\0".join(options).encode()).hexdigest()[:12]
    kept = objects / variant / source.with_suffix(".o")
    record = kept.with_suffix(".txt")
    if kept.is_file() and record.is_file():
        first, *read = record.read_text(encoding="utf-8").splitlines()
        if first == digest(read):
            shutil.copy(kept, made)
            return
    rules = made.with_suffix(".d")
    _run(compiler, [*command, "-MMD", "-MT", "x", "-MF", str(rules)], package)
    words = rules.read_text(encoding="utf-8").replace("\\\n", " ").split()[1:]
    read = [word.replace(f"{made.parent}{os.sep}", "@") for word in words]
    made_from = digest(read)
    if made_from is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        # The record belongs to the object file: it is removed first and written last.
        record.unlink(missing_ok=True)
        fresh = kept.with_name(f".{kept.name}.{os.getpid()}")
        shutil.copy(made, fresh)
        os.replace(fresh, kept)
        _replace_text(record, "\n".join([made_from, *read]))


def _replace_words(text: str, words: Mapping[str, str]) -> str:
    for word, other in words.items():
        text = text.replace(word, other)
    return text


def build_for_wheel(package: Path, tag: str, folder: Path) -> tuple[Path, Path]:
    """Compile the engine for the wheel of another platform; return library and ``_contract.py``.

    Both are in ``folder``; what is in place in `package` belongs to this machine.

    Raises
    ------
    BuildError
        An unknown platform; no ziglang; an error in a source.
    """
    if tag not in WHEEL_TARGETS:
        raise BuildError(
            f"there are no wheels for `{tag}` to build elsewhere. Platforms: "
            f"{', '.join(WHEEL_TARGETS)}."
        )
    compiler = find_zig_compiler(*WHEEL_TARGETS[tag])
    if compiler is None:
        raise BuildError(f"a wheel for {tag} needs ziglang: pip install ziglang.")
    library = folder / tag / library_name(compiler.platform)
    build(package, library, compiler=compiler, stamps=folder / tag)
    contract = library.with_name(contract_path(package).name)
    _replace_text(contract, generate(package).module)
    return library, contract


def _system_compilers(attempts: list[str]) -> Iterator[Compiler]:
    """Yield the compilers that work here, and note in `attempts` why the others do not."""
    chosen = os.environ.get("CC", "").strip()
    if chosen:
        command = (chosen,) if shutil.which(chosen) else tuple(shlex.split(chosen))
        if not shutil.which(command[0]):
            raise BuildError(
                f"CC is set to `{chosen}`, but there is no such command. "
                "Correct it, or unset it to let biella look for a compiler."
            )
        yield Compiler(command)
        return
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path is None:
            attempts.append(f"{name}: not on PATH")
            continue
        compiler = Compiler((path,))
        problem = _try_out(compiler)
        if problem is None:
            yield compiler
        else:
            attempts.append(f"{path}: {problem}")


def _try_out(compiler: Compiler) -> str | None:
    """Return what keeps a compiler from working (often the missing headers of libc), or None."""
    with tempfile.TemporaryDirectory(prefix="biella-build-") as folder:
        Path(folder, "try.c").write_text(
            "#include <math.h>\ndouble f(double x) { return sin(x); }\n"
        )
        arguments = [*compiler.compile_flags, "try.c", *compiler.link_flags, "-o", "try.out"]
        try:
            _run(compiler, arguments, Path(folder))
        except BuildError as error:
            return str(error)
    return None


def _run(compiler: Compiler, arguments: list[str], cwd: Path) -> None:
    command = [*compiler.command, *arguments]
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    except OSError as error:
        raise BuildError(f"`{compiler.command[0]}` does not start: {error}") from error
    if done.returncode:
        raise BuildError(f"`{shlex.join(command)}` failed:\n{done.stdout}{done.stderr}".rstrip())
    sys.stderr.write(done.stderr)


def _portable_target() -> str | None:
    """Return a zig target for this machine with an old glibc, None where that has no meaning."""
    machine = platform.machine()
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        if machine in ("x86_64", "aarch64"):
            return f"{machine}-linux-gnu.2.17"
    return None


def digest_inputs(package: Path, compiler: Compiler, flags: Sequence[str] = ()) -> str:
    """Return a hash of all that a library depends on: sources, command and options."""
    digest = hashlib.sha256()
    options = [compiler.platform, *compiler.compile_flags, *compiler.link_flags, *flags]
    digest.update("\0".join([*compiler.command, *options]).encode())
    generated = generate(package)
    digest.update("\0".join([generated.module, *generated.headers.values()]).encode())
    for source in find_sources(package, ".c") + find_sources(package, ".h"):
        content = (package / source).read_bytes()
        digest.update(f"\0{source.as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _replace_text(path: Path, text: str) -> None:
    """Write a file atomically, unless its content is unchanged."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


def _digest_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(arguments: Sequence[str] | None = None) -> None:
    """Compile the engine from the shell."""
    parser = argparse.ArgumentParser(description="Compile biella's C engine.")
    parser.add_argument("--output", type=Path, help="the library to write; by default in place")
    parser.add_argument("--flags", type=shlex.split, default=[], help="more compiler options")
    parser.add_argument(
        "--headers", type=Path, help="only write the generated headers, below this folder"
    )
    options = parser.parse_args(arguments)

    here = Path(__file__).resolve().parents[2]
    checkout = (here / "src" / "biella").is_dir()
    package = here / "src" / "biella" if checkout else here
    objects = here / "build" / "engine" if checkout and not options.output else None
    try:
        if options.headers:
            write_headers(generate(package), options.headers)
            return
        library = build(package, options.output, flags=options.flags, objects=objects)
    except BuildError as error:
        raise SystemExit(str(error)) from None
    print(library)


if __name__ == "__main__":
    main()
