// A drawing that takes what a canvas takes and writes it as SVG.

import type { Drawing } from "../scope/plot";

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** Hundredths of a pixel are enough, and keep files small. */
function short(value: number): string {
  return String(Math.round(100 * value) / 100);
}

const ANCHORS: Record<string, string> = { left: "start", start: "start", center: "middle", right: "end", end: "end" };
const LIFT: Record<string, number> = { middle: 0.35, top: 0.8, alphabetic: 0 };

interface Style {
  fillStyle: string;
  strokeStyle: string;
  lineWidth: number;
  lineJoin: CanvasLineJoin;
  globalAlpha: number;
  font: string;
  textAlign: CanvasTextAlign;
  textBaseline: CanvasTextBaseline;
  dash: number[];
  clips: number;
}

export class SvgDrawing implements Drawing {
  fillStyle = "#000";
  strokeStyle = "#000";
  lineWidth = 1;
  lineJoin: CanvasLineJoin = "round";
  globalAlpha = 1;
  font = "11px sans-serif";
  textAlign: CanvasTextAlign = "left";
  textBaseline: CanvasTextBaseline = "alphabetic";
  #dash: number[] = [];
  #path = "";
  #parts: string[] = [];
  #clips = 0;
  #open = 0;
  readonly #saved: Style[] = [];
  readonly #width: number;
  readonly #height: number;

  constructor(width: number, height: number) {
    this.#width = width;
    this.#height = height;
  }

  toString(): string {
    const [w, h] = [short(this.#width), short(this.#height)];
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">`;
    return `${head}\n${this.#parts.join("\n")}${"</g>".repeat(this.#open)}\n</svg>\n`;
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    if (width <= 0 || height <= 0) return;
    const box = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
    this.#parts.push(`<rect ${box} fill="${this.fillStyle}"${this.#opacity()}/>`);
  }

  beginPath(): void {
    this.#path = "";
  }

  moveTo(x: number, y: number): void {
    this.#path += `M${short(x)} ${short(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.#path += `L${short(x)} ${short(y)}`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.#path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }

  /** A whole circle. */
  arc(x: number, y: number, radius: number): void {
    const r = short(radius);
    this.#path += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${short(2 * radius)} 0a${r} ${r} 0 1 0 ${short(-2 * radius)} 0z`;
  }

  clip(): void {
    this.#clips += 1;
    this.#open += 1;
    const id = `clip${this.#clips}`;
    this.#parts.push(`<clipPath id="${id}"><path d="${this.#path}"/></clipPath><g clip-path="url(#${id})">`);
  }

  fill(): void {
    this.#parts.push(`<path d="${this.#path}" fill="${this.fillStyle}"${this.#opacity()}/>`);
  }

  stroke(): void {
    if (!this.#path) return;
    const dash = this.#dash.length ? ` stroke-dasharray="${this.#dash.map(short).join(" ")}"` : "";
    const line = `stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}" stroke-linejoin="${this.lineJoin}"`;
    this.#parts.push(`<path d="${this.#path}" fill="none" ${line}${dash}${this.#opacity()}/>`);
  }

  setLineDash(dash: Iterable<number>): void {
    this.#dash = [...dash];
  }

  fillText(text: string, x: number, y: number): void {
    const [, weight = "", size = "11"] = /^(bold )?([\d.]+)px/.exec(this.font) ?? [];
    const place = `x="${short(x)}" y="${short(y + (LIFT[this.textBaseline] ?? 0) * Number(size))}"`;
    const look = `font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="${size}"${weight ? ' font-weight="bold"' : ""}`;
    const anchor = ANCHORS[this.textAlign] ?? "start";
    this.#parts.push(
      `<text ${place} ${look} text-anchor="${anchor}" fill="${this.fillStyle}"${this.#opacity()}>${escape(text)}</text>`,
    );
  }

  /** About: only a browser with a canvas knows. */
  measureText(text: string): TextMetrics {
    const size = Number(/([\d.]+)px/.exec(this.font)?.[1] ?? 11);
    return { width: 0.6 * size * text.length } as TextMetrics;
  }

  save(): void {
    const { fillStyle, strokeStyle, lineWidth, lineJoin, globalAlpha, font, textAlign, textBaseline } = this;
    this.#saved.push({
      fillStyle, strokeStyle, lineWidth, lineJoin, globalAlpha, font, textAlign, textBaseline,
      dash: this.#dash, clips: this.#open,
    }); // prettier-ignore
  }

  restore(): void {
    const saved = this.#saved.pop();
    if (!saved) return;
    const { dash, clips, ...rest } = saved;
    Object.assign(this, rest);
    this.#dash = dash;
    for (; this.#open > clips; this.#open -= 1) this.#parts.push("</g>");
  }

  #opacity(): string {
    return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
  }
}
