// Amplitude spectra: windows, and a fast Fourier transform of a power of two.

export const WINDOWS = ["hann", "flat top", "blackman", "rectangular"] as const;
export type WindowName = (typeof WINDOWS)[number];

// Coefficients of sums of cosines, as in scipy.signal.windows.
const COSINES: Record<WindowName, number[]> = {
  hann: [0.5, 0.5],
  blackman: [0.42, 0.5, 0.08],
  "flat top": [0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368],
  rectangular: [1],
};

export function makeWindow(name: WindowName, length: number): Float64Array {
  const terms = COSINES[name];
  return Float64Array.from({ length }, (_, k) =>
    terms.reduce((sum, a, n) => sum + (n % 2 ? -a : a) * Math.cos((2 * Math.PI * n * k) / length), 0),
  );
}

/** Transform in place; the length is a power of two. */
export function transform(re: Float64Array, im: Float64Array): void {
  const n = re.length;
  for (let i = 1, j = 0; i < n; i += 1) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [re[i], re[j]] = [re[j]!, re[i]!];
      [im[i], im[j]] = [im[j]!, im[i]!];
    }
  }
  for (let half = 1; half < n; half <<= 1) {
    const angle = -Math.PI / half;
    for (let k = 0; k < half; k += 1) {
      const c = Math.cos(angle * k);
      const s = Math.sin(angle * k);
      for (let a = k; a < n; a += 2 * half) {
        const b = a + half;
        const x = re[b]! * c - im[b]! * s;
        const y = re[b]! * s + im[b]! * c;
        re[b] = re[a]! - x;
        im[b] = im[a]! - y;
        re[a]! += x;
        im[a]! += y;
      }
    }
  }
}

export interface Spectrum {
  frequencies: Float64Array;
  amplitudes: Float64Array;
}

/**
 * Single-sided amplitude spectrum of evenly spaced samples: a sine of amplitude A on a line of the
 * spectrum gives A there. The newest power of two of samples is used, without their mean.
 */
export function computeSpectrum(samples: Float64Array, interval: number, name: WindowName): Spectrum | null {
  if (samples.length < 8) return null;
  const n = 2 ** Math.floor(Math.log2(samples.length));
  const part = samples.subarray(samples.length - n);
  const mean = part.reduce((sum, value) => sum + value, 0) / n;
  if (!Number.isFinite(mean)) return null;
  const window = makeWindow(name, n);
  const gain = window.reduce((sum, value) => sum + value, 0);
  const re = Float64Array.from(part, (value, k) => (value - mean) * window[k]!);
  const im = new Float64Array(n);
  transform(re, im);
  const lines = n / 2 + 1;
  const amplitudes = Float64Array.from({ length: lines }, (_, k) => {
    const both = k === 0 || k === n / 2 ? 1 : 2;
    return (both * Math.hypot(re[k]!, im[k]!)) / gain;
  });
  return { frequencies: Float64Array.from({ length: lines }, (_, k) => k / (n * interval)), amplitudes };
}

export function toDecibels(amplitudes: Float64Array): Float64Array {
  return amplitudes.map((value) => 20 * Math.log10(Math.max(value, 1e-12)));
}
