// Files that the page gives to the browser: its own pictures, and what the server sends in parts.

import { type FilePart, LAST } from "../protocol";
import { session } from "../stores/session.svelte";

export function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser reads it after this function has returned.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Files of which parts have come, or that have been announced. */
export class Downloads {
  readonly #parts = new Map<number, Uint8Array<ArrayBuffer>[]>();
  readonly #names = new Map<number, string>();
  readonly #whole = new Set<number>();
  readonly #give: (content: Blob, name: string) => void;

  constructor(give: (content: Blob, name: string) => void) {
    this.#give = give;
  }

  /** A part may come before the answer that tells the name. */
  take({ file, flags, bytes }: FilePart): void {
    const parts = this.#parts.get(file) ?? [];
    parts.push(bytes);
    this.#parts.set(file, parts);
    if (flags & LAST) this.#whole.add(file);
    this.#finish(file);
  }

  name(file: number, name: string): void {
    this.#names.set(file, name);
    this.#finish(file);
  }

  /** Another connection counts its files anew. */
  clear(): void {
    this.#parts.clear();
    this.#names.clear();
    this.#whole.clear();
  }

  #finish(file: number): void {
    const name = this.#names.get(file);
    if (name === undefined || !this.#whole.has(file)) return;
    this.#give(new Blob(this.#parts.get(file) ?? []), name);
    this.#parts.delete(file);
    this.#names.delete(file);
    this.#whole.delete(file);
  }
}

const downloads = new Downloads(download);
let epoch = -1;
session.onFile = (part) => downloads.take(part);

/** Ask the server for a file. */
export async function fetchFile(fields: Record<string, unknown>): Promise<void> {
  if (epoch !== session.epoch) downloads.clear();
  epoch = session.epoch;
  const answer = await session.send("export", fields);
  if (answer) downloads.name(Number(answer.file), String(answer.name));
}
