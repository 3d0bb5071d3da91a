//! Secrets: the vault from outside.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PASSWORD: &str = "vault-password-1";

fn folder(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("secrets-{name}"));
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    root
}

/// `busbar vault`: exit code, standard output, standard error.
fn vault(arguments: &[&str], variables: &[(&str, &str)], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .arg("vault")
        .args(arguments)
        .env_remove("BUSBAR_VAULT_PASSWORD")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

#[test]
fn a_vault_is_kept_by_its_commands() {
    use std::os::unix::fs::PermissionsExt;
    let root = folder("commands");
    let file = root.join("secrets.vault");
    let file = file.to_str().unwrap();
    let with = [("BUSBAR_VAULT_PASSWORD", PASSWORD)];
    let run = |arguments: &[&str], input: &str| vault(arguments, &with, input);
    assert_eq!(run(&["create", file], ""), (0, String::new(), String::new()));
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(run(&["create", file], "").2.contains("secrets.vault"), "it is not written over");
    assert_eq!(run(&["set", file, "db"], "opensesame\n").0, 0);
    assert_eq!(run(&["set", file, "api"], "two\nlines\r\n").0, 0);
    assert_eq!(run(&["list", file], "").1, "api\ndb\n");
    assert_eq!(run(&["get", file, "db"], "").1, "opensesame");
    assert_eq!(run(&["get", file, "api"], "").1, "two\nlines");
    assert_eq!(run(&["remove", file, "api"], "").0, 0);
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let passwords = root.join("password");
    std::fs::write(&passwords, format!("{PASSWORD}\nmore\n")).unwrap();
    let by_file = ["list", file, "--password-file", passwords.to_str().unwrap()];
    assert_eq!(vault(&by_file, &[], "").1, "db\n");
    for (arguments, variables, input, wanted) in [
        (&["get", file, "api"][..], &with[..], "", "there is no secret api"),
        (&["remove", file, "api"], &with, "", "there is no secret api"),
        (&["set", file, "db"], &with, "", "no secret came"),
        (&["set", file, "a b"], &with, "x", "no name of a secret"),
        (&["list", file], &[], "", "there is no password"),
        (&["list", file], &[("BUSBAR_VAULT_PASSWORD", "another one")], "", "is wrong"),
        (&["list", "/no/such/file"], &with, "", "/no/such/file"),
        (&["password", file], &with, "", "there is no new password"),
    ] {
        let (code, out, errors) = vault(arguments, variables, input);
        assert!(code == 1 && out.is_empty() && errors.contains(wanted), "{arguments:?}: {errors}");
        assert!(!errors.contains("opensesame") && !errors.contains(PASSWORD), "{errors}");
    }
    let both = [("BUSBAR_VAULT_PASSWORD", PASSWORD), ("BUSBAR_VAULT_NEW_PASSWORD", "vault-password-2")];
    assert_eq!(vault(&["password", file], &both, "").0, 0);
    assert_eq!(run(&["list", file], "").0, 1);
    assert_eq!(
        vault(&["get", file, "db"], &[("BUSBAR_VAULT_PASSWORD", "vault-password-2")], "").1,
        "opensesame"
    );
    let names: Vec<_> = std::fs::read_dir(&root).unwrap().flatten().map(|own| own.file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
