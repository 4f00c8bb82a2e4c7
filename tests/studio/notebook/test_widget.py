"""The widget in Python, and in a kernel of Jupyter."""

import asyncio
import inspect
import json
import textwrap
import time

import pytest

pytest.importorskip("anywidget")

from biella import BiellaError
from biella.studio import _page_file, show
from biella.studio.notebook import _widget

from ..client import LIMIT
from .diagrams import make_loop
from .test_show import page  # noqa: F401

pytestmark = pytest.mark.engine


def test_the_widget_carries_page_and_messages(page):  # noqa: F811
    widget = show(make_loop(), height=300)
    try:
        assert repr(widget) == "StudioWidget('loop')" and widget.height == 300
        assert 'id="biella-port"' in widget.page and "export default" in widget._esm
        bundle = widget._repr_mimebundle_()
        assert bundle is not None and "application/vnd.jupyter.widget-view+json" in bundle[0]
        sent = []
        widget._channel._post = lambda content, buffers: sent.append(content)
        widget._handle_custom_msg({"view": "a", "do": "open"}, [])
        widget._handle_custom_msg({"view": "a", "text": '{"id": 1, "do": "hello"}'}, [])
        end = time.monotonic() + LIMIT
        while not sent:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert json.loads(sent[0]["texts"][0])["id"] == 1
    finally:
        widget.close()
    assert not widget._worker.is_alive() and not widget._channel._thread.is_alive()


def test_without_the_built_page_no_thread_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(_page_file, "FILES", tmp_path)
    monkeypatch.setattr(_widget, "has_page", lambda: False)
    with pytest.raises(BiellaError, match="was not built"):
        show(make_loop())


NOTEBOOK = """
    from biella import Diagram
    from biella.blocks import Gain, Integrator, Sine
    from biella.studio import show

    d = Diagram("in a kernel", step=1e-3)
    d.add(Integrator(), "x", u=d.add(Gain(2.0), "k", u=d.add(Sine(frequency=1.0), "ref")))
    studio = show(d, height=400)
    studio
"""


@pytest.mark.slow
def test_a_kernel_of_jupyter_runs_a_diagram():
    """The cells run in a real kernel; the test sends what the frontend would."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    if not _page_file.has_page():
        pytest.skip("the page of the studio is not built: there was no npm")
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(textwrap.dedent(NOTEBOOK)),
            nbformat.v4.new_code_cell("d"),
            nbformat.v4.new_code_cell("studio.session.run.tick > 50"),
            nbformat.v4.new_code_cell("studio.close(); studio.session.run.running"),
        ]
    )
    client = nbclient.NotebookClient(book, timeout=LIMIT, kernel_name="python3")
    with client.setup_kernel():
        client.execute_cell(book.cells[0], 0)
        (output,) = book.cells[0].outputs
        model = output["data"]["application/vnd.jupyter.widget-view+json"]["model_id"]
        kernel = client.kc
        heard: dict = {"buffers": 0}

        def send(**content):
            data = {"method": "custom", "content": {"view": "v", **content}}
            message = kernel.session.msg("comm_msg", {"comm_id": model, "data": data})
            kernel.shell_channel.send(message)

        def ask(number, do, **fields):
            send(text=json.dumps({"id": number, "do": do, **fields}))
            end = time.monotonic() + LIMIT
            while number not in heard:
                assert time.monotonic() < end
                listen()
            assert heard[number]["ok"], heard[number]

        def listen():
            message = _wait_for(kernel.get_iopub_msg(timeout=LIMIT))
            content = message["content"].get("data", {})
            if message["msg_type"] != "comm_msg" or content.get("method") != "custom":
                return
            batch = content["content"]
            send(ack=batch["number"])
            for text in batch["texts"]:
                said = {} if text is None else json.loads(text)
                heard[said.get("id")] = said
            heard["buffers"] += len(message["buffers"])

        send(do="open")
        ask(1, "hello", protocol=1)
        assert heard[1]["name"] == "in a kernel"
        ask(2, "subscribe", scope=1, signals=["x.y"], rate=100.0)
        ask(3, "run")
        end = time.monotonic() + LIMIT
        while heard["buffers"] < 5:
            assert time.monotonic() < end
            listen()
        for number, cell in enumerate(book.cells[1:], 1):
            client.execute_cell(cell, number)
    shown = book.cells[1].outputs[0]["data"]
    assert (
        "<svg" in shown["text/html"] and shown["text/plain"] == "Diagram('in a kernel', 3 blocks)"
    )
    assert book.cells[2].outputs[0]["data"]["text/plain"] == "True"
    assert book.cells[3].outputs[0]["data"]["text/plain"] == "False"


def _wait_for(found):
    """Return what a call of jupyter_client gives: a value, or a coroutine of one."""
    if not inspect.isawaitable(found):
        return found
    return asyncio.get_event_loop().run_until_complete(found)
