//! Where secrets are (`[vault]`), and secrets in settings: a value `$secret{alias}` is the secret of that alias, from wherever `[vault]` has it.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::{Table, Value};

/// What values contain that only a server of WSO2 can fill in.
const FILLED_IN: [&str; 4] = ["$env{", "$sys{", "$secret{", "{{"];

/// Whether a value of `deployment.toml` is one that only a server can fill in.
pub fn is_filled_in(value: &str) -> bool {
    FILLED_IN.iter().any(|mark| value.contains(mark))
}

/// `[vault]`: where secrets are.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Vault {
    /// One file for each secret, named by its alias.
    pub directory: Option<PathBuf>,
    /// The same for secrets of the kind `DOCKER`. Default `/run/secrets`.
    pub docker: Option<PathBuf>,
    /// The encrypted file of `busbar vault`. Its password is that of the environment variable `BUSBAR_VAULT_PASSWORD`, else the first line of
    /// `password_file`.
    pub file: Option<PathBuf>,
    /// See `file`.
    pub password_file: Option<PathBuf>,
    /// A HashiCorp Vault.
    pub hashicorp: Option<crate::hashicorp::Server>,
    /// What WSO2's tool encrypted secrets for: a file with the PEM key (PKCS #8) of the keystore, or a key of AES in hex.
    pub key: Option<PathBuf>,
}

/// Where secrets are.
///
/// # Errors
/// The key, or the encrypted file, cannot be read.
pub fn open(settings: &Vault, engine: &mut flow::Settings) -> Result<(), String> {
    engine.vault_directory = settings.directory.clone();
    if let Some(directory) = &settings.docker {
        engine.docker_secrets.clone_from(directory);
    }
    if let Some(file) = &settings.key {
        let key = flow::vault::Key::read(file).map_err(|why| format!("vault.key: {why}"))?;
        engine.vault_key = Some(Arc::new(key));
    }
    if let Some(file) = &settings.file {
        let why = "vault.file: there is no password: set BUSBAR_VAULT_PASSWORD, or vault.password_file";
        let password =
            flow::vault::password("BUSBAR_VAULT_PASSWORD", settings.password_file.as_deref())?.ok_or(why)?;
        let bytes = config::read_file(file)
            .map_err(|error| format!("vault.file: {} cannot be read: {error}", file.display()))?;
        let sealed =
            flow::vault::Sealed::open(&bytes, &password).map_err(|why| format!("vault.file: {why}"))?;
        engine.vault_sealed = Some(Arc::new(sealed));
    }
    Ok(())
}

/// The alias in `$secret{alias}`.
fn alias(text: &str) -> Option<&str> {
    text.trim().strip_prefix("$secret{")?.strip_suffix('}').map(str::trim)
}

fn names_any(value: &Value) -> bool {
    match value {
        Value::String(text) => alias(text).is_some(),
        Value::Array(list) => list.iter().any(names_any),
        Value::Table(table) => table.values().any(names_any),
        _ => false,
    }
}

/// Puts secrets in the place of their names, everywhere but in `[vault]`. Gives those that cannot be had: the setting, and why.
pub fn fill_in(settings: &mut Table, configuration: &Path) -> Vec<String> {
    if !settings.iter().any(|(name, value)| name != "vault" && names_any(value)) {
        return Vec::new();
    }
    let vault_settings = settings.get("vault").cloned().map(Vault::deserialize);
    let mut engine = flow::Settings::default();
    let opened = match vault_settings {
        None => Ok(()),
        Some(Ok(vault_settings)) => open(&vault_settings, &mut engine),
        Some(Err(error)) => Err(error.to_string()),
    };
    // A file is a configuration too; what WSO2 keeps beside it is in its directory.
    let root =
        if configuration.is_file() { configuration.parent().unwrap_or(configuration) } else { configuration };
    let vault =
        flow::vault::Vault::new(engine.vault_directory, engine.docker_secrets, engine.vault_key, root)
            .with_sealed(engine.vault_sealed);
    let mut missing = Vec::new();
    for (name, value) in settings.iter_mut().filter(|(name, _)| *name != "vault") {
        replace(
            name,
            value,
            &mut |alias| {
                opened.clone()?;
                vault.look_up(alias, None, None).map_err(|refused| refused.why)
            },
            &mut missing,
        );
    }
    missing
}

fn replace(
    name: &str,
    value: &mut Value,
    look_up: &mut dyn FnMut(&str) -> Result<String, String>,
    missing: &mut Vec<String>,
) {
    match value {
        Value::String(text) => {
            let Some(alias) = alias(text) else { return };
            match look_up(alias) {
                Ok(secret) => *text = secret,
                Err(why) => missing.push(format!("{name}: {why}")),
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| replace(name, item, look_up, missing)),
        Value::Table(table) => {
            for (key, value) in table {
                replace(&format!("{name}.{key}"), value, look_up, missing);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_secrets_by_their_aliases() {
        let root = std::env::temp_dir().join(format!("busbar-settings-secrets-{}", std::process::id()));
        std::fs::create_dir_all(root.join("secrets")).unwrap();
        std::fs::write(root.join("secrets/one"), "opensesame\n").unwrap();
        let text = format!(
            "[vault]\ndirectory = '{}'\n[http.users]\nalice = '$secret{{one}}'\nbob = 'not $secret{{one}}'\ncarol = '$secret{{two}}'\n\
             [[proxy]]\naddress = 'p:1'\npassword = ' $secret{{ one }} '\n",
            root.join("secrets").display()
        );
        let mut table: Table = text.parse().unwrap();
        let missing = fill_in(&mut table, &root);
        assert_eq!(table["http"]["users"]["alice"].as_str(), Some("opensesame"));
        assert_eq!(table["http"]["users"]["bob"].as_str(), Some("not $secret{one}"));
        assert_eq!(table["proxy"][0]["password"].as_str(), Some("opensesame"));
        assert_eq!(missing.len(), 1);
        assert!(missing[0].starts_with("http.users.carol: there is no secret two"), "{missing:?}");
        std::fs::remove_dir_all(root).unwrap();
    }
}
