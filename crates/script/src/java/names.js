// java.net, java.security, javax.crypto, …; the names of all classes, and how scripts reach them.

const isUtf8 = charset => charset === undefined || /^utf-?8$/i.test(String(charset));
const URLEncoder = {
  encode: (text, charset) => {
    const safe = escaped => escaped.replace(/%20/g, '+');
    const hex = byte => '%' + (byte & 255).toString(16).toUpperCase().padStart(2, '0');
    if (isUtf8(charset)) return safe(encodeURIComponent(String(text)).replace(/[!'()~]/g, c => hex(c.charCodeAt(0))));
    bytesOf('', charset); // A charset that does not exist is an exception also where nothing is to be escaped.
    return String(text).replace(/[^A-Za-z0-9.*_ -]+/g, part => Array.from(bytesOf(part, charset), hex).join('')).replace(/ /g, '+');
  },
};
const URLDecoder = {
  decode: (text, charset) => {
    const own = String(text).replace(/\+/g, ' ');
    if (/%(?![0-9a-f]{2})/i.test(own)) fail('IllegalArgumentException', 'URLDecoder: Illegal hex characters in escape (%) pattern');
    if (isUtf8(charset)) return decodeURIComponent(own);
    return own.replace(/(?:%[0-9a-f]{2})+/gi, part => textOf(Int8Array.from(part.slice(1).split('%'), pair => parseInt(pair, 16)), charset));
  },
};
class MessageDigest {
  constructor(name) { this.name = String(name); this.held = []; }
  static getInstance(name) { call('digest', name, ''); return new MessageDigest(name); }
  static isEqual(a, b) { return Array.from(a).join() === Array.from(b).join(); }
  update(bytes, from, count) {
    const all = typeof bytes === 'number' ? [bytes] : bytesOf(bytes);
    for (const byte of from === undefined ? all : all.slice(from, from + count)) this.held.push(byte);
  }
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
  reset() { this.held = []; }
  getAlgorithm() { return this.name; }
  update(bytes, from, count) {
    const all = typeof bytes === 'number' ? [bytes] : bytesOf(bytes);
    for (const byte of from === undefined ? all : all.slice(from, from + count)) this.held.push(byte);
  }
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
  parseHexBinary: text => {
    if (!/^(?:[0-9a-f]{2})*$/i.test(String(text))) fail('IllegalArgumentException', 'contains illegal character for hexBinary: ' + text);
    return Int8Array.from((String(text).match(/../g) || []).map(pair => parseInt(pair, 16)));
  },
};
// Of the library that servers for Java have most.
class CodecBase64 {
  // Of `Base64(true)`: safe for URLs. Length and ends of lines are not there, as in `Base64()`.
  constructor(safe) { this.safe = safe === true; }
  encode(bytes) { return bytesOf(this.encodeToString(bytes)); }
  encodeToString(bytes) { return this.safe ? CodecBase64.encodeBase64URLSafeString(bytes) : toBase64(bytesOf(bytes)); }
  encodeAsString(bytes) { return this.encodeToString(bytes); }
  decode(value) { return CodecBase64.decodeBase64(value); }
  isUrlSafe() { return this.safe; }
  static encodeBase64(bytes) { return bytesOf(toBase64(bytesOf(bytes))); }
  static encodeBase64String(bytes) { return toBase64(bytesOf(bytes)); }
  static encodeBase64URLSafeString(bytes) { return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes); }
  static decodeBase64(value) { return ofBase64(textOf(value).replace(/[^A-Za-z0-9+/_-]/g, '')); }
  static isBase64(text) { return /^[A-Za-z0-9+/_=\s-]*$/.test(String(text)); }
}
const Hex = {
  encodeHexString: (bytes, lower) => {
    const own = DatatypeConverter.printHexBinary(bytesOf(bytes));
    return lower === false ? own : own.toLowerCase();
  },
  encodeHex: (bytes, lower) => Hex.encodeHexString(bytes, lower).split(''),
  decodeHex: text => DatatypeConverter.parseHexBinary(Array.isArray(text) ? text.join('') : text),
};
const DigestUtils = {};
for (const [name, algorithm] of [['md5', 'MD5'], ['sha1', 'SHA-1'], ['sha', 'SHA-1'], ['sha256', 'SHA-256'], ['sha384', 'SHA-384'], ['sha512', 'SHA-512']]) {
  DigestUtils[name] = bytes => MessageDigest.getInstance(algorithm).digest(bytesOf(bytes));
  DigestUtils[name + 'Hex'] = bytes => DatatypeConverter.printHexBinary(DigestUtils[name](bytes)).toLowerCase();
}
const TimeUnit = {};
for (const [name, size] of [['MILLISECONDS', 1], ['SECONDS', 1e3], ['MINUTES', 6e4], ['HOURS', 36e5], ['DAYS', 864e5]]) {
  TimeUnit[name] = {
    sleep: count => Thread.sleep(count * size), toMillis: count => count * size, toSeconds: count => Math.trunc((count * size) / 1e3),
    toMinutes: count => Math.trunc((count * size) / 6e4), toHours: count => Math.trunc((count * size) / 36e5), toDays: count => Math.trunc((count * size) / 864e5),
    name: () => name, toString: () => name,
  };
}
const Charset = { forName: name => String(name), defaultCharset: () => 'UTF-8' };

// `null`: of the parts that are evaluated late.
const classes = {
  __proto__: null,
  'java.lang.String': null, 'java.lang.StringBuilder': StringBuilder, 'java.lang.StringBuffer': StringBuilder,
  'java.lang.System': System, 'java.lang.Thread': Thread, 'java.lang.Integer': Integer, 'java.lang.Long': Long,
  'java.lang.Short': Short, 'java.lang.Byte': Byte, 'java.lang.Double': Double, 'java.lang.Float': Float, 'java.lang.Boolean': JavaBoolean,
  'java.lang.Character': Character, 'java.lang.Math': JavaMath,
  'java.util.ArrayList': ArrayList, 'java.util.LinkedList': LinkedList, 'java.util.Vector': ArrayList,
  'java.util.HashMap': HashMap, 'java.util.LinkedHashMap': HashMap, 'java.util.Hashtable': HashMap, 'java.util.TreeMap': TreeMap,
  'java.util.concurrent.ConcurrentHashMap': HashMap, 'java.util.Properties': HashMap,
  'java.util.HashSet': HashSet, 'java.util.LinkedHashSet': HashSet, 'java.util.TreeSet': TreeSet,
  'java.util.UUID': UUID, 'java.util.Base64': Base64, 'java.util.Date': JavaDate, 'java.util.Calendar': null,
  'java.util.GregorianCalendar': null, 'java.util.TimeZone': TimeZone, 'java.util.Random': Random,
  'java.util.Collections': Collections, 'java.util.Arrays': Arrays, 'java.util.Locale': Locale, 'java.util.Objects': Objects,
  'java.util.StringTokenizer': StringTokenizer, 'java.util.Formatter': null, 'java.security.SecureRandom': SecureRandom,
  'java.text.SimpleDateFormat': null, 'java.text.DecimalFormat': null, 'java.text.DecimalFormatSymbols': null,
  'java.time.Instant': null, 'java.time.LocalDate': null, 'java.time.LocalTime': null, 'java.time.LocalDateTime': null,
  'java.time.ZonedDateTime': null, 'java.time.OffsetDateTime': null, 'java.time.Duration': null, 'java.time.Period': null,
  'java.time.ZoneId': null, 'java.time.ZoneOffset': null, 'java.time.Month': null, 'java.time.DayOfWeek': null,
  'java.time.format.DateTimeFormatter': null, 'java.time.format.TextStyle': null, 'java.time.temporal.ChronoUnit': null,
  'java.util.regex.Pattern': null, 'java.util.regex.Matcher': null, 'javax.xml.namespace.QName': null,
  'org.apache.axiom.om.util.AXIOMUtil': null, 'org.apache.axiom.om.xpath.AXIOMXPath': null, 'org.apache.axiom.om.OMAbstractFactory': null,
  'java.net.URI': null, 'java.util.Optional': null,
  'org.apache.commons.lang.StringUtils': null, 'org.apache.commons.lang3.StringUtils': null,
  'org.apache.commons.lang.StringEscapeUtils': null, 'org.apache.commons.lang3.StringEscapeUtils': null,
  'org.apache.commons.text.StringEscapeUtils': null, 'java.util.concurrent.TimeUnit': TimeUnit,
  'java.math.BigDecimal': null, 'java.math.BigInteger': null, 'java.math.RoundingMode': null,
  'java.net.URLEncoder': URLEncoder, 'java.net.URLDecoder': URLDecoder, 'java.security.MessageDigest': MessageDigest,
  'javax.crypto.Mac': Mac, 'javax.crypto.spec.SecretKeySpec': SecretKeySpec,
  'javax.xml.bind.DatatypeConverter': DatatypeConverter,
  'org.apache.commons.codec.binary.Base64': CodecBase64, 'org.apache.commons.codec.binary.Hex': Hex,
  'org.apache.commons.codec.digest.DigestUtils': DigestUtils,
  'java.nio.charset.Charset': Charset,
  'java.nio.charset.StandardCharsets': { UTF_8: 'UTF-8', ISO_8859_1: 'ISO-8859-1', US_ASCII: 'US-ASCII', UTF_16: 'UTF-16', UTF_16BE: 'UTF-16BE', UTF_16LE: 'UTF-16LE' },
};
for (const name of EXCEPTIONS.flatMap(([, ...names]) => names)) classes[name] = exceptions.get(name.replace(/.*\./, ''));

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
const sealed = (name, value) => {
  // Two names of one class are one class; what is in the prototype of JavaScript stays as it is there.
  if (Object.isFrozen(value)) return value;
  if (!(value.prototype instanceof Error)) {
    const { prototype } = value;
    if (typeof value === 'function' && prototype !== undefined && prototype !== Boolean.prototype && Object.getPrototypeOf(prototype) !== HashMap.prototype && Object.getPrototypeOf(prototype) !== HashSet.prototype && Object.getPrototypeOf(prototype) !== ArrayList.prototype && Object.getPrototypeOf(prototype) !== Random.prototype) guard(prototype, name);
    guard(value, name);
  }
  frozen(value);
  return value;
};
for (const name of Object.keys(classes)) if (classes[name] !== null) sealed(name, classes[name]);
const classOf = name => {
  if (classes[name] === null) {
    const made = late();
    for (const each of Object.keys(classes)) if (classes[each] === null) classes[each] = sealed(each, made[each]);
  }
  return classes[name];
};

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
    return name in classes ? classOf(name) : packageOf(name);
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
      if (known.slice(0, at) === path) into(known.slice(at + 1), classOf(known));
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
    type: name => (String(name).endsWith('[]') ? Array : String(name) in classes ? classOf(String(name)) : nothing(name)),
    from: values => Array.from(values),
    to: values => Array.from(values),
    isJavaObject: () => false,
  },
};
for (const name of Object.keys(globals)) {
  defineProperty(globalThis, name, { value: globals[name], writable: true, configurable: true, enumerable: false });
}
// What strings of JavaScript have of Java besides: those that come from Java elsewhere.
const strings = {
  toString: undefined, getBytes(charset) { return bytesOf(String(this), charset); },
  hashCode() { return hash(String(this)); },
  toCharArray() { return String(this).split(''); },
  equals(other) { return typeof other === 'function' ? String(this) === String(other) : (typeof other === 'string' || other instanceof String) && String(this) === String(other); },
  contains(part) { return String(this).includes(String(part)); },
  isEmpty() { return String(this) === ''; },
};
delete strings.toString;
for (const name of ['matches', 'replaceFirst', 'compareTo', 'compareToIgnoreCase', 'equalsIgnoreCase', 'isBlank', 'strip']) {
  strings[name] = { [name](...given) {
    const value = late().stringMethods[name](String(this), ...given);
    return typeof value === 'object' ? String(value) : value;
  } }[name];
}
for (const [prototype, methods] of [[Number.prototype, numberMethods], [Boolean.prototype, booleanMethods]]) {
  for (const name of Object.keys(methods)) defineProperty(prototype, name, { value: methods[name], writable: true, configurable: true, enumerable: false });
}
for (const name of Object.keys(strings)) {
  defineProperty(String.prototype, name, { value: strings[name], writable: true, configurable: true, enumerable: false });
}
