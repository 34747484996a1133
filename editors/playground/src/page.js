// The page: texts come in, go through the checker, and out again as findings, pictures and links.
import { applyFix, goTo, makeEditor, replaceText, showFindings } from "./editor.js";
import { make } from "./elements.js";
import { Engine } from "./engine.js";
import { drawCycles, drawDifference, drawFindings, drawGrid, drawRule, lightOp, summaryOf } from "./panels.js";
import { fromFragment, toFragment } from "./permalink.js";

const PAUSE = 60; // milliseconds without a change after which the text is checked
const FIRST = "attention.yaml";
const OPENED = "as it was opened";

const part = (name) => document.getElementById(name);
const engine = new Engine(report);
const opened = { name: FIRST, text: "" };
let picture = { svg: "", lines: {}, shown: [] };
let timer = 0;
let newest = Promise.resolve(); // the check of the newest text
let drawing = false;
let offline = false; // whether the files are kept, or being kept

const view = makeEditor(part("editor"), engine, {
  current: check,
  changed: () => {
    delete document.body.dataset.checked; // the milliseconds of the last check; tests wait for it
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE);
  },
  moved: (line) => {
    const op = lightOp(part("grid"), picture, line);
    if (op !== "" && !picture.shown.includes(op)) void draw();
  },
  format,
});

function report(text, failed = false) {
  part("status").textContent = text;
  part("status").classList.toggle("error", failed);
}

const text = () => view.state.doc.toString();
const cursorLine = () => view.state.doc.lineAt(view.state.selection.main.head).number;

// ------------------------------------------------------------------------------------------------------------ checking
/** Check the newest text, at once; the same promise for all who ask while nothing has changed. */
function check() {
  if (timer !== 0) {
    clearTimeout(timer);
    timer = 0;
    newest = checked("check", text());
  }
  return newest;
}

async function checked(method, ...args) {
  const source = args[0];
  const start = performance.now();
  const { findings, version } = await engine.ask(method, ...args);
  if (source !== text()) return; // a later version is on its way
  showFindings(view, findings);
  drawFindings(part("findings"), findings, {
    go: (line, column) => goTo(view, line, column),
    explain,
    fix: (fix) => applyFix(view, fix),
  });
  part("tab-findings").textContent = findings.length > 0 ? `Findings (${findings.length})` : "Findings";
  report(`${opened.name}: ${summaryOf(findings)} (buda-emu ${version})`);
  document.body.dataset.checked = String(Math.round(performance.now() - start));
  await draw();
  keepOffline();
}

/** Draw the grid where it is looked at. */
async function draw() {
  if (part("grid").hidden || drawing) return;
  drawing = true;
  const line = cursorLine();
  picture = await engine.ask("picture", line);
  drawing = false;
  drawGrid(part("grid"), picture, (target) => goTo(view, target));
  lightOp(part("grid"), picture, line);
}

async function explain(rule) {
  part("rule-id").value = rule;
  drawRule(part("rule-text"), rule, await engine.ask("explain", rule));
  choose("rule");
}

async function format() {
  await check();
  replaceText(view, await engine.ask("format"));
}

// ------------------------------------------------------------------------------------------------------ texts come in
async function open(source, name) {
  opened.name = name;
  opened.text = source;
  replaceText(view, source);
  clearTimeout(timer);
  timer = 0;
  newest = checked("open", source, name);
  await newest;
}

async function openFile(file) {
  if (file !== undefined) await open(await file.text(), file.name);
}

async function openExample(name) {
  const answer = await fetch(`netlists/${name}`);
  await open(await answer.text(), name);
  part("example").value = name;
}

/** The netlist of the address, where it has one. Returns whether it has. */
async function openLink() {
  try {
    const source = await fromFragment(location.hash);
    if (source === null) return false;
    await open(source, "from the link");
    return true;
  } catch (error) {
    report(`The link holds no netlist: ${error.message}`, true);
    return false;
  }
}

part("example").addEventListener("change", (event) => openExample(event.target.value));
part("open").addEventListener("click", () => part("file").click());
part("file").addEventListener("change", async (event) => {
  await openFile(event.target.files[0]);
  event.target.value = "";
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  void openFile(event.dataTransfer.files[0]);
}, { capture: true });
window.addEventListener("hashchange", openLink);

// --------------------------------------------------------------------------------------------------- texts go out again
part("format").addEventListener("click", format);
part("fix").addEventListener("click", async () => {
  await check();
  replaceText(view, await engine.ask("fix"));
});
part("save").addEventListener("click", () => {
  const anchor = make("a");
  anchor.href = URL.createObjectURL(new Blob([text()], { type: "text/yaml" }));
  anchor.download = opened.name.endsWith(".yaml") ? opened.name : "netlist.yaml";
  anchor.click();
  URL.revokeObjectURL(anchor.href);
});
part("link").addEventListener("click", async () => {
  const address = `${location.href.split("#")[0]}#${await toFragment(text())}`;
  history.replaceState(null, "", address);
  try {
    await navigator.clipboard.writeText(address);
    report(`A link with the whole netlist was copied: ${address.length} characters.`);
  } catch {
    report(`The address of this page now holds the whole netlist: ${address.length} characters.`);
  }
});

// ---------------------------------------------------------------------------------------------------------------- tabs
const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(name) {
  for (const tab of tabs) {
    const chosen = tab.getAttribute("aria-controls") === name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    part(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (name === "grid") void check().then(draw);
  if (name === "compare") void compare();
}

for (const [index, tab] of tabs.entries()) {
  tab.addEventListener("click", () => choose(tab.getAttribute("aria-controls")));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = tabs[(index + step + tabs.length) % tabs.length];
    choose(next.getAttribute("aria-controls"));
    next.focus();
  });
}

// ------------------------------------------------------------------------------------------------------------- compare
const other = make("select");
const difference = make("div");
part("compare").append(make("label", "", "With ", other), difference);
other.addEventListener("change", () => compare());

async function compare() {
  const name = other.value || OPENED;
  const before = name === OPENED ? opened.text : await (await fetch(`netlists/${name}`)).text();
  await check();
  drawDifference(difference, await engine.ask("diff", before, name));
}

part("ask-rule").addEventListener("submit", (event) => {
  event.preventDefault();
  void explain(part("rule-id").value.trim());
});

part("model").addEventListener("click", async () => {
  const box = part("cycles-text");
  box.replaceChildren(make("p", "", "Loading numpy and modelling…"));
  try {
    await check();
    drawCycles(box, await engine.ask("cycles"));
  } catch (error) {
    box.replaceChildren(make("p", "", `The cycles cannot be modelled: ${error.message}`));
  }
});

// --------------------------------------------------------------------------------------------------------------- begin
/** Keep all files for visits without a network: after the first check, so that they do not make it wait. */
function keepOffline() {
  if (offline || !("serviceWorker" in navigator)) return;
  offline = true;
  void navigator.serviceWorker.register("service-worker.js");
}

async function begin() {
  const files = await (await fetch("files.json")).json();
  part("example").replaceChildren(...files.netlists.map((name) => make("option", "", name)));
  other.replaceChildren(...[OPENED, ...files.netlists].map((name) => make("option", "", name)));
  if (!(await openLink())) await openExample(FIRST);
}

void engine.ready.then(() => {
  for (const name of ["format", "fix", "model"]) part(name).disabled = false;
});
void begin().catch((error) => report(`The page could not be loaded: ${error.message}`, true));
