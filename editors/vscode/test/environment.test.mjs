import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { buildSync } from "esbuild";

buildSync({
    entryPoints: ["src/environment.ts"], outfile: "out/environment.mjs", format: "esm", platform: "node", bundle: true,
});
const { findPython, install, isMissing } = await import("../out/environment.mjs");

/** A package named like the command, which needs nothing, so that the test asks no registry. */
function standIn(folder) {
    mkdirSync(join(folder, "buda_emu"));
    writeFileSync(join(folder, "buda_emu/__init__.py"), "def main():\n    print('here')\n");
    writeFileSync(
        join(folder, "setup.py"),
        "from setuptools import setup\nsetup(name='buda-emu', version='1', packages=['buda_emu'], "
            + "entry_points={'console_scripts': ['buda-emu=buda_emu:main']})\n",
    );
}

test("a Python that is not there is passed over, and none is an error with the names", async () => {
    assert.equal(await findPython(["no-such-python", "python3"]), "python3");
    await assert.rejects(findPython(["no-such-python"]), /no Python 3.11 or newer among: no-such-python/);
});

test("only a program that is missing is worth installing", () => {
    assert.ok(isMissing(new Error("spawn buda-emu ENOENT")));
    assert.ok(!isMissing(new Error("the server crashed 5 times")));
});

test("the environment has the command, and a second installation keeps it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "buda-emu-"));
    const source = join(folder, "source");
    mkdirSync(source);
    standIn(source);
    const steps = [];
    for (let round = 0; round < 2; round += 1) {
        const program = await install(join(folder, "venv"), (step) => steps.push(step), source);
        assert.equal(execFileSync(program, { encoding: "utf8" }).trim(), "here");
    }
    assert.equal(steps.length, 4);
});

test("what pip says is in the error", async () => {
    const folder = mkdtempSync(join(tmpdir(), "buda-emu-"));
    await assert.rejects(install(join(folder, "venv"), () => undefined, join(folder, "nothing")), /nothing/);
});
