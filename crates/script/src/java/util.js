// java.util: lists, maps and sets, and the small classes around them.

const same = (a, b) => {
  if (a === b) return true;
  if (a === null || b === null || a === undefined || b === undefined) return false;
  if (a instanceof String || b instanceof String) return (typeof a === 'string' || a instanceof String) && (typeof b === 'string' || b instanceof String) && String(a) === String(b);
  return (typeof a === 'object' || typeof a === 'number') && typeof a.equals === 'function' && a.equals(b);
};
const KEY = Symbol('key');
/** What is the same for keys that are equal. */
const keyOf = key => {
  if (key instanceof String || key instanceof Number || key instanceof Boolean) return key.valueOf();
  return typeof key === 'object' && key !== null && key[KEY] !== undefined ? key[KEY]() : key;
};
const keyText = key => typeof keyOf(key) + ':' + String(keyOf(key));
const unmodifiable = () => fail('UnsupportedOperationException', 'this collection cannot be changed here');
const iterator = (values, remove) => {
  let at = 0;
  let gone = 0;
  return {
    hasNext: () => at < values.length,
    next: () => (at < values.length ? values[at++] : fail('NoSuchElementException', 'there is no next')),
    remove: () => remove(values[at - 1], at - 1 - gone++),
    [Symbol.iterator]: () => values.slice(at)[Symbol.iterator](),
  };
};
const ordering = compare => (a, b) => (compare === undefined || compare === null ? compared(a, b) : typeof compare === 'function' ? compare(a, b) : compare.compare(a, b));
class ArrayList extends Array {
  static get [Symbol.species]() { return Array; }
  constructor(from) {
    super();
    if (from !== undefined && typeof from !== 'number') for (const value of from) super.push(value);
  }
  add(at, value) {
    if (arguments.length < 2) return super.push(at) > 0;
    if (!(at >= 0 && at <= this.length)) this.get(at < 0 ? at : this.length);
    this.splice(at, 0, value);
    return undefined;
  }
  addAll(at, from) {
    const all = Array.from(arguments.length < 2 ? at : from);
    this.splice(arguments.length < 2 ? this.length : at, 0, ...all);
    return all.length > 0;
  }
  addFirst(value) { this.unshift(value); }
  addLast(value) { super.push(value); }
  get(at) {
    if (!(at >= 0 && at < this.length)) fail('IndexOutOfBoundsException', 'Index ' + at + ' out of bounds for length ' + this.length);
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
  removeAll(all) { return this.removeIf(value => this.has(all, value)); }
  retainAll(all) { return this.removeIf(value => !this.has(all, value)); }
  has(all, value) { return Array.from(all).some(one => same(one, value)); }
  removeIf(test) { const left = Array.from(this).filter(value => !test(value)); const changed = left.length < this.length; this.splice(0, this.length, ...left); return changed; }
  removeFirst() { return this.length > 0 ? this.remove(0) : fail('NoSuchElementException', 'the list is empty'); }
  removeLast() { return this.length > 0 ? this.remove(this.length - 1) : fail('NoSuchElementException', 'the list is empty'); }
  peek() { return this.length > 0 ? this[0] : null; }
  poll() { return this.length > 0 ? this.shift() : null; }
  sort(compare) { super.sort(ordering(compare)); return this; }
  replaceAll(change) { this.forEach((value, at) => { this[at] = change(value); }); }
  hashCode() { return Array.from(this).reduce((code, value) => (Math.imul(31, code) + (value === null ? 0 : value.hashCode())) | 0, 1); }
  clone() { return new this.constructor(this); }
  [KEY]() { return '[' + Array.from(this, keyText).join() + ']'; }
  offer(value) { return this.add(value); }
  size() { return this.length; }
  isEmpty() { return this.length === 0; }
  clear() { this.length = 0; }
  contains(what) { return this.some(value => same(value, what)); }
  containsAll(all) { return Array.from(all).every(value => this.contains(value)); }
  indexOf(what) { return this.findIndex(value => same(value, what)); }
  lastIndexOf(what) { return this.findLastIndex(value => same(value, what)); }
  iterator() { return iterator(Array.from(this), (value, at) => this.remove(at)); }
  listIterator() { return nothing('java.util.List.listIterator'); }
  // A copy, and no view: one that cannot be changed.
  subList(from, to) {
    if (!(from >= 0 && from <= to && to <= this.length)) fail('IndexOutOfBoundsException', 'fromIndex: ' + from + ', toIndex: ' + to);
    return Object.freeze(new ArrayList(this.slice(from, to)));
  }
  toArray() { return Array.from(this); }
  equals(other) { return other instanceof ArrayList && this.length === other.length && this.every((value, at) => same(value, other[at])); }
  toString() { return '[' + Array.from(this, javaText).join(', ') + ']'; }
  toJSON() { return Array.from(this); }
}
class LinkedList extends ArrayList {
  push(value) { this.unshift(value); }
  pop() { return this.removeFirst(); }
  remove(what) { return arguments.length === 0 ? this.removeFirst() : super.remove(what); }
  element() { return this.getFirst(); }
  getFirst() { return this.length > 0 ? this[0] : fail('NoSuchElementException', 'the list is empty'); }
  getLast() { return this.length > 0 ? this[this.length - 1] : fail('NoSuchElementException', 'the list is empty'); }
  peekFirst() { return this.peek(); }
  peekLast() { return this.length > 0 ? this[this.length - 1] : null; }
  pollFirst() { return this.poll(); }
  pollLast() { return this.length > 0 ? this.removeLast() : null; }
  offerFirst(value) { this.unshift(value); return true; }
  offerLast(value) { return this.add(value); }
}
// Lists of a fixed length, and such as cannot be changed.
const guardList = (list, names, allowed) => {
  for (const name of names) {
    const act = list.prototype[name];
    defineProperty(list.prototype, name, { value(...given) { return allowed(this) ? act.apply(this, given) : unmodifiable(); }, writable: true, configurable: true });
  }
};
guardList(ArrayList, ['add', 'addAll', 'addFirst', 'addLast', 'remove', 'removeIf', 'removeFirst', 'removeLast', 'poll', 'clear'], Object.isExtensible);
guardList(ArrayList, ['set', 'sort', 'replaceAll'], list => !Object.isFrozen(list));
const entry = (map, key, value) => ({ getKey: () => key, getValue: () => value, setValue: next => { const old = value; value = next; map.put(key, next); return old; }, toString: () => javaText(key) + '=' + javaText(value) });
class HashMap {
  constructor(from) {
    // By key: the key as it was given, and the value.
    defineProperty(this, 'own', { value: new Map() });
    if (from instanceof HashMap) this.putAll(from);
    else if (from !== undefined && typeof from !== 'number') nothing('a map of ' + typeName(from));
  }
  put(key, value) {
    if (Object.isFrozen(this)) unmodifiable();
    const known = this.own.get(keyOf(key));
    this.own.set(keyOf(key), [known === undefined ? key : known[0], value]);
    return known === undefined ? null : known[1];
  }
  setProperty(key, value) { return this.put(key, value); }
  getProperty(key, other = null) { return this.containsKey(key) ? this.get(key) : other; }
  putAll(other) { for (const [key, value] of entriesOf(other)) this.put(key, value); }
  putIfAbsent(key, value) { const old = this.get(key); if (old === null) this.put(key, value); return old; }
  get(key) { const known = this.own.get(keyOf(key)); return known === undefined || known[1] === undefined ? null : known[1]; }
  getOrDefault(key, other) { return this.containsKey(key) ? this.get(key) : other; }
  remove(key) {
    if (Object.isFrozen(this)) unmodifiable();
    const old = this.get(key);
    this.own.delete(keyOf(key));
    return old;
  }
  replace(key, value) { return this.containsKey(key) ? this.put(key, value) : null; }
  containsKey(key) { return this.own.has(keyOf(key)); }
  containsValue(what) { return this.sorted().some(([, value]) => same(value, what)); }
  keys() { return this.sorted().map(([key]) => key); }
  sorted() { return Array.from(this.own.values()); }
  // Copies, and no views: such as cannot be changed.
  keySet() { return Object.freeze(new HashSet(this.keys())); }
  values() { return Object.freeze(new ArrayList(this.sorted().map(([, value]) => value))); }
  entrySet() { return Object.freeze(new ArrayList(this.sorted().map(([key, value]) => entry(this, key, value)))); }
  size() { return this.own.size; }
  isEmpty() { return this.own.size === 0; }
  clear() { if (Object.isFrozen(this)) unmodifiable(); this.own.clear(); }
  forEach(act) { for (const [key, value] of this.sorted()) act(key, value); }
  clone() { return new this.constructor(this); }
  equals(other) { return other instanceof HashMap && this.size() === other.size() && this.sorted().every(([key, value]) => other.containsKey(key) && same(value, other.get(key))); }
  [KEY]() { return '{' + this.sorted().map(([key, value]) => keyText(key) + '=' + keyText(value)).sort().join() + '}'; }
  toString() { return '{' + this.sorted().map(([key, value]) => javaText(key) + '=' + javaText(value)).join(', ') + '}'; }
  toJSON() { return Object.fromEntries(this.sorted()); }
  [Symbol.iterator]() { return this.sorted()[Symbol.iterator](); }
}
const entriesOf = other => (other instanceof HashMap ? other.sorted() : Object.entries(other));
const first = all => (all.length > 0 ? all[0] : fail('NoSuchElementException', 'there is nothing in it'));
class TreeMap extends HashMap {
  sorted() { return super.sorted().sort(([a], [b]) => compared(a, b)); }
  firstKey() { return first(this.keys()); }
  lastKey() { return first(this.keys().reverse()); }
}
class HashSet {
  constructor(from) {
    defineProperty(this, 'own', { value: new Map() });
    if (typeof from === 'function') nothing('a set with an order of its own');
    if (from !== undefined && typeof from !== 'number') this.addAll(from);
  }
  add(value) {
    if (Object.isFrozen(this)) unmodifiable();
    const is = !this.own.has(keyOf(value));
    if (is) this.own.set(keyOf(value), value);
    return is;
  }
  addAll(from) { let changed = false; for (const value of from) changed = this.add(value) || changed; return changed; }
  remove(value) { if (Object.isFrozen(this)) unmodifiable(); return this.own.delete(keyOf(value)); }
  removeAll(all) { let changed = false; for (const value of all) changed = this.remove(value) || changed; return changed; }
  removeIf(test) { return this.removeAll(this.sorted().filter(value => test(value))); }
  retainAll(all) { const kept = new HashSet(all); return this.removeIf(value => !kept.contains(value)); }
  contains(value) { return this.own.has(keyOf(value)); }
  containsAll(all) { return Array.from(all).every(value => this.contains(value)); }
  size() { return this.own.size; }
  isEmpty() { return this.own.size === 0; }
  clear() { if (Object.isFrozen(this)) unmodifiable(); this.own.clear(); }
  sorted() { return Array.from(this.own.values()); }
  iterator() { return iterator(this.sorted(), value => this.remove(value)); }
  toArray() { return this.sorted(); }
  clone() { return new this.constructor(this); }
  equals(other) { return other instanceof HashSet && this.size() === other.size() && this.containsAll(other); }
  hashCode() { return this.sorted().reduce((code, value) => (code + value.hashCode()) | 0, 0); }
  [KEY]() { return '(' + this.sorted().map(keyText).sort().join() + ')'; }
  toString() { return '[' + this.sorted().map(javaText).join(', ') + ']'; }
  toJSON() { return this.sorted(); }
  forEach(act) { this.sorted().forEach(value => act(value)); }
  [Symbol.iterator]() { return this.sorted()[Symbol.iterator](); }
}
class TreeSet extends HashSet {
  sorted() { return super.sorted().sort(compared); }
  first() { return first(this.sorted()); }
  last() { return first(this.sorted().reverse()); }
}
class UUID {
  constructor(text) {
    if (typeof text !== 'string') nothing('java.util.UUID of two numbers');
    this.text = text;
  }
  static randomUUID() { return new UUID(call('uuid')); }
  static fromString(text) {
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(String(text))) fail('IllegalArgumentException', 'Invalid UUID string: ' + text);
    return new UUID(String(text).toLowerCase());
  }
  static nameUUIDFromBytes(bytes) {
    const own = ofBase64(call('digest', 'MD5', toBase64(bytes)));
    own[6] = (own[6] & 15) | 48;
    own[8] = (own[8] & 63) | 128;
    const hex = Array.from(own, byte => (byte & 255).toString(16).padStart(2, '0')).join('');
    return new UUID(hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'));
  }
  equals(other) { return other instanceof UUID && this.text === other.text; }
  compareTo(other) { const [a, b] = [this, other].map(one => [one.text.slice(0, 18), one.text.slice(19)].map(half => BigInt.asIntN(64, BigInt('0x' + half.replace(/-/g, ''))))); return compared(a[0], b[0]) || compared(a[1], b[1]); }
  version() { return parseInt(this.text[14], 16); }
  hashCode() { return this.text.replace(/-/g, '').match(/.{8}/g).reduce((code, part) => code ^ parseInt(part, 16), 0); }
  [KEY]() { return 'uuid ' + this.text; }
  toString() { return this.text; }
  toJSON() { return this.text; }
}
const encoder = (url, padded, mime) => ({
  encode: bytes => bytesOf(encoder(url, padded, mime).encodeToString(bytes)),
  encodeToString: bytes => {
    let text = toBase64(bytesOf(bytes));
    if (url) text = text.replace(/\+/g, '-').replace(/\//g, '_');
    if (!padded) text = text.replace(/=+$/, '');
    return mime ? text.replace(/.{76}(?=.)/g, '$&\r\n') : text;
  },
  withoutPadding: () => encoder(url, false, mime),
});
const wrong64 = why => fail('IllegalArgumentException', why);
const decoder = (allowed, mime) => ({
  decode: value => {
    let text = textOf(value);
    if (mime) text = text.replace(/[^A-Za-z0-9+/=]/g, '');
    const [, digits, rest] = /^([^=]*)(=*[^]*)$/.exec(text);
    const bad = digits.match(allowed);
    if (bad !== null) wrong64('Illegal base64 character ' + bad[0].charCodeAt(0).toString(16));
    if (digits.length % 4 === 1 || (rest !== '' && rest !== '='.repeat((4 - digits.length % 4) % 4))) wrong64('Input byte array has wrong 4-byte ending unit');
    return ofBase64(digits);
  },
});
const [plain64, url64] = [/[^A-Za-z0-9+/]/, /[^A-Za-z0-9_-]/];
const Base64 = {
  getEncoder: () => encoder(false, true, false), getUrlEncoder: () => encoder(true, true, false),
  getMimeEncoder: length => (length === undefined ? encoder(false, true, true) : nothing('java.util.Base64.getMimeEncoder of a length')),
  getDecoder: () => decoder(plain64, false), getUrlDecoder: () => decoder(url64, false), getMimeDecoder: () => decoder(plain64, true),
};
class JavaDate {
  constructor(time) {
    this.time = time === undefined ? Date.now() : Math.trunc(Number(time instanceof JavaDate ? time.time : time));
    if (arguments.length > 1 || Number.isNaN(this.time)) nothing('java.util.Date of anything but milliseconds');
  }
  getTime() { return this.time; }
  setTime(time) { this.time = Number(time); }
  before(other) { return this.time < other.getTime(); }
  after(other) { return this.time > other.getTime(); }
  compareTo(other) { return Math.sign(this.time - other.getTime()); }
  equals(other) { return other instanceof JavaDate && other.time === this.time; }
  hashCode() { return longHash(BigInt(this.time)); }
  clone() { return new JavaDate(this.time); }
  [KEY]() { return 'date ' + this.time; }
  toInstant() { return classOf('java.time.Instant').ofEpochMilli(this.time); }
  static from(instant) { return new JavaDate(instant.toEpochMilli()); }
  valueOf() { return this.time; }
  toJSON() { return this.time; }
  toString() { return call('format', 'EEE MMM dd HH:mm:ss zzz yyyy', this.time, ''); }
}
class TimeZone {
  constructor(id) { this.id = id; }
  static getTimeZone(id) {
    const own = String(id);
    const found = /^GMT([+-])(\d{1,2})(?::?([0-5]\d))?$/.exec(own);
    return new TimeZone(found === null || Number(found[2]) > 23 ? own : 'GMT' + found[1] + found[2].padStart(2, '0') + ':' + (found[3] || '00'));
  }
  static getDefault() { return new TimeZone(''); }
  getID() { return this.id; }
  getOffset(time) { return late().zones.getOffset(this.id)(time); }
  getRawOffset() { return late().zones.getRawOffset(this.id)(); }
  inDaylightTime(date) { return this.getOffset(date.getTime()) !== late().zones.getRawOffset(this.id, date.getTime())(); }
  equals(other) { return other instanceof TimeZone && this.id === other.id; }
  toString() { return this.id; }
}
/** Java's generator where there is a seed; else any. */
class Random {
  constructor(seed) {
    if (seed !== undefined) this.setSeed(seed);
  }
  setSeed(seed) { this.seed = (BigInt(Math.trunc(Number(seed))) ^ 0x5deece66dn) & 0xffffffffffffn; }
  bits(count) {
    if (!Object.hasOwn(this, 'seed')) return Math.floor((Math.random() - 0.5) * 4294967296) >> (32 - count) & (count === 32 ? -1 : 2 ** count - 1);
    this.seed = (this.seed * 0x5deece66dn + 11n) & 0xffffffffffffn;
    return Number(BigInt.asIntN(32, this.seed >> BigInt(48 - count)));
  }
  nextInt(low, high) {
    if (low === undefined) return this.bits(32);
    const [from, size] = high === undefined ? [0, low] : [low, high - low];
    if (!(size > 0)) fail('IllegalArgumentException', 'bound must be positive');
    const power = (size & (size - 1)) === 0;
    if (high !== undefined && power) return from + (this.bits(32) & (size - 1));
    if (power) return Math.floor((size * this.bits(31)) / 2147483648);
    const next = () => (high === undefined ? this.bits(31) : this.bits(32) >>> 1);
    let value = next();
    while (value - (value % size) + (size - 1) > 2147483647) value = next();
    return from + (value % size);
  }
  nextLong() { const high = BigInt(this.bits(32)) << 32n; return Number(BigInt.asIntN(64, high + BigInt(this.bits(32)))); }
  nextDouble() { const high = this.bits(26) * 134217728; return (high + this.bits(27)) / 9007199254740992; }
  nextFloat() { return this.bits(24) / 16777216; }
  nextBoolean() { return this.bits(1) !== 0; }
  nextBytes(bytes) {
    for (let at = 0, word = 0; at < bytes.length; at++, word >>= 8) {
      if (at % 4 === 0) word = this.bits(32);
      bytes[at] = (word << 24) >> 24;
    }
  }
}
class SecureRandom extends Random {
  constructor() { super(); }
  static getInstance() { return new SecureRandom(); }
  static getInstanceStrong() { return new SecureRandom(); }
  setSeed() {}
  bits(count) {
    const word = ofBase64(call('random', 4)).reduce((all, byte) => (all << 8) | (byte & 255), 0);
    return count === 32 ? word : word >>> (32 - count);
  }
  nextBytes(bytes) { const own = ofBase64(call('random', bytes.length)); for (let at = 0; at < bytes.length; at++) bytes[at] = own[at]; }
}
const compared = (a, b) => (typeof a === 'object' && a !== null && typeof a.compareTo === 'function' ? a.compareTo(b) : a < b ? -1 : a > b ? 1 : 0);
const fixedMap = map => { const copy = new HashMap(); copy.putAll(map); return Object.freeze(copy); };
const extreme = (list, compare, sign) => first(Array.from(list).sort((a, b) => sign * ordering(compare)(a, b)));
const Collections = {
  sort: (list, compare) => void Array.prototype.sort.call(list, ordering(compare)),
  reverse: list => void Array.prototype.reverse.call(list),
  emptyList: () => Object.freeze(new ArrayList()), emptyMap: () => Object.freeze(new HashMap()), singletonList: value => Object.freeze(new ArrayList([value])),
  // Copies: what is changed in the list later is not seen.
  unmodifiableList: list => Object.freeze(new ArrayList(list)), unmodifiableMap: fixedMap, reverseOrder: () => (a, b) => compared(b, a),
  max: (list, compare) => extreme(list, compare, -1), min: (list, compare) => extreme(list, compare, 1),
  frequency: (list, what) => Array.from(list).filter(value => same(value, what)).length,
};
const Arrays = {
  asList: (...values) => Object.seal(new ArrayList(values.length === 1 && typeof values[0] === 'object' && values[0] !== null && !(values[0] instanceof String) && Symbol.iterator in values[0] ? values[0] : values)),
  toString: values => (values === null ? 'null' : '[' + Array.from(values, javaText).join(', ') + ']'),
  sort: (values, compare, ...more) => (more.length > 0 || typeof compare === 'number' ? nothing('java.util.Arrays.sort of a range') : void Array.prototype.sort.call(values, ordering(compare))),
  copyOfRange: (values, from, to) => padded(values.slice(from, to), to - from, values), copyOf: (values, size) => padded(values.slice(0, size), size, values),
  fill: (values, ...given) => void (given.length === 1 ? values.fill(given[0]) : values.fill(given[2], given[0], given[1])),
  equals: (a, b) => a === b || (a !== null && b !== null && a.length === b.length && Array.from(a).every((value, at) => same(value, b[at]))),
  hashCode: values => new ArrayList(Array.from(values)).hashCode(),
};
const padded = (values, size, like) => {
  if (values.length >= size) return values;
  if (like instanceof Int8Array) { const all = new Int8Array(size); all.set(values); return all; }
  return values.concat(new Array(size - values.length).fill(like.length > 0 && like.every(value => typeof value === 'number') ? 0 : null));
};
class Locale {
  constructor(language, country = '') {
    if (!['', 'en'].includes(String(language).toLowerCase())) nothing('java.util.Locale `' + language + '`');
    this.language = String(language).toLowerCase();
    this.country = String(country).toUpperCase();
  }
  static getDefault() { return Locale.US; }
  static forLanguageTag(tag) { return new Locale(...String(tag).split('-')); }
  getLanguage() { return this.language; }
  getCountry() { return this.country; }
  equals(other) { return other instanceof Locale && String(this) === String(other); }
  toString() { return this.country === '' ? this.language : this.language + '_' + this.country; }
  toJSON() { return this.toString(); }
}
Object.assign(Locale, { ENGLISH: new Locale('en'), US: new Locale('en', 'US'), UK: new Locale('en', 'GB'), CANADA: new Locale('en', 'CA'), ROOT: new Locale('') });
const Objects = {
  equals: same, isNull: value => value === null || value === undefined, nonNull: value => value !== null && value !== undefined,
  toString: (value, other) => ((value === null || value === undefined) && other !== undefined ? other : javaText(value)),
  requireNonNull: (value, why) => (value === null || value === undefined ? fail('NullPointerException', why === undefined ? 'null' : why) : value),
  hashCode: value => (value === null || value === undefined ? 0 : value.hashCode()), hash: (...values) => new ArrayList(values).hashCode(),
};
class StringTokenizer {
  constructor(text, marks, kept) {
    if (kept) nothing('java.util.StringTokenizer that returns delimiters');
    this.left = String(text).split(new RegExp('[' + (marks === undefined ? ' \\t\\n\\r\\f' : String(marks).replace(/[\]\\^-]/g, '\\$&')) + ']+')).filter(part => part !== '');
  }
  hasMoreTokens() { return this.left.length > 0; }
  hasMoreElements() { return this.left.length > 0; }
  nextElement() { return this.nextToken(); }
  nextToken(marks) {
    if (marks !== undefined) nothing('java.util.StringTokenizer.nextToken of delimiters');
    return this.left.length > 0 ? this.left.shift() : fail('NoSuchElementException', 'there is no token');
  }
  countTokens() { return this.left.length; }
}
