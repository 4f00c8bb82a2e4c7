// Sending a push while a pointer moves: one request under way, the newest force next. Letting go is
// never lost, as it is always the newest.

import type { Point3 } from "../protocol";
import { session } from "../stores/session.svelte";

export interface PushRequest {
  mechanism: string;
  /** Index of the body; null: let go. */
  body: number | null;
  point?: Point3;
  force?: Point3;
}

let next: PushRequest | null = null;
let busy = false;

export async function sendPush(request: PushRequest): Promise<void> {
  next = request;
  if (busy) return;
  busy = true;
  while (next) {
    const now: PushRequest = next;
    next = null;
    await session.send("push", { ...now });
  }
  busy = false;
}
