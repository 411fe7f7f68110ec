"use strict";
// Repeats recorded calls, and variants of them, in the trees before and after a fix.
// `replay.cjs JOB`: for each side, put files in place, and let a process of its own answer the calls; in a test, with
// what showed in the recording processes that a test ran.
const childProcess = require("node:child_process");
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const { fileURLToPath, pathToFileURL } = require("node:url");
const types = require("node:util").types;
const vm = require("node:vm");
const typescript = require("./typescript.cjs");
const { fromJson, thrown, told } = require("./values.cjs");

const CALL_MILLISECONDS = 300;
const LEAST_MILLISECONDS = 25;
const MOST_TEXT = 20000;
const MOST_BYTES = 16 * 1024 * 1024;
const MOST_FRAMES = 50;
const OUT = 3;
const IN_A_TEST = { NODE_TEST_CONTEXT: "child-v8" };
const WRITING = /^(f?write|append|createWrite|mk|rm|unlink|rename|cp|copy|link|symlink|f?truncate|[fl]?(ch|utimes))/;
const { parse, stringify } = JSON;
const { writeSync } = fs;
const { setTimeout, clearTimeout } = globalThis;
const { cpuUsage, hrtime, reallyExit } = process;
const { apply } = Reflect;

function main() {
  const job = parse(fs.readFileSync(process.argv[2], "utf8"));
  const option = process.allowedNodeEnvironmentFlags.has("--permission") ? "--permission" : "--experimental-permission";
  for (const side of job.sides) {
    for (const [file, text] of Object.entries(side.place)) {
      fs.rmSync(file, { force: true });
      if (text === null) continue;
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.copyFileSync(text, file);
    }
    const out = fs.openSync(side.out, "wx", 0o600), compiled = `${side.out}.compiled`;
    // Here, because some compilers start a process.
    fs.writeFileSync(compiled, stringify(typescript.compiled(job.files)), { flag: "wx", mode: 0o600 });
    childProcess.spawnSync(
      process.execPath,
      [option, "--allow-fs-read=*", "--no-warnings", __filename, job.calls, `${job.seconds}`, compiled, job.test],
      { env: { ...process.env, ...(job.test && IN_A_TEST) }, stdio: ["ignore", "ignore", "ignore", out], timeout: (job.seconds + 5) * 1000, killSignal: "SIGKILL" },
    );
    fs.closeSync(out);
  }
}

let said = "", reads = false, opened = [], refused = [], written = 0, current;
const timed = new vm.Script("fixloopCall()");

/** Keeps the places that ask for what is refused, the innermost one first. */
function refuse() {
  Error.stackTraceLimit = MOST_FRAMES;
  Error.prepareStackTrace = undefined;
  const { stack } = new Error("refused");
  for (const [, file, row] of stack.matchAll(/((?:file:\/)?\/[^()\n]+):(\d+):\d+\)?$/gm)) {
    refused.push(`${file.startsWith("file:") ? fileURLToPath(file) : file}:${row}`);
  }
  throw new Error("refused");
}

/** Node's permissions refuse to write files and to start processes; here the rest is refused, and each asker is known. */
function confine() {
  for (const [owner, names] of [
    [require("node:net").Socket.prototype, ["connect"]],
    [require("node:net").Server.prototype, ["listen"]],
    [require("node:dgram").Socket.prototype, ["bind", "send", "connect"]],
    [globalThis, ["fetch"]],
    [require("node:worker_threads"), ["Worker"]],
    [childProcess, Object.keys(childProcess).filter((name) => /^(spawn|exec|fork)/.test(name))],
  ]) for (const name of names) owner[name] = refuse;
  for (const name of ["exit", "reallyExit", "abort", "kill"]) {
    process[name] = () => {
      throw new Error("refused");
    };
  }
  for (const stream of [process.stdout, process.stderr]) {
    stream.write = (text) => {
      if (stream === process.stdout) said += `${text}`;
      return true;
    };
  }
  for (const owner of [fs, fs.promises]) {
    for (const name of Object.keys(owner)) {
      const own = owner[name];
      // Its answers go to an open file, which the code that it calls could write to as well.
      if (WRITING.test(name)) owner[name] = refuse;
      if (!/^(read|open|exists|l?stat|access|createReadStream)/.test(name) || typeof own !== "function") continue;
      owner[name] = function (file, ...rest) {
        const isWrite = typeof rest[0] === "number" ? rest[0] & 3 : /[wa+]/.test(rest[0]);
        if (/^open(Sync)?$/.test(name) && isWrite) refuse();
        // Modules may be loaded late.
        if (!/\.[cm]?[jt]sx?$/.test(`${file}`)) {
          reads = true;
          if (/^(readFile|open|createReadStream)/.test(name)) opened.push(path.resolve(file instanceof URL ? fileURLToPath(file) : `${file}`));
        }
        return apply(own, this, [file, ...rest]);
      };
    }
  }
  Module.syncBuiltinESMExports();
  Object.defineProperty(globalThis, "fixloopCall", { value: () => current() });
  for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, () => {});
}

async function answer(file, seconds, compiled) {
  typescript.use(compiled);
  const calls = parse(fs.readFileSync(file, "utf8")), began = hrtime.bigint(), queue = [];
  confine();
  for (let number = 0; number < calls.length; number += 1) {
    refused = [];
    const { places, asked } = calls[number], found = await firstOf(places, compiled);
    // What a module does when it is loaded counts for all of its calls.
    if (!found && refused.length) written += writeSync(OUT, `${stringify([number, 0])} ${lineOf({ given: [] }, true)}\n`);
    for (let variant = 0; found && variant < asked.length; variant += 1) {
      queue[queue.length] = { id: stringify([number, variant]), ...found, steps: asked[variant], at: 0 };
    }
  }
  let next = 0, pending, share = CALL_MILLISECONDS;

  function isOver() {
    const used = cpuUsage(), passed = Number(hrtime.bigint() - began) / 1e9;
    return next >= queue.length || used.user + used.system > seconds * 1e6 || passed > 2 * seconds || written > MOST_BYTES;
  }

  function ended(isRaised, value) {
    written += writeSync(OUT, `${queue[next].id} ${lineOf(queue[next], isRaised, value)}\n`);
    next += 1;
    // What the modules read when they were loaded counts as the first call's.
    opened = [];
  }

  // A time limit takes longer to set than most calls take, so many calls share one.
  current = () => {
    const until = hrtime.bigint() + BigInt(share) * 1_000_000n;
    while (!pending && !isOver() && hrtime.bigint() < until) {
      try {
        pending = advanced(queue[next]);
        if (!pending) ended(false, queue[next].value);
      } catch (error) {
        ended(true, error);
      }
    }
  };
  while (!isOver()) {
    try {
      timed.runInThisContext({ timeout: 2 * share });
      if (pending) queue[next].value = await waited(pending);
    } catch (error) {
      // What hung with one value may hang with many: their time is that of all calls.
      if (!pending && error?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") share = Math.max(share >> 1, LEAST_MILLISECONDS);
      ended(true, error);
    }
    pending = undefined;
  }
}

/** What is exported at the first of the places that has it, and its owner. */
async function firstOf(places, compiled) {
  for (const [file, name, isModule] of places) {
    try {
      let owner, found = loaded(file, !isModule || Object.hasOwn(compiled, file)) ?? (await import(pathToFileURL(file)));
      for (const part of name ? name.split(".") : []) [owner, found] = [found, found[part]];
      if (typeof found === "function") return { owner, found };
    } catch {
      // Its file or a name in it may not exist on this side.
    }
  }
  return undefined;
}

/** What `require` makes of a file; undefined if it cannot be loaded so. */
function loaded(file, isScript) {
  try {
    return isScript ? Module.createRequire(file)(file) : undefined;
  } catch {
    return undefined;
  }
}

/** Make the steps of a call up to its end, or to one that has to be awaited, which is returned. */
function advanced(call) {
  call.given ??= fromJson(call.steps.map((step) => step[1]));
  if (call.at === 0) [said, reads, refused] = ["", false, []];
  while (call.at < call.steps.length) {
    const how = call.steps[call.at][0], given = call.given[call.at];
    if (call.at > 0 && /^[nm]/.test(call.steps[call.at - 1][0])) [call.made, call.owner] = [call.value, undefined];
    const on = call.made ?? call.found;
    if (how === "new") call.value = new on(...given);
    else if (how[0] === "=") call.value = on[how.slice(1)];
    else call.value = how[0] === "." ? on[how.slice(1)](...given) : apply(on, call.owner, given);
    call.at += 1;
    if (types.isPromise(call.value)) return call.value;
  }
  return undefined;
}

function lineOf(call, isRaised, value) {
  let shown = { text: thrown(value), leaves: [] }, raised = isRaised;
  try {
    if (!raised) shown = told(value, true);
  } catch (error) {
    [shown.text, raised] = [thrown(error), true];
  }
  const after = raised ? "" : told([call.given, call.made ?? 0]).text.slice(0, MOST_TEXT);
  const [printed, text] = [said.slice(0, MOST_TEXT), shown.text.slice(0, MOST_TEXT)];
  return stringify({ raised, reads, refused, opened: opened.join("\0"), after, said: printed, text, leaves: shown.leaves });
}

async function waited(value) {
  if (!types.isPromise(value)) return value;
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("late")), CALL_MILLISECONDS);
  });
  try {
    return await Promise.race([value, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Make this process look like those that wrote into this folder. */
function surround(folder) {
  for (const name of fs.readdirSync(folder).sort()) {
    for (const line of fs.readFileSync(path.join(folder, name), "utf8").split("\n").filter((each) => each[0] === "{")) {
      try {
        const { env, program, offered } = parse(line);
        Object.assign(process.env, env);
        process.argv = [process.argv[0], `${program}`];
        for (const each of offered) globalThis[each] ??= () => {};
      } catch {
        // Code of the project could write there, too.
      }
    }
  }
}

if (process.argv.length > 3) {
  const [, , calls, seconds, file, folder] = process.argv, compiled = parse(fs.readFileSync(file, "utf8"));
  const run = () => answer(calls, Number(seconds), compiled).finally(() => reallyExit.call(process, 0));
  if (folder) surround(folder);
  if (folder) require("node:test")("replay", run);
  else run();
} else {
  main();
}
