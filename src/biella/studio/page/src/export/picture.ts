// The picture of a scope as it is seen, with axes and the names of its curves, on any drawing.

import { formatShort } from "../format";
import { type Drawing, makeMaps, makeRoom, type Picture, type PlotColors, traceCurve } from "../scope/plot";

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const SIZE = 11;
const LINE = 16;
const GAP = 5;

/** Round values between two numbers, about `count` of them. */
export function findTicks(low: number, high: number, count: number): { values: number[]; step: number } {
  const rough = (high - low) / Math.max(count, 1);
  if (!(rough > 0) || !Number.isFinite(rough)) return { values: [], step: 1 };
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((n) => n * power >= rough * (1 - 1e-9)) ?? 10);
  const values: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) values.push(k * step);
  return { values, step };
}

function label(value: number, step: number): string {
  const digits = Math.min(Math.max(Math.ceil(Math.log10(Math.max(Math.abs(value), step) / step)) + 1, 3), 9);
  return formatShort(Math.abs(value) < 1e-6 * step ? 0 : value, digits);
}

/** Paint a scope of this size in pixels of the drawing; `ratio` of them are a CSS pixel. */
export function paintPicture(
  ctx: Drawing, picture: Picture, colors: PlotColors, size: { width: number; height: number }, ratio = 1,
): void {
  const width = size.width * ratio;
  const height = size.height * ratio;
  const px = (n: number) => n * ratio;
  const setFont = (weight = "") => (ctx.font = `${weight}${SIZE * ratio}px ${FONT}`);
  ctx.fillStyle = colors.paper;
  ctx.fillRect(0, 0, width, height);
  setFont();
  ctx.textBaseline = "middle";

  const legend = placeLegend(ctx, picture, width, ratio);
  const scales = [...picture.scales].slice(0, 2);
  const top = px(8 + LINE * legend.lines);
  const bottom = px(34);
  const inner = height - top - bottom;
  const axes = scales.map(([key, { label: unit }]) => {
    const [low, high] = makeRoom(picture, key, inner / ratio);
    const { values, step } = findTicks(low, high, inner / px(34));
    const least = picture.scales.get(key)!.range[0];
    const shown = picture.reserve > 0 ? values.filter((v) => v >= least - 1e-12) : values;
    const texts = shown.map((value) => label(value, step));
    const room = Math.max(px(20), ...texts.map((text) => ctx.measureText(text).width)) + px(2 * GAP + 2);
    return { key, unit, shown, texts, room };
  });
  const left = axes[0]?.room ?? px(20);
  const right = axes[1]?.room ?? px(14);
  const box = { left, top, width: width - left - right, height: inner };
  const maps = makeMaps(box, picture.x, (key) => makeRoom(picture, key, inner / ratio));

  // Grid and axes.
  ctx.lineWidth = px(1);
  ctx.strokeStyle = colors.grid;
  const across = findTicks(...picture.x, box.width / px(80));
  ctx.beginPath();
  for (const value of across.values) {
    ctx.moveTo(maps.xAt(value), top);
    ctx.lineTo(maps.xAt(value), top + inner);
  }
  for (const value of axes[0]?.shown ?? []) {
    ctx.moveTo(left, maps.yAt(value, axes[0]!.key));
    ctx.lineTo(left + box.width, maps.yAt(value, axes[0]!.key));
  }
  ctx.stroke();
  ctx.fillStyle = colors.soft;
  axes.forEach(({ key, unit, shown, texts }, n) => {
    ctx.textAlign = n === 0 ? "right" : "left";
    const x = n === 0 ? left - px(GAP) : left + box.width + px(GAP);
    shown.forEach((value, k) => ctx.fillText(texts[k]!, x, maps.yAt(value, key)));
    if (unit) ctx.fillText(unit, x, top - px(8));
  });
  ctx.textAlign = "center";
  for (const value of across.values) ctx.fillText(label(value, across.step), maps.xAt(value), top + inner + px(10));
  ctx.fillText(picture.xLabel, left + box.width / 2, top + inner + px(25));

  // Curves, and what lies over them.
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, box.top, box.width, box.height);
  ctx.clip();
  ctx.lineJoin = "round";
  for (const curve of picture.curves) {
    ctx.lineWidth = px(1.5);
    ctx.strokeStyle = curve.color;
    ctx.setLineDash((curve.dash ?? []).map(px));
    ctx.beginPath();
    traceCurve(ctx, curve, maps);
    ctx.stroke();
  }
  ctx.setLineDash([]);
  ctx.textAlign = "left";
  picture.overlay?.({ ctx, ratio, ...box, ...colors, ...maps });
  ctx.restore();

  // Names.
  setFont();
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (const { curve, x, line } of legend.items) {
    const y = px(10 + LINE * line);
    ctx.strokeStyle = curve.color;
    ctx.lineWidth = px(2);
    ctx.setLineDash((curve.dash ?? []).map(px));
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(x + px(26), y);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillStyle = colors.ink;
    ctx.fillText(curve.label, x + px(31), y);
  }
}

function placeLegend(ctx: Drawing, picture: Picture, width: number, ratio: number) {
  const items: { curve: Picture["curves"][number]; x: number; line: number }[] = [];
  let x = 10 * ratio;
  let line = 0;
  // The present run, which is painted last, is named first.
  const named = [...picture.curves].sort((a, b) => Number(a.dash !== undefined) - Number(b.dash !== undefined));
  for (const curve of named) {
    const room = ctx.measureText(curve.label).width + 46 * ratio;
    if (items.length && x + room > width) [x, line] = [10 * ratio, line + 1];
    items.push({ curve, x, line });
    x += room;
  }
  // The units of the axes have a line of their own.
  return { items, lines: (items.length ? line + 1 : 0) + 1 };
}
