// A journal in its bearing, or a pin in its hole, on a canvas: the orbit within the clearance, and
// the thickness of the film around the bush.

/** h(θ) = c - x cos θ - y sin θ of a round bush: least where the journal is nearest. */
export function thickness(clearance: number, x: number, y: number, angle: number): number {
  return clearance - x * Math.cos(angle) - y * Math.sin(angle);
}

/** Where the film is thinnest: its angle from 0 to 2 π, and its thickness there. */
export function thinnest(clearance: number, x: number, y: number): { angle: number; film: number } {
  const angle = Math.atan2(y, x);
  return { angle: angle < 0 ? angle + 2 * Math.PI : angle, film: clearance - Math.hypot(x, y) };
}

/** The newest places of the journal, as parts of the clearance; whether the surfaces touched. */
export interface Track {
  x: Float64Array;
  y: Float64Array;
  touches: Uint8Array;
}

export interface Colors {
  ink: string;
  soft: string;
  line: string;
  paper: string;
  well: string;
  trail: string;
  mark: string;
  touch: string;
}

export interface Area {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Draw the circle of the clearance, the trail in it, and where the journal is. */
export function drawOrbit(context: CanvasRenderingContext2D, area: Area, tracks: Track[], colors: Colors): void {
  const radius = 0.44 * Math.min(area.width, area.height);
  const [cx, cy] = [area.left + area.width / 2, area.top + area.height / 2];
  context.lineWidth = 1;
  context.beginPath();
  context.arc(cx, cy, radius, 0, 2 * Math.PI);
  context.fillStyle = colors.well;
  context.fill();
  context.strokeStyle = colors.line;
  for (const part of [0.25, 0.5, 0.75]) {
    context.beginPath();
    context.arc(cx, cy, part * radius, 0, 2 * Math.PI);
    context.stroke();
  }
  context.beginPath();
  context.moveTo(cx - radius, cy);
  context.lineTo(cx + radius, cy);
  context.moveTo(cx, cy - radius);
  context.lineTo(cx, cy + radius);
  context.stroke();
  context.lineWidth = 2;
  context.strokeStyle = colors.ink;
  context.beginPath();
  context.arc(cx, cy, radius, 0, 2 * Math.PI);
  context.stroke();
  context.fillStyle = colors.soft;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillText("x", cx + radius + 4, cy);
  context.textAlign = "center";
  context.fillText("y", cx, cy - radius - 8);
  for (const track of tracks) drawTrail(context, cx, cy, radius, track, colors);
}

function drawTrail(
  context: CanvasRenderingContext2D, cx: number, cy: number, radius: number, { x, y, touches }: Track, colors: Colors,
): void {
  const count = x.length;
  if (!count) return;
  const at = (k: number) => [cx + radius * (x[k] ?? NaN), cy - radius * (y[k] ?? NaN)] as const;
  context.lineWidth = 1.3;
  context.lineJoin = "round";
  // Older parts are paler, in a few steps: a stroke for each sample would be slow.
  const parts = 8;
  for (let part = 0; part < parts; part += 1) {
    const [from, to] = [Math.floor((part * (count - 1)) / parts), Math.floor(((part + 1) * (count - 1)) / parts)];
    context.globalAlpha = 0.15 + (0.85 * (part + 1)) / parts;
    context.strokeStyle = colors.trail;
    context.beginPath();
    context.moveTo(...at(from));
    for (let k = from + 1; k <= to; k += 1) context.lineTo(...at(k));
    context.stroke();
  }
  context.globalAlpha = 1;
  context.fillStyle = colors.touch;
  for (let k = 0; k < count; k += 1) {
    if (!touches[k]) continue;
    const [px, py] = at(k);
    context.fillRect(px - 1.2, py - 1.2, 2.4, 2.4);
  }
  const [px, py] = at(count - 1);
  const last = Math.hypot(x[count - 1] ?? 0, y[count - 1] ?? 0);
  if (last > 0) {
    // Toward the place where journal and bush are nearest.
    context.strokeStyle = colors.mark;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(cx, cy);
    context.lineTo(cx + (radius * (x[count - 1] ?? 0)) / last, cy - (radius * (y[count - 1] ?? 0)) / last);
    context.stroke();
    context.setLineDash([]);
  }
  context.beginPath();
  context.arc(px, py, 4.5, 0, 2 * Math.PI);
  context.fillStyle = touches[count - 1] ? colors.touch : colors.mark;
  context.fill();
  context.lineWidth = 1.5;
  context.strokeStyle = colors.paper;
  context.stroke();
}

/** Draw the thickness of the film around the bush; the least is marked. */
export function drawFilm(
  context: CanvasRenderingContext2D, area: Area, clearance: number, places: [number, number][], colors: Colors,
): void {
  const [left, right, top, bottom] = [area.left + 30, area.left + area.width - 8, area.top + 8, area.top + area.height - 16];
  const px = (angle: number) => left + ((right - left) * angle) / (2 * Math.PI);
  const py = (part: number) => bottom - ((bottom - top) * part) / 2;
  context.font = "10.5px system-ui, sans-serif";
  context.fillStyle = colors.soft;
  context.strokeStyle = colors.line;
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const [part, text] of [[0, "0"], [1, "c"], [2, "2c"]] as const) {
    context.beginPath();
    context.moveTo(left, py(part));
    context.lineTo(right, py(part));
    context.stroke();
    context.fillText(text, left - 5, py(part));
  }
  context.textBaseline = "top";
  const every = right - left < 170 ? 180 : 90; // labels must not touch
  for (let degrees = 0; degrees <= 360; degrees += every) {
    context.textAlign = degrees === 0 ? "left" : degrees === 360 ? "right" : "center";
    context.fillText(`${degrees}°`, px((degrees * Math.PI) / 180), bottom + 4);
  }
  context.textAlign = "left";
  context.textBaseline = "top";
  context.fillText("h(θ)", left + 3, top - 6);
  for (const [x, y] of places) {
    context.beginPath();
    for (let k = 0; k <= 120; k += 1) {
      const angle = (2 * Math.PI * k) / 120;
      context.lineTo(px(angle), py(thickness(clearance, x, y, angle) / clearance));
    }
    context.strokeStyle = colors.trail;
    context.lineWidth = 1.8;
    context.stroke();
    const { angle, film } = thinnest(clearance, x, y);
    context.strokeStyle = colors.mark;
    context.setLineDash([3, 3]);
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(px(angle), top);
    context.lineTo(px(angle), bottom);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.arc(px(angle), py(film / clearance), 3.5, 0, 2 * Math.PI);
    context.fillStyle = colors.mark;
    context.fill();
  }
}
