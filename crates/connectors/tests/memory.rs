//! What operations take of memory for large files and bodies, as the system counts it. One test, so that nothing else runs meanwhile.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use flow::testing::Tested;
use std::fs;
use std::io::Write;
use std::time::Duration;

/// The most that this process has had in memory since [`forget`], in MiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}

/// Time is not what is tested: a busy machine may take long.
fn main(mediators: &str) -> Tested {
    flow::testing::main_with(&support::registry(), mediators, |services| {
        services.settings.script_time = Duration::from_secs(600);
    })
}

/// From now on the peak is counted anew.
fn forget() -> u64 {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    peak()
}

#[test]
fn large_files_and_bodies_take_little() {
    let directory = std::env::temp_dir().join(format!("busbar-memory-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(directory.join("in")).unwrap();
    let large = 300 << 20;
    {
        let mut file = std::io::BufWriter::new(fs::File::create(directory.join("in/large.txt")).unwrap());
        let line = [b"0123456789abcdef".repeat(64), b"\n".to_vec()].concat();
        for _ in 0..large / line.len() {
            file.write_all(&line).unwrap();
        }
    }
    let stream = "<enableStreaming>true</enableStreaming>";
    for (name, steps) in [
        ("read and write", format!("<file.read configKey='d'><path>in/large.txt</path>{stream}</file.read><file.write configKey='d'><filePath>out</filePath>{stream}</file.write>")),
        ("append", format!("<file.read configKey='d'><path>in/large.txt</path>{stream}</file.read><file.write configKey='d'><filePath>out</filePath><writeMode>Append</writeMode>{stream}</file.write>")),
        ("lines", format!("<file.read configKey='d'><path>in/large.txt</path><readMode>Starting From Line</readMode><startLineNum>100</startLineNum>{stream}</file.read><file.write configKey='d'><filePath>out</filePath>{stream}</file.write>")),
        ("copy", "<file.copy configKey='d'><sourcePath>in/large.txt</sourcePath><targetPath>copied</targetPath></file.copy>".to_owned()),
        ("compress", "<file.compress configKey='d'><sourceDirectoryPath>in</sourceDirectoryPath><targetFilePath>a.zip</targetFilePath></file.compress>".to_owned()),
        ("unzip", "<file.unzip configKey='d'><sourceFilePath>a.zip</sourceFilePath><targetDirectory>un</targetDirectory></file.unzip>".to_owned()),
        ("split", "<file.splitFile configKey='d'><sourceFilePath>in/large.txt</sourceFilePath><targetDirectory>parts</targetDirectory><splitMode>Line Count</splitMode><lineCount>100000</lineCount></file.splitFile>".to_owned()),
        ("merge", "<file.mergeFiles configKey='d'><sourceDirectoryPath>parts</sourceDirectoryPath><targetFilePath>merged</targetFilePath><writeMode>Overwrite</writeMode></file.mergeFiles>".to_owned()),
    ] {
        let tested = main(&format!(
            "{steps}<!--top--><localEntry key='d'><file.init><workingDir>{}</workingDir></file.init></localEntry>",
            directory.display()
        ));
        let before = forget();
        let end = tested.run(&[support::XML], "<a/>");
        let after = peak();
        assert_eq!(end.fault(), None, "{name}: {:?}", end.property("ERROR_DETAIL"));
        eprintln!("{name}: {before} MiB before, {after} MiB at most");
        assert!(after < before + 40, "{name}: from {before} MiB to {after} MiB");
    }
    let sizes = |name: &str| fs::metadata(directory.join(name)).unwrap().len();
    assert_eq!((sizes("in/large.txt"), sizes("copied/large.txt")), (sizes("merged"), sizes("un/large.txt")));
    fs::remove_dir_all(&directory).unwrap();

    // CSV: the body, and the result with what it grows by.
    for (operation, most) in [("csvToJson", 10), ("csvToXml", 12), ("csvToCsv", 5)] {
        let mut grown = Vec::new();
        for rows in [200_000, 400_000] {
            let body: String = (0..rows).map(|n| format!("{n},name {n},x\n")).collect();
            let tested = main(&format!("<CSV.{operation}/>"));
            let before = forget();
            let end = tested.run(&[("Content-Type", "text/csv")], &body);
            grown.push((peak() - before) / (body.len() as u64 >> 20).max(1));
            assert_eq!(end.fault(), None);
        }
        eprintln!("{operation}: {grown:?} times the body");
        assert!(grown.iter().all(|times| *times <= most), "{operation}: {grown:?} times the body");
    }
}
