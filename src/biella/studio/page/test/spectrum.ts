import assert from "node:assert/strict";
import { test } from "node:test";
import { computeSpectrum, makeWindow, toDecibels, transform, WINDOWS } from "../src/scope/spectrum";

test("the transform is that of its definition", () => {
  const n = 16;
  const x = Float64Array.from({ length: n }, (_, k) => Math.sin(k * k + 1));
  const re = Float64Array.from(x);
  const im = new Float64Array(n);
  transform(re, im);
  for (let line = 0; line < n; line += 1) {
    let [a, b] = [0, 0];
    x.forEach((value, k) => {
      a += value * Math.cos((2 * Math.PI * line * k) / n);
      b -= value * Math.sin((2 * Math.PI * line * k) / n);
    });
    // 16 sums of numbers below 1: rounding stays far below 1e-13.
    assert.ok(Math.abs(re[line]! - a) < 1e-13 && Math.abs(im[line]! - b) < 1e-13);
  }
});

for (const name of WINDOWS) {
  test(`a sine on a line has its amplitude there (${name})`, () => {
    const n = 1024;
    const samples = Float64Array.from({ length: n }, (_, k) => 4 + 3 * Math.sin((2 * Math.PI * 50 * k) / n));
    const { frequencies, amplitudes } = computeSpectrum(samples, 1e-3, name)!;
    assert.ok(Math.abs(amplitudes[50]! - 3) < 1e-9, String(amplitudes[50]));
    assert.ok(Math.abs(frequencies[50]! - 50 / 1.024) < 1e-9);
    assert.ok(amplitudes[200]! < 1e-9);
    assert.ok(amplitudes[0]! < 1e-9, "the mean is taken away");
  });
}

test("between two lines, a flat top loses less than 0.1 dB", () => {
  const n = 1024;
  const samples = Float64Array.from({ length: n }, (_, k) => Math.sin((2 * Math.PI * 50.5 * k) / n));
  const peak = Math.max(...computeSpectrum(samples, 1e-3, "flat top")!.amplitudes);
  assert.ok(Math.abs(20 * Math.log10(peak)) < 0.1, String(peak));
});

test("windows are periodic and begin where they should", () => {
  assert.deepEqual([...makeWindow("hann", 4)].map((v) => Number(v.toFixed(12))), [0, 0.5, 1, 0.5]);
});

test("the newest power of two of samples is used, and too few give nothing", () => {
  assert.equal(computeSpectrum(new Float64Array(1000), 1, "hann")!.amplitudes.length, 257);
  assert.equal(computeSpectrum(new Float64Array(7), 1, "hann"), null);
  assert.equal(computeSpectrum(new Float64Array(16).fill(NaN), 1, "hann"), null);
});

test("decibels", () => {
  assert.deepEqual([...toDecibels(Float64Array.of(1, 10, 0.1))].map(Math.round), [0, 20, -20]);
});
