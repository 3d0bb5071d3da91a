//! The `busbar` binary. Each verb is one file in [`verbs`]; this file only names them.

use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod access;
mod bus;
mod certificate;
#[cfg(test)]
mod docs;
mod excerpt;
mod explanation;
mod fetch;
mod fix;
mod generations;
mod hashicorp;
mod listeners;
mod load;
mod memory;
mod migration;
mod ocsp;
mod proxies;
#[cfg(test)]
mod reference;
mod reload;
mod remote;
mod round;
mod secrets;
mod secured;
mod server;
mod server_settings;
mod settings;
mod settings_file;
mod snapshot;
mod suites;
mod switches;
mod temporary;
mod tunables;
mod units;
mod user_store;
mod verbs;
mod watch;
mod words;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An enterprise service bus: runs Apache Synapse / WSO2 ESB configuration as it is written.
#[derive(Parser)]
#[command(name = "busbar", version = env!("VERSION_OF_BUILD"), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(verbs::run::Args),
    Demo(verbs::demo::Args),
    Backend(verbs::backend::Args),
    Check(verbs::check::Args),
    Explain(verbs::explain::Args),
    Schema(verbs::schema::Args),
    Xslt(verbs::xslt::Args),
    Xpath(verbs::xpath::Args),
    Xml(verbs::xml::Args),
    Bench(verbs::bench::Args),
    Jsonpath(verbs::jsonpath::Args),
    Validate(verbs::validate::Args),
    Test(verbs::test::Args),
    Migrate(verbs::migrate::Args),
    Vault(verbs::vault::Args),
}

fn main() -> ExitCode {
    memory::spare_addresses();
    // Where the system refuses, the limit stays, and connections are fewer.
    let _ = transport::raise_descriptor_limit();
    match Cli::parse().verb {
        Verb::Run(args) => verbs::run::run(args),
        Verb::Demo(args) => verbs::demo::run(args),
        Verb::Backend(args) => verbs::backend::run(args),
        Verb::Check(args) => verbs::check::run(args),
        Verb::Explain(args) => verbs::explain::run(args),
        Verb::Xslt(args) => verbs::xslt::run(args),
        Verb::Xpath(args) => verbs::xpath::run(args),
        Verb::Xml(args) => verbs::xml::run(args),
        Verb::Bench(args) => verbs::bench::run(args),
        Verb::Jsonpath(args) => verbs::jsonpath::run(args),
        Verb::Schema(args) => verbs::schema::run(args),
        Verb::Validate(args) => verbs::validate::run(args),
        Verb::Test(args) => verbs::test::run(args),
        Verb::Migrate(args) => verbs::migrate::run(args),
        Verb::Vault(args) => verbs::vault::run(args),
    }
}
