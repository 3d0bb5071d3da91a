// java.time: a day since 1970, a second of that day, nanoseconds, and of some a zone with its offset.

const isoDay = (year, month, day) => gregorianDay(year, month - 1) + day - 1;
const isoLength = (year, month) => gregorianDay(year, month) - gregorianDay(year, month - 1);
const isoOf = days => {
  let year = 1970 + floor(days / 365.2425);
  while (gregorianDay(year, 0) > days) year--;
  while (gregorianDay(year + 1, 0) <= days) year++;
  let month = floor((days - gregorianDay(year, 0)) / 31);
  while (month < 11 && gregorianDay(year, month + 1) <= days) month++;
  return { year, month: month + 1, day: days - gregorianDay(year, month) + 1 };
};
const two = number => String(number).padStart(2, '0');
const badTime = message => fail('DateTimeException', message);
const enumOf = (names, first) => {
  class Named {
    constructor(at) { this.at = at; }
    getValue() { return this.at + first; }
    ordinal() { return this.at; }
    name() { return names[this.at].toUpperCase(); }
    toString() { return this.name(); }
    equals(other) { return this === other; }
    compareTo(other) { return this.at - other.at; }
    plus(count) { return all[mod(this.at + Number(count), all.length)]; }
    minus(count) { return this.plus(-count); }
    getDisplayName(style) { return String(style) === 'SHORT' ? names[this.at].slice(0, 3) : names[this.at]; }
    static of(value) { return all[value - first] === undefined ? badTime('Invalid value: ' + value) : all[value - first]; }
    static values() { return all.slice(); }
    static valueOf(name) { return all.find(one => one.name() === String(name)) || fail('IllegalArgumentException', 'No enum constant ' + name); }
  }
  const all = names.map((_, at) => new Named(at));
  all.forEach(one => { Named[one.name()] = one; });
  return Named;
};
const Month = enumOf(MONTHS, 1);
const DayOfWeek = enumOf([...WEEKDAYS.slice(1), WEEKDAYS[0]], 1);
const TextStyle = { FULL: 'FULL', SHORT: 'SHORT' };

// Units: months, days or seconds.
const UNITS = {
  __proto__: null,
  NANOS: ['nano', 1], MICROS: ['nano', 1000], MILLIS: ['nano', 1000000], SECONDS: ['second', 1], MINUTES: ['second', 60], HOURS: ['second', 3600],
  HALF_DAYS: ['second', 43200], DAYS: ['day', 1], WEEKS: ['day', 7], MONTHS: ['month', 1], YEARS: ['month', 12], DECADES: ['month', 120], CENTURIES: ['month', 1200],
};
class ChronoUnit {
  constructor(id) { [this.id, this.kind, this.size] = [id, ...UNITS[id]]; }
  between(from, to) { return from.until(to, this); }
  getDuration() { return Duration.of(1, this); }
  name() { return this.id; }
  toString() { return this.id[0] + this.id.slice(1).toLowerCase(); }
}
for (const id of Object.keys(UNITS)) ChronoUnit[id] = new ChronoUnit(id);

class ZoneId {
  constructor(id, fixed) {
    this.id = id;
    this.fixed = fixed;
  }
  static of(id) {
    const own = String(id);
    if (own === 'Z' || /^[+-]/.test(own)) return ZoneOffset.of(own);
    const fixed = /^(GMT|UTC|UT)([+-].+)$/.exec(own);
    if (fixed !== null) {
      const offset = ZoneOffset.of(fixed[2]);
      return new ZoneId(fixed[1] + offset.id, offset.seconds);
    }
    try {
      call('zone', own);
    } catch (e) {
      fail('ZoneRulesException', 'Unknown time-zone ID: ' + own);
    }
    return new ZoneId(own);
  }
  static systemDefault() { return new ZoneId(call('zone', '')); }
  getId() { return this.id; }
  normalized() { return this; }
  equals(other) { return other instanceof ZoneId && other.id === this.id; }
  at(second) { return this.fixed === undefined ? offsetOf(second * 1000, this.id) / 1000 : this.fixed; }
  // Of two the earlier one; in a gap that before it.
  ofWall(second) {
    const [before, after] = [this.at(second - DAY_SECONDS), this.at(second + DAY_SECONDS)];
    return this.at(second - before) === before || this.at(second - after) !== after ? before : after;
  }
  toString() { return this.id; }
}
const offsetText = (seconds, colon = ':', zero = 'Z') => {
  if (seconds === 0 && zero !== '') return zero;
  const size = Math.abs(seconds);
  return (seconds < 0 ? '-' : '+') + two(floor(size / 3600)) + colon + two(floor(size / 60) % 60) + (size % 60 ? colon + two(size % 60) : '');
};
class ZoneOffset extends ZoneId {
  constructor(seconds) {
    super(offsetText(seconds));
    this.seconds = seconds;
  }
  static of(text) {
    const found = /^(?:Z|([+-])(\d{1,2})(?::?(\d\d)(?::?(\d\d))?)?)$/.exec(String(text)) || badTime('Invalid ID for ZoneOffset, invalid format: ' + text);
    return new ZoneOffset((found[1] === '-' ? -1 : 1) * (Number(found[2] || 0) * 3600 + Number(found[3] || 0) * 60 + Number(found[4] || 0)));
  }
  static ofHours(hours) { return new ZoneOffset(Number(hours) * 3600); }
  static ofHoursMinutes(hours, minutes) { return new ZoneOffset(Number(hours) * 3600 + Number(minutes) * 60); }
  static ofTotalSeconds(seconds) { return new ZoneOffset(Number(seconds)); }
  getTotalSeconds() { return this.seconds; }
  at() { return this.seconds; }
  ofWall() { return this.seconds; }
}
ZoneOffset.UTC = new ZoneOffset(0);
const zoneOf = zone => (zone instanceof ZoneId ? zone : zone instanceof TimeZone ? new ZoneId(zone.id) : zone && zone.zone instanceof ZoneId ? zone.zone : fail('NullPointerException', 'zone'));

// Java's years end at 999,999,999.
const MOST_DAYS = 365241780471;
/** What all times are made of. `day` is 0 of a time of the day, `second` and `nano` are 0 of a day. */
class Time {
  constructor(day, second, nano, zone, offset) {
    if (!(Math.abs(day) <= MOST_DAYS) || !Number.isFinite(second + nano)) badTime('Exceeds the range of times, or no number');
    Object.assign(this, { day, second, nano, zone, offset });
  }
  /** The same kind with other parts, carried over; of a zone by the wall. */
  on(day, second, nano) {
    second += floor(nano / 1e9);
    const full = day + floor(second / DAY_SECONDS);
    return this.made(full, mod(second, DAY_SECONDS), mod(nano, 1e9));
  }
  made(day, second, nano) { return new this.constructor(day, second, nano); }
  wall() { return this.day * DAY_SECONDS + this.second; }
  line() { return this.wall() - (this.offset || 0); }
  compareTo(other) { return Math.sign(this.line() - other.line() || this.nano - other.nano || this.wall() - other.wall()); }
  isBefore(other) { return this.line() < other.line() || (this.line() === other.line() && this.nano < other.nano); }
  isAfter(other) { return other.isBefore(this); }
  isEqual(other) { return !this.isBefore(other) && !this.isAfter(other); }
  equals(other) { return other !== null && typeof other === 'object' && other.constructor === this.constructor && this.toString() === other.toString(); }
  hashCode() { return hash(this.toString()); }
  [KEY]() { return this.toString(); }
  valueOf() { return this.toString(); }
  toJSON() { return this.toString(); }
  plus(count, unit) {
    if (count instanceof Duration) return this.moved(count.seconds, count.nano);
    if (count instanceof Period) return this.months(count.years * 12 + count.months).days(count.count);
    const { kind, size } = unit instanceof ChronoUnit ? unit : nothing('java.time with ' + typeName(unit));
    const value = Number(count) * size;
    return kind === 'month' ? this.months(value) : kind === 'day' ? this.days(value) : kind === 'second' ? this.moved(value, 0) : this.moved(0, value);
  }
  minus(count, unit) {
    if (count instanceof Duration || count instanceof Period) return this.plus(count.negated());
    return this.plus(-Number(count), unit);
  }
  days(count) { return this.on(this.day + count, this.second, this.nano); }
  moved(seconds, nanos) { return this.on(this.day, this.second + seconds, this.nano + nanos); }
  months(count) {
    const { year, month, day } = isoOf(this.day);
    const at = year * 12 + month - 1 + count;
    const [toYear, toMonth] = [floor(at / 12), mod(at, 12) + 1];
    return this.on(isoDay(toYear, toMonth, Math.min(day, isoLength(toYear, toMonth))), this.second, this.nano);
  }
  until(to, unit) {
    const seconds = to.line() - this.line();
    const nanos = to.nano - this.nano;
    if (unit.kind === 'month' || (unit.kind === 'day' && this.hasDate && this.hasTime)) {
      const wall = to.zone && this.zone ? to.withZoneSameInstant(this.zone) : to;
      let days = wall.day - this.day;
      const rest = wall.second - this.second || wall.nano - this.nano;
      if (days > 0 && rest < 0) days--;
      else if (days < 0 && rest > 0) days++;
      if (unit.kind === 'day') return Math.trunc(days / unit.size);
      const [a, b] = [isoOf(this.day), isoOf(this.day + days)];
      let months = (b.year - a.year) * 12 + b.month - a.month;
      if (months > 0 && b.day < a.day) months--;
      else if (months < 0 && b.day > a.day) months++;
      return Math.trunc(months / unit.size);
    }
    if (unit.kind === 'day') return Math.trunc(seconds / DAY_SECONDS / unit.size);
    const whole = seconds > 0 && nanos < 0 ? seconds - 1 : seconds < 0 && nanos > 0 ? seconds + 1 : seconds;
    if (unit.kind === 'second') return Math.trunc(whole / unit.size);
    return Math.trunc((seconds * 1e9 + nanos) / unit.size);
  }
  truncatedTo(unit) {
    const size = unit.kind === 'nano' ? unit.size : unit.size * 1e9;
    if (unit.id === 'DAYS') return this.on(this.day, 0, 0);
    if (unit.kind === 'nano') return this.on(this.day, this.second, this.nano - (this.nano % size));
    if (unit.kind !== 'second') fail('UnsupportedTemporalTypeException', 'Unit is too large to be used for truncation');
    return this.on(this.day, this.second - (this.second % unit.size), 0);
  }
  format(formatter) { return formatter.format(this); }
}
const DAY_SECONDS = 86400;
const withMethods = (prototype, methods) => {
  for (const name of Object.keys(methods)) Object.defineProperty(prototype, name, { value: methods[name], writable: true, configurable: true, enumerable: false });
};
const DATES = {
  hasDate: true,
  getYear() { return isoOf(this.day).year; },
  getMonthValue() { return isoOf(this.day).month; },
  getMonth() { return Month.of(this.getMonthValue()); },
  getDayOfMonth() { return isoOf(this.day).day; },
  getDayOfYear() { return this.day - gregorianDay(this.getYear(), 0) + 1; },
  getDayOfWeek() { return DayOfWeek.of(mod(this.day + 3, 7) + 1); },
  isLeapYear() { return isoLength(this.getYear(), 2) === 29; },
  lengthOfMonth() { const { year, month } = isoOf(this.day); return isoLength(year, month); },
  lengthOfYear() { return this.isLeapYear() ? 366 : 365; },
  toEpochDay() { return this.day; },
  toLocalDate() { return new LocalDate(this.day, 0, 0); },
  plusDays(count) { return this.days(Number(count)); },
  plusWeeks(count) { return this.days(Number(count) * 7); },
  plusMonths(count) { return this.months(Number(count)); },
  plusYears(count) { return this.months(Number(count) * 12); },
  minusDays(count) { return this.days(-count); },
  minusWeeks(count) { return this.days(-count * 7); },
  minusMonths(count) { return this.months(-count); },
  minusYears(count) { return this.months(-count * 12); },
  withYear(value) { const { month, day } = isoOf(this.day); return this.on(isoDay(Number(value), month, Math.min(day, isoLength(Number(value), month))), this.second, this.nano); },
  withMonth(value) { return this.months(Number(value) - this.getMonthValue()); },
  withDayOfMonth(value) { return this.on(checkedDay(this.getYear(), this.getMonthValue(), Number(value)), this.second, this.nano); },
  withDayOfYear(value) { return this.on(gregorianDay(this.getYear(), 0) + Number(value) - 1, this.second, this.nano); },
};
const CLOCKS = {
  hasTime: true,
  getHour() { return floor(this.second / 3600); },
  getMinute() { return floor(this.second / 60) % 60; },
  getSecond() { return this.second % 60; },
  getNano() { return this.nano; },
  toSecondOfDay() { return this.second; },
  toLocalTime() { return new LocalTime(0, this.second, this.nano); },
  plusHours(count) { return this.moved(Number(count) * 3600, 0); },
  plusMinutes(count) { return this.moved(Number(count) * 60, 0); },
  plusSeconds(count) { return this.moved(Number(count), 0); },
  plusNanos(count) { return this.moved(0, Number(count)); },
  minusHours(count) { return this.moved(-count * 3600, 0); },
  minusMinutes(count) { return this.moved(-count * 60, 0); },
  minusSeconds(count) { return this.moved(-count, 0); },
  minusNanos(count) { return this.moved(0, -count); },
  withHour(value) { return this.on(this.day, (this.second % 3600) + Number(value) * 3600, this.nano); },
  withMinute(value) { return this.on(this.day, this.second + (Number(value) - this.getMinute()) * 60, this.nano); },
  withSecond(value) { return this.on(this.day, this.second + Number(value) - this.getSecond(), this.nano); },
  withNano(value) { return this.on(this.day, this.second, Number(value)); },
};
const checkedDay = (year, month, day) => {
  if (!(month >= 1 && month <= 12)) badTime('Invalid value for MonthOfYear (valid values 1 - 12): ' + month);
  if (!(day >= 1 && day <= 31)) badTime('Invalid value for DayOfMonth (valid values 1 - 28/31): ' + day);
  if (day > isoLength(year, month)) badTime(day === 29 ? "Invalid date 'February 29' as '" + year + "' is not a leap year" : "Invalid date '" + MONTHS[month - 1].toUpperCase() + ' ' + day + "'");
  return isoDay(year, month, day);
};
const checkedTime = (hour, minute, second = 0) => {
  for (const [name, value, most] of [['HourOfDay', hour, 23], ['MinuteOfHour', minute, 59], ['SecondOfMinute', second, 59]]) {
    if (!(value >= 0 && value <= most)) badTime('Invalid value for ' + name + ' (valid values 0 - ' + most + '): ' + value);
  }
  return hour * 3600 + minute * 60 + second;
};
const monthNumber = month => (month instanceof Month ? month.getValue() : Number(month));
const dateText = day => {
  const { year, month, day: own } = isoOf(day);
  const size = String(Math.abs(year)).padStart(4, '0');
  return (year < 0 ? '-' : year > 9999 ? '+' : '') + size + '-' + two(month) + '-' + two(own);
};
const fraction = (nano, widths) => {
  if (nano === 0) return '';
  const digits = String(nano).padStart(9, '0');
  return '.' + digits.slice(0, widths.find(width => /^0*$/.test(digits.slice(width))));
};
const clockText = (second, nano, least = false) => {
  const short = two(floor(second / 3600)) + ':' + two(floor(second / 60) % 60);
  return second % 60 === 0 && nano === 0 && !least ? short : short + ':' + two(second % 60) + fraction(nano, [3, 6, 9]);
};
const nowIn = zone => {
  const now = Date.now();
  const second = floor(now / 1000);
  const own = zone === undefined ? ZoneId.systemDefault() : zoneOf(zone);
  return new ZonedDateTime(...split(second + own.at(second)), mod(now, 1000) * 1e6, own, own.at(second));
};
const split = second => [floor(second / DAY_SECONDS), mod(second, DAY_SECONDS)];
const parsedTo = (make, iso) => (text, formatter) => {
  const own = String(text);
  const fields = (formatter === undefined ? iso : formatter).fields(own);
  try {
    return make(fields);
  } catch (e) {
    return fail('DateTimeParseException', "Text '" + own + "' could not be parsed: " + e.message);
  }
};
const need = (fields, ...names) => {
  for (const name of names) if (fields[name] === undefined) badTime('Unable to obtain the time: there is no ' + name);
  return fields;
};

class LocalDate extends Time {
  static now(zone) { return nowIn(zone).toLocalDate(); }
  static of(year, month, day) { return new LocalDate(checkedDay(Number(year), monthNumber(month), Number(day)), 0, 0); }
  static ofEpochDay(day) { return new LocalDate(Number(day), 0, 0); }
  static ofYearDay(year, day) { return new LocalDate(gregorianDay(Number(year), 0) + Number(day) - 1, 0, 0); }
  static from(other) { return other.toLocalDate(); }
  static ofInstant(instant, zone) { return instant.atZone(zone).toLocalDate(); }
  moved() { return fail('UnsupportedTemporalTypeException', 'Unsupported unit: Seconds'); }
  atStartOfDay(zone) { const own = new LocalDateTime(this.day, 0, 0); return zone === undefined ? own : own.atZone(zone); }
  atTime(hour, minute, second = 0, nano = 0) { return hour instanceof LocalTime ? new LocalDateTime(this.day, hour.second, hour.nano) : new LocalDateTime(this.day, checkedTime(Number(hour), Number(minute), Number(second)), Number(nano)); }
  toString() { return dateText(this.day); }
}
class LocalTime extends Time {
  made(day, second, nano) { return new LocalTime(0, second, nano); }
  static now(zone) { return nowIn(zone).toLocalTime(); }
  static of(hour, minute, second = 0, nano = 0) { return new LocalTime(0, checkedTime(Number(hour), Number(minute), Number(second)), Number(nano)); }
  static ofSecondOfDay(second) { return new LocalTime(0, Number(second), 0); }
  atDate(date) { return new LocalDateTime(date.day, this.second, this.nano); }
  toString() { return clockText(this.second, this.nano); }
}
class LocalDateTime extends Time {
  static now(zone) { return nowIn(zone).toLocalDateTime(); }
  static of(year, month, day, hour, minute, second = 0, nano = 0) {
    if (year instanceof LocalDate) return new LocalDateTime(year.day, month.second, month.nano);
    return new LocalDateTime(checkedDay(Number(year), monthNumber(month), Number(day)), checkedTime(Number(hour), Number(minute), Number(second)), Number(nano));
  }
  static ofInstant(instant, zone) { return instant.atZone(zone).toLocalDateTime(); }
  static ofEpochSecond(second, nano, offset) { return new LocalDateTime(...split(Number(second) + offset.getTotalSeconds()), Number(nano)); }
  atZone(zone) {
    const own = zoneOf(zone);
    const offset = own.ofWall(this.wall());
    const wall = this.wall() - offset + own.at(this.wall() - offset);
    return new ZonedDateTime(...split(wall), this.nano, own, own.at(this.wall() - offset));
  }
  atOffset(offset) { return new OffsetDateTime(this.day, this.second, this.nano, offset, offset.getTotalSeconds()); }
  toInstant(offset) { return new Instant(...split(this.wall() - offset.getTotalSeconds()), this.nano); }
  toEpochSecond(offset) { return this.wall() - offset.getTotalSeconds(); }
  toLocalDateTime() { return this; }
  toString() { return dateText(this.day) + 'T' + clockText(this.second, this.nano); }
}
class ZonedDateTime extends Time {
  static now(zone) { return nowIn(zone); }
  static of(...given) {
    const zone = given.pop();
    return LocalDateTime.of(...given).atZone(zone);
  }
  static ofInstant(instant, zone) { return instant.atZone(zone); }
  made(day, second, nano) { return new LocalDateTime(day, second, nano).atZone(this.zone); }
  moved(seconds, nanos) { return this.toInstant().moved(seconds, nanos).atZone(this.zone); }
  toInstant() { return new Instant(...split(this.line()), this.nano); }
  toEpochSecond() { return this.line(); }
  toLocalDateTime() { return new LocalDateTime(this.day, this.second, this.nano); }
  toOffsetDateTime() { return this.toLocalDateTime().atOffset(this.getOffset()); }
  getZone() { return this.zone; }
  getOffset() { return new ZoneOffset(this.offset); }
  withZoneSameInstant(zone) { return this.toInstant().atZone(zone); }
  withZoneSameLocal(zone) { return this.toLocalDateTime().atZone(zone); }
  toString() { return this.toLocalDateTime().toString() + offsetText(this.offset) + (this.zone instanceof ZoneOffset ? '' : '[' + this.zone.id + ']'); }
}
class OffsetDateTime extends ZonedDateTime {
  static now(zone) { return nowIn(zone).toOffsetDateTime(); }
  static of(...given) {
    const offset = given.pop();
    return LocalDateTime.of(...given).atOffset(offset);
  }
  static ofInstant(instant, zone) { return instant.atZone(zone).toOffsetDateTime(); }
  made(day, second, nano) { return new OffsetDateTime(day, second, nano, this.zone, this.offset); }
  moved(seconds, nanos) { return this.on(this.day, this.second + seconds, this.nano + nanos); }
  toZonedDateTime() { return this.toLocalDateTime().atZone(this.zone); }
  atZoneSameInstant(zone) { return this.toInstant().atZone(zone); }
  withOffsetSameInstant(offset) { return this.toInstant().atOffset(offset); }
  withOffsetSameLocal(offset) { return this.toLocalDateTime().atOffset(offset); }
  toString() { return this.toLocalDateTime().toString() + offsetText(this.offset); }
}
class Instant extends Time {
  static now() { return Instant.ofEpochMilli(Date.now()); }
  static ofEpochMilli(time) { return new Instant(...split(floor(Number(time) / 1000)), mod(Number(time), 1000) * 1e6); }
  static ofEpochSecond(second, nano = 0) { return new Instant(0, 0, 0).moved(Number(second), Number(nano)); }
  getEpochSecond() { return this.wall(); }
  getNano() { return this.nano; }
  toEpochMilli() { return this.wall() * 1000 + floor(this.nano / 1e6); }
  plusMillis(count) { return this.moved(0, Number(count) * 1e6); }
  minusMillis(count) { return this.moved(0, -count * 1e6); }
  atZone(zone) {
    const own = zoneOf(zone);
    const offset = own.at(this.wall());
    return new ZonedDateTime(...split(this.wall() + offset), this.nano, own, offset);
  }
  atOffset(offset) { return new OffsetDateTime(...split(this.wall() + offset.getTotalSeconds()), this.nano, offset, offset.getTotalSeconds()); }
  toString() { return dateText(this.day) + 'T' + clockText(this.second, this.nano, true) + 'Z'; }
}
withMethods(Time.prototype, { hasDate: false, hasTime: false });
for (const one of [LocalDate, LocalDateTime, ZonedDateTime]) withMethods(one.prototype, DATES);
for (const one of [LocalTime, LocalDateTime, ZonedDateTime]) withMethods(one.prototype, CLOCKS);
withMethods(Instant.prototype, { plusSeconds: CLOCKS.plusSeconds, minusSeconds: CLOCKS.minusSeconds, plusNanos: CLOCKS.plusNanos, minusNanos: CLOCKS.minusNanos });
LocalTime.MIDNIGHT = LocalTime.MIN = new LocalTime(0, 0, 0);
LocalTime.NOON = new LocalTime(0, 43200, 0);
LocalTime.MAX = new LocalTime(0, 86399, 999999999);
Instant.EPOCH = new Instant(0, 0, 0);

class Duration {
  constructor(seconds, nano = 0) {
    this.seconds = seconds + floor(nano / 1e9);
    this.nano = mod(nano, 1e9);
  }
  static of(count, unit) {
    if (unit.kind === 'month') fail('UnsupportedTemporalTypeException', 'Unit must not have an estimated duration');
    return unit.kind === 'nano' ? new Duration(0, count * unit.size) : new Duration(count * unit.size * (unit.kind === 'day' ? DAY_SECONDS : 1));
  }
  static ofDays(count) { return new Duration(Number(count) * DAY_SECONDS); }
  static ofHours(count) { return new Duration(Number(count) * 3600); }
  static ofMinutes(count) { return new Duration(Number(count) * 60); }
  static ofSeconds(count, nano = 0) { return new Duration(Number(count), Number(nano)); }
  static ofMillis(count) { return new Duration(floor(Number(count) / 1000), mod(Number(count), 1000) * 1e6); }
  static ofNanos(count) { return new Duration(0, Number(count)); }
  static between(from, to) { return new Duration(to.line() - from.line(), to.nano - from.nano); }
  static parse(text) {
    const found = /^([+-])?P(?:([+-]?\d+)D)?(?:T(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+)(?:[.,](\d{0,9}))?S)?)?$/i.exec(String(text));
    if (found === null || /[PT]$/i.test(String(text))) fail('DateTimeParseException', 'Text cannot be parsed to a Duration');
    const [, sign, days = 0, hours = 0, minutes = 0, seconds = '0', part = ''] = found;
    const nano = Number(part.padEnd(9, '0')) * (String(seconds).startsWith('-') ? -1 : 1);
    const own = new Duration(days * DAY_SECONDS + hours * 3600 + minutes * 60 + Number(seconds), nano);
    return sign === '-' ? own.negated() : own;
  }
  getSeconds() { return this.seconds; }
  getNano() { return this.nano; }
  toDays() { return Math.trunc(this.seconds / DAY_SECONDS); }
  toHours() { return Math.trunc(this.seconds / 3600); }
  toMinutes() { return Math.trunc(this.seconds / 60); }
  toSeconds() { return this.seconds; }
  toMillis() { return this.seconds * 1000 + floor(this.nano / 1e6); }
  toNanos() { return this.seconds * 1e9 + this.nano; }
  toHoursPart() { return this.toHours() % 24; }
  toMinutesPart() { return this.toMinutes() % 60; }
  toSecondsPart() { return this.seconds % 60; }
  toMillisPart() { return floor(this.nano / 1e6); }
  isNegative() { return this.seconds < 0; }
  isZero() { return this.seconds === 0 && this.nano === 0; }
  negated() { return new Duration(-this.seconds, -this.nano); }
  abs() { return this.isNegative() ? this.negated() : this; }
  plus(other) { return new Duration(this.seconds + other.seconds, this.nano + other.nano); }
  minus(other) { return this.plus(other.negated()); }
  plusSeconds(count) { return new Duration(this.seconds + Number(count), this.nano); }
  plusMinutes(count) { return this.plusSeconds(count * 60); }
  plusHours(count) { return this.plusSeconds(count * 3600); }
  plusDays(count) { return this.plusSeconds(count * DAY_SECONDS); }
  plusMillis(count) { return new Duration(this.seconds, this.nano + count * 1e6); }
  multipliedBy(count) { return new Duration(this.seconds * count, this.nano * count); }
  compareTo(other) { return Math.sign(this.seconds - other.seconds || this.nano - other.nano); }
  equals(other) { return other instanceof Duration && this.compareTo(other) === 0; }
  hashCode() { return hash(this.toString()); }
  [KEY]() { return this.toString(); }
  toJSON() { return this.toString(); }
  toString() {
    if (this.isZero()) return 'PT0S';
    const whole = this.seconds < 0 && this.nano > 0 ? this.seconds + 1 : this.seconds;
    const [hours, minutes, seconds] = [Math.trunc(whole / 3600), Math.trunc((whole % 3600) / 60), whole % 60];
    let out = 'PT' + (hours ? hours + 'H' : '') + (minutes ? minutes + 'M' : '');
    if (seconds === 0 && this.nano === 0) return out;
    out += (this.seconds < 0 && this.nano > 0 && seconds === 0 ? '-0' : seconds);
    if (this.nano > 0) out += '.' + String(this.seconds < 0 ? 1e9 - this.nano : this.nano).padStart(9, '0').replace(/0+$/, '');
    return out + 'S';
  }
}
Duration.ZERO = new Duration(0);
class Period {
  constructor(years, months, count) { Object.assign(this, { years, months, count }); }
  static of(years, months, days) { return new Period(Number(years), Number(months), Number(days)); }
  static ofDays(count) { return new Period(0, 0, Number(count)); }
  static ofWeeks(count) { return new Period(0, 0, Number(count) * 7); }
  static ofMonths(count) { return new Period(0, Number(count), 0); }
  static ofYears(count) { return new Period(Number(count), 0, 0); }
  static between(from, to) {
    const months = from.until(to, ChronoUnit.MONTHS);
    return new Period(Math.trunc(months / 12), months % 12, to.day - from.months(months).day);
  }
  getYears() { return this.years; }
  getMonths() { return this.months; }
  getDays() { return this.count; }
  toTotalMonths() { return this.years * 12 + this.months; }
  isNegative() { return this.years < 0 || this.months < 0 || this.count < 0; }
  negated() { return new Period(-this.years, -this.months, -this.count); }
  equals(other) { return other instanceof Period && this.toString() === other.toString(); }
  toString() { return this.years || this.months || this.count ? 'P' + (this.years ? this.years + 'Y' : '') + (this.months ? this.months + 'M' : '') + (this.count ? this.count + 'D' : '') : 'P0D'; }
}

/** A pattern of letters, or parts of ISO 8601 that say themselves what is optional. */
class DateTimeFormatter {
  constructor(parts, zone) {
    this.parts = parts;
    this.zone = zone;
  }
  static ofPattern(pattern, locale) {
    if (locale !== undefined && !(locale instanceof Locale)) nothing('java.time.format.DateTimeFormatter with ' + typeName(locale));
    const root = [];
    const open = [root];
    for (const [all, quoted, letter] of String(pattern).matchAll(/'((?:[^']|'')*)'|([a-zA-Z])\2*|[^]/g)) {
      const last = open[open.length - 1];
      if (letter !== undefined) {
        if (!'GuyMLdDEeaHkKhmsSAnNVzOXxZQqw'.includes(letter)) fail('IllegalArgumentException', 'Unknown pattern letter: ' + letter);
        last.push({ letter, width: all.length });
      } else if (all === '[') {
        const inside = [];
        last.push({ optional: inside });
        open.push(inside);
      } else if (all === ']') {
        if (open.length === 1) fail('IllegalArgumentException', 'Pattern invalid as it contains ] without previous [');
        open.pop();
      } else {
        if (all === "'") fail('IllegalArgumentException', 'Pattern ends with an incomplete string literal: ' + pattern);
        if ('{}#'.includes(all)) fail('IllegalArgumentException', "Pattern includes reserved character: '" + all + "'");
        last.push({ text: quoted === undefined ? all : quoted === '' ? "'" : quoted.replace(/''/g, "'") });
      }
    }
    return new DateTimeFormatter(root);
  }
  withZone(zone) { return new DateTimeFormatter(this.parts, zoneOf(zone)); }
  withLocale() { return this; }
  getZone() { return this.zone === undefined ? null : this.zone; }
  format(time) {
    const own = this.zone === undefined ? time : time instanceof Instant ? time.atZone(this.zone) : time.zone ? time.withZoneSameInstant(this.zone) : time;
    return this.write(this.parts, own);
  }
  write(parts, time) {
    return parts.map(part => {
      if (part.text !== undefined) return part.text;
      if (part.optional === undefined) return written(part, time);
      try {
        return this.write(part.optional, time);
      } catch (e) {
        return '';
      }
    }).join('');
  }
  parse(text, query) {
    if (query !== undefined) nothing('java.time.format.DateTimeFormatter.parse with a query');
    return LocalDateTime.parse(text, this);
  }
  /** The fields of a text. */
  fields(text) {
    const state = { text, at: 0, fields: { __proto__: null } };
    if (!read(this.parts, state)) fail('DateTimeParseException', "Text '" + text + "' could not be parsed at index " + state.at);
    if (state.at < text.length) fail('DateTimeParseException', "Text '" + text + "' could not be parsed, unparsed text found at index " + state.at);
    const own = state.fields;
    if (own.day12 !== undefined) own.hour = own.day12 % 12 + (own.half || 0) * 12;
    if (own.zone === undefined && this.zone !== undefined) own.zone = this.zone;
    return own;
  }
}
const written = ({ letter, width, iso }, time) => {
  const lacks = name => fail('UnsupportedTemporalTypeException', 'Unsupported field: ' + name);
  if ('GuyMLdDEeQqw'.includes(letter) && !time.hasDate) lacks(time.hasTime ? 'YearOfEra' : 'YearOfEra');
  if ('aHkKhmsSAnN'.includes(letter) && !time.hasTime) lacks('HourOfDay');
  if ('zVOXxZ'.includes(letter) && time.zone === undefined) fail('DateTimeException', 'Unable to extract ZoneId from temporal ' + time);
  const number = (value, least = width) => (value < 0 ? '-' : '') + String(Math.abs(value)).padStart(least, '0');
  switch (letter) {
    case 'G': return time.getYear() > 0 ? 'AD' : 'BC';
    case 'u': case 'y': {
      const year = letter === 'y' && time.getYear() < 1 ? 1 - time.getYear() : time.getYear();
      return width === 2 ? two(mod(year, 100)) : (width >= 4 && year > 9999 ? '+' : '') + number(year);
    }
    case 'M': case 'L': return width === 5 ? MONTHS[time.getMonthValue() - 1][0] : width > 2 ? MONTHS[time.getMonthValue() - 1].slice(0, width === 3 ? 3 : undefined) : number(time.getMonthValue());
    case 'Q': case 'q': return width > 2 ? 'Q' + floor((time.getMonthValue() + 2) / 3) : number(floor((time.getMonthValue() + 2) / 3));
    case 'd': return number(time.getDayOfMonth());
    case 'D': return number(time.getDayOfYear());
    case 'E': return WEEKDAYS[mod(time.day + 4, 7)].slice(0, width < 4 ? 3 : width === 5 ? 1 : undefined);
    case 'e': return width > 2 ? WEEKDAYS[mod(time.day + 4, 7)].slice(0, width === 3 ? 3 : undefined) : number(mod(time.day + 4, 7) + 1);
    case 'a': return time.getHour() < 12 ? 'AM' : 'PM';
    case 'H': return number(time.getHour());
    case 'k': return number(time.getHour() || 24);
    case 'K': return number(time.getHour() % 12);
    case 'h': return number(time.getHour() % 12 || 12);
    case 'm': return number(time.getMinute());
    case 's': return number(time.getSecond());
    case 'S': return iso ? fraction(time.nano, [3, 6, 9]) : String(time.nano).padStart(9, '0').slice(0, width).padEnd(width, '0');
    case 'A': return number(time.second * 1000 + floor(time.nano / 1e6));
    case 'n': return number(time.nano);
    case 'N': return number(time.second * 1e9 + time.nano);
    case 'V': return time.zone.id;
    case 'z': return time.zone instanceof ZoneOffset ? time.zone.id : longName(call('format', 'z', time.line() * 1000, time.zone.id), width);
    case 'O': return 'GMT' + (time.offset === 0 ? '' : width === 4 ? offsetText(time.offset) : offsetText(time.offset).replace(/^([+-])0/, '$1').replace(/:00$/, ''));
    case 'Z': return width === 4 ? 'GMT' + (time.offset === 0 ? '' : offsetText(time.offset)) : offsetText(time.offset, width === 5 ? ':' : '', width === 5 ? 'Z' : '');
    case 'X': case 'x': {
      const own = offsetText(time.offset, width === 3 || width === 5 ? ':' : '', letter === 'X' ? 'Z' : '');
      return width === 1 ? own.replace(/^([+-]\d\d)00$/, '$1') : own;
    }
    default: return nothing('java.time.format.DateTimeFormatter, letter ' + letter);
  }
};
const FIELDS = { d: 'day', D: 'dayOfYear', H: 'hour', m: 'minute', s: 'second', n: 'nano' };
/** Reads parts; `false` where the text does not fit, and what was read so far stays. */
const read = (parts, state) => parts.every((part, index) => {
  const rest = state.text.slice(state.at);
  if (part.text !== undefined) {
    if (!rest.startsWith(part.text)) return false;
    state.at += part.text.length;
    return true;
  }
  if (part.optional !== undefined) {
    const [at, fields] = [state.at, { ...state.fields }];
    if (!read(part.optional, state)) {
      state.at = at;
      state.fields = { __proto__: null, ...fields };
    }
    return true;
  }
  const { letter, width, iso } = part;
  const { fields } = state;
  const take = size => { state.at += size; return true; };
  const name = (names, short, set) => {
    const found = names.findIndex(one => rest.startsWith(short ? one.slice(0, 3) : one));
    if (found < 0) return false;
    set(found);
    return take(short ? 3 : names[found].length);
  };
  if ((letter === 'M' || letter === 'L') && width > 2) return name(MONTHS, width === 3, at => { fields.month = at + 1; });
  if (letter === 'E') return name(WEEKDAYS, width < 4, () => {});
  if (letter === 'a') return name(['AM', 'PM'], false, at => { fields.half = at; });
  if (letter === 'G') return name(['AD', 'BC'], false, () => {});
  if ('XxZO'.includes(letter)) {
    const found = /^(?:Z|(?:GMT)?[+-]\d{1,2}(?::?\d\d(?::?\d\d)?)?|GMT|UTC)/.exec(rest);
    if (found === null) return false;
    fields.offset = ZoneOffset.of(found[0].replace(/^(GMT|UTC)/, '') || 'Z').seconds;
    return take(found[0].length);
  }
  if (letter === 'V' || letter === 'z') {
    const found = /^(?:[+-]\d\d(?::?\d\d)?|[A-Za-z][\w/+-]*)/.exec(rest);
    if (found === null) return false;
    fields.zone = ZoneId.of(found[0]);
    return take(found[0].length);
  }
  if (letter === 'S') {
    const found = (iso ? /^\.\d{1,9}/ : new RegExp('^\\d{' + width + '}')).exec(rest);
    if (found === null) return Boolean(iso);
    fields.nano = Number(found[0].replace('.', '').padEnd(9, '0').slice(0, 9));
    return take(found[0].length);
  }
  const next = parts[index + 1];
  const fixed = width > 1 || (next !== undefined && next.letter !== undefined && !'EaGVzXxZOS'.includes(next.letter));
  const size = fixed ? ('uy'.includes(letter) && width >= 4 && !(next !== undefined && next.letter !== undefined) ? width + ',10' : String(width)) : '1,10';
  const found = new RegExp('^' + ('uy'.includes(letter) && width !== 2 ? '[+-]?' : '') + '\\d{' + size + '}').exec(rest);
  if (found === null) return false;
  const value = Number(found[0]);
  switch (letter) {
    case 'u': case 'y': fields.year = width === 2 ? 2000 + value : value; break;
    case 'M': case 'L': fields.month = value; break;
    case 'h': case 'K': fields.day12 = value; break;
    case 'k': fields.hour = value % 24; break;
    default:
      if (FIELDS[letter] === undefined) nothing('java.time.format.DateTimeFormatter.parse, letter ' + letter);
      fields[FIELDS[letter]] = value;
  }
  return take(found[0].length);
});
const isoParts = (pattern, ...more) => [...DateTimeFormatter.ofPattern(pattern).parts, ...more];
const isoTime = isoParts('HH:mm', { optional: isoParts(':ss', { letter: 'S', width: 9, iso: true }) });
const isoLocal = [...isoParts('uuuu-MM-dd'), { text: 'T' }, ...isoTime];
const isoOffset = [...isoLocal, { letter: 'X', width: 5 }];
// The zone of a time that has an offset only is not written.
const isoZoned = [...isoOffset, { optional: [{ text: '[' }, { letter: 'V', width: 2, region: true }, { text: ']' }] }];
const formatter = parts => new DateTimeFormatter(parts);
class IsoZoned extends DateTimeFormatter {
  format(time) { return time.zone instanceof ZoneOffset ? formatter(isoOffset).format(time) : formatter(isoZoned).format(time); }
}
class IsoInstant extends DateTimeFormatter {
  format(time) { return (time instanceof Instant ? time : time.toInstant()).toString(); }
}
// What has no zone is written as it is.
class IsoAny extends DateTimeFormatter {
  format(time) { return time.zone === undefined ? formatter(isoLocal).format(time) : DateTimeFormatter.ISO_ZONED_DATE_TIME.format(time); }
}
Object.assign(DateTimeFormatter, {
  ISO_LOCAL_DATE: formatter(isoParts('uuuu-MM-dd')), ISO_DATE: formatter(isoParts('uuuu-MM-dd', { optional: [{ letter: 'X', width: 5 }] })),
  ISO_LOCAL_TIME: formatter(isoTime), ISO_TIME: formatter([...isoTime, { optional: [{ letter: 'X', width: 5 }] }]),
  ISO_LOCAL_DATE_TIME: formatter(isoLocal), ISO_OFFSET_DATE_TIME: formatter(isoOffset), ISO_ZONED_DATE_TIME: new IsoZoned(isoZoned),
  ISO_DATE_TIME: new IsoAny([...isoLocal, { optional: [{ letter: 'X', width: 5 }, { optional: [{ text: '[' }, { letter: 'V', width: 2 }, { text: ']' }] }] }]),
  ISO_INSTANT: new IsoInstant(isoOffset), BASIC_ISO_DATE: formatter(isoParts('uuuuMMdd')),
  RFC_1123_DATE_TIME: formatter(DateTimeFormatter.ofPattern("EEE, d MMM uuuu HH:mm:ss 'GMT'").parts),
});
const dayIn = own => (own.dayOfYear !== undefined ? gregorianDay(need(own, 'year').year, 0) + own.dayOfYear - 1 : (need(own, 'year', 'month', 'day'), checkedDay(own.year, own.month, own.day)));
const secondIn = own => (need(own, 'hour'), checkedTime(own.hour, own.minute || 0, own.second || 0));
const zonedIn = own => {
  const local = new LocalDateTime(dayIn(own), secondIn(own), own.nano || 0);
  if (own.offset === undefined) return local.atZone(need(own, 'zone').zone);
  const offset = new ZoneOffset(own.offset);
  return own.zone === undefined ? local.atZone(offset) : local.toInstant(offset).atZone(own.zone);
};
LocalDate.parse = parsedTo(own => new LocalDate(dayIn(own), 0, 0), DateTimeFormatter.ISO_LOCAL_DATE);
LocalTime.parse = parsedTo(own => new LocalTime(0, secondIn(own), own.nano || 0), DateTimeFormatter.ISO_LOCAL_TIME);
LocalDateTime.parse = parsedTo(own => new LocalDateTime(dayIn(own), secondIn(own), own.nano || 0), DateTimeFormatter.ISO_LOCAL_DATE_TIME);
ZonedDateTime.parse = parsedTo(zonedIn, DateTimeFormatter.ISO_ZONED_DATE_TIME);
OffsetDateTime.parse = parsedTo(own => zonedIn(own).toOffsetDateTime(), DateTimeFormatter.ISO_OFFSET_DATE_TIME);
Instant.parse = text => parsedTo(own => zonedIn(own).toInstant(), DateTimeFormatter.ISO_INSTANT)(text);
const clock = {
  'java.time.Instant': Instant, 'java.time.LocalDate': LocalDate, 'java.time.LocalTime': LocalTime, 'java.time.LocalDateTime': LocalDateTime,
  'java.time.ZonedDateTime': ZonedDateTime, 'java.time.OffsetDateTime': OffsetDateTime, 'java.time.Duration': Duration, 'java.time.Period': Period,
  'java.time.ZoneId': ZoneId, 'java.time.ZoneOffset': ZoneOffset, 'java.time.Month': Month, 'java.time.DayOfWeek': DayOfWeek,
  'java.time.format.DateTimeFormatter': DateTimeFormatter, 'java.time.format.TextStyle': TextStyle, 'java.time.temporal.ChronoUnit': ChronoUnit,
};
