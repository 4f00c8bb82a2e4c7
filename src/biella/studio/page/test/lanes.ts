import assert from "node:assert/strict";
import { test } from "node:test";
import { findBands } from "../src/scope/lanes";

const times = Float64Array.of(0, 1, 2, 3, 4, 5);

test("equal values join to a band", () => {
  const values = Float64Array.of(1, 1, 2, 2, 1, 1);
  assert.deepEqual(findBands(times, values, values, 0, 5), [
    { from: 0, to: 2, value: 1 },
    { from: 2, to: 4, value: 2 },
    { from: 4, to: 5, value: 1 },
  ]);
});

test("a bin with two values is a band of its own", () => {
  const low = Float64Array.of(0, 0, 0, 1, 1, 1);
  const high = Float64Array.of(0, 0, 1, 1, 1, 1);
  assert.deepEqual(findBands(times, low, high, 0, 5).map(({ value }) => value), [0, NaN, 1]);
});

test("what is out of the view or unknown has no band", () => {
  const values = Float64Array.of(1, 1, NaN, NaN, 3, 3);
  assert.deepEqual(findBands(times, values, values, 0.5, 2.5), [{ from: 0, to: 2, value: 1 }]);
});
