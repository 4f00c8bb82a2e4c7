import assert from "node:assert/strict";
import { test } from "node:test";
import { Downloads } from "../src/export/download";
import { findTicks, paintPicture } from "../src/export/picture";
import { SvgDrawing } from "../src/export/svg";
import { decode, type FilePart, LAST } from "../src/protocol";
import type { Picture } from "../src/scope/plot";

const COLORS = { ink: "#111111", soft: "#666666", grid: "#eeeeee", paper: "#ffffff", mark: "#e69f00" };

function part(file: number, bytes: number[], flags = 0): FilePart {
  return { kind: "file", file, flags, bytes: new Uint8Array(bytes) };
}

test("ticks are round and within the range", () => {
  assert.deepEqual(findTicks(0, 1, 5).values.map((v) => v.toFixed(3)), ["0.000", "0.200", "0.400", "0.600", "0.800", "1.000"]);
  assert.deepEqual(findTicks(-7, 13, 4).values, [-5, 0, 5, 10]);
  assert.deepEqual(findTicks(1, 1, 4).values, []);
  assert.deepEqual(findTicks(0, Infinity, 4).values, []);
});

test("a picture has its curves with their dashes, names and units", () => {
  const x = Float64Array.of(0, 1, 2, 3);
  const low = Float64Array.of(0, 2, NaN, 1);
  const common = { scale: "m", x, low, high: low, steps: false };
  const picture: Picture = {
    curves: [
      { key: "a @2", label: "a · <run>", color: "#0072B2", dash: [7, 4], ...common },
      { key: "a", label: "a", color: "#0072B2", ...common },
    ],
    scales: new Map([["m", { label: "m/s²", range: [0, 4] }]]),
    x: [0, 3],
    xLabel: "t in s",
    reserve: 0,
    overlay: ({ ctx, xAt, mark }) => {
      ctx.fillStyle = mark;
      ctx.fillRect(xAt(1.5), 0, 2, 10);
    },
  };
  const drawing = new SvgDrawing(400, 200);
  paintPicture(drawing, picture, COLORS, { width: 400, height: 200 });
  const text = String(drawing);
  assert.match(text, /^<svg xmlns="[^"]+" width="400" height="200" viewBox="0 0 400 200">/);
  const curves = [...text.matchAll(/<path d="([^"]+)" fill="none" stroke="#0072B2" stroke-width="1\.5"[^>]*>/g)];
  assert.equal(curves.length, 2);
  assert.match(curves[0]![0], /stroke-dasharray="7 4"/);
  assert.doesNotMatch(curves[1]![0], /dasharray/);
  // Where there is no value there is a gap: the last point stands alone.
  assert.match(curves[1]![1]!, /^M[\d.]+ [\d.]+L[\d.]+ [\d.]+M[\d.]+ [\d.]+L[\d.]+ [\d.]+$/);
  for (const word of ["a · &lt;run&gt;", "m/s²", "t in s"]) assert.ok(text.includes(`>${word}<`), word);
  assert.match(text, /fill="#e69f00"/);
  assert.equal(text.match(/<g /g)?.length, text.match(/<\/g>/g)?.length);
});

test("what is saved is restored, and opacity is written", () => {
  const drawing = new SvgDrawing(10, 10);
  drawing.save();
  drawing.fillStyle = "#abcdef";
  drawing.globalAlpha = 0.25;
  drawing.fillRect(0, 0, 1, 1);
  drawing.restore();
  drawing.fillRect(1, 1, 1, 1);
  const [first, second] = String(drawing).match(/<rect[^>]+>/g) ?? [];
  assert.match(first!, /fill="#abcdef" opacity="0.25"/);
  assert.match(second!, /fill="#000"/);
  assert.doesNotMatch(second!, /opacity/);
});

test("a file is whole when its last part and its name are there, in any order", async () => {
  const got: [string, number[]][] = [];
  const downloads = new Downloads(async (content, name) => {
    got.push([name, [...new Uint8Array(await content.arrayBuffer())]]);
  });
  downloads.take(part(1, [1, 2]));
  downloads.name(1, "a.csv");
  downloads.take(part(2, [9], LAST));
  assert.equal(got.length, 0);
  downloads.take(part(1, [3], LAST));
  downloads.name(2, "b.csv");
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual(got.sort(), [["a.csv", [1, 2, 3]], ["b.csv", [9]]]);
});

test("a part of a file may have any length", () => {
  const message = new Uint8Array(27);
  const head = new DataView(message.buffer);
  head.setUint32(0, 6, true);
  head.setUint32(4, 7, true);
  head.setUint32(8, 3, true);
  head.setUint32(16, LAST, true);
  message.set([5, 6, 7], 24);
  const found = decode(message.buffer);
  assert.ok(found?.kind === "file");
  assert.deepEqual([found.file, found.flags, ...found.bytes], [7, LAST, 5, 6, 7]);
  head.setUint32(8, 4, true);
  assert.equal(decode(message.buffer), null);
});
