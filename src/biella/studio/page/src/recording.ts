// A recorded run inside the file of the page: it answers as the server does for a result.

import { type Answer, HISTORY, type Samples, type ServerEvent, SINGLE, WINDOW } from "./protocol";
import type { AbstractConnection, Handlers } from "./connection";
import { lowerBound } from "./scope/buffer";

/** What `biella page` writes. Blocks are 64-bit floats: bytes by significance, zlib, base64. */
export interface Recorded {
  hello: Extract<ServerEvent, { event: "hello" }>;
  events: ServerEvent[];
  /** Number of bins, and of rows in each. */
  bins: number;
  every: number;
  times: string;
  /** Of each value: least and most of each bin; one block where each bin is a row. */
  columns: string[][];
  /** Of each mechanism: 7 blocks for each body, the values of the first row of each bin. */
  poses: string[][];
  /** Of each mechanism: a block for each value of its efforts. */
  efforts: string[][];
  /** Of each mechanism: the files of its meshes, as [format, bytes in base64]. */
  meshes: [number, string][][];
  newest: (number | string)[];
  last: number;
}

const MOST_BINS = 4000; // in an answer

/** Unpack a block. */
export async function unpack(block: string, count: number): Promise<Float64Array> {
  const packed = Uint8Array.from(atob(block), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  if (planes.length !== 8 * count) throw new Error("the recorded run in this file is damaged");
  const bytes = new Uint8Array(8 * count);
  for (let k = 0, at = 0; k < 8; k += 1) {
    for (let n = k; n < bytes.length; n += 8, at += 1) bytes[n] = planes[at] ?? 0;
  }
  return new Float64Array(bytes.buffer);
}

export class Recording implements AbstractConnection {
  readonly #run: Recorded;
  readonly #handlers: Handlers;
  readonly #unpacked = new Map<string, Promise<Float64Array>>();
  readonly #scopes = new Map<number, { paths: string[]; columns: number[] }>();
  readonly #places = new Map<string, number[]>();
  /** Requests are answered in order. */
  #done: Promise<unknown> = Promise.resolve();

  constructor(run: Recorded, handlers: Handlers) {
    this.#run = run;
    this.#handlers = handlers;
    for (const event of run.events) {
      if (event.event !== "signals") continue;
      for (const { path, element_offset, width } of event.list) {
        this.#places.set(path, Array.from({ length: width }, (_, k) => element_offset + k));
      }
    }
  }

  open(): void {
    this.#handlers.event(this.#run.hello);
    this.#handlers.link({ state: "open" });
    for (const event of this.#run.events) this.#handlers.event(event);
  }

  request(name: string, fields: Record<string, unknown> = {}): Promise<Answer> {
    const answer = this.#done.then(async () => {
      await this.#act(name, fields);
      return { id: 0, ok: true };
    });
    this.#done = answer.catch(() => {});
    return answer;
  }

  async #act(name: string, fields: Record<string, unknown>): Promise<void> {
    const scope = Number(fields.scope);
    const times = await this.#unpack(this.#run.times);
    if (name === "subscribe") {
      const paths = fields.signals as string[];
      const columns = paths.flatMap((path) => this.#places.get(path) ?? [-1]);
      this.#scopes.set(scope, { paths, columns });
      const begin = lowerBound(times, this.#run.last - Number(fields.history ?? 0));
      const width = (this.#run.last - (times[0] ?? 0)) / Math.max(1, times.length - 1);
      const size = Math.round(1 / (Number(fields.rate) * width));
      await this.#send(scope, begin, times.length, size, HISTORY);
    } else if (name === "window") {
      const begin = Math.max(0, lowerBound(times, Number(fields.t0)) - 1);
      const end = Math.min(times.length, lowerBound(times, Number(fields.t1)) + 2);
      await this.#send(scope, begin, end, Math.ceil((end - begin) / Number(fields.bins)), WINDOW);
    } else if (name === "unsubscribe") {
      this.#scopes.delete(scope);
    } else if (name === "watch") {
      this.#handlers.binary({ kind: "latest", time: this.#run.last, values: Float64Array.from(this.#run.newest, Number) });
    } else if (name === "mesh") {
      this.#sendMesh(String(fields.mechanism), Number(fields.number));
    } else if (name === "poses" && fields.t !== undefined) {
      await this.#pose(String(fields.mechanism), times, Number(fields.t));
    }
  }

  async #send(scope: number, begin: number, end: number, asked: number, flag: number): Promise<void> {
    const columns = this.#scopes.get(scope)?.columns;
    if (!columns) throw new Error(`there is no scope ${scope}`);
    const size = Math.max(1, asked || 1, Math.ceil((end - begin) / MOST_BINS));
    const times = await this.#unpack(this.#run.times);
    const ranges: [Float64Array, Float64Array][] = [];
    for (const column of columns) {
      const [low = "", high = low] = this.#run.columns[column] ?? [];
      if (low) ranges.push([await this.#unpack(low), await this.#unpack(high)]);
      else ranges.push([new Float64Array(times.length).fill(NaN), new Float64Array(times.length).fill(NaN)]);
    }
    const values = merge(times, ranges, begin, end, size);
    const width = 1 + 2 * ranges.length;
    const flags = flag | (size === 1 && this.#run.every === 1 ? SINGLE : 0);
    const samples: Samples = { kind: "samples", scope, columns: width, rows: values.length / width, flags, values };
    this.#handlers.binary(samples);
  }

  async #pose(path: string, times: Float64Array, t: number): Promise<void> {
    const list = this.#run.events.find((event) => event.event === "mechanisms")?.list ?? [];
    const mechanism = list.findIndex((item) => item.path === path);
    const blocks = this.#run.poses[mechanism];
    if (!blocks) throw new Error(`there is no mechanism ${path}`);
    const row = Math.min(lowerBound(times, t), times.length - 1);
    const time = times[row] ?? t;
    this.#handlers.binary({ kind: "poses", mechanism, time, values: await this.#read(blocks, row) });
    const efforts = this.#run.efforts[mechanism] ?? [];
    if (efforts.length) this.#handlers.binary({ kind: "efforts", mechanism, time, values: await this.#read(efforts, row) });
  }

  async #read(blocks: string[], row: number): Promise<Float64Array> {
    const values = new Float64Array(blocks.length);
    for (const [k, block] of blocks.entries()) values[k] = (await this.#unpack(block))[row] ?? NaN;
    return values;
  }

  #sendMesh(path: string, number: number): void {
    const list = this.#run.events.find((event) => event.event === "mechanisms")?.list ?? [];
    const mechanism = list.findIndex((item) => item.path === path);
    const [format, packed] = this.#run.meshes[mechanism]?.[number] ?? [0, ""];
    if (!format) throw new Error(`there is no mesh ${number}`);
    const content = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0)).buffer;
    this.#handlers.binary({ kind: "mesh", mechanism, number, format, content });
  }

  #unpack(block: string): Promise<Float64Array> {
    let found = this.#unpacked.get(block);
    if (!found) {
      found = unpack(block, this.#run.bins);
      this.#unpacked.set(block, found);
    }
    return found;
  }
}

/** Merge bins, `size` into one: its time, then least and most of each range. */
export function merge(
  times: Float64Array, ranges: [Float64Array, Float64Array][], begin: number, end: number, size: number,
): Float64Array<ArrayBuffer> {
  const width = 1 + 2 * ranges.length;
  // Merged bins begin at multiples of their size, so that they do not dance while a view is moved.
  const first = Math.floor(begin / size);
  const count = end > begin ? Math.ceil(end / size) - first : 0;
  const values = new Float64Array(count * width);
  for (let n = 0; n < count; n += 1) {
    const from = Math.max(begin, (first + n) * size);
    const to = Math.min(end, (first + n + 1) * size);
    values[n * width] = times[from] ?? NaN;
    ranges.forEach(([low, high], k) => {
      let least = NaN;
      let most = NaN;
      for (let at = from; at < to; at += 1) {
        const a = low[at] ?? NaN;
        const b = high[at] ?? NaN;
        if (!(least <= a) && !Number.isNaN(a)) least = a;
        if (!(most >= b) && !Number.isNaN(b)) most = b;
      }
      values[n * width + 1 + 2 * k] = least;
      values[n * width + 2 + 2 * k] = most;
    });
  }
  return values;
}
