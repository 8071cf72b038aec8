//! One repetition of an application, on the rank that starts it.

use super::application::Ended;
use super::control::Control;
use super::{Phase, Tally};

/// One repetition on the rank that starts it, into `tally`. What keeps it from a figure comes back; an interruption is
/// known by the control.
pub(super) fn repetition(control: &Control, phase: Phase, tally: &mut Tally) -> Result<(), String> {
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

    use tailback_transport::{Monitor, Nanos};

    use super::*;
    use crate::engine::{REAL_GRAIN, Starter};

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
            on_phase: Arc::new(|_, _| {}),
            on_end: Arc::new(|| {}),
            over: None,
            placement: Some((2, 5)),
            grain: REAL_GRAIN,
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
        repetition(&control, Phase::Loaded, &mut tally).unwrap();
        assert_eq!((tally.figure, tally.wall_ns), (Some(4.5), 7));
        let mut tally = Tally::default();
        let why = repetition(&control, Phase::Loaded, &mut tally).unwrap_err();
        assert_eq!(why, "the application ended with exit code 3 (loaded, placement 2 of 5)\n  | no such file");
        assert_eq!(tally.figure, None);
        control.interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(repetition(&control, Phase::Loaded, &mut tally), Err(String::new()));
    }
}
