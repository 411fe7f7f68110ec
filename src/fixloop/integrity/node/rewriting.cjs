"use strict";
// Appends to each ES module of the product what lets the recorder replace its exported functions: a binding can be
// assigned only in its own module, and only if it is no constant. Loaded as hooks of Node's module loader.
const { readFileSync, realpathSync } = require("node:fs");
const { fileURLToPath } = require("node:url");

const DECLARED = /^export\s+(?:default\s+)?(?:async\s+)?(?:function\s*\*?|class|let|var)\s+(?!extends\b)([\w$]+)/gm;
const LISTED = /^export\s*\{([^}]*)\}(?!\s*from)/gm;
const OWN = "fixloopDefault";
let files;

function product() {
  files ??= new Set(JSON.parse(readFileSync(process.env.FIXLOOP_NODE_CALLS, "utf8")).files);
  return files;
}

/** The text of a module whose exported functions the recorder can replace. */
function rewritten(source, url) {
  let text = source
    .replace(/^export\s+default\s+(?:async\s+)?(?:function\s*\*?|class)(?=\s*[({]|\s+extends\b)/gm, `$& ${OWN} `)
    .replace(/^export\s+default\s+([\w$]+)\s*;?\s*$/gm, (whole, name) =>
      new RegExp(`^(?:async\\s+)?(?:function\\s*\\*?|class|const|let|var)\\s+${name.replaceAll("$", "\\$")}\\b`, "m").test(source)
        ? `export { ${name} as default };` : whole)
    .replace(/^export\s+default\s+(?=async\s*\(|async\s+\w+\s*=>|\(|\w+\s*(?:\(|=>)|\{)(?!(?:async\s+)?function\b|class\b)/gm, `let ${OWN} = `)
    .replace(/^export\s+const(?=\s+[\w$])(?!\s+enum\b)/gm, "export let  ");
  if (text.includes(`let ${OWN} = `)) text += `\nexport { ${OWN} as default };`;
  const names = new Set([...text.matchAll(DECLARED)].map((found) => found[1]));
  for (const found of text.matchAll(LISTED)) {
    for (const each of found[1].split(",")) {
      const name = each.trim().split(/\s+as\s+/)[0];
      if (/^[\w$]+$/.test(name)) names.add(name);
    }
  }
  text = text.replace(/^const(?=\s+([\w$]+))/gm, (whole, name) => (names.has(name) ? "let  " : whole));
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
