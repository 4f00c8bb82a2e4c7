import assert from "node:assert/strict";
import { test } from "node:test";
import { readArguments } from "../src/control/arguments";

test("arguments are read as Python writes them", () => {
  assert.deepEqual(readArguments(""), {});
  assert.deepEqual(readArguments(' k=2.5, n = -3,signs="+-", on=True, off=None '), {
    k: 2.5, n: -3, signs: "+-", on: true, off: null,
  }); // prettier-ignore
  assert.deepEqual(readArguments("a=[[1, 2.0], [-3e-2, .5],], b=(1,), c='x', d=[]"), {
    a: [[1, 2], [-0.03, 0.5]], b: [1], c: "x", d: [],
  }); // prettier-ignore
});

test("what is no plain value is none", () => {
  for (const text of ["2.0", "k", "k=", "k=x", "k=2*3", "k=f(1)", "k=1 n=2", "k=[1", "k=1.2.3", 'k="a', "k=1x", "=1"]) {
    assert.equal(readArguments(text), null, text);
  }
});
