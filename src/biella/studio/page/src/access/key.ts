// The key of a server that lets only those who have it change something. It stays in this page:
// what is sent are codes that can be made with it. docs/reference/studio_protocol.md has the rules.

import { mac } from "./blake2s";

const NONCE = 16;
const KEY_DIGITS = 64;
const LABEL = encode("biella studio 1\n");
const FROM_PAGE = encode("biella page");
const FROM_SERVER = encode("biella server");

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function fromHex(text: string): Uint8Array {
  if (!/^([0-9a-f]{2})*$/.test(text)) throw new Error("these are no hexadecimal digits");
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}

/** Read a key as `biella key` writes it. */
export function readKey(text: string): Uint8Array {
  const digits = text.trim().toLowerCase();
  if (digits.length !== KEY_DIGITS || !/^[0-9a-f]*$/.test(digits)) {
    throw new Error(`A key has ${KEY_DIGITS} hexadecimal digits; these are ${digits.length} characters.`);
  }
  return fromHex(digits);
}

export function drawNonce(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(NONCE));
}

/** A request of the proof: its answer has `nonce` or `tag`. */
export type Ask = (name: string, fields: Record<string, string>) => Promise<Record<string, unknown>>;

/** What a request becomes that only the key allows. */
export interface Keyed {
  number: number;
  text: string;
  tag: string;
}

/** One connection on which this page has shown that it has the key. */
export class KeyedSession {
  #number = 0;
  readonly #key: Uint8Array;

  private constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Show the server that this page has the key, and see that the server has it, too. */
  static async open(key: Uint8Array, ask: Ask, nonce = drawNonce()): Promise<KeyedSession> {
    const challenge = await ask("challenge", { nonce: toHex(nonce) });
    const session = mac(key, LABEL, nonce, fromHex(String(challenge.nonce)));
    const answer = await ask("prove", { tag: toHex(mac(session, FROM_PAGE)) });
    if (answer.tag !== toHex(mac(session, FROM_SERVER))) {
      throw new Error("The server has not shown that it has this key.");
    }
    return new KeyedSession(session);
  }

  /** Each request has a number of its own, so that nobody can send it a second time. */
  seal(request: Record<string, unknown>): Keyed {
    this.#number += 1;
    const count = new Uint8Array(8);
    new DataView(count.buffer).setBigUint64(0, BigInt(this.#number), true);
    const text = JSON.stringify(request);
    return { number: this.#number, text, tag: toHex(mac(this.#key, count, encode(text))) };
  }
}
