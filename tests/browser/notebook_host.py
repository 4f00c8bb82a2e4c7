"""A host of anywidgets in one page: loads the module of a widget and gives it a model.

The model's messages go through a WebSocket of the test, as those of a notebook go through its
server; the widget itself is the real one.
"""

import base64
import contextlib
import json
import threading

from websockets.sync.server import serve

HOST = """<!doctype html><meta charset="utf-8"><title>host</title>
<body style="margin:8px;background:%(paper)s"><div id="out"></div><script>
const socket = new WebSocket("ws://127.0.0.1:%(port)d");
const listeners = {};
const state = {};
const model = {
  get: (name) => state[name],
  send: (content) => socket.send(JSON.stringify(content)),
  on: (name, callback) => (listeners[name] ??= new Set()).add(callback),
  off: (name, callback) => listeners[name]?.delete(callback),
};
socket.onmessage = async ({ data }) => {
  const { state: given, module, content, buffers } = JSON.parse(data);
  if (given) {
    Object.assign(state, given);
    const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
    const widget = (await import(url)).default;
    const el = document.getElementById("out");
    window.show = async () => {
      window.leave = await widget.render({ model, el });
    };
    await window.show();
    return;
  }
  const unpack = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const views = buffers.map((text) => new DataView(unpack(text).buffer));
  for (const callback of listeners["msg:custom"] ?? []) callback(content, views);
};
</script>"""


@contextlib.contextmanager
def hosting(widget, folder, paper="#fff"):
    """Yield the address of a page that shows a widget."""
    sockets: list = []
    module, lock = widget._esm, threading.Lock()

    def post(content, buffers=None):
        packed = [base64.b64encode(bytes(each)).decode() for each in buffers or ()]
        with lock:
            for socket in sockets:
                socket.send(json.dumps({"content": content, "buffers": packed}))

    def talk(socket):
        state = {"page": widget.page, "height": widget.height}
        socket.send(json.dumps({"state": state, "module": module}))
        with lock:
            sockets.append(socket)
        try:
            for text in socket:
                widget._handle_custom_msg(json.loads(text), [])
        finally:
            with lock:
                sockets.remove(socket)

    widget._channel._post = post
    with serve(talk, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        port = server.socket.getsockname()[1]
        path = folder / "host.html"
        path.write_text(HOST % {"port": port, "paper": paper}, encoding="utf-8")
        yield path.as_uri()
        server.shutdown()
        thread.join(60)
