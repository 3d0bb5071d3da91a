// java.util.regex, and the classes of Axiom and of Java's names of XML that scripts use.

const INLINE_FLAGS = [[2, 'i'], [8, 'm'], [32, 's'], [4, 'x']];
class Pattern {
  constructor(source, flags) {
    this.given = source;
    this.bits = flags;
    const letters = INLINE_FLAGS.filter(([bit]) => flags & bit).map(([, letter]) => letter).join('');
    this.source = (letters === '' ? '' : '(?' + letters + ')') + (flags & 16 ? Pattern.quote(source) : source);
  }
  static compile(source, flags = 0) {
    const made = new Pattern(String(source), Number(flags));
    regex('names', '', made.source);
    return made;
  }
  static matches(source, text) { return Pattern.compile(source).matcher(text).matches(); }
  static quote(text) { return '\\Q' + String(text).split('\\E').join('\\E\\\\E\\Q') + '\\E'; }
  matcher(text) { return new Matcher(this, String(text)); }
  split(text, limit) { return splitText(String(text), this.source, limit); }
  pattern() { return this.given; }
  flags() { return this.bits; }
  toString() { return this.given; }
}
for (const [name, bit] of [['CASE_INSENSITIVE', 2], ['COMMENTS', 4], ['MULTILINE', 8], ['LITERAL', 16], ['DOTALL', 32], ['UNICODE_CASE', 64], ['UNIX_LINES', 1]]) Pattern[name] = bit;

class Matcher {
  constructor(pattern, text) { this.of = pattern; this.reset(text); }
  static quoteReplacement(text) { return String(text).replace(/[\\$]/g, '\\$&'); }
  reset(text = this.text) {
    this.text = String(text);
    this.all = undefined;
    this.at = 0;
    this.appended = 0;
    this.current = null;
    return this;
  }
  /** The groups of the first match of the pattern between marks. */
  only(before, behind) {
    this.current = JSON.parse(regex('groups', this.text, before + '(?:' + this.of.source + (this.of.bits & 4 ? '\n' : '') + ')' + behind))[0] || null;
    return this.current !== null;
  }
  matches() { return this.only('\\A', '\\z'); }
  lookingAt() { return this.only('\\A', ''); }
  find(from) {
    if (from !== undefined) this.reset();
    if (this.all === undefined) this.all = JSON.parse(regex('groups', this.text, this.of.source)).filter(([[start]]) => start >= (from || 0));
    this.current = this.all[this.at] || null;
    if (this.current !== null) this.at += 1;
    return this.current !== null;
  }
  place(group) {
    if (this.current === null) fail('IllegalStateException', 'No match found');
    let number = group;
    if (typeof group !== 'number') {
      number = JSON.parse(regex('names', '', this.of.source)).indexOf(String(group));
      if (number < 0) fail('IllegalArgumentException', 'No group with name <' + group + '>');
    }
    if (!(number >= 0 && number < this.current.length)) fail('IndexOutOfBoundsException', 'No group ' + number);
    return this.current[number];
  }
  group(group = 0) { const place = this.place(group); return place === null ? null : this.text.slice(place[0], place[1]); }
  start(group = 0) { const place = this.place(group); return place === null ? -1 : place[0]; }
  end(group = 0) { const place = this.place(group); return place === null ? -1 : place[1]; }
  groupCount() { return JSON.parse(regex('names', '', this.of.source)).length - 1; }
  hitEnd() { return this.current === null || this.end() === this.text.length; }
  pattern() { return this.of; }
  replaceAll(by) { return regex('all', this.text, this.of.source, by); }
  replaceFirst(by) { return regex('first', this.text, this.of.source, by); }
  appendReplacement(into, by) {
    const [start, end] = this.place(0);
    const text = String(by).replace(/\\(.)|\$(?:(\d)|\{(\w+)\})/g, (all, plain, number, name) => (plain !== undefined ? plain : javaText(this.group(number === undefined ? name : Number(number)))));
    into.append(this.text.slice(this.appended, start) + text);
    this.appended = end;
    return this;
  }
  appendTail(into) { into.append(this.text.slice(this.appended)); return into; }
}

class JavaQName extends native.QName {
  constructor(namespace, local, prefix) {
    if (local === undefined) super(namespace);
    else super(namespace === null ? '' : namespace, local);
    this.prefix = prefix === undefined ? '' : String(prefix);
  }
  static valueOf(text) {
    const found = /^\{(.*?)\}(.*)$/.exec(String(text));
    return found === null ? new JavaQName(text) : new JavaQName(found[1], found[2]);
  }
  getPrefix() { return this.prefix; }
  equals(other) { return other instanceof native.QName && other.uri === this.uri && other.localName === this.localName; }
  hashCode() { return hash(this.toString()); }
  toString() { return this.uri === '' ? this.localName : '{' + this.uri + '}' + this.localName; }
}
// The last argument is the text; a factory may stand before it.
const AXIOMUtil = { stringToOM: (...given) => native.axiom(String(given[given.length - 1])) };
