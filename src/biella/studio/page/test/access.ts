import assert from "node:assert/strict";
import { test } from "node:test";
import { mac } from "../src/access/blake2s";
import { fromHex, KeyedSession, readKey, toHex } from "../src/access/key";

const KEY = Uint8Array.from({ length: 32 }, (_, k) => k);
const count = (length: number) => Uint8Array.from({ length }, (_, k) => k);

// blake2-kat.json of the authors' reference package, keyed blake2s: messages 00 01 02 …
const KNOWN: [number, string][] = [
  [0, "48a8997da407876b3d79c0d92325ad3b89cbb754d86ab71aee047ad345fd2c49"],
  [1, "40d15fee7c328830166ac3f918650f807e7e01e177258cdc0a39b11f598066f1"],
  [63, "c65382513f07460da39833cb666c5ed82e61b9e998f4b0c4287cee56c3cc9bcd"],
  [64, "8975b0577fd35566d750b362b0897a26c399136df07bababbde6203ff2954ed4"],
  [65, "21fe0ceb0052be7fb0f004187cacd7de67fa6eb0938d927677f2398c132317a8"],
  [255, "3fb735061abc519dfe979e54c1ee5bfad0a9d858b3315bad34bde999efd724dd"],
];

test("codes of BLAKE2s are those of its authors", () => {
  for (const [length, code] of KNOWN) assert.equal(toHex(mac(KEY, count(length))), code, String(length));
  assert.equal(toHex(mac(KEY, count(40).subarray(0, 7), count(65).subarray(7))), KNOWN[4]![1]);
  assert.throws(() => mac(count(31)), /32 bytes/);
});

test("a key file is read as it is written, and nothing else is a key", () => {
  assert.deepEqual(readKey(`${toHex(KEY).toUpperCase()}\n`), KEY);
  assert.throws(() => readKey("00"), /64 hexadecimal digits; these are 2/);
  assert.throws(() => readKey("x".repeat(64)), /64 hexadecimal/);
});

/** A server that has the key, or claims to. */
function server(answers: (name: string, fields: Record<string, string>, session: Uint8Array) => Record<string, string>) {
  const text = (words: string) => new TextEncoder().encode(words);
  let session: Uint8Array = KEY;
  return async (name: string, fields: Record<string, string>) => {
    const nonce = count(16);
    if (name === "challenge") session = mac(KEY, text("biella studio 1\n"), fromHex(fields.nonce!), nonce);
    return name === "challenge" ? { nonce: toHex(nonce) } : answers(name, fields, session);
  };
}

test("page and server show each other the key, and numbers only grow", async () => {
  const bytes = (words: string) => new TextEncoder().encode(words);
  const ask = server((_, fields, session) => {
    assert.equal(fields.tag, toHex(mac(session, bytes("biella page"))));
    return { tag: toHex(mac(session, bytes("biella server"))) };
  });
  const keyed = await KeyedSession.open(KEY, ask, count(16).reverse());
  const session = mac(KEY, bytes("biella studio 1\n"), count(16).reverse(), count(16));
  for (const number of [1, 2]) {
    const sealed = keyed.seal({ do: "set", path: "für", value: number });
    assert.equal(sealed.number, number);
    const head = Uint8Array.of(number, 0, 0, 0, 0, 0, 0, 0);
    assert.equal(sealed.tag, toHex(mac(session, head, bytes(sealed.text))));
    assert.deepEqual(JSON.parse(sealed.text), { do: "set", path: "für", value: number });
  }
});

test("a server without the key is noticed", async () => {
  const ask = server((_, fields) => ({ tag: fields.tag! }));
  await assert.rejects(KeyedSession.open(KEY, ask), /has not shown/);
});
