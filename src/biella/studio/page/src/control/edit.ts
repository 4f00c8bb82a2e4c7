// Changes of the user's file. What is refused is shown to the user.

import { session } from "../stores/session.svelte";

/** Ask for a change; true if it was written. */
export async function edit(kind: string, fields: Record<string, unknown> = {}): Promise<boolean> {
  const answer = await session.send("edit", { kind, ...fields });
  if (answer) session.say(`Written: ${String(answer.done)}`);
  return answer !== null;
}
