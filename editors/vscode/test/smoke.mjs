/** Loads the built extension with a stand-in for the editor, and checks which command it would start. */

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import Module from "node:module";

const require = createRequire(import.meta.url);

/** Whatever is asked of the editor's API is there, can be called, made and derived from. */
function anything(known = {}) {
  return new Proxy(class {}, {
    get: (target, name) => (name in known ? known[name] : name in target ? target[name] : anything()),
    apply: () => anything(),
  });
}

const settings = { command: [], arguments: ["--upstream", "0.6.2"] };
let python;
const commands = [];
const vscode = Object.assign(Object.create(anything()), {
  version: "1.91.0",
  workspace: anything({
    getConfiguration: () => ({ get: (name, otherwise) => settings[name] ?? otherwise }),
    workspaceFolders: undefined,
  }),
  extensions: { getExtension: () => python },
  commands: anything({ registerCommand: (name) => (commands.push(name), { dispose() {} }) }),
});
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

const extension = require("../dist/extension.js");
assert.deepEqual(Object.keys(extension).sort(), ["activate", "command", "deactivate"]);

assert.deepEqual(await extension.command(), ["mblint"]);
python = {
  isActive: true,
  exports: {
    environments: {
      getActiveEnvironmentPath: () => ({ path: "/venv" }),
      resolveEnvironment: async () => ({ executable: { uri: { fsPath: "/venv/bin/python" } } }),
    },
  },
};
assert.deepEqual(await extension.command(), ["/venv/bin/python", "-m", "mblint"]);
settings.command = ["uvx", "--from", "mblint[lsp]", "mblint"];
assert.deepEqual(await extension.command(), settings.command);

const declared = require("../package.json").contributes.commands.map((entry) => entry.command);
const source = (await import("node:fs")).readFileSync(new URL("../src/extension.ts", import.meta.url), "utf8");
for (const name of declared) {
  assert.ok(source.includes(`registerCommand("${name}"`), `${name} is declared and not registered`);
}
console.log("the extension loads, and finds its command");
