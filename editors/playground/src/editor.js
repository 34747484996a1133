// The editor: CodeMirror, with completion, hovers and findings from the checker.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { fromMarkdown } from "./elements.js";
import { offsetOf, placeOf } from "./positions.js";

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--key)" },
  { tag: [tags.string, tags.number, tags.content, tags.attributeValue], color: "var(--text)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--comment)", fontStyle: "italic" },
]);

const LOOK = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--panel)", fontSize: "13px" },
  ".cm-scroller": { fontFamily: 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace' },
  ".cm-gutters": { color: "var(--soft)", backgroundColor: "var(--page)", borderRight: "1px solid var(--line)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 8%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--select)",
  },
  ".cm-tooltip, .cm-panels": { color: "var(--ink)", backgroundColor: "var(--panel)", border: "1px solid var(--line)" },
  ".cm-tooltip .hover": { padding: "0 10px", maxWidth: "min(36em, 90vw)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { color: "var(--ink)", backgroundColor: "var(--select)" },
});

const ICONS = { key: "property", word: "enum", queue: "variable", op: "function", variable: "variable" };

/** The completion source: what the language server offers. */
function completionOf(current) {
  return async (context) => {
    const word = context.matchBefore(/[\w$.]+/);
    if (!context.explicit && word === null) return null;
    await current();
    const offers = await context.view.engine.ask("complete", ...placeOf(context.state.doc, context.pos));
    return {
      from: word?.from ?? context.pos,
      options: offers.map((offer, rank) => ({
        label: offer.text,
        apply: offer.kind === "key" && !offer.tried ? `${offer.text}: ` : offer.text,
        detail: offer.kind,
        info: offer.doc || undefined,
        type: ICONS[offer.kind] ?? "constant",
        boost: Math.max(99 - rank, -99),
      })),
    };
  };
}

/** The hover source. */
function hoverOf(current) {
  return hoverTooltip(async (view, offset) => {
    await current();
    const text = await view.engine.ask("hover", ...placeOf(view.state.doc, offset));
    if (text === "") return null;
    return { pos: offset, create: () => ({ dom: fromMarkdown(text) }) };
  });
}

/** Make the editor. `current` waits until the checker has the newest text, `changed` is told of every change of the
 * text, `moved` of the line of the cursor. */
export function makeEditor(parent, engine, { current, changed, moved, format }) {
  const watch = EditorView.updateListener.of((update) => {
    if (update.docChanged) changed();
    if (update.docChanged || update.selectionSet) moved(update.state.doc.lineAt(update.state.selection.main.head).number);
  });
  const extensions = [
    lineNumbers(), foldGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(),
    highlightActiveLine(), highlightSelectionMatches(), lintGutter(), yaml(), LOOK, syntaxHighlighting(COLOURS),
    EditorState.tabSize.of(2),
    EditorView.contentAttributes.of({ "aria-label": "Netlist" }),
    autocompletion({ override: [completionOf(current)] }),
    hoverOf(current),
    keymap.of([
      { key: "Shift-Alt-f", run: () => { format(); return true; } },
      ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap,
      ...lintKeymap,
    ]),
    watch,
  ];
  const view = new EditorView({ state: EditorState.create({ extensions }), parent });
  view.engine = engine;
  return view;
}

/** Replace the text where it differs, so that the cursor keeps its place. */
export function replaceText(view, text) {
  const old = view.state.doc.toString();
  const shorter = Math.min(old.length, text.length);
  let start = 0;
  while (start < shorter && old[start] === text[start]) start += 1;
  let tail = 0;
  while (tail < shorter - start && old[old.length - 1 - tail] === text[text.length - 1 - tail]) tail += 1;
  view.dispatch({ changes: { from: start, to: old.length - tail, insert: text.slice(start, text.length - tail) } });
}

/** Underline findings, each with its fix as an action. */
export function showFindings(view, findings) {
  const doc = view.state.doc;
  const diagnostics = findings.map((finding) => {
    const from = offsetOf(doc, finding.line, finding.column);
    const to = offsetOf(doc, finding.line, Math.max(finding.end_column, finding.column + 1));
    return {
      from,
      to: Math.max(from, to),
      severity: finding.severity === "note" ? "info" : finding.severity,
      source: finding.rule,
      message: finding.message + (finding.hint ? ` (${finding.hint})` : ""),
      actions: finding.fix ? [{ name: "Fix", apply: () => applyFix(view, finding.fix) }] : [],
    };
  });
  diagnostics.sort((one, other) => one.from - other.from);
  view.dispatch(setDiagnostics(view.state, diagnostics));
}

/** Make the edits of a fix. */
export function applyFix(view, fix) {
  const doc = view.state.doc;
  const changes = fix.edits.map((edit) => ({
    from: offsetOf(doc, edit.line, edit.column),
    to: offsetOf(doc, edit.end_line, edit.end_column),
    insert: edit.text,
  }));
  view.dispatch({ changes });
}

/** Put the cursor at a place and show it. */
export function goTo(view, line, column = 1) {
  view.dispatch({ selection: { anchor: offsetOf(view.state.doc, line, column) }, scrollIntoView: true });
  view.focus();
}
