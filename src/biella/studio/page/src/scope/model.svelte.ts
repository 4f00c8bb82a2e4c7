// A scope: what it shows and how, its data, and its subscription.

import { SINGLE, WINDOW, type Samples, type Signal } from "../protocol";
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
const MOST_SAMPLES = 16384;

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

  readonly live = new BinBuffer();
  /** Bins of the times that stand still, as fine as the plot is wide. */
  readonly still = new BinBuffer();
  stillView: View | null = null;

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
    if (signals.length === 0) {
      session.send("unsubscribe", { scope: this.id });
      this.live.clear();
      this.revision += 1;
      return;
    }
    // A spectrum and the shape of an orbit need samples, a curve no more bins than it has pixels.
    const wanted = this.mode === "time" ? this.width / this.span : MOST_SAMPLES / this.span;
    const rate = Math.min(Math.max(wanted, 1), 1 / session.interval);
    session.send("subscribe", { scope: this.id, signals, rate, history: 1.5 * this.span });
    // What is held, or recorded as a whole, is asked for again with its new signals.
    if (this.view || session.whole) this.hold(this.view);
  }

  take(samples: Samples): void {
    if (samples.columns !== 1 + 2 * this.traces.length) return; // of an earlier subscription
    if (samples.flags & WINDOW) {
      this.still.clear(samples.columns);
      this.still.take(samples);
      this.still.isSingle = (samples.flags & SINGLE) !== 0;
      this.stillView = this.view;
    } else {
      this.live.take(samples);
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
      this.stillView = null;
      return;
    }
    // While the wheel turns, only the last view is worth asking for.
    this.#asking = window.setTimeout(() => {
      if (!session.can("window") || this.signals.length === 0) return;
      const bins = this.mode === "time" ? Math.round(this.width) : 4000;
      session.send("window", { scope: this.id, t0: view.from, t1: view.to, bins });
    }, 60);
  }
}
