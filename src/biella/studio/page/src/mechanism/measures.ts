// Lengths of legends, and forces of drags. What the scene needs is elsewhere: no part may be in both,
// since a page in one file loads the scene as a module of its own.

import type { Point3 } from "../protocol";

/** A number of 1, 2 or 5 times a power of ten that is not above another one. */
export function roundDown(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const part = value / power;
  return power * (part >= 5 ? 5 : part >= 2 ? 2 : 1);
}

/** A force from a drag in m: proportional to it, with a limit in N. */
export function pushForce(drag: Point3, strength: number, limit: number): Point3 {
  const size = strength * Math.hypot(...drag);
  const scale = size > limit ? (strength * limit) / size : strength;
  return drag.map((x) => scale * x) as Point3;
}
