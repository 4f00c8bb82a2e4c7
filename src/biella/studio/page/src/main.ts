import "uplot/dist/uPlot.min.css";
import "./theme.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { Connection } from "./connection";
import { PortSocket } from "./port";
import { type Recorded, Recording } from "./recording";
import { session } from "./stores/session.svelte";
import { theme } from "./stores/theme.svelte";

// A file of `biella page` has its run inside.
const recorded = document.getElementById("biella-run")?.textContent;
// In a notebook, messages go through a port that notebook/widget.js gives to its frame.
const isWidget = document.getElementById("biella-port") !== null;
// The token comes after the #: browsers send that part to nobody.
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
const secure = location.protocol === "https:" ? "wss:" : "ws:";
if (isWidget) {
  addEventListener("message", ({ data, source, ports: [port] }: MessageEvent) => {
    if (source !== parent || !port || data?.biella !== "port") return;
    theme.follow(Boolean(data.dark));
    session.connect((handlers) => new Connection(() => new PortSocket(port), token, handlers));
  });
} else {
  const url = `${secure}//${location.host}/live`;
  session.connect((handlers) =>
    recorded
      ? new Recording(JSON.parse(recorded) as Recorded, handlers)
      : new Connection(() => new WebSocket(url), token, handlers),
  );
}

const target = document.getElementById("app");
if (target) mount(App, { target });
