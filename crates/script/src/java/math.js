// java.math: whole numbers of any size, and decimals as one of these and a scale, as in Java.

const { call, bytesOf, textOf, hash, nothing, fail, typeName, javaText, KEY, JavaDate, StringBuilder, Locale, TimeZone, Double, ArrayList } = shared;

const integerOf = value => (value instanceof BigInteger ? value.value : value instanceof Number || typeof value === 'number' ? BigInt(Math.trunc(Number(value))) : fail('IllegalArgumentException', 'no BigInteger: ' + typeName(value)));
/** How many bits it has, a few more at most. */
const bitLengthOf = value => value.toString(16).length * 4;
const MOST_BITS = 2 ** 20;
const raised = (value, power) => {
  if ((value > 1n || value < -1n) && bitLengthOf(value) * Number(power) > MOST_BITS) fail('ArithmeticException', 'more than ' + MOST_BITS + ' bits are not available here');
  return value ** BigInt(power);
};
const isBytes = value => value instanceof Int8Array || Array.isArray(value);
// Of bytes, the first one the most significant.
const magnitudeOf = bytes => BigInt('0x0' + Array.from(bytesOf(bytes), byte => (byte & 255).toString(16).padStart(2, '0')).join(''));
const partOf = (bytes, from = 0, count = bytes.length - from) =>
  from >= 0 && count >= 0 && from + count <= bytes.length ? bytes.slice(from, from + count) : fail('IndexOutOfBoundsException', 'Range [' + from + ', ' + from + ' + ' + count + ') out of bounds for length ' + bytes.length);
const signedMagnitude = (signum, bytes) => {
  if (![-1, 0, 1].includes(signum)) fail('NumberFormatException', 'Invalid signum value');
  const size = magnitudeOf(bytes);
  if (signum === 0 && size !== 0n) fail('NumberFormatException', 'signum-magnitude mismatch');
  return signum < 0 ? -size : size;
};
const twosComplement = bytes => (bytes.length === 0 ? fail('NumberFormatException', 'Zero length BigInteger') : BigInt.asIntN(8 * bytes.length, magnitudeOf(bytes)));
class BigInteger {
  constructor(text, radix = 10, ...more) {
    if (typeof text === 'bigint') {
      this.value = text;
      return;
    }
    if (isBytes(text)) {
      this.value = twosComplement(arguments.length > 1 ? partOf(text, radix, ...more) : text);
      return;
    }
    if (isBytes(radix)) {
      this.value = signedMagnitude(Number(text), partOf(radix, ...more));
      return;
    }
    if (typeof radix !== 'number' && !(radix instanceof Number)) nothing('java.math.BigInteger of a ' + typeName(radix));
    const wanted = String(text);
    const [, sign, digits] = /^([-+]?)([0-9a-z]+)$/i.exec(wanted) || [];
    const values = digits === undefined ? [NaN] : Array.from(digits, digit => parseInt(digit, radix));
    if (values.some(Number.isNaN)) fail('NumberFormatException', 'For input string: "' + wanted + '"');
    const size = radix === 10 ? BigInt(digits) : values.reduce((all, digit) => all * BigInt(radix) + BigInt(digit), 0n);
    this.value = sign === '-' ? -size : size;
  }
  static valueOf(value) { return new BigInteger(integerOf(value)); }
  add(other) { return new BigInteger(this.value + integerOf(other)); }
  subtract(other) { return new BigInteger(this.value - integerOf(other)); }
  multiply(other) { return new BigInteger(this.value * integerOf(other)); }
  divide(other) { return new BigInteger(this.value / this.divisor(other)); }
  remainder(other) { return new BigInteger(this.value % this.divisor(other)); }
  divisor(other) { return integerOf(other) === 0n ? fail('ArithmeticException', 'BigInteger divide by zero') : integerOf(other); }
  mod(other) {
    const size = integerOf(other);
    if (size <= 0n) fail('ArithmeticException', 'BigInteger: modulus not positive');
    return new BigInteger(((this.value % size) + size) % size);
  }
  modPow(power, other) {
    const size = integerOf(other);
    if (size <= 0n) fail('ArithmeticException', 'BigInteger: modulus not positive');
    if (integerOf(power) < 0n) nothing('java.math.BigInteger.modPow of a negative power');
    let [base, result] = [((this.value % size) + size) % size, 1n % size];
    const units = (bitLengthOf(size) / 64) ** 2 / 8;
    for (let left = integerOf(power); left > 0n; left >>= 1n) {
      native.work(units);
      if (left & 1n) result = (result * base) % size;
      base = (base * base) % size;
    }
    return new BigInteger(result);
  }
  pow(power) { return power < 0 ? fail('ArithmeticException', 'Negative exponent') : new BigInteger(raised(this.value, power)); }
  gcd(other) {
    let [a, b] = [this.abs().value, integerOf(other)];
    while (b !== 0n) [a, b] = [b, a % b];
    return new BigInteger(a < 0n ? -a : a);
  }
  and(other) { return new BigInteger(this.value & integerOf(other)); }
  or(other) { return new BigInteger(this.value | integerOf(other)); }
  xor(other) { return new BigInteger(this.value ^ integerOf(other)); }
  not() { return new BigInteger(~this.value); }
  shiftLeft(count) { return new BigInteger(this.value << BigInt(count)); }
  shiftRight(count) { return new BigInteger(this.value >> BigInt(count)); }
  negate() { return new BigInteger(-this.value); }
  abs() { return new BigInteger(this.value < 0n ? -this.value : this.value); }
  signum() { return this.value > 0n ? 1 : this.value < 0n ? -1 : 0; }
  max(other) { return this.compareTo(other) >= 0 ? this : other; }
  min(other) { return this.compareTo(other) <= 0 ? this : other; }
  bitLength() { return (this.value < 0n ? ~this.value : this.value).toString(2).replace(/^0$/, '').length; }
  toByteArray() {
    const size = Math.floor(this.bitLength() / 8) + 1;
    const hex = BigInt.asUintN(8 * size, this.value).toString(16).padStart(2 * size, '0');
    return Int8Array.from(hex.match(/../g), pair => parseInt(pair, 16));
  }
  testBit(at) { return ((this.value >> BigInt(at)) & 1n) === 1n; }
  intValue() { return Number(BigInt.asIntN(32, this.value)); }
  longValue() { return Number(BigInt.asIntN(64, this.value)); }
  doubleValue() { return Number(this.value); }
  compareTo(other) { return this.value < integerOf(other) ? -1 : this.value > integerOf(other) ? 1 : 0; }
  equals(other) { return other instanceof BigInteger && this.value === other.value; }
  [KEY]() { return 'integer ' + this.value; }
  [Symbol.toPrimitive](hint) { return hint === 'number' ? Number(this.value) : this.toString(); }
  toString(radix = 10) { return this.value.toString(radix); }
  toJSON() { return Number(this.value); }
}
Object.assign(BigInteger, { ZERO: new BigInteger(0n), ONE: new BigInteger(1n), TWO: new BigInteger(2n), TEN: new BigInteger(10n) });

const MODES = ['UP', 'DOWN', 'CEILING', 'FLOOR', 'HALF_UP', 'HALF_DOWN', 'HALF_EVEN', 'UNNECESSARY'];
const RoundingMode = { valueOf: name => (MODES.includes(String(name)) ? RoundingMode[name] : fail('IllegalArgumentException', 'No enum constant java.math.RoundingMode.' + name)) };
MODES.forEach((name, at) => { RoundingMode[name] = { name: () => name, ordinal: () => at, toString: () => name, toJSON: () => name }; });
const { HALF_UP, HALF_EVEN } = RoundingMode;
/** The mode that is meant: as itself, or as one of the numbers that Java had before. */
const modeOf = mode => (MODES.some(name => RoundingMode[name] === mode) ? mode : Number.isInteger(mode) && mode >= 0 && mode < 8 ? RoundingMode[MODES[mode]] : fail('IllegalArgumentException', 'Invalid rounding mode'));
/** Whether what is cut off makes the rest greater. `half`: how it compares with half of the last digit; `odd`: that digit. */
const roundsUp = (mode, half, odd, negative) => {
  switch (mode) {
    case RoundingMode.UP: return true;
    case RoundingMode.DOWN: return false;
    case RoundingMode.CEILING: return !negative;
    case RoundingMode.FLOOR: return negative;
    case RoundingMode.HALF_DOWN: return half > 0;
    case RoundingMode.HALF_EVEN: return half > 0 || (half === 0 && odd);
    case RoundingMode.UNNECESSARY: return fail('ArithmeticException', 'Rounding necessary');
    default: return half >= 0;
  }
};
/** A quotient as a whole number. */
const quotient = (a, b, mode) => {
  if (b === 0n) fail('ArithmeticException', '/ by zero');
  const [whole, rest] = [a / b, a % b];
  if (rest === 0n) return whole;
  const negative = a < 0n !== b < 0n;
  const size = value => (value < 0n ? -value : value);
  const twice = size(rest) * 2n;
  const half = twice < size(b) ? -1 : twice > size(b) ? 1 : 0;
  if (!roundsUp(mode, half, whole % 2n !== 0n, negative)) return whole;
  return whole + (negative ? -1n : 1n);
};
const ten = count => 10n ** BigInt(count);

const decimalOf = value => (value instanceof BigDecimal ? value : fail('IllegalArgumentException', 'no BigDecimal: ' + typeName(value)));
/** A number and its scale: the number × 10^-scale is the value. */
const scaled = (unscaled, scale) => {
  const made = Object.create(BigDecimal.prototype);
  return Object.assign(made, { unscaled, places: scale });
};
class BigDecimal {
  constructor(value, ...more) {
    if (more.length > 0 && typeof more[0] !== 'number') nothing('java.math.MathContext');
    if (value instanceof BigInteger) return scaled(value.value, more.length > 0 ? more[0] : 0);
    if (more.length > 0) nothing('java.math.BigDecimal of two numbers');
    if (typeof value === 'number' || value instanceof Number) return BigDecimal.exactly(Number(value));
    const text = String(value);
    const found = /^([-+]?)(?:(\d+)\.?(\d*)|\.(\d+))(?:e([-+]?\d{1,9}))?$/i.exec(text);
    if (found === null) fail('NumberFormatException', "Character array is missing \"exponent\" mark 'e' or 'E', or is no number: " + text);
    const [, sign, whole = '', behind = '', only = '', exponent = '0'] = found;
    const unscaled = BigInt(whole + behind + only);
    return scaled(sign === '-' ? -unscaled : unscaled, (behind + only).length - Number(exponent));
  }
  static exactly(value) {
    if (!Number.isFinite(value)) fail('NumberFormatException', 'Infinite or NaN');
    let [left, halves] = [value, 0];
    while (!Number.isInteger(left)) {
      left *= 2;
      halves++;
    }
    return scaled(BigInt(left) * 5n ** BigInt(halves), halves);
  }
  static valueOf(value, scale) {
    if (scale !== undefined) return scaled(BigInt(Math.trunc(Number(value))), scale);
    const number = Number(value);
    // A whole number is one of Java's long, a box of a double is none.
    return Number.isInteger(number) && !(value instanceof Number && /(Double|Float)$/.test(typeName(value))) ? scaled(BigInt(number), 0) : new BigDecimal(javaText(new Double(number)));
  }
  aligned(other, act) {
    const scale = Math.max(this.places, decimalOf(other).places);
    return act(this.unscaled * ten(scale - this.places), other.unscaled * ten(scale - other.places), scale);
  }
  add(other) { return this.aligned(other, (a, b, scale) => scaled(a + b, scale)); }
  subtract(other) { return this.aligned(other, (a, b, scale) => scaled(a - b, scale)); }
  multiply(other) { return scaled(this.unscaled * decimalOf(other).unscaled, this.places + other.places); }
  divide(other, scale, mode) {
    if (arguments.length === 1) return this.divided(decimalOf(other));
    if (arguments.length === 2) [scale, mode] = [this.places, scale];
    const shift = scale - this.places + decimalOf(other).places;
    const [a, b] = shift >= 0 ? [this.unscaled * ten(shift), other.unscaled] : [this.unscaled, other.unscaled * ten(-shift)];
    return scaled(quotient(a, b, modeOf(mode)), scale);
  }
  /** The exact quotient, if it has an end. */
  divided(other) {
    if (other.unscaled === 0n) fail('ArithmeticException', this.unscaled === 0n ? 'Division undefined' : 'Division by zero');
    const wanted = this.places - other.places;
    if (this.unscaled === 0n) return scaled(0n, wanted);
    const shared = new BigInteger(this.unscaled).gcd(new BigInteger(other.unscaled)).value;
    let [a, b, more] = [this.unscaled / shared, other.unscaled / shared, 0];
    if (b < 0n) [a, b] = [-a, -b];
    // Each digit more takes a two and a five out of what divides.
    for (; b !== 1n; more++) {
      const [by, times] = b % 10n === 0n ? [10n, 1n] : b % 5n === 0n ? [5n, 2n] : b % 2n === 0n ? [2n, 5n] : [0n, 0n];
      if (by === 0n) fail('ArithmeticException', 'Non-terminating decimal expansion; no exact representable decimal result.');
      [a, b] = [a * times, b / by];
    }
    return scaled(a, wanted + more).shortened(wanted);
  }
  /** Without zeros at the end, as far as the scale allows. */
  shortened(least) {
    let { unscaled, places } = this;
    while (places > least && unscaled % 10n === 0n) [unscaled, places] = [unscaled / 10n, places - 1];
    return scaled(unscaled, places);
  }
  divideToIntegralValue(other) {
    const whole = this.divide(other, 0, RoundingMode.DOWN);
    return whole.setScale(Math.max(this.places - other.places, 0));
  }
  remainder(other) { return this.subtract(this.divide(other, 0, RoundingMode.DOWN).multiply(other)); }
  pow(power) { return power >= 0 ? scaled(raised(this.unscaled, power), this.places * power) : fail('ArithmeticException', 'Invalid operation'); }
  setScale(scale, mode = RoundingMode.UNNECESSARY) {
    if (scale >= this.places) return scaled(this.unscaled * ten(scale - this.places), scale);
    return scaled(quotient(this.unscaled, ten(this.places - scale), modeOf(mode)), scale);
  }
  stripTrailingZeros() { return this.unscaled === 0n ? scaled(0n, 0) : this.shortened(-Infinity); }
  movePointLeft(count) { const moved = scaled(this.unscaled, this.places + count); return moved.places < 0 ? moved.setScale(0) : moved; }
  movePointRight(count) { return this.movePointLeft(-count); }
  scale() { return this.places; }
  precision() { return this.decimal().digits.length; }
  unscaledValue() { return new BigInteger(this.unscaled); }
  negate() { return scaled(-this.unscaled, this.places); }
  abs() { return scaled(this.unscaled < 0n ? -this.unscaled : this.unscaled, this.places); }
  signum() { return this.unscaled > 0n ? 1 : this.unscaled < 0n ? -1 : 0; }
  max(other) { return this.compareTo(other) >= 0 ? this : other; }
  min(other) { return this.compareTo(other) <= 0 ? this : other; }
  compareTo(other) { return this.aligned(other, (a, b) => (a < b ? -1 : a > b ? 1 : 0)); }
  equals(other) { return other instanceof BigDecimal && this.unscaled === other.unscaled && this.places === other.places; }
  [KEY]() { return 'decimal ' + this.unscaled + ' ' + this.places; }
  toBigInteger() { return new BigInteger(this.setScale(0, RoundingMode.DOWN).unscaled); }
  intValue() { return this.toBigInteger().intValue(); }
  longValue() { return this.toBigInteger().longValue(); }
  doubleValue() { return Number(this.unscaled + 'e' + -this.places); }
  floatValue() { return Math.fround(this.doubleValue()); }
  [Symbol.toPrimitive](hint) { return hint === 'number' ? this.doubleValue() : this.toString(); }
  /** The digits, and how many of them stand before the point. */
  decimal() {
    const digits = String(this.unscaled).replace('-', '');
    return { digits, point: digits.length - this.places };
  }
  toPlainString() {
    const { digits } = this.decimal();
    const sign = this.unscaled < 0n ? '-' : '';
    if (this.places <= 0) return sign + digits + (this.unscaled === 0n ? '' : '0'.repeat(-this.places));
    const all = digits.padStart(this.places + 1, '0');
    return sign + all.slice(0, -this.places) + '.' + all.slice(-this.places);
  }
  toString() {
    const { digits, point } = this.decimal();
    const exponent = point - 1;
    if (this.places >= 0 && exponent >= -6) return this.toPlainString();
    const mantissa = digits[0] + (digits.length > 1 ? '.' + digits.slice(1) : '');
    return (this.unscaled < 0n ? '-' : '') + mantissa + (exponent === 0 ? '' : 'E' + (exponent < 0 ? '-' : '+') + Math.abs(exponent));
  }
  toJSON() { return this.doubleValue(); }
}
Object.assign(BigDecimal, { ZERO: scaled(0n, 0), ONE: scaled(1n, 0), TEN: scaled(10n, 0) });
MODES.forEach((name, at) => { BigDecimal['ROUND_' + name] = at; });
