// The grid beside the text: the server's picture in a webview; the op that the cursor is in is lit.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

import { opAt, page } from "./page";

interface Picture {
    svg: string;
    lines: Record<string, number>;
    shown: string[];
}

const PAUSE = 300; // milliseconds without a change after which the picture is drawn anew

export class Grid implements vscode.Disposable {
    private panel: vscode.WebviewPanel | undefined;
    private editor: vscode.TextEditor | undefined;
    private lines: Record<string, number> = {};
    private shown: string[] = [];
    private timer: NodeJS.Timeout | undefined;
    private readonly watched: vscode.Disposable[];

    constructor(private readonly ask: (uri: string, line: number) => Promise<Picture | undefined>) {
        this.watched = [
            vscode.window.onDidChangeTextEditorSelection((event) => {
                if (event.textEditor.document === this.editor?.document) {
                    this.light(event.selections[0].active.line + 1);
                }
            }),
            vscode.window.onDidChangeActiveTextEditor((editor) => {
                if (this.panel !== undefined && editor?.document.languageId === "buda") {
                    this.editor = editor;
                    void this.draw();
                }
            }),
            vscode.workspace.onDidChangeTextDocument((event) => {
                if (this.panel !== undefined && event.document === this.editor?.document) {
                    clearTimeout(this.timer);
                    this.timer = setTimeout(() => void this.draw(), PAUSE);
                }
            }),
        ];
    }

    async show(): Promise<void> {
        this.editor = vscode.window.activeTextEditor ?? this.editor;
        if (this.panel === undefined) {
            const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
            this.panel = vscode.window.createWebviewPanel("buda-emu.grid", "Grid", column, { enableScripts: true });
            this.panel.onDidDispose(() => (this.panel = undefined));
            this.panel.webview.onDidReceiveMessage((op: unknown) => this.go(op));
        }
        await this.draw();
    }

    private async draw(): Promise<void> {
        const editor = this.editor;
        if (editor === undefined || this.panel === undefined) {
            return;
        }
        const picture = await this.ask(editor.document.uri.toString(), editor.selection.active.line + 1);
        if (this.panel === undefined || editor !== this.editor) {
            return;
        }
        this.lines = picture?.lines ?? {};
        this.shown = picture?.shown ?? [];
        this.panel.webview.html = page(picture?.svg ?? "", randomBytes(16).toString("hex"), this.at(editor));
    }

    private at(editor: vscode.TextEditor): string {
        return opAt(this.lines, editor.selection.active.line + 1, editor.document.lineCount);
    }

    private light(line: number): void {
        const op = opAt(this.lines, line, this.editor?.document.lineCount ?? line);
        if (op !== "" && !this.shown.includes(op)) {
            void this.draw(); // it runs in another epoch
        } else {
            void this.panel?.webview.postMessage(op);
        }
    }

    private go(op: unknown): void {
        const line = typeof op === "string" ? this.lines[op] : undefined;
        if (line !== undefined && this.editor !== undefined) {
            const start = new vscode.Position(line - 1, 0);
            void vscode.window.showTextDocument(this.editor.document, {
                viewColumn: this.editor.viewColumn,
                selection: new vscode.Range(start, start),
            });
        }
    }

    dispose(): void {
        clearTimeout(this.timer);
        this.panel?.dispose();
        for (const one of this.watched) {
            one.dispose();
        }
    }
}
