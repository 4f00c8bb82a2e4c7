// Poses go straight to the scene that draws them: they come too often for state of the page.

import type { PoseFrame } from "../protocol";
import { session } from "./session.svelte";

type Listener = (frame: PoseFrame) => void;

class Poses {
  readonly #listeners = new Set<Listener>();

  constructor() {
    session.onPoses = (frame) => {
      for (const listener of this.#listeners) listener(frame);
    };
  }

  #asking = false;
  #next: number | null = null;

  /** Ask for the recorded poses at a time; while an answer is under way, the newest time waits. */
  async ask(time: number): Promise<void> {
    this.#next = time;
    if (this.#asking) return;
    this.#asking = true;
    while (this.#next !== null) {
      const t: number = this.#next;
      this.#next = null;
      for (const { path } of session.mechanisms) await session.send("poses", { mechanism: path, t });
    }
    this.#asking = false;
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export const poses = new Poses();
