"use strict";
// Records the calls of functions that the product exports, with their arguments and answers, from outside the product.
// NODE_OPTIONS load it into each process of a check. It writes one line per call: [places, steps, answer]. Steps are
// calls: one of a function, or all calls of an object since the product made it.
const Module = require("node:module");
const { fileURLToPath, pathToFileURL } = require("node:url");
const { threadId } = require("node:worker_threads");
const types = require("node:util").types;
const vm = require("node:vm");
const { asJson, isPlain, isRecord, thrown, told } = require("./values.cjs");

const MOST_CALLS = 1200;
const MOST_OF_ONE = 600;
const MOST_LOOKED_AT = 10000;
const MOST_BYTES = 20000;
const MOST_STEPS = 20;
const OF_RUNNERS = /^(NODE_ENV|TEST|(JEST|VITEST|MOCHA|AVA|TAP|JASMINE|KARMA)\w*|npm_lifecycle_\w+)$/;
const OFFERED = /^(describe|context|suite|it|test|specify|expect|jest|vi|mocha|jasmine|(before|after)(Each|All)?|setup|teardown)$/;
// A test may replace these.
const { openSync, readFileSync, realpathSync, writeSync } = require("node:fs");
const settings = JSON.parse(readFileSync(process.env.FIXLOOP_NODE_CALLS, "utf8"));
const files = new Set(settings.files), changed = new Set(settings.changed);
const replacements = new WeakMap(), originals = new WeakMap();
const histories = new WeakMap();
const exported = new Map();
const written = new Set(), counts = new Map(), calls = new Map();
let depth = 0, out;

/** A function that records its calls; `historyOf` gives the earlier steps for what it is called on. */
function recording(value, historyOf, how) {
  if (typeof value !== "function" || originals.has(value)) return value;
  const proxy = new Proxy(value, {
    apply(target, self, given) {
      const on = originals.get(self) ?? self;
      return watched(() => Reflect.apply(target, on, given), historyOf(self), how, given);
    },
    construct(target, given, made) {
      const by = made === proxy ? target : made;
      return watched(() => Reflect.construct(target, given, by), historyOf(undefined), "new", given);
    },
  });
  originals.set(proxy, value);
  return proxy;
}

function watched(call, history, how, given) {
  if (depth > 0 || !history || written.size >= MOST_CALLS) return call();
  const key = `${history.place.file}:${history.place.name}:${how}`, called = (calls.get(key) ?? 0) + 1;
  calls.set(key, called);
  let count = given.length;
  while (count > 0 && given[count - 1] === undefined) count -= 1;
  const own = Array.prototype.slice.call(given, 0, count), isKnown = called <= MOST_LOOKED_AT && isPlain(own);
  const steps = isKnown && history.steps?.length < MOST_STEPS ? [...history.steps, [how, asJson(own)]] : null;
  // What was called with something else cannot be called again.
  if (how[0] === ".") history.steps = steps;
  let answer, raised = true;
  depth += 1;
  try {
    answer = call();
    raised = false;
  } catch (error) {
    answer = error;
    throw error;
  } finally {
    depth -= 1;
    if (steps) ended(history.place, steps, answer, raised);
  }
  return steps && /^[(n]/.test(how) ? made(answer, history.place, steps) : answer;
}

function ended(place, steps, answer, raised) {
  const kept = (textOf) => (value) => {
    try {
      write(place, steps, textOf(value));
    } catch {
      // Recording must not disturb what it records.
    }
  };
  const answered = kept((value) => told(value).text), failed = kept(thrown);
  if (types.isPromise(answer)) answer.then(answered, failed);
  else (raised ? failed : answered)(answer);
}

/** What a call answered; the calls of a function or object that it made are recorded as well. */
function made(answer, place, steps) {
  const [how, given] = steps.at(-1), history = { place, steps: [...steps.slice(0, -1), [how === "new" ? how : "make", given]] };
  if (typeof answer === "function") return recording(answer, () => history, "()");
  if (typeof answer !== "object" || answer === null || types.isProxy(answer)) return answer;
  histories.set(answer, history);
  if (isRecord(answer)) {
    inPlace(answer, (each, name) => recording(each, () => history, `.${name}`));
  }
  return answer;
}

/** Replace the functions that an object has, and what `property` makes of its getters. */
function inPlace(owner, other, property = (field) => field) {
  for (const name of Object.getOwnPropertyNames(owner)) {
    const field = Object.getOwnPropertyDescriptor(owner, name);
    if (name !== "constructor" && typeof field.value === "function" && field.writable) owner[name] = other(field.value, name);
    else if (field.get && field.configurable) Object.defineProperty(owner, name, property(field, name));
  }
}

function write(place, steps, answer) {
  const name = `${place.file}:${place.name}:${steps.map((step) => step[0])}`, count = counts.get(name) ?? 0;
  const places = [[place.file, place.name, place.isModule]];
  if (changed.has(place.file)) places.push(...others(place));
  const line = JSON.stringify([places, steps, answer]), asked = JSON.stringify([place, steps]);
  if (line.length > MOST_BYTES || written.has(asked) || written.size >= MOST_CALLS || count >= MOST_OF_ONE) return;
  written.add(asked);
  counts.set(name, count + 1);
  if (out === undefined) {
    out = openSync(`${settings.calls}/${process.pid}-${threadId}`, "a", 0o600);
    writeSync(out, `${JSON.stringify(surroundings())}\n`);
  }
  writeSync(out, `${line}\n`);
}

/** What shows here that a test runs: variables of runners, their program, and the functions that they offer. */
function surroundings() {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => OF_RUNNERS.test(name)));
  return { env, program: process.argv[1], offered: Object.getOwnPropertyNames(globalThis).filter((name) => OFFERED.test(name)) };
}

/** The other changed modules that export the same: before the fix, a moved function was in one of them. */
function others(place) {
  const found = [], wanted = valueAt(exported.get(place.file)?.value, place.name);
  for (const [file, { value, isModule }] of exported) {
    if (file === place.file || !changed.has(file) || !wanted) continue;
    for (const name of ["", ...Object.keys(value ?? {})]) {
      const there = valueAt(value, name);
      if (there && (there === wanted || originals.get(there) === (originals.get(wanted) ?? wanted))) found.push([file, name, isModule]);
    }
  }
  return found;
}

function valueAt(value, name) {
  try {
    return name ? name.split(".").reduce((inner, part) => inner[part], value) : value;
  } catch {
    return undefined;
  }
}

/** An exported value whose calls are recorded, also those of its methods. */
function replacement(value, place) {
  const isFunction = typeof value === "function";
  if (types.isProxy(value) || !(isFunction || isRecord(value))) return value;
  if (replacements.has(value)) return replacements.get(value);
  const proxy = isFunction ? recording(value, () => ({ place, steps: [] }), "()") : value;
  replacements.set(value, proxy);
  inPlace(value, (each, name) => replacement(each, { ...place, name: place.name ? `${place.name}.${name}` : name }));
  if (isFunction && value.prototype) {
    const on = (self) => histories.get(self);
    inPlace(
      value.prototype,
      (each, name) => recording(each, on, `.${name}`),
      (field, name) => ({ ...field, get: recording(field.get, on, `=${name}`) }),
    );
  }
  return proxy;
}

/** What a CommonJS module exports, in a copy if its properties cannot be replaced. */
function exportsOf(value, place) {
  const own = replacement(value, place), fields = isRecord(own) ? Object.getOwnPropertyDescriptors(own) : {};
  let isLeft = false;
  for (const [name, field] of Object.entries(fields)) {
    const found = field.get ? field.get.call(own) : field.value, other = replacement(found, { ...place, name });
    isLeft ||= other !== found;
    fields[name] = { value: other, enumerable: field.enumerable, configurable: true, writable: true };
  }
  return isLeft ? Object.create(Object.getPrototypeOf(own), fields) : own;
}

/** A function that rewritten modules call and that the product cannot replace. */
function offer(owner, name, value) {
  Object.defineProperty(owner, name, { value });
}

offer(globalThis, Symbol.for("fixloop.calls"), (url, namespace, bindings) => {
  const file = realpathSync(fileURLToPath(url.replace(/[?#].*/, "")));
  exported.set(file, { value: namespace, isModule: true });
  for (const [value, set] of bindings) {
    try {
      const found = value(), name = Object.keys(namespace).find((each) => namespace[each] === found);
      if (name) set(replacement(found, { file, name, isModule: true }));
    } catch {
      // No binding of this module, or one that is not set yet.
    }
  }
});

function loadedBy(load) {
  return function (module, file) {
    const ended = load.call(this, module, file);
    if (files.has(file) && !types.isModuleNamespaceObject(module.exports)) {
      try {
        module.exports = exportsOf(module.exports, { file, name: "", isModule: false });
      } catch {
        // What it exports throws: its calls are not recorded.
      }
      exported.set(file, { value: module.exports, isModule: false });
    }
    return ended;
  };
}

/** The text of a module that jest or vitest made a function of: at its end, what it exports is replaced. */
function compiled(code, options) {
  const file = `${options?.filename ?? options}`.replace(/^file:\/\/|\?.*/g, "");
  if (typeof code !== "string" || !files.has(file)) return code;
  const name = JSON.stringify(file);
  return code
    .replace(/\n\}\}\);\s*$/, (end) => `\n;require("node:vm").fixloopCalls?.(${name}, module);${end}`)
    .replace(/\n\}\}\s*$/, (end) => `\n;try { globalThis[Symbol.for("fixloop.exports")](${name}, __vite_ssr_exports__); } catch {}${end}`);
}

offer(vm, "fixloopCalls", (file, module) => {
  module.exports = exportsOf(module.exports, { file, name: "", isModule: isEsm(file) });
  exported.set(file, { value: module.exports, isModule: isEsm(file) });
});
offer(globalThis, Symbol.for("fixloop.exports"), (file, own) => {
  for (const name of Object.keys(own)) {
    const found = own[name], other = replacement(found, { file, name, isModule: true });
    if (other !== found) Object.defineProperty(own, name, { enumerable: true, configurable: true, get: () => other });
  }
  exported.set(file, { value: own, isModule: true });
});

/** Whether jest compiled this file from an ES module. */
function isEsm(file) {
  return /^\s*(?:import|export)\b(?!\s*\()/m.test(readFileSync(file, "utf8"));
}

const run = vm.runInThisContext;
vm.runInThisContext = (code, options) => run.call(vm, compiled(code, options), options);
const { compileFunction } = vm;
vm.compileFunction = (code, names, options) => {
  const own = compileFunction(code, names, options), at = names?.indexOf("module") ?? -1;
  if (at < 0 || !files.has(options?.filename)) return own;
  return function (...given) {
    const answer = own.apply(this, given);
    vm.fixloopCalls(options.filename, given[at]);
    return answer;
  };
};
vm.Script = class Script extends vm.Script {
  constructor(code, options) {
    super(compiled(code, options), options);
  }
};
for (const ending of [".js", ".ts", ".cts"]) {
  if (Module._extensions[ending]) Module._extensions[ending] = loadedBy(Module._extensions[ending]);
}
if (Module.registerHooks) Module.registerHooks({ load: require("./rewriting.cjs").loadNow });
// The thread that runs the hooks loads this file, too, and may register them again.
else Module.register?.(pathToFileURL(`${__dirname}/rewriting.cjs`));
