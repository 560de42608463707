// Starts `pipec lsp` for programs that are open, and again when its path is changed.
'use strict';

const vscode = require('vscode');
const { LanguageClient, TransportKind } = require('vscode-languageclient/node');

let client;

async function start() {
    const command = vscode.workspace.getConfiguration('pipec').get('path');
    const server = { command, args: ['lsp'], transport: TransportKind.stdio };
    const documents = { documentSelector: [{ language: 'pipe' }, { language: 'flows' }] };
    client = new LanguageClient('pipec', 'pipec', server, documents);
    try {
        await client.start();
    } catch (error) {
        client = undefined;
        vscode.window.showErrorMessage(
            `${command} lsp does not start: ${error.message}. Is pipec installed? The setting pipec.path names it.`
        );
    }
}

async function stop() {
    const running = client;
    client = undefined;
    if (running) {
        await running.stop();
    }
}

async function activate(context) {
    const restart = async () => {
        await stop();
        await start();
    };
    context.subscriptions.push(
        vscode.commands.registerCommand('pipec.restart', restart),
        vscode.workspace.onDidChangeConfiguration((event) => {
            if (event.affectsConfiguration('pipec.path')) {
                return restart();
            }
        })
    );
    await start();
}

module.exports = { activate, deactivate: stop };
