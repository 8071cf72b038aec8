//! How a job ends early: what is said, by whom, and what then happens to the process.
//!
//! Exactly one rank of the job ends with a message; the others end without a word.

use std::fmt;
use std::io::Write as _;
use std::time::Duration;

use tailback_transport::Rank;

/// The exit code of a job that could not run.
pub const EXIT_CODE: i32 = 2;

/// How long what libraries have registered for an exit may take in a job that has failed.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// What a process does when the job fails. The default is [`ExitProcess`]; tests that run ranks as threads have their own.
pub trait OnFailure: fmt::Debug + Send + Sync {
    /// Tells the user. Called once in the whole job, before the other ranks are told to end.
    fn report(&self, message: &str);

    /// Ends the process, with what it told the user, or `None` where another rank tells. If it returns, calls under way
    /// return errors.
    fn end(&self, message: Option<&str>);
}

/// Prints `tailback: error: MESSAGE` on stderr and exits with code 2.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExitProcess;

impl OnFailure for ExitProcess {
    fn report(&self, message: &str) {
        say("error", message);
    }

    fn end(&self, _: Option<&str>) {
        // Libraries tidy up at an exit, and may wait there for what another thread was doing in them.
        let bound = std::thread::Builder::new().name("exit-limit".into()).spawn(|| {
            std::thread::sleep(EXIT_LIMIT);
            signal_hook::low_level::exit(EXIT_CODE)
        });
        if bound.is_err() {
            signal_hook::low_level::exit(EXIT_CODE);
        }
        std::process::exit(EXIT_CODE);
    }
}

/// One line on stderr, in one write. A closed stderr is no reason to fail differently.
pub(crate) fn say(severity: &str, message: &str) {
    let line = format!("tailback: {severity}: {}\n", message.replace('\n', " "));
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// `rank 3`, or `ranks 3, 7-9`. Expects ascending order.
pub(crate) struct Ranks<'a>(pub(crate) &'a [Rank]);

impl fmt::Display for Ranks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.len() == 1 { "rank " } else { "ranks " })?;
        for (i, run) in self.0.chunk_by(|a, b| a.0 + 1 == b.0).enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => unreachable!("chunk_by gives no empty runs"),
            }
        }
        Ok(())
    }
}

/// `rank 3 (host node3) was lost in phase "P": connection closed`
pub(crate) fn lost_message(rank: Rank, host: &str, phase: &str, detail: &str) -> String {
    format!("rank {rank} (host {host}) was lost in phase \"{phase}\": {detail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed_as_ranges() {
        let shown = |list: &[u32]| Ranks(&list.iter().map(|r| Rank(*r)).collect::<Vec<_>>()).to_string();
        assert_eq!(shown(&[3]), "rank 3");
        assert_eq!(shown(&[3, 7, 8, 9]), "ranks 3, 7-9");
        assert_eq!(shown(&[0, 1, 5]), "ranks 0-1, 5");
    }
}
