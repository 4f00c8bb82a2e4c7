// What is painted over the curves: bands of booleans and enumerations, events, cursors, the trigger.

import type { LocatedEvent } from "../protocol";
import { nameValue } from "../format";
import type { Band } from "./lanes";
import type { Painter } from "./plot";

export const LANE = 20;
const MOST_LINES = 30;

export interface Lane {
  label: string;
  color: string;
  kind: string;
  names: readonly string[];
  bands: Band[];
}

function font(painter: Painter, size: number): void {
  painter.ctx.font = `${size * painter.ratio}px system-ui, 'DejaVu Sans', sans-serif`;
}

export function paintLanes(painter: Painter, lanes: Lane[]): void {
  const { ctx, ratio, left, top, width, height } = painter;
  lanes.forEach((lane, n) => {
    const y = top + height - (lanes.length - n) * LANE * ratio + 2 * ratio;
    const tall = (LANE - 4) * ratio;
    for (const { from, to, value } of lane.bands) {
      const x0 = Math.max(painter.xAt(from), left);
      const x1 = Math.min(painter.xAt(to), left + width);
      const name = nameValue(value, lane.kind, lane.names) ?? "";
      const isLow = lane.kind === "boolean" && value === 0;
      // Names are too long for short bands: shades tell neighbors apart.
      const shade = lane.kind === "boolean" ? 0.3 : 0.14 + 0.13 * (Math.abs(value) % 4);
      ctx.globalAlpha = Number.isNaN(value) ? 0.6 : isLow ? 0.07 : shade;
      ctx.fillStyle = lane.color;
      ctx.fillRect(x0, y, Math.max(x1 - x0, ratio), tall);
      ctx.globalAlpha = 1;
      ctx.fillRect(x0, y, ratio, tall);
      if (isLow) ctx.fillRect(x0, y + tall - ratio, x1 - x0, ratio);
      else ctx.fillRect(x0, y, x1 - x0, ratio);
      font(painter, 10);
      if (ctx.measureText(name).width + 8 * ratio < x1 - x0) {
        ctx.fillStyle = painter.ink;
        ctx.textBaseline = "middle";
        ctx.fillText(name, x0 + 4 * ratio, y + tall / 2 + ratio / 2);
      }
    }
  });
}

export function paintEvents(painter: Painter, events: LocatedEvent[], from: number, to: number): void {
  const { ctx, ratio, top } = painter;
  ctx.fillStyle = painter.soft;
  // Marks closer than a pixel are one: a block that chatters has thousands.
  const taken = new Set<number>();
  for (const event of events) {
    if (event.time < from || event.time > to) continue;
    const x = painter.xAt(event.time);
    taken.add(Math.round(x / ratio));
  }
  // Lines across the plot would hide the curves if there were many.
  const hasLines = taken.size <= MOST_LINES;
  for (const place of taken) {
    const x = place * ratio;
    ctx.beginPath();
    ctx.moveTo(x - 4 * ratio, top);
    ctx.lineTo(x + 4 * ratio, top);
    ctx.lineTo(x, top + 7 * ratio);
    ctx.fill();
    if (!hasLines) continue;
    ctx.globalAlpha = 0.35;
    ctx.fillRect(x - ratio / 2, top, ratio, painter.height);
    ctx.globalAlpha = 1;
  }
}

export function paintCursors(painter: Painter, cursors: [number, number]): void {
  const { ctx, ratio, top, height } = painter;
  font(painter, 10);
  cursors.forEach((time, n) => {
    const x = painter.xAt(time);
    ctx.strokeStyle = painter.ink;
    ctx.lineWidth = ratio;
    ctx.setLineDash(n === 0 ? [] : [5 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.setLineDash([]);
    const size = 14 * ratio;
    ctx.fillStyle = painter.ink;
    ctx.fillRect(x - size / 2, top, size, size);
    ctx.fillStyle = painter.paper;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText("AB"[n]!, x, top + size / 2 + ratio / 2);
    ctx.textAlign = "left";
  });
}

/** The recorded moment that the whole page shows. */
export function paintMoment(painter: Painter, time: number): void {
  const { ctx, ratio, top, height } = painter;
  const x = painter.xAt(time);
  ctx.fillStyle = painter.mark;
  ctx.fillRect(x - ratio, top, 2 * ratio, height);
  ctx.beginPath();
  ctx.moveTo(x - 6 * ratio, top + height);
  ctx.lineTo(x + 6 * ratio, top + height);
  ctx.lineTo(x, top + height - 8 * ratio);
  ctx.fill();
}

export function paintTrigger(painter: Painter, level: number, scale: string, color: string, at: number): void {
  const { ctx, ratio, left, top, width, height } = painter;
  const y = painter.yAt(level, scale);
  ctx.strokeStyle = color;
  ctx.lineWidth = ratio;
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  ctx.beginPath();
  ctx.moveTo(left, y);
  ctx.lineTo(left + width, y);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fillStyle = color;
  for (const [x, dx] of [[left, 1], [left + width, -1]] as const) {
    ctx.beginPath();
    ctx.moveTo(x, y - 5 * ratio);
    ctx.lineTo(x + 8 * dx * ratio, y);
    ctx.lineTo(x, y + 5 * ratio);
    ctx.fill();
  }
  if (Number.isFinite(at)) {
    const x = painter.xAt(at);
    ctx.globalAlpha = 0.5;
    ctx.fillRect(x - ratio / 2, top, ratio, height);
    ctx.globalAlpha = 1;
  }
}

/** The newest place of an orbit. */
export function paintHead(painter: Painter, x: number, y: number, scale: string, color: string): void {
  const { ctx, ratio } = painter;
  ctx.fillStyle = color;
  ctx.beginPath();
  ctx.arc(painter.xAt(x), painter.yAt(y, scale), 4 * ratio, 0, 2 * Math.PI);
  ctx.fill();
}
