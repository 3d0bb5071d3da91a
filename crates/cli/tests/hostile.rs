//! Absent, empty, wrong-typed, broken and huge input through each mediator: the example of its page with what
//! `tests::hostile` sends. Each request is answered once and in time, the process lives, the next good request is right, and the
//! outcome is the one that `hostile.txt` beside the example says.
//!
//! * `BUSBAR_HOSTILE=write` writes these tables anew. Read each line: is it what an administrator would expect?
//! * `BUSBAR_CASES=filter,clone` runs only those.

use std::path::Path;
use std::sync::Mutex;
use tests::bus::Program;
use tests::case::Case;
use tests::hostile::{LIMIT, Table, outcomes, write};
use tests::suite::say;

#[test]
fn every_mediator_answers_whatever_comes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/mediators");
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    let only: Vec<String> = env("BUSBAR_CASES").split(',').map(|name| format!("mediators/{name}")).collect();
    let only = if env("BUSBAR_CASES").is_empty() { Vec::new() } else { only };
    let binary = env!("CARGO_BIN_EXE_busbar");
    let program = Program::Shell(format!(
        "'{binary}' run {{config}} --http 127.0.0.1:{{port}} --admin 127.0.0.1:0 --workers 1 --trace '*' --set log.payload=16 --set limits.body={LIMIT}"
    ));

    let mut folders: Vec<_> =
        std::fs::read_dir(folder).expect("there are cases").flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join("case.json").is_file());
    folders.sort();
    let queue = Mutex::new(folders.iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(folder) = queue.lock().expect("no panic holds it").next() else { break };
                    let case = Case::read(folder).expect("a case can be read");
                    if only.is_empty() || only.contains(&case.spec.id) {
                        let found = run(&case, &program);
                        wrong.lock().expect("no panic holds it").extend(found);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic holds it");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is not as the table says.
fn run(case: &Case, program: &Program) -> Vec<String> {
    let id = &case.spec.id;
    let file = case.folder.join("hostile.txt");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let table = match Table::parse(&text) {
        Ok(table) => table,
        Err(error) => return vec![format!("{id}: {error}")],
    };
    let mut found = Table::default();
    let writes = std::env::var("BUSBAR_HOSTILE").is_ok_and(|value| value == "write");
    let outcome = case.run_then(program, &mut |run| {
        let mediator = id.rsplit('/').next().unwrap_or(id);
        found = outcomes(run, &case.spec.steps[0], &table, mediator, writes)?;
        Ok(())
    });
    say(&format!("{id}: {:.1} s", outcome.elapsed.as_secs_f32()));
    if let Some(failure) = outcome.failure {
        return vec![format!("{id}: {failure}\n{}", outcome.log)];
    }
    if writes && found != table {
        std::fs::write(&file, write(&found)).expect("the table can be written");
        return Vec::new();
    }
    let mut wrong: Vec<String> = found
        .unreached
        .iter()
        .filter(|name| !table.unreached.contains(name))
        .map(|name| format!("{id}: {name} does not reach the mediator"))
        .collect();
    // A table most of whose bodies stop ahead of the mediator says nothing about it.
    if 2 * table.unreached.len() > table.outcomes.len() {
        wrong.push(format!("{id}: most bodies do not reach the mediator"));
    }
    let differs = found.outcomes.iter().filter(|(name, outcome)| table.outcomes.get(*name) != Some(outcome));
    wrong.extend(differs.map(|(name, outcome)| {
        format!("{id}: {name} gives {outcome:?}, not {:?}", table.outcomes.get(name))
    }));
    wrong
}
