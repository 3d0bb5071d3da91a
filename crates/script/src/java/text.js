// Texts: how numbers are written (`String.format`, `DecimalFormat`), and java.lang.String.

// Decimal numbers: the digits that Java writes, how many of them stand before the point, and rounding.

const decimal = value => {
  if (value instanceof BigDecimal) return value.decimal();
  const [, first, rest = '', exponent] = /^(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(Math.abs(value).toExponential());
  return { digits: first + rest, point: Number(exponent) + 1 };
};
/** How a number compares with `digits` × 10^`power`, in the exact value that its bits have. */
const compareExact = (value, digits, power) => {
  if (value instanceof BigDecimal) return 0;
  let left = Math.abs(value);
  let twos = 0n;
  while (!Number.isInteger(left)) {
    left *= 2;
    twos++;
  }
  let a = BigInt(left);
  let b = BigInt(digits) << twos;
  if (power < 0) a *= 10n ** BigInt(-power);
  else b *= 10n ** BigInt(power);
  return a < b ? -1 : a > b ? 1 : 0;
};
/**
 * The digits up to `places` behind the point. Without a mode, half of the digits as written goes away from zero; with one
 * (see `roundsUp`), half is that of the exact value.
 */
const rounded = (value, places, mode) => {
  const { digits, point } = decimal(value);
  const keep = point + places;
  if (keep >= digits.length) return { digits, point };
  if (keep < 0) return { digits: '0', point: 1 };
  const kept = digits.slice(0, keep);
  let half = digits.slice(keep) === '5' ? 0 : digits.slice(keep) > '5' ? 1 : -1;
  if (half === 0 && mode !== undefined) half = compareExact(value, digits, point - digits.length);
  const negative = value instanceof BigDecimal ? value.unscaled < 0n : value < 0;
  if (!roundsUp(mode === undefined ? HALF_UP : mode, half, Number(kept.slice(-1)) % 2 === 1, negative)) {
    return { digits: kept === '' ? '0' : kept, point: kept === '' ? 1 : point };
  }
  const next = String(BigInt(kept === '' ? 0 : kept) + 1n).padStart(kept.length, '0');
  if (kept === '') return { digits: next, point: 1 - places };
  return { digits: next, point: point + next.length - kept.length };
};
/** The digits before and behind the point, `[whole, fraction]`. */
const apart = ({ digits, point }) => {
  const whole = point <= 0 ? '' : digits.slice(0, point).padEnd(point, '0');
  const fraction = point >= digits.length ? '' : '0'.repeat(Math.max(-point, 0)) + digits.slice(Math.max(point, 0));
  return [whole.replace(/^0+/, ''), fraction.replace(/0+$/, '')];
};
const fixed = (value, places) => {
  const [whole, fraction] = apart(rounded(value, places));
  return (whole === '' ? '0' : whole) + (places > 0 ? '.' + fraction.padEnd(places, '0') : '');
};
const scientific = (value, places) => {
  if (Number(value) === 0) return (places > 0 ? '0.' + '0'.repeat(places) : '0') + 'e+00';
  const { point } = decimal(value);
  const result = rounded(value, places + 1 - point);
  const exponent = result.point - 1;
  const digits = result.digits.slice(0, places + 1).padEnd(places + 1, '0');
  const power = String(Math.abs(exponent)).padStart(2, '0');
  return digits[0] + (places > 0 ? '.' + digits.slice(1) : '') + 'e' + (exponent < 0 ? '-' : '+') + power;
};
const grouped = (whole, size) => whole.replace(new RegExp('\\B(?=(\\d{' + size + '})+(?!\\d))', 'g'), ',');

// String.format

const FLAGS = { b: '-', h: '-', s: '-', c: '-', d: '-+ 0,(', o: '-#0', x: '-#0', e: '-#+ 0(', f: '-#+ 0,(', g: '-+ 0,(', t: '-', '%': '-', n: '' };
/** The patterns of times behind `%t`. */
const TIMES = {
  Y: 'yyyy', y: 'yy', m: 'MM', B: 'MMMM', b: 'MMM', h: 'MMM', d: 'dd', e: 'd', A: 'EEEE', a: 'EEE', j: 'DDD', H: 'HH', k: 'H', I: 'hh', l: 'h',
  M: 'mm', S: 'ss', L: 'SSS', p: 'a', z: 'Z', Z: 'z', R: 'HH:mm', T: 'HH:mm:ss', r: 'hh:mm:ss a', D: 'MM/dd/yy', F: 'yyyy-MM-dd', c: 'EEE MMM dd HH:mm:ss z yyyy', Q: '', s: '',
};
const timeText = (value, letter) => {
  const time = value instanceof Calendar ? value.getTimeInMillis() : value instanceof JavaDate ? value.getTime() : Number(value);
  if (!Number.isFinite(time)) mismatch('t' + letter, value);
  if (letter === 'Q' || letter === 's') return String(letter === 'Q' ? time : floor(time / 1000));
  const format = new SimpleDateFormat(TIMES[letter]);
  if (value instanceof Calendar) format.setTimeZone(value.getTimeZone());
  return letter === 'p' ? format.format(time).toLowerCase() : format.format(time);
};
const mismatch = (kind, value) => fail('IllegalFormatConversionException', kind + ' != ' + typeName(value));
const plain = value => (value instanceof Number || value instanceof Boolean || value instanceof String ? value.valueOf() : value);
const integral = (kind, value) => {
  if (value instanceof BigInteger) return value.value;
  const number = plain(value);
  if (typeof number === 'bigint') return number;
  if (typeof number !== 'number' || !Number.isInteger(number) || /(Double|Float)$/.test(typeName(value)) && value instanceof Number) mismatch(kind, value);
  return BigInt(number);
};
const signed = (digits, negative, flags) =>
  negative ? (flags.includes('(') ? ['(', digits, ')'] : ['-', digits, '']) : [flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '', digits, ''];
const converted = (kind, value, flags, precision) => {
  switch (kind) {
    case 's': case 'h': case 'b': {
      const text = kind === 's' ? javaText(value)
        : kind === 'b' ? String(value === null || value === undefined ? false : typeof plain(value) === 'boolean' ? plain(value) : true)
        : value === null || value === undefined ? 'null' : ((typeof value === 'string' ? hash(value) : typeof value === 'number' ? value | 0 : value.hashCode()) >>> 0).toString(16);
      return ['', precision === undefined ? text : text.slice(0, precision), ''];
    }
    case 'c': {
      const one = plain(value);
      if (typeof one === 'number') return ['', String.fromCodePoint(one), ''];
      if (Array.from(String(one)).length !== 1) mismatch(kind, value);
      return ['', String(one), ''];
    }
    case 'd': {
      const number = integral(kind, value);
      const digits = String(number < 0n ? -number : number);
      return signed(flags.includes(',') ? grouped(digits, 3) : digits, number < 0n, flags);
    }
    case 'o': case 'x': {
      let number = integral(kind, value);
      if (value instanceof BigInteger) return signed(number.toString(kind === 'x' ? 16 : 8).replace('-', ''), number < 0n, flags);
      const bits = { 'java.lang.Byte': 8, 'java.lang.Short': 16, 'java.lang.Long': 64 }[typeName(value)];
      if (number < 0n) number = BigInt.asUintN(bits !== undefined ? bits : number >= -2147483648n ? 32 : 64, number);
      const prefix = flags.includes('#') ? (kind === 'x' ? '0x' : '0') : '';
      return [prefix, number.toString(kind === 'x' ? 16 : 8), ''];
    }
    default: {
      const number = plain(value);
      if (number instanceof BigDecimal) {
        if (kind === 'g') nothing('java.util.Formatter, conversion %g of a BigDecimal');
        const text = kind === 'f' ? fixed(number, precision === undefined ? 6 : precision) : scientific(number, precision === undefined ? 6 : precision);
        return signed(flags.includes(',') ? text.replace(/^\d+/, whole => grouped(whole, 3)) : text, number.signum() < 0, flags);
      }
      if (typeof number !== 'number') mismatch(kind, value);
      if (/(Integer|Long|Short)$/.test(typeName(value)) && value instanceof Number) mismatch(kind, value);
      const negative = number < 0 || Object.is(number, -0);
      if (!Number.isFinite(number)) {
        const [left, text, right] = signed(Number.isNaN(number) ? 'NaN' : 'Infinity', negative, Number.isNaN(number) ? '' : flags);
        return ['', left + text + right, '', true];
      }
      let places = precision === undefined ? 6 : precision;
      let text;
      if (kind === 'g') {
        places = places === 0 ? 1 : places;
        const size = Math.abs(number);
        const after = size === 0 ? 0 : rounded(size, places - decimal(size).point).point;
        if (size === 0 || (after > -4 && after <= places)) text = fixed(size, size === 0 ? places - 1 : places - after);
        else text = scientific(size, places - 1);
      } else {
        text = kind === 'f' ? fixed(number, places) : scientific(number, places);
        if (flags.includes('#') && places === 0) text = text.replace(/^\d+/, all => all + '.');
      }
      if (flags.includes(',')) text = text.replace(/^\d+/, whole => grouped(whole, 3));
      return signed(text, negative, flags);
    }
  }
};
const formatted = (...given) => {
  const [pattern, ...values] = given[0] instanceof Locale || given[0] === null ? given.slice(1) : given;
  let next = 0;
  let last = -1;
  const form = /%(?:(\d+)\$)?([-#+ 0,(<]*)(\d+)?(?:\.(\d+))?([a-zA-Z%]?)([a-zA-Z]?)/g;
  return String(pattern).replace(form, (all, at, flags, widths, digits, letter, second) => {
    const kind = letter.toLowerCase();
    const behind = kind === 't' ? '' : second;
    if (kind === 'a') nothing('java.util.Formatter, conversion %' + letter);
    if (FLAGS[kind] === undefined || (letter !== kind && !'BHSCXEGT'.includes(letter)) || (kind === 't' && TIMES[second] === undefined)) {
      fail('UnknownFormatConversionException', "Conversion = '" + (letter === '' ? '%' : kind === 't' ? letter + second : letter) + "'");
    }
    const own = flags.replace('<', '');
    if (new Set(own).size < own.length) fail('DuplicateFormatFlagsException', "Flags = '" + own + "'");
    for (const flag of own) {
      if (!FLAGS[kind].includes(flag)) fail('FormatFlagsConversionMismatchException', 'Conversion = ' + kind + ', Flags = ' + flag);
    }
    if (digits !== undefined && 'cdox%n'.includes(kind)) fail('IllegalFormatPrecisionException', digits);
    if (widths === undefined && /[-0]/.test(own)) fail('MissingFormatWidthException', all.slice(0, all.length - behind.length));
    if (/-.*0|0.*-|\+.* | .*\+/.test(own)) fail('IllegalFormatFlagsException', "Flags = '" + own + "'");
    const width = Number(widths === undefined ? 0 : widths);
    const precision = digits === undefined ? undefined : Number(digits);
    if (width > 1000000 || precision > 1000000) fail('IllegalFormatWidthException', 'more than 1000000 characters are not available here');
    let parts;
    if (kind === 'n') return '\n' + behind;
    if (kind === '%') {
      parts = ['', '%', ''];
    } else {
      const place = flags.includes('<') ? last : at === undefined ? next++ : Number(at) - 1;
      if (place < 0 || place >= values.length) fail('MissingFormatArgumentException', "Format specifier '" + all.slice(0, all.length - behind.length) + "'");
      last = place;
      const value = values[place];
      parts = (value === null || value === undefined) && kind !== 'b'
        ? ['', precision === undefined ? 'null' : 'null'.slice(0, precision), '', true]
        : kind === 't' ? ['', timeText(value, second), '']
        : converted(kind, value, own, precision);
    }
    const [left, middle, right, word] = parts;
    let text = own.includes('0') && !word ? left + middle.padStart(width - left.length - right.length, '0') + right : left + middle + right;
    if (letter !== kind) text = text.toUpperCase();
    return (own.includes('-') ? text.padEnd(width) : text.padStart(width)) + behind;
  });
};
class Formatter {
  constructor(into) {
    if (into !== undefined && !(into instanceof StringBuilder) && !(into instanceof Locale)) nothing('java.util.Formatter on ' + typeName(into));
    this.into = into instanceof StringBuilder ? into : new StringBuilder();
  }
  format(...given) { this.into.append(formatted(...given)); return this; }
  out() { return this.into; }
  flush() {}
  close() {}
  toString() { return this.into.toString(); }
}

class DecimalFormatSymbols {
  constructor() { Object.assign(this, { point: '.', mark: ',' }); }
  static getInstance() { return new DecimalFormatSymbols(); }
  getDecimalSeparator() { return this.point; }
  setDecimalSeparator(c) { this.point = letter(c); }
  getGroupingSeparator() { return this.mark; }
  setGroupingSeparator(c) { this.mark = letter(c); }
}
class DecimalFormat {
  constructor(pattern, symbols) {
    this.mode = HALF_EVEN;
    this.setDecimalFormatSymbols(symbols === undefined ? new DecimalFormatSymbols() : symbols);
    this.applyPattern(pattern === undefined ? '#,##0.###' : pattern);
  }
  applyPattern(pattern) {
    this.pattern = String(pattern);
    const malformed = () => fail('IllegalArgumentException', 'Malformed pattern "' + this.pattern + '"');
    const parts = [];
    let part = { prefix: '', number: '', suffix: '' };
    let quoted = false;
    for (let at = 0; at < this.pattern.length; at++) {
      const c = this.pattern[at];
      const side = part.number === '' ? 'prefix' : 'suffix';
      if (c === "'") {
        if (this.pattern[at + 1] === "'") part[side] += this.pattern[++at];
        else quoted = !quoted;
      } else if (quoted) {
        part[side] += c;
      } else if (c === ';') {
        if (parts.length > 0) malformed();
        parts.push(part);
        part = { prefix: '', number: '', suffix: '' };
      } else if ('#0123456789,.'.includes(c)) {
        if (/[1-9]/.test(c) || part.suffix !== '') malformed();
        part.number += c;
      } else if (c === 'E' && side === 'suffix' && part.suffix === '') {
        nothing('java.text.DecimalFormat with an exponent');
      } else if (c === '¤') {
        nothing('java.text.DecimalFormat with a currency');
      } else {
        if (c === '%' || c === '‰') part.times = c === '%' ? 100 : 1000;
        part[side] += c;
      }
    }
    parts.push(part);
    const [first, second] = parts;
    const [, whole, dot, fraction] = /^([#0,]*)(\.?)([#0]*)$/.exec(first.number) || malformed();
    const digits = whole.replace(/,/g, '');
    if (/0#/.test(digits) || /#0/.test(fraction)) malformed();
    if (whole.endsWith(',') ) malformed();
    this.first = first;
    this.second = second;
    this.groups = whole.includes(',') ? whole.length - 1 - whole.lastIndexOf(',') : 0;
    this.group = this.groups;
    this.leastWhole = (digits.match(/0/g) || []).length;
    // `#.##` has a digit before the point, `#.00` has none.
    if (dot === '.' && this.leastWhole === 0 && !fraction.includes('0') && digits !== '') this.leastWhole = 1;
    this.dot = dot === '.' && fraction === '';
    this.least = (fraction.match(/0/g) || []).length;
    this.most = fraction.length;
    if (dot === '.' && digits === '' && this.least === 0 && this.most > 0) this.least = 1;
  }
  setDecimalFormatSymbols(symbols) {
    if (!(symbols instanceof DecimalFormatSymbols)) fail('IllegalArgumentException', 'no DecimalFormatSymbols: ' + typeName(symbols));
    this.symbols = symbols;
  }
  setRoundingMode(mode) { this.mode = modeOf(mode); }
  getRoundingMode() { return this.mode; }
  toPattern() { return this.pattern; }
  setMaximumFractionDigits(count) { this.most = count; this.least = Math.min(this.least, count); }
  setMinimumFractionDigits(count) { this.least = count; this.most = Math.max(this.most, count); }
  setMinimumIntegerDigits(count) { this.leastWhole = count; }
  setGroupingUsed(is) { this.group = is ? this.groups : 0; }
  format(value) {
    if (value instanceof BigInteger) value = new BigDecimal(value);
    if (!(value instanceof Number || value instanceof BigDecimal || typeof value === 'number' || typeof value === 'bigint')) fail('IllegalArgumentException', 'Cannot format given Object as a Number');
    let number = value instanceof BigDecimal ? value : Number(value);
    if (Number.isNaN(number)) return 'NaN';
    const { times } = this.first;
    if (times !== undefined) number = value instanceof BigDecimal ? value.multiply(new BigDecimal(times)) : number * times;
    let [whole, fraction] = Number.isFinite(Number(number)) ? apart(rounded(number, this.most, this.mode)) : ['∞', ''];
    const [prefix, suffix] = this.around(Object.is(number, -0) || number < 0);
    if (whole === '∞') return prefix + whole + suffix;
    whole = whole.padStart(this.leastWhole, '0');
    fraction = fraction.padEnd(this.least, '0');
    if (whole === '' && fraction === '') whole = '0';
    if (this.group > 0) whole = grouped(whole, this.group).replace(/,/g, () => this.symbols.mark);
    return prefix + whole + (fraction !== '' || this.dot ? this.symbols.point + fraction : '') + suffix;
  }
  /** What stands before and behind the number. */
  around(negative) {
    const { first, second } = this;
    if (!negative) return [first.prefix, first.suffix];
    if (second === undefined) return ['-' + first.prefix, first.suffix];
    return [(second.prefix === first.prefix && second.suffix === first.suffix ? '-' : '') + second.prefix, second.suffix];
  }
  parse(text, position) {
    if (position !== undefined) nothing('java.text.ParsePosition');
    const given = String(text);
    const escaped = part => part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
    const digits = '((?:\\d|' + escaped(this.group > 0 ? this.symbols.mark : '\\d') + ')*(?:' + escaped(this.symbols.point) + '\\d*)?(?:E-?\\d+)?)';
    for (const negative of [true, false]) {
      const found = new RegExp('^' + this.around(negative).map(escaped).join(digits)).exec(given);
      if (found === null || !/\d/.test(found[1])) continue;
      const number = Number(found[1].split(this.symbols.mark).join('').replace(this.symbols.point, '.'));
      return (negative ? -number : number) / (this.first.times || 1);
    }
    return fail('ParseException', 'Unparseable number: "' + given + '"');
  }
}

// java.lang.String: an object with the methods of Java, and those of JavaScript that Java does not have. Its methods give such
// objects again, so that `s.trim().split("\\|")` is Java's too.

const texts = new WeakMap();
const own = text => new JavaString(text);
const inside = (text, at, end) => {
  if (!(at >= 0 && at <= end && end <= text.length)) fail('StringIndexOutOfBoundsException', 'begin ' + at + ', end ' + end + ', length ' + text.length);
};
const regex = (what, ...given) => {
  try {
    return native.regex(what, given.map(String));
  } catch (e) {
    if (/^the pattern has no group `/.test(e.message)) fail('IndexOutOfBoundsException', e.message);
    if (/ in the replacement |^the replacement |^the pattern has no group named/.test(e.message)) fail('IllegalArgumentException', e.message);
    throw e;
  }
};
const splitText = (text, pattern, limit = 0) => {
  const parts = [];
  let index = 0;
  for (const [start, end] of JSON.parse(regex('find', text, pattern))) {
    if (limit > 0 && parts.length === limit - 1) break;
    if (index === 0 && start === 0 && end === 0) continue;
    parts.push(text.slice(index, start));
    index = end;
  }
  if (parts.length === 0) return [text];
  parts.push(text.slice(index));
  if (limit === 0) while (parts.length > 0 && parts[parts.length - 1] === '') parts.pop();
  return parts;
};
function JavaString(...given) {
  const [value, second] = given;
  if (given.length > 2) nothing('java.lang.String of ' + given.length + ' arguments');
  const made = Object.create(JavaString.prototype);
  texts.set(made, value === undefined ? '' : Array.isArray(value) && value.every(c => typeof c === 'string') ? value.join('') : textOf(value, second));
  return made;
}
Object.assign(JavaString, {
  valueOf: value => (Array.isArray(value) ? value.join('') : javaText(value)),
  copyValueOf: value => value.join(''),
  format: formatted,
  join: (separator, ...parts) =>
    (parts.length === 1 && typeof parts[0] === 'object' && parts[0] !== null && !(parts[0] instanceof String) ? Array.from(parts[0]) : parts).map(javaText).join(separator),
});
const compareTexts = (a, b) => {
  const least = Math.min(a.length, b.length);
  for (let at = 0; at < least; at++) if (a[at] !== b[at]) return a.charCodeAt(at) - b.charCodeAt(at);
  return a.length - b.length;
};
const letter = what => (typeof what === 'number' ? String.fromCodePoint(what) : String(what));
// Java's whitespace has no spaces that do not break.
const SPACE = '[\\t-\\r\\x1c-\\x20\\u1680\\u2000-\\u2006\\u2008-\\u200a\\u2028\\u2029\\u205f\\u3000]';
const stringMethods = {
  toString: text => text,
  valueOf: text => text,
  toJSON: text => text,
  hashCode: hash,
  isEmpty: text => text === '',
  equals: (text, other) => (typeof other === 'string' || other instanceof String) && text === String(other),
  contentEquals: (text, other) => text === String(other),
  equalsIgnoreCase: (text, other) => other !== null && other !== undefined && text.toUpperCase().toLowerCase() === String(other).toUpperCase().toLowerCase(),
  compareTo: (text, other) => compareTexts(text, String(other)),
  compareToIgnoreCase: (text, other) => compareTexts(text.toUpperCase().toLowerCase(), String(other).toUpperCase().toLowerCase()),
  charAt: (text, at) => { if (!(at >= 0 && at < text.length)) fail('StringIndexOutOfBoundsException', 'index ' + at + ', length ' + text.length); return text.charAt(at); },
  codePointAt: (text, at) => { if (!(at >= 0 && at < text.length)) fail('StringIndexOutOfBoundsException', 'index ' + at + ', length ' + text.length); return text.codePointAt(at); },
  substring: (text, from, to = text.length) => { inside(text, from, to); return own(text.substring(from, to)); },
  subSequence: (text, from, to) => { inside(text, from, to); return own(text.substring(from, to)); },
  indexOf: (text, part, from = 0) => (from > text.length ? (String(part) === '' ? text.length : -1) : text.indexOf(letter(part), from)),
  lastIndexOf: (text, part, from = text.length) => (from < 0 ? -1 : text.lastIndexOf(letter(part), from)),
  contains: (text, part) => text.includes(String(part)),
  startsWith: (text, part, at = 0) => at >= 0 && at <= text.length && text.startsWith(String(part), at),
  endsWith: (text, part) => text.endsWith(String(part)),
  concat: (text, other) => own(text + other),
  replace: (text, old, by) => own(text.replaceAll(letter(old), () => letter(by))),
  replaceAll: (text, pattern, by) => own(regex('all', text, pattern, by)),
  replaceFirst: (text, pattern, by) => own(regex('first', text, pattern, by)),
  matches: (text, pattern) => regex('matches', text, pattern) === 'true',
  split: (text, pattern, limit) => splitText(text, pattern, limit).map(own),
  toLowerCase: text => own(text.toLowerCase()),
  toUpperCase: text => own(text.toUpperCase()),
  trim: text => own(text.replace(/^[\0- ]+/, '').replace(/[\0- ]+$/, '')),
  strip: text => own(text.replace(new RegExp('^' + SPACE + '+'), '').replace(new RegExp(SPACE + '+$'), '')),
  stripLeading: text => own(text.replace(new RegExp('^' + SPACE + '+'), '')),
  stripTrailing: text => own(text.replace(new RegExp(SPACE + '+$'), '')),
  isBlank: text => new RegExp('^' + SPACE + '*$').test(text),
  repeat: (text, count) => own(text.repeat(count)),
  toCharArray: text => text.split(''),
  getBytes: (text, charset) => bytesOf(text, charset),
  intern: text => own(text),
};
const javaPrototype = Object.create(String.prototype);
const define = (name, property) => Object.defineProperty(javaPrototype, name, { configurable: true, enumerable: false, ...property });
for (const name of Object.keys(stringMethods)) {
  define(name, { writable: true, value(...given) { return stringMethods[name](texts.get(this), ...given); } });
}
define('constructor', { writable: true, value: JavaString });
// `s.length()` of Java, and `s.length` as scripts also write it.
define('length', {
  get() {
    const size = texts.get(this).length;
    return Object.assign(() => size, { valueOf: () => size, toString: () => String(size), toJSON: () => size });
  },
});
JavaString.prototype = javaPrototype;
for (const name of ['lines', 'chars', 'codePoints', 'regionMatches', 'indent', 'translateEscapes', 'formatted', 'codePointCount']) {
  define(name, { writable: true, value: () => nothing('java.lang.String.' + name) });
}
