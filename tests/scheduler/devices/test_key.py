"""Keys of device links: files, variables, messages without secrets, and the command."""

from __future__ import annotations

import os
import re
import socket

import pytest

from biella import cli, run_realtime
from biella.errors import BiellaWarning, BindingError, DeviceError
from biella.scheduler.devices import _key
from biella.scheduler.devices._key import read_key

from .diagrams import loop
from .keyed import KEY

HEX = KEY.hex()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rig.key"
    path.write_text(f"{HEX}\n")
    path.chmod(0o600)
    return path


def table(**options):
    return {
        "devices": {
            "rig": {
                "driver": "udp", "host": "127.0.0.1", "port": 9, "on_loss": "hold",
                "receive": {"y": {"safe": 0}}, "send": {"u": {"safe": 0}}, **options,
            }
        },
        "blocks": {"k": {"device": "rig"}},
    }  # fmt: skip


def test_a_key_is_read_from_a_file_or_a_variable(file, monkeypatch):
    assert read_key("file:rig.key", file.parent) == KEY
    assert read_key(f"file:{file}", file.parent / "elsewhere") == KEY
    file.chmod(0o640)
    assert read_key("file:rig.key", file.parent) == KEY
    monkeypatch.setenv("RIG_KEY", HEX.upper())
    assert read_key("env:RIG_KEY", file.parent) == KEY


@pytest.mark.parametrize(
    "given, content, words",
    [
        ("file:none.key", None, "there is no key file .*biella key"),
        ("file:rig.key", HEX[:-1], "64 hexadecimal digits .* has 63 characters"),
        ("file:rig.key", "", "has 0 characters"),
        ("file:rig.key", "z" + HEX[1:], "64 hexadecimal digits"),
        ("env:NO_SUCH_KEY", None, "no environment variable `NO_SUCH_KEY`"),
        (HEX, None, "and not the key itself"),
        (f"file:{HEX}", None, "and not the key itself"),
        (f"env: {HEX.upper()}", None, "and not the key itself"),
        ("file:", None, 'must be "file:NAME" or "env:NAME"'),
    ],
)
def test_what_is_no_key_is_explained_without_its_content(file, given, content, words):
    if content is not None:
        file.write_text(content)
    with pytest.raises(DeviceError, match=words) as caught:
        read_key(given, file.parent)
    assert HEX[1:20] not in str(caught.value).lower()


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_a_key_that_all_can_read_is_refused(file):
    file.chmod(0o604)
    with pytest.raises(DeviceError, match=r"every user of this machine .*chmod 600"):
        read_key("file:rig.key", file.parent)


@pytest.mark.engine
def test_the_check_of_a_binding_reads_the_key_and_says_nothing_of_it(file):
    file.write_text(HEX[:-2])
    with pytest.raises(BindingError, match=r"\[devices.rig\] key: .*62 characters") as caught:
        run_realtime(loop(), bind=table(key=f"file:{file}"), until=0.01)
    with pytest.raises(BindingError, match="not the key itself") as inline:
        run_realtime(loop(), bind=table(key=HEX), until=0.01)
    assert HEX[:20] not in str(caught.value) + str(inline.value)


@pytest.mark.engine
def test_no_log_contains_the_key(file, tmp_path):
    out = tmp_path / "run.h5"
    with run_realtime(loop(), bind=table(key=f"file:{file}"), until=0.05, out=out) as run:
        run.wait()
        said = repr(run.report().info)
    content = out.read_bytes()
    assert b"rig.key" in content and KEY not in content
    assert HEX.encode() not in content and HEX not in said


@pytest.mark.engine
@pytest.mark.parametrize("driver", ["udp", "tcp"])
def test_a_line_to_a_network_without_a_key_warns_once(driver, file):
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port = trial.getsockname()[1]
    open_to_all = {"driver": driver, "host": "", "port": 0, "bind": "0.0.0.0", "bind_port": port}
    with pytest.warns(
        BiellaWarning, match=r"`rig` .*\(0.0.0.0\) without a key.*biella key"
    ) as seen:
        run_realtime(loop(), bind=table(**open_to_all), until=0.001).wait()
    assert len(seen) == 1
    run_realtime(loop(), bind=table(**open_to_all, key=f"file:{file}"), until=0.001).wait()


def test_names_of_this_machine_are_loopback():
    assert _key.reaches_network({"bind": "", "host": "localhost"}) == ""
    assert _key.reaches_network({"bind": "", "host": "192.0.2.1"}) == "192.0.2.1"


def test_the_command_makes_a_key(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["key", "rig.key", "--header", "rig_key.h"]) == 0
    key = read_key("file:rig.key", tmp_path)
    assert len(key) == 32 and len(set(key)) > 8
    if os.name == "posix":
        assert {(tmp_path / name).stat().st_mode & 0o777 for name in os.listdir()} == {0o600}
    items = re.findall(r"0x(..)", (tmp_path / "rig_key.h").read_text())
    assert bytes.fromhex("".join(items)) == key
    said = capsys.readouterr().out
    assert 'key = "file:rig.key"' in said and key.hex()[:12] not in said
    assert cli.main(["key", "rig.key"]) == 1
    assert "exists already" in capsys.readouterr().err
    assert read_key("file:rig.key", tmp_path) == key


def test_a_command_that_fails_leaves_no_key(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rig_key.h").write_text("of another board")
    assert cli.main(["key", "rig.key", "--header", "rig_key.h"]) == 1
    assert "`rig_key.h` exists already" in capsys.readouterr().err
    assert os.listdir() == ["rig_key.h"]
    assert (tmp_path / "rig_key.h").read_text() == "of another board"
