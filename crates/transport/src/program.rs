//! The pages of the program that only its start needed.

#![deny(unsafe_op_in_unsafe_fn)]

use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

use rustix::mm::{Advice, madvise};

/// Unmaps the code of this program, and returns how many bytes of addresses that were. What runs from here on is mapped again when it is called,
/// without a disk, since its pages stay in the page cache.
///
/// To be called when the program serves. Reading the configuration and compiling it touches a third of the code once, and the kernel maps 64 KiB
/// around each page that is touched: of 27 MiB that were resident in an idle bus, 17 were code.
///
/// # Errors
/// The mappings of the process cannot be read, or the kernel refuses.
pub fn unmap_start() -> io::Result<usize> {
    let program = std::env::current_exe()?;
    let mut bytes = 0;
    for line in BufReader::new(std::fs::File::open("/proc/self/maps")?).lines() {
        if let Some(code) = code_of(&line?, &program) {
            unmap(&code)?;
            bytes += code.len();
        }
    }
    Ok(bytes)
}

/// The addresses of a line of proc_pid_maps(5), if they are code of `program` that nobody can write.
fn code_of(line: &str, program: &Path) -> Option<Range<usize>> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let is_code = words.next()? == "r-xp";
    let path = words.nth(3)?.trim_start();
    let address = |text| usize::from_str_radix(text, 16).ok();
    (is_code && Path::new(path) == program).then_some(address(start)?..address(end)?)
}

#[allow(unsafe_code)]
fn unmap(code: &Range<usize>) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut(code.start);
    // SAFETY: the kernel has just named these addresses as a mapping of the program's file that cannot be written. It stays mapped, and no page of it
    // differs from the file, which cannot be written either while it runs: whoever reads or runs it next gets the same bytes.
    unsafe { madvise(start, code.len(), Advice::LinuxDontNeed) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_is_found() {
        let of = |line| code_of(line, Path::new("/opt/bus bar/busbar"));
        assert_eq!(
            of("55d0-55f0 r-xp 00001000 fe:00 123                 /opt/bus bar/busbar"),
            Some(0x55d0..0x55f0)
        );
        for other in [
            "55d0-55f0 r--p 00001000 fe:00 123                 /opt/bus bar/busbar",
            "55d0-55f0 rwxp 00001000 fe:00 123                 /opt/bus bar/busbar",
            "55d0-55f0 r-xp 00001000 fe:00 123                 /lib/libc.so.6",
            "55d0-55f0 r-xp 00001000 fe:00 123                 /opt/bus bar/busbar (deleted)",
            "55d0-55f0 r-xp 00000000 00:00 0 ",
            "55d0-55f0 r-xp 00000000 00:00 0                  [vdso]",
            "55d0-zzzz r-xp 00001000 fe:00 123                 /opt/bus bar/busbar",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn what_runs_goes_on() {
        let before = only_code_of_the_program_is_found as fn();
        assert!(unmap_start().unwrap() > 0);
        before();
    }
}
