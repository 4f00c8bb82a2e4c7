import assert from "node:assert/strict";
import { test } from "node:test";
import { PortSocket } from "../src/port";

/** The other end: what was sent, and a wait for more. */
function connect(silence = 60_000) {
  const { port1, port2 } = new MessageChannel();
  const sent: Record<string, unknown>[] = [];
  let wake = () => {};
  port1.onmessage = ({ data }) => {
    sent.push(data);
    wake();
  };
  const arrived = async (count: number) => {
    while (sent.length < count) await new Promise<void>((resolve) => (wake = resolve));
  };
  return { socket: new PortSocket(port2, silence), kernel: port1, sent, arrived, end: () => port1.close() };
}

test("batches arrive in order and are confirmed, requests go out", async () => {
  const { socket, kernel, sent, arrived, end } = connect();
  await new Promise<void>((resolve) => (socket.onopen = () => resolve()));
  assert.equal(socket.readyState, 1);
  const heard: unknown[] = [];
  socket.onmessage = ({ data }) => heard.push(data instanceof ArrayBuffer ? data.byteLength : data);
  socket.send("hello");
  kernel.postMessage({ number: 7, texts: ["a", null, "b", null], buffers: [new ArrayBuffer(8), new ArrayBuffer(16)] });
  await arrived(3);
  assert.deepEqual(sent, [{ do: "open" }, { text: "hello" }, { ack: 7 }]);
  assert.deepEqual(heard, ["a", 8, "b", 16]);
  socket.close();
  end();
});

test("silence of the kernel is the end of the connection", async () => {
  const { socket, end } = connect(20);
  const reason = await new Promise<string>((resolve) => (socket.onclose = (event) => resolve(event.reason)));
  assert.match(reason, /kernel does not answer/);
  assert.equal(socket.readyState, 3);
  end();
});

test("a connection that is closed hears nothing", async () => {
  const { socket, kernel, sent, arrived, end } = connect();
  socket.onopen = socket.onmessage = () => assert.fail("it is closed");
  socket.close();
  await arrived(1);
  kernel.postMessage({ number: 1, texts: ["late"], buffers: [] });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(sent.length, 1);
  end();
});
