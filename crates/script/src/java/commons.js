// Texts as commons-lang has them, java.net.URI and java.util.Optional.

const nil = value => value === null || value === undefined;
/** A function on a text, to which null is null. */
const onText = act => (text, ...given) => (nil(text) ? null : act(String(text), ...given));
/** A question about a text, to which null answers `no`. */
const asked = (no, act) => (text, ...given) => (nil(text) ? no : act(String(text), ...given));
const padding = (text, size, fill) => (nil(fill) || fill === '' ? ' ' : String(fill)).repeat(Math.ceil(Math.max(0, size - text.length))).slice(0, Math.max(0, size - text.length));
const cut = (text, from, to = text.length) => {
  const place = at => Math.max(0, at < 0 ? text.length + at : at);
  return text.slice(place(from), Math.max(place(from), place(to)));
};
const StringUtils = {
  EMPTY: '',
  SPACE: ' ',
  isEmpty: asked(true, text => text === ''),
  isNotEmpty: asked(false, text => text !== ''),
  isBlank: asked(true, text => text.trim() === ''),
  isNotBlank: asked(false, text => text.trim() !== ''),
  isNumeric: asked(false, text => /^\p{Nd}+$/u.test(text)),
  isAlpha: asked(false, text => /^\p{L}+$/u.test(text)),
  isAlphanumeric: asked(false, text => /^[\p{L}\p{Nd}]+$/u.test(text)),
  trim: onText(text => text.trim()),
  strip: onText(text => text.trim()),
  trimToEmpty: text => (nil(text) ? '' : String(text).trim()),
  trimToNull: onText(text => text.trim() || null),
  defaultString: (text, other = '') => (nil(text) ? other : String(text)),
  defaultIfEmpty: (text, other) => (StringUtils.isEmpty(text) ? other : text),
  defaultIfBlank: (text, other) => (StringUtils.isBlank(text) ? other : text),
  equals: (a, b) => (nil(a) || nil(b) ? nil(a) && nil(b) : String(a) === String(b)),
  equalsIgnoreCase: (a, b) => (nil(a) || nil(b) ? nil(a) && nil(b) : String(a).toLowerCase() === String(b).toLowerCase()),
  contains: asked(false, (text, part) => !nil(part) && text.includes(String(part))),
  containsIgnoreCase: asked(false, (text, part) => !nil(part) && text.toLowerCase().includes(String(part).toLowerCase())),
  startsWith: asked(false, (text, part) => !nil(part) && text.startsWith(String(part))),
  endsWith: asked(false, (text, part) => !nil(part) && text.endsWith(String(part))),
  indexOf: asked(-1, (text, part, from) => text.indexOf(String(part), from)),
  lastIndexOf: asked(-1, (text, part) => text.lastIndexOf(String(part))),
  countMatches: asked(0, (text, part) => (nil(part) || String(part) === '' ? 0 : text.split(String(part)).length - 1)),
  length: asked(0, text => text.length),
  upperCase: onText(text => text.toUpperCase()),
  lowerCase: onText(text => text.toLowerCase()),
  capitalize: onText(text => text.charAt(0).toUpperCase() + text.slice(1)),
  uncapitalize: onText(text => text.charAt(0).toLowerCase() + text.slice(1)),
  reverse: onText(text => Array.from(text).reverse().join('')),
  substring: onText(cut),
  left: onText((text, count) => text.slice(0, Math.max(0, count))),
  right: onText((text, count) => text.slice(Math.max(0, text.length - Math.max(0, count)))),
  mid: onText((text, from, count) => text.slice(Math.max(0, from), Math.max(0, from) + Math.max(0, count))),
  substringBefore: onText((text, mark) => (nil(mark) || !text.includes(String(mark)) ? text : text.slice(0, text.indexOf(String(mark))))),
  substringAfter: onText((text, mark) => (nil(mark) || !text.includes(String(mark)) ? '' : text.slice(text.indexOf(String(mark)) + String(mark).length))),
  substringBeforeLast: onText((text, mark) => (nil(mark) || !text.includes(String(mark)) ? text : text.slice(0, text.lastIndexOf(String(mark))))),
  substringAfterLast: onText((text, mark) => (nil(mark) || !text.includes(String(mark)) ? '' : text.slice(text.lastIndexOf(String(mark)) + String(mark).length))),
  substringBetween: onText((text, open, close = open) => {
    const start = text.indexOf(String(open));
    const end = start < 0 ? -1 : text.indexOf(String(close), start + String(open).length);
    return end < 0 ? null : text.slice(start + String(open).length, end);
  }),
  // The marks are single characters; none stands for white space.
  split: onText((text, marks) => (nil(marks) ? text.split(/\s+/) : text.split(new RegExp('[' + String(marks).replace(/[\]\\^-]/g, '\\$&') + ']'))).filter(part => part !== '')),
  join: (values, mark = '') => (nil(values) ? null : Array.from(values, value => (nil(value) ? '' : String(value))).join(nil(mark) ? '' : String(mark))),
  replace: onText((text, part, by) => (nil(part) || nil(by) || String(part) === '' ? text : text.split(String(part)).join(String(by)))),
  remove: onText((text, part) => StringUtils.replace(text, part, '')),
  repeat: onText((text, count) => text.repeat(Math.max(0, count))),
  leftPad: onText((text, size, fill) => padding(text, size, fill) + text),
  rightPad: onText((text, size, fill) => text + padding(text, size, fill)),
  deleteWhitespace: onText(text => text.replace(/\s+/g, '')),
  normalizeSpace: onText(text => text.trim().replace(/\s+/g, ' ')),
};
const MARKS = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' };
const unmarked = text => text.replace(/&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g, (all, name, decimal, hex) => {
  if (name !== undefined) return { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }[name];
  const code = decimal === undefined ? parseInt(hex, 16) : Number(decimal);
  return code <= 0x10ffff ? String.fromCodePoint(code) : all;
});
const StringEscapeUtils = {
  escapeXml: onText(text => text.replace(/[&<>"']/g, c => MARKS[c])),
  escapeHtml: onText(text => text.replace(/[&<>"]/g, c => MARKS[c])),
  unescapeXml: onText(unmarked),
  escapeJson: onText(text => JSON.stringify(text).slice(1, -1).replace(/\//g, '\\/')),
  escapeJava: onText(text => JSON.stringify(text).slice(1, -1).replace(/[\u007f-\uffff]/g, c => '\\u' + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0'))),
  escapeCsv: onText(text => (/[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text)),
};
StringEscapeUtils.escapeXml10 = StringEscapeUtils.escapeXml11 = StringEscapeUtils.escapeXml;
StringEscapeUtils.escapeHtml3 = StringEscapeUtils.escapeHtml4 = StringEscapeUtils.escapeHtml;

class URI {
  constructor(text, ...others) {
    if (others.length > 0) nothing('java.net.URI with parts');
    this.text = String(text);
    const wrong = /[\s<>"{}|\\^`]|%(?![0-9a-fA-F]{2})/.exec(this.text);
    if (wrong !== null) fail('URISyntaxException', 'Illegal character at index ' + wrong.index + ': ' + this.text);
    const [, scheme, authority, path, query, fragment] = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/.exec(this.text);
    const [, user, host, port] = /^(?:([^@]*)@)?(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(authority || '') || [];
    this.parts = { scheme, authority, path, query, fragment, user, host: host || undefined, port };
  }
  static create(text) {
    try {
      return new URI(text);
    } catch (error) {
      return fail('IllegalArgumentException', error.message);
    }
  }
  raw(part) { const value = this.parts[part]; return value === undefined ? null : value; }
  plain(part) {
    const value = this.raw(part);
    try {
      return value === null ? null : decodeURIComponent(value);
    } catch {
      return value;
    }
  }
  getScheme() { return this.raw('scheme'); }
  getHost() { return this.raw('host'); }
  getPort() { return this.parts.port === undefined || this.parts.port === '' ? -1 : Number(this.parts.port); }
  getAuthority() { return this.plain('authority'); }
  getRawAuthority() { return this.raw('authority'); }
  getUserInfo() { return this.plain('user'); }
  getPath() { return this.plain('path'); }
  getRawPath() { return this.raw('path'); }
  getQuery() { return this.plain('query'); }
  getRawQuery() { return this.raw('query'); }
  getFragment() { return this.plain('fragment'); }
  getRawFragment() { return this.raw('fragment'); }
  isAbsolute() { return this.parts.scheme !== undefined; }
  equals(other) { return other instanceof URI && other.text === this.text; }
  hashCode() { return hash(this.text); }
  toASCIIString() { return encodeURI(this.text).replace(/%25/g, '%'); }
  toString() { return this.text; }
}

class Optional {
  constructor(value) { this.value = nil(value) ? null : value; }
  static of(value) { return nil(value) ? fail('NullPointerException', 'the value is null') : new Optional(value); }
  static ofNullable(value) { return new Optional(value); }
  static empty() { return new Optional(null); }
  isPresent() { return this.value !== null; }
  isEmpty() { return this.value === null; }
  get() { return this.value === null ? fail('NoSuchElementException', 'No value present') : this.value; }
  orElse(other) { return this.value === null ? other : this.value; }
  orElseGet(make) { return this.value === null ? make() : this.value; }
  orElseThrow(make) {
    if (this.value !== null) return this.value;
    if (make === undefined) return this.get();
    throw make();
  }
  map(act) { return this.value === null ? this : new Optional(act(this.value)); }
  flatMap(act) { return this.value === null ? this : act(this.value); }
  filter(is) { return this.value !== null && is(this.value) ? this : new Optional(null); }
  ifPresent(act) { if (this.value !== null) act(this.value); }
  toString() { return this.value === null ? 'Optional.empty' : 'Optional[' + javaText(this.value) + ']'; }
}
