"""isolate="strict": what a hostile FMU reaches with isolate=True, and does not reach then."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import warnings
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from specimen import compile_specimen, make_specimen

from biella import BiellaWarning, BlockError, Diagram, DiagramError, Fmu, FmuError, simulate
from biella.blocks import Gain, Sine
from biella.cli import main
from biella.fmu import IsolationLimits
from biella.fmu.importer._archive import platform_folder
from biella.fmu.importer.backends import _strict

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")

ATTACKS = {
    "tcp": "calls",
    "udp": "calls",
    "unix socket": "calls",
    "read /etc/passwd": "files",
    "read a file of the user": "files",
    "read it through /proc/self/root": "files",
    "read it through a symbolic link": "files",
    "create a file": "files",
    "write to its own folder": "files",
    "truncate a file": "files",
    "change the mode of a file": "calls",
    "change the times of a file": "calls",
    "fork": "calls",
    "clone": "calls",
    "run a shell": "calls",
    "read a secret of the environment": "",
    "read the environment of the parent": "files",
    "read the memory map of the parent": "files",
    "trace a process": "calls",
    "own a signal descriptor": "calls",
    "signal the parent": "calls",
    "shared memory": "calls",
    "new user namespace": "calls",
    "rename a file": "files",
    "delete a file": "files",
    "kill a process": "calls",
    "unix socket, by a datagram from a pair": "calls",
}
"""In the order of hostile.c, with the protection that prevents it."""
REFUSED_ANYWAY = {"trace a process", "new user namespace", "delete a file"}
"""By some systems, or because the attack before worked."""
SLOW = partial(pytest.param, marks=pytest.mark.slow)
MODES = {
    "allocate": 1, "loop": 2, "closed": 3, "orphan": 4, "garbage": 5, "fail": 6, "drip": 7,
    "huge answer": 8, "chat": 9,
}  # fmt: skip


def make_hostile(path: Path) -> Path:
    """Write the FMU to `path`."""
    fixed = 'causality="parameter" variability="fixed"'
    rows = [
        f'<ScalarVariable name="a{k}" valueReference="{k}" causality="output" '
        f'variability="discrete"><Integer/></ScalarVariable>'
        for k in range(len(ATTACKS))
    ]
    for k, name in enumerate(("resource", "scratch", "large")):
        rows.append(
            f'<ScalarVariable name="{name}" valueReference="{200 + k}" causality="output">'
            f"<Real/></ScalarVariable>"
        )
    for k, name in enumerate(("port", "victim", "mode")):
        rows.append(
            f'<ScalarVariable name="{name}" valueReference="{100 + k}" {fixed}>'
            f'<Integer start="0"/></ScalarVariable>'
        )
    for k, name in enumerate(("secret", "target", "made", "socket")):
        rows.append(
            f'<ScalarVariable name="{name}" valueReference="{103 + k}" {fixed}>'
            f'<String start=""/></ScalarVariable>'
        )
    unknowns = "".join(f'<Unknown index="{k + 1}"/>' for k in range(len(ATTACKS) + 3))
    xml = f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="hostile" guid="hostile">
<CoSimulation modelIdentifier="hostile" canHandleVariableCommunicationStepSize="true"/>
<ModelVariables>{"".join(rows)}</ModelVariables>
<ModelStructure><Outputs>{unknowns}</Outputs><InitialUnknowns>{unknowns}</InitialUnknowns>
</ModelStructure></fmiModelDescription>"""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", xml)
        library = compile_specimen("-D_GNU_SOURCE", name="hostile")
        archive.writestr(f"binaries/{platform_folder()}/hostile.so", library.read_bytes())
        archive.writestr("resources/table.txt", "of its own")
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return make_hostile(tmp_path_factory.mktemp("hostile") / "hostile.fmu")


@dataclass
class Outcome:
    """One run of all attacks, and what they left behind."""

    worked: dict[str, int]
    own: dict[str, float]
    contacted: bool
    files: dict[str, str]
    mode: int
    victim_lives: bool
    report: dict[str, dict[str, Any]]
    warnings: list[str]


def attack(hostile: Path, folder: Path, isolate: Any) -> Outcome:
    secret, target = folder / "id_ed25519", folder / "notes.txt"
    secret.write_text("secret")
    secret.chmod(0o600)
    target.write_text("notes")
    name = str(folder / "s")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
        subprocess.Popen(["sleep", "60"]) as victim,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", BiellaWarning)
        local.bind(name)
        local.listen()
        datagrams.bind(f"{name}.datagrams")
        given = {
            "port": server.getsockname()[1], "victim": victim.pid, "socket": name,
            "secret": str(secret), "target": str(target), "made": str(folder / "made"),
        }  # fmt: skip
        d = Diagram("attack", step=0.1)
        limits = IsolationLimits(scratch=2**20) if isolate == "strict" else None
        block = Fmu(hostile, isolate=isolate, limits=limits, parameters=given, timeout=60.0)
        d.add(block, name="f")
        try:
            result = simulate(d, 0.2)
        finally:
            lives = victim.poll() is None
            victim.kill()
        server.setblocking(False)
        try:
            server.accept()[0].close()
            contacted = True
        except BlockingIOError:
            contacted = False
    return Outcome(
        {name: int(result[f"f.a{k}"][-1]) for k, name in enumerate(ATTACKS)},
        {name: float(result[f"f.{name}"][-1]) for name in ("resource", "scratch", "large")},
        contacted,
        {path.name: path.read_text() for path in folder.iterdir() if not path.is_socket()},
        secret.stat().st_mode & 0o777,
        lives,
        result.info.get("isolation", {}).get("f", {}),
        [str(entry.message) for entry in caught],
    )


@pytest.fixture(scope="module")
def open_run(hostile, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIELLA_TEST_SECRET", "password")
        return attack(hostile, tmp_path_factory.mktemp("open"), True)


@pytest.fixture(scope="module")
def strict_run(hostile, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIELLA_TEST_SECRET", "password")
        return attack(hostile, tmp_path_factory.mktemp("strict"), "strict")


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_works_with_isolate_true_and_fails_under_strict(open_run, strict_run, name):
    if ATTACKS[name] in strict_run.report["missing"]:
        pytest.skip(f"not available here: {_strict.PROTECTIONS[ATTACKS[name]]}")
    if open_run.worked[name] != 1:
        assert name in REFUSED_ANYWAY, os.strerror(-open_run.worked[name])
    assert strict_run.worked[name] < 0


def test_attacks_leave_their_traces_without_strict_only(open_run, strict_run):
    assert open_run.contacted and not strict_run.contacted
    assert not open_run.victim_lives and strict_run.victim_lives
    assert open_run.mode == 0o644 and strict_run.mode == 0o600
    if not strict_run.report["missing"]:
        assert set(open_run.files) == {"id_ed25519", "made", "made.shell"}
        assert strict_run.files == {"id_ed25519": "secret", "notes.txt": "notes"}


def test_what_was_refused_is_reported(open_run, strict_run):
    assert {"socket", "kill", "ptrace", "unshare", "fcntl"} <= set(strict_run.report["refused"])
    said = next(text for text in strict_run.warnings if "refused system calls" in text)
    assert "the FMU `hostile.fmu`" in said and "socket" in said and "isolate=True" in said
    assert open_run.warnings == []


def test_an_fmu_reads_its_resources_and_writes_a_bounded_scratch_folder(strict_run):
    assert strict_run.own["resource"] == 1.0
    assert strict_run.own["scratch"] == 1.0
    assert strict_run.own["large"] in (-27.0, -28.0)  # EFBIG, ENOSPC


def test_the_granted_limits_are_reported(strict_run):
    granted = strict_run.report["granted"] | strict_run.report["missing"]
    assert set(granted) >= {"files", "calls", "namespaces", "capabilities", "memory", "open_files"}
    assert granted["memory"] == "4.29 GB"
    assert granted["open_files"] == "256"


def run_mode(hostile, mode, isolate="strict", **options):
    d = Diagram("mode", step=0.1)
    d.add(
        Fmu(hostile, isolate=isolate, parameters={"mode": MODES[mode]}, outputs=["a0"], **options),
        name="f",
    )
    return simulate(d, 0.3)


@pytest.mark.filterwarnings("ignore:.*is incomplete on this system:biella.BiellaWarning")
@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("allocate", {"limits": IsolationLimits(memory=2**31)}, "no memory"),
        ("loop", {"timeout": 1.0}, "did not respond within 1 s, and its process was terminated"),
        SLOW("loop", {"limits": IsolationLimits(cpu_time=3.0)}, "more than cpu_time=3 s"),
        ("drip", {"timeout": 1.0}, "did not respond within 1 s"),
        SLOW("garbage", {}, "has written to the pipe of its process"),
        ("huge answer", {}, "has written to the pipe of its process"),
        SLOW("closed", {}, "exited its process with code|crashed|has written"),
        ("orphan", {}, "terminated by SIGABRT.*clone"),
        ("fail", {}, "fmi2Error.*isolate=\"strict\": it can read its own folder"),
    ],
)  # fmt: skip
def test_what_ends_or_blocks_a_process_is_an_error_that_says_so(hostile, mode, options, message):
    with pytest.raises(BlockError, match=f"(?s){message}") as caught:
        run_mode(hostile, mode, **options)
    assert caught.value.result is not None
    assert caught.value.result.t[-1] == pytest.approx(0.1)


@pytest.mark.filterwarnings("ignore:.*is incomplete on this system:biella.BiellaWarning")
def test_what_it_writes_to_stderr_is_logged_without_control_characters(hostile, capfd, caplog):
    """Two steps with 2000 lines each, that clear the terminal and name it."""
    assert run_mode(hostile, "chat").t[-1] == pytest.approx(0.3)
    assert "chat" not in capfd.readouterr().err
    lines = [text for text in caplog.messages if "chat" in text]
    assert lines[0].startswith("the FMU `hostile.fmu`: ") and lines[0].endswith("[2Jchat 0")
    assert all(text.isprintable() for text in lines) and 100 <= len(lines) < 2000
    assert "more lines of its standard error were dropped" in caplog.messages[-1]


@pytest.mark.slow
def test_the_memory_is_there_without_strict(hostile):
    assert run_mode(hostile, "allocate", isolate=True).t[-1] == pytest.approx(0.3)


def test_an_ordinary_fmu_gives_the_same_bits(tmp_path):
    """Also in a coupling that repeats its steps, and through FMPy."""
    specimen = make_specimen(tmp_path / "s.fmu")

    def run(**options):
        d = Diagram("loop", step=0.01)
        fmu = d.add(Fmu(specimen, **options), name="fmu")
        gain = d.add(Gain(-0.5), name="gain")
        other = d.add(Fmu(specimen), name="other")
        source = d.add(Sine(frequency=2.0), name="source")
        d.connect(source, gain)
        d.connect(fmu["y"], other["u"])
        d.connect(other["y"], fmu["u"])
        d.couple("fmu", "other", method="fixed-point", iterations=8)
        return simulate(d, 0.2)

    plain = run()
    for options in ({}, {"backend": "fmpy"}):
        strict = run(isolate="strict", **options)
        for path in plain.paths:
            assert np.array_equal(plain[path], strict[path])
        assert strict.info["isolation"]["fmu"]["refused"] == {}


OLD_KERNEL = """
import sys
sys.path.insert(0, {folder!r})
import _sandbox

def absent(*_):
    raise OSError(38, "not in this kernel")

{changes}
_sandbox.main()
"""


def old_kernel(monkeypatch, tmp_path, *absent):
    """Start processes without the functions named, as where the kernel does not offer them."""
    script = tmp_path / "old.py"
    changes = "\n".join(f"_sandbox.{name} = absent" for name in absent)
    script.write_text(OLD_KERNEL.format(folder=str(_strict._SCRIPT.parent), changes=changes))
    monkeypatch.setattr(_strict, "_SCRIPT", script)


def test_what_the_kernel_does_not_offer_is_named_and_the_rest_holds(hostile, tmp_path, monkeypatch):
    """As in a container that forbids user namespaces, with a kernel without Landlock."""
    old_kernel(monkeypatch, tmp_path, "enter_namespaces", "restrict_files")
    run = attack(hostile, tmp_path, "strict")
    said = "\n".join(run.warnings)
    assert "access to files, by Landlock (not in this kernel)" in said
    assert "by user namespaces (not in this kernel)" in said
    assert set(run.report["missing"]) == {"files", "namespaces"}
    assert run.worked["read a file of the user"] == 1
    for name, protection in ATTACKS.items():
        if protection == "calls":
            assert run.worked[name] < 0, name


@pytest.mark.slow
def test_before_linux_5_refused_calls_fail_without_a_report(hostile, tmp_path, monkeypatch):
    old_kernel(monkeypatch, tmp_path)
    script = _strict._SCRIPT
    quiet = (
        "def quiet(library, channel):\n"
        "    import ctypes\n"
        "    assert ctypes.CDLL(library).bl_sandbox_filter(0) == 0\n"
        "    return 'quiet'\n"
        "_sandbox.filter_calls = quiet\n"
    )
    script.write_text(script.read_text().replace("_sandbox.main()", quiet + "_sandbox.main()"))
    run = attack(hostile, tmp_path, "strict")
    assert run.report["granted"]["calls"] == "quiet" and run.report["refused"] == {}
    for name, protection in ATTACKS.items():
        if protection == "calls":
            assert run.worked[name] < 0, name
    assert run.victim_lives and not run.contacted


@pytest.mark.slow
def test_without_the_filter_of_calls_they_work(hostile, tmp_path, monkeypatch):
    """So that the filter is what the tests above observe."""
    old_kernel(monkeypatch, tmp_path, "filter_calls", "enter_namespaces", "restrict_files")
    run = attack(hostile, tmp_path, "strict")
    assert set(run.report["missing"]) == {"calls", "files", "namespaces"}
    for name, protection in ATTACKS.items():
        if protection == "calls" and name not in REFUSED_ANYWAY:
            assert run.worked[name] == 1, name
    assert run.contacted and not run.victim_lives


def test_a_protection_that_is_required_is_an_error(hostile, tmp_path, monkeypatch):
    old_kernel(monkeypatch, tmp_path, "enter_namespaces")
    with pytest.raises(FmuError, match=r"requires what this system does not offer.*namespaces"):
        run_mode(hostile, "fail", limits=IsolationLimits(required=True))
    limits = IsolationLimits(required=["calls"])
    with (
        pytest.warns(BiellaWarning, match="is incomplete on this system"),
        pytest.raises(BlockError, match="fmi2Error"),
    ):
        run_mode(hostile, "fail", limits=limits)


def test_more_files_and_variables_are_granted_by_name(hostile, tmp_path, monkeypatch):
    secret = tmp_path / "table.csv"
    secret.write_text("1,2,3")
    monkeypatch.setenv("BIELLA_TEST_SECRET", "license@server")
    limits = IsolationLimits(read=[tmp_path], environment=["BIELLA_TEST_SECRET"])
    d = Diagram("granted", step=0.1)
    block = Fmu(hostile, isolate="strict", limits=limits, parameters={"secret": str(secret)})
    d.add(block, name="f")
    with pytest.warns(BiellaWarning, match="refused system calls"):
        result = simulate(d, 0.1)
    place = list(ATTACKS).index
    assert result[f"f.a{place('read a file of the user')}"][-1] == 1
    assert result[f"f.a{place('read a secret of the environment')}"][-1] == 1
    assert result[f"f.a{place('write to its own folder')}"][-1] < 0


def test_threads_that_go_on_asking_do_not_keep_the_run_from_its_timeout(monkeypatch):
    """As many threads do it that call `fork` without end: there is always one that waits."""
    import fcntl

    asked = 0

    def ask(descriptor, request, notice):
        nonlocal asked
        asked += 1
        assert asked < 10_000, "it goes on as long as the threads do"

    monkeypatch.setattr(fcntl, "ioctl", ask)
    ours, theirs = os.pipe()
    os.write(theirs, b"!")  # readable, always
    listener = _strict.Listener(ours, _strict.Report())
    listener.answer()
    assert asked > 1 and sum(listener.report.refused.values()) == asked // 2
    listener.close()
    os.close(theirs)


def test_the_command_line_confines_and_reports(tmp_path, capsys):
    specimen = make_specimen(tmp_path / "s.fmu")
    assert main(["simulate", "--isolate", "strict", str(specimen), "--stop", "0.1"]) == 0
    assert "isolation: " in (said := capsys.readouterr().out) and "memory: 4.29 GB" in said
    assert main(["simulate", "--isolate", str(specimen), "--stop", "0.1"]) == 0
    assert "isolation: " not in capsys.readouterr().out


def test_only_strict_has_limits_and_the_texts_name_what_there_is(hostile):
    with pytest.raises(DiagramError, match='limits requires isolate="strict"'):
        Fmu(hostile, isolate=True, limits=IsolationLimits())
    with pytest.raises(DiagramError, match="must be True, False or 'strict'; got 'strong'"):
        Fmu(hostile, isolate="strong")  # type: ignore[arg-type]
    for bad, message in (
        ({"memory": 10}, "`memory` must be at least 268435456"),
        ({"cpu_time": "1"}, "`cpu_time` must be a number"),
        ({"read": "/tmp"}, "`read` must be a list of texts"),
        ({"read": ["/no/such"]}, "`/no/such`, which does not exist"),
        ({"required": ["file"]}, "no protection 'file'.*files, truncation"),
    ):
        with pytest.raises(DiagramError, match=message):
            IsolationLimits(**bad)


def test_other_systems_refuse_it_by_name(hostile, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(DiagramError, match='isolate="strict" requires Linux'):
        _strict.check_platform()


def test_calls_without_end_do_not_hold_up_the_run(monkeypatch):
    """Threads of an FMU may call again as soon as they are refused."""
    import fcntl
    import select

    answered = 0

    class Poll:
        def register(self, *_: Any) -> None:
            pass

        def poll(self, _: int) -> list[tuple[int, int]]:
            return [(0, select.POLLIN)]

    def ioctl(_: int, request: int, __: Any) -> None:
        nonlocal answered
        answered += request == _strict._SEND
        if answered > 1000:
            raise AssertionError("it answers without end")

    monkeypatch.setattr(select, "poll", Poll)
    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    _strict.Listener(0, _strict.Report()).answer()
    assert 0 < answered <= 1000
