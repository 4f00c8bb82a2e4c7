// Messages of the protocol, version 1, and its binary part. docs/reference/studio_protocol.md has
// the meaning of every field.

export const PROTOCOL = 1;

export type Point = [number, number];
export type Point3 = [number, number, number];
export type Rect = [number, number, number, number];
export type Kind = "real" | "integer" | "boolean" | "enumeration";
/** A number as JSON has it: values that are not finite are strings. */
export type JsonNumber = number | "NaN" | "Infinity" | "-Infinity";
export type JsonValue = JsonNumber | JsonValue[];

export interface Hello {
  protocol: number;
  name: string;
  biella: string;
  file: string;
  mode: "studio" | "attached" | "result";
  can: string[];
  step: number;
  bound?: string;
}

export interface Box {
  path: string;
  rect: Rect;
  body: Rect;
  rate: string;
  shape: "box" | "source" | "sink" | "triangle" | "circle" | "bar" | "inport" | "outport";
  strokes: Point[][];
  open_inputs: Point[];
}

export interface Frame {
  path: string;
  rect: Rect;
  depth: number;
}

export interface Wire {
  source: string;
  target: string;
  points: Point[];
  rate: string;
  width: number;
  depth: number;
  is_bus: boolean;
}

export interface Words {
  text: string;
  x: number;
  y: number;
  size: number;
  anchor: "left" | "center" | "right";
  bold: boolean;
  tone: "dark" | "soft";
}

export interface Rate {
  rate: string;
  text: string;
  color: string;
  dash: "solid" | "dashed" | "dotted";
}

export interface Picture {
  width: number;
  height: number;
  boxes: Box[];
  frames: Frame[];
  wires: Wire[];
  dots: { at: Point; rate: string }[];
  words: Words[];
  rates: Rate[];
}

export interface Port {
  path: string;
  unit: string | null;
  width: number;
  kind: Kind;
  doc: string;
}

export interface Block {
  type: string;
  rate: string;
  doc: string;
  inputs: Port[];
  outputs: Port[];
  parameters: string[];
}

export interface Diagram {
  name: string;
  picture: Picture;
  blocks: Record<string, Block>;
}

export interface Signal {
  path: string;
  block: string;
  unit: string | null;
  width: number;
  kind: Kind;
  names: string[];
  rate: string;
  /** Its value holds between ticks, so that it is drawn in steps. */
  held: boolean;
  doc: string;
  element_offset: number;
}

export interface Parameter {
  path: string;
  block: string;
  unit: string | null;
  shape: number[];
  value: JsonValue;
  default: JsonValue;
  tunable: boolean;
  min: JsonNumber | null;
  max: JsonNumber | null;
  doc: string;
  kind: Kind;
  names: string[];
}

export interface BodyShape {
  kind: string;
  points?: Point3[];
  axis?: Point3;
  round?: boolean;
  small?: boolean;
  radius?: number;
}

export interface Body {
  name: string;
  color: string;
  com?: Point3;
  shapes: BodyShape[];
  markers?: { name: string; point: Point3 }[];
}

export interface Joint {
  name: string;
  kind: string;
  body_i: number;
  body_j: number;
  p_i: Point3;
  p_j: Point3;
  axis_i: Point3;
}

export interface Element {
  name: string;
  kind: string;
  ends: [number, Point3][];
  is_load?: boolean;
}

export interface Mechanism {
  path: string;
  name: string;
  planar: boolean;
  normal: Point3;
  up: Point3;
  extent: number;
  bodies: Body[];
  joints: Joint[];
  elements: Element[];
  ground: { name: string; point: Point3 }[];
  /** Poses before a run: [p_WB, e0…e3] of each body. */
  given?: number[][];
}

export interface Problem {
  text: string;
  where: string[];
  severity: string;
}

export interface Device {
  name: string;
  driver?: string;
  state?: string;
  age?: JsonNumber | null;
  lost?: number;
}

export type Phase = "running" | "paused" | "ended" | "latched" | "failed" | "none";

export interface RunState {
  state: Phase;
  time: number;
  /** Of a record: its first time. */
  begin?: number;
  tick: number;
  factor: number | null;
  actual_factor: number | null;
  overruns: number;
  lateness_p99: number | null;
  reason: string;
  overridden: string[];
  devices: Device[];
}

export interface LocatedEvent {
  time: number;
  block: string;
  text: string;
}

export type ServerEvent =
  | ({ event: "hello" } & Hello)
  | ({ event: "diagram" } & Diagram)
  | { event: "signals"; list: Signal[]; aliases: Record<string, string>; interval: number }
  | { event: "parameters"; list: Parameter[]; inputs: Parameter[] }
  | { event: "mechanisms"; list: Mechanism[] }
  | { event: "problems"; list: Problem[] }
  | ({ event: "state" } & RunState)
  | { event: "changed"; path: string; value: JsonValue }
  | { event: "events"; list: LocatedEvent[] }
  | { event: "reload" };

export interface Answer {
  id: number;
  ok: boolean;
  error?: string;
  [field: string]: unknown;
}

export const HISTORY = 1;
export const WINDOW = 2;
export const SINGLE = 4;

export interface Samples {
  kind: "samples";
  scope: number;
  columns: number;
  rows: number;
  flags: number;
  values: Float64Array;
}
export interface PoseFrame {
  kind: "poses";
  mechanism: number;
  time: number;
  /** 7 numbers a body: p_WB, then Euler parameters. */
  values: Float64Array;
}
export interface Latest {
  kind: "latest";
  time: number;
  values: Float64Array;
}
export type BinaryMessage = Samples | PoseFrame | Latest;

const HEAD_BYTES = 24;

/** Read a binary message; null where the kind is unknown or the length does not fit its head. */
export function decode(buffer: ArrayBuffer): BinaryMessage | null {
  if (buffer.byteLength < HEAD_BYTES || buffer.byteLength % 8 !== 0) return null;
  const head = new DataView(buffer);
  const [kind, scope, columns, rows, flags] = [0, 4, 8, 12, 16].map((at) => head.getUint32(at, true)) as [
    number, number, number, number, number,
  ];
  // Every machine with a browser is little-endian today, so the numbers need no copy.
  const values = new Float64Array(buffer, HEAD_BYTES);
  const expected = rows * columns + (kind === 1 ? 0 : 1);
  if (values.length !== expected) return null;
  const time = values[0] ?? NaN;
  if (kind === 1) return { kind: "samples", scope, columns, rows, flags, values };
  if (kind === 2) return { kind: "poses", mechanism: scope, time, values: values.subarray(1) };
  if (kind === 3) return { kind: "latest", time, values: values.subarray(1) };
  return null;
}

/** Return a number of JSON as a number. */
export function toNumber(value: JsonNumber | null | undefined): number {
  return value === null || value === undefined ? NaN : Number(value);
}
