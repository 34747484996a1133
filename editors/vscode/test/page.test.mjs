import assert from "node:assert/strict";
import { test } from "node:test";
import { buildSync } from "esbuild";

buildSync({ entryPoints: ["src/page.ts"], outfile: "out/page.mjs", format: "esm", bundle: true });
const { opAt, page } = await import("../out/page.mjs");

test("an op reaches to the next one", () => {
    const lines = { a: 4, b: 7 };
    assert.deepEqual([1, 4, 6, 7, 99].map((line) => opAt(lines, line, 100)), ["", "a", "a", "b", "b"]);
});

test("a name cannot end the script", () => {
    const made = page("<svg></svg>", "n", "</script><b>");
    assert.ok(!made.includes("</script><b>"));
    assert.ok(made.includes("script-src 'nonce-n'"));
});

test("a large picture is scrolled, not made too small to read", () => {
    assert.match(page('<svg class="bg" width="2000" height="9">', "n", ""), /min-width: 1300px/);
    assert.match(page("", "n", ""), /min-width: 0px/);
});

test("a netlist that cannot be read is said to be one", () => {
    assert.match(page("", "n", ""), /cannot be read yet/);
});
