// The classes of Java that scripts use most, under the names that Rhino and Nashorn give them: `java.util.UUID`,
// `Packages.java.text.SimpleDateFormat`, `Java.type('java.lang.Thread')`, `importPackage(java.util)`, `new JavaImporter(…)`.
// A class that is not here throws when it is used, with its name; so does a method or constant that a class does not have.
//
// The files of this directory are parts of two functions (`engine.rs` joins them). Here: texts, bytes, java.lang.

const { defineProperty } = Object;
const call = (what, ...given) => native.java(what, given.map(String));
const nothing = name => {
  throw new TypeError('the Java class `' + name + '` is not available here');
};
/** Throws an exception of Java, by its simple name. */
const fail = (exception, message) => {
  throw new (exceptions.get(exception))(message);
};
/** What is asked of an object or class that it does not have throws, with its name. */
const guard = (object, name) => {
  const parent = Object.getPrototypeOf(object) || Object.create(null);
  const traps = {
    get(target, key, receiver) {
      if (typeof key === 'symbol' || key in target || key === 'toJSON' || key === 'then' || /^\d+$/.test(key)) return Reflect.get(target, key, receiver);
      throw new TypeError('`' + name + '.' + key + '` is not available here');
    },
  };
  // What a class extends is called by `super`; what a prototype inherits from stays in the chain, for `instanceof`.
  Object.setPrototypeOf(object, new Proxy(typeof parent === 'function' ? parent : Object.freeze(Object.create(parent)), traps));
};
/** The classes of texts, formats, times and large numbers, which are evaluated when one of them is first used. */
let lateClasses;
const late = () => {
  if (lateClasses === undefined) lateClasses = native.javaLate()(native, { call, bytesOf, textOf, hash, nothing, fail, typeName, javaText, KEY, JavaDate, StringBuilder, Locale, TimeZone, Double, ArrayList });
  return lateClasses;
};
const typeName = value => {
  if (value === null || value === undefined) return String(value);
  const found = Object.keys(classes).find(name => typeof value === 'object' && value.constructor === classes[name]);
  return found !== undefined ? found : typeof value === 'string' ? 'java.lang.String' : typeof value === 'number' ? 'java.lang.Double' : typeof value === 'boolean' ? 'java.lang.Boolean' : typeof value;
};
/** A value as Java writes it: a box as its class does, not as the number that it is. */
const javaText = value => (value instanceof Number || value instanceof Boolean ? value.toString() : String(value === undefined ? null : value));

// Texts and bytes. A byte array is an Int8Array.

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const toBase64 = bytes => {
  let out = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const [a, b, c] = [bytes[at] & 255, bytes[at + 1] & 255, bytes[at + 2] & 255];
    out += alphabet[a >> 2] + alphabet[((a & 3) << 4) | (b >> 4)];
    out += at + 1 < bytes.length ? alphabet[((b & 15) << 2) | (c >> 6)] : '=';
    out += at + 2 < bytes.length ? alphabet[c & 63] : '=';
  }
  return out;
};
const ofBase64 = text => {
  const clean = String(text).replace(/-/g, '+').replace(/_/g, '/').replace(/[=\s]/g, '');
  if (/[^A-Za-z0-9+/]/.test(clean)) fail('IllegalArgumentException', 'Illegal base64 character');
  const out = [];
  for (let at = 0, bits = 0, held = 0; at < clean.length; at++) {
    held = ((held << 6) | alphabet.indexOf(clean[at])) & 0xffffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out.push((held >> bits) & 255);
    }
  }
  return Int8Array.from(out);
};
const bytesOf = (value, charset) =>
  value instanceof Int8Array || Array.isArray(value)
    ? Int8Array.from(value)
    : ofBase64(call('encode', charset === undefined ? 'UTF-8' : charset, String(value)));
const textOf = (value, charset) =>
  value instanceof Int8Array || Array.isArray(value)
    ? call('decode', charset === undefined ? 'UTF-8' : charset, toBase64(value))
    : String(value);
const hash = text => {
  let code = 0;
  for (let at = 0; at < text.length; at++) code = (Math.imul(31, code) + text.charCodeAt(at)) | 0;
  return code;
};
// java.lang

const within = (from, to, size) => {
  if (!(from >= 0 && from <= to && to <= size)) fail('StringIndexOutOfBoundsException', 'start ' + from + ', end ' + to + ', length ' + size);
};
class StringBuilder {
  constructor(start) { this.text = start === undefined || typeof start === 'number' ? '' : String(start); }
  append(value, from, to) { this.text += from === undefined ? (Array.isArray(value) && !(value instanceof ArrayList) ? value.join('') : javaText(value)) : String(value).slice(from, to); return this; }
  insert(at, value) { within(0, at, this.text.length); this.text = this.text.slice(0, at) + javaText(value) + this.text.slice(at); return this; }
  reverse() { this.text = Array.from(this.text).reverse().join(''); return this; }
  deleteCharAt(at) { within(at, at + 1, this.text.length); return this.delete(at, at + 1); }
  delete(from, to) { return this.replace(from, to, ''); }
  replace(from, to, value) { within(from, Math.max(from, Math.min(to, this.text.length)), this.text.length); if (to < from) within(from, to, this.text.length); this.text = this.text.slice(0, from) + value + this.text.slice(to); return this; }
  setCharAt(at, c) { within(at, at + 1, this.text.length); this.text = this.text.slice(0, at) + c + this.text.slice(at + 1); }
  setLength(size) { this.text = this.text.slice(0, size).padEnd(size, '\0'); }
  length() { return this.text.length; }
  capacity() { return nothing('java.lang.StringBuilder.capacity'); }
  isEmpty() { return this.text === ''; }
  charAt(at) { within(at, at + 1, this.text.length); return this.text.charAt(at); }
  indexOf(part, from) { return this.text.indexOf(part, from); }
  lastIndexOf(part, from) { return from < 0 ? -1 : this.text.lastIndexOf(part, from); }
  substring(from, to = this.text.length) { within(from, to, this.text.length); return this.text.substring(from, to); }
  compareTo(other) { return this.text.compareTo(String(other)); }
  equals(other) { return this === other; }
  toString() { return this.text; }
  toJSON() { return this.text; }
}
const begun = Date.now();
const System = {
  currentTimeMillis: () => Date.now(),
  nanoTime: () => (Date.now() - begun) * 1000000,
  lineSeparator: () => '\n',
  getProperty: (name, other) => {
    const value = native.get('system', String(name));
    return value === null || value === undefined ? (other === undefined ? null : other) : value;
  },
  getenv: name => (name === undefined ? nothing('java.lang.System.getenv()') : native.get('env', String(name))),
  out: { println: text => native.log('info', String(text)), print: text => native.log('info', String(text)) },
  err: { println: text => native.log('error', String(text)), print: text => native.log('error', String(text)) },
  arraycopy: (from, start, to, at, count) => { const part = from.slice(start, start + count); for (let i = 0; i < count; i++) to[at + i] = part[i]; },
  identityHashCode: value => hash(String(value)),
};
const Thread = {
  sleep: time => native.sleep(Number(time)),
  currentThread: () => ({ getName: () => 'script', getId: () => 1, isInterrupted: () => false }),
  yield: () => undefined,
};
// Boxes are numbers of JavaScript, as objects with the methods of Java. What gives a number and no box (`valueOf`,
// `parseInt`) gives one of JavaScript, which has these methods too.
const badNumber = text => fail('NumberFormatException', 'For input string: "' + text + '"');
const whole = (least, most) => (text, radix = 10) => {
  if (typeof text === 'number' || text instanceof Number) {
    const number = Math.trunc(Number(text));
    return number >= least && number <= most ? number : badNumber(text);
  }
  const wanted = String(text);
  const digits = '0123456789abcdefghijklmnopqrstuvwxyz'.slice(0, radix);
  if (!/^[-+]?[0-9a-z]+$/i.test(wanted) || !Array.from(wanted.toLowerCase().replace(/^[-+]/, '')).every(c => digits.includes(c))) badNumber(text);
  const value = parseInt(wanted, radix);
  // The greatest long is no number of JavaScript: by its digits.
  const large = most > 2 ** 53 && radix === 10 ? BigInt(wanted.replace('+', '')) : undefined;
  if (large === undefined ? value < least || value > most : large < -(2n ** 63n) || large >= 2n ** 63n) badNumber(text);
  return value + 0;
};
const real = text => {
  if (typeof text === 'number' || text instanceof Number) return Number(text);
  const wanted = String(text).trim();
  const found = /^[-+]?(?:NaN|Infinity|((?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)[fd]?)$/i.exec(wanted);
  if (found === null || (found[1] === undefined && !/^[-+]?(NaN|Infinity)$/.test(wanted))) badNumber(text);
  return Number(found[1] === undefined ? wanted.replace(/^[-+](?=NaN)/, '') : wanted.replace(/[fd]$/i, ''));
};
/** As `Double.toString` writes it; `digits` has those of a float. */
const realText = (value, digits = Math.abs(value).toExponential()) => {
  if (!Number.isFinite(value)) return String(value);
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  if (value === 0) return sign + '0.0';
  const [mantissa, exponent] = digits.split('e');
  if (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e7) {
    const text = String(Number(digits));
    return sign + text + (text.includes('.') ? '' : '.0');
  }
  return sign + mantissa + (mantissa.includes('.') ? '' : '.0') + 'E' + Number(exponent);
};
const floatText = value => {
  for (let size = 0; size < 9 && Number.isFinite(value); size++) {
    const digits = Math.abs(value).toExponential(size);
    if (Math.fround(Number(digits)) === Math.abs(value)) return realText(value, digits.replace(/\.?0+e/, 'e'));
  }
  return realText(value);
};
const longHash = bits => Number(BigInt.asIntN(32, bits ^ (BigInt.asUintN(64, bits) >> 32n)));
const realHash = value => {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value === value ? value : NaN);
  return longHash(view.getBigInt64(0));
};
const narrow = bits => function () {
  const value = Number(this);
  const most = 2 ** 31;
  if (bits < 64 && (this instanceof Long || this instanceof Integer || this instanceof Short || this instanceof Byte)) return Number(BigInt.asIntN(bits, BigInt(value)));
  const cut = bits < 64 ? Math.max(-most, Math.min(most - 1, Math.trunc(value) || 0)) : Math.max(-(2 ** 63), Math.min(2 ** 63, Math.trunc(value) || 0));
  return bits < 32 ? Number(BigInt.asIntN(bits, BigInt(cut))) : cut;
};
const order = (a, b) => (a < b ? -1 : a > b ? 1 : Object.is(a, b) || a === b && a !== 0 ? 0 : Number.isNaN(a) ? (Number.isNaN(b) ? 0 : 1) : Number.isNaN(b) ? -1 : Object.is(a, -0) ? -1 : 1);
const numberMethods = {
  byteValue: narrow(8), shortValue: narrow(16), intValue: narrow(32), longValue: narrow(64),
  doubleValue() { return Number(this); },
  floatValue() { return Math.fround(Number(this)); },
  equals(other) { return (typeof other === 'number' || other instanceof Number) && Object.is(Number(this), Number(other)); },
  compareTo(other) { return order(Number(this), Number(other)); },
  hashCode() { const value = Number(this); return Number.isInteger(value) && value === (value | 0) ? value : realHash(value); },
};
const box = (name, parse, text, code, more) => {
  const Box = function (value) {
    if (value === undefined) return nothing('java.lang.' + name + ' of nothing');
    return Reflect.construct(Number, [parse(value)], Box);
  };
  Box.prototype = Object.create(Number.prototype);
  const methods = {
    constructor: Box,
    toString() { return text(Number(this)); },
    hashCode() { return code(Number(this)); },
    // Boxes of two classes are never equal.
    equals(other) { return (typeof other === 'number' || other instanceof Box) && Object.is(Number(this), Number(other)); },
    isNaN() { return Number.isNaN(Number(this)); },
    isInfinite() { return Math.abs(Number(this)) === Infinity; },
  };
  for (const key of Object.keys(methods)) defineProperty(Box.prototype, key, { value: methods[key], writable: true, configurable: true });
  return Object.assign(Box, { valueOf: parse, toString: (value, radix) => (radix === undefined ? text(Number(value)) : Number(value).toString(radix)), compare: order, hashCode: value => code(Number(value)), max: Math.max, min: Math.min, sum: (a, b) => a + b, ...more });
};
const isNumber = { isNaN: value => Number.isNaN(Number(value)), isInfinite: value => Math.abs(value) === Infinity, isFinite: value => Number.isFinite(Number(value)) };
const wholes = (least, most, bits) => ({
  MIN_VALUE: least, MAX_VALUE: most, SIZE: bits, BYTES: bits / 8, signum: Math.sign,
  toHexString: value => BigInt.asUintN(bits, BigInt(value)).toString(16), toBinaryString: value => BigInt.asUintN(bits, BigInt(value)).toString(2),
  toOctalString: value => BigInt.asUintN(bits, BigInt(value)).toString(8), bitCount: value => BigInt.asUintN(bits, BigInt(value)).toString(2).replace(/0/g, '').length,
});
const boxed = (name, parser, bits, more) => {
  const [least, most] = [-(2 ** (bits - 1)), bits === 64 ? 9223372036854775807 : 2 ** (bits - 1) - 1];
  const parse = whole(least, most);
  const sum = (a, b) => (bits === 32 ? (a + b) | 0 : a + b);
  return box(name, parse, String, value => (bits === 64 ? longHash(BigInt(value)) : value), { [parser]: parse, ...wholes(least, most, bits), sum, ...more });
};
const Integer = boxed('Integer', 'parseInt', 32);
const Long = boxed('Long', 'parseLong', 64);
const Short = boxed('Short', 'parseShort', 16);
const Byte = boxed('Byte', 'parseByte', 8);
const Double = box('Double', real, realText, realHash, { parseDouble: real, MAX_VALUE: Number.MAX_VALUE, MIN_VALUE: Number.MIN_VALUE, POSITIVE_INFINITY: Infinity, NEGATIVE_INFINITY: -Infinity, NaN, ...isNumber });
const single = text => Math.fround(real(text));
const floatHash = value => new Int32Array(Float32Array.of(value).buffer)[0];
const Float = box('Float', single, floatText, floatHash, { parseFloat: single, ...isNumber });
const truth = text => String(text).toLowerCase() === 'true';
const booleanMethods = {
  booleanValue() { return this.valueOf(); },
  equals(other) { return (typeof other === 'boolean' || other instanceof Boolean) && this.valueOf() === other.valueOf(); },
  compareTo(other) { return Number(this) - Number(other); },
  hashCode() { return this.valueOf() ? 1231 : 1237; },
};
const JavaBoolean = Object.assign(function (value) { return new Boolean(truth(value)); }, {
  parseBoolean: truth, valueOf: truth, TRUE: true, FALSE: false, toString: value => String(value), compare: (a, b) => Number(a) - Number(b),
  logicalAnd: (a, b) => a && b, logicalOr: (a, b) => a || b, logicalXor: (a, b) => a !== b, hashCode: value => (value ? 1231 : 1237),
});
const isChar = (pattern) => c => pattern.test(typeof c === 'number' ? String.fromCodePoint(c) : String(c));
const Character = {
  isDigit: isChar(/^\p{Nd}$/u), isLetter: isChar(/^\p{L}$/u), isAlphabetic: isChar(/^\p{Alphabetic}$/u),
  isLetterOrDigit: isChar(/^[\p{L}\p{Nd}]$/u), isWhitespace: isChar(/^[\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]$/),
  isUpperCase: isChar(/^\p{Uppercase}$/u), isLowerCase: isChar(/^\p{Lowercase}$/u), isSpaceChar: isChar(/^[\p{Z}]$/u),
  toUpperCase: c => (String(c).toUpperCase().length === String(c).length ? String(c).toUpperCase() : String(c)), toLowerCase: c => String(c).toLowerCase(),
  toString: value => String(value), valueOf: value => String(value), compare: (a, b) => String(a).charCodeAt(0) - String(b).charCodeAt(0),
  getNumericValue: c => { const value = parseInt(String(c), 36); return Number.isNaN(value) ? (/^[\0-\x7f]$/.test(String(c)) ? -1 : nothing('java.lang.Character.getNumericValue of ' + c)) : value; },
};
const JavaMath = Object.assign(Object.create(null), {
  toRadians: a => a * (Math.PI / 180), toDegrees: a => a * (180 / Math.PI), signum: Math.sign,
});
for (const name of ['E', 'PI', 'abs', 'acos', 'asin', 'atan', 'atan2', 'cbrt', 'ceil', 'cos', 'cosh', 'exp', 'expm1', 'floor', 'hypot', 'log', 'log10', 'log1p', 'max', 'min', 'pow', 'random', 'sin', 'sinh', 'sqrt', 'tan', 'tanh']) JavaMath[name] = Math[name];
const zero = () => fail('ArithmeticException', '/ by zero');
Object.assign(JavaMath, {
  floorDiv: (a, b) => (b === 0 ? zero() : Math.floor(a / b)), floorMod: (a, b) => (b === 0 ? zero() : a - Math.floor(a / b) * b),
  round: a => (Number.isNaN(a) ? 0 : Math.max(-(2 ** 63), Math.min(2 ** 63, Math.round(a) + 0))),
  rint: a => { const below = Math.floor(a); return a - below !== 0.5 ? (Object.is(a, -0) ? a : Math.round(a)) : below % 2 === 0 ? below : below + 1 || -0; },
});
// Exceptions: each list begins with what the others extend.
const EXCEPTIONS = [
  ['', 'java.lang.Throwable'],
  ['Throwable', 'java.lang.Exception'],
  ['Exception', 'java.lang.RuntimeException', 'java.lang.InterruptedException', 'java.text.ParseException', 'java.io.IOException', 'java.net.URISyntaxException', 'java.security.NoSuchAlgorithmException'],
  ['IOException', 'java.io.UnsupportedEncodingException'],
  [
    'RuntimeException', 'java.lang.IllegalArgumentException', 'java.lang.IllegalStateException', 'java.lang.UnsupportedOperationException', 'java.lang.NullPointerException',
    'java.lang.ArithmeticException', 'java.lang.IndexOutOfBoundsException', 'java.lang.ClassCastException', 'java.util.NoSuchElementException',
    'java.time.DateTimeException',
  ],
  ['DateTimeException', 'java.time.format.DateTimeParseException', 'java.time.temporal.UnsupportedTemporalTypeException', 'java.time.zone.ZoneRulesException'],
  ['IllegalArgumentException', 'java.lang.NumberFormatException', 'java.util.IllegalFormatException'],
  ['IndexOutOfBoundsException', 'java.lang.StringIndexOutOfBoundsException', 'java.lang.ArrayIndexOutOfBoundsException'],
  [
    'IllegalFormatException', 'java.util.UnknownFormatConversionException', 'java.util.DuplicateFormatFlagsException', 'java.util.FormatFlagsConversionMismatchException',
    'java.util.IllegalFormatConversionException', 'java.util.IllegalFormatFlagsException', 'java.util.IllegalFormatPrecisionException', 'java.util.IllegalFormatWidthException',
    'java.util.MissingFormatArgumentException', 'java.util.MissingFormatWidthException',
  ],
];
/** By their simple names. */
const exceptions = new Map();
for (const [parent, ...names] of EXCEPTIONS) {
  const Parent = parent === '' ? Error : exceptions.get(parent);
  for (const name of names) {
    const simple = name.replace(/.*\./, '');
    exceptions.set(simple, { [simple]: class extends Parent {
      constructor(message) {
        super(message === undefined ? '' : String(message));
        defineProperty(this, 'name', { value: name, writable: true, configurable: true });
      }
    } }[simple]);
  }
}
// Also what JavaScript throws has the methods of a Throwable.
const throwable = {
  getMessage() { return this.message; },
  getLocalizedMessage() { return this.message; },
  getCause() { return null; },
  printStackTrace() { native.log('error', String(this)); },
};
for (const name of Object.keys(throwable)) defineProperty(Error.prototype, name, { value: throwable[name], writable: true, configurable: true, enumerable: false });
