"""`biella studio` as a process: what it starts, and what others can see of it."""

import json
import os
import select
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from .client import LIMIT, write_rig

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are listed in /proc"),
]

BROWSER = """#!{python}
import json, os, pathlib, sys, urllib.parse, urllib.request
page = pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(sys.argv[1]).path))
lines = [p.read_bytes() for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if os.access(p, 4)]
json.dump({{
    "page": str(page), "text": page.read_text(), "arguments": sys.argv,
    "modes": [page.stat().st_mode, page.parent.stat().st_mode],
    "lines": [line.decode(errors="replace") for line in lines],
}}, open({seen!r} + ".part", "w"))
os.rename({seen!r} + ".part", {seen!r})
os.write(os.open({done!r}, os.O_WRONLY), b"x")
"""


@pytest.fixture
def studio(tmp_path):
    """A studio, its address, and what the browser has seen that it has opened."""
    seen, done, script = tmp_path / "seen.json", tmp_path / "done", tmp_path / "browser"
    os.mkfifo(done)
    reading = os.open(done, os.O_RDONLY | os.O_NONBLOCK)
    script.write_text(BROWSER.format(python=sys.executable, seen=str(seen), done=str(done)))
    script.chmod(0o700)
    process = subprocess.Popen(
        [sys.executable, "-m", "biella", "studio", str(write_rig(tmp_path))],
        env={**os.environ, "BROWSER": f"{script} %s"}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("studio: ").strip()
        assert select.select([reading], [], [], LIMIT)[0], "no browser was opened"
        yield process, address, json.loads(seen.read_text())
    finally:
        process.kill()
        process.communicate(timeout=LIMIT)
        os.close(reading)


def test_the_token_is_on_no_command_line(studio):
    process, address, seen = studio
    token = address.partition("token=")[2]
    assert len(token) > 20 and len(seen["lines"]) > 2
    assert not [line for line in seen["lines"] if token in line]
    assert any(seen["page"] in line for line in seen["lines"]), "that of the browser"
    # The browser, which is this user's, gets there.
    assert seen["arguments"][1] == Path(seen["page"]).as_uri()
    assert f"location.replace({json.dumps(address)})" in seen["text"]
    assert [stat.S_IMODE(mode) for mode in seen["modes"]] == [0o600, 0o700]
    process.send_signal(signal.SIGINT)
    process.wait(LIMIT)
    assert not Path(seen["page"]).parent.exists()
