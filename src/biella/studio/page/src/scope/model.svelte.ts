// A scope: what it shows and how, its data, and its subscription.

import { SINGLE, WINDOW, type Samples, type Signal } from "../protocol";
import { comparison } from "../scrub/runs.svelte";
import { session } from "../stores/session.svelte";
import { BinBuffer } from "./buffer";
import type { WindowName } from "./spectrum";
import type { Trigger } from "./trigger";

export type Mode = "time" | "xy" | "spectrum";

export interface ScopeSettings {
  signals?: string[];
  hidden?: string[];
  span?: number;
  mode?: Mode;
  trigger?: Trigger;
  window?: WindowName;
  decibels?: boolean;
}

/** A curve: one element of a signal. */
export interface Trace {
  key: string;
  /** What the legend calls it. */
  label: string;
  signal: Signal;
  /** Index among the columns of the scope. */
  column: number;
  /** Where its newest value is. */
  offset: number;
  discrete: boolean;
}

export interface View {
  from: number;
  to: number;
}

export const SPANS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300];
const NO_BINS = new BinBuffer(1);
const MOST_BINS = 16384;
/** The server sends 4000 bins at once. */
const FIRST_SAMPLES = 3990;
/** Scopes are numbered for the server by run and scope: more scopes than this there never are. */
const IDS = 4096;

/** The data of one run. */
class RunBins {
  readonly live = new BinBuffer();
  /** Bins of the times that stand still, as fine as the plot is wide. */
  readonly still = new BinBuffer();
  stillView: View | null = null;
}

export class ScopeModel {
  readonly id: number;
  signals = $state<string[]>([]);
  hidden = $state<string[]>([]);
  /** Seconds that a running scope shows. */
  span = $state(10);
  mode = $state<Mode>("time");
  trigger = $state<Trigger>({ mode: "off", source: "", level: 0, edge: "rising", before: 0.2 });
  window = $state<WindowName>("hann");
  decibels = $state(true);
  /** The times that stand still; null where the newest are followed. */
  view = $state.raw<View | null>(null);
  /** Ranges of y by unit that the user has set. */
  heights = $state.raw<Record<string, [number, number]>>({});
  /** Two times that are compared; null while cursors are off. */
  cursors = $state.raw<[number, number] | null>(null);
  /** Bins across the plot, as wide as it is. */
  width = $state(600);
  /** Grows when there is something new to draw. Not a rune: the draw loop asks for it. */
  revision = 0;

  readonly #own = new RunBins();
  readonly #others = new Map<number, RunBins>();

  /** Bins of the present run. */
  get live(): BinBuffer {
    return this.#own.live;
  }

  readonly traces = $derived.by(() => {
    const traces: Trace[] = [];
    for (const path of new Set(this.signals)) {
      const signal = session.findSignal(path);
      if (!signal) continue;
      for (let k = 0; k < signal.width; k += 1) {
        traces.push({
          key: signal.width > 1 ? `${path}[${k}]` : path,
          label: signal.width > 1 ? `${path}[${k}]` : path,
          signal,
          column: traces.length,
          offset: signal.element_offset + k,
          discrete: signal.kind === "boolean" || signal.kind === "enumeration",
        });
      }
    }
    return traces;
  });

  constructor(id: number, settings: ScopeSettings = {}) {
    this.id = id;
    this.signals = settings.signals ?? [];
    this.hidden = settings.hidden ?? [];
    this.span = settings.span ?? this.span;
    this.mode = settings.mode ?? this.mode;
    this.trigger = settings.trigger ?? this.trigger;
    this.window = settings.window ?? this.window;
    this.decibels = settings.decibels ?? this.decibels;
  }

  settings(): ScopeSettings {
    return {
      signals: [...this.signals],
      hidden: [...this.hidden],
      span: this.span,
      mode: this.mode,
      trigger: { ...this.trigger },
      window: this.window,
      decibels: this.decibels,
    };
  }

  /** The scope and the run that a number of the protocol stands for; run 0 is the present one. */
  static read(number: number): { id: number; run: number } {
    return { id: number % IDS, run: Math.floor(number / IDS) };
  }

  #number(run: number): number {
    return run * IDS + this.id;
  }

  /** The bins of what is shown: the fine ones of a view that stands still, once they are there. */
  bins(run = 0): BinBuffer {
    const bins = run ? this.#others.get(run) : this.#own;
    if (!bins) return NO_BINS;
    return this.view && bins.still.length > 1 && bins.stillView === this.view ? bins.still : bins.live;
  }

  /** Where x = 0 is in the diagram's time; not 0 while a trigger holds the curve. */
  origin = 0;

  /** The first and the last time that are shown; `x` is the range of the plot, if that is time. */
  times(x: [number, number] | null): [number, number] {
    if (x) return [x[0] + this.origin, x[1] + this.origin];
    if (this.view) return [this.view.from, this.view.to];
    const { newest } = this.live;
    return [newest - this.span, newest];
  }

  add(path: string): void {
    if (!this.signals.includes(path)) this.signals = [...this.signals, path];
  }

  remove(path: string): void {
    this.signals = this.signals.filter((other) => other !== path);
    this.hidden = this.hidden.filter((key) => key !== path && !key.startsWith(`${path}[`));
  }

  toggleHidden(key: string): void {
    this.hidden = this.hidden.includes(key)
      ? this.hidden.filter((other) => other !== key)
      : [...this.hidden, key];
    this.revision += 1;
  }

  /** Ask for the samples of this scope. Runs again when what it depends on changes. */
  subscribe(): void {
    const paths = this.traces.map((trace) => trace.signal.path);
    const signals = [...new Set(paths)];
    const runs = comparison.compared.map((run) => run.number);
    for (const run of this.#others.keys()) {
      if (runs.includes(run) && signals.length) continue;
      session.send("unsubscribe", { scope: this.#number(run) });
      this.#others.delete(run);
      this.revision += 1;
    }
    if (signals.length === 0) {
      session.send("unsubscribe", { scope: this.id });
      this.live.clear();
      this.revision += 1;
      return;
    }
    // The shape of an orbit needs more bins than there are pixels, a spectrum single samples.
    const most = 1 / session.interval;
    const wanted = { time: this.width / this.span, xy: MOST_BINS / this.span, spectrum: most }[this.mode];
    const rate = Math.min(Math.max(wanted, 1), most);
    const history = this.mode === "spectrum" ? Math.min(this.span, FIRST_SAMPLES / rate) : 1.5 * this.span;
    const common = { signals, rate, history };
    session.send("subscribe", { scope: this.id, ...common });
    for (const run of runs) {
      if (!this.#others.has(run)) this.#others.set(run, new RunBins());
      session.send("subscribe", { scope: this.#number(run), run, ...common });
    }
    // What is held, or recorded as a whole, is asked for again with its new signals.
    if (this.view || session.whole) this.hold(this.view);
  }

  unsubscribe(): void {
    for (const run of [0, ...this.#others.keys()]) session.send("unsubscribe", { scope: this.#number(run) });
  }

  take(samples: Samples, run = 0): void {
    const bins = run ? this.#others.get(run) : this.#own;
    if (!bins) return; // no longer compared
    if (samples.columns !== 1 + 2 * this.traces.length) return; // of an earlier subscription
    if (samples.flags & WINDOW) {
      bins.still.clear(samples.columns);
      bins.still.take(samples);
      bins.still.isSingle = (samples.flags & SINGLE) !== 0;
      bins.stillView = this.view;
    } else {
      bins.live.take(samples);
    }
    this.revision += 1;
  }

  #asking = 0;

  /** Stand still over some times; null follows the newest again, or shows all of a record. */
  hold(asked: View | null): void {
    const view = asked ?? session.whole;
    this.view = view;
    this.revision += 1;
    clearTimeout(this.#asking);
    if (!view) {
      this.heights = {};
      for (const bins of [this.#own, ...this.#others.values()]) bins.stillView = null;
      return;
    }
    // While the wheel turns, only the last view is worth asking for.
    this.#asking = window.setTimeout(() => {
      if (!session.can("window") || this.signals.length === 0) return;
      const bins = this.mode === "time" ? Math.round(this.width) : 4000;
      const isSpectrum = this.mode === "spectrum";
      const t0 = isSpectrum ? Math.max(view.from, view.to - FIRST_SAMPLES * session.interval) : view.from;
      for (const run of [0, ...this.#others.keys()]) {
        session.send("window", { scope: this.#number(run), t0, t1: view.to, bins });
      }
    }, 60);
  }
}
