//! Roles of clients: those of users (`http.roles`), and the scopes of whoever an access profile has let in.

use crate::runtime::context::Context;

/// The user store whose name in front of a role says nothing more.
const PRIMARY: &str = "PRIMARY/";
/// The role that everybody has, with or without the user store in front.
const EVERYONE: [&str; 2] = ["everyone", "Internal/everyone"];

/// The roles of the client of a message: of the user that WS-Security found, and the scopes that an access profile found
/// (`ACCESS_SCOPES`; of a user of a directory these are its groups).
pub fn of(context: &Context) -> Vec<String> {
    let text = |name: &str| context.properties.get(name).map(|value| value.to_string());
    let mut roles: Vec<String> =
        text("ACCESS_SCOPES").unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    if let Some(user) = text("WS_SECURITY_USER")
        && let Some(its) = context.services.settings.roles.get(&user)
    {
        roles.extend(its.iter().cloned());
    }
    roles
}

/// Whether one of the wanted roles is among those that somebody holds. As in WSO2, case does not matter, and `PRIMARY/admin` is `admin`.
pub fn suffice<T: AsRef<str>>(held: &[String], wanted: &[T]) -> bool {
    wanted.iter().map(|role| plain(role.as_ref())).any(|wanted| {
        EVERYONE.iter().any(|everyone| everyone.eq_ignore_ascii_case(wanted))
            || held.iter().any(|held| plain(held).eq_ignore_ascii_case(wanted))
    })
}

/// A role without blanks around, and without the primary user store in front.
fn plain(role: &str) -> &str {
    let role = role.trim();
    role.strip_prefix(PRIMARY).unwrap_or(role)
}

#[cfg(test)]
mod tests {
    use super::suffice;

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
        assert!(
            suffice(&[], &["Internal/everyone"]) && suffice(&[], &["everyone"]) && !suffice(&[], &["admin"])
        );
    }
}
