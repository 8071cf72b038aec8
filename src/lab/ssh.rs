//! The words that launchers give to `ssh`, as far as a stand-in has to understand them.
//!
//! Options are skipped, the first other word is the host, the rest is a line for the remote shell: exactly what `ssh`
//! makes of it. Encryption, forwarding and log-in names mean nothing inside a lab.

use super::error::{Error, Result};

/// The options of OpenSSH's client that have a value, which may be a word of its own.
const WITH_VALUE: &str = "BbcDEeFIiJLlmOoPpQRSWw";

/// What is asked of `ssh`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SshCall {
    pub host: String,
    /// The line for the shell there.
    pub line: String,
}

impl SshCall {
    /// Understands the arguments of an `ssh` call.
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let mut words = arguments.iter();
        let host = loop {
            let word =
                words.next().ok_or_else(|| Error::Usage("--ssh: no host name among the arguments".to_owned()))?;
            match word.strip_prefix('-') {
                None => break word,
                Some("-") => continue,
                Some(letters) => {
                    // Flags may be written together; the first one with a value takes the rest, or the next word.
                    if letters.find(|letter| WITH_VALUE.contains(letter)).is_some_and(|at| at + 1 == letters.len()) {
                        words.next();
                    }
                }
            }
        };
        let host = host.rsplit_once('@').map_or(host.as_str(), |(_, host)| host);
        let line = words.map(String::as_str).collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            return Err(Error::Usage(format!(
                "--ssh: no command for {host}; for a shell use `tailback lab exec {host} -- sh`"
            )));
        }
        Ok(SshCall { host: host.to_owned(), line })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &[&str]) -> Result<SshCall> {
        SshCall::parse(&text.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn launchers_calls_are_understood() {
        let call = |host: &str, line: &str| SshCall { host: host.into(), line: line.into() };
        for (text, expected) in [
            (&["h1", "orted", "-mca", "x"][..], call("h1", "orted -mca x")),
            (
                &["-x", "h1", "\"/usr/bin/hydra_pmi_proxy\"", "--demux"],
                call("h1", "\"/usr/bin/hydra_pmi_proxy\" --demux"),
            ),
            (&["-o", "BatchMode=yes", "-oX=y", "-p22", "-l", "me", "-qT", "a@h2", "ls -l"], call("h2", "ls -l")),
            (&["-xo", "K=v", "h3", "-v"], call("h3", "-v")),
            (&["--", "h4", "true"], call("h4", "true")),
        ] {
            assert_eq!(parse(text).expect("understood"), expected, "{text:?}");
        }
    }

    #[test]
    fn a_call_without_host_or_command_is_refused() {
        for text in [&[][..], &["-x"], &["-o", "h1"], &["h1"]] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn the_command_arrives_as_it_was(words in prop::collection::vec("[ -~]{1,8}", 1..6)) {
            let arguments: Vec<String> = ["-x", "h9"].iter().map(ToString::to_string).chain(words.clone()).collect();
            prop_assert_eq!(SshCall::parse(&arguments).expect("understood").line, words.join(" "));
        }
    }
}
