// The connection of a page in a notebook: batches of messages through a port of the widget's frame.
// notebook/_channel.py is the other end.

import type { Socket } from "./connection";

/** What the kernel sends; a text that is null stands for the next of the buffers. */
interface Batch {
  number: number;
  texts: (string | null)[];
  buffers: ArrayBuffer[];
}

/** The kernel sends the state five times a second, also while a cell runs. */
const SILENCE = 20_000;
/** As of a WebSocket. */
const [CONNECTING, OPEN, CLOSED] = [0, 1, 3];

export class PortSocket implements Socket {
  readyState: number = CONNECTING;
  binaryType: BinaryType = "arraybuffer";
  onopen: ((event: Event) => void) | null = null;
  onmessage: ((event: MessageEvent) => void) | null = null;
  onclose: ((event: CloseEvent) => void) | null = null;
  readonly #port: MessagePort;
  readonly #silence: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(port: MessagePort, silence = SILENCE) {
    this.#port = port;
    this.#silence = silence;
    port.onmessage = ({ data }) => this.#take(data as Batch);
    port.postMessage({ do: "open" });
    queueMicrotask(() => {
      if (this.readyState !== CONNECTING) return;
      this.readyState = OPEN;
      this.#listen();
      this.onopen?.(new Event("open"));
    });
  }

  send(text: string): void {
    this.#port.postMessage({ text });
  }

  close(): void {
    clearTimeout(this.#timer);
    this.readyState = CLOSED;
    this.#port.onmessage = null;
  }

  #take({ number, texts, buffers }: Batch): void {
    this.#listen();
    let next = 0;
    for (const text of texts) {
      if (this.readyState !== OPEN) return;
      this.onmessage?.(new MessageEvent("message", { data: text ?? buffers[next++] }));
    }
    this.#port.postMessage({ ack: number });
  }

  #listen(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.close();
      this.onclose?.({ code: 1006, reason: "the kernel does not answer" } as CloseEvent);
    }, this.#silence);
  }
}
