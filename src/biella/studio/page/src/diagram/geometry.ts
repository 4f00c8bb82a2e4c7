// Outlines and lines of a picture as SVG paths, as scheduler/drawing/_paint.py draws them.

import type { Box, Point, Rect, Wire, Words } from "../protocol";

const ARROW_LENGTH = 6;
const ARROW_HALF = 2.9;
const WIRE_CORNER = 4;
const TIP = 8;
/** Half the height of a capital, in parts of the size: from the middle of a text to its baseline. */
const MIDDLE = 0.36;

export const WIDTHS = { thin: 1.15, vector: 2.3, bus: 3.4 };

function at(a: number, b: number): string {
  return `${a.toFixed(2)},${b.toFixed(2)}`;
}

/** The outline of a box that is no circle. */
export function outline({ shape, body: [x, y, w, h] }: Box): string {
  if (shape === "triangle") return `M${at(x, y)}L${at(x + w, y + h / 2)}L${at(x, y + h)}Z`;
  if (shape === "inport" || shape === "outport") {
    return `M${at(x, y)}L${at(x + w - TIP, y)}L${at(x + w, y + h / 2)}L${at(x + w - TIP, y + h)}L${at(x, y + h)}Z`;
  }
  const r = Math.min(shape === "bar" ? 1.5 : shape === "source" ? h : 5, w / 2, h / 2);
  return (
    `M${at(x + r, y)}H${x + w - r}A${r},${r} 0 0 1 ${at(x + w, y + r)}V${y + h - r}` +
    `A${r},${r} 0 0 1 ${at(x + w - r, y + h)}H${x + r}A${r},${r} 0 0 1 ${at(x, y + h - r)}V${y + r}` +
    `A${r},${r} 0 0 1 ${at(x + r, y)}Z`
  );
}

export function strokes(box: Box): string {
  const [left, top] = box.rect;
  return box.strokes
    .map((stroke) => stroke.map(([u, v], k) => `${k ? "L" : "M"}${at(left + u, top + v)}`).join(""))
    .join("");
}

/** The line of a wire with round corners, except at branches; it ends inside of its arrow. */
export function wireLine(points: Point[], dots: ReadonlySet<string>): string {
  const line = [...points];
  const n = line.length;
  if (n < 2) return "";
  const [ax, ay] = line[n - 2]!;
  const [bx, by] = line[n - 1]!;
  const length = Math.max(Math.abs(bx - ax), Math.abs(by - ay)) || 1;
  const share = Math.max(0, 1 - (0.7 * ARROW_LENGTH) / length);
  line[n - 1] = [ax + share * (bx - ax), ay + share * (by - ay)];
  let path = `M${at(...line[0]!)}`;
  for (let k = 1; k < n - 1; k += 1) {
    const [before, here, after] = [line[k - 1]!, line[k]!, line[k + 1]!];
    const into = Math.max(Math.abs(here[0] - before[0]), Math.abs(here[1] - before[1]));
    const out = Math.max(Math.abs(after[0] - here[0]), Math.abs(after[1] - here[1]));
    const radius = dots.has(String(here)) ? 0 : Math.min(WIRE_CORNER, into / 2, out / 2);
    const first = toward(here, before, radius / (into || 1));
    const last = toward(here, after, radius / (out || 1));
    path += `L${at(...first)}Q${at(...here)} ${at(...last)}`;
  }
  return `${path}L${at(...line[n - 1]!)}`;
}

export function arrow(points: Point[]): string {
  const [[ax, ay], [x, y]] = [points[points.length - 2]!, points[points.length - 1]!];
  const length = Math.max(Math.abs(x - ax), Math.abs(y - ay)) || 1;
  const [dx, dy] = [(x - ax) / length, (y - ay) / length];
  const [bx, by] = [x - ARROW_LENGTH * dx, y - ARROW_LENGTH * dy];
  const side = (s: number) => at(bx + s * ARROW_HALF * dy, by - s * ARROW_HALF * dx);
  return `M${at(x, y)}L${side(1)}L${side(-1)}Z`;
}

export function wireWidth(wire: Wire): number {
  return wire.is_bus ? WIDTHS.bus : wire.width > 1 ? WIDTHS.vector : WIDTHS.thin;
}

/** Where the value of a wire has room: above the middle of its longest level stretch. */
export function labelPlace(points: Point[]): Point {
  let best: [number, Point] = [-1, points[0] ?? [0, 0]];
  for (let k = 1; k < points.length; k += 1) {
    const [a, b] = [points[k - 1]!, points[k]!];
    const length = Math.abs(b[0] - a[0]) - 3 * Math.abs(b[1] - a[1]);
    if (length > best[0]) best = [length, [(a[0] + b[0]) / 2, Math.min(a[1], b[1]) - 3.5]];
  }
  return best[1];
}

export function baseline(words: Words): number {
  return words.y + MIDDLE * words.size;
}

export const ANCHORS = { left: "start", center: "middle", right: "end" } as const;
export const DASHES = { solid: undefined, dashed: "4.2 1.9", dotted: "1.2 1.9" } as const;

/** `color` thinned with another one. */
export function mix(color: string, paper: string, share: number): string {
  return `color-mix(in srgb, ${color} ${Math.round(share * 100)}%, ${paper})`;
}

export function union(rects: Rect[]): Rect | null {
  if (rects.length === 0) return null;
  const left = Math.min(...rects.map((r) => r[0]));
  const top = Math.min(...rects.map((r) => r[1]));
  const right = Math.max(...rects.map((r) => r[0] + r[2]));
  const bottom = Math.max(...rects.map((r) => r[1] + r[3]));
  return [left, top, right - left, bottom - top];
}

function toward(a: Point, b: Point, share: number): Point {
  return [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])];
}
