//! `NTLM`: user and password for the blocking calls that follow, to backends which ask for NTLM.
//!
//! The handshake (`ntlm/handshake.rs`) authenticates a connection, so the three requests of it go over one that nobody
//! else uses, and which ends with the answer.

mod handshake;

use config::Element;
use flow::authority::{Authority, Authorization, Credentials};
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, KeyValue, Mediator,
    Need, Page, Services, Values,
};
use handshake::{Account, Version};
use message::Headers;
use std::sync::Arc;

/// `<NTLM [username] [password] [host] [domain] [ntlmVersion="v1|v2"]/>`
pub const DEFINITION: Definition = Definition {
    name: "NTLM",
    summary: "Sets user and password for blocking `call` and `callout` mediators that follow, for backends that require NTLM.",
    attributes: &[
        Attribute::optional("username", Values::Key, "the user"),
        Attribute::optional("password", Values::Key, "the password"),
        Attribute::optional("host", Values::Key, "the name of this machine in the handshake"),
        Attribute::optional("domain", Values::Key, "the domain of the user"),
        Attribute::optional("ntlmVersion", Values::Key, "v1 or v2: how the password is proved").or("v2"),
    ],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "It stores the credentials with the message and sends nothing itself. Each later `call` with `blocking=\"true\"` and each `callout`
uses them, until another `NTLM` replaces them. A `call` that does not block ignores them, and so does an endpoint with its own
authentication.

The request is first sent without credentials. If the backend answers with 401 and `WWW-Authenticate: NTLM`, it is sent again with the beginning of the
handshake, and once more with the answer to the backend's challenge. All of this uses one connection, which no other request uses, and which
is closed after the answer: each call has a handshake of its own. If the backend requires something else or refuses the account, its 401 is the answer.
The body is held, so that it can be sent again.

The values may be expressions in braces; an expression without a result is empty. The password is never sent, but it can be guessed from the handshake, so
use https.",
    inside: &[],
    needs: &[
        (Need::Nothing, "no value is an expression"),
        (Need::Headers, "expressions look at properties and headers"),
        (Need::Whole, "an expression looks at the body"),
    ],
    refused: &[
        ("<NTLM username=\"u\" password=\"p\" ntlmVersion=\"v3\"/>", "`v3` is not a version of NTLM"),
        ("<NTLM username=\"{//a[}\"/>", "not a valid expression"),
        ("<NTLM user=\"u\"/>", "`NTLM` has no attribute `user`"),
    ],
    faults: &[
        (
            "0",
            "an expression gives a version that does not exist. In the later `call`: the challenge of the backend is \
             not valid (ERROR_DETAIL says why)",
        ),
        ("401", "in a later `call`: the backend does not ask for NTLM, or refuses the account"),
        ("601000", "the body is larger than a flow may hold"),
    ],
};

struct Ntlm {
    user: Option<KeyValue>,
    password: Option<KeyValue>,
    host: Option<KeyValue>,
    domain: Option<KeyValue>,
    version: Option<KeyValue>,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let mut value = |name: &str| match element.attribute(name) {
        None => Some(None),
        Some(_) => compiler.key_value(element, name).map(Some),
    };
    let ntlm = Ntlm {
        user: value("username")?,
        password: value("password")?,
        host: value("host")?,
        domain: value("domain")?,
        version: value("ntlmVersion")?,
    };
    if let (Some(version), Some(attribute)) =
        (ntlm.version.as_ref().and_then(KeyValue::literal), element.attribute("ntlmVersion"))
        && Version::of(version).is_none()
    {
        let message = format!("`{version}` is not a version of NTLM");
        compiler.error("bad-value", message, attribute.value_span, "expected v1 or v2");
        return None;
    }
    Some(Box::new(ntlm))
}

impl Mediator for Ntlm {
    fn need(&self) -> Need {
        let values = [&self.user, &self.password, &self.host, &self.domain, &self.version];
        values.into_iter().flatten().map(KeyValue::need).max().unwrap_or(Need::Nothing)
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let mut value = |key: &Option<KeyValue>| -> Result<String, Fault> {
            let Some(key) = key else { return Ok(String::new()) };
            Ok(key.resolve(context)?.unwrap_or_default().to_string())
        };
        let (user, password) = (value(&self.user)?, value(&self.password)?);
        let (host, domain) = (value(&self.host)?, value(&self.domain)?);
        let version = match self.version {
            None => Version::V2,
            Some(_) => {
                let text = value(&self.version)?;
                Version::of(&text)
                    .ok_or_else(|| Fault::new(format!("`{}` is not a version of NTLM", text.trim())))?
            }
        };
        let account = Account { user, password, host, domain, version };
        context.attach(Arc::new(Credentials(Box::new(account))));
        Ok(Flow::Next)
    }
}

impl Authority for Account {
    fn begin<'a>(&'a self, _: &'a Services) -> Authorization<'a> {
        // The backend may not ask at all.
        Box::pin(async { Ok(None) })
    }

    fn again<'a>(&'a self, refused: &'a Headers, round: u8, _: &'a Services) -> Authorization<'a> {
        Box::pin(async move {
            let offers = refused.get_all("WWW-Authenticate");
            let offer = offers.filter_map(|line| std::str::from_utf8(line).ok()).find_map(|line| {
                let (scheme, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
                scheme.eq_ignore_ascii_case("NTLM").then(|| rest.trim().to_owned())
            });
            match (offer, round) {
                (Some(challenge), 0) if challenge.is_empty() => Ok(Some(self.negotiate())),
                (Some(challenge), 0 | 1) if !challenge.is_empty() => {
                    let fresh = handshake::Fresh::now()?;
                    self.authenticate(&challenge, &fresh).map(Some).map_err(|why| {
                        Fault::new("the NTLM challenge of the backend cannot be answered").because(why)
                    })
                }
                // Not asked for, or refused.
                _ => Ok(None),
            }
        })
    }

    fn one_connection(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use flow::testing;

    #[test]
    fn what_is_wrong_is_said() {
        let registry = crate::registry(testing::endpoints);
        let tested = testing::main(&registry, "<NTLM username='u' password='p' ntlmVersion='v3'/>");
        assert!(tested.reports("`v3` is not a version of NTLM"), "{:?}", tested.found);
        let end = testing::main(&registry, "<NTLM username='u' ntlmVersion='{$ctx:none}'/>").run(&[], "");
        assert_eq!(end.fault().as_deref(), Some("0: `` is not a version of NTLM"));
        for text in [
            "<NTLM/>",
            "<NTLM username='{$ctx:u}' password='{$ctx:p}' host='h' domain='d' ntlmVersion='v1'/>",
        ] {
            let tested = testing::main(&registry, text);
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            assert_eq!(tested.run(&[], "").fault(), None);
        }
    }
}
