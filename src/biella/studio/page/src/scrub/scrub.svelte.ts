// The moment that all parts of the page show in place of the newest values.

import { session } from "../stores/session.svelte";

/** Seconds that can be gone back. */
export const WINDOW = 60;

class Scrub {
  /** null: the newest. */
  time = $state<number | null>(null);
  #asking = false;
  #next: number | null = null;

  /** The times that can be shown; null before there are any. */
  readonly range = $derived.by((): [number, number] | null => {
    if (!session.can("moment") || !(session.run.time > 0)) return null;
    const { begin = 0, time } = session.run;
    // A row is there once its tick is complete.
    const end = session.hello?.mode === "result" ? time : time - session.interval;
    const first = session.hello?.mode === "result" ? begin : Math.max(begin, end - WINDOW);
    return end > first ? [first, end] : null;
  });

  /** Show a moment. */
  to(time: number): void {
    const range = this.range;
    if (!range) return;
    this.time = Math.min(Math.max(time, range[0]), range[1]);
    session.showsMoment = true;
    this.#ask(this.time);
  }

  /** Go on by some rows. */
  step(rows: number): void {
    const from = this.time ?? this.range?.[1];
    if (from !== undefined) this.to(from + rows * session.interval);
  }

  /** Show the newest again. */
  leave(): void {
    if (this.time === null) return;
    this.time = null;
    // A run that stands still sends no new poses.
    if (this.range) this.#ask(this.range[1]);
    session.showsMoment = false;
  }

  /** While an answer is under way, the newest time waits. */
  async #ask(time: number): Promise<void> {
    this.#next = time;
    if (this.#asking) return;
    this.#asking = true;
    while (this.#next !== null) {
      const t: number = this.#next;
      this.#next = null;
      await session.send("moment", { t });
    }
    this.#asking = false;
  }
}

export const scrub = new Scrub();
