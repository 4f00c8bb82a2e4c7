"""Chromium, controlled through its DevTools protocol: neither driver nor Node is needed."""

import base64
import itertools
import json
import shutil
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--enable-unsafe-swiftshader",  # 3-D graphics without a graphics card
    "--remote-debugging-port=0",
]
PATIENCE = 30.0
_CODES = {"Enter": 13, "Escape": 27}

_PLACE = """selector => {
  const element = document.querySelector(selector);
  if (!element) return null;
  element.scrollIntoView({block: 'nearest'});
  const {x, y, width, height} = element.getBoundingClientRect();
  return width + height > 0 ? [x + width / 2, y + height / 2] : null;
}"""


def find_chromium():
    """Return the path of Chromium; None if there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


class PageError(Exception):
    """A script of a test failed in the page."""


class Chromium:
    """A browser with one page.

    Attributes
    ----------
    complaints
        Errors and warnings on the page's console, and exceptions that nothing caught.
    requests
        Addresses that the page has asked for.
    """

    def __init__(self, folder, width=1440, height=900):
        command = [find_chromium(), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        command.insert(1, f"--window-size={width},{height}")
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._numbers = itertools.count(1)
        self._answers = {}
        self._arrived = threading.Condition()
        self._session = None
        self._stack = ExitStack()
        self.complaints = []
        self.requests = []
        try:
            self._connect(Path(folder, "DevToolsActivePort"))
            self.resize(width, height)
        except BaseException:
            self._stack.close()
            self._process.kill()
            self._process.wait(20)
            raise

    def _connect(self, port_file):
        def read_port():
            """Return both lines; Chromium writes the file while it is there already."""
            lines = port_file.read_text().split("\n") if port_file.exists() else []
            return lines if len(lines) > 1 and lines[1] else None

        port = self._await(read_port)
        url = f"ws://127.0.0.1:{port[0]}{port[1]}"
        opened = connect(url, max_size=None, compression=None, proxy=None)
        self._socket = self._stack.enter_context(opened)
        threading.Thread(target=self._read, daemon=True).start()
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with suppress(ConnectionClosed, TimeoutError):
            self._session = None
            self._call("Browser.close")
        self._stack.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(20)

    def resize(self, width, height, mobile=False):
        """Set the size of the page in CSS pixels."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if mobile else 1,
            mobile=mobile,
        )

    def prefer(self, scheme):
        """Prefer ``"light"`` or ``"dark"`` pages."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def open(self, url):
        """Load a page."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=url)

    def do(self, script):
        """Return the value of an expression, or of the promise that it is."""
        found = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            thrown = found["exceptionDetails"].get("exception", {})
            raise PageError(f"{script}: {thrown.get('description')}")
        return found["result"].get("value")

    def wait(self, script, seconds=PATIENCE):
        """Return the value of an expression once it is true."""
        return self._await(lambda: self.do(script), seconds, script)

    def wait_for_page(self, script):
        """Return the value of an expression once it is true; a page that ends cannot answer."""

        def ask():
            try:
                return self.do(script)
            except PageError:
                return None

        return self._await(ask, PATIENCE, script)

    def text(self, selector):
        """Return the text of the first element that a selector finds; None if there is none."""
        return self.do(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")

    def place(self, selector):
        """Return the middle of an element, once it is there, in CSS pixels."""
        return self.wait(f"({_PLACE})({json.dumps(selector)})")

    def click(self, selector):
        """Click the middle of an element."""
        self.click_at(*self.place(selector))

    def click_at(self, x, y):
        """Click a point of the page."""
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def drag(self, start, end, steps=8):
        """Drag from one point of the page to another."""
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1)
        for k in range(1, steps + 1):
            at = [a + k / steps * (b - a) for a, b in zip(start, end, strict=True)]
            self.mouse("mouseMoved", *at, button="left", buttons=1)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)

    def mouse(self, kind, x, y, **more):
        """Send an event of the mouse."""
        self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, key, modifiers=0, text=None):
        """Press and release a key."""
        more = {"key": key, "modifiers": modifiers}
        if key in _CODES:
            more |= {"code": key, "windowsVirtualKeyCode": _CODES[key]}
        if text is not None or (len(key) == 1 and not modifiers):
            more["text"] = key if text is None else text
        self._call("Input.dispatchKeyEvent", type="keyDown", **more)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def type(self, text):
        """Type a text into the element with the focus."""
        self._call("Input.insertText", text=text)

    def picture(self, path):
        """Save a screenshot."""
        data = self._call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def _call(self, method, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        with self._arrived:
            if not self._arrived.wait_for(lambda: number in self._answers, PATIENCE):
                raise TimeoutError(f"Chromium did not answer {method}.")
            answer = self._answers.pop(number)
        if "error" in answer:
            raise PageError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _read(self):
        with suppress(ConnectionClosed):
            for text in self._socket:
                message = json.loads(text)
                if "id" in message:
                    with self._arrived:
                        self._answers[message["id"]] = message
                        self._arrived.notify_all()
                else:
                    self._hear(message.get("method"), message.get("params", {}))

    def _hear(self, method, about):
        if method == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            thrown = details.get("exception", {}).get("description")
            self.complaints.append(thrown or details["text"])
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
            self.complaints.append(" ".join(str(a.get("value")) for a in about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.complaints.append(about["entry"]["text"])
        elif method in ("Network.requestWillBeSent", "Network.webSocketCreated"):
            self.requests.append(about["url"] if "url" in about else about["request"]["url"])

    def _await(self, question, seconds=PATIENCE, what="Chromium"):
        end = time.monotonic() + seconds
        while True:
            answer = question()
            if answer:
                return answer
            if time.monotonic() > end:
                raise TimeoutError(f"{what} did not come true in {seconds:g} s.")
            time.sleep(0.05)
