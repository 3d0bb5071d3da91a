//! The user store of a WSO2 server, `[user_store]` of `deployment.toml`: a directory becomes the access profile `user_store`, unless
//! `busbar.toml` has one of that name.

use crate::secrets::is_filled_in;
use flow::guard::USER_STORE;
use toml::{Table, Value};

/// What of it is read: the key in `[user_store]`, and the name in `[user_store.properties]`.
const READ: [(&str, &str); 14] = [
    ("connection_url", "ConnectionURL"),
    ("connection_name", "ConnectionName"),
    ("connection_password", "ConnectionPassword"),
    ("anonymous_bind", "AnonymousBind"),
    ("user_search_base", "UserSearchBase"),
    ("user_name_attribute", "UserNameAttribute"),
    ("user_name_search_filter", "UserNameSearchFilter"),
    ("user_dn_pattern", "UserDNPattern"),
    ("read_groups", "ReadGroups"),
    ("group_search_base", "GroupSearchBase"),
    ("group_name_attribute", "GroupNameAttribute"),
    ("group_name_list_filter", "GroupNameListFilter"),
    ("membership_attribute", "MembershipAttribute"),
    ("memberof_attribute", "MemberOfAttribute"),
];

/// Whether a key of `deployment.toml` is one that is read here.
pub fn is_read(key: &str) -> bool {
    let Some(key) = key.strip_prefix("user_store.") else { return false };
    let property = key.strip_prefix("properties.");
    READ.iter().any(|(name, long)| *name == key || property == Some(*long))
        || ["type", "class", "base_dn"].contains(&key)
}

/// What `[access.user_store]` would say, by the tables of `deployment.toml`; `None`: there is no directory. A store without an address is the one that every server is delivered
/// with, and that none uses.
///
/// # Errors
/// It cannot be used here, and why.
fn profile<'a>(mut tables: impl Iterator<Item = &'a Table>) -> Option<Result<Table, String>> {
    let table = tables.find_map(|table| table.get("user_store")?.as_table())?;
    let store = Store(table);
    store.raw("connection_url")?;
    Some(store.profile())
}

/// Adds the profile to settings, unless they have one of that name or it cannot be used, which becomes a remark; whether it was added.
pub fn add<'a>(
    tables: impl Iterator<Item = &'a Table>,
    settings: &mut Table,
    remarks: &mut Vec<String>,
) -> bool {
    let access = settings.get("access").and_then(Value::as_table);
    if access.is_some_and(|access| access.contains_key(USER_STORE)) {
        return false;
    }
    match profile(tables) {
        None => false,
        Some(Err(why)) => {
            remarks.push(no_effect(&why));
            false
        }
        Some(Ok(profile)) => {
            let access = settings.entry("access").or_insert_with(|| Table::new().into()).as_table_mut();
            access.map(|access| access.insert(USER_STORE.to_owned(), profile.into())).is_some()
        }
    }
}

/// Takes the profile out of settings again if a secret of it cannot be had: the server may be another one.
pub fn give_up(settings: [&mut Table; 2], missing: &mut Vec<String>, remarks: &mut Vec<String>) {
    let is_of_store = |secret: &String| secret.starts_with(&format!("access.{USER_STORE}."));
    let Some(why) = missing.iter().find(|secret| is_of_store(secret)) else { return };
    remarks.push(no_effect(why));
    missing.retain(|secret| !is_of_store(secret));
    for table in settings {
        if let Some(access) = table.get_mut("access").and_then(Value::as_table_mut) {
            access.remove(USER_STORE);
        }
    }
}

fn no_effect(why: &str) -> String {
    format!("deployment.toml: `user_store` has no effect: {why}; set [access.{USER_STORE}] in busbar.toml")
}

struct Store<'a>(&'a Table);

impl Store<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        let long = READ.iter().find(|(key, _)| *key == name).map_or(name, |(_, long)| *long);
        self.0.get(name).or_else(|| self.0.get("properties")?.get(long))
    }

    fn raw(&self, name: &str) -> Option<String> {
        let value = self.value(name)?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .filter(|text| !text.trim().is_empty())
    }

    /// A value that is written there, entities of XML resolved: the server writes it into a file of XML.
    fn text(&self, name: &str) -> Option<String> {
        let text = self.raw(name).filter(|text| !is_filled_in(text))?;
        Some(text.trim().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    }

    fn is(&self, name: &str, otherwise: bool) -> bool {
        self.text(name).map_or(otherwise, |text| text.eq_ignore_ascii_case("true"))
    }

    fn profile(&self) -> Result<Table, String> {
        let kind = self.text("type").or_else(|| self.text("class")).unwrap_or_default().to_ascii_lowercase();
        if !kind.is_empty() && !kind.contains("ldap") && !kind.contains("active") {
            return Err("its users are in no directory".to_owned());
        }
        if let Some((name, _)) = READ.iter().find(|(name, _)| {
            let text = self.raw(name).unwrap_or_default();
            // The vault is asked for a secret.
            is_filled_in(&text) && !(*name == "connection_password" && text.trim().starts_with("$secret{"))
        }) {
            return Err(format!("only a WSO2 server can fill in `{name}`"));
        }
        let mut ldap = Table::new();
        let mut set = |name: &str, value: String| _ = ldap.insert(name.to_owned(), Value::String(value));
        set("address", self.text("connection_url").unwrap_or_default());
        if !self.is("anonymous_bind", false)
            && let Some(name) = self.text("connection_name")
        {
            set("bind", name);
            // As it is written: a password has no entities.
            set("password", self.raw("connection_password").unwrap_or_default());
        }
        let attribute = self.text("user_name_attribute").unwrap_or_else(|| "uid".to_owned());
        // Several patterns, of which one fits, are searched for.
        match self.text("user_dn_pattern").filter(|pattern| pattern.contains("{0}") && !pattern.contains('#'))
        {
            Some(pattern) => set("user", pattern.replace("{0}", "{user}")),
            None => {
                let base = self.text("user_search_base").or_else(|| self.text("base_dn"));
                set("base", base.unwrap_or_else(|| "ou=system".to_owned()));
                let filter = self.text("user_name_search_filter");
                let filter = filter.unwrap_or_else(|| format!("(&(objectClass=person)({attribute}=?))"));
                if !filter.contains('?') {
                    return Err("its `user_name_search_filter` has no ? for the user".to_owned());
                }
                set("filter", filter.replace('?', "{user}"));
            }
        }
        if self.is("read_groups", true) {
            if let Some(name) = self.text("group_name_attribute") {
                set("group_name", name);
            }
            match (self.text("memberof_attribute"), self.text("group_search_base")) {
                (Some(attribute), _) => set("group_attribute", attribute),
                (None, Some(base)) => {
                    set("group_base", base);
                    let all = self.text("group_name_list_filter");
                    let all = all.unwrap_or_else(|| "(objectClass=groupOfNames)".to_owned());
                    let member = self.text("membership_attribute").unwrap_or_else(|| "member".to_owned());
                    set("group_filter", format!("(&{all}({member}={{dn}}))"));
                }
                (None, None) => {}
            }
        }
        let mut profile = Table::new();
        profile.insert("users".to_owned(), true.into());
        profile.insert("forward".to_owned(), true.into());
        profile.insert("ldap".to_owned(), ldap.into());
        crate::access::judge(USER_STORE, &profile)?;
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Result<Table, String>> {
        let root = std::env::temp_dir().join(format!(
            "busbar-user-store-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir_all(root.join("conf")).unwrap();
        std::fs::write(root.join("conf/deployment.toml"), text).unwrap();
        let found = profile(crate::server::Server::read(&root).tables());
        std::fs::remove_dir_all(&root).unwrap();
        found
    }

    #[test]
    fn a_directory_becomes_a_profile() {
        let full = r#"[user_store]
type = "read_only_ldap"
connection_url = "ldaps://ldap.example:636"
connection_name = "uid=admin,ou=system"
connection_password = "$secret{ldap}"
user_search_base = "ou=Users,dc=wso2,dc=org"
user_name_search_filter = "(&amp;(objectClass=person)(uid=?))"
group_search_base = "ou=Groups,dc=wso2,dc=org"
group_name_search_filter = "(&(objectClass=groupOfNames)(cn=?))"
group_name_list_filter = "(objectClass=groupOfNames)"
membership_attribute = "uniqueMember"
"#;
        let ldap = |text: &str| of(text).unwrap().unwrap()["ldap"].as_table().unwrap().clone();
        let found = ldap(full);
        for (name, wanted) in [
            ("address", "ldaps://ldap.example:636"),
            ("bind", "uid=admin,ou=system"),
            ("password", "$secret{ldap}"),
            ("base", "ou=Users,dc=wso2,dc=org"),
            ("filter", "(&(objectClass=person)(uid={user}))"),
            ("group_base", "ou=Groups,dc=wso2,dc=org"),
            ("group_filter", "(&(objectClass=groupOfNames)(uniqueMember={dn}))"),
        ] {
            assert_eq!(found[name].as_str(), Some(wanted), "{name}");
        }
        // As API Manager writes it.
        let long = "[user_store]\ntype = 'active_directory'\n[user_store.properties]\nConnectionURL = 'ldap://127.0.0.1:389'\nAnonymousBind = 'true'\n\
                    ConnectionName = 'cn=x'\nConnectionPassword = 'y'\nUserSearchBase = 'cn=Users,dc=a'\nUserNameAttribute = 'sAMAccountName'\n\
                    MemberOfAttribute = 'memberOf'\n";
        let found = ldap(long);
        assert_eq!(found["filter"].as_str(), Some("(&(objectClass=person)(sAMAccountName={user}))"));
        assert_eq!(found["group_attribute"].as_str(), Some("memberOf"));
        assert!(!found.contains_key("bind") && !found.contains_key("group_base"));
        let pattern = "[user_store]\nconnection_url = 'ldap://localhost:10389'\nuser_dn_pattern = 'uid={0},ou=Users'\nread_groups = false\ngroup_search_base = 'ou=g'\n";
        let found = ldap(pattern);
        assert_eq!(found["user"].as_str(), Some("uid={user},ou=Users"));
        assert!(!found.contains_key("group_base") && !found.contains_key("base"));
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        for text in ["", "[user_store]\ntype = 'read_only_ldap'\n", "[user_store]\ntype = 'database'\n"] {
            assert!(of(text).is_none(), "{text}");
        }
        for (more, wanted) in [
            ("connection_url = 'ldap://ldap.example:389'", "not ldaps"),
            ("connection_url = 'jdbc:x'\ntype = 'database'", "no directory"),
            ("connection_url = '$env{LDAP}'", "fill in `connection_url`"),
            ("connection_url = 'ldaps://a'\nuser_name_search_filter = '(uid=x)'", "no ?"),
            ("connection_url = 'ldaps://a'\nuser_name_search_filter = '(uid=?'", "not a filter"),
            ("connection_url = 'ldaps://a'\nconnection_name = 'cn=x'", "go together"),
        ] {
            let why = of(&format!("[user_store]\n{more}\n")).unwrap().unwrap_err();
            assert!(why.contains(wanted), "{more}: {why}");
        }
        for (key, read) in [
            ("user_store.connection_url", true),
            ("user_store.properties.UserNameSearchFilter", true),
            ("user_store.scim_enabled", false),
            ("user_store.properties.connection_url", false),
            ("other.connection_url", false),
        ] {
            assert_eq!(is_read(key), read, "{key}");
        }
    }

    #[test]
    fn a_store_without_its_secret_is_given_up() {
        let with =
            || -> Table { "[access.user_store]\nusers = true\n[access.b]\nusers = true\n".parse().unwrap() };
        let (mut table, mut filled, mut remarks) = (with(), with(), Vec::new());
        let mut missing = vec![
            "access.user_store.ldap.password: there is no secret x".to_owned(),
            "access.b: y".to_owned(),
        ];
        give_up([&mut table, &mut filled], &mut missing, &mut remarks);
        assert_eq!(missing, ["access.b: y"]);
        assert!(remarks[0].contains("no secret x"), "{remarks:?}");
        for table in [table, filled] {
            assert_eq!(table["access"].as_table().unwrap().len(), 1);
        }
    }
}
