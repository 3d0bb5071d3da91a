// Times. A calendar has fields that were set and fields that were computed; which of them count says Java's order.

const DAY = 86400000;
const [ERA, YEAR, MONTH, WEEK_OF_YEAR, WEEK_OF_MONTH, DATE, DAY_OF_YEAR, DAY_OF_WEEK, DAY_OF_WEEK_IN_MONTH, AM_PM, HOUR, HOUR_OF_DAY, MINUTE, SECOND, MILLISECOND, ZONE_OFFSET, DST_OFFSET] = Array.from({ length: 17 }, (_, at) => at);
const NAMES = ['ERA', 'YEAR', 'MONTH', 'WEEK_OF_YEAR', 'WEEK_OF_MONTH', 'DATE', 'DAY_OF_YEAR', 'DAY_OF_WEEK', 'DAY_OF_WEEK_IN_MONTH', 'AM_PM', 'HOUR', 'HOUR_OF_DAY', 'MINUTE', 'SECOND', 'MILLISECOND', 'ZONE_OFFSET', 'DST_OFFSET'];
const { floor } = Math;
const mod = (a, b) => a - floor(a / b) * b;
// The first day of the calendar of 1582, in days since 1970.
const CUTOVER = -141427;
const gregorianDay = (year, month) => {
  const y = year + floor(month / 12) - (mod(month, 12) < 2 ? 1 : 0);
  const m = mod(mod(month, 12) - 2, 12);
  return 365 * y + floor(y / 4) - floor(y / 100) + floor(y / 400) + floor((153 * m + 2) / 5) - 719468;
};
const julianDay = (year, month) => {
  const y = year + floor(month / 12) - (mod(month, 12) < 2 ? 1 : 0);
  const m = mod(mod(month, 12) - 2, 12);
  return 365 * y + floor(y / 4) + floor((153 * m + 2) / 5) - 719470;
};
/** The days since 1970 of a day of a month, both of which may be any. */
const dayOf = (year, month, day) => {
  const late = gregorianDay(year, month) + day - 1;
  return late >= CUTOVER ? late : julianDay(year, month) + day - 1;
};
const dateOf = days => {
  const first = days >= CUTOVER ? gregorianDay : julianDay;
  let year = 1970 + floor(days / 365.2425);
  while (first(year, 0) > days) year--;
  while (first(year + 1, 0) <= days) year++;
  let month = floor((days - first(year, 0)) / 31);
  while (month < 11 && first(year, month + 1) <= days) month++;
  return { year, month, day: days - first(year, month) + 1 };
};
const lengthOf = (year, month) => (year > 1582 ? gregorianDay(year, month + 1) - gregorianDay(year, month) : julianDay(year, month + 1) - julianDay(year, month));
const fixedOffset = text => {
  const found = /^(?:GMT|UTC)?([+-])(\d{1,2})(?::?(\d\d))?$/.exec(text);
  return found && (found[1] === '-' ? -1 : 1) * (Number(found[2]) * 60 + Number(found[3] || 0)) * 60000;
};
const offsetOf = (time, zone) => {
  if (/^(GMT|UTC|Z|Etc\/UTC)$/.test(zone)) return 0;
  const own = zone.startsWith('GMT') ? fixedOffset(zone) : null;
  return own !== null ? own : fixedOffset(call('format', 'Z', time, zone));
};
const rawOffset = (time, zone) => {
  const start = gregorianDay(dateOf(floor(time / DAY)).year, 0) * DAY;
  return Math.min(offsetOf(start, zone), offsetOf(start + 182 * DAY, zone));
};
/** What has to be taken off a time of the wall: in a gap the offset before it, of two the standard one. */
const wallOffset = (wall, zone) => {
  const [before, after] = [offsetOf(wall - DAY, zone), offsetOf(wall + DAY, zone)];
  if (before === after) return before;
  return offsetOf(wall - after, zone) === after ? after : before;
};
const onOrBefore = (days, weekday) => days - mod(days + 4 - (weekday - 1), 7);

class Calendar {
  static getInstance(...given) { return new Calendar(...given); }
  constructor(...given) {
    this.fields = new Array(17).fill(0);
    this.stamps = new Array(17).fill(0);
    this.next = 2;
    this.zone = TimeZone.getDefault();
    this.lenient = true;
    this.first = 1;
    this.least = 1;
    if (typeof given[0] === 'number') {
      if (given.length < 3) nothing('java.util.GregorianCalendar of ' + given.length + ' numbers');
      this.clear();
      this.set(...given);
    } else {
      for (const one of given) {
        if (one instanceof TimeZone) this.zone = one;
        else if (!(one instanceof Locale)) nothing('java.util.Calendar of ' + typeName(one));
      }
      this.setTimeInMillis(Date.now());
    }
  }
  getTime() { return new JavaDate(this.getTimeInMillis()); }
  setTime(time) { this.setTimeInMillis(time.getTime()); }
  getTimeInMillis() {
    if (this.time === undefined) {
      this.time = this.computed();
      this.fresh = false;
    }
    return this.time;
  }
  setTimeInMillis(time) {
    this.time = Math.trunc(Number(time));
    this.fresh = false;
  }
  getTimeZone() { return this.zone; }
  setTimeZone(zone) {
    if (!(zone instanceof TimeZone)) fail('IllegalArgumentException', 'no TimeZone: ' + typeName(zone));
    this.zone = zone;
    if (this.time !== undefined) this.fresh = false;
  }
  isLenient() { return this.lenient; }
  setLenient(is) { this.lenient = Boolean(is); }
  getFirstDayOfWeek() { return this.first; }
  setFirstDayOfWeek(day) { this.complete(); this.first = day; this.fresh = false; }
  getMinimalDaysInFirstWeek() { return this.least; }
  setMinimalDaysInFirstWeek(days) { this.complete(); this.least = days; this.fresh = false; }
  before(other) { return other instanceof Calendar && this.getTimeInMillis() < other.getTimeInMillis(); }
  after(other) { return other instanceof Calendar && this.getTimeInMillis() > other.getTimeInMillis(); }
  compareTo(other) { return Math.sign(this.getTimeInMillis() - other.getTimeInMillis()); }
  equals(other) { return other instanceof Calendar && this.getTimeInMillis() === other.getTimeInMillis() && String(this.zone) === String(other.zone); }
  clone() {
    const other = Object.assign(new Calendar(), this);
    other.fields = this.fields.slice();
    other.stamps = this.stamps.slice();
    return other;
  }
  toInstant() { return this.getTime().toInstant(); }
  valueOf() { return this.getTimeInMillis(); }
  toJSON() { return this.getTimeInMillis(); }
  toString() { return nothing('java.util.Calendar.toString'); }
  clear(field) {
    // What was computed before is what the other fields are.
    if (field === undefined) {
      this.fields = [1, 1970, 0, 1, 1, 1, 1, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0];
      this.stamps.fill(0);
    } else {
      this.complete();
      this.fields[this.checked(field)] = [1, 1970, 0, 1, 1, 1, 1, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0][field];
      this.stamps[field] = 0;
    }
    this.time = undefined;
    this.fresh = true;
  }
  isSet(field) { return this.stamps[this.checked(field)] > 0; }
  get(field) {
    this.checked(field);
    this.complete();
    return this.fields[field];
  }
  set(field, value, ...more) {
    if (more.length > 0) {
      [field, value, ...more].forEach((one, at) => this.set([YEAR, MONTH, DATE, HOUR_OF_DAY, MINUTE, SECOND][at], one));
      return;
    }
    this.checked(field);
    if (!this.fresh) this.complete();
    this.fields[field] = Math.trunc(Number(value));
    if (Number.isNaN(this.fields[field])) fail('IllegalArgumentException', NAMES[field] + ': ' + value);
    this.stamps[field] = this.next++;
    this.time = undefined;
  }
  add(field, count) {
    this.checked(field);
    if (count === 0) return;
    this.complete();
    const time = this.time;
    if (field === YEAR || field === MONTH) {
      const { fields } = this;
      const year = (fields[ERA] === 1 ? fields[YEAR] : 1 - fields[YEAR]) + (field === YEAR ? count : 0);
      this.moveTo(year, fields[MONTH] + (field === MONTH ? count : 0), fields[DATE]);
      return;
    }
    const days = { [DATE]: 1, [DAY_OF_YEAR]: 1, [DAY_OF_WEEK]: 1, [WEEK_OF_YEAR]: 7, [WEEK_OF_MONTH]: 7, [DAY_OF_WEEK_IN_MONTH]: 7, [AM_PM]: 0.5 }[field];
    if (days !== undefined) {
      const wall = time + this.offset() + count * days * DAY;
      const kept = wall - this.offset();
      // The hour of the wall, if the day has it.
      const same = kept + this.offset() - offsetOf(kept, this.zone.id);
      this.setTimeInMillis(floor((same + offsetOf(same, this.zone.id)) / DAY) === floor(wall / DAY) ? same : kept);
      return;
    }
    const unit = { [HOUR]: 3600000, [HOUR_OF_DAY]: 3600000, [MINUTE]: 60000, [SECOND]: 1000, [MILLISECOND]: 1 }[field];
    if (unit === undefined) fail('IllegalArgumentException', NAMES[field]);
    this.setTimeInMillis(time + count * unit);
  }
  roll(field, count) {
    if (typeof count === 'boolean') count = count ? 1 : -1;
    this.checked(field);
    if (count === 0) return;
    this.complete();
    const { fields } = this;
    const year = fields[ERA] === 1 ? fields[YEAR] : 1 - fields[YEAR];
    if (field === YEAR) return void this.moveTo(year + count, fields[MONTH], fields[DATE]);
    if (field === MONTH) return void this.moveTo(year, mod(fields[MONTH] + count, 12), fields[DATE]);
    const wall = this.time + this.offset();
    const to = (from, size) => mod(from + count, size) - from;
    const [days, rest] = [floor(wall / DAY), mod(wall, DAY)];
    let moved;
    switch (field) {
      case DATE: moved = wall + to(fields[DATE] - 1, lengthOf(year, fields[MONTH])) * DAY; break;
      case DAY_OF_YEAR: moved = wall + to(fields[DAY_OF_YEAR] - 1, this.getActualMaximum(DAY_OF_YEAR)) * DAY; break;
      case DAY_OF_WEEK: moved = wall + to(mod(fields[DAY_OF_WEEK] - this.first, 7), 7) * DAY; break;
      case AM_PM: moved = wall + to(fields[AM_PM], 2) * DAY / 2; break;
      case HOUR: moved = wall + to(fields[HOUR], 12) * 3600000; break;
      case HOUR_OF_DAY: moved = days * DAY + rest + to(fields[HOUR_OF_DAY], 24) * 3600000; break;
      case MINUTE: moved = wall + to(fields[MINUTE], 60) * 60000; break;
      case SECOND: moved = wall + to(fields[SECOND], 60) * 1000; break;
      case MILLISECOND: moved = wall + to(fields[MILLISECOND], 1000); break;
      default: nothing('java.util.Calendar.roll of ' + NAMES[field]);
    }
    this.setTimeInMillis(moved - this.kept(moved));
  }
  getActualMaximum(field) {
    this.checked(field);
    this.complete();
    const { fields } = this;
    const year = fields[ERA] === 1 ? fields[YEAR] : 1 - fields[YEAR];
    switch (field) {
      case DATE: return lengthOf(year, fields[MONTH]);
      case DAY_OF_YEAR: return gregorianDay(year + 1, 0) - gregorianDay(year, 0);
      case WEEK_OF_YEAR: {
        const firstDay = this.firstOfWeeks(gregorianDay(year, 0));
        return floor((this.firstOfWeeks(gregorianDay(year + 1, 0)) - firstDay) / 7);
      }
      case WEEK_OF_MONTH: return floor((gregorianDay(year, fields[MONTH] + 1) - 1 - this.firstOfWeeks(gregorianDay(year, fields[MONTH]))) / 7) + 1;
      case DAY_OF_WEEK_IN_MONTH: return floor((lengthOf(year, fields[MONTH]) - 1 - mod(fields[DATE] - 1, 7)) / 7) + 1;
      case YEAR: return nothing('java.util.Calendar.getActualMaximum of YEAR');
      case ZONE_OFFSET: return 50400000;
      case DST_OFFSET: return 7200000;
      default: return this.getMaximum(field);
    }
  }
  getActualMinimum(field) { return this.getMinimum(field); }
  getMaximum(field) { return [1, 292278994, 11, 53, 6, 31, 366, 7, 6, 1, 11, 23, 59, 59, 999, 50400000, 7200000][this.checked(field)]; }
  getMinimum(field) { return [0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, -46800000, 0][this.checked(field)]; }

  checked(field) {
    if (!(Number.isInteger(field) && field >= 0 && field < 17)) fail('ArrayIndexOutOfBoundsException', 'Index ' + field + ' out of bounds for length 17');
    return field;
  }
  offset() { return offsetOf(this.time, this.zone.id); }
  /** The offset of a time of the wall, where that is possible the one it has now. */
  kept(wall) {
    const now = this.offset();
    return offsetOf(wall - now, this.zone.id) === now ? now : wallOffset(wall, this.zone.id);
  }
  moveTo(year, month, day) {
    const [y, m] = [year + floor(month / 12), mod(month, 12)];
    const wall = dayOf(y, m, Math.min(day, lengthOf(y, m))) * DAY + mod(this.time + this.offset(), DAY);
    this.setTimeInMillis(wall - wallOffset(wall, this.zone.id));
  }
  /** The first day of the first week of a year or month that begins on `day`. */
  firstOfWeeks(day) {
    const start = onOrBefore(day + 6, this.first);
    return start - day >= this.least ? start - 7 : start;
  }
  complete() {
    if (this.time !== undefined && this.fresh) return;
    if (this.time === undefined) this.time = this.computed();
    const offset = this.offset();
    const wall = this.time + offset;
    const [days, rest] = [floor(wall / DAY), mod(wall, DAY)];
    const { year, month, day } = dateOf(days);
    const yearDay = dayOf(year, 0, 1);
    const week = (from, to) => {
      const start = this.firstOfWeeks(from);
      return days < start ? undefined : floor((days - start) / 7) + 1;
    };
    let weekOfYear = week(yearDay);
    if (weekOfYear === undefined) weekOfYear = week(dayOf(year - 1, 0, 1));
    else if (days >= this.firstOfWeeks(dayOf(year + 1, 0, 1))) weekOfYear = 1;
    const monthStart = this.firstOfWeeks(dayOf(year, month, 1));
    const hour = floor(rest / 3600000);
    const raw = Math.min(offset, rawOffset(this.time, this.zone.id));
    this.fields = [
      year > 0 ? 1 : 0, year > 0 ? year : 1 - year, month, weekOfYear, floor((days - monthStart) / 7) + 1, day, days - yearDay + 1,
      mod(days + 4, 7) + 1, floor((day - 1) / 7) + 1, hour < 12 ? 0 : 1, hour % 12, hour, floor(rest / 60000) % 60, floor(rest / 1000) % 60, rest % 1000,
      raw, offset - raw,
    ];
    this.stamps.fill(1);
    this.fresh = true;
  }
  /** The time that the fields say. */
  computed() {
    const { fields, stamps } = this;
    if (!this.lenient) this.checkAll();
    const both = (a, b) => (a === 0 || b === 0 ? 0 : Math.max(a, b));
    const value = (field, otherwise) => (stamps[field] > 0 ? fields[field] : otherwise);
    let year = value(YEAR, 1970);
    if (stamps[ERA] > 0 && fields[ERA] === 0) year = 1 - year;
    // Which fields say the day.
    const dow = stamps[DAY_OF_WEEK];
    const [dom, doy] = [stamps[DATE], stamps[DAY_OF_YEAR]];
    const wom = both(stamps[WEEK_OF_MONTH], dow);
    const dim = both(stamps[DAY_OF_WEEK_IN_MONTH], dow);
    const woy = both(stamps[WEEK_OF_YEAR], dow);
    let by = 'date';
    let best = dom;
    for (const [name, stamp] of [['week', wom], ['nth', dim], ['day', doy], ['weeks', woy]]) if (stamp > best) [by, best] = [name, stamp];
    if (best === 0) {
      for (const [name, stamp] of [['week', stamps[WEEK_OF_MONTH]], ['nth', Math.max(stamps[DAY_OF_WEEK_IN_MONTH], dow)], ['weeks', stamps[WEEK_OF_YEAR]]]) {
        if (stamp > best) [by, best] = [name, stamp];
      }
    }
    if (by === 'week' && wom === dim && wom > 0 && stamps[WEEK_OF_MONTH] < stamps[DAY_OF_WEEK_IN_MONTH]) by = 'nth';
    if ((by === 'week' && stamps[WEEK_OF_MONTH] < stamps[WEEK_OF_YEAR]) || (by === 'nth' && stamps[DAY_OF_WEEK_IN_MONTH] < stamps[WEEK_OF_YEAR])) by = 'weeks';
    const month = value(MONTH, 0);
    const start = dayOf(year, by === 'day' || by === 'weeks' ? 0 : month, 1);
    const weekday = value(DAY_OF_WEEK, this.first);
    let days;
    switch (by) {
      case 'date': days = dayOf(year, month, value(DATE, 1)); break;
      case 'day': days = start + fields[DAY_OF_YEAR] - 1; break;
      case 'week': days = onOrBefore(this.firstOfWeeks(start) + 6, weekday) + 7 * (value(WEEK_OF_MONTH, 1) - 1); break;
      case 'weeks': days = onOrBefore(this.firstOfWeeks(start) + 6, weekday) + 7 * (fields[WEEK_OF_YEAR] - 1); break;
      default: {
        const nth = value(DAY_OF_WEEK_IN_MONTH, 1);
        days = nth >= 0 ? onOrBefore(start + 7 * nth - 1, weekday) : onOrBefore(start + lengthOf(year + floor(month / 12), mod(month, 12)) + 7 * (nth + 1) - 1, weekday);
      }
    }
    // Which fields say the hour.
    const halves = both(stamps[HOUR], stamps[AM_PM]);
    let hour = 0;
    if (Math.max(halves, stamps[HOUR_OF_DAY]) > 0 ? stamps[HOUR_OF_DAY] >= halves : Math.max(stamps[HOUR], stamps[AM_PM]) === 0) hour = value(HOUR_OF_DAY, 0);
    else hour = value(HOUR, 0) + 12 * value(AM_PM, 0);
    const wall = days * DAY + hour * 3600000 + value(MINUTE, 0) * 60000 + value(SECOND, 0) * 1000 + value(MILLISECOND, 0);
    const zoned = Math.max(stamps[ZONE_OFFSET], stamps[DST_OFFSET]) > 1;
    return wall - (zoned ? value(ZONE_OFFSET, 0) + value(DST_OFFSET, 0) : wallOffset(wall, this.zone.id));
  }
  checkAll() {
    for (let field = 0; field < 17; field++) {
      if (this.stamps[field] < 2) continue;
      const value = this.fields[field];
      const most = field === DATE && this.stamps[MONTH] > 0 ? lengthOf(this.stamps[YEAR] > 0 ? this.fields[YEAR] : 1970, this.fields[MONTH]) : this.getMaximum(field);
      if (value < this.getMinimum(field) || value > most) fail('IllegalArgumentException', NAMES[field] === 'DATE' ? 'DAY_OF_MONTH' : NAMES[field]);
    }
  }
}
NAMES.forEach((name, at) => { Calendar[name] = at; });
Calendar.DAY_OF_MONTH = DATE;
const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
MONTHS.forEach((name, at) => { Calendar[name.toUpperCase()] = at; });
WEEKDAYS.forEach((name, at) => { Calendar[name.toUpperCase()] = at + 1; });
Object.assign(Calendar, { UNDECIMBER: 12, AM: 0, PM: 1, SHORT: 1, LONG: 2 });

const ZONES = {
  __proto__: null,
  GMT: 'Greenwich Mean Time', UTC: 'Coordinated Universal Time', BST: 'British Summer Time', WET: 'Western European Standard Time', WEST: 'Western European Summer Time',
  CET: 'Central European Standard Time', CEST: 'Central European Summer Time', EET: 'Eastern European Standard Time', EEST: 'Eastern European Summer Time',
  EST: 'Eastern Standard Time', EDT: 'Eastern Daylight Time', CST: 'Central Standard Time', CDT: 'Central Daylight Time', MST: 'Mountain Standard Time',
  MDT: 'Mountain Daylight Time', PST: 'Pacific Standard Time', PDT: 'Pacific Daylight Time', JST: 'Japan Standard Time',
};
const longName = (short, width) => (width < 4 ? short : ZONES[short] === undefined ? nothing('java.text.SimpleDateFormat, the long name of ' + short) : ZONES[short]);
const LETTERS = 'GyYMLwWDdFEuaHkKhmsSzZX';
class SimpleDateFormat {
  constructor(pattern, locale) {
    if (locale !== undefined && !(locale instanceof Locale)) nothing('java.text.SimpleDateFormat with ' + typeName(locale));
    this.zone = TimeZone.getDefault();
    this.lenient = true;
    this.applyPattern(pattern === undefined ? 'M/d/yy, h:mm a' : pattern);
  }
  setTimeZone(zone) {
    if (!(zone instanceof TimeZone)) fail('IllegalArgumentException', 'no TimeZone: ' + typeName(zone));
    this.zone = zone;
  }
  getTimeZone() { return this.zone; }
  setLenient(is) { this.lenient = Boolean(is); }
  isLenient() { return this.lenient; }
  toPattern() { return this.pattern; }
  applyPattern(pattern) {
    this.pattern = String(pattern);
    this.parts = [];
    for (const [all, quoted, letters] of this.pattern.matchAll(/'((?:[^']|'')*)'|([a-zA-Z])\2*|[^]/g)) {
      if (letters !== undefined) {
        if (!LETTERS.includes(letters)) fail('IllegalArgumentException', "Illegal pattern character '" + letters + "'");
        if (letters === 'X' && all.length > 3) fail('IllegalArgumentException', 'invalid ISO 8601 format: length=' + all.length);
        this.parts.push({ letter: letters, width: all.length });
      } else {
        if (all === "'") fail('IllegalArgumentException', 'Unterminated quote');
        this.parts.push({ text: quoted === undefined ? all : quoted === '' ? "'" : quoted.replace(/''/g, "'") });
      }
    }
  }
  format(date) {
    const time = date instanceof JavaDate || date instanceof Date ? date.getTime() : date instanceof Number || typeof date === 'number' ? Number(date) : NaN;
    if (Number.isNaN(time)) fail('IllegalArgumentException', 'Cannot format given Object as a Date');
    const own = new Calendar(this.zone);
    own.setTimeInMillis(time);
    return this.parts.map(part => (part.text !== undefined ? part.text : this.written(part, own))).join('');
  }
  written({ letter, width }, own) {
    const number = (value, least = width) => (value < 0 ? '-' : '') + String(Math.abs(value)).padStart(least, '0');
    const get = field => own.get(field);
    switch (letter) {
      case 'G': return get(ERA) === 1 ? 'AD' : 'BC';
      case 'y': case 'Y': {
        let year = get(YEAR);
        if (letter === 'Y') {
          if (get(WEEK_OF_YEAR) === 1 && get(MONTH) === 11) year++;
          if (get(WEEK_OF_YEAR) >= 52 && get(MONTH) === 0) year--;
        }
        return width === 2 ? number(year % 100) : number(year);
      }
      case 'M': case 'L': return width >= 3 ? MONTHS[get(MONTH)].slice(0, width > 3 ? undefined : 3) : number(get(MONTH) + 1);
      case 'w': return number(get(WEEK_OF_YEAR));
      case 'W': return number(get(WEEK_OF_MONTH));
      case 'D': return number(get(DAY_OF_YEAR));
      case 'd': return number(get(DATE));
      case 'F': return number(get(DAY_OF_WEEK_IN_MONTH));
      case 'E': return WEEKDAYS[get(DAY_OF_WEEK) - 1].slice(0, width > 3 ? undefined : 3);
      case 'u': return number(mod(get(DAY_OF_WEEK) - 2, 7) + 1);
      case 'a': return get(AM_PM) === 0 ? 'AM' : 'PM';
      case 'H': return number(get(HOUR_OF_DAY));
      case 'k': return number(get(HOUR_OF_DAY) === 0 ? 24 : get(HOUR_OF_DAY));
      case 'K': return number(get(HOUR));
      case 'h': return number(get(HOUR) === 0 ? 12 : get(HOUR));
      case 'm': return number(get(MINUTE));
      case 's': return number(get(SECOND));
      case 'S': return number(get(MILLISECOND));
      case 'z': {
        const { id } = this.zone;
        return /^GMT[+-]/.test(id) ? id : id === 'GMT' || (id === 'UTC' && width < 4) ? id : longName(call('format', 'z', own.getTimeInMillis(), id), width);
      }
      default: {
        const minutes = (get(ZONE_OFFSET) + get(DST_OFFSET)) / 60000;
        if (letter === 'X' && minutes === 0) return 'Z';
        const size = Math.abs(minutes);
        const sign = minutes < 0 ? '-' : '+';
        const hours = String(floor(size / 60)).padStart(2, '0');
        if (letter === 'X' && width === 1) return sign + hours;
        return sign + hours + (letter === 'X' && width === 3 ? ':' : '') + String(floor(size) % 60).padStart(2, '0');
      }
    }
  }
  parse(text, position) {
    if (position !== undefined) nothing('java.text.ParsePosition');
    const given = String(text);
    const unparsable = () => fail('ParseException', 'Unparseable date: "' + given + '"');
    const own = new Calendar(this.zone);
    own.clear();
    own.setLenient(this.lenient);
    let at = 0;
    let shortYear;
    const name = (names, shorter) => {
      const rest = given.slice(at).toLowerCase();
      const fits = names.flatMap((one, index) => [[one, index], ...(shorter ? [[one.slice(0, 3), index]] : [])]).filter(([one]) => rest.startsWith(one.toLowerCase()));
      if (fits.length === 0) return unparsable();
      const [longest, index] = fits.reduce((a, b) => (b[0].length > a[0].length ? b : a));
      at += longest.length;
      return index;
    };
    this.parts.forEach((part, index) => {
      if (part.text !== undefined) {
        for (const c of part.text) {
          if (given.startsWith(c, at)) at += c.length;
          else unparsable();
        }
        return;
      }
      const { letter, width } = part;
      if (letter === 'G') return void own.set(ERA, name(['BC', 'AD']));
      if (letter === 'a') return void own.set(AM_PM, name(['AM', 'PM']));
      while (given[at] === ' ' || given[at] === '\t') at++;
      if (letter === 'E') return void own.set(DAY_OF_WEEK, name(WEEKDAYS, true) + 1);
      if ((letter === 'M' || letter === 'L') && width > 2) return void own.set(MONTH, name(MONTHS, true));
      if ('zZX'.includes(letter)) return void (at = this.zoneIn(given, at, letter, width, own, unparsable));
      const next = this.parts[index + 1];
      const run = next !== undefined && next.letter !== undefined && 'yYwWDdFuHkKhmsSML'.includes(next.letter) && !('ML'.includes(next.letter) && next.width > 2);
      const window = run ? given.slice(at, at + width) : given.slice(at);
      // The minus of a number that follows one is a mark between them.
      const found = /^-?\d+/.exec(window);
      if (found === null) unparsable();
      at += found[0].length;
      let value = Number(found[0]);
      switch (letter) {
        case 'y': {
          if (width <= 2 && /^\d\d$/.test(found[0])) {
            const start = dateOf(floor(Date.now() / DAY)).year - 80;
            const most = start % 100;
            shortYear = value === most;
            value += floor(start / 100) * 100 + (value < most ? 100 : 0);
          }
          own.set(YEAR, value);
          break;
        }
        case 'Y': nothing('java.text.SimpleDateFormat.parse of Y'); break;
        case 'M': case 'L': own.set(MONTH, value - 1); break;
        case 'u': own.set(DAY_OF_WEEK, value === 7 ? 1 : value + 1); break;
        case 'k': own.set(HOUR_OF_DAY, this.lenient || value !== 24 ? value % 24 === 0 && value === 24 ? 0 : value : 0); break;
        case 'h': own.set(HOUR, value === 12 ? 0 : value); break;
        default: own.set({ w: WEEK_OF_YEAR, W: WEEK_OF_MONTH, D: DAY_OF_YEAR, d: DATE, F: DAY_OF_WEEK_IN_MONTH, H: HOUR_OF_DAY, K: HOUR, m: MINUTE, s: SECOND, S: MILLISECOND }[letter], value);
      }
    });
    try {
      const again = shortYear ? own.clone() : undefined;
      const found = own.getTime();
      if (shortYear && found.getTime() < Date.now() - 80 * 365.2425 * DAY) {
        again.set(YEAR, again.fields[YEAR] + 100);
        return again.getTime();
      }
      return found;
    } catch (e) {
      if (/IllegalArgumentException/.test(e.name)) return unparsable();
      throw e;
    }
  }
  zoneIn(given, at, letter, width, own, unparsable) {
    const rest = given.slice(at);
    const offset = (value, size) => {
      own.set(ZONE_OFFSET, value);
      own.set(DST_OFFSET, 0);
      return at + size;
    };
    const time = ([all, sign, hours, minutes = '0']) => {
      if (Number(hours) > 23 || Number(minutes) > 59) unparsable();
      return offset((sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60000, all.length);
    };
    if (letter === 'X') {
      if (rest[0] === 'Z') return offset(0, 1);
      const found = [/^([+-])(\d\d)/, /^([+-])(\d\d)(\d\d)/, /^([+-])(\d\d):(\d\d)/][width - 1].exec(rest);
      return found === null ? unparsable() : time(found);
    }
    const found = /^([+-])(\d\d)(\d\d)/.exec(rest) || /^([+-])(\d{1,2}):(\d\d)/.exec(rest) || /^GMT([+-])(\d{1,2}):?(\d\d)?/i.exec(rest);
    if (found !== null) return time(found);
    const word = /^[A-Za-z]+/.exec(rest);
    if (word === null) return unparsable();
    const upper = word[0].toUpperCase();
    if (['GMT', 'UTC', 'UT', 'Z'].includes(upper)) return upper === 'Z' ? unparsable() : offset(0, upper.length);
    const hours = { EST: -5, EDT: -5, CST: -6, CDT: -6, MST: -7, MDT: -7, PST: -8, PDT: -8, CET: 1, CEST: 1, EET: 2, EEST: 2, WET: 0, WEST: 0, JST: 9 }[upper];
    if (hours === undefined) return nothing('java.text.SimpleDateFormat, time zone ' + word[0]);
    own.set(ZONE_OFFSET, hours * 3600000);
    own.set(DST_OFFSET, /^..?.?DT$|EST$/.test(upper) && upper !== 'EST' ? 3600000 : 0);
    return at + upper.length;
  }
}
