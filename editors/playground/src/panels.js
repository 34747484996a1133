// What stands beside the editor: findings, the grid, a comparison, a rule, cycles.
import { link, make, table } from "./elements.js";

const WORDS = { error: "errors", warning: "warnings", note: "notes" };

/** The findings, each with a link to its place and one to its rule. */
export function drawFindings(panel, findings, { go, explain, fix }) {
  const boxes = findings.map((finding) => {
    const title = make("b", finding.severity, `${finding.severity} ${finding.rule}`);
    const box = make("div", `finding ${finding.severity}`, title, " ");
    box.append(link(`line ${finding.line}`, () => go(finding.line, finding.column)));
    box.append(make("div", "", finding.message + (finding.hint ? ` (${finding.hint})` : "")));
    box.append(link("explain", () => explain(finding.rule)));
    if (finding.fix) box.append(" · ", link("fix", () => fix(finding.fix)));
    return box;
  });
  panel.replaceChildren(make("p", "", summaryOf(findings)), ...boxes);
}

/** How many findings of which severity. */
export function summaryOf(findings) {
  const counts = Object.entries(WORDS)
    .map(([severity, words]) => [findings.filter((finding) => finding.severity === severity).length, severity, words])
    .filter(([count]) => count > 0)
    .map(([count, severity, words]) => `${count} ${count === 1 ? severity : words}`);
  return counts.length > 0 ? counts.join(", ") : "No findings: the netlist is accepted.";
}

/** The core grid. It lies in a tree of its own, because the picture brings its styles along. */
export function drawGrid(panel, picture, go) {
  const root = panel.shadowRoot ?? panel.attachShadow({ mode: "open" });
  if (picture.svg === "") {
    root.replaceChildren(make("p", "", "The netlist cannot be drawn yet: its findings say why."));
    return;
  }
  const svg = new DOMParser().parseFromString(picture.svg, "image/svg+xml").documentElement;
  const style = make("style", "", `
    svg { max-width: 100%; min-width: ${Math.round(0.5 * Number(svg.getAttribute("width")))}px; height: auto; }
    [data-name] { cursor: pointer; }
    .lit > rect, rect.lit { stroke: #d00 !important; stroke-width: 3px !important; }`);
  const drawn = document.importNode(svg, true);
  root.replaceChildren(style, drawn);
  drawn.addEventListener("click", (event) => {
    const line = picture.lines[event.target.closest("[data-name]")?.dataset.name];
    if (line !== undefined) go(line);
  });
}

/** Light the op that a line defines, or that is defined last before it. */
export function lightOp(panel, picture, line) {
  const above = Object.entries(picture.lines).filter(([, own]) => own <= line);
  const [op] = above.reduce((best, next) => (next[1] > best[1] ? next : best), ["", 0]);
  for (const element of panel.shadowRoot?.querySelectorAll("[data-name]") ?? []) {
    element.classList.toggle("lit", element.dataset.name === op);
  }
  return op;
}

/** What differs. */
export function drawDifference(box, difference) {
  if (difference.refused.length > 0) {
    box.replaceChildren(make("p", "", `Only netlists without errors are compared; refused: ${difference.refused.join(", ")}`));
    return;
  }
  const parts = [];
  for (const [title, names] of [["Gone", difference.gone], ["New", difference.new]]) {
    if (names.length > 0) parts.push(make("h2", "", title), table(["what", "name"], names));
  }
  if (difference.changes.length > 0) {
    const rows = difference.changes.map((row) => [`${row.kind} ${row.name}`, row.field, row.before, row.after]);
    parts.push(make("h2", "", "Changed"), table(["what", "field", "before", "after"], rows));
  }
  for (const [name, lines] of Object.entries(difference.programs)) {
    parts.push(make("h2", "", `Program ${name}`), make("pre", "", lines.join("\n")));
  }
  box.replaceChildren(...(parts.length > 0 ? parts : [make("p", "", "Both say the same.")]));
}

/** What a rule means. */
export function drawRule(box, name, rule) {
  if (rule === null) {
    box.replaceChildren(make("p", "", `There is no rule ${name}.`));
    return;
  }
  const parts = [make("h2", "", `${rule.id}: ${rule.summary}`)];
  for (const text of [rule.stage, ...rule.explanation, rule.fix ? `To do: ${rule.fix}.` : ""]) {
    if (text) parts.push(make("p", "", text));
  }
  box.replaceChildren(...parts);
}

/** Modelled cycles and the bottleneck of each epoch. */
export function drawCycles(box, cycles) {
  if (cycles.refused.length > 0) {
    box.replaceChildren(make("p", "", "The netlist has errors: its findings say which."));
    return;
  }
  const whole = (number) => Math.round(number).toLocaleString("en");
  const rows = cycles.epochs.map((epoch) => [epoch.graphs, whole(epoch.cycles_per_input), whole(epoch.total_cycles), epoch.bottleneck]);
  box.replaceChildren(
    make("p", "", `${cycles.chip}: ${whole(cycles.cycles)} cycles, ${whole(cycles.inputs_per_second)} inputs a second`),
    table(["graphs", "steady cycles", "cycles", "bottleneck"], rows),
    ...cycles.sentences.map((sentence) => make("p", "", sentence)),
  );
}
