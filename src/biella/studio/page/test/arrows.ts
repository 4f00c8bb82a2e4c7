import assert from "node:assert/strict";
import { test } from "node:test";
import { dropNoise, findArrows, locate, Peak, turn } from "../src/mechanism/arrows";
import { thickness, thinnest } from "../src/mechanism/journal/drawing";
import { pushForce, roundDown } from "../src/mechanism/measures";
import type { Effort, Point3 } from "../src/protocol";

const half = Math.SQRT1_2;
// Body 0 at (1, 2, 3), a quarter turn about z; body 1 at the origin, not turned.
const poses = [1, 2, 3, half, 0, 0, half, 0, 0, 0, 1, 0, 0, 0];

function near(a: readonly number[], b: readonly number[]): void {
  assert.equal(a.length, b.length);
  a.forEach((x, k) => assert.ok(Math.abs(x - b[k]!) < 1e-12, `${a} is not ${b}`));
}

function effort(fields: Partial<Effort>): Effort {
  return { name: "e", group: "element", kind: "force", form: "vector", value: 0, sign: 1, place: [0, [1, 0, 0]], ...fields };
}

test("places and directions follow the body", () => {
  near(turn(poses, 0, [1, 0, 0]), [0, 1, 0]);
  near(turn(poses, 0, [0, 1, 5]), [-1, 0, 5]);
  near(locate(poses, [0, [1, 0, 0]]), [1, 3, 3]);
  near(locate(poses, [-1, [4, 5, 6]]), [4, 5, 6]);
  // About an axis in space: (1, 1, 1) by a third of a turn maps x to y to z.
  near(turn([0, 0, 0, 0.5, 0.5, 0.5, 0.5], 0, [1, 2, 3]), [3, 1, 2]);
});

test("a reaction acts at its marker, reversed on the first body", () => {
  const { arrows } = findArrows([effort({ sign: -1 })], [7, 0, -2], poses);
  near(arrows[0]!.at, [1, 3, 3]);
  near(arrows[0]!.vector, [-7, 0, 2]);
});

test("rounding beside what acts is left out", () => {
  const efforts = [effort({}), effort({ kind: "torque", value: 3 })];
  const kinds = (values: number[], extent: number) =>
    dropNoise(findArrows(efforts, values, poses).arrows, extent).map((arrow) => arrow.kind);
  assert.deepEqual(kinds([0, 12.7, 0, 0, 0, 3e-18], 0.6), ["force"]);
  assert.deepEqual(kinds([0, 1e-14, 0, 0, 0, 2], 0.6), ["torque"]);
  assert.deepEqual(kinds([0, 12.7, 0, 0, 0, 1e-5], 0.6), ["force", "torque"]);
  assert.deepEqual(kinds([0, 0, 0, 0, 0, 3e-18], 0.6), ["torque"]);
});

test("a tension pulls both ends together, along the components that act", () => {
  const coil = effort({ form: "tension", place: [1, [0, 0, 0]], other: [-1, [3, 4, 0]], mask: [1, 0, 1] });
  const { arrows } = findArrows([coil], [10], poses);
  near(arrows[0]!.vector, [6, 0, 0]);
  near(arrows[1]!.vector, [-6, 0, 0]);
  near(arrows[1]!.at, [3, 4, 0]);
  assert.equal(findArrows([{ ...coil, other: [1, [0, 0, 0]] }], [10], poses).arrows.length, 0);
});

test("an effort on a coordinate acts about its axis", () => {
  const motor = effort({ form: "axis", kind: "torque", axis: [0, [0, 1, 0]], sign: -1 });
  near(findArrows([motor], [2], poses).arrows[0]!.vector, [2, 0, 0]);
});

test("a contact is where the pin touches the hole, marked while it does", () => {
  const pin = effort({
    group: "contact", contact: 3, angle: 4, hole: [0, [0, 0, 0]], axes: [[1, 0, 0], [0, 1, 0]], radius: 0.5,
  }); // prettier-ignore
  const closed = findArrows([pin], [3, 0, 0, 1, Math.PI / 2], poses);
  near(closed.contacts[0]!, [0.5, 2, 3]); // y of the hole is -x of the world
  near(closed.arrows[0]!.at, [0.5, 2, 3]);
  const open = findArrows([pin], [0, 0, 0, 0, 1], poses);
  assert.deepEqual(open, { arrows: [], contacts: [] });
});

test("a push is where its recorded point is; what is no number is not drawn", () => {
  const push = effort({ at: 3, place: [-1, [0, 0, 0]] });
  near(findArrows([push], [1, 0, 0, 9, 8, 7], poses).arrows[0]!.at, [9, 8, 7]);
  assert.equal(findArrows([push], [NaN, 0, 0, 9, 8, 7], poses).arrows.length, 0);
  assert.equal(findArrows([push], [1, 0, 0], poses).arrows.length, 0);
});

test("a drag is a force, up to the limit", () => {
  near(pushForce([0.1, 0, -0.2], 50, 100), [5, 0, -10]);
  const most = pushForce([3, 4, 0] as Point3, 1000, 20);
  near(most, [12, 16, 0]);
});

test("bars have round numbers, and the scale follows peaks and falls slowly", () => {
  assert.deepEqual([0.7, 1, 4.9, 99, 250, 0.03, 0, Infinity].map(roundDown), [0.5, 1, 2, 50, 200, 0.02, 1, 1]);
  const peak = new Peak();
  peak.take([3, 100]);
  assert.equal(peak.value, 100);
  peak.take([]);
  assert.ok(peak.value < 100 && peak.value > 90);
});

test("a film is thinnest where the journal is nearest", () => {
  const { angle, film } = thinnest(5, -3, 0);
  near([angle, film, thickness(5, -3, 0, angle), thickness(5, -3, 0, 0)], [Math.PI, 2, 2, 8]);
  near([thinnest(5, 0, -1).angle], [1.5 * Math.PI]);
});
