// Pan and zoom of a drawing: a scale and a shift, moved softly where that is asked for.

import type { Rect } from "../protocol";

const LEAST = 0.05;
const MOST = 12;
const SOFT_MS = 180;

export class Viewport {
  scale = $state(1);
  x = $state(0);
  y = $state(0);
  width = $state(0);
  height = $state(0);
  #moving = 0;

  /** Show a rectangle of the drawing, as large as it fits. */
  fit([left, top, width, height]: Rect, soft = true, largest = 2.2): void {
    if (!this.width || !this.height || !width || !height) return;
    const margin = 14;
    const scale = Math.min(
      (this.width - 2 * margin) / width, (this.height - 2 * margin) / height, largest,
    ); // prettier-ignore
    const x = this.width / 2 - scale * (left + width / 2);
    const y = this.height / 2 - scale * (top + height / 2);
    this.#move(scale, x, y, soft);
  }

  /** Zoom with the point of the page at (px, py) held still. */
  zoom(factor: number, px = this.width / 2, py = this.height / 2): void {
    cancelAnimationFrame(this.#moving);
    const scale = Math.min(Math.max(this.scale * factor, LEAST), MOST);
    this.x = px - ((px - this.x) * scale) / this.scale;
    this.y = py - ((py - this.y) * scale) / this.scale;
    this.scale = scale;
  }

  pan(dx: number, dy: number): void {
    cancelAnimationFrame(this.#moving);
    this.x += dx;
    this.y += dy;
  }

  #move(scale: number, x: number, y: number, soft: boolean): void {
    cancelAnimationFrame(this.#moving);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const from = { scale: this.scale, x: this.x, y: this.y };
    const begin = performance.now();
    const step = (now: number) => {
      const share = soft && !still ? Math.min((now - begin) / SOFT_MS, 1) : 1;
      const eased = share * (2 - share);
      this.scale = from.scale + eased * (scale - from.scale);
      this.x = from.x + eased * (x - from.x);
      this.y = from.y + eased * (y - from.y);
      if (share < 1) this.#moving = requestAnimationFrame(step);
    };
    step(begin);
  }
}
