// The WebSocket, or the port of a notebook: requests with answers, events, and reconnection with growing waits.

import { KeyedSession } from "./access/key";
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
  /** Show that this page has the key of the server; null forgets it. */
  unlock?(key: Uint8Array | null): Promise<void>;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;
// Code of a close for a policy: wrong token, wrong origin. Trying again would not help.
const REFUSED = 1008;

/** What a connection needs of a WebSocket. */
export interface Socket {
  readonly readyState: number;
  binaryType: BinaryType;
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  send(text: string): void;
  close(): void;
}

export class Connection implements AbstractConnection {
  #socket: Socket | null = null;
  #waiting = new Map<number, Waiting>();
  #id = 0;
  #wait = FIRST_WAIT;
  #timer = 0;
  readonly #make: () => Socket;
  /** Stays here: after the connection was lost, the next one is unlocked with it. */
  #key: Uint8Array | null = null;
  #keyed: KeyedSession | null = null;
  #locked = new Set<string>();
  readonly #token: string;
  readonly #handlers: Handlers;

  constructor(make: () => Socket, token: string, handlers: Handlers) {
    this.#make = make;
    this.#token = token;
    this.#handlers = handlers;
  }

  open(): void {
    clearTimeout(this.#timer);
    this.#socket?.close();
    this.#keyed = null;
    this.#handlers.link({ state: "connecting" });
    const socket = this.#make();
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    socket.onopen = () => {
      this.request("hello", { token: this.#token, protocol: PROTOCOL }).then(
        (hello) => {
          this.#wait = FIRST_WAIT;
          this.#locked = new Set(hello.locked as string[] | undefined);
          if (this.#key) this.unlock(this.#key).catch(() => {});
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
    if (this.#keyed && this.#locked.has(name)) {
      return this.#send("keyed", { ...this.#keyed.seal({ do: name, ...fields }) });
    }
    return this.#send(name, fields);
  }

  async unlock(key: Uint8Array | null): Promise<void> {
    this.#key = this.#keyed = null;
    if (!key) {
      this.open(); // the server forgets the proof with the connection
      return;
    }
    const socket = this.#socket;
    const keyed = await KeyedSession.open(key, (name, fields) => this.#send(name, fields));
    if (this.#socket !== socket) throw new Error("the connection was lost");
    this.#key = key;
    this.#keyed = keyed;
  }

  #send(name: string, fields: Record<string, unknown>): Promise<Answer> {
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
