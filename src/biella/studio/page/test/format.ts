import assert from "node:assert/strict";
import { test } from "node:test";
import { guessRange, unflatten, flatten } from "../src/control/values";
import {
  formatExact, formatNumber, formatShort, formatSI, formatTime, formatUnit, nameValue, parseNumber,
} from "../src/format";

test("numbers keep their digits while they change", () => {
  assert.equal(formatNumber(1), "1.0000");
  assert.equal(formatNumber(-12.3456789), "\u221212.346");
  assert.equal(formatNumber(123456), "123456");
  assert.equal(formatNumber(1.5e-9), "1.500e\u22129");
  assert.equal(formatNumber(NaN), "–");
  assert.equal(formatNumber(-Infinity), "\u2212∞");
});

test("short numbers lose trailing zeros only", () => {
  assert.equal(formatShort(0.25), "0.25");
  assert.equal(formatShort(100), "100");
  assert.equal(formatShort(2e7), "2e+7");
});

test("what is shown for editing reads back as the same number", () => {
  for (const value of [0.1, -1e-7, 12345678.9, 1 / 3]) {
    assert.ok(Math.abs(parseNumber(formatExact(value))! / value - 1) < 1e-11);
  }
  assert.equal(parseNumber(formatExact(-Infinity)), -Infinity);
});

test("typed numbers are read with either sign and comma, texts are not", () => {
  assert.equal(parseNumber(" \u22121,5e3 "), -1500);
  assert.equal(parseNumber("12 V"), null);
  assert.equal(parseNumber(""), null);
});

test("prefixes", () => {
  assert.equal(formatSI(0.0012, "s"), "1.2 ms");
  assert.equal(formatSI(-25000, "Hz"), "\u221225 kHz");
  assert.equal(formatSI(1, "s"), "1 s");
});

test("time has the decimals of the step", () => {
  assert.equal(formatTime(1.23456, 1e-3), "1.235");
  assert.equal(formatTime(-1, 1e-4), "\u22121.0000");
});

test("units and names", () => {
  assert.equal(formatUnit("kg.m2/s2"), "kg·m²/s²");
  assert.equal(formatUnit("s-1"), "s⁻¹");
  assert.equal(formatUnit(null), "");
  assert.equal(nameValue(2, "enumeration", ["idle", "hold"]), "hold");
  assert.equal(nameValue(0, "boolean", []), "false");
  assert.equal(nameValue(1, "real", []), null);
});

test("sliders reach past the first value, never past the limits", () => {
  assert.deepEqual(guessRange(0.8, NaN, NaN), { low: 0, high: 1.6 });
  assert.deepEqual(guessRange(-3, NaN, NaN), { low: -6, high: 0 });
  assert.deepEqual(guessRange(0, NaN, NaN), { low: -1, high: 1 });
  assert.deepEqual(guessRange(5, 2, NaN), { low: 2, high: 10 });
  assert.deepEqual(guessRange(5, -1, 7), { low: -1, high: 7 });
});

test("values of any shape are flat lists and back", () => {
  const nested = [[1, 2, 3], [4, 5, "Infinity" as const]];
  assert.deepEqual(flatten(nested), [1, 2, 3, 4, 5, Infinity]);
  assert.deepEqual(unflatten([1, 2, 3, 4, 5, Infinity], [2, 3]), nested);
  assert.equal(unflatten([2], []), 2);
});
