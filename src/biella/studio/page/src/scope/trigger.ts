// The trigger: where a signal crosses a level, so that a repeating curve stands still.

export type Edge = "rising" | "falling";
export type TriggerMode = "off" | "auto" | "normal";

export interface Trigger {
  mode: TriggerMode;
  /** Path of the signal; "" is the first one of the scope. */
  source: string;
  level: number;
  edge: Edge;
  /** Share of the width that lies before the crossing. */
  before: number;
}

/**
 * Time of the newest crossing not after `latest`; null if there is none from `earliest` on.
 *
 * Bins are ranges: a rising crossing lies where one stays below the level and the next one reaches
 * it. Between bins of one sample the time is interpolated.
 */
export function findTrigger(
  times: Float64Array, low: Float64Array, high: Float64Array, level: number, edge: Edge,
  earliest: number, latest: number,
): number | null {
  const sign = edge === "rising" ? 1 : -1;
  // Falling edges are rising edges of the mirrored signal.
  const top = (k: number) => sign * ((sign > 0 ? high[k] : low[k]) ?? NaN);
  const aim = sign * level;
  for (let k = times.length - 1; k > 0; k -= 1) {
    const t = times[k] ?? NaN;
    const before = times[k - 1] ?? NaN;
    if (before < earliest) return null;
    if (!(top(k - 1) < aim && top(k) >= aim)) continue;
    const single = low[k] === high[k] && low[k - 1] === high[k - 1];
    const rise = top(k) - top(k - 1);
    const at = single && rise > 0 ? before + ((t - before) * (aim - top(k - 1))) / rise : t;
    if (at <= latest) return at;
  }
  return null;
}

/** A level in the middle of what the signal does, for the first click. */
export function suggestLevel(low: Float64Array, high: Float64Array): number {
  let least = Infinity;
  let most = -Infinity;
  for (const value of low) if (value < least) least = value;
  for (const value of high) if (value > most) most = value;
  return Number.isFinite(least + most) ? Number(((least + most) / 2).toPrecision(3)) : 0;
}
