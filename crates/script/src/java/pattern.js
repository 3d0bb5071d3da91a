// java.util.regex.

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
    this.from = 0;
    this.to = this.text.length;
    this.all = undefined;
    this.at = 0;
    this.appended = 0;
    this.current = null;
    return this;
  }
  /** Its part of the text: `^` and `$` are its ends, as with the anchoring bounds that Java has by default. */
  region(from, to) {
    if (!(from >= 0 && from <= to && to <= this.text.length)) fail('IndexOutOfBoundsException', 'start ' + from + ', end ' + to);
    this.reset();
    this.from = Number(from);
    this.to = Number(to);
    return this;
  }
  regionStart() { return this.from; }
  regionEnd() { return this.to; }
  /** The places of the groups of all matches in the region. */
  groupsOf(source) {
    const found = JSON.parse(regex('groups', this.text.slice(this.from, this.to), source));
    return this.from === 0 ? found : found.map(groups => groups.map(place => place && [place[0] + this.from, place[1] + this.from]));
  }
  /** The groups of the first match of the pattern between marks. */
  only(before, behind) {
    this.current = this.groupsOf(before + '(?:' + this.of.source + (this.of.bits & 4 ? '\n' : '') + ')' + behind)[0] || null;
    return this.current !== null;
  }
  matches() { return this.only('\\A', '\\z'); }
  lookingAt() { return this.only('\\A', ''); }
  find(from) {
    if (from !== undefined) this.reset();
    if (this.all === undefined) this.all = this.groupsOf(this.of.source).filter(([[start]]) => start >= (from || 0));
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
  hitEnd() { return this.current === null || this.end() === this.to; }
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
