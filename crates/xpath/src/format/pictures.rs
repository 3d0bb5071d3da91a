//! `format-date()`, `format-time()`, `format-dateTime()` (XSLT 2.0 section 16.5), in English.

use super::integer::{digits_picture, zero_of};
use super::numbering::{self, NumberFormat};
use crate::atomic::calendar::{MONTHS, WEEKDAYS, days_in_month};
use crate::atomic::{Moment, MomentKind};

/// Longest width that a component is padded to.
const MAX_WIDTH: usize = 1000;

/// How a moment is shown: the arguments of the functions behind the picture. An empty language or place counts as absent.
#[derive(Debug, Default, Clone, Copy)]
pub struct Manner<'a> {
    /// The language, which is English; another one is replaced by it, and the text says so.
    pub language: Option<&'a str>,
    /// The calendar, which is the Gregorian one; another known one is replaced by it, and the text says so.
    pub calendar: Option<&'a str>,
    /// A name of the time zone database: the time is that of this place, if the value has a time zone. Others have no effect.
    pub place: Option<&'a str>,
}

/// The names of calendars (XPath and XQuery Functions and Operators 3.1, section 9.8.4.3).
const CALENDARS: [&str; 28] = [
    "AD", "AH", "AM", "AME", "AP", "AS", "BE", "CB", "CE", "CL", "CS", "EE", "FE", "ISO", "JE", "KE", "KY",
    "ME", "MS", "NS", "OS", "RS", "SE", "SH", "SS", "TE", "VE", "VS",
];

/// As [`format`], in a manner.
pub fn format_as(moment: &Moment, picture: &str, manner: &Manner<'_>) -> Result<String, String> {
    let is_gregorian = match manner.calendar.map(str::trim) {
        None => true,
        Some(name) => {
            let local = name.strip_prefix("Q{}").unwrap_or(name);
            if name.is_empty() || !local.contains([':', '}']) && !CALENDARS.contains(&local) {
                return Err(format!("XTDE1340: there is no calendar \"{name}\""));
            }
            matches!(local, "AD" | "CE" | "ISO")
        }
    };
    let is_english = match manner.language.map(str::trim).filter(|language| !language.is_empty()) {
        None => true,
        Some(language) => language.split('-').next().is_some_and(|main| main.eq_ignore_ascii_case("en")),
    };
    let there = manner.place.and_then(|place| at_place(moment, place.trim()));
    let text = format(there.as_ref().unwrap_or(moment), picture)?;
    if is_english && is_gregorian {
        return Ok(text);
    }
    let mut out = String::new();
    if !is_english && has_words(picture) {
        out.push_str("[Language: en]");
    }
    if !is_gregorian {
        out.push_str("[Calendar: AD]");
    }
    out.push_str(&text);
    Ok(out)
}

/// The moment by the time of a place.
fn at_place(moment: &Moment, place: &str) -> Option<Moment> {
    // (The database also knows the names of files and of fixed offsets.)
    if moment.zone.is_none() || place.is_empty() {
        return None;
    }
    let zone = jiff::tz::TimeZone::get(place).ok()?;
    let instant = match moment.kind {
        // Without a date: the present offset.
        MomentKind::Time => jiff::Timestamp::now(),
        _ => jiff::Timestamp::from_nanosecond(moment.utc_nanos(0)).ok()?,
    };
    moment.adjusted(Some((zone.to_offset(instant).seconds() / 60) as i16))
}

/// Whether a picture asks for words or names, which are of a language.
fn has_words(picture: &str) -> bool {
    let literal = picture.replace("[[", "");
    literal.split('[').skip(1).filter_map(|part| part.split(']').next()).any(|marker| {
        let marker: String = marker.chars().filter(|c| !c.is_whitespace()).collect();
        let mut rest = marker.chars();
        let specifier = rest.next().unwrap_or_default();
        let presentation = rest.as_str().split(',').next().unwrap_or_default();
        match presentation.chars().next() {
            None => "FPE".contains(specifier),
            Some('n' | 'N') => "MFPE".contains(specifier),
            Some('w' | 'W') => true,
            Some(_) => presentation.len() > 1 && presentation.ends_with('o'),
        }
    })
}

/// Formats a moment by a picture. Errors: code and message.
pub fn format(moment: &Moment, picture: &str) -> Result<String, String> {
    let mut out = String::with_capacity(picture.len());
    let mut chars = picture.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '[' if chars.peek().is_some_and(|(_, c)| *c == '[') => {
                chars.next();
                out.push('[');
            }
            '[' => {
                let rest = &picture[at + 1..];
                let Some(end) = rest.find(']') else {
                    return Err(format!("XTDE1340: the picture \"{picture}\" has a [ without ]"));
                };
                component(moment, &rest[..end], &mut out)?;
                while chars.peek().is_some_and(|(i, _)| *i <= at + 1 + end) {
                    chars.next();
                }
            }
            ']' => {
                if chars.peek().is_some_and(|(_, c)| *c == ']') {
                    chars.next();
                    out.push(']');
                } else {
                    return Err(format!("XTDE1340: the picture \"{picture}\" has a ] without ["));
                }
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

/// The least and greatest width of `,2-4`.
fn widths(text: &str) -> Option<(Option<usize>, Option<usize>)> {
    let width = |s: &str| -> Option<Option<usize>> {
        match s {
            "*" => Some(None),
            s => s.parse().ok().filter(|n| (1..=MAX_WIDTH).contains(n)).map(Some),
        }
    };
    let (least, most) = text.split_once('-').unwrap_or((text, "*"));
    let (least, most) = (width(least)?, width(most)?);
    (least.unwrap_or(0) <= most.unwrap_or(MAX_WIDTH)).then_some((least, most))
}

/// One component: the specifier, the presentation, the width.
fn component(moment: &Moment, marker: &str, out: &mut String) -> Result<(), String> {
    let marker: String = marker.chars().filter(|c| !c.is_whitespace()).collect();
    let wrong = || format!("XTDE1340: [{marker}] is not a component of a picture");
    let mut rest = marker.chars();
    let specifier = rest.next().ok_or_else(wrong)?;
    let rest = rest.as_str();
    let (presentation, width) = rest.rsplit_once(',').map_or((rest, None), |(p, w)| (p, Some(w)));
    let (least, most) = match width {
        Some(width) => widths(width).ok_or_else(wrong)?,
        None => (None, None),
    };
    let (has_date, has_time) = match moment.kind {
        MomentKind::Date => (true, false),
        MomentKind::Time => (false, true),
        _ => (true, true),
    };
    let missing =
        |component: &str| format!("XTDE1350: [{marker}] asks for a {component} that the value does not have");
    if "YMDdFWwECx".contains(specifier) && !has_date {
        return Err(missing("part of a date"));
    }
    if "HhPmsf".contains(specifier) && !has_time {
        return Err(missing("part of a time"));
    }
    let hour12 = || (i64::from(moment.hour) + 11) % 12 + 1;
    let (value, default) = match specifier {
        'Y' => (i64::from(moment.year.unsigned_abs()), "1"),
        'M' => (i64::from(moment.month), "1"),
        'D' => (i64::from(moment.day), "1"),
        'd' => (i64::from(moment.day_of_year()), "1"),
        'F' => (i64::from(moment.weekday()), "n"),
        'W' => (iso_week(moment), "1"),
        'w' => (week_of_month(moment), "1"),
        'H' => (i64::from(moment.hour), "1"),
        'h' => (hour12(), "1"),
        'P' => (i64::from(moment.hour >= 12), "n"),
        'm' => (i64::from(moment.minute), "01"),
        's' => (i64::from(moment.second), "01"),
        'f' => return fraction(moment, presentation, (least, most), out),
        'Z' | 'z' => {
            return zone(moment, specifier, presentation, (least, most), out);
        }
        'C' => {
            out.push_str(&named("ISO", presentation, "n", most));
            return Ok(());
        }
        'E' => {
            out.push_str(&named(if moment.year <= 0 { "BC" } else { "AD" }, presentation, "n", most));
            return Ok(());
        }
        _ => return Err(wrong()),
    };
    // The second modifier: ordinal, or traditional numbering.
    let ordinal = presentation.len() > 1 && presentation.ends_with('o');
    let first = presentation.strip_suffix(['o', 't', 'c']).filter(|p| !p.is_empty()).unwrap_or(presentation);
    let first = if first.is_empty() { default } else { first };
    if first.starts_with(['n', 'N']) {
        let name = match specifier {
            'M' => Some(MONTHS[(value as usize).clamp(1, 12) - 1]),
            'F' => Some(WEEKDAYS[(value as usize).clamp(1, 7) - 1]),
            // With dots, to reach the least width.
            'P' if least.is_some_and(|least| least > 2) && most.is_none_or(|most| most > 3) => {
                Some(if value == 1 { "p.m." } else { "a.m." })
            }
            'P' => Some(if value == 1 { "pm" } else { "am" }),
            _ => None,
        };
        if let Some(name) = name {
            // Too long: three-letter abbreviations.
            let short = most.filter(|most| *most >= 3 && name.chars().count() > *most && specifier != 'P');
            let text = named(name, first, "n", if short.is_some() { Some(3) } else { most });
            out.push_str(&text);
            // (`am` and `pm` are not padded.)
            let least = least.filter(|_| specifier != 'P').unwrap_or(0);
            out.extend(std::iter::repeat_n(' ', least.saturating_sub(text.chars().count())));
            return Ok(());
        }
    }
    let mut value = value;
    let picture = digits_picture(first).map_err(|e| format!("XTDE1340: [{marker}]: {e}"))?;
    if let Some(mut digits) = picture {
        // A year is cut: to the greatest width, or to the digits of the picture if there are several.
        let most = match width {
            Some(_) => most,
            None => (digits.total > 1).then_some(digits.total),
        };
        if let (true, Some(power)) = (specifier == 'Y', most.and_then(|most| 10i64.checked_pow(most as u32)))
        {
            value %= power;
        }
        digits.least = digits.least.max(least.unwrap_or(0));
        out.push_str(&digits.write(&value.unsigned_abs().to_string()));
        if ordinal {
            out.push_str(suffix(value));
        }
        return Ok(());
    }
    let begin = out.len();
    match first {
        "w" | "W" | "Ww" => numbering::words(value.unsigned_abs(), first, ordinal, out),
        format => {
            let how = NumberFormat { format, ..NumberFormat::default() };
            out.push_str(&numbering::format_list(&[(value as f64).into()], &how));
        }
    }
    let missing = least.unwrap_or(0).saturating_sub(out[begin..].chars().count());
    out.extend(std::iter::repeat_n(' ', missing));
    Ok(())
}

/// A name by `n`, `N` or `Nn`, not longer than `most`.
fn named(name: &str, presentation: &str, default: &str, most: Option<usize>) -> String {
    let presentation = if presentation.is_empty() { default } else { presentation };
    let short: String = match most {
        Some(most) if name.chars().count() > most => name.chars().take(most.max(1)).collect(),
        _ => name.to_owned(),
    };
    if presentation.starts_with("Nn") {
        title(&short.to_lowercase())
    } else if presentation.starts_with('N') {
        short.to_uppercase()
    } else {
        short.to_lowercase()
    }
}

fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut start = true;
    for c in text.chars() {
        if start {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
        start = c == ' ';
    }
    out
}

fn suffix(n: i64) -> &'static str {
    match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

/// Fractional seconds: as many digits as demanded.
fn fraction(
    moment: &Moment,
    presentation: &str,
    (least, most): (Option<usize>, Option<usize>),
    out: &mut String,
) -> Result<(), String> {
    let digits = format!("{:09}", moment.nanos);
    // As with whole numbers, but from the left.
    let reversed: String = presentation.chars().rev().collect();
    let picture = digits_picture(&reversed).map_err(|e| format!("XTDE1340: [f{presentation}]: {e}"))?;
    let (least, most) = match (&picture, least, most) {
        (Some(picture), ..) if picture.total > 1 => (picture.least.max(least.unwrap_or(0)), picture.total),
        (_, None, None) => (1, 9),
        (_, least, most) => (least.unwrap_or(1), most.unwrap_or(9)),
    };
    let mut text: String = digits.chars().take(most.min(9)).collect();
    while text.len() > least && text.ends_with('0') {
        text.pop();
    }
    while text.len() < least {
        text.push('0');
    }
    let Some(picture) = picture else {
        out.push_str(&text);
        return Ok(());
    };
    for (at, digit) in text.bytes().enumerate() {
        let sign = picture.separators.iter().find(|(place, _)| at > 0 && *place == at);
        out.extend(sign.map(|(_, sign)| *sign));
        out.push(picture.digit(digit));
    }
    Ok(())
}

/// `[Z]` (`-05:00`) and `[z]` (`GMT-05:00`).
fn zone(
    moment: &Moment,
    specifier: char,
    presentation: &str,
    (least, most): (Option<usize>, Option<usize>),
    out: &mut String,
) -> Result<(), String> {
    let (first, traditional) = match presentation.strip_suffix('t') {
        Some(first) => (first, true),
        None => (presentation, false),
    };
    let military = specifier == 'Z' && first == "Z";
    let Some(zone) = moment.zone else {
        if military {
            out.push('J');
        }
        return Ok(());
    };
    let (sign, hours, minutes) =
        (if zone < 0 { '-' } else { '+' }, zone.unsigned_abs() / 60, zone.unsigned_abs() % 60);
    if military && minutes == 0 && hours <= 12 {
        // Without J: A to M eastwards, N to Y westwards.
        let letters = if zone >= 0 { "ZABCDEFGHIKLM" } else { "ZNOPQRSTUVWXY" };
        out.extend(letters.chars().nth(usize::from(hours)));
        return Ok(());
    }
    if zone == 0 && traditional {
        out.push('Z');
        return Ok(());
    }
    if specifier == 'z' {
        out.push_str("GMT");
    }
    out.push(sign);
    let zero = first.chars().find_map(zero_of).unwrap_or('0');
    let before: Vec<char> = first.chars().take_while(|c| zero_of(*c).is_some()).collect();
    let separator = first.chars().nth(before.len());
    match (before.len(), separator) {
        // The hours; minutes only where there are some.
        (width @ (1 | 2), None) => {
            number_to(out, hours, width, zero);
            if minutes != 0 {
                out.push(':');
                number_to(out, minutes, 2, zero);
            }
        }
        (width @ (3 | 4), None) => {
            number_to(out, hours, width - 2, zero);
            number_to(out, minutes, 2, zero);
        }
        (width, Some(separator)) if width > 0 => {
            number_to(out, hours, width, zero);
            out.push(separator);
            number_to(out, minutes, 2, zero);
        }
        _ if most.is_some_and(|most| most <= 3) => {
            number_to(out, hours, least.unwrap_or(1).clamp(1, 2), zero);
            if minutes != 0 {
                out.push(':');
                number_to(out, minutes, 2, zero);
            }
        }
        _ => {
            number_to(out, hours, 2, zero);
            out.push(':');
            number_to(out, minutes, 2, zero);
        }
    }
    Ok(())
}

fn number_to(out: &mut String, value: u16, width: usize, zero: char) {
    for c in super::padded(u64::from(value), width).chars() {
        out.push(char::from_u32(u32::from(zero) + u32::from(c) - 48).unwrap_or('?'));
    }
}

/// The week of the year: the first has the first Thursday.
fn iso_week(moment: &Moment) -> i64 {
    let (day, weekday) = (i64::from(moment.day_of_year()), i64::from(moment.weekday()));
    let week = (day - weekday + 10) / 7;
    let year_days = |m: &Moment| i64::from(Moment { month: 12, day: 31, ..*m }.day_of_year());
    if week < 1 {
        let before = Moment { year: moment.year - 1, month: 12, day: 31, ..*moment };
        return iso_week(&before);
    }
    if week == 53 {
        // It belongs to the next year if its Thursday does.
        let thursday = day - weekday + 4;
        if thursday > year_days(moment) {
            return 1;
        }
    }
    week
}

/// The week of the month. Weeks begin on Mondays, and the first one has the first Thursday; days before it are in the last week of
/// the month before (XPath and XQuery Functions and Operators 3.1, section 9.8.4.4).
fn week_of_month(moment: &Moment) -> i64 {
    let first = i64::from(Moment { day: 1, ..*moment }.weekday());
    let shift = if first <= 4 { first - 1 } else { first - 8 };
    let week = (i64::from(moment.day) - 1 + shift).div_euclid(7) + 1;
    if week > 0 {
        return week;
    }
    let (month, year) = match (moment.month, moment.year) {
        (1, year) => (12, year - 1),
        (month, year) => (month - 1, year),
    };
    week_of_month(&Moment { year, month, day: days_in_month(i64::from(year), month), ..*moment })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of section 16.5.4 in English.
    #[test]
    fn formats() {
        let date = Moment::parse(MomentKind::Date, "2002-12-31").unwrap();
        let at = Moment::parse(MomentKind::DateTime, "2002-12-31T15:58:05.25-05:00").unwrap();
        let time = Moment::parse(MomentKind::Time, "15:58:45.762+02:00").unwrap();
        for (moment, picture, expected) in [
            (&date, "[Y0001]-[M01]-[D01]", "2002-12-31"),
            (&date, "[M]-[D]-[Y]", "12-31-2002"),
            (&date, "[D]-[M]-[Y]", "31-12-2002"),
            (&date, "[D1] [MI] [Y]", "31 XII 2002"),
            (&date, "[D1o] [MNn], [Y]", "31st December, 2002"),
            (&date, "[D01] [MN,*-3] [Y0001]", "31 DEC 2002"),
            (&date, "[MNn] [D], [Y]", "December 31, 2002"),
            (&date, "[[[Y0001]-[M01]-[D01]]]", "[2002-12-31]"),
            (&date, "[YWw]", "Two Thousand and Two"),
            (&date, "[Dwo] [MNn]", "thirty-first December"),
            (&date, "[FNn], [D] [MNn,*-3] [Y,2-2]", "Tuesday, 31 Dec 02"),
            (&date, "[Y01][M01]", "0212"),
            (&date, "[F] [d] [W] [E]", "tuesday 365 1 ad"),
            (&at, "[H01]:[m01]:[s01]", "15:58:05"),
            (&at, "[h]:[m01] [PN]", "3:58 PM"),
            (&at, "[h].[m01][Pn] on [FNn]", "3.58pm on Tuesday"),
            (&at, "[H01]:[m01]:[s01].[f001]", "15:58:05.250"),
            (&at, "[f]", "25"),
            (&at, "[f,1-1]", "2"),
            (&at, "[Z] [z]", "-05:00 GMT-05:00"),
            (&time, "[H01]:[m01] [Z]", "15:58 +02:00"),
            (&time, "[s].[f01]", "45.76"),
        ] {
            assert_eq!(format(moment, picture).as_deref(), Ok(expected), "{picture}");
        }
        for (moment, picture, code) in [
            (&date, "[H]", "XTDE1350"),
            (&time, "[Y]", "XTDE1350"),
            (&date, "[Q]", "XTDE1340"),
            (&date, "[Y", "XTDE1340"),
            (&date, "Y]", "XTDE1340"),
            (&date, "[Y,4-2]", "XTDE1340"),
            (&date, "[]", "XTDE1340"),
        ] {
            assert!(format(moment, picture).is_err_and(|e| e.starts_with(code)), "{picture}");
        }
    }

    #[test]
    fn languages_calendars_places() {
        let at = Moment::parse(MomentKind::DateTime, "2025-07-01T22:30:00Z").unwrap();
        let winter = Moment::parse(MomentKind::DateTime, "2025-01-01T10:00:00Z").unwrap();
        let local = Moment::parse(MomentKind::DateTime, "2025-07-01T10:00:00").unwrap();
        for (moment, picture, language, calendar, place, expected) in [
            (&at, "[D] [MNn]", "de", "", "", Ok("[Language: en]1 July")),
            (&at, "[D] [MNn]", "en-GB", "", "", Ok("1 July")),
            (&at, "[F]", "fr", "", "", Ok("[Language: en]tuesday")),
            (&at, "[D1o]", "fr", "", "", Ok("[Language: en]1st")),
            // Numbers are of no language.
            (&at, "[D01].[M01].[Y] [[x]]", "de", "", "", Ok("01.07.2025 [x]")),
            (&at, "[Y]", "", "AD", "", Ok("2025")),
            (&at, "[Y]", "", "ISO", "", Ok("2025")),
            (&at, "[Y]", "", "AH", "", Ok("[Calendar: AD]2025")),
            (&at, "[Y]", "", "p:own", "", Ok("[Calendar: AD]2025")),
            (&at, "[Y]", "", "XX", "", Err("XTDE1340")),
            (&at, "[D] [H01]:[m] [Z]", "", "", "Europe/Berlin", Ok("2 00:30 +02:00")),
            (&winter, "[H01]:[m] [Z]", "", "", "Europe/Berlin", Ok("11:00 +01:00")),
            (&winter, "[H01]:[m] [Z]", "", "", "America/New_York", Ok("05:00 -05:00")),
            (&winter, "[H01]:[m] [Z]", "", "", "nowhere", Ok("10:00 +00:00")),
            (&local, "[H01]:[m]", "", "", "Europe/Berlin", Ok("10:00")),
        ] {
            let calendar = Some(calendar).filter(|calendar| !calendar.is_empty());
            let (language, place) = (Some(language), Some(place));
            let found = format_as(moment, picture, &Manner { language, calendar, place });
            let found = found.as_deref().map_err(|e| &e[..8]);
            assert_eq!(found, expected, "{picture} {language:?} {calendar:?} {place:?}");
        }
        let empty = Manner { language: None, calendar: Some(""), place: None };
        assert!(format_as(&at, "[Y]", &empty).is_err_and(|e| e.starts_with("XTDE1340")));
    }

    #[test]
    fn weeks() {
        for (date, week) in
            [("2005-01-01", 53), ("2005-01-03", 1), ("2007-12-31", 1), ("2008-12-28", 52), ("2009-12-31", 53)]
        {
            assert_eq!(iso_week(&Moment::parse(MomentKind::Date, date).unwrap()), week, "{date}");
        }
        for (date, week) in [
            ("2013-01-29", 5),
            ("2013-02-01", 5),
            ("2021-01-03", 5),
            ("2021-01-04", 1),
            ("2024-02-29", 5),
            ("2006-01-30", 5),
            ("2006-02-02", 1),
            ("0001-01-01", 1),
            ("2023-01-01", 5),
        ] {
            assert_eq!(week_of_month(&Moment::parse(MomentKind::Date, date).unwrap()), week, "{date}");
        }
    }
}
