import assert from "node:assert/strict";
import { test } from "node:test";
import { DARK, LIGHT } from "../src/stores/palette";

type Triple = [number, number, number];

// Machado, Oliveira, Fernandes: A physiologically-based model for simulation of color vision
// deficiency, 2009, table 1, severity 1; of linear RGB.
const VISION: Record<string, Triple[]> = {
  full: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const TO_XYZ: Triple[] = [
  [0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041],
];
const WHITE: Triple = [0.95047, 1, 1.08883];

const times = (matrix: Triple[], v: Triple) =>
  matrix.map((row) => row.reduce((sum, a, k) => sum + a * v[k]!, 0)) as Triple;

function linear(color: string): Triple {
  return [1, 3, 5].map((k) => {
    const c = parseInt(color.slice(k, k + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as Triple;
}

function lab(rgb: Triple): Triple {
  const [x, y, z] = times(TO_XYZ, rgb).map((value, k) => {
    const v = value / WHITE[k]!;
    return v > 216 / 24389 ? Math.cbrt(v) : ((24389 / 27) * v + 16) / 116;
  }) as Triple;
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** The least difference in CIELAB between two colors; 2.3 can just be seen. */
function closest(palette: string[], matrix: Triple[]): number {
  const seen = palette.map((color) => lab(times(matrix, linear(color)).map((c) => Math.min(Math.max(c, 0), 1)) as Triple));
  const pairs = seen.flatMap((a, n) => seen.slice(n + 1).map((b) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])));
  return Math.min(...pairs);
}

function contrast(a: string, b: string): number {
  const light = [a, b].map((color) => times(TO_XYZ, linear(color))[1] + 0.05);
  return Math.max(...light) / Math.min(...light);
}

test("curves can be told apart with each kind of color vision", () => {
  for (const palette of [LIGHT, DARK]) {
    for (const [kind, matrix] of Object.entries(VISION)) {
      assert.ok(closest(palette, matrix) > 15, `${kind}: ${closest(palette, matrix)}`);
    }
  }
  // Okabe and Ito's blue and a violet, which this page had before, were too near.
  assert.ok(closest(["#0072B2", "#7A4FBF"], VISION.deuteranopia!) < 10);
});

test("curves stand out from their paper as WCAG 2.1 asks of graphics", () => {
  for (const color of LIGHT) assert.ok(contrast(color, "#ffffff") >= 3, color);
  for (const color of DARK) assert.ok(contrast(color, "#1a1d22") >= 3, color);
});
