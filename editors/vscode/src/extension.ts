// The extension: starts the language server, shows the grid beside the text, and says how to debug.
import * as vscode from "vscode";
import { LanguageClient, State } from "vscode-languageclient/node";

import { Grid } from "./grid";

let client: LanguageClient | undefined;

function command(): { command: string; args: string[] } {
    const [program = "buda-emu", ...args] = vscode.workspace.getConfiguration("buda-emu").get<string[]>("command", []);
    return { command: program, args };
}

async function start(): Promise<void> {
    const program = command();
    client = new LanguageClient(
        "buda-emu",
        "BUDA netlists",
        { command: program.command, args: [...program.args, "lsp"] },
        { documentSelector: [{ language: "buda" }] },
    );
    try {
        await client.start();
    } catch (error) {
        client = undefined;
        const said = `The language server did not start: ${String(error)}. Is buda-emu[editor] installed?`;
        const settings = "Open Settings";
        if ((await vscode.window.showErrorMessage(said, settings)) === settings) {
            await vscode.commands.executeCommand("workbench.action.openSettings", "buda-emu.command");
        }
    }
}

async function stop(): Promise<void> {
    const running = client;
    client = undefined;
    if (running !== undefined && running.state !== State.Stopped) {
        await running.stop();
    }
}

// A YAML file with the sections of a netlist becomes one, as `buda-emu check DIR` knows them.
async function recognise(document: vscode.TextDocument): Promise<void> {
    const sections = ["devices", "queues", "graphs", "programs"];
    if (document.languageId !== "yaml") {
        return;
    }
    const text = document.getText();
    const found = sections.filter((name) => new RegExp(`^${name}[ \\t]*:`, "m").test(text));
    if (found.length >= 2) {
        await vscode.languages.setTextDocumentLanguage(document, "buda");
    }
}

class DebugAdapter implements vscode.DebugAdapterDescriptorFactory, vscode.DebugConfigurationProvider {
    createDebugAdapterDescriptor(): vscode.DebugAdapterDescriptor {
        const program = command();
        return new vscode.DebugAdapterExecutable(program.command, [...program.args, "debug", "--dap"]);
    }

    // F5 in a netlist without a launch.json debugs that netlist.
    resolveDebugConfiguration(
        _folder: vscode.WorkspaceFolder | undefined,
        given: vscode.DebugConfiguration,
    ): vscode.DebugConfiguration | undefined {
        const open = vscode.window.activeTextEditor?.document;
        if (!given.type && open?.languageId === "buda") {
            return { type: "buda-emu", request: "launch", name: "Debug this netlist", program: open.fileName, stopOnEntry: true };
        }
        return given;
    }
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
    const grid = new Grid(async (uri, line) => client?.sendRequest("buda/picture", { uri, line }));
    const adapter = new DebugAdapter();
    context.subscriptions.push(
        grid,
        vscode.commands.registerCommand("buda-emu.grid", () => grid.show()),
        vscode.commands.registerCommand("buda-emu.restart", async () => {
            await stop();
            await start();
        }),
        vscode.debug.registerDebugAdapterDescriptorFactory("buda-emu", adapter),
        vscode.debug.registerDebugConfigurationProvider("buda-emu", adapter),
        vscode.workspace.onDidOpenTextDocument(recognise),
        vscode.workspace.onDidChangeConfiguration(async (event) => {
            if (event.affectsConfiguration("buda-emu.command")) {
                await stop();
                await start();
            }
        }),
    );
    await start();
    await Promise.all(vscode.workspace.textDocuments.map(recognise));
}

export async function deactivate(): Promise<void> {
    await stop();
}
