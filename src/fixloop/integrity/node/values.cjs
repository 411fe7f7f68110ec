"use strict";
// Which values can be passed to another process as they are, and the text by which answers are compared.
// Built-in functions are kept here before a project's code can replace them.
const types = require("node:util").types;
const { parse, stringify } = JSON;
const { isArray } = Array;
const { getPrototypeOf, getOwnPropertyDescriptor, is } = Object;
const { ownKeys, apply } = Reflect;
const { getTime, toISOString } = Date.prototype;
const isNumber = Number.isFinite;
const MOST_PARTS = 5000;
const MOST_LEAVES = 200;
const DEEPEST = 12;
const DATE = "new Date";

/** Whether a value is an object without a class. */
function isRecord(value) {
  if (typeof value !== "object" || value === null || isArray(value) || types.isProxy(value)) return false;
  const above = getPrototypeOf(value);
  return above === null || getPrototypeOf(above) === null;
}

/** Whether a value is made of numbers, texts, booleans, null, dates, lists and plain objects only. */
function isPlain(value, depth = 0) {
  if (value === null || typeof value === "boolean" || typeof value === "string") return true;
  if (typeof value === "number") return isNumber(value) && !is(value, -0);
  if (typeof value !== "object" || depth > DEEPEST || types.isProxy(value)) return false;
  const keys = ownKeys(value);
  if (types.isDate(value)) return !keys.length && !Number.isNaN(apply(getTime, value, []));
  if (isArray(value) ? keys.length !== value.length + 1 : !isRecord(value) || keys[0] === DATE) return false;
  return keys.every((key) => {
    if (key === "length" && isArray(value)) return true;
    const field = getOwnPropertyDescriptor(value, key);
    return typeof key === "string" && field.enumerable && "value" in field && isPlain(field.value, depth + 1);
  });
}

/** A copy of a plain value as JSON can say it, and a value from such a copy. */
function asJson(value) {
  return parse(stringify(value, function (key, each) {
    return types.isDate(this[key]) ? { [DATE]: apply(toISOString, this[key], []) } : each;
  }));
}

function fromJson(value) {
  return parse(stringify(value), (_, each) => (isRecord(each) && ownKeys(each).join() === DATE ? new Date(each[DATE]) : each));
}

/** A text that is the same for equal values in two processes, with the numbers and texts in the value. It runs no code
 * of the value, except the `next` of an iterator if `mayIterate`. */
function told(value, mayIterate = false) {
  const leaves = [], around = [];
  let parts = 0;

  function leaf(each, text) {
    if (leaves.length < MOST_LEAVES) leaves[leaves.length] = each;
    return text;
  }

  function listed(open, values, close, depth) {
    let text = open, comma = "";
    for (const each of values) {
      text += comma + shown(each, depth);
      comma = ", ";
    }
    return text + close;
  }

  function fields(each, depth) {
    let text = "{", comma = "";
    for (const key of ownKeys(each)) {
      const field = getOwnPropertyDescriptor(each, key);
      if (typeof key === "symbol" || !field?.enumerable) continue;
      text += `${comma}${stringify(key)}: ${"value" in field ? shown(field.value, depth) : "get"}`;
      comma = ", ";
    }
    return `${text}}`;
  }

  function shown(each, depth) {
    switch (typeof each) {
      case "string": return leaf(each, stringify(each));
      case "number": return isNumber(each) ? leaf(each, is(each, -0) ? "-0" : `${each}`) : `${each}`;
      case "bigint": return `${each}n`;
      case "symbol": return "symbol";
      case "function": return "function";
      case "object": break;
      default: return `${each}`;
    }
    if (each === null) return "null";
    for (const outer of around) if (outer === each) return "…";
    parts += 1;
    if (depth > DEEPEST || parts > MOST_PARTS) return "…";
    around[around.length] = each;
    const text = inside(each, depth + 1);
    around.length -= 1;
    return text;
  }

  function inside(each, depth) {
    if (types.isProxy(each)) return "proxy";
    if (isArray(each)) return listed("[", each, "]", depth);
    if (types.isDate(each)) return `Date ${Number.isNaN(+each) ? "invalid" : apply(toISOString, each, [])}`;
    if (types.isRegExp(each)) return `${each}`;
    if (types.isMap(each)) return listed("Map [", [...each], "]", depth);
    if (types.isSet(each)) return listed("Set [", [...each], "]", depth);
    if (types.isPromise(each)) return "promise";
    if (ArrayBuffer.isView(each)) return listed("bytes [", new Uint8Array(each.buffer, each.byteOffset, each.byteLength), "]", depth);
    if (types.isNativeError(each)) return `${each.name}: ${shown(each.message, depth)}${fields(each, depth)}`;
    if (types.isGeneratorObject(each) && typeof each[Symbol.iterator] === "function") {
      if (!mayIterate) return "iterator";
      const values = [];
      for (const one of each) if (values.push(one) >= 100) break;
      return listed("iterator [", values, "]", depth);
    }
    const above = getPrototypeOf(each);
    const own = above && getOwnPropertyDescriptor(above, "constructor")?.value?.name;
    return (own && own !== "Object" ? `${own} ` : "") + fields(each, depth);
  }

  return { text: shown(value, 0), leaves };
}

/** What is compared of an error: its message may legitimately change. */
function thrown(error) {
  return `raises ${error?.name ?? typeof error}${typeof error?.code === "string" ? ` ${error.code}` : ""}`;
}

module.exports = { asJson, fromJson, isPlain, isRecord, thrown, told };
