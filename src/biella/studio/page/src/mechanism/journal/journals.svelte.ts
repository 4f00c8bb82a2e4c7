// Samples of the journals that are drawn: the newest of a run, or those before a time of a record.

import { type Journal, type Samples, toNumber, WINDOW } from "../../protocol";
import { BinBuffer } from "../../scope/buffer";
import { session } from "../../stores/session.svelte";
import type { Track } from "./drawing";

const FIRST = 2 ** 31; // scopes of the page, and of runs that are compared, have smaller numbers
const LONGEST = 1500; // samples of a trail
const RATE = 4000; // samples in a second at most

export class JournalModel {
  readonly scope: number;
  readonly journal: Journal;
  readonly #live = new BinBuffer(1 << 13);
  readonly #still = new BinBuffer(1 << 13);
  readonly #columns = new Map<string, number>();
  #asked: number | null = null;
  #asking = false;
  #isStill = false;
  /** Grows with each message. */
  revision = $state(0);

  constructor(journal: Journal, number: number) {
    this.journal = journal;
    this.scope = FIRST + number;
    let at = 0;
    for (const [what, path] of Object.entries(journal.signals)) {
      this.#columns.set(what, at);
      at += session.bySignal.get(path)?.width ?? 1;
    }
  }

  get rate(): number {
    return Math.min(1 / session.interval, RATE);
  }

  subscribe(): void {
    const history = session.whole ? session.whole.to - session.whole.from : LONGEST / this.rate;
    const signals = Object.values(this.journal.signals);
    session.send("subscribe", { scope: this.scope, signals, rate: this.rate, history });
  }

  unsubscribe(): void {
    if (session.isOpen) session.send("unsubscribe", { scope: this.scope });
  }

  take(samples: Samples): void {
    this.#isStill = (samples.flags & WINDOW) !== 0;
    const buffer = this.#isStill ? this.#still : this.#live;
    if (this.#isStill) buffer.clear(samples.columns);
    buffer.take(samples);
    this.revision += 1;
  }

  /** Show the trail before a time of a record; while an answer is under way, the newest time waits. */
  async show(time: number): Promise<void> {
    this.#asked = time;
    if (this.#asking) return;
    this.#asking = true;
    while (this.#asked !== null) {
      const t1: number = this.#asked;
      this.#asked = null;
      const t0 = t1 - LONGEST / this.rate;
      await session.send("window", { scope: this.scope, t0, t1, bins: 2 * LONGEST });
    }
    this.#asking = false;
  }

  get #buffer(): BinBuffer {
    return this.#isStill ? this.#still : this.#live;
  }

  /** The newest value of a signal; NaN if it is not recorded. */
  newest(what: string, element = 0): number {
    const column = this.#columns.get(what);
    const buffer = this.#buffer;
    if (column === undefined || !buffer.length) return NaN;
    return this.#middle(buffer, column + element, buffer.length - 1);
  }

  #middle(buffer: BinBuffer, column: number, k: number): number {
    return 0.5 * ((buffer.low(column)[k] ?? NaN) + (buffer.high(column)[k] ?? NaN));
  }

  /** The present clearance, which may have been set. */
  get clearance(): number {
    const parameter = session.byParameter.get(this.journal.parameter);
    const value = parameter ? session.valueOf(parameter) : this.journal.clearance;
    const number = Array.isArray(value) ? NaN : toNumber(value);
    return number > 0 ? number : this.journal.clearance;
  }

  /** The trail of each end, in parts of the clearance. */
  tracks(): Track[] {
    const buffer = this.#buffer;
    const first = this.#columns.get("offset") ?? 0;
    const touch = this.#columns.get("contact");
    const from = Math.max(0, buffer.length - LONGEST);
    const count = buffer.length - from;
    const clearance = this.clearance;
    return Array.from({ length: this.journal.ends }, (_, end) => {
      const read = (element: number) => {
        const [low, high] = [buffer.low(first + element), buffer.high(first + element)];
        return Float64Array.from({ length: count }, (_, k) => (0.5 * ((low[from + k] ?? NaN) + (high[from + k] ?? NaN))) / clearance);
      };
      const high = touch === undefined ? new Float64Array(0) : buffer.high(touch);
      const touches = Uint8Array.from({ length: count }, (_, k) => ((high[from + k] ?? 0) > 0 ? 1 : 0));
      return { x: read(2 * end), y: read(2 * end + 1), touches };
    });
  }
}

class Journals {
  models: JournalModel[] = [];

  /** Take samples that are those of a journal. */
  take(samples: Samples): boolean {
    this.models.find((model) => model.scope === samples.scope)?.take(samples);
    return samples.scope >= FIRST;
  }
}

export const journals = new Journals();
