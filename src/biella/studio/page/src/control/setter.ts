// Setting a value while a slider moves: one message under way for each path, the newest value next.

import type { JsonValue } from "../protocol";
import { session } from "../stores/session.svelte";

const next = new Map<string, JsonValue>();
const busy = new Set<string>();

export function setValue(path: string, value: JsonValue): void {
  session.values[path] = value;
  next.set(path, value);
  if (!busy.has(path)) void sendNext(path);
}

async function sendNext(path: string): Promise<void> {
  busy.add(path);
  while (next.has(path)) {
    const value = next.get(path);
    next.delete(path);
    const answer = await session.send("set", { path, value });
    if (!answer) {
      // Refused: show again what holds.
      delete session.values[path];
      next.delete(path);
    }
  }
  busy.delete(path);
}
