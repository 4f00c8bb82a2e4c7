// Bins of a scope: time, then minimum and maximum of each column, the newest kept.

import { HISTORY, type Samples, SINGLE } from "../protocol";

export class BinBuffer {
  /** Column 0 is the time. */
  #columns: Float64Array[] = [];
  #begin = 0;
  #end = 0;
  readonly #most: number;
  /** Whether each bin is one sample. */
  isSingle = true;

  constructor(most = 1 << 15) {
    this.#most = most;
  }

  get length(): number {
    return this.#end - this.#begin;
  }

  get signals(): number {
    return (this.#columns.length - 1) / 2;
  }

  get times(): Float64Array {
    return this.column(0);
  }

  low(n: number): Float64Array {
    return this.column(1 + 2 * n);
  }

  high(n: number): Float64Array {
    return this.column(2 + 2 * n);
  }

  get newest(): number {
    return this.length ? (this.times[this.length - 1] ?? NaN) : NaN;
  }

  column(n: number): Float64Array {
    return this.#columns[n]?.subarray(this.#begin, this.#end) ?? new Float64Array(0);
  }

  clear(columns = 0): void {
    this.#begin = this.#end = 0;
    this.isSingle = true;
    if (columns !== this.#columns.length) {
      this.#columns = Array.from({ length: columns }, () => new Float64Array(1024));
    }
  }

  /** Add the bins of a message. Bins that are there already have grown, and are replaced. */
  take({ columns, rows, flags, values }: Samples): void {
    if (flags & HISTORY || columns !== this.#columns.length) this.clear(columns);
    if (!(flags & SINGLE) && rows > 0) this.isSingle = false;
    if (rows === 0) return;
    const first = values[0] ?? NaN;
    const times = this.#columns[0];
    while (times && this.#end > this.#begin && (times[this.#end - 1] ?? 0) >= first) this.#end -= 1;
    this.#reserve(rows);
    for (let c = 0; c < columns; c += 1) {
      const column = this.#columns[c];
      if (!column) continue;
      for (let r = 0, at = c; r < rows; r += 1, at += columns) column[this.#end + r] = values[at] ?? NaN;
    }
    this.#end += rows;
    this.#begin = Math.max(this.#begin, this.#end - this.#most);
  }

  #reserve(rows: number): void {
    const capacity = this.#columns[0]?.length ?? 0;
    if (this.#end + rows <= capacity) return;
    const kept = Math.min(this.length, this.#most);
    const size = kept + rows > capacity / 2 ? Math.max(2 * capacity, 2 * (kept + rows)) : capacity;
    this.#columns = this.#columns.map((column) => {
      const target = size === capacity ? column : new Float64Array(size);
      target.set(column.subarray(this.#end - kept, this.#end));
      return target;
    });
    this.#begin = 0;
    this.#end = kept;
  }
}

/** The first index whose time is not below `t`. */
export function lowerBound(times: Float64Array, t: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Minimum and maximum over a range of bins; null where there is no number. */
export function extremes(
  low: Float64Array, high: Float64Array, from: number, to: number,
): [number, number] | null {
  let least = Infinity;
  let most = -Infinity;
  for (let k = from; k < to; k += 1) {
    const a = low[k] ?? NaN;
    const b = high[k] ?? NaN;
    if (a < least) least = a;
    if (b > most) most = b;
  }
  return Number.isFinite(least) && Number.isFinite(most) ? [least, most] : null;
}

/** Samples of a spectrum at most. */
const MOST_SAMPLES = 16384;

/**
 * The first of the newest bins before `end` that are one sample each, evenly spaced. A spectrum of
 * coarser bins would have lines that are not in the signal.
 */
export function beginSamples(bins: BinBuffer, from: number, end: number, interval: number): number {
  const { times, signals } = bins;
  const columns = Array.from({ length: signals }, (_, n) => [bins.low(n), bins.high(n)] as const);
  const isSample = (k: number) => columns.every(([low, high]) => !(low[k]! < high[k]!));
  let begin = end;
  while (begin > Math.max(from, end - MOST_SAMPLES) && isSample(begin - 1)) {
    if (begin < end && times[begin]! - times[begin - 1]! > 1.5 * interval) break;
    begin -= 1;
  }
  return begin;
}
