//! How a message is written when it leaves: its form, charset, packing and coding, and the labels that say so.

pub mod kept;

use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::stage::{self, Stage};
use bytes::Bytes;
use message::charset::Charset;
use message::{Body, Coding, Format, Headers, Kind, MediaType, Packing, SoapVersion, Value, Writing};
use std::borrow::Cow;
use std::sync::Arc;

/// The form of an explicitly set `messageType` that differs from the payload's own.
pub(crate) fn explicit_form(context: &Context) -> Option<(Format, Option<String>)> {
    let Some(message_type) = context.axis2.get("messageType").map(Value::to_string) else {
        return made_form(context);
    };
    let essence = MediaType::parse(&message_type).essence.to_owned();
    let kind = Kind::of(&essence);
    let reading = context.payload.reading();
    if !context.payload.is_changed() && (kind == reading.kind || context.payload.is_empty()) {
        return None;
    }
    let rest = context.is_rest() || kind == Kind::Xml;
    let format = match kind {
        Kind::Related if reading.kind == Kind::Soap12 => Format::Soap(SoapVersion::V12),
        _ => Format::of(&essence, rest),
    };
    Some((format, Some(essence)))
}

/// The form of JSON that a step made on a message of an XML type, or on a form: the type of the message stays. A message that came
/// without a type has that of JSON then; where a step removed the type, the message is written as ever.
fn made_form(context: &Context) -> Option<(Format, Option<String>)> {
    if !context.payload.is_uncoded() || context.payload.reading().kind != Kind::Json {
        return None;
    }
    let Some(media_type) = context.headers.get("Content-Type").map(MediaType::parse) else {
        let is_typeless = context.inbound.content_type.is_none();
        return is_typeless.then(|| (Format::Json, Some("application/json".to_owned())));
    };
    let stays = matches!(media_type.kind(), Kind::Xml | Kind::Soap11 | Kind::Soap12 | Kind::Form);
    stays.then(|| (Format::of(media_type.essence, context.is_rest()), Some(media_type.essence.to_owned())))
}

/// The form of a changed payload whose type was not changed.
pub(crate) fn current_form(context: &Context) -> (Format, Option<String>) {
    if let Some((format, content_type)) = explicit_form(context) {
        return (format, content_type);
    }
    if context.payload.is_json() && !context.payload.is_changed() {
        return (Format::Json, Some("application/json".to_owned()));
    }
    let Some(media_type) = context.headers.get("Content-Type").map(MediaType::parse) else {
        if context.payload.reading().kind == Kind::Json {
            return (Format::Json, Some("application/json".to_owned()));
        }
        return match context.is_rest() {
            true => (Format::Xml, None),
            false => (Format::Soap(SoapVersion::V11), None),
        };
    };
    match media_type.kind() {
        // What came in a package is written as its envelope; its attachments decide whether that is packed again.
        Kind::Related => match media_type.root_kind() {
            Kind::Soap12 => (Format::Soap(SoapVersion::V12), None),
            Kind::Xml => (Format::Xml, None),
            _ => (Format::Soap(SoapVersion::V11), None),
        },
        // A payload that was made here under a type that no formatter writes: XML or SOAP says so itself.
        Kind::Unknown => (Format::of(media_type.essence, context.is_rest()), None),
        _ => (Format::of(media_type.essence, context.is_rest()), Some(media_type.essence.to_owned())),
    }
}

/// As [`current_form`], of a request: an envelope that a step made keeps its SOAP version, whatever type the message had.
pub(crate) fn request_form(context: &Context) -> (Format, Option<String>) {
    match (current_form(context), context.payload.made_version()) {
        ((Format::Soap(labelled), _), Some(version)) if labelled != version => (Format::Soap(version), None),
        (form, _) => form,
    }
}

/// Whether properties want other bytes than those that arrived, although the payload was not changed: another charset,
/// or another packing.
pub(crate) fn is_rewritten(context: &Context) -> bool {
    let set = |name| context.axis2.get(name);
    if let Some(name) = set("CHARACTER_SET_ENCODING")
        && !context.payload.is_empty()
        && let Some(charset) = Charset::for_label(&name.to_string())
        && context.payload.reading().kind != Kind::Binary
    {
        let arrived = arrived_in(context).and_then(Charset::for_label).unwrap_or(Charset::UTF8);
        if arrived != charset {
            return true;
        }
    }
    let (mtom, swa) = (switch(context, "enableMTOM"), switch(context, "enableSwA"));
    if mtom != Some(true) && swa != Some(true) {
        return false;
    }
    match context.payload.reading().kind {
        Kind::Soap11 | Kind::Soap12 | Kind::Xml => !context.payload.is_empty(),
        Kind::Related => {
            let xop = context
                .headers
                .get("Content-Type")
                .and_then(|line| MediaType::parse(line).parameter("type"))
                .is_some_and(|kind| kind.eq_ignore_ascii_case(message::media::XOP));
            xop != (mtom == Some(true))
        }
        _ => false,
    }
}

fn switch(context: &Context, name: &str) -> Option<bool> {
    context.axis2.get(name).map(Value::is_true)
}

/// Writes the payload, which is there whole, and sets the headers that say what it is.
///
/// `content_type` is the media type where it is not the format's own; `charset` and `packing` are the endpoint's.
///
/// # Errors
/// The payload cannot be read, which it must be to take another form.
pub(crate) fn write(
    context: &mut Context,
    format: Format,
    content_type: Option<&str>,
    charset: Option<&str>,
    packing: Option<Packing>,
) -> Result<Bytes, Fault> {
    let (charset, charset_name) = charset_of(context, charset);
    let writing = Writing {
        format,
        charset,
        charset_name: &charset_name,
        declaration: context.axis2_is_true("WRITE_XML_DECLARATION"),
        packing: packing_of(context, format, packing),
        preserve_spaces: context.axis2_is_true("PRESERVE_SPACES"),
    };
    let services = Arc::clone(&context.services);
    let written = context.payload.written(&writing, &services.limits)?;
    match &written.content_type {
        Some(content_type) => {
            write_action(context, format);
            context.headers.set("Content-Type", content_type);
        }
        None => set_content_type(context, format, content_type, &charset_name),
    }
    Ok(coded(context, written.bytes))
}

/// As [`write`], of a message that stages seal: the envelope alone, in UTF-8, sealed before it is packed with its attachments and coded.
///
/// # Errors
/// As [`write`]; it would be no envelope, or has attachments, and a stage signs or encrypts, which does not cover them; a stage's own.
pub(crate) fn write_sealed(
    context: &mut Context,
    format: Format,
    packing: Option<Packing>,
    stages: &[Arc<dyn Stage>],
) -> Result<Bytes, Fault> {
    let Format::Soap(version) = format else {
        return Err(Fault::new(
            "WS-Security is for SOAP messages, and this one is of another type: the endpoint needs a format of soap11 or soap12",
        ));
    };
    let packing = packing_of(context, format, packing);
    let has_attachments = packing != Packing::None && context.payload.has_attachments();
    if has_attachments && !stage::lets_attachments_pass(stages) {
        return Err(Fault::new(
            "the message has attachments, which WS-Security does not cover here: set enableSwA to false to send it without them",
        ));
    }
    let writing = Writing {
        format,
        charset: Charset::UTF8,
        charset_name: "UTF-8",
        declaration: false,
        packing: Packing::None,
        preserve_spaces: context.axis2_is_true("PRESERVE_SPACES"),
    };
    let services = Arc::clone(&context.services);
    let written = context.payload.written(&writing, &services.limits)?;
    if written.bytes.is_empty() {
        return Ok(written.bytes);
    }
    let sealed = stage::seal(stages, context, written.bytes)?;
    if has_attachments {
        let (package, content_type) = context.payload.packed(sealed, version, "UTF-8", packing);
        write_action(context, format);
        context.headers.set("Content-Type", content_type);
        return Ok(coded(context, package));
    }
    set_content_type(context, format, None, "UTF-8");
    Ok(coded(context, sealed))
}

/// Bytes that were made here, coded as `Content-Encoding` says; the header goes if it cannot be done.
pub(crate) fn coded(context: &mut Context, bytes: Bytes) -> Bytes {
    let coding = Coding::of(context.headers.get("Content-Encoding"));
    if coding.can_write() && !bytes.is_empty() {
        return Bytes::from(coding.encode(&bytes));
    }
    context.headers.remove("Content-Encoding");
    bytes
}

/// Whether [`untouched`] codes the payload, which takes as long as it is large.
pub(crate) fn is_coded_here(context: &Context) -> bool {
    context.payload.is_uncoded() && context.headers.contains("Content-Encoding")
}

/// The payload as it is, for a receiver that takes it so.
pub(crate) fn untouched(context: &mut Context) -> Body {
    let uncoded = context.payload.is_uncoded();
    if let Some(label) = context.label() {
        context.headers.set("Content-Type", label);
    } else if context.payload.is_built()
        && !context.headers.contains("Content-Type")
        && let Some(label) = context.read_as()
    {
        // All headers were removed. WSO2 labels a message that a step has read, and no other.
        context.headers.set("Content-Type", label);
    }
    match context.payload.take_body() {
        Body::Bytes(bytes) if uncoded => Body::Bytes(coded(context, bytes)),
        body => body,
    }
}

/// The charset of what is written: the endpoint's, else the property's, else that of an explicit type, else the one
/// that the message came in. Unknown names count as UTF-8.
fn charset_of(context: &Context, endpoint: Option<&str>) -> (Charset, Cow<'static, str>) {
    let text = |name| context.axis2.get(name).map(|value| Cow::Owned(value.to_string()));
    let in_type = |name| Some(Cow::Owned(MediaType::parse(&text(name)?).charset()?.to_owned()));
    let name = endpoint
        .map(Cow::Borrowed)
        .or_else(|| text("CHARACTER_SET_ENCODING"))
        .or_else(|| in_type("ContentType"))
        .or_else(|| in_type("messageType"))
        .or_else(|| arrived_in(context).map(Cow::Borrowed));
    match name.as_deref().and_then(|name| Some((Charset::for_label(name)?, name))) {
        Some((charset, name)) if !charset.is_utf8() => {
            (charset, name.trim().trim_matches('"').to_ascii_uppercase().into())
        }
        _ => (Charset::UTF8, "UTF-8".into()),
    }
}

/// The charset that the message came in, where its type names one.
fn arrived_in(context: &Context) -> Option<&str> {
    let header = context.headers.get("Content-Type").and_then(|line| MediaType::parse(line).charset());
    header.or_else(|| {
        let inbound = context.inbound.content_type.as_deref().filter(|_| context.request_headers);
        inbound.and_then(|line| MediaType::parse(line).charset())
    })
}

/// MTOM and SwA where they are asked for; attachments go along unless the message takes another type.
fn packing_of(context: &Context, format: Format, endpoint: Option<Packing>) -> Packing {
    if !matches!(format, Format::Soap(_) | Format::Xml) {
        return Packing::None;
    }
    let explicit =
        context.axis2.get("messageType").map(|value| Kind::of(MediaType::parse(&value.to_string()).essence));
    match (switch(context, "enableMTOM"), switch(context, "enableSwA")) {
        (Some(true), _) => Packing::Mtom,
        (_, Some(true)) => Packing::Swa,
        _ if endpoint.is_some() => endpoint.unwrap_or(Packing::None),
        _ if explicit == Some(Kind::Related) => Packing::Swa,
        (_, Some(false)) => Packing::None,
        _ if explicit.is_none() && context.payload.has_attachments() => Packing::Swa,
        _ => Packing::None,
    }
}

/// Sets Content-Type (and the SOAP action) for a body that was written in `format`.
fn set_content_type(context: &mut Context, format: Format, content_type: Option<&str>, charset: &str) {
    let explicit = context.label().filter(|_| content_type.is_some());
    let essence = match format {
        Format::Soap(version) => version.media_type(),
        Format::Xml => {
            content_type.filter(|media_type| Kind::of(media_type).is_xml()).unwrap_or("application/xml")
        }
        Format::Json => content_type.unwrap_or("application/json"),
        Format::Form => "application/x-www-form-urlencoded",
        Format::FormData => "multipart/form-data",
        Format::Text => content_type.unwrap_or("text/plain"),
        Format::Binary => content_type.unwrap_or("application/octet-stream"),
    };
    let label = explicit.as_deref().unwrap_or(essence);
    let mut value = String::with_capacity(label.len() + charset.len() + 16);
    value.push_str(label);
    let wanted = context.axis2.get("setCharacterEncoding").is_none_or(|wanted| wanted.to_string() != "false");
    if wanted && format != Format::Binary && MediaType::parse(label).charset().is_none() {
        value.push_str("; charset=");
        value.push_str(charset);
    }
    if format == Format::Soap(SoapVersion::V12)
        && let Some(action) = context.soap_action()
    {
        value.push_str(&format!("; action=\"{action}\""));
    }
    write_action(context, format);
    context.headers.set("Content-Type", value);
}

/// Sets the SOAPAction header.
fn write_action(context: &mut Context, format: Format) {
    let action = match format {
        Format::Soap(SoapVersion::V12) => return,
        Format::Soap(SoapVersion::V11) if !context.response => match &context.soap_action {
            Some(action) => Some(quoted(action)),
            None if has_quoted_action(&context.headers) => None,
            None => Some(quoted(&context.soap_action().unwrap_or_default())),
        },
        _ => context.soap_action.as_deref().map(quoted),
    };
    if let Some(action) = action {
        context.headers.set("SOAPAction", action);
    }
}

fn quoted(action: &str) -> String {
    ["\"", action, "\""].concat()
}

/// Whether there is one SOAPAction header, as it would be written.
fn has_quoted_action(headers: &Headers) -> bool {
    let mut lines = headers.get_all("SOAPAction");
    match (lines.next(), lines.next()) {
        (Some([b'"', action @ .., b'"']), None) => {
            let (first, last) = (action.first(), action.last());
            let plain =
                |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'"' && !byte.is_ascii_whitespace());
            action.is_ascii() && plain(first) && plain(last)
        }
        _ => false,
    }
}
