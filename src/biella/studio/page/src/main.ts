import "uplot/dist/uPlot.min.css";
import "./theme.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { session } from "./stores/session.svelte";

// The token comes after the #: browsers send that part to nobody.
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
const secure = location.protocol === "https:" ? "wss:" : "ws:";
session.connect(`${secure}//${location.host}/live`, token);

const target = document.getElementById("app");
if (target) mount(App, { target });
