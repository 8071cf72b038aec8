//! An application as the engine sees it: something that is started, ends, and leaves one figure.
//!
//! It is run by the first canary. The other ranks that do not congest sleep meanwhile, for a rank that spins would take a
//! core from the program that is measured.

use std::time::Duration;

use tailback_transport::{Group, Proposal, Result};

use super::control::{Control, Ended};
use super::{LoadState, Tally};

/// How often a sleeping rank looks whether the others are there.
const NAP: Duration = Duration::from_millis(5);

/// Waits for an agreement without taking a core.
pub(super) fn asleep(world: &mut dyn Group) -> Result<Proposal> {
    loop {
        if let Some(agreed) = world.poll_agreement()? {
            return Ok(agreed);
        }
        std::thread::sleep(NAP);
    }
}

/// One repetition on the rank that starts it, into `tally`. What keeps it from a figure comes back; an interruption is
/// known by the control.
pub(super) fn repetition(control: &Control, phase: LoadState, tally: &mut Tally) -> std::result::Result<(), String> {
    let starter = control.starter.as_ref().ok_or("no application was given")?;
    let mut goes_on = || {
        control.monitor.tick();
        !control.interrupted()
    };
    match starter.once(&mut goes_on) {
        Ended::Well { figure, wall } => {
            (tally.figure, tally.wall_ns) = (Some(figure), wall.0);
            Ok(())
        }
        Ended::Interrupted => Err(String::new()),
        Ended::Badly(why) => {
            let (line, rest) = why.split_once('\n').map_or((why.as_str(), None), |(line, rest)| (line, Some(rest)));
            let rest = rest.map(|rest| format!("\n{rest}")).unwrap_or_default();
            Err(format!("{line} ({}){rest}", control.phase(Some(phase), "")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex};

    use tailback_engine::Collective;
    use tailback_testkit::loopback;
    use tailback_transport::{Error, Monitor, Nanos, Rank, Transport};

    use super::*;
    use crate::engine::{PhaseId, PhaseObserver, REAL_GRAIN, Starter};

    #[test]
    fn sleeping_members_agree_with_waking_ones() {
        let agreed = loopback::run(3, |_, raw| {
            let mut transport = Collective::new(raw);
            let members: Vec<Rank> = (0..3usize).map(Rank::from).collect();
            let mut group = transport.group(&members, 8)?;
            group.start_agreement([0, u64::from(group.rank().0 == 1), 0, 0])?;
            let agreed = if group.rank().0 == 0 { group.wait_agreement()? } else { asleep(&mut group)? };
            Ok::<_, Error>(agreed[1])
        });
        assert_eq!(agreed.unwrap(), [1, 1, 1]);
    }

    struct Nobody;

    impl PhaseObserver for Nobody {
        fn begins(&self, _: &PhaseId, _: Nanos) {}
        fn ends(&self) {}
    }

    struct Answers(Mutex<Vec<Ended>>);

    impl Starter for Answers {
        fn once(&self, goes_on: &mut dyn FnMut() -> bool) -> Ended {
            if goes_on() { self.0.lock().unwrap().remove(0) } else { Ended::Interrupted }
        }
    }

    fn control(answers: Vec<Ended>) -> Control {
        Control {
            monitor: Arc::new(Monitor::new()),
            interrupt: Arc::new(AtomicBool::new(false)),
            observer: Arc::new(Nobody),
            over: None,
            placement: Some((2, 5)),
            grain: REAL_GRAIN,
            length: None,
            starter: Some(Arc::new(Answers(Mutex::new(answers)))),
        }
    }

    #[test]
    fn a_repetition_leaves_its_figure_or_its_reason() {
        let control = control(vec![
            Ended::Well { figure: 4.5, wall: Nanos(7) },
            Ended::Badly("the application ended with exit code 3\n  | no such file".into()),
        ]);
        let mut tally = Tally::default();
        repetition(&control, LoadState::Loaded, &mut tally).unwrap();
        assert_eq!((tally.figure, tally.wall_ns), (Some(4.5), 7));
        let mut tally = Tally::default();
        let why = repetition(&control, LoadState::Loaded, &mut tally).unwrap_err();
        assert_eq!(why, "the application ended with exit code 3 (loaded, placement 2 of 5)\n  | no such file");
        assert_eq!(tally.figure, None);
        control.interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(repetition(&control, LoadState::Loaded, &mut tally), Err(String::new()));
    }
}
