// Keyed BLAKE2s with a code of 32 bytes, RFC 7693. Browsers offer their own functions only to pages
// that came encrypted, and a rig in its own network often has no certificate.

const IV = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];
// Section 2.7.
const SIGMA = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
// Columns, then diagonals, of the 4 by 4 words.
const LANES: [number, number, number, number][] = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
];
const BLOCK = 64;
const KEY = 32;
const SIZE = 32;

function rotate(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

/** Section 3.2: one block into the state; `count` is of all bytes so far. */
function compress(state: Uint32Array, block: DataView, count: number, last: boolean): void {
  const v = new Uint32Array(16);
  v.set(state);
  v.set(IV, 8);
  v[12]! ^= count >>> 0;
  v[13]! ^= Math.floor(count / 2 ** 32);
  if (last) v[14] = ~v[14]!;
  for (const order of SIGMA) {
    LANES.forEach(([a, b, c, d], lane) => {
      const x = block.getUint32(4 * order[2 * lane]!, true);
      const y = block.getUint32(4 * order[2 * lane + 1]!, true);
      v[a] = v[a]! + v[b]! + x;
      v[d] = rotate(v[d]! ^ v[a]!, 16);
      v[c] = v[c]! + v[d]!;
      v[b] = rotate(v[b]! ^ v[c]!, 12);
      v[a] = v[a]! + v[b]! + y;
      v[d] = rotate(v[d]! ^ v[a]!, 8);
      v[c] = v[c]! + v[d]!;
      v[b] = rotate(v[b]! ^ v[c]!, 7);
    });
  }
  for (let k = 0; k < 8; k += 1) state[k]! ^= v[k]! ^ v[k + 8]!;
}

/** The code of a message, given in parts, with a key of 32 bytes. */
export function mac(key: Uint8Array, ...parts: Uint8Array[]): Uint8Array {
  if (key.length !== KEY) throw new Error("a key has 32 bytes");
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  // The key is the first block; a message of no bytes has no other.
  const bytes = new Uint8Array(BLOCK + BLOCK * Math.ceil(length / BLOCK));
  bytes.set(key);
  let at = BLOCK;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  const state = new Uint32Array(IV);
  state[0]! ^= 0x01010000 | (KEY << 8) | SIZE;
  for (let start = 0; start < bytes.length; start += BLOCK) {
    const last = start + BLOCK === bytes.length;
    compress(state, new DataView(bytes.buffer, start, BLOCK), last ? BLOCK + length : start + BLOCK, last);
  }
  const code = new Uint8Array(SIZE);
  const view = new DataView(code.buffer);
  state.forEach((word, k) => view.setUint32(4 * k, word, true));
  return code;
}
