import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "../src/protocol";

function message(head: number[], values: number[]): ArrayBuffer {
  const buffer = new ArrayBuffer(24 + 8 * values.length);
  const view = new DataView(buffer);
  head.forEach((word, k) => view.setUint32(4 * k, word, true));
  values.forEach((value, k) => view.setFloat64(24 + 8 * k, value, true));
  return buffer;
}

test("samples", () => {
  const found = decode(message([1, 7, 3, 2, 5, 0], [0, 1, 2, 3, 4, 5]))!;
  assert.equal(found.kind, "samples");
  assert.ok(found.kind === "samples" && found.scope === 7 && found.rows === 2 && found.flags === 5);
  assert.deepEqual([...found.values], [0, 1, 2, 3, 4, 5]);
});

test("poses and latest values come after their time", () => {
  const poses = decode(message([2, 1, 7, 1, 0, 0], [0.5, 1, 2, 3, 1, 0, 0, 0]))!;
  assert.ok(poses.kind === "poses" && poses.time === 0.5 && poses.mechanism === 1 && poses.values.length === 7);
  const latest = decode(message([3, 0, 2, 1, 0, 0], [0.25, 8, 9]))!;
  assert.ok(latest.kind === "latest" && latest.time === 0.25);
  assert.deepEqual([...latest.values], [8, 9]);
});

test("a message of another length than its head gives is none", () => {
  assert.equal(decode(message([1, 7, 3, 3, 0, 0], [0, 1, 2])), null);
  assert.equal(decode(new ArrayBuffer(8)), null);
  assert.equal(decode(message([9, 0, 0, 0, 0, 0], [])), null);
});

test("efforts come after their time, and a mesh is as many bytes as its head says", () => {
  const efforts = decode(message([4, 2, 1, 2, 0, 0], [0.5, 7, 8]))!;
  assert.ok(efforts.kind === "efforts" && efforts.mechanism === 2 && efforts.time === 0.5);
  assert.deepEqual([...efforts.values], [7, 8]);
  const whole = message([5, 1, 3, 5, 2, 0], [1]);
  const mesh = decode(whole.slice(0, 29))!;
  assert.ok(mesh.kind === "mesh" && mesh.mechanism === 1 && mesh.number === 3 && mesh.format === 2);
  assert.equal(mesh.content.byteLength, 5);
  assert.equal(decode(whole), null);
});
