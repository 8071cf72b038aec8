//! What the kernel says of a process, in one line of /proc.

use std::fs;

/// A process as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// Of its program, cut short by the kernel.
    pub name: String,
    state: char,
    /// The process that started it, or has taken it over.
    pub parent: u32,
    /// Clock ticks from boot to its start: the number of a process may be given again.
    pub started: u64,
}

impl ProcessStat {
    /// Of the process that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// From the kernel's line.
    pub fn parse(line: &str) -> Option<Self> {
        let (name, fields) = split(line)?;
        // As the kernel's manual counts them, the state is the third.
        let field = |number: usize| fields.clone().nth(number - 3);
        Some(ProcessStat {
            name: name.to_owned(),
            state: field(3)?.chars().next()?,
            parent: field(4)?.parse().ok()?,
            started: field(22)?.parse().ok()?,
        })
    }

    /// Whether only its number is left, until its parent has heard of its end.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Whether it is stopped by a signal or a debugger, until it is told to go on.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Whether it runs, or would if it had a core.
    pub fn is_ready(&self) -> bool {
        self.state == 'R'
    }
}

/// The hardware thread that the caller runs on; nothing where the kernel does not say.
pub(crate) fn running_on() -> Option<usize> {
    let line = fs::read_to_string("/proc/thread-self/stat").ok()?;
    split(&line)?.1.nth(39 - 3)?.parse().ok()
}

/// The name, which stands in parentheses and may contain anything, and the fields from the third on.
fn split(line: &str) -> Option<(&str, std::str::SplitWhitespace<'_>)> {
    let (before, after) = line.rsplit_once(')')?;
    Some((before.split_once('(')?.1, after.split_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_look_like_fields() {
        let line = "7 (a) R (b) T 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 2 3";
        let stat = ProcessStat { name: "a) R (b".into(), state: 'T', parent: 1, started: 4711 };
        assert!(stat.is_stopped() && !stat.has_ended() && !stat.is_ready());
        assert_eq!(ProcessStat::parse(line), Some(stat));
        assert_eq!(ProcessStat::parse("7 (cut"), None);
        assert_eq!(ProcessStat::parse("7 cut) R 1"), None);
    }

    #[test]
    fn a_process_sees_itself() {
        let own = ProcessStat::of(std::process::id()).expect("it runs");
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert!(own.started > 0 && !own.has_ended() && !own.is_stopped());
        assert_eq!(ProcessStat::of(u32::MAX), None);
        assert!(running_on().is_some());
    }
}
