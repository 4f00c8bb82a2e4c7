// Booleans and enumerations as named bands: runs of equal values.

export interface Band {
  from: number;
  to: number;
  /** NaN where the value changes too fast to be shown. */
  value: number;
}

/** Join bins of equal value between two times; a bin that holds several values is a band of its own. */
export function findBands(
  times: Float64Array, low: Float64Array, high: Float64Array, begin: number, end: number,
): Band[] {
  const bands: Band[] = [];
  const last = times.length - 1;
  for (let k = 0; k <= last; k += 1) {
    const from = times[k] ?? NaN;
    const to = k < last ? (times[k + 1] ?? NaN) : from;
    if (to < begin || from > end) continue;
    const a = low[k] ?? NaN;
    const b = high[k] ?? NaN;
    if (Number.isNaN(a) && Number.isNaN(b)) continue;
    const value = a === b ? a : NaN;
    const before = bands[bands.length - 1];
    if (before && Object.is(before.value, value) && before.to >= from) before.to = to;
    else bands.push({ from, to, value });
  }
  return bands;
}
