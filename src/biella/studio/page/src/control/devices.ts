// What states of devices mean.

import type { Device } from "../protocol";

/** Whether somebody has to look at a device: no frames of it have come for its timeout. */
export function isBad(state: Device["state"]): boolean {
  return state === "lost" || state === "disconnected";
}
