import assert from "node:assert/strict";
import { test } from "node:test";
import { keep, recall } from "../src/stores/storage";

test("a browser that keeps nothing is no error", () => {
  const refuse = () => {
    throw new Error("SecurityError");
  };
  Object.defineProperty(globalThis, "localStorage", { get: refuse, configurable: true });
  assert.equal(recall("key"), null);
  keep("key", "text");
});
