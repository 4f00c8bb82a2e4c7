// uPlot as the frame of all scopes: axes, cursor, selection. The curves are painted by our own path
// builder, from minimum to maximum of each bin, so that no peak is lost.

import uPlot from "uplot";
import { formatShort } from "../format";

export interface Curve {
  key: string;
  /** Its name in a picture. */
  label: string;
  color: string;
  /** Dashes and gaps in CSS pixels; a solid line without. */
  dash?: readonly number[];
  /** Axis on which it is drawn: a unit, or a name of ours. */
  scale: string;
  x: Float64Array;
  low: Float64Array;
  high: Float64Array;
  /** Values hold until the next one. */
  steps: boolean;
}

export interface Scale {
  label: string;
  range: [number, number];
}

export interface Picture {
  curves: Curve[];
  scales: Map<string, Scale>;
  x: [number, number];
  xLabel: string;
  /** CSS pixels at the bottom that named bands take. */
  reserve: number;
  /** Painted last, over the curves. */
  overlay?(painter: Painter): void;
}

/** What is painted on: a canvas, or what writes a drawing. */
export type Drawing = Pick<
  CanvasRenderingContext2D,
  | "fillStyle" | "strokeStyle" | "lineWidth" | "lineJoin" | "globalAlpha" | "font" | "textAlign" | "textBaseline"
  | "fillRect" | "beginPath" | "moveTo" | "lineTo" | "arc" | "rect" | "clip" | "fill" | "stroke"
  | "setLineDash" | "fillText" | "measureText" | "save" | "restore"
>; // prettier-ignore

export interface Painter {
  ctx: Drawing;
  /** Device pixels of a CSS pixel. */
  ratio: number;
  left: number;
  top: number;
  width: number;
  height: number;
  ink: string;
  soft: string;
  paper: string;
  mark: string;
  xAt(x: number): number;
  yAt(y: number, scale: string): number;
}

export interface PlotColors {
  ink: string;
  soft: string;
  grid: string;
  paper: string;
  mark: string;
}

const LINE = 1.5;
const POINT = 2;
/** More curves than these are drawn thinner: they are told apart better, and painted in half the time. */
const MANY = 8;
/** Of a device pixel: browsers paint lines up to this width many times faster than wider ones. */
const THIN = 1;
const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/** A line of a width in device pixels, as thin ones side by side: a wide one takes ms for each curve. */
function thicken(path: Path2D, width: number): Path2D {
  const count = Math.ceil(width / THIN);
  if (count < 2) return path;
  const lines = new Path2D();
  for (let k = 0; k < count; k += 1) {
    lines.addPath(path, new DOMMatrix([1, 0, 0, 1, 0, (k / (count - 1) - 0.5) * (width - THIN)]));
  }
  return lines;
}

/** From values to places in a rectangle. */
export interface Maps {
  xAt(x: number): number;
  yAt(y: number, scale: string): number;
}

export interface Rectangle {
  left: number;
  top: number;
  width: number;
  height: number;
}

export function makeMaps(
  { left, top, width, height }: Rectangle, [from, to]: [number, number], heights: (scale: string) => [number, number],
): Maps {
  const perX = width / (to - from || 1);
  const lines = new Map<string, { low: number; per: number }>();
  const yAt = (y: number, key: string): number => {
    let line = lines.get(key);
    if (!line) {
      const [low, high] = heights(key);
      lines.set(key, (line = { low, per: height / (high - low || 1) }));
    }
    // Canvas coordinates far outside lose precision and time.
    return Math.min(Math.max(top + height - (y - line.low) * line.per, top - 1e4), top + 1e4 + height);
  };
  return { xAt: (x: number) => left + (x - from) * perX, yAt };
}

/** The range of a scale, with room for the bands below the curves; `height` in CSS pixels. */
export function makeRoom(picture: Picture, scale: string, height: number): [number, number] {
  const [low, high] = picture.scales.get(scale)?.range ?? [0, 1];
  const room = height - picture.reserve;
  if (picture.reserve <= 0 || room < 20) return [low, high];
  return [low - ((high - low) * picture.reserve) / room, high];
}

/** Follow a curve through all its bins. */
export function traceCurve(path: Pick<Path2D, "moveTo" | "lineTo">, curve: Curve, { xAt, yAt }: Maps): void {
  const { x, low, high, steps } = curve;
  let drawing = false;
  let lastY = 0;
  for (let k = 0; k < x.length; k += 1) {
    const a = low[k]!;
    const b = high[k]!;
    if (a !== a || b !== b) {
      drawing = false;
      continue;
    }
    const px = xAt(x[k]!);
    let first = yAt(a, curve.scale);
    let second = first;
    if (a !== b) {
      second = yAt(b, curve.scale);
      // Enter a bin at the end that is nearer to where the curve is.
      if (Math.abs(second - lastY) < Math.abs(first - lastY)) [first, second] = [second, first];
    }
    if (!drawing) path.moveTo(px, first);
    else {
      if (steps) path.lineTo(px, lastY);
      path.lineTo(px, first);
    }
    if (second !== first) path.lineTo(px, second);
    // A sample between none is a point.
    if (!drawing && !(low[k + 1]! <= high[k + 1]!)) path.lineTo(px + POINT, second);
    drawing = true;
    lastY = second;
  }
}

export class Plot {
  #plot: uPlot | null = null;
  #structure = "";
  #picture: Picture = { curves: [], scales: new Map(), x: [0, 1], xLabel: "", reserve: 0 };
  #colors: PlotColors = { ink: "#000", soft: "#666", grid: "#ddd", paper: "#fff", mark: "#e69f00" };
  #size = { width: 300, height: 150 };
  readonly #target: HTMLElement;
  readonly #onCursor: (x: number | null) => void;
  readonly #onSelect: (from: number, to: number) => void;
  readonly #onMake: (over: HTMLElement) => void;

  constructor(
    target: HTMLElement,
    handlers: {
      cursor(x: number | null): void;
      select(from: number, to: number): void;
      /** The plot was made anew: its drawing area takes the pointer. */
      made(over: HTMLElement): void;
    },
  ) {
    this.#target = target;
    this.#onCursor = handlers.cursor;
    this.#onSelect = handlers.select;
    this.#onMake = handlers.made;
  }

  /** Width of the drawing area in CSS pixels. */
  get picture(): Picture {
    return this.#picture;
  }

  get colors(): PlotColors {
    return this.#colors;
  }

  get size(): { width: number; height: number } {
    return this.#size;
  }

  get innerWidth(): number {
    return this.#plot?.over.clientWidth || this.#size.width;
  }

  xAt(pixel: number): number {
    return this.#plot?.posToVal(pixel, "x") ?? NaN;
  }

  pixelAt(x: number): number {
    return this.#plot?.valToPos(x, "x") ?? NaN;
  }

  yAt(pixel: number, scale: string): number {
    return this.#plot?.posToVal(pixel, scale) ?? NaN;
  }

  resize(width: number, height: number): void {
    if (width === this.#size.width && height === this.#size.height) return;
    this.#size = { width, height };
    this.#plot?.setSize(this.#size);
  }

  paint(colors: PlotColors): void {
    this.#colors = colors;
    this.#structure = ""; // colors are part of uPlot's options
  }

  show(picture: Picture): void {
    this.#picture = picture;
    const structure = JSON.stringify([
      picture.curves.map((curve) => [curve.key, curve.color, curve.scale, curve.dash]),
      [...picture.scales].map(([key, scale]) => [key, scale.label]),
      picture.xLabel,
    ]);
    if (structure !== this.#structure) {
      this.#structure = structure;
      this.#make();
    }
    this.#plot?.setData(this.#data(), true);
  }

  destroy(): void {
    this.#plot?.destroy();
    this.#plot = null;
  }

  // The path builder reads its own arrays; uPlot needs two points to find that there is something.
  #data(): uPlot.AlignedData {
    const [from, to] = this.#picture.x;
    return [[from, to], ...this.#picture.curves.map(() => [0, 0])] as uPlot.AlignedData;
  }

  #make(): void {
    this.#plot?.destroy();
    const { curves, scales, xLabel } = this.#picture;
    const c = this.#colors;
    const axis: Partial<uPlot.Axis> = {
      stroke: c.soft,
      font: FONT,
      labelFont: FONT,
      grid: { stroke: c.grid, width: 1 },
      ticks: { stroke: c.grid, width: 1, size: 4 },
      gap: 4,
    };
    const options: uPlot.Options = {
      ...this.#size,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      cursor: {
        drag: { x: true, y: false, setScale: false, dist: 6 },
        points: { show: false },
        y: false,
      },
      scales: { x: { time: false, range: () => this.#picture.x } },
      series: [{}],
      axes: [
        {
          ...axis,
          label: xLabel,
          labelSize: 16,
          labelGap: 0,
          size: 22,
          values: (_u, splits, _i, _space, increment) => splits.map((v) => this.#tick(v, increment)),
        },
      ],
      hooks: {
        draw: [(u) => this.#overlay(u)],
        setCursor: [(u) => this.#onCursor(u.cursor.left! >= 0 ? u.posToVal(u.cursor.left!, "x") : null)],
        setSelect: [
          (u) => {
            if (u.select.width < 4) return;
            const from = u.posToVal(u.select.left, "x");
            const to = u.posToVal(u.select.left + u.select.width, "x");
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            this.#onSelect(from, to);
          },
        ],
      },
    };
    let n = 0;
    for (const [key, scale] of scales) {
      options.scales![key] = { auto: true, range: () => this.#heights(key) };
      // Two axes at most: more would leave no room for curves.
      if (n < 2) {
        options.axes!.push({
          ...axis,
          scale: key,
          side: n === 0 ? 3 : 1,
          grid: n === 0 ? axis.grid : { show: false },
          label: scale.label || undefined,
          labelSize: scale.label ? 15 : 0,
          labelGap: 0,
          size: (_u, values) => 14 + 6.3 * Math.max(3, ...(values ?? []).map((v) => v.length)),
          values: (_u, splits, _i, _space, increment) =>
            splits.map((v) => (this.#isAboveBands(key, v) ? this.#tick(v, increment) : "")),
        });
      }
      n += 1;
    }
    curves.forEach((curve, index) => {
      options.series.push({
        scale: curve.scale,
        stroke: curve.color,
        width: THIN / devicePixelRatio,
        points: { show: false },
        dash: curve.dash ? [...curve.dash] : undefined,
        paths: (u) => this.#path(u, index),
      });
    });
    this.#plot = new uPlot(options, this.#data(), this.#target);
    this.#onMake(this.#plot.over);
  }

  #tick(value: number, increment: number): string {
    const size = Math.max(Math.abs(value), increment);
    // Far from zero, digits down to the increment are needed to tell ticks apart.
    const digits = Math.min(Math.max(Math.ceil(Math.log10(size / increment)) + 2, 3), 9);
    return formatShort(Math.abs(value) < increment * 1e-6 ? 0 : value, digits);
  }

  #heights(key: string): [number, number] {
    return makeRoom(this.#picture, key, this.#plot?.over.clientHeight || this.#size.height);
  }

  #isAboveBands(key: string, value: number): boolean {
    const range = this.#picture.scales.get(key)?.range;
    return this.#picture.reserve <= 0 || !range || value >= range[0] - 1e-12;
  }

  #path(u: uPlot, index: number): uPlot.Series.Paths | null {
    const curve = this.#picture.curves[index];
    if (!curve || curve.x.length === 0) return null;
    const path = new Path2D();
    traceCurve(path, curve, this.#maps(u));
    const line = this.#picture.curves.length > MANY ? 1 : LINE;
    return { stroke: thicken(path, line * devicePixelRatio), fill: null, clip: null, band: null, flags: 0 };
  }

  #maps(u: uPlot) {
    return makeMaps(u.bbox, this.#picture.x, (key) => this.#heights(key));
  }

  #overlay(u: uPlot): void {
    const { overlay } = this.#picture;
    if (!overlay) return;
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    const { ink, soft, paper, mark } = this.#colors;
    overlay({
      ctx: u.ctx, ratio: devicePixelRatio, left, top, width, height, ink, soft, paper, mark, ...this.#maps(u),
    }); // prettier-ignore
    u.ctx.restore();
  }
}
