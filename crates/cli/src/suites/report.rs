//! What came of suites, for people and for machines.

use super::{CaseOutcome, Coverage, Failure, Outcome};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// So many lines of the log are shown with a test, and so many steps that did not run.
const SHOWN: usize = 10;

/// A suite, and what came of it.
pub struct Ran<'a> {
    pub file: &'a Path,
    pub outcome: Outcome,
}

/// For people. `coverage`: with the steps that ran.
pub fn human(ran: &Ran<'_>, coverage: bool) -> String {
    let mut out = format!("{}\n", ran.file.display());
    if let Some(why) = &ran.outcome.broken {
        out += &format!("  cannot run: {}\n", why.trim_end().replace('\n', "\n  "));
    } else if ran.outcome.cases.is_empty() {
        out += "  it has no tests\n";
    }
    for case in &ran.outcome.cases {
        out += &format!("  {} {}\n", if case.passed() { "ok    " } else { "FAILED" }, case.name);
        if !case.passed() {
            out += &reasons(case);
        }
    }
    for artifact in ran.outcome.coverage.iter().filter(|_| coverage) {
        out += &covered(artifact);
    }
    out
}

/// Why a test does not pass.
fn reasons(case: &CaseOutcome) -> String {
    let mut out = String::new();
    if let Some(why) = &case.failed {
        out += &format!("         {why}\n");
    }
    for failure in &case.failures {
        out += &shown(failure);
    }
    for line in case.log.iter().take(SHOWN) {
        out += &format!("         log       {line}\n");
    }
    if let Some(more) = case.log.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        out += &format!("         log       and {more} more lines\n");
    }
    out
}

fn shown(failure: &Failure) -> String {
    let one_line = |text: &str| text.trim().replace('\n', "\n                   ");
    let mut out = format!("         {} {}", failure.assertion, failure.expression);
    if !failure.message.is_empty() {
        out += &format!(": {}", failure.message);
    }
    if let Some(expected) = &failure.expected {
        out += &format!("\n         expected  {}", one_line(expected));
    }
    out + &format!(
        "\n         actual    {}\n",
        failure.actual.as_deref().map_or("(nothing)".to_owned(), one_line)
    )
}

fn covered(artifact: &Coverage) -> String {
    let (run, all) = (artifact.run(), artifact.steps.len());
    let missed: Vec<String> = artifact
        .steps
        .iter()
        .filter(|step| !step.has_run)
        .map(|step| format!("{}:{} {}", step.line, step.column, step.name))
        .collect();
    let mut out = format!("  {run} of {all} steps ran in {}", artifact.file.display());
    if !missed.is_empty() {
        let more = missed.len().saturating_sub(SHOWN);
        out += &format!("; not {}", missed[..missed.len() - more].join(", "));
        if more > 0 {
            out += &format!(" and {more} more");
        }
    }
    out + "\n"
}

fn word(passed: bool) -> &'static str {
    if passed { "PASSED" } else { "FAILED" }
}

/// One JSON object, with the members that the server of WSO2 answers.
pub fn json(ran: &Ran<'_>) -> String {
    let Ran { file, outcome } = ran;
    let failure = |failure: &Failure| {
        json!({
            "assertionType": failure.assertion,
            "assertionExpression": failure.expression,
            "actual": failure.actual,
            "expected": failure.expected,
            "message": failure.message,
        })
    };
    let case = |case: &CaseOutcome| {
        json!({
            "testCaseName": case.name,
            "mediationStatus": word(case.failed.is_none()),
            "assertionStatus": if case.failed.is_some() { "SKIPPED" } else { word(case.failures.is_empty()) },
            "exception": case.failed,
            "failureAssertions": case.failures.iter().map(failure).collect::<Vec<_>>(),
            "log": case.log,
        })
    };
    let coverage = |artifact: &Coverage| {
        let (run, all) = (artifact.run(), artifact.steps.len());
        let details = artifact.steps.iter().map(|step| {
            json!({ "mediatorId": format!("{}:{} {}", step.line, step.column, step.name), "executed": step.has_run })
        });
        json!({
            "artifactName": artifact.file.display().to_string(),
            "executedMediators": run,
            "totalMediators": all,
            "coveragePercentage": format!("{:.2}", 100.0 * run as f64 / all as f64),
            "mediatorDetails": details.collect::<Vec<_>>(),
        })
    };
    let failed = outcome.cases.iter().find(|case| case.failed.is_some());
    json!({
        "suite": file.display().to_string(),
        "deploymentStatus": word(outcome.broken.is_none()),
        "deploymentException": outcome.broken,
        "mediationStatus": word(outcome.broken.is_none() && failed.is_none()),
        "mediationException": failed.and_then(|case| case.failed.as_ref()),
        "currentTestCase": outcome.cases.last().map(|case| &case.name),
        "testCases": outcome.cases.iter().map(case).collect::<Vec<_>>(),
        "mediatorCoverage": outcome.coverage.iter().map(coverage).collect::<Vec<_>>(),
    })
    .to_string()
}

/// The report that build servers read, as JUnit's runner for Ant writes it: one document for all suites.
pub fn junit(ran: &[Ran<'_>]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for Ran { file, outcome } in ran {
        let name = file.display().to_string();
        let failures = outcome.cases.iter().filter(|case| !case.passed()).count();
        let errors = usize::from(outcome.broken.is_some());
        let took: Duration = outcome.cases.iter().map(|case| case.took).sum();
        let tests = outcome.cases.len() + errors;
        // A String takes everything.
        let _ = writeln!(
            out,
            "<testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\" time=\"{:.3}\">",
            escaped(&name),
            took.as_secs_f64()
        );
        if let Some(why) = &outcome.broken {
            let _ = writeln!(
                out,
                "<testcase classname=\"{}\" name=\"it can run\" time=\"0\"><error message=\"cannot run\">{}</error></testcase>",
                escaped(&name),
                escaped(why)
            );
        }
        for case in &outcome.cases {
            let _ = write!(
                out,
                "<testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
                escaped(&name),
                escaped(&case.name),
                case.took.as_secs_f64()
            );
            let _ = match case.passed() {
                true => writeln!(out, "/>"),
                false => {
                    let first = case.failures.first().map(|failure| failure.message.as_str());
                    let first = case.failed.as_deref().or(first).unwrap_or_default();
                    let (first, text) = (escaped(first), escaped(&reasons(case)));
                    writeln!(out, "><failure message=\"{first}\">{text}</failure></testcase>")
                }
            };
        }
        out += "</testsuite>\n";
    }
    out + "</testsuites>\n"
}

/// A text within XML, also in attributes. What XML cannot have becomes a question mark.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' => out += "&#10;",
            '\t' => out.push(c),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}
