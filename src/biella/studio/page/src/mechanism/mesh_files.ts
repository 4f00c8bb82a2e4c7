// Files of shapes, asked for one after another: the server keeps no more than one for a page.

import type { MeshFile } from "../protocol";
import { session } from "../stores/session.svelte";

const PATIENCE = 20_000; // ms until a file that does not come is given up

/** Ask for some meshes of a mechanism; each is given as it comes, until the signal ends it. */
export async function fetchMeshes(
  mechanism: string, numbers: readonly number[], signal: AbortSignal, take: (file: MeshFile) => void,
): Promise<void> {
  for (const number of numbers) {
    if (signal.aborted) return;
    const file = await fetchOne(mechanism, number);
    if (file && !signal.aborted) take(file);
  }
}

async function fetchOne(mechanism: string, number: number): Promise<MeshFile | null> {
  let timer = 0;
  const file = await new Promise<MeshFile | null>((resolve) => {
    session.onMesh = (file) => file.number === number && resolve(file);
    timer = window.setTimeout(() => resolve(null), PATIENCE);
    void session.send("mesh", { mechanism, number }).then((answer) => answer ?? resolve(null));
  });
  clearTimeout(timer);
  session.onMesh = () => {};
  return file;
}
