import "uplot/dist/uPlot.min.css";
import "./theme.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { Connection } from "./connection";
import { type Recorded, Recording } from "./recording";
import { session } from "./stores/session.svelte";

// A file of `biella page` has its run inside.
const recorded = document.getElementById("biella-run")?.textContent;
// The token comes after the #: browsers send that part to nobody.
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
const secure = location.protocol === "https:" ? "wss:" : "ws:";
session.connect((handlers) =>
  recorded
    ? new Recording(JSON.parse(recorded) as Recorded, handlers)
    : new Connection(`${secure}//${location.host}/live`, token, handlers),
);

const target = document.getElementById("app");
if (target) mount(App, { target });
