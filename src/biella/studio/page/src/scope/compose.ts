// From the data of a scope to the picture of its plot.

import type { LocatedEvent } from "../protocol";
import { formatUnit } from "../format";
import { type BinBuffer, extremes, lowerBound } from "./buffer";
import { findBands } from "./lanes";
import type { ScopeModel, Trace } from "./model.svelte";
import { LANE, type Lane, paintCursors, paintEvents, paintHead, paintLanes, paintTrigger } from "./overlay";
import type { Curve, Picture, Scale } from "./plot";
import { computeSpectrum, toDecibels } from "./spectrum";
import { findTrigger } from "./trigger";

export interface Look {
  color(n: number): string;
  events: LocatedEvent[];
  interval: number;
}

export interface Composed extends Picture {
  /** Simulated time at x = 0; not 0 while a trigger holds the curve. */
  origin: number;
  /** Traces of the curves, in their order. */
  traces: Trace[];
}

const PALETTE = 8;

export function compose(model: ScopeModel, look: Look): Composed {
  if (model.mode === "xy") return composeOrbit(model, look);
  if (model.mode === "spectrum") return composeSpectrum(model, look);
  return composeTime(model, look);
}

function isShown(model: ScopeModel, trace: Trace): boolean {
  return !model.hidden.includes(trace.key);
}

/** The bins of what is shown: the fine ones of a view that stands still, once they are there. */
export function chooseBuffer(model: ScopeModel): BinBuffer {
  return model.view && model.still.length > 1 && model.stillView === model.view ? model.still : model.live;
}

/** The newest times of a scope; while it fills, from the first sample on. */
function followed(model: ScopeModel): [number, number] {
  const { newest, length, times } = model.live;
  if (!length) return [0, model.span];
  const first = times[0] ?? 0;
  return newest - first < model.span ? [first, first + model.span] : [newest - model.span, newest];
}

function composeTime(model: ScopeModel, look: Look): Composed {
  const buffer = chooseBuffer(model);
  let [from, to] = model.view ? [model.view.from, model.view.to] : followed(model);
  let origin = 0;
  const { trigger } = model;
  const source = model.traces.find((trace) => trace.signal.path === trigger.source) ?? model.traces[0];
  if (trigger.mode !== "off" && source && !model.view) {
    const latest = buffer.newest - (1 - trigger.before) * model.span;
    const earliest = trigger.mode === "auto" ? buffer.newest - 2 * model.span : -Infinity;
    const { level, edge } = trigger;
    const low = buffer.low(source.column);
    const at = findTrigger(buffer.times, low, buffer.high(source.column), level, edge, earliest, latest);
    if (at !== null) {
      origin = at;
      from = at - trigger.before * model.span;
      to = from + model.span;
    }
  }
  const times = buffer.times;
  const begin = Math.max(lowerBound(times, from) - 1, 0);
  const end = Math.min(lowerBound(times, to) + 1, times.length);
  const x = origin
    ? times.subarray(begin, end).map((t) => t - origin)
    : times.subarray(begin, end);
  const curves: Curve[] = [];
  const lanes: Lane[] = [];
  const traces: Trace[] = [];
  const ranges = new Map<string, [number, number] | null>();
  model.traces.forEach((trace, n) => {
    if (!isShown(model, trace)) return;
    const low = buffer.low(trace.column).subarray(begin, end);
    const high = buffer.high(trace.column).subarray(begin, end);
    if (trace.discrete) {
      const { kind, names } = trace.signal;
      const bands = findBands(x, low, high, from - origin, to - origin);
      lanes.push({ label: trace.label, color: look.color(n), kind, names, bands });
      return;
    }
    const scale = trace.signal.unit ?? "";
    ranges.set(scale, join(ranges.get(scale) ?? null, extremes(low, high, 0, low.length)));
    traces.push(trace);
    curves.push({
      key: trace.key, color: look.color(n), dashed: n % (2 * PALETTE) >= PALETTE, scale, x, low, high,
      steps: trace.signal.held && buffer.isSingle,
    }); // prettier-ignore
  });
  const scales = new Map<string, Scale>();
  for (const [unit, range] of ranges) {
    scales.set(unit, { label: formatUnit(unit), range: model.heights[unit] ?? widen(range) });
  }
  if (scales.size === 0) scales.set("", { label: "", range: [0, 1] });
  const triggered = source ? traces.indexOf(source) : -1;
  return {
    curves,
    traces,
    scales,
    origin,
    x: [from - origin, to - origin],
    xLabel: origin ? "t − t₀ in s" : "t in s",
    reserve: lanes.length ? lanes.length * LANE + 4 : 0,
    overlay(painter) {
      paintLanes(painter, lanes);
      const events = origin ? look.events.map((e) => ({ ...e, time: e.time - origin })) : look.events;
      paintEvents(painter, events, from - origin, to - origin);
      const curve = curves[triggered];
      if (trigger.mode !== "off" && curve) {
        paintTrigger(painter, trigger.level, curve.scale, curve.color, origin ? 0 : NaN);
      }
      if (model.cursors) paintCursors(painter, model.cursors);
    },
  };
}

function middles(low: Float64Array, high: Float64Array): Float64Array {
  return low.map((value, k) => (value + (high[k] ?? NaN)) / 2);
}

/** The first signal across, the others up. */
function composeOrbit(model: ScopeModel, look: Look): Composed {
  const buffer = chooseBuffer(model);
  const times = buffer.times;
  const [from, to] = model.view ? [model.view.from, model.view.to] : followed(model);
  const begin = lowerBound(times, from);
  const end = Math.min(lowerBound(times, to) + 1, times.length);
  const part = (trace: Trace) =>
    middles(buffer.low(trace.column), buffer.high(trace.column)).subarray(begin, end);
  const [across, ...ups] = model.traces;
  const curves: Curve[] = [];
  const traces: Trace[] = [];
  let xRange: [number, number] | null = null;
  let yRange: [number, number] | null = null;
  if (across) {
    const x = part(across);
    xRange = extremes(x, x, 0, x.length);
    ups.forEach((trace, n) => {
      if (!isShown(model, trace)) return;
      const y = part(trace);
      yRange = join(yRange, extremes(y, y, 0, y.length));
      traces.push(trace);
      curves.push({
        key: trace.key, color: look.color(n + 1), dashed: false, scale: "y", x, low: y, high: y, steps: false,
      }); // prettier-ignore
    });
  }
  const unit = ups.every((trace) => trace.signal.unit === ups[0]?.signal.unit) ? ups[0]?.signal.unit : null;
  return {
    curves,
    traces,
    origin: 0,
    x: widen(xRange),
    xLabel: across ? [across.label, formatUnit(across.signal.unit)].filter(Boolean).join(" in ") : "",
    scales: new Map([["y", { label: formatUnit(unit), range: widen(yRange) }]]),
    reserve: 0,
    overlay(painter) {
      for (const curve of curves) {
        const last = curve.x.length - 1;
        if (last >= 0) paintHead(painter, curve.x[last]!, curve.low[last]!, curve.scale, curve.color);
      }
    },
  };
}

function composeSpectrum(model: ScopeModel, look: Look): Composed {
  const buffer = chooseBuffer(model);
  const times = buffer.times;
  const [from, to] = model.view ? [model.view.from, model.view.to] : followed(model);
  const begin = lowerBound(times, from);
  const end = Math.min(lowerBound(times, to) + 1, times.length);
  const spacing = end - begin > 1 ? (times[end - 1]! - times[begin]!) / (end - begin - 1) : look.interval;
  const curves: Curve[] = [];
  const traces: Trace[] = [];
  let range: [number, number] | null = null;
  let last = 0.5 / spacing;
  model.traces.forEach((trace, n) => {
    if (!isShown(model, trace)) return;
    const samples = middles(buffer.low(trace.column), buffer.high(trace.column)).subarray(begin, end);
    const spectrum = computeSpectrum(samples, spacing, model.window);
    if (!spectrum) return;
    const y = model.decibels ? toDecibels(spectrum.amplitudes) : spectrum.amplitudes;
    last = spectrum.frequencies[spectrum.frequencies.length - 1] ?? last;
    range = join(range, extremes(y, y, 0, y.length));
    traces.push(trace);
    curves.push({
      key: trace.key, color: look.color(n), dashed: false, scale: "a", x: spectrum.frequencies, low: y, high: y,
      steps: false,
    }); // prettier-ignore
  });
  const units = new Set(traces.map((trace) => trace.signal.unit ?? ""));
  const unit = units.size === 1 ? formatUnit([...units][0]) : "";
  const found: [number, number] | null = range;
  // Rounding noise far below the peaks would take most of the height.
  const limited: [number, number] | null =
    found && model.decibels ? [Math.max(found[0], found[1] - 120), found[1]] : found;
  return {
    curves,
    traces,
    origin: 0,
    x: model.heights["f"] ?? [0, last],
    xLabel: "f in Hz",
    scales: new Map([
      ["a", { label: model.decibels ? (unit ? `dB re 1 ${unit}` : "dB") : unit, range: widen(limited) }],
    ]),
    reserve: 0,
  };
}

function join(a: [number, number] | null, b: [number, number] | null): [number, number] | null {
  if (!a || !b) return a ?? b;
  return [Math.min(a[0], b[0]), Math.max(a[1], b[1])];
}

/** A range with a margin, rounded outward so that axes do not tremble while curves grow. */
export function widen(range: [number, number] | null): [number, number] {
  if (!range) return [0, 1];
  let [low, high] = range;
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (high - low <= 1e-9 * size || high === low) {
    const half = size > 0 ? 0.1 * size : 1;
    [low, high] = [low - half, high + half];
  }
  const margin = 0.06 * (high - low);
  const grid = 10 ** Math.floor(Math.log10(high - low)) / 4;
  return [Math.floor((low - margin) / grid) * grid, Math.ceil((high + margin) / grid) * grid];
}

/** Value of a trace at a time: of the bin that holds it; NaN if there is none. */
export function valueAt(model: ScopeModel, trace: Trace, t: number): number {
  const buffer = chooseBuffer(model);
  const times = buffer.times;
  const index = lowerBound(times, t);
  const k = (times[index] ?? Infinity) === t ? index : index - 1;
  if (k < 0) return NaN;
  const low = buffer.low(trace.column);
  const high = buffer.high(trace.column);
  const at = (n: number) => ((low[n] ?? NaN) + (high[n] ?? NaN)) / 2;
  if (trace.signal.held || trace.discrete || k + 1 >= times.length) return at(k);
  const share = (t - times[k]!) / (times[k + 1]! - times[k]!);
  return at(k) + share * (at(k + 1) - at(k));
}
