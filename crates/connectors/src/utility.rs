//! The utility module: small operations on texts, times, numbers and signatures. The result goes into a property.

use crate::operation::operation;
use crate::parameter::{Form, Parameters};
use aws_lc_rs::{hmac, rand};
use config::Element;
use expression::{DatePattern, Moment};
use flow::{Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Need, Pattern};
use message::{Format, Value};
use std::fmt::Write;
use std::time::SystemTime;

/// The operations.
pub(crate) const OPERATIONS: &[&Definition] =
    &[&LENGTH, &LOWER_CASE, &UPPER_CASE, &REGEX, &UUID, &DATE, &RANDOM, &GENERATE, &VERIFY];

const LENGTH: Definition =
    operation("utility.string.Length", "The length of a text.", &["inputString", "target"], compile);
const LOWER_CASE: Definition =
    operation("utility.string.LowerCase", "A text in lower case.", &["inputString", "target"], compile);
const UPPER_CASE: Definition =
    operation("utility.string.UpperCase", "A text in upper case.", &["inputString", "target"], compile);
const REGEX: Definition = operation(
    "utility.string.RegexMatcher",
    "Whether a regular expression matches a text.",
    &["inputString", "regex", "target"],
    compile,
);
const UUID: Definition = operation("utility.string.UUID", "A random UUID.", &["target"], compile);
const DATE: Definition = operation("utility.date.GetDate", "The time.", &["format", "target"], compile);
const RANDOM: Definition = operation(
    "utility.math.GetRandomInt",
    "A random number.",
    &["lowerBound", "upperBound", "target"],
    compile,
);
const GENERATE: Definition = operation(
    "utility.signature.Generate",
    "Signs the body or a text.",
    &["payload", "customPayload", "secret", "algorithm", "target"],
    compile,
);
const VERIFY: Definition = operation(
    "utility.signature.Verify",
    "Checks a signature.",
    &["payload", "customPayload", "signature", "secret", "algorithm", "target"],
    compile,
);

const ALGORITHMS: [&str; 5] = ["HMACSHA1", "HMACSHA256", "HMACSHA384", "HMACSHA512", "HMACMD5"];
const PAYLOADS: [&str; 2] = ["Body", "Custom Payload"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum UtilityOperation {
    Length,
    LowerCase,
    UpperCase,
    Regex,
    Uuid,
    Date,
    Random,
    Generate,
    Verify,
}

impl UtilityOperation {
    /// The property of the result, where none is named.
    fn target(self) -> &'static str {
        match self {
            UtilityOperation::Length => "length",
            UtilityOperation::LowerCase => "lower",
            UtilityOperation::UpperCase => "upper",
            UtilityOperation::Regex => "match",
            UtilityOperation::Uuid => "uuid",
            UtilityOperation::Date => "date",
            UtilityOperation::Random => "random",
            UtilityOperation::Generate => "sign",
            UtilityOperation::Verify => "verify",
        }
    }
}

struct Operation {
    action: UtilityOperation,
    parameters: Parameters,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let form = |name: &str| match name {
        "inputString" | "customPayload" => Form::Template,
        _ => Form::Plain,
    };
    let parameters = Parameters::compile(element, form, compiler)?;
    let action = match element.local().rsplit('.').next() {
        Some("Length") => UtilityOperation::Length,
        Some("LowerCase") => UtilityOperation::LowerCase,
        Some("UpperCase") => UtilityOperation::UpperCase,
        Some("RegexMatcher") => UtilityOperation::Regex,
        Some("UUID") => UtilityOperation::Uuid,
        Some("GetDate") => UtilityOperation::Date,
        Some("GetRandomInt") => UtilityOperation::Random,
        Some("Generate") => UtilityOperation::Generate,
        _ => UtilityOperation::Verify,
    };
    parameters.check_word("algorithm", &ALGORITHMS, element, compiler);
    parameters.check_word("payload", &PAYLOADS, element, compiler);
    for name in ["lowerBound", "upperBound"] {
        parameters.check(name, element, compiler, |text| match text.parse::<i64>() {
            Ok(_) => Ok(()),
            Err(_) => Err("expected a whole number".to_owned()),
        });
    }
    let needed: &[&str] = match action {
        UtilityOperation::Regex => &["regex"],
        UtilityOperation::Generate => &["secret"],
        UtilityOperation::Verify => &["secret", "signature"],
        _ => &[],
    };
    parameters.check_given(needed, element, compiler);
    let bound = |name: &str, default: i64| match parameters.get(name) {
        Some(_) => parameters.literal(name).and_then(|text| text.parse::<i64>().ok()),
        None => Some(default),
    };
    if let (Some(from), Some(to)) = (bound("lowerBound", 0), bound("upperBound", i64::from(i32::MAX)))
        && from > to
    {
        let message = format!("`{}`: there is no number from {from} to {to}", element.local());
        compiler.warning("bad-value", message, element.start_tag(), "messages that come here fault");
    }
    parameters.check("regex", element, compiler, |text| {
        Pattern::compile(text).map(|_| ()).map_err(|why| why.to_string())
    });
    parameters.check("format", element, compiler, |text| DatePattern::simple(text).map(|_| ()));
    Some(Box::new(Operation { action, parameters }))
}

impl Operation {
    fn result(&self, context: &mut Context) -> Result<String, Fault> {
        let parameters = &self.parameters;
        let wrong = |why: String| Fault::new(format!("{}: {why}", parameters.operation()));
        let input = |context: &mut Context| -> Result<String, Fault> {
            Ok(parameters.value("inputString", context)?.map(|value| value.to_string()).unwrap_or_default())
        };
        Ok(match self.action {
            // Counts UTF-16 units, as Java does.
            UtilityOperation::Length => input(context)?.encode_utf16().count().to_string(),
            UtilityOperation::LowerCase => input(context)?.to_lowercase(),
            UtilityOperation::UpperCase => input(context)?.to_uppercase(),
            UtilityOperation::Regex => {
                let text = parameters
                    .text("regex", context)?
                    .ok_or_else(|| wrong("`regex` is not given".to_owned()))?;
                let pattern = Pattern::compile(&text).map_err(|why| wrong(format!("`regex`: {why}")))?;
                let input = input(context)?;
                pattern.matches(&input).map_err(|stop| wrong(stop.to_string()))?.to_string()
            }
            UtilityOperation::Uuid => {
                let mut bytes: [u8; 16] = random()?;
                bytes[6] = bytes[6] & 0x0F | 0x40;
                bytes[8] = bytes[8] & 0x3F | 0x80;
                let text = hex(&bytes);
                let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
                parts.join("-")
            }
            UtilityOperation::Date => {
                let format =
                    parameters.text("format", context)?.unwrap_or_else(|| "yyyy-MM-dd HH:mm:ss".to_owned());
                let pattern =
                    DatePattern::simple(&format).map_err(|why| wrong(format!("`format`: {why}")))?;
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let moment = Moment::of(i64::try_from(now.as_millis()).unwrap_or_default()).map_err(wrong)?;
                pattern.format(&moment).map_err(wrong)?
            }
            UtilityOperation::Random => {
                let mut bound = |name: &str, default: i64| -> Result<i64, Fault> {
                    let Some(text) = parameters.text(name, context)? else { return Ok(default) };
                    text.parse().map_err(|_| wrong(format!("`{name}` is not a whole number: {text}")))
                };
                let (from, to) = (bound("lowerBound", 0)?, bound("upperBound", i64::from(i32::MAX))?);
                if from > to {
                    return Err(wrong(format!("there is no number from {from} to {to}")));
                }
                let count = u128::from(to.abs_diff(from)) + 1;
                // With 64 bits more than the range needs, the bias cannot be measured.
                let offset = u128::from_le_bytes(random()?) % count;
                (i128::from(from) + i128::try_from(offset).unwrap_or_default()).to_string()
            }
            UtilityOperation::Generate => hex(&self.signature(context)?),
            UtilityOperation::Verify => {
                let text = parameters.text("signature", context)?;
                let text = text.ok_or_else(|| wrong("`signature` is not given".to_owned()))?;
                let signature = hex(&self.signature(context)?);
                let same = aws_lc_rs::constant_time::verify_slices_are_equal(
                    signature.as_bytes(),
                    text.to_ascii_lowercase().as_bytes(),
                );
                same.is_ok().to_string()
            }
        })
    }

    fn signature(&self, context: &mut Context) -> Result<Vec<u8>, Fault> {
        let parameters = &self.parameters;
        let wrong = |why: String| Fault::new(format!("{}: {why}", parameters.operation()));
        let algorithm = parameters.text("algorithm", context)?.unwrap_or_else(|| "HMACSHA1".to_owned());
        let secret = parameters
            .value("secret", context)?
            .map(|value| value.to_string())
            .filter(|secret| !secret.is_empty());
        let secret = secret.ok_or_else(|| wrong("`secret` is not given".to_owned()))?;
        let payload =
            match parameters.text("payload", context)?.unwrap_or_default().to_ascii_lowercase().as_str() {
                "" | "body" => body(context)?,
                "custom payload" => parameters
                    .value("customPayload", context)?
                    .map(|value| value.to_string())
                    .unwrap_or_default()
                    .into_bytes(),
                other => return Err(wrong(format!("there is no payload `{other}`"))),
            };
        meter::spend(payload.len() as u64 / 16)?;
        let kind = match algorithm.to_ascii_uppercase().as_str() {
            "HMACSHA1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            "HMACSHA256" => hmac::HMAC_SHA256,
            "HMACSHA384" => hmac::HMAC_SHA384,
            "HMACSHA512" => hmac::HMAC_SHA512,
            "HMACMD5" => return Ok(hmac_md5(secret.as_bytes(), &payload)),
            other => return Err(wrong(format!("there is no algorithm `{other}`"))),
        };
        Ok(hmac::sign(&hmac::Key::new(kind, secret.as_bytes()), &payload).as_ref().to_vec())
    }
}

fn hmac_md5(secret: &[u8], payload: &[u8]) -> Vec<u8> {
    use ::hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<md5::Md5>::new_from_slice(secret).expect("a key of any length");
    mac.update(payload);
    mac.finalize().into_bytes().to_vec()
}

/// The body as it would be sent.
fn body(context: &mut Context) -> Result<Vec<u8>, Fault> {
    let message_type = context.axis2("messageType").map(|v| v.to_string()).unwrap_or_default();
    let limits = context.services().limits.clone();
    let format = match Format::of(message::MediaType::parse(&message_type).essence, context.is_rest()) {
        Format::Text | Format::Binary if context.payload.is_json() => Format::Json,
        format => format,
    };
    Ok(context.payload.write(format, &limits)?.to_vec())
}

fn random<const N: usize>() -> Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| Fault::new("the system gives no random numbers"))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

impl Mediator for Operation {
    fn need(&self) -> Need {
        let signs = matches!(self.action, UtilityOperation::Generate | UtilityOperation::Verify);
        let need = if signs && !self.parameters.is_literally("payload", "Custom Payload") {
            Need::Whole
        } else {
            Need::Nothing
        };
        need.max(self.parameters.need())
    }

    fn reason(&self) -> String {
        match self.parameters.need() < Need::Whole && self.need() == Need::Whole {
            true => "signs the body".to_owned(),
            false => self.parameters.reason(),
        }
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let target = self.parameters.text("target", context)?;
        let result = self.result(context)?;
        context.properties.set(target.as_deref().unwrap_or(self.action.target()), Value::from(result));
        Ok(Flow::Next)
    }
}
