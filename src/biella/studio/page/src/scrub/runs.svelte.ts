// The other runs: those that branches have left, or further files; which are compared, and how their
// curves look.

import type { Run } from "../protocol";
import { session } from "../stores/session.svelte";
import { scrub } from "./scrub.svelte";

/** Dashes of the curves of compared runs, in CSS pixels; the present run has solid ones. */
export const DASHES: readonly (readonly number[])[] = [
  [7, 4], [2, 3], [9, 3, 2, 3], [14, 4], [5, 2, 1, 2, 1, 2], [3, 6], [12, 3, 3, 3, 3, 3],
]; // prettier-ignore

export interface Compared extends Run {
  dash: readonly number[];
}

class Comparison {
  /** Numbers of the runs that scopes show beside the present one. */
  chosen = $state.raw<number[]>([]);
  #seen = new Set<number>();

  readonly present = $derived(session.runs?.list.find((run) => run.number === session.runs?.present) ?? null);
  readonly others = $derived(session.runs?.list.filter((run) => run.number !== session.runs?.present) ?? []);
  /** Each keeps its dashes while others come and go. */
  readonly compared = $derived.by((): Compared[] =>
    this.others
      .filter((run) => this.chosen.includes(run.number))
      .map((run) => ({ ...run, dash: DASHES[this.chosen.indexOf(run.number) % DASHES.length]! })),
  );

  /** Values of the runs at a time, by number. */
  exact = $state.raw<{ time: number; values: Map<number, Float64Array> } | null>(null);
  #asking = false;
  #next: number | null = null;
  #asked: number | null = null;

  constructor() {
    session.onValues = (run, time, values) => {
      const known = this.exact?.time === time ? this.exact.values : [];
      this.exact = { time, values: new Map([...known, [run, values]]) };
    };
  }

  /** Ask for the values at a time; while an answer is under way, the newest time waits. */
  async ask(time: number): Promise<void> {
    if (time === this.#asked || !session.can("moment")) return;
    this.#next = this.#asked = time;
    if (this.#asking) return;
    this.#asking = true;
    while (this.#next !== null) {
      const t: number = this.#next;
      this.#next = null;
      for (const run of [session.runs?.present, ...this.compared.map((item) => item.number)]) {
        if (run !== undefined) await session.send("moment", { t, run });
      }
    }
    this.#asking = false;
  }

  /** The value of a signal's element in a run; undefined while it is not known. */
  valueOf(run: number, time: number, offset: number): number | undefined {
    return this.exact?.time === time ? this.exact.values.get(run)?.[offset] : undefined;
  }

  toggle(number: number): void {
    this.#asked = null;
    this.chosen = this.chosen.includes(number)
      ? this.chosen.filter((other) => other !== number)
      : [...this.chosen, number].slice(-DASHES.length);
  }

  /** Files that were named on the command line are compared from the start. */
  begin(): void {
    if (session.hello?.mode !== "result") return;
    const fresh = this.others.map((run) => run.number).filter((number) => !this.#seen.has(number));
    for (const number of fresh) this.#seen.add(number);
    if (fresh.length) this.chosen = [...this.chosen, ...fresh].slice(0, DASHES.length);
  }

  /** Continue from the moment that is shown; the run so far stays visible beside the branch. */
  async branch(): Promise<void> {
    const range = scrub.range;
    if (!range || !session.can("branch")) return;
    const from = session.runs?.present;
    const t = scrub.time ?? session.run.time;
    const answer = await session.send("branch", { t });
    if (!answer) return;
    if (from !== undefined && !this.chosen.includes(from)) this.toggle(from);
    scrub.leave();
  }

  async continue(number: number): Promise<void> {
    const from = session.runs?.present;
    const answer = await session.send("switch", { run: number });
    if (!answer) return;
    this.chosen = this.chosen.filter((other) => other !== number);
    if (from !== undefined && !this.chosen.includes(from)) this.toggle(from);
    scrub.leave();
  }
}

export const comparison = new Comparison();
