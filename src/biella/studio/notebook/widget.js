// Shows the page of the studio in a frame, and carries its messages between frame and kernel.
// The page is isolated: no cookies, no storage, no access to the notebook.

function isDark(element) {
  for (let at = element; at; at = at.parentElement) {
    const parts = getComputedStyle(at).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [];
    const [red = 0, green = 0, blue = 0, opacity = 1] = parts;
    if (parts.length >= 3 && opacity > 0.5) return 0.3 * red + 0.59 * green + 0.11 * blue < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function render({ model, el }) {
  const view = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("");
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.title = "biella studio";
  let port = null;

  const setHeight = () => {
    frame.style.cssText = `display:block;box-sizing:border-box;width:100%;height:${Number(model.get("height"))}px;border:1px solid rgba(128,128,128,.35);border-radius:6px`;
  };
  const receive = (content, buffers) => {
    if (content?.view !== view || !port) return;
    const copies = buffers.map((each) => {
      const bytes = ArrayBuffer.isView(each) ? each : new Uint8Array(each);
      return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    });
    port.postMessage({ number: content.number, texts: content.texts, buffers: copies }, copies);
  };
  // A frame that the notebook moves is loaded again.
  const connect = () => {
    port?.close();
    const channel = new MessageChannel();
    port = channel.port1;
    port.onmessage = ({ data }) => model.send({ ...data, view });
    frame.contentWindow.postMessage({ biella: "port", dark: isDark(el) }, "*", [channel.port2]);
  };

  setHeight();
  model.on("change:height", setHeight);
  model.on("msg:custom", receive);
  frame.addEventListener("load", connect);
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => {
    model.off("change:height", setHeight);
    model.off("msg:custom", receive);
    model.send({ do: "close", view });
    port?.close();
    frame.remove();
  };
}

export default { render };
