//! Which steps of artifacts ran while a suite did.

use flow::Bus;
use flow::observe::Profile;
use flow::observers::ALL;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// The steps of an artifact.
pub struct Coverage {
    /// The file of the artifact.
    pub file: PathBuf,
    /// In the order of the file.
    pub steps: Vec<Step>,
}

/// A step.
pub struct Step {
    pub line: usize,
    pub column: usize,
    /// Its element name.
    pub name: &'static str,
    pub has_run: bool,
}

impl Coverage {
    /// How many steps ran.
    pub fn run(&self) -> usize {
        self.steps.iter().filter(|step| step.has_run).count()
    }
}

/// Sees steps from now on.
pub fn begin(bus: &Bus) {
    bus.services().observers.profile(ALL, true);
}

/// The steps of artifacts that have some; `written`: each copy of an artifact, and what it is of.
pub fn of(bus: &Bus, written: &[(PathBuf, PathBuf)]) -> Vec<Coverage> {
    let plan = bus.plan();
    let run: BTreeSet<String> =
        Profile::of(&bus.services()).steps().into_iter().map(|spent| spent.place).collect();
    let mut by_copy: HashMap<PathBuf, BTreeSet<(usize, usize, &'static str)>> = HashMap::new();
    for step in plan.steps() {
        let Some((file, line, column)) = parts(&plan.place(step.span)) else { continue };
        by_copy.entry(file).or_default().insert((line, column, step.name));
    }
    let mut each = |(copy, file): &(PathBuf, PathBuf)| {
        let steps = by_copy.remove(copy)?.into_iter().map(|(line, column, name)| Step {
            line,
            column,
            name,
            has_run: run.contains(&format!("{}:{line}:{column}", copy.display())),
        });
        Some(Coverage { file: file.clone(), steps: steps.collect() })
    };
    written.iter().filter_map(&mut each).collect()
}

/// `file:line:column`
fn parts(place: &str) -> Option<(PathBuf, usize, usize)> {
    let (rest, column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((Path::new(file).to_owned(), line.parse().ok()?, column.parse().ok()?))
}
