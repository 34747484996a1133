// The virtual environment that the extension makes for buda-emu on request. Nothing here knows VS Code, so that a test
// can make one.
import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** What pip installs: the command, and what its language server needs. */
export const REQUIREMENT = "buda-emu[editor]";
/** Names under which a Python that is new enough may be found, the likeliest first. */
export const PYTHONS = process.platform === "win32" ? ["python", "py"] : ["python3", "python"];
const VERSION_CHECK = "import sys; sys.exit(sys.version_info < (3, 11))";

/** Whether the program that did not start is not there at all, so that installing it helps. */
export function isMissing(error: unknown): boolean {
    return /ENOENT|not found/i.test(String(error));
}

/** The path of a program of a virtual environment. */
export function programIn(folder: string, name: string): string {
    return process.platform === "win32" ? join(folder, "Scripts", `${name}.exe`) : join(folder, "bin", name);
}

/** The first Python of the names that is new enough for buda-emu; an error says what was looked for. */
export async function findPython(names: readonly string[] = PYTHONS): Promise<string> {
    for (const name of names) {
        try {
            await run(name, ["-c", VERSION_CHECK]);
            return name;
        } catch {
            // not there, or too old: the next name
        }
    }
    throw new Error(`no Python 3.11 or newer among: ${names.join(", ")}`);
}

/** Makes a virtual environment with buda-emu in a folder, and returns the path of the command in it. `report` gets a
 * line for each step. One that is there is brought up to date. */
export async function install(
    folder: string,
    report: (step: string) => void,
    requirement: string = REQUIREMENT,
    pythons: readonly string[] = PYTHONS,
): Promise<string> {
    const python = await findPython(pythons);
    report(`${python} -m venv ${folder}`);
    await run(python, ["-m", "venv", folder]);
    report(`pip install ${requirement}`);
    await run(programIn(folder, "python"), ["-m", "pip", "install", "--upgrade", requirement], { maxBuffer: 1 << 26 });
    const program = programIn(folder, "buda-emu");
    await access(program);
    return program;
}
