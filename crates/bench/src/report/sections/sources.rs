//! What was published, and how this was measured.

use crate::published::{self, SOURCES};
use crate::report::{Block, Section, Table, number, probability, size};
use crate::results::Run;

pub(super) fn published_figures(runs: &[Run]) -> Section {
    let mut section = Section::new("The published rounds");
    let machine =
        runs.first().map(|run| format!(" This run: {}, {} cores.", run.machine.processor, run.machine.cores));
    section.text(format!(
        "Their figures stand in the tables above as they were printed.{} Theirs:",
        machine.unwrap_or_default()
    ));
    section.blocks.push(Block::List(
        SOURCES
            .iter()
            .map(|source| format!("{}: {}. {}", source.title, source.machine, source.caution))
            .collect(),
    ));
    let mut table = Table::new(&["source", "", "of", "what", "as published", "remark"]);
    for condition in published::conditions() {
        let cells = [
            condition.round,
            condition.kind,
            condition.of,
            condition.what,
            condition.value,
            condition.remark,
        ];
        table.rows.push(cells.map(str::to_owned).to_vec());
    }
    section
        .blocks
        .push(Block::Folded("Machines, settings, methods and claims of the rounds".to_owned(), table));
    let mut table =
        Table::new(&["source", "system", "scenario", "message:", "clients:", "figure", "value:", "remark"]);
    for figure in published::figures() {
        table.rows.push(vec![
            figure.round.to_owned(),
            figure.name(),
            figure.scenario.to_owned(),
            figure.size.map_or("–".to_owned(), size),
            figure.clients.to_owned(),
            figure.metric.replace('_', " "),
            if figure.metric.starts_with("p_value") {
                probability(figure.value)
            } else {
                number(figure.value)
            },
            figure.remark.to_owned(),
        ]);
    }
    section.blocks.push(Block::Folded("All published figures".to_owned(), table));
    section
}

pub(super) fn conditions(runs: &[Run]) -> Section {
    let mut section = Section::new("How this was measured");
    section.text("The load generator is a closed loop: each client sends its next request when its last one was answered. A latency is the time from sending a request (or opening its connection) to the last byte of its answer. An answer counts if status, headers and body are what they must be. CPU is user plus system time of the system's process for each right answer.");
    let mut table = Table::new(&[
        "method",
        "begun",
        "minutes:",
        "Busbar",
        "processor",
        "cores:",
        "MiB:",
        "system",
        "load before:",
    ]);
    let mut systems = Table::new(&["method", "system", "version", "warm-up, s:", "command"]);
    for run in runs {
        let machine = &run.machine;
        table.rows.push(vec![
            if run.quick { format!("{} (quick)", run.method) } else { run.method.clone() },
            run.begun.clone(),
            number(run.took / 60.0),
            run.version.clone(),
            machine.processor.clone(),
            machine.cores.to_string(),
            machine.memory.to_string(),
            machine.system.clone(),
            number(machine.load),
        ]);
        for system in &run.systems {
            systems.rows.push(vec![
                run.method.clone(),
                system.name.clone(),
                system.version.clone(),
                number(system.warm_up),
                system.command.clone(),
            ]);
        }
    }
    section.table(table);
    section.table(systems);
    let mut commands: Vec<&str> =
        runs.iter().map(|run| run.command.as_str()).filter(|command| !command.is_empty()).collect();
    commands.dedup();
    if !commands.is_empty() {
        section.text("Again with:");
        section.blocks.push(Block::Code(commands.join("\n")));
    }
    let mut absent: Vec<String> = runs.iter().flat_map(|run| run.absent.clone()).collect();
    absent.dedup();
    if !absent.is_empty() {
        section.text("Not measured:");
        section.blocks.push(Block::List(absent));
    }
    section
}
