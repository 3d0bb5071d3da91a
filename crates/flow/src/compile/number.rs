//! Numbers and booleans in parameters, and the nearest good value for one that is wrong.

/// The unit of a number, with its least and its greatest value.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    /// `whole seconds`.
    what: &'static str,
    least: u64,
    most: u64,
    /// What people write behind numbers, and how much of this unit that is.
    suffixes: &'static [(&'static str, f64)],
}

/// Ten years: a clock overflows with a time far beyond.
const LONGEST: u64 = 315_360_000;

/// Times in seconds.
pub(super) const SECONDS: Unit = Unit {
    what: "whole seconds",
    least: 0,
    most: LONGEST,
    suffixes: &[("ms", 0.001), ("s", 1.0), ("m", 60.0), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0)],
};

/// Times in milliseconds.
pub(super) const MILLISECONDS: Unit = Unit {
    what: "whole milliseconds",
    least: 0,
    most: LONGEST * 1000,
    suffixes: &[("ms", 1.0), ("s", 1e3), ("m", 6e4), ("min", 6e4), ("h", 3.6e6), ("d", 8.64e7)],
};

/// Sizes.
pub(super) const BYTES: Unit = Unit {
    what: "bytes",
    least: 0,
    most: i64::MAX as u64,
    suffixes: &[
        ("b", 1.0),
        ("k", 1024.0),
        ("kb", 1024.0),
        ("m", 1_048_576.0),
        ("mb", 1_048_576.0),
        ("g", 1_073_741_824.0),
        ("gb", 1_073_741_824.0),
    ],
};

/// How many, or how often.
pub(super) const COUNT: Unit =
    Unit { what: "a whole number", least: 0, most: u32::MAX as u64, suffixes: &[] };

/// Ports.
pub(super) const PORT: Unit = Unit { what: "a port", least: 1, most: 65_535, suffixes: &[] };

impl Unit {
    /// The same, beginning with one.
    pub(super) const fn at_least_one(self) -> Unit {
        Unit { least: 1, ..self }
    }

    /// `whole seconds, 0 to 315360000`.
    pub(super) fn expected(&self) -> String {
        format!("{}, {} to {}", self.what, self.least, self.most)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// It is not a number or out of range; with the nearest good number, if there is one.
    pub(super) fn parse(&self, text: &str) -> Result<u64, Option<u64>> {
        let text = text.trim();
        if let Ok(number) = text.parse::<u64>()
            && (self.least..=self.most).contains(&number)
        {
            return Ok(number);
        }
        let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+')).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let suffix = suffix.trim().to_ascii_lowercase();
        let factor = match suffix.as_str() {
            "" => Some(1.0),
            suffix => self.suffixes.iter().find(|(name, _)| *name == suffix).map(|(_, factor)| *factor),
        };
        let near = number.parse::<f64>().ok().zip(factor).map(|(number, factor)| (number * factor).round());
        // The cast saturates at the largest number.
        Err(near.map(|near| (near as u64).clamp(self.least, self.most)))
    }
}

/// Reads a boolean, in any case.
///
/// # Errors
/// It is not a boolean; with the one that was probably meant.
pub(super) fn truth(text: &str) -> Result<bool, Option<bool>> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        "yes" | "on" | "1" | "y" | "t" | "enable" | "enabled" => Err(Some(true)),
        "no" | "off" | "0" | "n" | "f" | "disable" | "disabled" => Err(Some(false)),
        other => Err(diagnostics::nearest(other, ["true", "false"]).map(|nearest| nearest == "true")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant() {
        for (unit, text, wanted) in [
            (SECONDS, " 5 ", Ok(5)),
            (SECONDS, "0", Ok(0)),
            (SECONDS, "315360000", Ok(315_360_000)),
            (SECONDS, "315360001", Err(Some(315_360_000))),
            (SECONDS, "-1", Err(Some(0))),
            (SECONDS, "1.6", Err(Some(2))),
            (SECONDS, "5s", Err(Some(5))),
            (SECONDS, "2 min", Err(Some(120))),
            (SECONDS, "1500ms", Err(Some(2))),
            (SECONDS, "18446744073709551616", Err(Some(315_360_000))),
            (SECONDS, "often", Err(None)),
            (SECONDS, "1e3", Err(None)),
            (SECONDS, "5 apples", Err(None)),
            (SECONDS, "", Err(None)),
            (SECONDS, "--", Err(None)),
            (MILLISECONDS, "5s", Err(Some(5000))),
            (BYTES, "1MB", Err(Some(1 << 20))),
            (BYTES, "-2", Err(Some(0))),
            (COUNT, "5000000000", Err(Some(4_294_967_295))),
            (COUNT.at_least_one(), "0", Err(Some(1))),
        ] {
            assert_eq!(unit.parse(text), wanted, "{text}");
        }
        assert_eq!(COUNT.at_least_one().expected(), "a whole number, 1 to 4294967295");
        for (text, wanted) in [
            (" TRUE ", Ok(true)),
            ("false", Ok(false)),
            ("yes", Err(Some(true))),
            ("flase", Err(Some(false))),
            ("0", Err(Some(false))),
            ("maybe", Err(None)),
        ] {
            assert_eq!(truth(text), wanted, "{text}");
        }
    }
}
