import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import type { Link } from "../src/connection";
import type { BinaryMessage, Samples } from "../src/protocol";
import { merge, type Recorded, Recording, unpack } from "../src/recording";

function pack(values: number[]): string {
  const bytes = new Uint8Array(Float64Array.from(values).buffer);
  const planes = Array.from({ length: 8 }, (_, k) => [...bytes].filter((_, n) => n % 8 === k)).flat();
  return deflateSync(Uint8Array.from(planes)).toString("base64");
}

const wave = [0, -2.5, 1e300, Infinity, NaN, -1 / 3];

test("a block is unpacked bit for bit", async () => {
  assert.deepEqual([...(await unpack(pack(wave), 6))], wave);
  await assert.rejects(unpack(pack(wave), 5), /damaged/);
});

test("bins are merged with all their peaks, aligned, without what is no number", () => {
  const times = Float64Array.from([0, 1, 2, 3, 4]);
  const low = Float64Array.from([5, -9, NaN, 1, NaN]);
  const high = Float64Array.from([6, 7, NaN, 99, NaN]);
  assert.deepEqual([...merge(times, [[low, high]], 1, 5, 2)], [1, -9, 7, 2, 1, 99, 4, NaN, NaN]);
  assert.equal(merge(times, [[low, high]], 3, 3, 2).length, 0);
});

test("it answers as the server does", async () => {
  const seen: BinaryMessage[] = [];
  const links: Link[] = [];
  const signal = { path: "a.y", element_offset: 0, width: 1 };
  const run = {
    hello: { event: "hello" },
    events: [{ event: "signals", list: [signal] }, { event: "mechanisms", list: [{ path: "m" }] }],
    bins: 4, every: 1, times: pack([0, 1, 2, 3]), columns: [[pack([1, 5, -5, 2])]],
    poses: [["a", "b"].map((_, k) => pack([k, k + 1, k + 2, k + 3]))], newest: [2], last: 3,
    efforts: [[pack([9, 8, 7, 6])]], meshes: [[[1, btoa("solid")]]],
  } as unknown as Recorded; // prettier-ignore
  const own = new Recording(run, {
    link: (link) => links.push(link),
    event: () => {},
    binary: (message) => seen.push(message),
  });
  own.open();
  assert.deepEqual(links, [{ state: "open" }]);
  await assert.rejects(own.request("window", { scope: 1, t0: 0, t1: 3, bins: 2 }), /no scope/);
  await own.request("subscribe", { scope: 1, signals: ["a.y"], rate: 1, history: 9 });
  await own.request("window", { scope: 1, t0: 0, t1: 3, bins: 2 });
  await own.request("poses", { mechanism: "m", t: 1.5 });
  await own.request("watch", { on: true });
  await own.request("mesh", { mechanism: "m", number: 0 });
  await assert.rejects(own.request("mesh", { mechanism: "m", number: 1 }), /no mesh 1/);
  const [all, window, pose, efforts, latest, mesh] = seen as [Samples, Samples, ...BinaryMessage[]];
  assert.deepEqual([...all.values], [0, 1, 1, 1, 5, 5, 2, -5, -5, 3, 2, 2]);
  assert.equal(all.flags, 5);
  assert.deepEqual([...window.values], [0, 1, 5, 2, -5, 2]);
  assert.equal(window.flags, 2);
  assert.ok(pose?.kind === "poses" && pose.time === 2);
  assert.deepEqual([...pose.values], [2, 3]);
  assert.ok(efforts?.kind === "efforts" && efforts.time === 2);
  assert.deepEqual([...efforts.values], [7]);
  assert.ok(mesh?.kind === "mesh" && mesh.format === 1);
  assert.equal(new TextDecoder().decode(mesh.content), "solid");
  assert.ok(latest?.kind === "latest");
  assert.deepEqual([...latest.values], [2]);
});
