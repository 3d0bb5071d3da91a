// The classes of Java that scripts use most, under the names that Rhino and Nashorn give them: `java.util.UUID`,
// `Packages.java.text.SimpleDateFormat`, `Java.type('java.lang.Thread')`, `importPackage(java.util)`, `new JavaImporter(…)`.
// A class that is not here throws when it is used, with its name.
(function (native) {
  'use strict';
  const { defineProperty } = Object;
  const call = (what, ...given) => native.java(what, given.map(String));
  const nothing = name => {
    throw new TypeError('the Java class `' + name + '` is not available here');
  };

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
    if (/[^A-Za-z0-9+/]/.test(clean)) throw new TypeError('IllegalArgumentException: Illegal base64 character');
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
  const formatted = (pattern, ...values) => {
    let next = 0;
    return String(pattern).replace(/%(?:(\d+)\$)?([-0,+ ]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])/g, (all, at, flags, width, digits, kind) => {
      if (kind === '%') return '%';
      if (kind === 'n') return '\n';
      const value = at === undefined ? values[next++] : values[Number(at) - 1];
      let text;
      switch (kind) {
        case 'd': text = String(Math.trunc(Number(value))); break;
        case 'f': text = Number(value).toFixed(digits === undefined ? 6 : Number(digits)); break;
        case 'x': case 'X': {
          // A negative int has 32 bits.
          const number = Math.trunc(Number(value));
          text = (number < 0 && number >= -2147483648 ? number >>> 0 : number).toString(16);
          break;
        }
        default: text = digits === undefined ? String(value) : String(value).slice(0, Number(digits));
      }
      if (kind === 'X' || kind === 'S') text = text.toUpperCase();
      if (flags.includes(',')) text = text.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
      if (flags.includes('+') && Number(value) >= 0) text = '+' + text;
      const size = Math.min(width === undefined ? 0 : Number(width), 1000);
      if (flags.includes('-')) return text.padEnd(size);
      return flags.includes('0') && 'dfxX'.includes(kind) ? text.padStart(size, '0') : text.padStart(size);
    });
  };

  // java.lang

  function JavaString(value, charset) {
    return new String(value === undefined ? '' : textOf(value, charset));
  }
  Object.assign(JavaString, {
    valueOf: value => String(value),
    format: formatted,
    join: (separator, ...parts) => (parts.length === 1 && typeof parts[0] === 'object' ? Array.from(parts[0]) : parts).join(separator),
  });
  JavaString.prototype = String.prototype;
  class StringBuilder {
    constructor(start) {
      this.text = start === undefined || typeof start === 'number' ? '' : String(start);
    }
    append(value) { this.text += value; return this; }
    insert(at, value) { this.text = this.text.slice(0, at) + value + this.text.slice(at); return this; }
    reverse() { this.text = Array.from(this.text).reverse().join(''); return this; }
    deleteCharAt(at) { return this.delete(at, at + 1); }
    delete(from, to) { this.text = this.text.slice(0, from) + this.text.slice(to); return this; }
    replace(from, to, value) { this.text = this.text.slice(0, from) + value + this.text.slice(to); return this; }
    setLength(size) { this.text = this.text.slice(0, size); }
    length() { return this.text.length; }
    charAt(at) { return this.text.charAt(at); }
    indexOf(part) { return this.text.indexOf(part); }
    substring(from, to) { return this.text.substring(from, to); }
    toString() { return this.text; }
    toJSON() { return this.text; }
  }
  class Formatter {
    constructor(into) { this.into = into instanceof StringBuilder ? into : new StringBuilder(); }
    format(pattern, ...values) { this.into.append(formatted(pattern, ...values)); return this; }
    out() { return this.into; }
    flush() {}
    close() {}
    toString() { return this.into.toString(); }
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
    getenv: name => native.get('env', String(name)),
    out: { println: text => native.log('info', String(text)), print: text => native.log('info', String(text)) },
    err: { println: text => native.log('error', String(text)), print: text => native.log('error', String(text)) },
    arraycopy: (from, start, to, at, count) => { for (let i = 0; i < count; i++) to[at + i] = from[start + i]; },
    identityHashCode: value => hash(String(value)),
  };
  const Thread = {
    sleep: time => native.sleep(Number(time)),
    currentThread: () => ({ getName: () => 'script', getId: () => 1, isInterrupted: () => false }),
    yield: () => undefined,
  };
  const numbers = (parse, more) =>
    Object.assign(function (value) { return parse(value); }, { valueOf: parse, toString: value => String(value), compare: (a, b) => Math.sign(a - b), ...more });
  const whole = name => (text, radix) => {
    const wanted = String(text).trim();
    const base = radix === undefined ? 10 : radix;
    const value = parseInt(wanted, base);
    if (!/^[-+]?[0-9a-zA-Z]+$/.test(wanted) || Number.isNaN(value) || (base === 10 && !/^[-+]?\d+$/.test(wanted))) {
      throw new TypeError('NumberFormatException: For input string: "' + text + '"');
    }
    return value;
  };
  const real = text => {
    const wanted = String(text).trim();
    if (wanted === '' || Number.isNaN(Number(wanted)) && wanted !== 'NaN') {
      throw new TypeError('NumberFormatException: For input string: "' + text + '"');
    }
    return Number(wanted);
  };
  const Integer = numbers(whole('Integer'), {
    parseInt: whole('Integer'), MAX_VALUE: 2147483647, MIN_VALUE: -2147483648,
    toHexString: value => (value >>> 0).toString(16), toBinaryString: value => (value >>> 0).toString(2),
  });
  const Long = numbers(whole('Long'), {
    parseLong: whole('Long'), MAX_VALUE: 9223372036854775807, MIN_VALUE: -9223372036854775808,
    toHexString: value => BigInt.asUintN(64, BigInt(value)).toString(16),
  });
  const Double = numbers(real, { parseDouble: real, MAX_VALUE: Number.MAX_VALUE, MIN_VALUE: Number.MIN_VALUE, isNaN: Number.isNaN });
  const Float = numbers(real, { parseFloat: real });
  const truth = text => String(text).toLowerCase() === 'true';
  const JavaBoolean = Object.assign(function (value) { return truth(value); }, { parseBoolean: truth, valueOf: truth, TRUE: true, FALSE: false, toString: value => String(value) });
  const Character = {
    isDigit: c => /^\d$/.test(String(c)), isLetter: c => /^\p{L}$/u.test(String(c)),
    isLetterOrDigit: c => /^[\p{L}\d]$/u.test(String(c)), isWhitespace: c => /^\s$/.test(String(c)),
    isUpperCase: c => /^\p{Lu}$/u.test(String(c)), isLowerCase: c => /^\p{Ll}$/u.test(String(c)),
    toUpperCase: c => String(c).toUpperCase(), toLowerCase: c => String(c).toLowerCase(), toString: value => String(value),
  };
  const JavaMath = Object.assign(Object.create(null), {
    floorDiv: (a, b) => Math.floor(a / b), floorMod: (a, b) => ((a % b) + b) % b,
    toRadians: a => (a / 180) * Math.PI, toDegrees: a => (a * 180) / Math.PI, rint: a => Math.round(a),
  });
  for (const name of Object.getOwnPropertyNames(Math)) JavaMath[name] = Math[name];
  const exception = name => {
    const own = { [name]: class extends Error {
      constructor(message) { super(message === undefined ? '' : String(message)); this.name = name; }
      getMessage() { return this.message; }
      getLocalizedMessage() { return this.message; }
      printStackTrace() { native.log('error', name + ': ' + this.message); }
      toString() { return name + ': ' + this.message; }
    } };
    return own[name];
  };
  const exceptions = {};
  for (const name of ['Exception', 'RuntimeException', 'IllegalArgumentException', 'IllegalStateException', 'UnsupportedOperationException', 'NullPointerException', 'NumberFormatException', 'Throwable', 'InterruptedException']) {
    exceptions[name] = exception(name);
  }

  // java.util

  const same = (a, b) => a === b || (a !== null && b !== null && typeof a === 'object' && typeof a.equals === 'function' && a.equals(b)) || (a instanceof String || b instanceof String) && String(a) === String(b);
  const keyOf = key => (key instanceof String ? String(key) : key);
  const iterator = values => {
    let at = 0;
    return { hasNext: () => at < values.length, next: () => values[at++], remove: () => undefined, [Symbol.iterator]: () => values.slice(at)[Symbol.iterator]() };
  };
  class ArrayList extends Array {
    static get [Symbol.species]() { return Array; }
    constructor(from) {
      super();
      if (from !== undefined && typeof from !== 'number') for (const value of from) super.push(value);
    }
    add(at, value) {
      if (arguments.length > 1) this.splice(at, 0, value);
      else super.push(at);
      return true;
    }
    addAll(from) { for (const value of from) super.push(value); return true; }
    addFirst(value) { this.unshift(value); }
    addLast(value) { super.push(value); }
    get(at) {
      if (at < 0 || at >= this.length) throw new RangeError('IndexOutOfBoundsException: Index: ' + at + ', Size: ' + this.length);
      return this[at];
    }
    getFirst() { return this.get(0); }
    getLast() { return this.get(this.length - 1); }
    set(at, value) { const old = this.get(at); this[at] = value; return old; }
    remove(what) {
      if (typeof what === 'number') { const old = this.get(what); this.splice(what, 1); return old; }
      const at = this.findIndex(value => same(value, what));
      if (at >= 0) this.splice(at, 1);
      return at >= 0;
    }
    removeFirst() { return this.remove(0); }
    removeLast() { return this.remove(this.length - 1); }
    peek() { return this.length > 0 ? this[0] : null; }
    poll() { return this.length > 0 ? this.shift() : null; }
    offer(value) { return this.add(value); }
    size() { return this.length; }
    isEmpty() { return this.length === 0; }
    clear() { this.length = 0; }
    contains(what) { return this.some(value => same(value, what)); }
    containsAll(all) { return Array.from(all).every(value => this.contains(value)); }
    indexOf(what) { return this.findIndex(value => same(value, what)); }
    iterator() { return iterator(Array.from(this)); }
    listIterator() { return this.iterator(); }
    subList(from, to) { return new ArrayList(this.slice(from, to)); }
    toArray() { return Array.from(this); }
    equals(other) { return String(this) === String(other); }
    toString() { return '[' + Array.from(this).join(', ') + ']'; }
    toJSON() { return Array.from(this); }
  }
  class HashMap {
    constructor(from) {
      defineProperty(this, 'own', { value: new Map() });
      if (from instanceof HashMap) this.putAll(from);
    }
    put(key, value) { const old = this.get(key); this.own.set(keyOf(key), value); return old; }
    putAll(other) { for (const [key, value] of entriesOf(other)) this.own.set(keyOf(key), value); }
    putIfAbsent(key, value) { const old = this.get(key); if (old === null) this.own.set(keyOf(key), value); return old; }
    get(key) { const value = this.own.get(keyOf(key)); return value === undefined ? null : value; }
    getOrDefault(key, other) { return this.containsKey(key) ? this.get(key) : other; }
    remove(key) { const old = this.get(key); this.own.delete(keyOf(key)); return old; }
    containsKey(key) { return this.own.has(keyOf(key)); }
    containsValue(what) { return Array.from(this.own.values()).some(value => same(value, what)); }
    keys() { return this.sorted().map(([key]) => key); }
    sorted() { return Array.from(this.own); }
    keySet() { return new HashSet(this.keys()); }
    values() { return new ArrayList(this.sorted().map(([, value]) => value)); }
    entrySet() {
      return new ArrayList(this.sorted().map(([key, value]) => ({ getKey: () => key, getValue: () => value, setValue: next => this.put(key, next), toString: () => key + '=' + value })));
    }
    size() { return this.own.size; }
    isEmpty() { return this.own.size === 0; }
    clear() { this.own.clear(); }
    forEach(act) { for (const [key, value] of this.sorted()) act(key, value); }
    toString() { return '{' + this.sorted().map(([key, value]) => key + '=' + value).join(', ') + '}'; }
    toJSON() { return Object.fromEntries(this.sorted()); }
    [Symbol.iterator]() { return this.sorted()[Symbol.iterator](); }
  }
  const entriesOf = other => (other instanceof HashMap ? other.sorted() : Object.entries(other));
  const byOrder = ([a], [b]) => (a < b ? -1 : a > b ? 1 : 0);
  class TreeMap extends HashMap {
    sorted() { return Array.from(this.own).sort(byOrder); }
    firstKey() { return this.keys()[0]; }
    lastKey() { return this.keys()[this.size() - 1]; }
  }
  class HashSet {
    constructor(from) {
      defineProperty(this, 'own', { value: new Set() });
      if (from !== undefined && typeof from !== 'number') this.addAll(from);
    }
    add(value) { const is = !this.own.has(keyOf(value)); this.own.add(keyOf(value)); return is; }
    addAll(from) { let changed = false; for (const value of from) changed = this.add(value) || changed; return changed; }
    remove(value) { return this.own.delete(keyOf(value)); }
    contains(value) { return this.own.has(keyOf(value)); }
    size() { return this.own.size; }
    isEmpty() { return this.own.size === 0; }
    clear() { this.own.clear(); }
    sorted() { return Array.from(this.own); }
    iterator() { return iterator(this.sorted()); }
    toArray() { return this.sorted(); }
    toString() { return '[' + this.sorted().join(', ') + ']'; }
    toJSON() { return this.sorted(); }
    forEach(act) { this.sorted().forEach(value => act(value)); }
    [Symbol.iterator]() { return this.sorted()[Symbol.iterator](); }
  }
  class TreeSet extends HashSet {
    sorted() { return Array.from(this.own).sort(); }
    first() { return this.sorted()[0]; }
  }
  class UUID {
    constructor(text) { this.text = text; }
    static randomUUID() { return new UUID(call('uuid')); }
    static fromString(text) {
      if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(String(text))) throw new TypeError('IllegalArgumentException: Invalid UUID string: ' + text);
      return new UUID(String(text).toLowerCase());
    }
    static nameUUIDFromBytes(bytes) {
      const own = ofBase64(call('digest', 'MD5', toBase64(bytes)));
      own[6] = (own[6] & 15) | 48;
      own[8] = (own[8] & 63) | 128;
      const hex = Array.from(own, byte => (byte & 255).toString(16).padStart(2, '0')).join('');
      return new UUID(hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'));
    }
    equals(other) { return this.text === String(other); }
    hashCode() { return hash(this.text); }
    toString() { return this.text; }
    toJSON() { return this.text; }
  }
  const encoder = (url, padded) => ({
    encode: bytes => bytesOf(encoder(url, padded).encodeToString(bytes)),
    encodeToString: bytes => {
      let text = toBase64(bytesOf(bytes));
      if (url) text = text.replace(/\+/g, '-').replace(/\//g, '_');
      return padded ? text : text.replace(/=+$/, '');
    },
    withoutPadding: () => encoder(url, false),
  });
  const decoder = { decode: value => ofBase64(textOf(value)) };
  const Base64 = {
    getEncoder: () => encoder(false, true), getUrlEncoder: () => encoder(true, true), getMimeEncoder: () => encoder(false, true),
    getDecoder: () => decoder, getUrlDecoder: () => decoder, getMimeDecoder: () => decoder,
  };
  class JavaDate {
    constructor(time) { this.time = time === undefined ? Date.now() : Number(time instanceof JavaDate ? time.time : time); }
    getTime() { return this.time; }
    setTime(time) { this.time = Number(time); }
    before(other) { return this.time < other.getTime(); }
    after(other) { return this.time > other.getTime(); }
    compareTo(other) { return Math.sign(this.time - other.getTime()); }
    equals(other) { return other instanceof JavaDate && other.time === this.time; }
    toInstant() { return { toString: () => new Date(this.time).toISOString(), toEpochMilli: () => this.time }; }
    valueOf() { return this.time; }
    toJSON() { return this.time; }
    toString() { return call('format', 'EEE MMM dd HH:mm:ss zzz yyyy', this.time, ''); }
  }
  class Calendar {
    static getInstance() { return new Calendar(); }
    constructor() { this.date = new Date(); }
    getTime() { return new JavaDate(this.date.getTime()); }
    setTime(time) { this.date = new Date(time.getTime()); }
    getTimeInMillis() { return this.date.getTime(); }
    setTimeInMillis(time) { this.date = new Date(Number(time)); }
    setTimeZone() {}
    add(field, count) { this.set(field, this.get(field) + count); }
    get(field) {
      const { date } = this;
      switch (field) {
        case 1: return date.getFullYear();
        case 2: return date.getMonth();
        case 5: return date.getDate();
        case 7: return date.getDay() + 1;
        case 10: return date.getHours() % 12;
        case 11: return date.getHours();
        case 12: return date.getMinutes();
        case 13: return date.getSeconds();
        case 14: return date.getMilliseconds();
        default: return nothing('java.util.Calendar, field ' + field);
      }
    }
    set(field, value, day) {
      const { date } = this;
      if (day !== undefined) return void date.setFullYear(field, value, day);
      switch (field) {
        case 1: return void date.setFullYear(value);
        case 2: return void date.setMonth(value);
        case 5: case 6: case 7: return void date.setDate(field === 7 ? date.getDate() + value - this.get(7) : value);
        case 10: case 11: return void date.setHours(value);
        case 12: return void date.setMinutes(value);
        case 13: return void date.setSeconds(value);
        case 14: return void date.setMilliseconds(value);
        default: return nothing('java.util.Calendar, field ' + field);
      }
    }
  }
  Object.assign(Calendar, { YEAR: 1, MONTH: 2, DATE: 5, DAY_OF_MONTH: 5, DAY_OF_WEEK: 7, HOUR: 10, HOUR_OF_DAY: 11, MINUTE: 12, SECOND: 13, MILLISECOND: 14 });
  class TimeZone {
    constructor(id) { this.id = id; }
    static getTimeZone(id) { return new TimeZone(String(id)); }
    static getDefault() { return new TimeZone(''); }
    getID() { return this.id; }
    toString() { return this.id; }
  }
  class Random {
    nextInt(low, high) { return high === undefined ? Math.floor(Math.random() * (low === undefined ? 4294967296 : low)) - (low === undefined ? 2147483648 : 0) : low + Math.floor(Math.random() * (high - low)); }
    nextLong() { return Math.floor((Math.random() - 0.5) * Number.MAX_SAFE_INTEGER); }
    nextDouble() { return Math.random(); }
    nextBoolean() { return Math.random() < 0.5; }
    nextBytes(bytes) { const own = ofBase64(call('random', bytes.length)); for (let at = 0; at < bytes.length; at++) bytes[at] = own[at]; }
  }
  const compared = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const Collections = {
    sort: (list, compare) => Array.prototype.sort.call(list, compare === undefined ? compared : compare),
    reverse: list => Array.prototype.reverse.call(list),
    emptyList: () => new ArrayList(), emptyMap: () => new HashMap(), singletonList: value => new ArrayList([value]),
    unmodifiableList: list => list, unmodifiableMap: map => map,
    max: list => Array.from(list).sort(compared).pop(), min: list => Array.from(list).sort(compared)[0],
  };
  const Arrays = {
    asList: (...values) => new ArrayList(values.length === 1 && typeof values[0] === 'object' ? values[0] : values),
    toString: values => '[' + Array.from(values).join(', ') + ']', sort: values => Array.prototype.sort.call(values, compared),
    copyOfRange: (values, from, to) => values.slice(from, to), copyOf: (values, size) => values.slice(0, size),
    fill: (values, value) => values.fill(value), equals: (a, b) => Array.from(a).join() === Array.from(b).join(),
  };
  const Locale = { ENGLISH: 'en', US: 'en_US', UK: 'en_GB', ROOT: '', getDefault: () => 'en_US' };
  const Objects = { equals: same, isNull: value => value === null || value === undefined, nonNull: value => value !== null && value !== undefined, toString: value => String(value) };
  class StringTokenizer {
    constructor(text, marks) { this.left = String(text).split(new RegExp('[' + (marks === undefined ? ' \\t\\n\\r\\f' : String(marks).replace(/[\]\\^-]/g, '\\$&')) + ']+')).filter(part => part !== ''); }
    hasMoreTokens() { return this.left.length > 0; }
    nextToken() { return this.left.length > 0 ? this.left.shift() : nothing('NoSuchElementException'); }
    countTokens() { return this.left.length; }
  }

  // java.text, java.net, java.security, javax.crypto, …

  class SimpleDateFormat {
    constructor(pattern) { this.pattern = pattern === undefined ? 'M/d/yy h:mm a' : String(pattern); this.zone = ''; }
    setTimeZone(zone) { this.zone = String(zone); }
    setLenient() {}
    applyPattern(pattern) { this.pattern = String(pattern); }
    toPattern() { return this.pattern; }
    format(date) { return call('format', this.pattern, date instanceof JavaDate || date instanceof Date ? date.getTime() : Number(date), this.zone); }
    parse(text) { return new JavaDate(Number(call('parse', this.pattern, text, this.zone))); }
  }
  class DecimalFormat {
    constructor(pattern) { this.pattern = String(pattern === undefined ? '#,##0.###' : pattern); }
    format(value) {
      const [, before, kept, after] = /^([^#0,.]*)([#0,.]*)(.*)$/.exec(this.pattern);
      const [left, right = ''] = kept.split('.');
      const least = (right.match(/0/g) || []).length;
      let text = Math.abs(value).toFixed(Math.min(right.length, 20));
      if (right.length > least) text = text.replace(new RegExp('0{0,' + (right.length - least) + '}$'), '').replace(/\.$/, '');
      let [whole, part] = text.split('.');
      whole = whole.padStart((left.match(/0/g) || []).length, '0');
      if (left.includes(',')) whole = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
      return (value < 0 ? '-' : '') + before + whole + (part === undefined ? '' : '.' + part) + after;
    }
  }
  const URLEncoder = { encode: text => encodeURIComponent(String(text)).replace(/[!'()~]/g, c => '%' + c.charCodeAt(0).toString(16).toUpperCase()).replace(/%20/g, '+') };
  const URLDecoder = { decode: text => decodeURIComponent(String(text).replace(/\+/g, ' ')) };
  class MessageDigest {
    constructor(name) { this.name = String(name); this.held = []; }
    static getInstance(name) { call('digest', name, ''); return new MessageDigest(name); }
    static isEqual(a, b) { return Array.from(a).join() === Array.from(b).join(); }
    update(bytes) { this.held.push(...(typeof bytes === 'number' ? [bytes] : bytesOf(bytes))); }
    reset() { this.held = []; }
    getAlgorithm() { return this.name; }
    digest(bytes) {
      if (bytes !== undefined) this.update(bytes);
      const own = ofBase64(call('digest', this.name, toBase64(this.held)));
      this.held = [];
      return own;
    }
  }
  class SecretKeySpec {
    constructor(bytes, name) { this.bytes = bytesOf(bytes); this.name = String(name); }
    getEncoded() { return this.bytes; }
    getAlgorithm() { return this.name; }
  }
  class Mac {
    constructor(name) { this.name = String(name); this.held = []; }
    static getInstance(name) { return new Mac(name); }
    init(key) { this.key = key.getEncoded(); }
    update(bytes) { this.held.push(...bytesOf(bytes)); }
    doFinal(bytes) {
      if (bytes !== undefined) this.update(bytes);
      const own = ofBase64(call('hmac', this.name, toBase64(this.key), toBase64(this.held)));
      this.held = [];
      return own;
    }
  }
  const DatatypeConverter = {
    printBase64Binary: bytes => toBase64(bytesOf(bytes)), parseBase64Binary: ofBase64,
    printHexBinary: bytes => Array.from(bytes, byte => (byte & 255).toString(16).padStart(2, '0')).join('').toUpperCase(),
    parseHexBinary: text => Int8Array.from((String(text).match(/../g) || []).map(pair => parseInt(pair, 16))),
  };
  const Charset = { forName: name => String(name), defaultCharset: () => 'UTF-8' };

  const classes = {
    __proto__: null,
    'java.lang.String': JavaString, 'java.lang.StringBuilder': StringBuilder, 'java.lang.StringBuffer': StringBuilder,
    'java.lang.System': System, 'java.lang.Thread': Thread, 'java.lang.Integer': Integer, 'java.lang.Long': Long,
    'java.lang.Short': Integer, 'java.lang.Double': Double, 'java.lang.Float': Float, 'java.lang.Boolean': JavaBoolean,
    'java.lang.Character': Character, 'java.lang.Math': JavaMath,
    'java.util.ArrayList': ArrayList, 'java.util.LinkedList': ArrayList, 'java.util.Vector': ArrayList,
    'java.util.HashMap': HashMap, 'java.util.LinkedHashMap': HashMap, 'java.util.Hashtable': HashMap, 'java.util.TreeMap': TreeMap,
    'java.util.concurrent.ConcurrentHashMap': HashMap, 'java.util.Properties': HashMap,
    'java.util.HashSet': HashSet, 'java.util.LinkedHashSet': HashSet, 'java.util.TreeSet': TreeSet,
    'java.util.UUID': UUID, 'java.util.Base64': Base64, 'java.util.Date': JavaDate, 'java.util.Calendar': Calendar,
    'java.util.GregorianCalendar': Calendar, 'java.util.TimeZone': TimeZone, 'java.util.Random': Random,
    'java.util.Collections': Collections, 'java.util.Arrays': Arrays, 'java.util.Locale': Locale, 'java.util.Objects': Objects,
    'java.util.StringTokenizer': StringTokenizer, 'java.util.Formatter': Formatter, 'java.security.SecureRandom': Random,
    'java.text.SimpleDateFormat': SimpleDateFormat, 'java.text.DecimalFormat': DecimalFormat,
    'java.net.URLEncoder': URLEncoder, 'java.net.URLDecoder': URLDecoder, 'java.security.MessageDigest': MessageDigest,
    'javax.crypto.Mac': Mac, 'javax.crypto.spec.SecretKeySpec': SecretKeySpec,
    'javax.xml.bind.DatatypeConverter': DatatypeConverter,
    'java.nio.charset.Charset': Charset,
    'java.nio.charset.StandardCharsets': { UTF_8: 'UTF-8', ISO_8859_1: 'ISO-8859-1', US_ASCII: 'US-ASCII', UTF_16: 'UTF-16' },
  };
  for (const name of Object.keys(exceptions)) classes['java.lang.' + name] = exceptions[name];

  // Names: a package is what is no class; using one as a class throws.

  // What a script could leave on a class would be there for the next message.
  const frozen = value => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return;
    if (value === String.prototype || Object.isFrozen(value)) return;
    Object.freeze(value);
    for (const name of Object.getOwnPropertyNames(value)) {
      const property = Object.getOwnPropertyDescriptor(value, name);
      if ('value' in property) frozen(property.value);
    }
  };
  Object.values(classes).forEach(frozen);
  Object.freeze(classes);

  const PATH = Symbol('package');
  const paths = new WeakMap();
  const traps = {
    __proto__: null,
    get(target, key) {
      const path = paths.get(target);
      if (key === PATH) return path;
      if (typeof key === 'symbol') return key === Symbol.toPrimitive ? () => '[JavaPackage ' + path + ']' : undefined;
      // Those that a function has, and cannot hide.
      if (Object.prototype.hasOwnProperty.call(target, key)) return target[key];
      const name = path === '' ? key : path + '.' + key;
      return name in classes ? classes[name] : packageOf(name);
    },
    set: () => false,
    deleteProperty: () => false,
    apply: target => nothing(paths.get(target)),
    construct: target => nothing(paths.get(target)),
  };
  const packages = new Map();
  const packageOf = path => {
    let known = packages.get(path);
    if (known === undefined) {
      const target = Object.freeze(function () {});
      paths.set(target, path);
      known = new Proxy(target, traps);
      // Scripts choose the names: no more than there can be in one.
      if (packages.size < 256) packages.set(path, known);
    }
    return known;
  };
  const pathOf = value => (typeof value === 'function' ? value[PATH] : undefined);
  const nameOf = value => Object.keys(classes).find(name => classes[name] === value);
  const bring = (into, value) => {
    const path = pathOf(value);
    const name = nameOf(value);
    if (name !== undefined) {
      into(name.split('.').pop(), value);
    } else if (path !== undefined) {
      for (const known of Object.keys(classes)) {
        const at = known.lastIndexOf('.');
        if (known.slice(0, at) === path) into(known.slice(at + 1), classes[known]);
      }
      if (/\.[A-Z]\w*$/.test(path)) nothing(path);
    }
  };
  // What JavaScript has under the name stays: `String`, `Math`, `Date`.
  const globally = (name, value) => {
    if (!(name in globalThis)) globalThis[name] = value;
  };
  const globals = {
    java: packageOf('java'),
    javax: packageOf('javax'),
    Packages: packageOf(''),
    importPackage: (...all) => all.forEach(one => bring(globally, one)),
    importClass: (...all) => all.forEach(one => (pathOf(one) === undefined ? bring(globally, one) : nothing(pathOf(one)))),
    JavaImporter: function (...all) {
      const own = {};
      const add = one => bring((name, value) => { own[name] = value; }, one);
      all.forEach(add);
      own.importPackage = own.importClass = (...more) => more.forEach(add);
      return own;
    },
    Java: {
      type: name => (String(name).endsWith('[]') ? Array : classes[String(name)] === undefined ? nothing(name) : classes[String(name)]),
      from: values => Array.from(values),
      to: values => Array.from(values),
      isJavaObject: () => false,
    },
  };
  for (const name of Object.keys(globals)) {
    defineProperty(globalThis, name, { value: globals[name], writable: true, configurable: true, enumerable: false });
  }
  const strings = {
    getBytes(charset) { return bytesOf(String(this), charset); },
    hashCode() { return hash(String(this)); },
    matches(pattern) { return new RegExp('^(?:' + pattern + ')$').test(String(this)); },
    replaceFirst(pattern, by) { return String(this).replace(new RegExp(pattern), by); },
    toCharArray() { return Array.from(String(this)); },
    compareToIgnoreCase(other) { const [a, b] = [String(this).toLowerCase(), String(other).toLowerCase()]; return a < b ? -1 : a > b ? 1 : 0; },
    isBlank() { return String(this).trim() === ''; },
    strip() { return String(this).trim(); },
  };
  for (const name of Object.keys(strings)) {
    defineProperty(String.prototype, name, { value: strings[name], writable: true, configurable: true, enumerable: false });
  }
})
