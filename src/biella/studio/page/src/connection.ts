// The WebSocket: requests with answers, events, and reconnection with growing waits.

import { type Answer, type BinaryMessage, decode, PROTOCOL, type ServerEvent } from "./protocol";

export type Link =
  | { state: "connecting" }
  | { state: "open" }
  | { state: "lost"; retryAt: number; why: string }
  | { state: "refused"; why: string };

export interface Handlers {
  link(link: Link): void;
  event(event: ServerEvent): void;
  binary(message: BinaryMessage): void;
}

/** The server, or what answers in its place. */
export interface AbstractConnection {
  open(): void;
  request(name: string, fields?: Record<string, unknown>): Promise<Answer>;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;
// Code of a close for a policy: wrong token, wrong origin. Trying again would not help.
const REFUSED = 1008;

export class Connection implements AbstractConnection {
  #socket: WebSocket | null = null;
  #waiting = new Map<number, Waiting>();
  #id = 0;
  #wait = FIRST_WAIT;
  #timer = 0;
  readonly #url: string;
  readonly #token: string;
  readonly #handlers: Handlers;

  constructor(url: string, token: string, handlers: Handlers) {
    this.#url = url;
    this.#token = token;
    this.#handlers = handlers;
  }

  open(): void {
    clearTimeout(this.#timer);
    this.#socket?.close();
    this.#handlers.link({ state: "connecting" });
    const socket = new WebSocket(this.#url);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    socket.onopen = () => {
      this.request("hello", { token: this.#token, protocol: PROTOCOL }).then(
        () => {
          this.#wait = FIRST_WAIT;
          this.#handlers.link({ state: "open" });
        },
        (error: Error) => {
          if (this.#socket === socket && socket.readyState === WebSocket.OPEN) this.#refuse(error.message);
        },
      );
    };
    socket.onmessage = ({ data }) => {
      if (this.#socket === socket) this.#receive(data);
    };
    socket.onclose = (event) => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#fail("the connection was lost");
      if (event.code === REFUSED) this.#refuse(event.reason || "the token is wrong");
      else this.#retry(event.reason || "no answer from the server");
    };
  }

  /** Send a request; the answer, or an error with the server's text. */
  request(name: string, fields: Record<string, unknown> = {}): Promise<Answer> {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN) return Promise.reject(new Error("not connected"));
    const id = ++this.#id;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      socket.send(JSON.stringify({ id, do: name, ...fields }));
    });
  }

  #receive(data: unknown): void {
    if (data instanceof ArrayBuffer) {
      const message = decode(data);
      if (message) this.#handlers.binary(message);
      return;
    }
    const message = JSON.parse(String(data)) as Partial<Answer> & Partial<ServerEvent>;
    // The answer to `hello` is also an event; state must be there before its promise resolves.
    if (message.event !== undefined) this.#handlers.event(message as ServerEvent);
    if (message.id === undefined) return;
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.ok) waiting?.resolve(message as Answer);
    else waiting?.reject(new Error(message.error ?? "the server refused"));
  }

  #refuse(why: string): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.#handlers.link({ state: "refused", why });
  }

  #retry(why: string): void {
    this.#handlers.link({ state: "lost", retryAt: Date.now() + this.#wait, why });
    this.#timer = window.setTimeout(() => this.open(), this.#wait);
    this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT);
  }

  #fail(why: string): void {
    for (const waiting of this.#waiting.values()) waiting.reject(new Error(why));
    this.#waiting.clear();
  }
}
