// The extension: starts the language server, shows the grid beside the text, and says how to debug.
import * as vscode from "vscode";
import { LanguageClient, State } from "vscode-languageclient/node";

import { install, isMissing, REQUIREMENT } from "./environment";
import { Grid } from "./grid";

let client: LanguageClient | undefined;
let storage: vscode.Uri | undefined;

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
        await offerHelp(error);
    }
}

// Says why the server did not start, and offers what may help: settings, or an installation if the program is missing.
async function offerHelp(error: unknown): Promise<void> {
    const settings = "Open Settings";
    const installation = "Install in a Virtual Environment";
    const offers = isMissing(error) ? [installation, settings] : [settings];
    const message = `The language server did not start: ${String(error)}. Is ${REQUIREMENT} installed?`;
    const choice = await vscode.window.showErrorMessage(message, ...offers);
    if (choice === settings) {
        await vscode.commands.executeCommand("workbench.action.openSettings", "buda-emu.command");
    } else if (choice === installation) {
        await installCommand();
    }
}

// Installs buda-emu into a virtual environment of the extension and sets `buda-emu.command`, which starts the server.
async function installCommand(): Promise<void> {
    if (storage === undefined || !vscode.workspace.isTrusted) {
        return;
    }
    const folder = vscode.Uri.joinPath(storage, "venv").fsPath;
    const options = { location: vscode.ProgressLocation.Notification, title: `Installing ${REQUIREMENT}` };
    try {
        const program = await vscode.window.withProgress(options, (progress) =>
            install(folder, (step) => {
                progress.report({ message: step });
            }),
        );
        const configuration = vscode.workspace.getConfiguration("buda-emu");
        await configuration.update("command", [program], vscode.ConfigurationTarget.Global);
    } catch (error) {
        await vscode.window.showErrorMessage(`${REQUIREMENT} was not installed: ${String(error)}`);
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
    storage = context.globalStorageUri;
    const grid = new Grid(async (uri, line) => client?.sendRequest("buda/picture", { uri, line }));
    const adapter = new DebugAdapter();
    context.subscriptions.push(
        grid,
        vscode.commands.registerCommand("buda-emu.grid", () => grid.show()),
        vscode.commands.registerCommand("buda-emu.install", installCommand),
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
