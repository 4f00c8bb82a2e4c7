"""FMU files from anywhere: nothing of them gets where it should not, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import zipfile

import pytest
from specimen import description, make_specimen

from biella import Diagram, Fmu, simulate
from biella.errors import FmuError
from biella.fmu import archive as archives
from biella.fmu.archive import Folder, read_archive, sweep

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "../outside.txt",
        "resources/../../outside.txt",
        "/outside.txt",
        "resources\\..\\..\\outside.txt",
        "C:/outside.txt",
        "C:outside.txt",
        "\\\\server\\outside.txt",
    ],
)
def test_a_path_that_leads_outside_is_refused(tmp_path, name):
    path = make_specimen(tmp_path / "s.fmu", extra={name: b"x"})
    with pytest.raises(FmuError, match=r"s.fmu` has a file .*outside.txt`, which leads outside"):
        Fmu(path)
    assert not list(tmp_path.rglob("outside.txt"))


def test_a_symbolic_link_is_refused(tmp_path):
    path = make_specimen(tmp_path / "s.fmu")
    with zipfile.ZipFile(path, "a") as file:
        info = zipfile.ZipInfo("resources/link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(info, "/etc/passwd")
    with pytest.raises(FmuError, match="symbolic link, `resources/link`"):
        Fmu(path)


def test_two_files_of_one_name_are_refused(tmp_path):
    path = make_specimen(tmp_path / "s.fmu")
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("resources\\a", "1")
        file.writestr("resources/a", "2")
    with pytest.raises(FmuError, match="two files `resources/a`"):
        Fmu(path)


def test_a_file_made_to_fill_the_disk_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_RATIO", 10)
    monkeypatch.setattr(archives, "_RATIO_FROM", 1000)
    path = tmp_path / "bomb.fmu"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("modelDescription.xml", description())
        file.writestr("resources/zeros", bytes(10_000_000))
    with pytest.raises(FmuError, match=r"`resources/zeros` of 10000000 bytes in .*fill the disk"):
        read_archive(path)


def test_the_ratio_of_an_honest_fmu_is_far_from_the_limit(tmp_path):
    path = tmp_path / "zeros.fmu"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("modelDescription.xml", description())
        file.writestr("resources/zeros", bytes(10_000_000))
    assert "resources/zeros" in read_archive(path).members


def test_too_many_and_too_large_are_refused(tmp_path, monkeypatch):
    path = make_specimen(tmp_path / "s.fmu")
    monkeypatch.setattr(archives, "LARGEST_COUNT", 1)
    with pytest.raises(FmuError, match="holds 2 files, more than 1"):
        read_archive(path)
    monkeypatch.setattr(archives, "LARGEST_COUNT", 10)
    monkeypatch.setattr(archives, "LARGEST_SIZE", 1000)
    with pytest.raises(FmuError, match="would unpack to more"):
        read_archive(path)


def test_a_file_that_says_less_than_it_holds_is_refused(tmp_path):
    path = make_specimen(tmp_path / "s.fmu", extra={"resources/data": b"x" * 5000})
    data = path.read_bytes()
    # The size of the last member in its local header and in the directory, made smaller.
    path.write_bytes(
        data.replace(
            (5000).to_bytes(4, "little") * 2,
            (5000).to_bytes(4, "little") + (10).to_bytes(4, "little"),
        )
    )
    with pytest.raises(FmuError, match=r"damaged|unpacks to more"):
        Folder.acquire(read_archive(path))
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("left", [0, 10, 400, 2000])
def test_a_truncated_file_is_named(tmp_path, left):
    path = make_specimen(tmp_path / "s.fmu")
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(FmuError, match=r"s.fmu` is damaged, or no FMU"):
        Fmu(path)


def test_a_damaged_binary_is_noticed_when_it_is_unpacked(tmp_path):
    path = make_specimen(tmp_path / "s.fmu")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    d = Diagram("d", step=0.01)
    d.add(Fmu(path), name="f")
    with pytest.raises(FmuError, match=r"damaged, or no FMU: Bad CRC-32"):
        simulate(d, 0.1)
    assert not list((tmp_path / "temporary").iterdir())


def test_what_is_no_file_or_no_fmu_is_named(tmp_path):
    with pytest.raises(FmuError, match=r"cannot read the FMU `.*none.fmu`: No such file"):
        Fmu(tmp_path / "none.fmu")
    with pytest.raises(FmuError, match="cannot read"):
        Fmu(tmp_path)
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "hello")
    with pytest.raises(FmuError, match=r"no modelDescription.xml at its top. It holds readme.txt"):
        Fmu(path)


LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>
<fmiModelDescription fmiVersion="2.0">&b;</fmiModelDescription>"""


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS.encode(),
        LAUGHS.replace("DOCTYPE", "doctype").encode(),
        b'<?xml version="1.0"?><!DOCTYPE x SYSTEM "file:///etc/passwd"><fmiModelDescription/>',
        LAUGHS.encode("utf-16"),
        LAUGHS.replace('version="1.0"', 'version="1.0" encoding="UTF-7"').encode("utf-7"),
        b"\xef\xbb\xbf" + LAUGHS.encode(),
    ],
)
def test_entities_are_refused_before_any_parser_sees_them(tmp_path, text):
    path = tmp_path / "s.fmu"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("modelDescription.xml", text)
    with pytest.raises(FmuError, match=r"declares a document type or entities|is not in UTF-8"):
        Fmu(path)


def test_a_description_that_breaks_the_rules_is_explained(tmp_path):
    xml = description().replace('causality="input"', 'causality="entry"', 1)
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    with pytest.raises(FmuError, match=r"(?s)breaks FMI's rules:\n  - .*causality.*validate=False"):
        Fmu(path)
    with pytest.raises(FmuError, match="cannot be read"):
        Fmu(make_specimen(tmp_path / "v.fmu", xml=description(version="9.1")))
    with pytest.raises(FmuError, match="cannot be read"):
        Fmu(make_specimen(tmp_path / "b.fmu", xml="<fmiModelDescription"))


def test_a_missing_platform_lists_those_that_there_are(tmp_path):
    path = tmp_path / "s.fmu"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("modelDescription.xml", description())
        file.writestr("binaries/win32/specimen.dll", "x")
        file.writestr("binaries/vax/specimen.exe", "x")
        file.writestr("sources/specimen.c", "x")
    with pytest.raises(
        FmuError, match=r"no binary for this platform, \w+. It has binaries for vax, win32. It carr"
    ):
        Fmu(path)


def test_blocks_of_one_file_share_a_folder_that_goes_with_the_last(tmp_path):
    archive = read_archive(make_specimen(tmp_path / "s.fmu"))
    a, b = Folder.acquire(archive), Folder.acquire(archive)
    assert a is b and a.path.is_dir()
    a.release()
    assert a.path.is_dir()
    b.release()
    assert not a.path.exists()


def test_a_file_that_was_replaced_is_read_again(tmp_path):
    path = make_specimen(tmp_path / "s.fmu")
    first = Fmu(path)
    os.utime(path, ns=(1, 1))
    xml = description().replace('start="0.5"', 'start="0.25"')
    make_specimen(path, xml=xml)
    assert (first.inputs[0].default, Fmu(path).inputs[0].default) == (0.5, 0.25)


HOLD = """
import sys, time, tempfile
from biella.fmu.archive import Folder, read_archive
print(Folder.acquire(read_archive(sys.argv[1])).path, flush=True)
{end}
"""


def start_holder(path, end):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(end=end), str(path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip()


def test_folders_go_at_the_end_of_the_interpreter_and_after_a_kill(tmp_path):
    path = make_specimen(tmp_path / "s.fmu")
    process, folder = start_holder(path, "raise SystemExit")
    process.wait()
    assert folder and not os.path.exists(folder)
    process.stdout.close()

    process, folder = start_holder(path, "time.sleep(100)")
    sweep()
    assert os.path.isdir(folder)  # it is in use
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert os.path.isdir(folder)
    Folder.acquire(read_archive(path)).release()
    assert not os.path.exists(folder)


def test_the_folder_of_a_crashed_process_of_ours_goes_at_once(tmp_path):
    from specimen import TROUBLE

    from biella import BlockError

    d = Diagram("d", step=0.01)
    parameters = {"trouble": TROUBLE["segfault"], "at": 0.0}
    d.add(Fmu(make_specimen(tmp_path / "s.fmu"), isolate=True, parameters=parameters), name="f")
    with pytest.raises(BlockError, match="SIGSEGV"):
        simulate(d, 0.1)
    assert not list((tmp_path / "temporary").iterdir())
