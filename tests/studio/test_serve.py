"""`biella serve`: what it opens, what it says of that, and a run that starts with it."""

import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from biella import cli
from biella.studio._access import Access
from biella.studio._serve import describe_access

from .client import Client, write_rig

pytestmark = pytest.mark.engine
KEY = "0123456789abcdef" * 4


def test_it_serves_a_file_and_only_the_key_changes_its_run(tmp_path):
    write_rig(tmp_path)
    (tmp_path / "rig.key").write_text(KEY)
    (tmp_path / "rig.key").chmod(0o600)
    command = [sys.executable, "-m", "biella", "serve", "rig.py", "--key", "file:rig.key", "--run"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"serve: http://127\.0\.0\.1:(\d+)/#token=(\S+)\n", line)
        assert found, line
        server = SimpleNamespace(port=int(found[1]), token=found[2])
        with Client(server) as page:
            page.wait_state("running")
            assert "needs the key" in page.refused("set", path="p.k", value=1.0)
            page.unlock(bytes.fromhex(KEY))
            page.do("keyed", **page.seal("pause"))
            page.wait_state("paused")
            # The file is a program: with the key, too, no page of another computer changes it.
            page.wait(lambda: "editable" in page.events)
            assert "do not change files" in page.events["editable"]["reason"]
            assert not {"edit", "palette"} & {*page.hello["can"], *page.hello["locked"]}
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "on loopback only" in said and "pages that have the key may" in said
        assert KEY[:16] not in said
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_what_is_opened_is_said():
    closed = "\n".join(describe_access(Access(guarded=True)))
    assert "loopback only" in closed and "read-only" in closed and "encrypted" not in closed
    opened = "\n".join(describe_access(Access("0.0.0.0", guarded=True, key=bytes(32))))
    assert "all addresses of this computer" in opened and "not encrypted" in opened
    assert "pages that have the key" in opened
    one = "\n".join(describe_access(Access("192.0.2.7", guarded=True)))
    assert "the address 192.0.2.7" in one


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["{rig}"], r"without --key no page may start .*--run .*biella key rig\.key"),
        (["{rig}", "--key", "rig.key"], r"key must be \"file:NAME\""),
        (["{rig}", "--key", "file:{none}"], r"no key file .* biella key"),
        (["{rig}", "--run", "--certificate", "x.crt"], "belong together"),
        (["{rig}", "--run", "--certificate", "x.crt", "--private-key", "x.pem"], "openssl req"),
        (["{rig}", "--run", "--host", "192.0.2.7"], r"`192.0.2.7` is no address of this computer"),
        (["{rig}", "--run", "--host", "no such name"], "is no address of this computer"),
        (["--run"], "--run starts the run of a Python file"),
        ([], "name a Python file that defines"),
        (["{rog}", "--run"], r"no file .*rog\.py`. Did you mean `rig\.py`\?"),
        (["{none}.h5"], r"no file .* Record one: biella simulate"),
        (["{rig}", "--run", "--bind", "{none}.toml"], r"no file .* biella bind FILE\.py rig\.toml"),
        (["{folder}/", "--run"], "is a folder: name a file"),
    ],
)
def test_mistakes_say_the_next_step(tmp_path, capsys, arguments, said):
    rig = write_rig(tmp_path)
    rog = rig.with_name("rog.py")
    names = {"rig": rig, "rog": rog, "none": tmp_path / "none", "folder": tmp_path}
    assert cli.main(["serve", *(item.format(**names) for item in arguments)]) == 1
    assert re.search(said, capsys.readouterr().err.replace("\n", " "))
