// Numbers as text, with a real minus sign and few enough digits to be read while they change.

const MINUS = "\u2212";
const PREFIXES: [number, string][] = [
  [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"],
];

/** A number with `digits` significant digits, trailing zeros kept so that a display does not jitter. */
export function formatNumber(value: number, digits = 5): string {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : `${MINUS}∞`;
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e-3 && size < 1e6 ? value.toPrecision(digits) : value.toExponential(digits - 2);
  // toPrecision turns to exponents for whole numbers with more digits than asked for.
  return fixSign(text.includes("e") && size < 1e6 && size >= 1e-3 ? String(Math.round(value)) : text);
}

/** The shortest text that gives the number again: for fields that are edited. */
export function formatExact(value: number): string {
  if (Number.isNaN(value)) return "";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  return String(Number(value.toPrecision(12)));
}

/** A number without trailing zeros. */
export function formatShort(value: number, digits = 5): string {
  const text = formatNumber(value, digits);
  if (text.includes("e")) return text.replace(/\.?0+e/, "e");
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A number with an SI prefix before the unit: 0.0012 s is "1.2 ms". */
export function formatSI(value: number, unit: string, digits = 4): string {
  if (!Number.isFinite(value) || value === 0) return `${formatNumber(value)} ${unit}`;
  const size = Math.abs(value);
  const [factor, prefix] = PREFIXES.find(([f]) => size >= 0.99995 * f) ?? [1e-9, "n"];
  return `${formatShort(value / factor, digits)} ${prefix}${unit}`;
}

/** Simulated time, with as many decimals as the step has. */
export function formatTime(seconds: number, step = 1e-3): string {
  if (!Number.isFinite(seconds)) return "–";
  const decimals = Math.min(Math.max(Math.ceil(-Math.log10(step || 1e-3) - 1e-9), 1), 6);
  return fixSign(seconds.toFixed(decimals));
}

/** Read a number that somebody typed; null if it is none. */
export function parseNumber(text: string): number | null {
  const plain = text.trim().replace(MINUS, "-").replace(",", ".");
  if (/^[+-]?inf(inity)?$/i.test(plain)) return plain.startsWith("-") ? -Infinity : Infinity;
  if (plain === "") return null;
  const value = Number(plain);
  return Number.isNaN(value) ? null : value;
}

/** The name of a value of a boolean or of an enumeration, whose values count from 1. */
export function nameValue(value: number, kind: string, names: readonly string[]): string | null {
  if (Number.isNaN(value)) return null;
  if (kind === "boolean") return names[value ? 1 : 0] ?? (value ? "true" : "false");
  if (kind === "enumeration") return names[Math.round(value) - 1] ?? String(Math.round(value));
  return null;
}

/** A unit as it is written beside a number: "rad/s2" is "rad/s²". */
export function formatUnit(unit: string | null | undefined): string {
  if (!unit || unit === "1") return "";
  return unit.replace(/(?<=[A-Za-z])(-?\d)/g, (digits) =>
    [...digits].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join(""),
  ).replaceAll(".", "·");
}

function fixSign(text: string): string {
  return text.replaceAll("-", MINUS);
}
