import assert from "node:assert/strict";
import { test } from "node:test";
import { findTrigger, suggestLevel } from "../src/scope/trigger";

const times = Float64Array.from({ length: 1001 }, (_, k) => k / 1000);
const sine = times.map((t) => Math.sin(2 * Math.PI * 5 * t));

test("the newest rising edge of a sine is where it crosses zero upward", () => {
  const at = findTrigger(times, sine, sine, 0.0, "rising", 0, 0.95)!;
  assert.ok(Math.abs(at - 0.8) < 1e-3, String(at));
});

test("falling edges lie half a period later", () => {
  const at = findTrigger(times, sine, sine, 0.0, "falling", 0, 0.95)!;
  assert.ok(Math.abs(at - 0.9) < 1e-3, String(at));
});

test("between single samples the crossing is interpolated", () => {
  // sin(10 π t) = 0.5 at t = 1/60 + 0.8; straight lines of 1 ms miss it by less than 1e-6.
  const at = findTrigger(times, sine, sine, 0.5, "rising", 0, 0.95)!;
  assert.ok(Math.abs(at - (0.8 + 1 / 60)) < 1e-5, String(at));
});

test("edges before the earliest time, or where the level is never reached, are none", () => {
  assert.equal(findTrigger(times, sine, sine, 0, "rising", 0.85, 0.95), null);
  assert.equal(findTrigger(times, sine, sine, 2, "rising", 0, 1), null);
});

test("a pulse inside of one bin is an edge", () => {
  const low = new Float64Array(10);
  const high = new Float64Array(10);
  high[6] = 5;
  assert.equal(findTrigger(times.subarray(0, 10), low, high, 2.5, "rising", 0, 1), times[6]);
});

test("the suggested level is the middle", () => {
  assert.equal(suggestLevel(Float64Array.of(-1, 0), Float64Array.of(0, 3)), 1);
  assert.equal(suggestLevel(new Float64Array(0), new Float64Array(0)), 0);
});
