// Which point of a body leaves a trail.

import type { Mechanism, Point3 } from "../protocol";

/** The center of mass; where that is on a pivot at the ground and stands still, the marker farthest from it. */
export function findTraced(mechanism: Pick<Mechanism, "bodies" | "joints" | "extent">, n: number): Point3 {
  const { com = [0, 0, 0], markers = [] } = mechanism.bodies[n]!;
  const far = (p: Point3) => Math.hypot(...p.map((x, k) => x - com[k]!));
  const stands = mechanism.joints.some(
    ({ body_i, body_j, p_i, p_j }) =>
      (body_i === n && body_j < 0 && far(p_i) < 1e-3 * mechanism.extent) ||
      (body_j === n && body_i < 0 && far(p_j) < 1e-3 * mechanism.extent),
  );
  if (!stands || markers.length === 0) return com;
  return markers.map((marker) => marker.point).reduce((best, p) => (far(p) > far(best) ? p : best));
}
