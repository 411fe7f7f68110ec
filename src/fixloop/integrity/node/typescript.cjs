"use strict";
// Compiles the product's TypeScript to CommonJS by the compiler that the project has, because Node.js loads it only from
// 22.18 on, and then not all of it. A call whose answer is another one than in the tests is not judged.
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");

const ENDING = /\.[cm]?tsx?$/;
const MOST_FILES = 1000;
const MOST_CHARACTERS = 8 * 1024 * 1024;
const CHAINS = [["typescript"], ["esbuild"], ["tsx", "esbuild"], ["vite", "esbuild"], ["vitest", "vite", "esbuild"]];
const META = `const fixloopMeta = { url: require("node:url").pathToFileURL(__filename).href, filename: __filename, dirname: __dirname, env: process.env };`;

const made = new Map();

/** The compiled text of each file that a compiler of the project accepts. */
function compiled(files) {
  const found = {}, own = files.filter((file) => ENDING.test(file) && !/\.d\.[cm]?ts$/.test(file)).slice(0, MOST_FILES);
  const compile = own.length ? compilerFor(own[0]) : undefined;
  let left = MOST_CHARACTERS;
  for (const file of compile ? own : []) {
    try {
      const text = fs.readFileSync(file, "utf8");
      left -= text.length;
      const key = `${file}\0${text}`;
      if (left > 0 && !made.has(key)) made.set(key, `"use strict"; ${META} ${compile(text, file)}`);
      if (left > 0) found[file] = made.get(key);
    } catch {
      // It does not exist on this side, or is no module that CommonJS can express.
    }
  }
  return found;
}

/** A compiler may be installed only next to the tool that uses it. */
function compilerFor(file) {
  for (const chain of CHAINS) {
    try {
      let from = file;
      for (const name of chain.slice(0, -1)) from = Module.createRequire(from).resolve(`${name}/package.json`);
      const tool = Module.createRequire(from)(chain.at(-1));
      if (tool.transpileModule) return byTypescript(tool);
      if (tool.transformSync) return byEsbuild(tool);
    } catch {
      // Not here.
    }
  }
  return undefined;
}

function byTypescript(ts) {
  const settings = new Map();

  function settingsFor(folder) {
    if (!settings.has(folder)) {
      const file = ts.findConfigFile(folder, ts.sys.fileExists);
      const host = { ...ts.sys, readDirectory: () => [], onUnRecoverableConfigFileDiagnostic() {} };
      settings.set(folder, (file && ts.getParsedCommandLineOfConfigFile(file, {}, host)?.options) || {});
    }
    return settings.get(folder);
  }

  return (text, fileName) => {
    const { experimentalDecorators, emitDecoratorMetadata, useDefineForClassFields, ...own } = settingsFor(path.dirname(fileName));
    const jsx = ts.JsxEmit[own.jsx === ts.JsxEmit.ReactJSX ? "ReactJSX" : "React"];
    const { jsxImportSource, jsxFactory, jsxFragmentFactory } = own;
    const kept = { experimentalDecorators, emitDecoratorMetadata, useDefineForClassFields, jsxImportSource, jsxFactory, jsxFragmentFactory };
    const compilerOptions = { ...kept, jsx, module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022, esModuleInterop: true, inlineSourceMap: true };
    return ts.transpileModule(text, { fileName, compilerOptions }).outputText.replace(/\bimport\.meta\b/g, "fixloopMeta");
  };
}

function byEsbuild(esbuild) {
  const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } };
  return (text, sourcefile) => esbuild.transformSync(text, {
    loader: sourcefile.endsWith("x") ? "tsx" : "ts",
    format: "cjs",
    target: "node20",
    define: { "import.meta": "fixloopMeta" },
    sourcefile,
    sourcemap: "inline",
    tsconfigRaw,
  }).code;
}

/** Have `require` load these texts, and errors name the lines that they were made of. */
function use(texts) {
  process.setSourceMapsEnabled(true);
  for (const ending of [".ts", ".tsx", ".mts", ".cts"]) {
    const own = Module._extensions[ending] ?? Module._extensions[".js"];
    Module._extensions[ending] = (module, file) => {
      if (Object.hasOwn(texts, file)) module._compile(texts[file], file);
      else own(module, file);
    };
  }
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (name, ...rest) {
    try {
      return resolve.call(this, name, ...rest);
    } catch (error) {
      // An import names a module of TypeScript by the file that would be made of it.
      for (const ending of [".$1ts", ".$1tsx"]) {
        const other = name.replace(/\.([cm]?)jsx?$/, ending);
        try {
          if (other !== name) return resolve.call(this, other, ...rest);
        } catch {
          // Nor by this one.
        }
      }
      throw error;
    }
  };
}

module.exports = { compiled, use };
