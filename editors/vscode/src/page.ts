// The page of the grid, and which op a line belongs to. Nothing here knows VS Code, so that a test can look at it.

/** The op that is defined on a line, or last before it; "" above the first and where nothing is known. */
export function opAt(lines: Record<string, number>, line: number, last: number): string {
    let found = "";
    let best = 0;
    for (const [op, own] of Object.entries(lines)) {
        if (own <= line && own > best && line <= last) {
            found = op;
            best = own;
        }
    }
    return found;
}

/** Pixels that a picture is not made narrower than: its letters stay readable, and what does not fit is scrolled to. */
function leastWidth(svg: string): number {
    return Math.round(0.65 * Number(/ width="([\d.]+)"/.exec(svg)?.[1] ?? 0));
}

export function page(svg: string, nonce: string, op: string): string {
    const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-${nonce}'; img-src data:`;
    const body = svg === "" ? "<p>The netlist cannot be read yet: its problems say why.</p>" : svg;
    return `<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>Grid</title>
<style>
:root { color-scheme: light dark; }
body { background: var(--vscode-editor-background, Canvas); color: var(--vscode-editor-foreground, CanvasText);
    margin: 8px; font: 13px sans-serif; }
svg { max-width: 100%; min-width: ${leastWidth(svg)}px; height: auto; }
[data-name] { cursor: pointer; }
.lit > rect, rect.lit { stroke: #d00 !important; stroke-width: 3px !important; }
</style>
${body}
<script nonce="${nonce}">
const vscode = acquireVsCodeApi();
function light(op) {
    let first;
    for (const one of document.querySelectorAll("[data-name]")) {
        const lit = one.dataset.name === op;
        one.classList.toggle("lit", lit);
        first = first ?? (lit ? one : undefined);
    }
    first?.scrollIntoView({ block: "nearest", inline: "nearest" });
}
document.addEventListener("click", (event) => {
    const name = event.target.closest("[data-name]")?.dataset.name;
    if (name !== undefined) vscode.postMessage(name);
});
window.addEventListener("message", (event) => light(event.data));
light(${JSON.stringify(op).replaceAll("<", "\\u003c")});
</script>
</html>
`;
}
