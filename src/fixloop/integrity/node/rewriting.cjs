"use strict";
// Appends to each ES module of the product what lets the recorder replace its exported functions: a binding can be
// assigned only in its own module, and only if it is no constant. Loaded as hooks of Node's module loader.
const { readFileSync, realpathSync } = require("node:fs");
const { fileURLToPath } = require("node:url");

const GAP = String.raw`(?:\s|/\*[^]*?\*/|//[^\n]*\n)`;
const START = String.raw`(?<=^[ \t]*|(?:[;}]|\*/)[ \t]*)`;
const FUNCTION = String.raw`(?:async${GAP}+)?function${GAP}*\*?|class`;
const DEFAULT = `${START}export${GAP}+default`;
const OWN = "fixloopDefault";
const RESERVED = new Set(
  ("arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally for "
    + "function if implements import in instanceof interface let new null package private protected public return static super "
    + "switch this throw true try typeof var void while with yield").split(" "),
);
let files;

function product() {
  files ??= new Set(JSON.parse(readFileSync(process.env.FIXLOOP_NODE_CALLS, "utf8")).files);
  return files;
}

function every(pattern) {
  return new RegExp(pattern, "gm");
}

/** The text of a module whose exported functions the recorder can replace. */
function rewritten(source, url) {
  let text = source
    .replace(every(`${DEFAULT}${GAP}+(?:${FUNCTION})(?=${GAP}*[({]|${GAP}+extends\\b)`), `$& ${OWN} `)
    .replace(every(`${DEFAULT}${GAP}+([\\w$]+)${GAP}*(?:;|$)`), (whole, name) =>
      every(`${START}(?:${FUNCTION}|const|let|var)${GAP}+${name.replaceAll("$", "\\$")}(?![\\w$])`).test(source)
        ? `export { ${name} as default };` : whole)
    .replace(every(`${DEFAULT}(?!${GAP}+(?:${FUNCTION})(?![\\w$]))`), `export { ${OWN} as default }; let ${OWN} = `)
    .replace(every(`${START}export${GAP}+const(?![\\w$]|${GAP}+enum\\b)`), "export let  ");
  const names = new Set([OWN]);
  // More names than are exported do no harm: only what the module exports is replaced.
  for (const pattern of [
    `${START}export${GAP}+(?:default${GAP}+)?(?:${FUNCTION})${GAP}+([\\w$]+)`,
    `${START}export${GAP}*\\{([^}]*)\\}(?!${GAP}*from)`,
    `${START}export${GAP}+(?:let|var)(?![\\w$])([^;]*?)(?:;|\\n[\\w/]|\\n*$(?![^]))`,
  ]) {
    for (const [, named] of text.matchAll(every(pattern))) {
      for (const [name] of named.slice(0, 2000).matchAll(/(?<![\w$])[a-z_$][\w$]*/gi)) if (!RESERVED.has(name)) names.add(name);
    }
  }
  text = text.replace(every(`${START}const(?=${GAP}+([\\w$]+))`), (whole, name) => (names.has(name) ? "let  " : whole));
  const bindings = [...names].map((name) => `[() => ${name}, (one) => { ${name} = one; }]`);
  return `${text}\n;import * as fixloopOwn from ${JSON.stringify(url)};`
    + `globalThis[Symbol.for("fixloop.calls")]?.(import.meta.url, fixloopOwn, [${bindings.join(", ")}]);\n`;
}

function replaced(url, loaded) {
  if (!url.startsWith("file:") || !/^module/.test(loaded.format ?? "") || loaded.source == null) return loaded;
  const bare = url.replace(/[?#].*/, "");
  if (!product().has(realpathSync(fileURLToPath(bare)))) return loaded;
  const source = Buffer.from(loaded.source).toString();
  // Node can load these hooks twice.
  return source.includes("fixloopOwn") ? loaded : { ...loaded, source: rewritten(source, url) };
}

exports.rewritten = rewritten;
exports.load = async (url, context, next) => replaced(url, await next(url, context));
exports.loadNow = (url, context, next) => replaced(url, next(url, context));
