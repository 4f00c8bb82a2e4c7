// Values of parameters as flat lists, and the ranges of their sliders.

import type { JsonValue } from "../protocol";

/** A slider's range where the user has set none: the limits, or zero and twice the first value. */
export function guessRange(value: number, min: number, max: number): { low: number; high: number } {
  if (Number.isFinite(min) && Number.isFinite(max)) return { low: min, high: max };
  const size = Math.abs(value) || 1;
  const scale = 10 ** Math.floor(Math.log10(size));
  const reach = (Math.ceil((2 * size) / scale - 1e-9) || 1) * scale;
  const low = value > 0 || min >= 0 ? 0 : -reach;
  const high = value < 0 && !(min >= 0) ? 0 : reach;
  const wide = value === 0 && !(min >= 0) ? { low: -1, high: 1 } : { low, high };
  return {
    low: Number.isFinite(min) ? Math.max(min, wide.low) : wide.low,
    high: Number.isFinite(max) ? Math.min(max, wide.high) : wide.high,
  };
}

/** An element of a value, which may be nested lists in row order. */
export function flatten(value: JsonValue): number[] {
  return Array.isArray(value) ? value.flatMap(flatten) : [Number(value)];
}

export function unflatten(values: number[], shape: number[]): JsonValue {
  const json = values.map((v): JsonValue => (Number.isFinite(v) ? v : v > 0 ? "Infinity" : "-Infinity"));
  if (shape.length === 0) return json[0] ?? 0;
  let nested = json;
  for (const size of shape.slice(1).reverse()) {
    nested = Array.from({ length: nested.length / size }, (_, k) => nested.slice(k * size, (k + 1) * size));
  }
  return nested;
}
