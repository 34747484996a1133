// Python and the package, in a worker of their own. The build puts pyodide/, files.json and package.zip beside this file.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const HERE = new URL("./", import.meta.url).href;
const FOLDER = "/package";
const NUMERIC = new Set(["cycles"]); // methods that need numpy, which comes from Pyodide's own distribution

const ready = start();
ready.then(
  () => self.postMessage({ ready: true }),
  (error) => self.postMessage({ failed: String(error) }),
);

async function start() {
  const [files, archive] = await Promise.all([
    fetch(`${HERE}files.json`).then((answer) => answer.json()),
    fetch(`${HERE}package.zip`).then((answer) => answer.arrayBuffer()),
  ]);
  const pyodide = await loadPyodide({ indexURL: `${HERE}pyodide/`, packageBaseUrl: files.packages });
  pyodide.unpackArchive(archive, "zip", { extractDir: FOLDER });
  pyodide.runPython(`
import sys
sys.path.insert(0, "${FOLDER}")
from buda_emu.app.editor.playground import PlaygroundSession
session = PlaygroundSession()
`);
  return { pyodide, session: pyodide.globals.get("session") };
}

self.onmessage = async ({ data }) => {
  const { number, method } = data;
  try {
    const { pyodide, session } = await ready;
    if (NUMERIC.has(method)) await pyodide.loadPackage("numpy", { messageCallback: () => {} });
    self.postMessage({ number, ...JSON.parse(session.answer(method, data.arguments)) });
  } catch (error) {
    self.postMessage({ number, error: String(error.message ?? error) });
  }
};
