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

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export const poses = new Poses();
