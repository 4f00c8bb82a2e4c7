"""The file that leads the browser to the studio."""

import threading
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from biella.studio._command import _open_browser

pytestmark = [pytest.mark.engine, pytest.mark.slow]


class Page(BaseHTTPRequestHandler):
    """An empty page."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def port():
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(60)


@pytest.mark.parametrize("token", ["abc-DEF_123", "</script><b>\"'&amp;"])
def test_it_leads_to_the_address_with_the_token(browser, monkeypatch, port, token):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    with _open_browser(f"http://127.0.0.1:{port}/#token={token}", True):
        browser.open(opened[0])
        browser.wait_for_page(f"location.host === '127.0.0.1:{port}'")
        assert browser.do("decodeURIComponent(location.hash)") == f"#token={token}"
