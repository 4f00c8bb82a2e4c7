import assert from "node:assert/strict";
import { test } from "node:test";
import { HISTORY, type Samples, SINGLE } from "../src/protocol";
import { beginSamples, BinBuffer, extremes, lowerBound } from "../src/scope/buffer";

function bins(rows: number[][], flags = 0): Samples {
  const columns = rows[0]?.length ?? 3;
  return { kind: "samples", scope: 1, columns, rows: rows.length, flags, values: Float64Array.from(rows.flat()) };
}

test("bins are kept in their order", () => {
  const buffer = new BinBuffer();
  buffer.take(bins([[0, 1, 2], [1, 3, 4]]));
  buffer.take(bins([[2, 5, 6]]));
  assert.deepEqual([...buffer.times], [0, 1, 2]);
  assert.deepEqual([...buffer.low(0)], [1, 3, 5]);
  assert.deepEqual([...buffer.high(0)], [2, 4, 6]);
  assert.equal(buffer.newest, 2);
});

test("the last bin is replaced when it has grown", () => {
  const buffer = new BinBuffer();
  buffer.take(bins([[0, 1, 2], [1, 3, 4]]));
  buffer.take(bins([[1, -9, 9], [2, 5, 6]]));
  assert.deepEqual([...buffer.times], [0, 1, 2]);
  assert.deepEqual([...buffer.low(0)], [1, -9, 5]);
});

test("history replaces everything, also of another width", () => {
  const buffer = new BinBuffer();
  buffer.take(bins([[5, 1, 2]]));
  buffer.take(bins([[0, 1, 2, 3, 4]], HISTORY));
  assert.deepEqual([...buffer.times], [0]);
  assert.equal(buffer.signals, 2);
});

test("only the newest bins are kept, whatever the sizes of messages", () => {
  const buffer = new BinBuffer(1000);
  let t = 0;
  for (let message = 0; message < 400; message += 1) {
    buffer.take(bins(Array.from({ length: 1 + ((7 * message) % 23) }, () => [t++, -t, t]), SINGLE));
  }
  assert.equal(buffer.length, 1000);
  buffer.times.forEach((time, k) => assert.equal(time, t - 1000 + k));
  buffer.high(0).forEach((value, k) => assert.equal(value, t - 999 + k));
});

test("it is known whether a bin is one sample", () => {
  const buffer = new BinBuffer();
  buffer.take(bins([[0, 1, 1]], SINGLE));
  assert.equal(buffer.isSingle, true);
  buffer.take(bins([[1, 1, 2]]));
  assert.equal(buffer.isSingle, false);
});

test("a time is found between others", () => {
  const times = Float64Array.of(0, 1, 1, 3);
  assert.deepEqual([-1, 0, 0.5, 1, 2, 3, 4].map((t) => lowerBound(times, t)), [0, 0, 1, 1, 3, 3, 4]);
});

test("a peak within one bin counts; what is no number does not", () => {
  const low = Float64Array.of(NaN, 0, -7, 0);
  const high = Float64Array.of(NaN, 0, 11, 0);
  assert.deepEqual(extremes(low, high, 0, 4), [-7, 11]);
  assert.equal(extremes(low, high, 0, 1), null);
});

test("a spectrum begins after bins of several samples, gaps and what is too old", () => {
  const buffer = new BinBuffer(1 << 15);
  const sample = (t: number) => [t, 5, 5];
  buffer.take(bins([[0, 1, 2], [4, 1, 1], sample(5), sample(6), [7, 1, 2], sample(8), sample(9), sample(10)]));
  assert.equal(buffer.times[beginSamples(buffer, 0, 8, 1)], 8);
  assert.equal(beginSamples(buffer, 0, 4, 1), 1); // constant over several samples is as good as one
  assert.equal(beginSamples(buffer, 2, 4, 1), 2);
  assert.equal(beginSamples(buffer, 0, 1, 1), 1);
  assert.equal(beginSamples(buffer, 0, 0, 1), 0);
  buffer.take(bins([[20, 5, 5], [21, 5, 5]]));
  assert.equal(buffer.times[beginSamples(buffer, 0, 10, 1)], 20);
  const long = new BinBuffer(1 << 15);
  long.take(bins(Array.from({ length: 20000 }, (_, k) => sample(k))));
  assert.equal(beginSamples(long, 0, 20000, 1), 20000 - 16384);
});
