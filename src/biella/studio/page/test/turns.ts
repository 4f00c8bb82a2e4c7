import assert from "node:assert/strict";
import { test } from "node:test";
import { drawSome } from "../src/scope/turns";

test("half of those with something new draw in a frame, and each in its turn", () => {
  const fresh = new Set([0, 1, 2, 3, 4]);
  const drawn: number[] = [];
  const draws = [0, 1, 2, 3, 4].map((n) => () => fresh.has(n) && drawn.push(n) > 0);
  let next = drawSome(draws, 0);
  assert.deepEqual(drawn, [0, 1, 2]);
  next = drawSome(draws, next);
  assert.deepEqual(drawn, [0, 1, 2, 3, 4, 0]);
  fresh.clear();
  fresh.add(4);
  drawSome(draws, next);
  assert.deepEqual(drawn.slice(6), [4]);
  assert.equal(drawSome([], 3), 0);
});

test("a single one draws in every frame", () => {
  let count = 0;
  let next = 0;
  for (let k = 0; k < 3; k += 1) next = drawSome([() => ++count > 0], next);
  assert.equal(count, 3);
});
