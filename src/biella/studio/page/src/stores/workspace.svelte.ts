// What the user has arranged: scopes, pinned controls, sizes. Kept in the browser for each file.

import { ScopeModel, type ScopeSettings } from "../scope/model.svelte";
import { session } from "./session.svelte";
import { keep, recall } from "./storage";

export type Tab = "inspect" | "controls" | "messages" | "runs";
export type Pane = "diagram" | "scopes" | "mechanism" | "side";

interface Range {
  low: number;
  high: number;
}

interface Saved {
  scopes: ScopeSettings[];
  pins: string[];
  ranges: Record<string, Range>;
  columns: number;
  rows: number;
  showsValues: boolean;
}

/** What is selected: its block, or the signal of a wire. */
export type Selection = { kind: "block"; path: string } | { kind: "signal"; path: string } | null;

const MOST_SCOPES = 8;

class Workspace {
  scopes = $state<ScopeModel[]>([]);
  /** The scope that takes what is clicked. */
  active = $state(0);
  pins = $state<string[]>([]);
  /** Ranges of sliders that the user has set. */
  ranges = $state<Record<string, Range>>({});
  /** Shares of the page: diagram beside scopes, diagram above mechanism. */
  columns = $state(0.55);
  rows = $state(0.56);
  showsValues = $state(false);

  selection = $state.raw<Selection>(null);
  tab = $state<Tab>("inspect");
  /** The part that a narrow page shows. */
  pane = $state<Pane>("diagram");
  /** A path that the diagram should bring into view; a new object for each request. */
  target = $state.raw<{ path: string } | null>(null);

  #key = "";
  #nextId = 1;

  /** Bring back what was kept for this file, once its signals are known. */
  restore(): void {
    const key = `biella-studio:${session.hello?.file || session.hello?.name || ""}`;
    if (key !== this.#key) {
      this.#key = key;
      let saved: Partial<Saved> = {};
      try {
        saved = (JSON.parse(recall(key) ?? "{}") ?? {}) as Partial<Saved>;
      } catch {
        // Written by something else: begin anew.
      }
      this.scopes = (saved.scopes ?? []).map((settings) => new ScopeModel(this.#nextId++, settings));
      this.pins = saved.pins ?? [];
      this.ranges = saved.ranges ?? {};
      this.columns = saved.columns ?? 0.55;
      this.rows = saved.rows ?? 0.56;
      this.showsValues = saved.showsValues ?? false;
      this.active = 0;
      if (this.scopes.length === 0) this.#begin();
    }
    if (this.pins.length) this.tab = this.selection ? this.tab : "controls";
  }

  save(): void {
    // All is read before anything is decided: this runs again when what it has read changes.
    const saved: Saved = {
      scopes: this.scopes.map((scope) => scope.settings()),
      pins: this.pins,
      ranges: this.ranges,
      columns: this.columns,
      rows: this.rows,
      showsValues: this.showsValues,
    };
    const text = JSON.stringify(saved);
    if (this.#key) keep(this.#key, text);
  }

  addScope(): void {
    if (this.scopes.length >= MOST_SCOPES) return session.say(`There can be ${MOST_SCOPES} scopes.`, true);
    this.scopes.push(new ScopeModel(this.#nextId++));
    this.active = this.scopes.length - 1;
  }

  removeScope(scope: ScopeModel): void {
    scope.unsubscribe();
    this.scopes = this.scopes.filter((other) => other.id !== scope.id);
    if (this.scopes.length === 0) this.addScope();
    this.active = Math.min(this.active, this.scopes.length - 1);
  }

  /** Add a signal to the selected scope, or remove it where it is there already. */
  toggleSignal(path: string): void {
    const signal = session.findSignal(path);
    if (!signal) return session.say(`\`${path}\` is not recorded.`, true);
    const scope = this.scopes[this.active];
    if (!scope) return;
    if (scope.signals.includes(signal.path)) scope.remove(signal.path);
    else scope.add(signal.path);
  }

  /** Show a block or signal in the side panel. */
  select(selection: Selection, reveal = false): void {
    this.selection = selection;
    if (!selection) return;
    this.tab = "inspect";
    if (reveal) this.target = { path: selection.path };
  }

  togglePin(path: string): void {
    this.pins = this.pins.includes(path) ? this.pins.filter((pin) => pin !== path) : [...this.pins, path];
  }

  /** The first scopes of a file that nobody has arranged yet. */
  #begin(): void {
    // What the diagram gives out says most; else the signals of its wires.
    const wires = session.diagram?.picture.wires ?? [];
    const frames = new Set(session.diagram?.picture.frames.map((frame) => frame.path));
    const outputs = new Set(
      session.diagram?.picture.boxes
        .filter((box) => box.shape === "outport" && !frames.has(box.path.replace(/\.[^.]*$/, "")))
        .map((box) => box.path),
    );
    // Several wires may carry one signal.
    const find = (sources: string[]) =>
      [...new Set(sources.map((path) => session.findSignal(path)))].filter((signal) => signal !== null);
    const shown = find(wires.filter((wire) => outputs.has(wire.target)).map((wire) => wire.source));
    const wired = find(wires.map((wire) => wire.source));
    const own = session.signals.filter((signal) => !signal.added && !/^realtime\./.test(signal.path));
    const all = shown.length ? shown : wired.length ? wired : own.filter((signal) => signal.block || !session.diagram);
    const first = all.filter((signal) => signal.width <= 3);
    const groups = new Map<string, string[]>();
    for (const signal of first) {
      const unit = signal.unit ?? "";
      const group = groups.get(unit) ?? [];
      if (group.length < 3) group.push(signal.path);
      groups.set(unit, group);
    }
    for (const paths of [...groups.values()].slice(0, 3)) {
      this.scopes.push(new ScopeModel(this.#nextId++, { signals: paths }));
    }
    if (this.scopes.length === 0) this.addScope();
    this.active = 0;
  }
}

export const workspace = new Workspace();
