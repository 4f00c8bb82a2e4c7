import assert from "node:assert/strict";
import { test } from "node:test";
import { findTraced } from "../src/mechanism/trail";
import type { Mechanism, Point3 } from "../src/protocol";

function linkage(com: Point3, p_i: Point3): Pick<Mechanism, "bodies" | "joints" | "extent"> {
  const markers = [[0, 0, 0], [0.1, 0, 0]].map((point) => ({ point }));
  return {
    extent: 1,
    bodies: [{ name: "crank", com, markers }],
    joints: [{ name: "main", kind: "revolute", body_i: 0, body_j: -1, p_i, p_j: [0, 0, 0] }],
  } as unknown as Mechanism;
}

test("a body leaves the trail of its center of mass", () => {
  assert.deepEqual(findTraced(linkage([0.05, 0, 0], [0, 0, 0]), 0), [0.05, 0, 0]);
});

test("a body that turns about its center of mass leaves that of a marker", () => {
  assert.deepEqual(findTraced(linkage([0, 0, 0], [0, 0, 0]), 0), [0.1, 0, 0]);
});
