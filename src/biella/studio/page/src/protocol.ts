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
  /** What is possible once this page has shown that it has the key. */
  locked?: string[];
  /** Whether it has. */
  keyed?: boolean;
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
  /** The studio has added it, to draw a mechanism. */
  added?: boolean;
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

/** A shape from a file, in axes of the body. */
export interface Visual {
  kind: "box" | "cylinder" | "sphere" | "mesh";
  /** Of a box its edges, of a cylinder radius and length, of a sphere its radius, of a mesh its scale. */
  size: number[];
  position: Point3;
  /** Euler parameters. */
  rotation: number[];
  color?: string;
  opacity?: number;
  /** The number of its file, to be asked for with `mesh`. */
  mesh?: number;
}

export interface Body {
  name: string;
  color: string;
  com?: Point3;
  mass?: number;
  shapes: BodyShape[];
  visuals?: Visual[];
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

/** The index of a body, -1 for the ground, and a point or direction in its axes. */
export type Place = [number, Point3];
export type Group = "joint" | "element" | "load" | "contact";

/** A force or torque that is drawn; its values are those of an efforts message from `value` on. */
export interface Effort {
  name: string;
  group: Group;
  kind: "force" | "torque";
  form: "vector" | "tension" | "axis";
  value: number;
  sign: number;
  place: Place;
  /** Where it acts, as three of the values, instead of `place`. */
  at?: number;
  /** Of a tension: its other end, and which components act. */
  other?: Place;
  mask?: number[];
  axis?: Place;
  /** Of a pin in a hole: values with whether and at which angle it touches; the hole. */
  contact?: number;
  angle?: number;
  hole?: Place;
  axes?: [Point3, Point3];
  radius?: number;
}

/** A journal in its bearing, or a pin in its hole; signals are paths. */
export interface Journal {
  path: string;
  kind: "film" | "clearance";
  clearance: number;
  parameter: string;
  ends: number;
  round: boolean;
  signals: { offset: string; [what: string]: string };
}

export interface Mechanism {
  path: string;
  name: string;
  planar: boolean;
  normal: Point3;
  up: Point3;
  gravity?: Point3;
  extent: number;
  efforts?: Effort[];
  can_push?: boolean;
  bodies: Body[];
  /** Of the ground. */
  visuals?: Visual[];
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
  state?: "waiting" | "connected" | "lost" | "disconnected" | "sending" | "closed";
  /** Seconds since its newest accepted frame; null: none yet. */
  age?: JsonNumber | null;
  frames?: number;
  missed?: number;
  losses?: number;
}

/** Durations of ticks in s: bars are their start and how many ticks are in them. */
export interface Durations {
  bars: [number, number][];
  p50: number;
  p99: number;
  max: number;
}

export interface Timing {
  ticks: number;
  /** Seconds of the clock between ticks; null: as fast as possible. */
  period: number | null;
  lateness: Durations;
  execution: Durations;
}

export type Phase = "running" | "paused" | "repeating" | "ended" | "latched" | "failed" | "none";

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
  /** Why there can be no branch; empty if there can. */
  obstacle?: string;
}

/** A run of the session, or a file that is compared. */
export interface Run {
  number: number;
  name: string;
  /** The run that it continues; 0: none. */
  parent: number;
  /** From here on it is another run than its parent. */
  since: number;
  /** null: it goes on. */
  end: number | null;
}

export interface Runs {
  present: number;
  list: Run[];
  hint: string;
}

/** What can be changed in the file: of blocks and parameters the reason why not, or "". */
export interface Editable {
  reason: string;
  /** The last change, which can be undone; "" if there is none. */
  undo: string;
  blocks: Record<string, string>;
  parameters: Record<string, string>;
  /** Prefixes of the diagrams that blocks can be added to. */
  diagrams: string[];
}

/** A block that can be added. */
export interface PaletteItem {
  type: string;
  doc: string;
  arguments: { name: string; needed: boolean }[];
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
  | { event: "journals"; list: Journal[] }
  | { event: "problems"; list: Problem[] }
  | ({ event: "state" } & RunState)
  | { event: "changed"; path: string; value: JsonValue }
  | { event: "events"; list: LocatedEvent[] }
  | ({ event: "timing" } & Timing)
  | { event: "marks"; run: number; list: LocatedEvent[]; total: number }
  | { event: "access"; can: string[]; locked: string[]; keyed: boolean }
  | ({ event: "runs" } & Runs)
  | ({ event: "editable" } & Editable)
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
/** Of poses and values: they are those of a recorded moment. */
export const MOMENT = 1;
/** Of a file: this is its last part. */
export const LAST = 1;

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
  flags?: number;
  mechanism: number;
  time: number;
  /** 7 numbers a body: p_WB, then Euler parameters. */
  values: Float64Array;
}
export interface Latest {
  kind: "latest";
  flags?: number;
  /** 0: those of the present run as a whole, for all parts of the page. */
  run?: number;
  time: number;
  values: Float64Array;
}
export interface EffortFrame {
  kind: "efforts";
  mechanism: number;
  flags?: number;
  time: number;
  values: Float64Array;
}
export interface MeshFile {
  kind: "mesh";
  mechanism: number;
  number: number;
  format: number;
  content: ArrayBuffer;
}
/** A part of a file that the page has asked for. */
export interface FilePart {
  kind: "file";
  file: number;
  flags: number;
  bytes: Uint8Array<ArrayBuffer>;
}
export type BinaryMessage = Samples | PoseFrame | Latest | EffortFrame | MeshFile | FilePart;

const HEAD_BYTES = 24;

/** Read a binary message; null where the kind is unknown or the length does not fit its head. */
export function decode(buffer: ArrayBuffer): BinaryMessage | null {
  if (buffer.byteLength < HEAD_BYTES) return null;
  const head = new DataView(buffer);
  const [kind, scope, columns, rows, flags] = [0, 4, 8, 12, 16].map((at) => head.getUint32(at, true)) as [
    number, number, number, number, number,
  ];
  if (kind === 5) {
    const content = buffer.slice(HEAD_BYTES);
    return content.byteLength === rows ? { kind: "mesh", mechanism: scope, number: columns, format: flags, content } : null;
  }
  if (kind === 6) {
    const bytes = new Uint8Array(buffer, HEAD_BYTES);
    return bytes.length === columns ? { kind: "file", file: scope, flags, bytes } : null;
  }
  if (buffer.byteLength % 8 !== 0) return null;
  // Every machine with a browser is little-endian today, so the numbers need no copy.
  const values = new Float64Array(buffer, HEAD_BYTES);
  const expected = rows * columns + (kind === 1 ? 0 : 1);
  if (values.length !== expected) return null;
  const time = values[0] ?? NaN;
  if (kind === 1) return { kind: "samples", scope, columns, rows, flags, values };
  if (kind === 2) return { kind: "poses", mechanism: scope, flags, time, values: values.subarray(1) };
  if (kind === 3) return { kind: "latest", run: scope, flags, time, values: values.subarray(1) };
  if (kind === 4) return { kind: "efforts", mechanism: scope, flags, time, values: values.subarray(1) };
  return null;
}

/** Return a number of JSON as a number. */
export function toNumber(value: JsonNumber | null | undefined): number {
  return value === null || value === undefined ? NaN : Number(value);
}
