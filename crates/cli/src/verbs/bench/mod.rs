//! `busbar bench`: what Busbar is measured with. One file per command.

mod all;
mod budgets;
mod evaluate;
mod generator;
mod load;
mod messages;
mod profile;
mod project;
mod report;
mod round;
mod secured;
mod soak;
mod stage;
mod tune;
mod xslt;

use std::process::ExitCode;

/// Messages, scenarios and load, to measure a bus with.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Messages(messages::Args),
    Secured(secured::Args),
    Load(Box<load::Args>),
    Round(Box<round::Args>),
    Evaluate(Box<evaluate::Args>),
    Xslt(Box<xslt::Args>),
    Tune(tune::Args),
    Soak(soak::Args),
    Profile(profile::Args),
    Budgets(Box<budgets::Args>),
    Generator(generator::Args),
    All(Box<all::Args>),
    Project(project::Args),
    Report(report::Args),
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    let (name, done) = match args.what {
        Command::Messages(args) => ("messages", messages::run(&args).map(|()| true)),
        Command::Secured(args) => ("secured", secured::run(&args).map(|()| true)),
        Command::Load(args) => ("load", load::run(&args)),
        Command::Round(args) => ("round", round::run(&args)),
        Command::Evaluate(args) => ("evaluate", evaluate::run(&args)),
        Command::Xslt(args) => ("xslt", xslt::run(&args)),
        Command::Tune(args) => ("tune", tune::run(&args)),
        Command::Soak(args) => ("soak", soak::run(&args)),
        Command::Profile(args) => ("profile", profile::run(&args)),
        Command::Budgets(args) => ("budgets", budgets::run(&args)),
        Command::Generator(args) => ("generator", generator::run(&args)),
        Command::All(args) => ("all", all::run(&args)),
        Command::Project(args) => ("project", project::run(&args).map(|()| true)),
        Command::Report(args) => ("report", report::run(&args).map(|()| true)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("busbar bench {name}: {why}");
            ExitCode::FAILURE
        }
    }
}
