// From the data of a scope to the picture of its plot.

import type { LocatedEvent } from "../protocol";
import { formatUnit } from "../format";
import type { Compared } from "../scrub/runs.svelte";
import { beginSamples, extremes, lowerBound } from "./buffer";
import { findBands } from "./lanes";
import type { ScopeModel, Trace } from "./model.svelte";
import { LANE, type Lane, paintCursors, paintEvents, paintHead, paintLanes, paintMoment, paintTrigger } from "./overlay";
import type { Curve, Picture, Scale } from "./plot";
import { computeSpectrum, toDecibels } from "./spectrum";
import { findTrigger } from "./trigger";

export interface Look {
  color(n: number): string;
  events: LocatedEvent[];
  interval: number;
  /** Runs that are compared with the present one. */
  runs: readonly Compared[];
  /** The recorded moment that the page shows; null: the newest. */
  moment: number | null;
}

export interface Composed extends Picture {
  /** Simulated time at x = 0; not 0 while a trigger holds the curve. */
  origin: number;
}

const PALETTE = 8;
const SECOND_ROUND = [6, 3];

interface Source {
  /** 0: the present one. */
  run: number;
  name: string;
  dash?: readonly number[];
}

/** The runs of a picture. The present one comes last: its curves lie on top. */
function listSources(look: Look): Source[] {
  const others = look.runs.map(({ number, name, dash }) => ({ run: number, name, dash }));
  return [...others, { run: 0, name: "" }];
}

function keyOf(trace: Trace, source: Source): string {
  return source.run ? `${trace.key} @${source.run}` : trace.key;
}

function labelOf(trace: Trace, source: Source): string {
  return source.run ? `${trace.label} · ${source.name}` : trace.label;
}

/** Dashes tell runs apart, and within the present run curves of the same color. */
function dashOf(n: number, source: Source): readonly number[] | undefined {
  return source.dash ?? (n % (2 * PALETTE) >= PALETTE ? SECOND_ROUND : undefined);
}

export function compose(model: ScopeModel, look: Look): Composed {
  if (model.mode === "xy") return composeOrbit(model, look);
  if (model.mode === "spectrum") return composeSpectrum(model, look);
  return composeTime(model, look);
}

function isShown(model: ScopeModel, trace: Trace): boolean {
  return !model.hidden.includes(trace.key);
}

/** The newest times of a scope; while it fills, from the first sample on. */
function followed(model: ScopeModel): [number, number] {
  const { newest, length, times } = model.live;
  if (!length) return [0, model.span];
  const first = times[0] ?? 0;
  return newest - first < model.span ? [first, first + model.span] : [newest - model.span, newest];
}

function composeTime(model: ScopeModel, look: Look): Composed {
  const buffer = model.bins();
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
  const curves: Curve[] = [];
  const lanes: Lane[] = [];
  const ranges = new Map<string, [number, number] | null>();
  for (const own of listSources(look)) {
    const bins = model.bins(own.run);
    const { times } = bins;
    const begin = Math.max(lowerBound(times, from) - 1, 0);
    const end = Math.min(lowerBound(times, to) + 1, times.length);
    const x = origin
      ? times.subarray(begin, end).map((t) => t - origin)
      : times.subarray(begin, end);
    model.traces.forEach((trace, n) => {
      if (!isShown(model, trace)) return;
      const low = bins.low(trace.column).subarray(begin, end);
      const high = bins.high(trace.column).subarray(begin, end);
      const label = labelOf(trace, own);
      if (trace.discrete) {
        const { kind, names } = trace.signal;
        const bands = findBands(x, low, high, from - origin, to - origin);
        lanes.push({ label, color: look.color(n), kind, names, bands });
        return;
      }
      const scale = trace.signal.unit ?? "";
      ranges.set(scale, join(ranges.get(scale) ?? null, extremes(low, high, 0, low.length)));
      curves.push({
        key: keyOf(trace, own), label, color: look.color(n), dash: dashOf(n, own), scale, x, low, high,
        steps: trace.signal.held && bins.isSingle,
      }); // prettier-ignore
    });
  }
  const scales = new Map<string, Scale>();
  for (const [unit, range] of ranges) {
    scales.set(unit, { label: formatUnit(unit), range: model.heights[unit] ?? widen(range) });
  }
  if (scales.size === 0) scales.set("", { label: "", range: [0, 1] });
  return {
    curves,
    scales,
    origin,
    x: [from - origin, to - origin],
    xLabel: origin ? "t − t₀ in s" : "t in s",
    reserve: lanes.length ? lanes.length * LANE + 4 : 0,
    overlay(painter) {
      paintLanes(painter, lanes);
      const events = origin ? look.events.map((e) => ({ ...e, time: e.time - origin })) : look.events;
      paintEvents(painter, events, from - origin, to - origin);
      const curve = curves.find(({ key }) => key === source?.key);
      if (trigger.mode !== "off" && curve) {
        paintTrigger(painter, trigger.level, curve.scale, curve.color, origin ? 0 : NaN);
      }
      if (look.moment !== null) paintMoment(painter, look.moment - origin);
      if (model.cursors) paintCursors(painter, model.cursors);
    },
  };
}

function middles(low: Float64Array, high: Float64Array): Float64Array {
  return low.map((value, k) => (value + (high[k] ?? NaN)) / 2);
}

/** The first signal across, the others up. */
function composeOrbit(model: ScopeModel, look: Look): Composed {
  const [from, to] = model.view ? [model.view.from, model.view.to] : followed(model);
  const [across, ...ups] = model.traces;
  const curves: Curve[] = [];
  let xRange: [number, number] | null = null;
  let yRange: [number, number] | null = null;
  for (const own of across ? listSources(look) : []) {
    const bins = model.bins(own.run);
    const begin = lowerBound(bins.times, from);
    const end = Math.min(lowerBound(bins.times, to) + 1, bins.times.length);
    const part = (trace: Trace) =>
      middles(bins.low(trace.column), bins.high(trace.column)).subarray(begin, end);
    const x = part(across!);
    xRange = join(xRange, extremes(x, x, 0, x.length));
    ups.forEach((trace, n) => {
      if (!isShown(model, trace)) return;
      const y = part(trace);
      yRange = join(yRange, extremes(y, y, 0, y.length));
      curves.push({
        key: keyOf(trace, own), label: labelOf(trace, own), color: look.color(n + 1), dash: own.dash,
        scale: "y", x, low: y, high: y, steps: false,
      }); // prettier-ignore
    });
  }
  const unit = ups.every((trace) => trace.signal.unit === ups[0]?.signal.unit) ? ups[0]?.signal.unit : null;
  return {
    curves,
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
  const [from, to] = model.view ? [model.view.from, model.view.to] : followed(model);
  const curves: Curve[] = [];
  const units = new Set<string>();
  let range: [number, number] | null = null;
  let last = 0.5 / look.interval;
  let count = 0;
  for (const own of listSources(look)) {
    const bins = model.bins(own.run);
    const { times } = bins;
    const end = Math.min(lowerBound(times, to) + 1, times.length);
    const begin = beginSamples(bins, lowerBound(times, from), end, look.interval);
    if (own.run === 0) count = Math.max(end - begin, 0);
    if (end - begin < 2) continue;
    const spacing = (times[end - 1]! - times[begin]!) / (end - begin - 1);
    model.traces.forEach((trace, n) => {
      if (!isShown(model, trace)) return;
      const samples = bins.low(trace.column).subarray(begin, end);
      const spectrum = computeSpectrum(samples, spacing, model.window);
      if (!spectrum) return;
      const y = model.decibels ? toDecibels(spectrum.amplitudes) : spectrum.amplitudes;
      if (own.run === 0) last = spectrum.frequencies[spectrum.frequencies.length - 1] ?? last;
      range = join(range, extremes(y, y, 0, y.length));
      units.add(trace.signal.unit ?? "");
      curves.push({
        key: keyOf(trace, own), label: labelOf(trace, own), color: look.color(n), dash: own.dash, scale: "a",
        x: spectrum.frequencies, low: y, high: y, steps: false,
      }); // prettier-ignore
    });
  }
  const unit = units.size === 1 ? formatUnit([...units][0]) : "";
  const found: [number, number] | null = range;
  // Rounding noise far below the peaks would take most of the height.
  const limited: [number, number] | null =
    found && model.decibels ? [Math.max(found[0], found[1] - 120), found[1]] : found;
  return {
    curves,
    origin: 0,
    x: model.heights["f"] ?? [0, last],
    xLabel: count < 8 ? "f in Hz: too few samples in a row" : `f in Hz, of ${2 ** Math.floor(Math.log2(count))} samples`,
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

/** Value of a trace at a time: of the bin that holds it, or between two of them; NaN if there is none. */
export function valueAt(model: ScopeModel, trace: Trace, t: number, run = 0): number {
  const buffer = model.bins(run);
  const times = buffer.times;
  const index = lowerBound(times, t);
  const k = (times[index] ?? Infinity) === t ? index : index - 1;
  if (k < 0) return NaN;
  const low = buffer.low(trace.column);
  const high = buffer.high(trace.column);
  const at = (n: number) => ((low[n] ?? NaN) + (high[n] ?? NaN)) / 2;
  // There is no value after the newest.
  if (k + 1 >= times.length) return t > times[k]! + 1.5 * spacingOf(times) ? NaN : at(k);
  if (trace.signal.held || trace.discrete) return at(k);
  const share = (t - times[k]!) / (times[k + 1]! - times[k]!);
  return at(k) + share * (at(k + 1) - at(k));
}

function spacingOf(times: Float64Array): number {
  const last = times.length - 1;
  return last > 0 ? times[last]! - times[last - 1]! : 0;
}
