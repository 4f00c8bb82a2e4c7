"""FMU files from anywhere: nothing of them gets where it should not, and nothing stays behind."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import warnings
import zipfile

import pytest
from specimen import description, make_specimen

from biella import Diagram, Fmu, simulate
from biella.errors import BiellaWarning, FmuError
from biella.fmu.importer import _archive as archives
from biella.fmu.importer._archive import Folder, read_archive, sweep

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
    with pytest.raises(FmuError, match=r"s.fmu` has a file .*outside.txt`, whose path is outside"):
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


@pytest.mark.parametrize("name", ["./", ".", "./resources/", "resources/./"])
def test_an_entry_for_the_folder_itself_is_no_way_outside(tmp_path, name):
    path = make_specimen(tmp_path / "s.fmu", extra={name: b"", "./resources/a": b"1"})
    archive = read_archive(path)
    assert set(archive.members) >= {"modelDescription.xml", "resources/a"}
    folder = Folder.acquire(archive)
    assert (folder.path / "resources" / "a").read_bytes() == b"1"
    folder.release()


def add_twice(path, name, *contents):
    with zipfile.ZipFile(path, "a") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for content in contents:
            file.writestr(name, content)
    return path


def test_a_file_that_is_there_twice_does_no_harm(tmp_path):
    path = add_twice(make_specimen(tmp_path / "s.fmu"), "resources/a", "1", "1")
    assert read_archive(path).members.count("resources/a") == 1


def test_of_different_files_of_one_name_the_last_is_used_with_a_warning(tmp_path):
    path = add_twice(make_specimen(tmp_path / "s.fmu"), "resources/a", "1", "22")
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("resources\\a", "333")
    archive = read_archive(path)
    with pytest.warns(BiellaWarning, match=r"several different files of one name: resources/a"):
        Fmu(path)
    folder = Folder.acquire(archive)
    assert (folder.path / "resources" / "a").read_bytes() == b"333"
    folder.release()


def test_a_file_made_to_fill_the_disk_is_refused(tmp_path, monkeypatch):
    """Zeros that DEFLATE packs a thousandfold: more it cannot, so no ratio is suspicious."""
    path = tmp_path / "bomb.fmu"
    zeros = bytes(1 << 24)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("modelDescription.xml", description())
        file.writestr("resources/zeros", zeros)
    monkeypatch.setenv("BIELLA_FMU_MAX_GIB", "0.01")
    with pytest.raises(
        FmuError,
        match=r"would unpack to more than 0.01 GiB and is rejected.*set "
        "BIELLA_FMU_MAX_GIB to a larger",
    ):
        read_archive(path)
    monkeypatch.setenv("BIELLA_FMU_MAX_GIB", "0.02")
    assert "resources/zeros" in read_archive(path).members
    assert archives.LARGEST_SIZE == 2 << 30
    for wrong in ("much", "-1", "nan", ""):
        monkeypatch.setenv("BIELLA_FMU_MAX_GIB", wrong)
        with pytest.raises(FmuError, match="BIELLA_FMU_MAX_GIB must be a positive number, got"):
            archives.largest_size()


def test_too_many_and_too_large_are_refused(tmp_path, monkeypatch):
    path = make_specimen(tmp_path / "s.fmu")
    monkeypatch.setattr(archives, "LARGEST_COUNT", 1)
    with pytest.raises(FmuError, match="contains 2 files, more than 1"):
        read_archive(path)
    monkeypatch.setattr(archives, "LARGEST_COUNT", 10)
    monkeypatch.setattr(archives, "LARGEST_SIZE", 1000)
    with pytest.raises(FmuError, match="would unpack to more"):
        read_archive(path)
    monkeypatch.setattr(archives, "LARGEST_SIZE", 1 << 30)
    monkeypatch.setenv("BIELLA_FMU_MAX_FILES", "1")
    with pytest.raises(FmuError, match=r"more than 1, and is rejected. .*set BIELLA_FMU_MAX_FILES"):
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
    with pytest.raises(FmuError, match=r"s.fmu` is damaged, or not an FMU"):
        Fmu(path)


def test_a_damaged_binary_is_noticed_when_it_is_unpacked(tmp_path):
    path = make_specimen(tmp_path / "s.fmu")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    d = Diagram("d", step=0.01)
    d.add(Fmu(path), name="f")
    with pytest.raises(FmuError, match=r"damaged, or not an FMU: Bad CRC-32"):
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
    with pytest.raises(
        FmuError,
        match=r"no modelDescription.xml at the top level. It "
        "contains readme.txt",
    ):
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
    with pytest.raises(FmuError, match=r"declares a document type or entities"):
        Fmu(path)


def test_a_description_that_cannot_be_read_is_explained(tmp_path):
    with pytest.raises(FmuError, match=r"fmiVersion='9.1' is not supported"):
        Fmu(make_specimen(tmp_path / "v.fmu", xml=description(version="9.1")))
    with pytest.raises(FmuError, match="cannot be read"):
        Fmu(make_specimen(tmp_path / "b.fmu", xml="<fmiModelDescription"))
    xml = description().replace('modelIdentifier="specimen"', "")
    with pytest.raises(FmuError, match="no modelIdentifier in CoSimulation"):
        Fmu(make_specimen(tmp_path / "i.fmu", xml=xml))


@pytest.mark.parametrize(
    ("member", "finding"),
    [
        ("binaries/{}/Specimen.so", "modelIdentifier of CoSimulation is 'specimen', but its bin"),
        ("binaries/{}/other.so", "modelIdentifier of CoSimulation is 'specimen', but its binary"),
        ("Binaries/{}/specimen.so", "`Binaries` in the archive must be written `binaries`"),
        ("binaries\\{}\\specimen.so", None),
    ],
)
@pytest.mark.parametrize("options", [{}, {"isolate": True}, {"backend": "fmpy"}])
def test_a_binary_of_another_name_is_used_with_a_warning(tmp_path, member, finding, options):
    good = make_specimen(tmp_path / "good.fmu")
    folder = archives.platform_folder()
    path = tmp_path / "s.fmu"
    with zipfile.ZipFile(good) as read, zipfile.ZipFile(path, "w") as write:
        library = read.read(f"binaries/{folder}/specimen.so")
        write.writestr("modelDescription.xml", read.read("modelDescription.xml"))
        write.writestr(member.format(folder), library)
    if finding:
        with pytest.warns(BiellaWarning, match=finding):
            block = Fmu(path, **options)
    else:
        block = Fmu(path, **options)
    d = Diagram("d", step=0.01)
    d.add(block, name="f")
    assert simulate(d, 0.1)["f.y"][0] == 1.0


def test_of_several_libraries_none_is_guessed(tmp_path):
    path = tmp_path / "s.fmu"
    folder = f"binaries/{archives.platform_folder()}"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("modelDescription.xml", description())
        for name in ("a", "b"):
            file.writestr(f"{folder}/{name}.so", "x")
    with pytest.raises(FmuError, match=rf"has no `{folder}/specimen.so`. It has .*a.so, .*b.so"):
        Fmu(path)


def test_a_missing_platform_lists_those_that_there_are(tmp_path):
    path = tmp_path / "s.fmu"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("modelDescription.xml", description())
        file.writestr("binaries/win32/specimen.dll", "x")
        file.writestr("binaries/vax/specimen.exe", "x")
        file.writestr("sources/specimen.c", "x")
    with pytest.raises(
        FmuError,
        match=r"no binary for this platform, \w+. It has those for vax, win32. "
        "It contains",
    ):
        Fmu(path)


def test_a_folder_may_be_released_while_another_one_is_unpacked(tmp_path, monkeypatch):
    """Garbage collection closes blocks at any moment, also in the thread that holds the lock."""
    first = Folder.acquire(read_archive(make_specimen(tmp_path / "a.fmu")))
    extract = archives._extract

    def extract_and_collect(*arguments):
        first.release()
        extract(*arguments)

    monkeypatch.setattr(archives, "_extract", extract_and_collect)
    second = Folder.acquire(read_archive(make_specimen(tmp_path / "b.fmu", extra={"x": b"x"})))
    assert not first.path.exists()
    assert second.path.is_dir()
    second.release()
    assert not second.path.exists()


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
from biella.fmu.importer._archive import Folder, read_archive
print(Folder.acquire(read_archive(sys.argv[1])).path, flush=True)
{end}
"""


def start_holder(path, end):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(end=end), str(path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_folders_go_at_the_end_of_the_interpreter_and_after_a_kill(tmp_path):
    path = make_specimen(tmp_path / "s.fmu")
    process, folder = start_holder(path, "raise SystemExit")
    process.wait(60)
    assert folder and not os.path.exists(folder)
    process.stdout.close()

    process, folder = start_holder(path, "time.sleep(100)")
    sweep()
    assert os.path.isdir(folder)  # it is in use
    process.send_signal(signal.SIGKILL)
    process.wait(60)
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


FULL = """
import sys
from biella.errors import FmuError
from biella.fmu.importer._archive import Folder, read_archive
try:
    Folder.acquire(read_archive(sys.argv[1]))
except FmuError as error:
    print(error)
"""


def test_a_full_temporary_folder_is_not_taken_for_a_damaged_file(tmp_path):
    """On a file system of 256 KiB, which takes no privileges where users may have namespaces."""
    path = make_specimen(tmp_path / "car.fmu", extra={"resources/map": bytes(1 << 20)})
    full = tmp_path / "full"
    full.mkdir()
    mount = 'mount -t tmpfs -o size=256k none "$1" && TMPDIR="$1" exec "$2" -c "$3" "$4"'
    command = ["unshare", "-rm", "sh", "-c", mount, "sh", full, sys.executable, FULL, path]
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-rm", "true"], timeout=300).returncode
    ):
        pytest.skip("needs namespaces of users")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"cannot unpack `car.fmu`: the temporary folder `.*/full` is full. It requires 1\.\d+ MB "
        r"there; [\d.]+ MB are free. Remove files there, or set the environment variable TMPDIR ",
        done.stdout,
    )


def test_a_temporary_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    monkeypatch.setattr(tempfile, "tempdir", str(gone))
    path = make_specimen(tmp_path / "car.fmu")
    with pytest.raises(
        FmuError, match=r"cannot unpack `car.fmu` to the temporary folder `.*gone`: No such file"
    ):
        Folder.acquire(read_archive(path))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('valueReference="1"', 'valueReference="4294967296"', "`y` has the value reference 429"),
        ('valueReference="1"', 'valueReference="-1"', "`y` has the value reference -1"),
    ],
)
def test_a_port_without_a_valid_reference_is_an_error_with_its_name(tmp_path, old, new, message):
    xml = description().replace(old, new)
    assert new in xml
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    with pytest.raises(FmuError, match=message):
        Fmu(path, validate=False)


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_damage_of_any_kind_is_an_error_that_names_the_file(tmp_path, compression):
    """Changed bytes, mostly in the directory at the end; what can still be read may be read."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as file:
        file.writestr("modelDescription.xml", description())
        file.writestr("resources/a", "hello" * 50)
    random_ = random.Random(1)
    for n in range(300):
        data = bytearray(packed.getvalue())
        for _ in range(random_.choice([1, 2, 8])):
            first = max(0, len(data) - 350) if n % 3 else 0
            data[random_.randrange(first, len(data))] = random_.randrange(256)
        path = tmp_path / f"{n}.fmu"
        path.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                Folder.acquire(read_archive(path)).release()
            except FmuError as error:
                assert f"{n}.fmu" in str(error)
