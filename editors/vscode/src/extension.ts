/** Starts `mblint server` and connects it to the editor; all that is shown is made by the server. */

import * as vscode from "vscode";
import {
  LanguageClient,
  type LanguageClientOptions,
  type ServerOptions,
  TransportKind,
} from "vscode-languageclient/node";

let client: LanguageClient | undefined;
let output: vscode.LogOutputChannel;

/** What the Python extension offers of its API; it may be missing. */
interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(path: {
      readonly path: string;
    }): Promise<{ readonly executable: { readonly uri: vscode.Uri | undefined } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  if (extension === undefined) {
    return undefined;
  }
  try {
    return extension.isActive ? extension.exports : await extension.activate();
  } catch (error) {
    output.warn(`the Python extension could not be asked: ${String(error)}`);
    return undefined;
  }
}

/** Program and arguments: the setting, else the chosen interpreter, else what the search path has. */
export async function command(): Promise<[string, ...string[]]> {
  const settings = vscode.workspace.getConfiguration("mblint");
  const [program, ...given] = settings.get<string[]>("command", []);
  if (program !== undefined) {
    return [program, ...given];
  }
  const api = await pythonApi();
  if (api !== undefined) {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const environment = await api.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(folder));
    const interpreter = environment?.executable.uri?.fsPath;
    if (interpreter !== undefined) {
      return [interpreter, "-m", "mblint"];
    }
  }
  return ["mblint"];
}

async function start(): Promise<void> {
  const [program, ...leading] = await command();
  const more = vscode.workspace.getConfiguration("mblint").get<string[]>("arguments", []);
  const run = {
    command: program,
    args: [...leading, "server", ...more],
    transport: TransportKind.stdio,
    options: { env: { ...process.env, PYTHONUTF8: "1" } },
  };
  output.info(`starting ${[run.command, ...run.args].join(" ")}`);
  const server: ServerOptions = { run, debug: run };
  const options: LanguageClientOptions = {
    documentSelector: [
      { scheme: "file", language: "python" },
      { scheme: "untitled", language: "python" },
      { scheme: "file", language: "yaml" },
      { scheme: "untitled", language: "yaml" },
      { scheme: "file", language: "shellscript" },
      { scheme: "file", pattern: "**/*.{sbatch,slurm,sub,yaml-template,tpl}" },
      { scheme: "file", pattern: "**/{mblint,.mblint,pyproject}.toml" },
    ],
    outputChannel: output,
  };
  const started = new LanguageClient("mblint", "mblint", server, options);
  client = started;
  try {
    await started.start();
  } catch (error) {
    output.error(String(error));
    const show = "Show output";
    const chosen = await vscode.window.showErrorMessage(
      `mblint could not be started with "${run.command}". Install it with its extra lsp (pip install '.[lsp]' in a checkout of mblint), or set mblint.command.`,
      show,
    );
    if (chosen === show) {
      output.show();
    }
  }
}

async function stop(): Promise<void> {
  const stopping = client;
  client = undefined;
  if (stopping?.isRunning() === true) {
    await stopping.stop();
  }
}

async function restart(): Promise<void> {
  await stop();
  await start();
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  output = vscode.window.createOutputChannel("mblint", { log: true });
  context.subscriptions.push(
    output,
    vscode.commands.registerCommand("mblint.restart", restart),
    vscode.commands.registerCommand("mblint.showOutput", () => output.show()),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("mblint.command") || event.affectsConfiguration("mblint.arguments")) {
        await restart();
      }
    }),
  );
  const api = await pythonApi();
  if (api !== undefined) {
    context.subscriptions.push(api.environments.onDidChangeActiveEnvironmentPath(restart));
  }
  await start();
}

export async function deactivate(): Promise<void> {
  await stop();
}
