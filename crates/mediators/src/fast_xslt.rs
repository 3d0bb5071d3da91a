//! `fastXSLT`: a stylesheet on the body as it was received, the result in its place. Where the stylesheet looks only
//! downwards, a large body is transformed while it arrives, and the result leaves while it is made.

use crate::resources::RESOURCE;
use crate::stylesheet::{Style, failed};
use crate::xslt::{parsed, place, set_json};
use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Mediator, Moves, Need,
    Page, Step, Values,
};
use message::{Body, Coding};
use xml::Document;
use xslt::OutputMethod;

/// `<fastXSLT key="KEY"/>`
pub const DEFINITION: Definition = Definition {
    name: "fastXSLT",
    summary: "Transforms the body as it was received with an XSLT stylesheet.",
    attributes: &[Attribute {
        name: "key",
        required: true,
        values: Values::Key,
        default: "",
        meaning: "the entry or registry resource that is the stylesheet, or an expression in braces",
    }],
    children: Children::Elements(&["resource"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Transformation,
    semantics: "The stylesheet runs on the whole body as it was received, including the envelope, whatever its content type, and the result replaces it
byte by byte; the content type stays, unless the stylesheet has `output method=\"json\"` (3.0): then the message becomes JSON. There are no properties, source and target; for these use [xslt](xslt.md). If an earlier step
has read or changed the body, its first element is transformed and replaced.

A stylesheet streams if it looks only downwards ([which ones](../tools.md#xslt)). Then a body of more than 256 KB that no step has read is transformed
piece by piece: the result leaves while the body arrives, memory does not grow with the body, and the body does not count as held. A failure
before the first bytes of the result (about 32 KB of it, or all) runs the fault sequence, without the body. A later failure breaks the connection
that the result goes to, so that it never looks whole. At most 64 bodies are streamed at a time, others are received first.

Stylesheets are compiled when the configuration loads; those of a key that an expression gives when they are first used.
Include, import and `document()` find a `resource` by its location, or an entry or registry resource by its key, and nothing else.
`xsl:evaluate` (3.0) is off here: only [xslt](xslt.md) can allow it.",
    inside: &[RESOURCE],
    needs: &[
        (
            Need::Prefix,
            "where the stylesheet streams: a body of more than 256 KB is transformed while it arrives, a smaller one is received first",
        ),
        (Need::Whole, "where it does not stream, or an expression gives the key"),
    ],
    refused: &[
        ("<fastXSLT/>", "`fastXSLT` needs the attribute `key`"),
        ("<fastXSLT key=\"none\"/>", "there is no stylesheet `none`"),
        ("<fastXSLT key=\"none\"><resource location=\"a\"/></fastXSLT>", "`resource` needs `location` and `key`"),
    ],
    faults: &[
        (
            "0",
            "\"Error while transforming the Stream\": the body is empty, there is no such stylesheet, or it fails; ERROR_DETAIL says what",
        ),
        ("601000", "the body is not XML, or not what its Content-Encoding says, or larger than a flow may hold"),
    ],
};

struct FastXslt(Style);

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    Some(Box::new(FastXslt(Style::compile(element, compiler)?)))
}

impl Mediator for FastXslt {
    fn need(&self) -> Need {
        if self.0.streaming().is_some() { Need::Prefix } else { Need::Whole }
    }

    fn reason(&self) -> String {
        match self.0.streaming().is_some() {
            true => "the stylesheet runs while a large body arrives; a small one is received first".into(),
            false => {
                "the whole body is received and transformed as a tree: the stylesheet does not stream".into()
            }
        }
    }

    fn moves(&self) -> Moves {
        Moves::Large
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if self.0.streaming().is_none() || !context.payload.is_unread() {
            return Step::Done(self.mediate(context));
        }
        Step::Wait(Box::pin(async move {
            let result = self.0.transformed(context, Vec::new(), false, while_transforming).await?;
            let Some(result) = result else {
                context.receive_body().await?;
                return Ok(Flow::Mediate);
            };
            context.payload.put_back(Body::Stream(Box::new(result)));
            Ok(Flow::Next)
        }))
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let FastXslt(style) = self;
        let (key, sheet) = style.find(context)?;
        let error = while_transforming;
        let is_json = sheet.output().method == Some(OutputMethod::Json);
        let reading = context.payload.reading();
        let plain = reading.coding == Coding::Identity
            && reading.charset.is_none_or(|charset| charset.name() == "UTF-8");
        if let Some(bytes) = context.payload.bytes().filter(|_| plain && !context.payload.is_built())
            && !bytes.is_empty()
        {
            // The body itself, envelope and all.
            let input = parsed(&sheet, bytes.clone(), context)?;
            if is_json {
                let json = style.text(&key, &sheet, &input, &[], true, context).map_err(error)?;
                return set_json(&key, &json, context).map(|()| Flow::Next).map_err(error);
            }
            let mut out = Vec::new();
            style
                .run(&key, context, true, |options| {
                    sheet.transform_to(&input, Document::ROOT, &[], options, &mut out)
                })
                .map_err(error)?;
            context.payload.set_bytes(out, reading);
            return Ok(Flow::Next);
        }
        let Some(node) = context.envelope()?.payload() else {
            return Err(error(failed(&key, "the body is empty")));
        };
        let mut input = Document::new();
        if let Some(envelope) = context.payload.built_envelope() {
            input.copy_from(Document::ROOT, &envelope.document, node);
        }
        if is_json {
            let json = style.text(&key, &sheet, &input, &[], false, context).map_err(error)?;
            return set_json(&key, &json, context).map(|()| Flow::Next).map_err(error);
        }
        let result =
            style.run(&key, context, false, |options| sheet.transform(&input, Document::ROOT, &[], options));
        place(&key, node, result.map_err(error)?.document, context).map_err(error)?;
        Ok(Flow::Next)
    }
}

/// As WSO2 words it.
fn while_transforming(fault: Fault) -> Fault {
    Fault { message: "Error while transforming the Stream".into(), ..fault }
}

#[cfg(test)]
mod tests {
    use flow::testing;

    const SHEET: &str = "<!--top--><localEntry key='s'><x:stylesheet xmlns='' version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'>\
        <x:output omit-xml-declaration='yes'/><x:template match='/'><n><x:value-of select='name(/*)'/></n></x:template></x:stylesheet></localEntry>";

    #[test]
    fn the_stylesheet_sees_the_body_as_it_was_received() {
        let soap = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><a/></s:Body></s:Envelope>";
        for (body, out) in [("<a/>", "<n>a</n>"), (soap, "<n>s:Envelope</n>")] {
            let tested = testing::main(
                &crate::registry(testing::endpoints),
                &format!("<fastXSLT key='s'/><respond/>{SHEET}"),
            );
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let headers = [("Content-Type", "text/xml"), ("SOAPAction", "x")];
            assert_eq!(tested.ask("POST", "/", &headers, body).body, out);
        }
        // A body that a step has read or changed: its first element.
        let text =
            format!("<filter xpath='count(//a) = 1'><then/></filter><fastXSLT key='s'/><respond/>{SHEET}");
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        let response = tested.ask("POST", "/", &[("Content-Type", "application/xml")], "<a/>");
        assert!(response.body.ends_with("</n>"), "{response:?}");
    }

    #[test]
    fn a_stylesheet_that_writes_json_makes_the_message_json() {
        let sheet = "<!--top--><localEntry key='s'><x:stylesheet xmlns='' version='3.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'>\
            <x:output method='json'/><x:template match='/'><x:sequence select=\"map {'n': name(/*)}\"/></x:template></x:stylesheet></localEntry>";
        for before in ["", "<filter xpath='count(//a) = 1'><then/></filter>"] {
            let read = "<property name='p' expression='json-eval($.n)'/>";
            let text = format!("{before}<fastXSLT key='s'/>{read}{sheet}");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let mut end = tested.run(&[("Content-Type", "application/xml")], "<a/>");
            assert_eq!(end.outcome().as_deref(), Ok(r#"{"n":"a"}"#), "{before}");
            assert_eq!(end.property("p").as_deref(), Some("a"), "{before}");
            assert_eq!(end.context.headers.get("Content-Type"), Some("application/json"), "{before}");
        }
    }

    #[test]
    fn what_cannot_be_transformed_faults() {
        let tested =
            testing::main(&crate::registry(testing::endpoints), &format!("<fastXSLT key='s'/>{SHEET}"));
        let stream = "0: Error while transforming the Stream";
        let not_xml = "601000: the payload is not well-formed XML";
        for (kind, body, wanted) in [
            ("application/xml", "<a", not_xml),
            ("application/json", "{}", not_xml),
            ("application/xml", "", stream),
            ("application/xml", "<a/><b/>", not_xml),
        ] {
            let fault = tested.run(&[("Content-Type", kind)], body).fault();
            assert!(fault.as_ref().is_some_and(|fault| fault.starts_with(wanted)), "{body}: {fault:?}");
        }
    }
}
