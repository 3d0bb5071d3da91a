//! A process of its own, because the bound is one for the process.

use busbar_meter as meter;
use meter::Stop;
use std::time::Duration;

/// What goes on making things ends before the system ends the process.
#[test]
fn a_run_ends_where_the_memory_is_nearly_used_up() {
    let run = |made: usize| {
        let mut kept = Vec::new();
        let (result, used) = meter::within(Duration::from_secs(60), None, || {
            while kept.len() < made {
                kept.push(vec![1_u8; 1 << 20]);
                meter::spend_bytes(1 << 20)?;
            }
            Ok(())
        });
        assert_eq!(result.err(), used.stopped);
        (used.stopped, kept.len())
    };
    assert_eq!(run(100), (None, 100));
    if cfg!(target_os = "linux") {
        meter::memory::set_most(Some(256 << 20), None);
        let (stopped, kept) = run(4096);
        assert!(stopped == Some(Stop::Full) && (100..1000).contains(&kept), "{stopped:?} {kept}");
        // Afterwards there is room again, and without a bound there is always.
        assert_eq!(run(10), (None, 10));
        meter::memory::set_most(None, None);
        assert_eq!(run(500), (None, 500));
    }
}
