//! The file connector with `enableStreaming`: bodies that are read and written as they come.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use flow::testing::{Ended, Tested};
use message::{BodyError, BodyStream, Format, Reading};
use std::any::Any;
use std::collections::VecDeque;
use std::fs;
use std::task::{Context, Poll};
use support::place::Place;
use support::{XML, main};

/// A directory for one test.
fn prepared(name: &str) -> Place {
    Place::new(&format!("streaming-{name}"))
}

impl Place {
    fn tested(&self, steps: &str) -> Tested {
        let tested = main(&format!(
            "{steps}<!--top--><localEntry key='disk'><file.init><connectionType>LOCAL</connectionType><workingDir>{}</workingDir></file.init></localEntry>",
            self.0.display()
        ));
        assert!(tested.found.is_empty(), "{steps}: {:?}", tested.found);
        tested
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }
}

/// A body that comes in parts; an absent one is the end of a connection.
struct Parts(VecDeque<Option<&'static str>>, Vec<u8>);

impl BodyStream for Parts {
    fn buffered(&self) -> &[u8] {
        &self.1
    }

    fn poll_more(&mut self, _: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        Poll::Ready(match self.0.pop_front() {
            Some(Some(part)) => {
                self.1.extend_from_slice(part.as_bytes());
                Ok(true)
            }
            Some(None) => Err(BodyError::Truncated),
            None => Ok(false),
        })
    }

    fn consume(&mut self, n: usize) {
        self.1.drain(..n);
    }

    fn is_complete(&self) -> bool {
        self.0.is_empty()
    }

    fn exact_len(&self) -> Option<u64> {
        None
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

const TEXT: (&str, &str) = ("Content-Type", "text/plain");

fn run(tested: &Tested, parts: &[Option<&'static str>]) -> Ended {
    let body = Parts(parts.iter().copied().collect(), Vec::new());
    tested.run_with(&[TEXT], "", |context| {
        let reading = Reading::of(Some("text/plain"), None, true);
        context.payload.set_stream(Box::new(body), reading);
    })
}

fn write(inside: &str) -> String {
    format!("<file.write configKey='disk'><enableStreaming>true</enableStreaming>{inside}</file.write>")
}

fn read(inside: &str) -> String {
    format!("<file.read configKey='disk'><enableStreaming>true</enableStreaming>{inside}</file.read>")
}

fn code(end: &Ended) -> String {
    end.property("ERROR_CODE").unwrap_or_default()
}

#[test]
fn bodies_are_written_as_they_come() {
    let place = prepared("write");
    place.put("old", "old\n");
    for (inside, file, wanted) in [
        ("<filePath>a</filePath>", "a", "one two"),
        (
            "<filePath>a</filePath><writeMode>Overwrite</writeMode><appendNewLine>true</appendNewLine>",
            "a",
            "one two\n",
        ),
        ("<filePath>sub/a</filePath><writeMode>Create New</writeMode>", "sub/a", "one two"),
        ("<filePath>old</filePath><writeMode>Append</writeMode>", "old", "old\none two"),
        (
            "<filePath>old</filePath><writeMode>Append</writeMode><appendNewLine>true</appendNewLine>",
            "old",
            "old\none twoone two\n",
        ),
    ] {
        let steps = write(&format!("{inside}<responseVariable>r</responseVariable>"));
        let mut end = run(&place.tested(&steps), &[Some("one "), Some("two")]);
        assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        assert_eq!(place.read(file).as_deref(), Some(wanted), "{inside}");
        let length = if inside.contains("appendNewLine") { 8 } else { 7 };
        let result = end.context.variables.get("r").unwrap().to_string();
        assert!(result.contains(&format!("\"writtenBytes\":{length}")), "{result}");
        // The message goes on with what it had.
        assert_eq!(end.write(Format::Text), "one two", "{inside}");
    }
    let mut end = run(&place.tested(&write("<filePath>a</filePath>")), &[Some("x")]);
    assert_eq!(
        end.outcome().unwrap(),
        "<writeResult><success>true</success><writtenBytes>1</writtenBytes></writeResult>"
    );
    let end = run(&place.tested(&write("<filePath>z.txt</filePath><compress>true</compress>")), &[Some("x")]);
    assert_eq!(end.fault(), None);
    let mut archive = zip::ZipArchive::new(fs::File::open(place.0.join("z.zip")).unwrap()).unwrap();
    assert_eq!(std::io::read_to_string(archive.by_name("z.txt").unwrap()).unwrap(), "x");
    assert_eq!(place.names_in(""), ["a", "old", "sub", "z.zip"]);
}

#[test]
fn a_body_that_does_not_arrive_or_fit_leaves_nothing() {
    let place = prepared("fails");
    place.put("a", "before");
    place.put("b", "before");
    for mode in ["Overwrite", "Append"] {
        let steps = write(&format!("<filePath>a</filePath><writeMode>{mode}</writeMode>"));
        let end = run(&place.tested(&steps), &[Some("half"), None]);
        assert!(end.fault().is_some());
        assert_eq!(
            (place.read("a").as_deref(), place.names_in("")),
            (Some("before"), vec!["a".to_owned(), "b".to_owned()])
        );
    }
    for (inside, wanted) in [
        ("<filePath>b</filePath><writeMode>Create New</writeMode>", "700103"),
        ("<filePath>none</filePath><writeMode>Append</writeMode>", "700102"),
        ("<filePath>../x</filePath>", "700102"),
        ("<filePath>none/x</filePath><createParentDirectories>false</createParentDirectories>", "700102"),
        ("<filePath>/</filePath>", "700102"),
    ] {
        let steps = write(&format!("{inside}<responseVariable>r</responseVariable>"));
        let mut end = run(&place.tested(&steps), &[Some("new")]);
        assert_eq!(code(&end), wanted, "{inside}: {:?}", end.property("ERROR_DETAIL"));
        // Nothing of it was used.
        assert_eq!(end.write(Format::Text), "new", "{inside}");
    }
    assert_eq!(place.names_in(""), ["a", "b"]);
    // A disk that is full.
    let tested = main(
        "<file.write configKey='disk'><enableStreaming>true</enableStreaming><filePath>full</filePath></file.write><!--top-->
         <localEntry key='disk'><file.init><workingDir>/dev</workingDir></file.init></localEntry>",
    );
    assert_eq!(code(&run(&tested, &[Some("x")])), "700108");
}

#[test]
fn bodies_that_have_to_be_changed_are_received() {
    let place = prepared("changed");
    // Another type than that of the body, and a body that somebody looked at.
    for (steps, wanted) in [
        ("<property name='messageType' scope='axis2' value='application/json'/>", "{}"),
        ("<property name='x' expression='//a'/>", "<a>1</a>"),
    ] {
        let tested = place.tested(&format!("{steps}{}", write("<filePath>a</filePath>")));
        let end = tested.run(&[XML], if wanted == "{}" { "<a/>" } else { "<a>1</a>" });
        assert_eq!(end.fault(), None, "{steps}: {:?}", end.property("ERROR_DETAIL"));
        assert!(
            place.read("a").unwrap().contains(if wanted == "{}" { "\"a\"" } else { wanted }),
            "{:?}",
            place.read("a")
        );
    }
}

#[test]
fn files_are_bodies_that_are_read_as_they_are_used() {
    let place = prepared("read");
    place.put("a.txt", "one\ntwo\nthree\n");
    place.put("empty.txt", "");
    for (inside, wanted) in [
        ("<path>a.txt</path>", "one\ntwo\nthree\n"),
        (
            "<path>a.txt</path><readMode>Starting From Line</readMode><startLineNum>2</startLineNum>",
            "two\nthree\n",
        ),
        ("<path>a.txt</path><readMode>Up To Line</readMode><endLineNum>2</endLineNum>", "one\ntwo"),
        (
            "<path>a.txt</path><readMode>Between Lines</readMode><startLineNum>2</startLineNum><endLineNum>3</endLineNum>",
            "two\nthree",
        ),
        ("<path>a.txt</path><readMode>Specific Line</readMode><lineNum>3</lineNum>", "three"),
        ("<path>a.txt</path><readMode>Specific Line</readMode><lineNum>9</lineNum>", ""),
        ("<path>empty.txt</path>", ""),
        ("<path>empty.txt</path><readMode>Specific Line</readMode><lineNum>1</lineNum>", ""),
        ("<path>a.txt</path><enableLock>true</enableLock>", "one\ntwo\nthree\n"),
    ] {
        for more in ["", "<responseVariable>r</responseVariable><overwriteBody>true</overwriteBody>"] {
            let mut end = place.tested(&read(&format!("{inside}{more}"))).run(&[XML], "<x/>");
            assert_eq!(end.fault(), None, "{inside}: {:?}", end.property("ERROR_DETAIL"));
            assert_eq!(end.write(Format::Text), wanted, "{inside}");
            assert_eq!(end.context.headers.get("Content-Type"), Some("text/plain"));
        }
    }
    // A variable has to have all of it.
    let end =
        place.tested(&read("<path>a.txt</path><responseVariable>r</responseVariable>")).run(&[XML], "<x/>");
    assert!(end.context.variables.get("r").unwrap().to_string().contains("three"));
    let end = place.tested(&read("<path>none.txt</path>")).run(&[XML], "<x/>");
    assert_eq!(code(&end), "700102");
}

#[test]
fn a_file_goes_from_name_to_name_and_into_itself() {
    let place = prepared("through");
    let text = "line\n".repeat(100_000);
    place.put("a", &text);
    let both = format!("{}{}", read("<path>a</path>"), write("<filePath>b</filePath>"));
    assert_eq!(place.tested(&both).run(&[XML], "<x/>").fault(), None);
    assert_eq!(place.read("b").as_deref(), Some(&*text));
    // What is read is what was there when it was opened.
    for mode in ["Overwrite", "Append"] {
        let itself = format!(
            "{}{}",
            read("<path>a</path>"),
            write(&format!("<filePath>a</filePath><writeMode>{mode}</writeMode>"))
        );
        assert_eq!(place.tested(&itself).run(&[XML], "<x/>").fault(), None);
        assert_eq!(place.read("a").unwrap().len(), text.len() * if mode == "Append" { 2 } else { 1 });
    }
    assert_eq!(place.names_in(""), ["a", "b"]);
}
