//! Roles of clients: those of users (`http.roles`), and the scopes of whoever an access profile has let in.
//!
//! Flows get all scopes as one text, separated by blanks. So that no name may look like two, the blanks in a name are percent-encoded in
//! its *written* form.

use crate::runtime::context::Context;
use crate::runtime::services::Settings;
use std::borrow::Cow;
use std::fmt::Write;

/// The user store whose name in front of a role says nothing more.
const PRIMARY: &str = "PRIMARY/";
/// The role that everybody has, with or without the user store in front.
const EVERYONE: [&str; 2] = ["everyone", "Internal/everyone"];

/// The roles of the client of a message, in their written form: of the user that WS-Security found, and the scopes that an access profile
/// found (`ACCESS_SCOPES`; of a user of a directory these are its groups).
pub fn of(context: &Context) -> Vec<String> {
    let text = |name: &str| context.properties.get(name).map(|value| value.to_string());
    let scopes = text("ACCESS_SCOPES").unwrap_or_default();
    let mut roles: Vec<String> =
        scopes.split(' ').filter(|scope| !scope.is_empty()).map(str::to_owned).collect();
    if let Some(user) = text("WS_SECURITY_USER") {
        roles.extend(of_user(&user, &context.services.settings));
    }
    roles
}

/// The roles of a user of `http.users`, in their written form.
pub fn of_user(user: &str, settings: &Settings) -> Vec<String> {
    let roles = settings.roles.get(user).map(Vec::as_slice).unwrap_or_default();
    roles.iter().map(|role| written(role.trim()).into_owned()).collect()
}

/// A name with its blanks, control characters and percent signs percent-encoded.
pub fn written(name: &str) -> Cow<'_, str> {
    let is_special = |c: char| c.is_whitespace() || c.is_control() || c == '%';
    if !name.contains(is_special) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    for character in name.chars() {
        if is_special(character) {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Whether one of the wanted roles is among those, in their written form, that somebody holds. As in WSO2, case does not matter, and
/// `PRIMARY/admin` is `admin`.
pub fn suffice<T: AsRef<str>>(held: &[String], wanted: &[T]) -> bool {
    wanted.iter().map(|role| written(plain(role.as_ref()))).any(|wanted| {
        EVERYONE.iter().any(|everyone| everyone.eq_ignore_ascii_case(&wanted))
            || held.iter().any(|held| plain(held).eq_ignore_ascii_case(&wanted))
    })
}

/// A role without blanks around, and without the primary user store in front.
fn plain(role: &str) -> &str {
    let role = role.trim();
    role.strip_prefix(PRIMARY).unwrap_or(role)
}

#[cfg(test)]
mod tests {
    use super::{suffice, written};

    #[test]
    fn a_role_is_held_whatever_its_case_and_user_store() {
        let held = ["Admin".to_owned(), "PRIMARY/clerk".to_owned()];
        for (wanted, holds) in [
            (&["admin"][..], true),
            (&["PRIMARY/admin"], true),
            (&["none", " CLERK "], true),
            (&["LDAP/admin"], false),
            (&["adm"], false),
            (&[], false),
        ] {
            assert_eq!(suffice(&held, wanted), holds, "{wanted:?}");
        }
        // A name with blanks is one role, and none of its words is.
        let held = ["Not Admin", "x\u{a0}boss", "100%20"].map(|role| written(role).into_owned());
        assert_eq!(held, ["Not%20Admin", "x%C2%A0boss", "100%2520"]);
        for (wanted, holds) in
            [("not admin", true), ("admin", false), ("boss", false), ("100%20", true), ("100 ", false)]
        {
            assert_eq!(suffice(&held, &[wanted]), holds, "{wanted:?}");
        }
        assert!(
            suffice(&[], &["Internal/everyone"]) && suffice(&[], &["everyone"]) && !suffice(&[], &["admin"])
        );
    }
}
