/* Search without a server: pages from the file system may not start workers, so a hidden frame runs
   the script of one. The theme knows it by the name IFrameWorker. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.frame = frame;
      const inner = (this.inner = frame.contentWindow);
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inner.document.createElement("script");
          script.onload = done;
          script.onerror = failed;
          script.src = source;
          inner.document.body.appendChild(script);
        });
      inner.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      this.ready = load(new URL(url, location.href).href);
      this.ready.catch((error) => this.dispatchEvent(new ErrorEvent("error", { error })));
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
