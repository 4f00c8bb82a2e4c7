// Forces and torques as arrows: from recorded values and poses to places and vectors of the world.
// No part of three is used here, so that it is tested without a browser.

import type { Effort, Group, Place, Point3 } from "../protocol";

export interface Arrow {
  name: string;
  kind: "force" | "torque";
  group: Group;
  /** Where it begins, in m, and what it is, in N or N m. */
  at: Point3;
  vector: Point3;
}

export interface Drawn {
  arrows: Arrow[];
  /** Points where surfaces touch. */
  contacts: Point3[];
}

type Poses = ArrayLike<number>;

const ADD = (a: Point3, b: Point3, k = 1): Point3 => [a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]];
const SCALE = (a: Point3, k: number): Point3 => [k * a[0], k * a[1], k * a[2]];
export const sizeOf = (a: Point3): number => Math.hypot(a[0], a[1], a[2]);

/** Turn a vector from the axes of a body to those of the world; of the ground they are the same. */
export function turn(poses: Poses, body: number, v: Point3): Point3 {
  if (body < 0) return v;
  const [w = 1, x = 0, y = 0, z = 0] = [3, 4, 5, 6].map((k) => poses[7 * body + k]);
  // v + 2 w (q × v) + 2 q × (q × v)
  const t: Point3 = [2 * (y * v[2] - z * v[1]), 2 * (z * v[0] - x * v[2]), 2 * (x * v[1] - y * v[0])];
  return [
    v[0] + w * t[0] + y * t[2] - z * t[1],
    v[1] + w * t[1] + z * t[0] - x * t[2],
    v[2] + w * t[2] + x * t[1] - y * t[0],
  ];
}

/** A point of a body in the world. */
export function locate(poses: Poses, [body, point]: Place): Point3 {
  if (body < 0) return point;
  return ADD(turn(poses, body, point), [0, 1, 2].map((k) => poses[7 * body + k] ?? 0) as Point3);
}

function three(values: ArrayLike<number>, first: number): Point3 {
  return [values[first] ?? NaN, values[first + 1] ?? NaN, values[first + 2] ?? NaN];
}

function place(effort: Effort, values: ArrayLike<number>, poses: Poses): Point3 {
  return effort.at === undefined ? locate(poses, effort.place) : three(values, effort.at);
}

/** All arrows at the time of some recorded values; those that are zero or no number are left out. */
export function findArrows(efforts: readonly Effort[], values: ArrayLike<number>, poses: Poses): Drawn {
  const arrows: Arrow[] = [];
  const contacts: Point3[] = [];
  for (const effort of efforts) {
    const add = (at: Point3, vector: Point3) => {
      const size = sizeOf(vector);
      if (size > 0 && Number.isFinite(size) && at.every(Number.isFinite)) {
        arrows.push({ name: effort.name, kind: effort.kind, group: effort.group, at, vector });
      }
    };
    const value = values[effort.value] ?? NaN;
    if (effort.form === "tension") {
      const ends = [locate(poses, effort.place), locate(poses, effort.other!)] as const;
      const along = ADD(ends[1], ends[0], -1);
      const length = sizeOf(along);
      if (!(length > 0)) continue;
      const pull = SCALE(along, value / length).map((x, k) => (effort.mask?.[k] === 0 ? 0 : x)) as Point3;
      add(ends[0], pull);
      add(ends[1], SCALE(pull, -1));
    } else if (effort.form === "axis") {
      const [body, axis] = effort.axis!;
      add(place(effort, values, poses), SCALE(turn(poses, body, axis), effort.sign * value));
    } else if (effort.contact !== undefined) {
      const point = touch(effort, values, poses);
      if ((values[effort.contact] ?? 0) !== 0) contacts.push(point);
      add(point, SCALE(three(values, effort.value), effort.sign));
    } else {
      add(place(effort, values, poses), SCALE(three(values, effort.value), effort.sign));
    }
  }
  return { arrows, contacts };
}

/** Where a pin touches its hole. */
function touch(effort: Effort, values: ArrayLike<number>, poses: Poses): Point3 {
  const angle = values[effort.angle ?? -1] ?? 0;
  const [f, g] = effort.axes!;
  const out = ADD(SCALE(f, Math.cos(angle)), SCALE(g, Math.sin(angle)));
  const [body, center] = effort.hole!;
  return locate(poses, [body, ADD(center, out, effort.radius ?? 0)]);
}

const NOISE = 1e-9;

/** Leave out what is only rounding beside the forces and torques that act: it must not set a scale. */
export function dropNoise(arrows: Arrow[], extent: number): Arrow[] {
  const effect = ({ kind, vector }: Arrow) => sizeOf(vector) * (kind === "force" ? extent : 1);
  const most = arrows.reduce((best, arrow) => Math.max(best, effect(arrow)), 0);
  return arrows.filter((arrow) => effect(arrow) > NOISE * most);
}

const FALL = 0.97;

/** What the longest arrow stands for: follows peaks at once and falls slowly, so that arrows grow and shrink. */
export class Peak {
  value = 0;

  take(sizes: number[]): void {
    const most = sizes.reduce((best, size) => Math.max(best, size), 0);
    this.value = Math.max(most, FALL * this.value);
  }
}
