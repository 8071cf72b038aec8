//! Whether all ranks of a job were asked for the same: found before anything is measured, and named.
//!
//! Rank 0 decides what is done and the others are told, so a rank with other options would take part in what it was not
//! asked for. What may differ between ranks (devices, interfaces, where output goes) is not compared.

use std::sync::Arc;

use tailback_transport::{Bootstrap, Monitor, Rank, Result};

use super::{Networks, Variant, Work, give_up};

/// How a rank's request differs from rank 0's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    None,
    Build,
    Options,
}

impl Difference {
    fn between(own: &str, of_root: &str) -> Self {
        let build = |text: &str| text.lines().next().map(str::to_owned);
        match () {
            () if own == of_root => Difference::None,
            () if build(own) != build(of_root) => Difference::Build,
            () => Difference::Options,
        }
    }

    fn mark(self) -> u8 {
        match self {
            Difference::None => b'=',
            Difference::Build => b'b',
            Difference::Options => b'o',
        }
    }
}

/// Does the work if all ranks were asked for it, and gives the exit code.
pub(super) fn run_agreed(work: &Work<'_>, networks: &mut Networks<'_>, monitor: &Arc<Monitor>) -> u8 {
    let variants = networks.variants().to_vec();
    let bootstrap = networks.bootstrap();
    match complaint(work, &variants, bootstrap) {
        Ok(None) => (work.body)(networks, monitor),
        Ok(Some(complaint)) => {
            if bootstrap.rank() == Rank(0) {
                eprintln!("tailback: error: {complaint}");
            }
            2
        }
        Err(error) => give_up(bootstrap, &error),
    }
}

/// The complaint that rank 0 makes if ranks differ; the same on every rank. Collective over the job.
fn complaint(work: &Work<'_>, variants: &[Variant], bootstrap: &mut dyn Bootstrap) -> Result<Option<String>> {
    let networks: Vec<String> = variants.iter().map(|variant| variant.label()).collect();
    // The build comes first: options of another one may well be written differently.
    let own = format!("{}\n{}\n{}", work.build, networks.join("; "), work.asks);
    let of_root =
        bootstrap.broadcast(if bootstrap.rank() == Rank(0) { own.clone().into_bytes() } else { Vec::new() })?;
    let mark = Difference::between(&own, &String::from_utf8_lossy(&of_root)).mark();
    let answer = [&[mark], bootstrap.host().as_bytes()].concat();
    let answers = bootstrap.allgather(&answer)?;
    Ok(first_difference(&answers))
}

/// Names the first rank that differs, and counts the others.
fn first_difference(answers: &[Vec<u8>]) -> Option<String> {
    let differs = |answer: &&Vec<u8>| answer.first() != Some(&Difference::None.mark());
    let rank = answers.iter().position(|answer| differs(&answer))?;
    let (mark, host) = answers[rank].split_first()?;
    let host = String::from_utf8_lossy(host);
    let others = match answers.iter().filter(differs).count() - 1 {
        0 => String::new(),
        1 => " (and so was 1 other)".to_owned(),
        more => format!(" (and so were {more} others)"),
    };
    let what = if *mark == Difference::Build.mark() { "another build of Tailback" } else { "other options" };
    Some(format!(
        "rank {rank} (host {host}) was started with {what} than rank 0{others}: all ranks of a job run the same command"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_differ_are_named() {
        let answers = |marks: &[&str]| -> Vec<Vec<u8>> { marks.iter().map(|mark| mark.as_bytes().to_vec()).collect() };
        assert_eq!(first_difference(&answers(&["=n0", "=n1"])), None);
        let one =
            "rank 1 (host n1) was started with other options than rank 0: all ranks of a job run the same command";
        assert_eq!(first_difference(&answers(&["=n0", "on1", "=n2"])).as_deref(), Some(one));
        let said = first_difference(&answers(&["=n0", "=n1", "bn2", "on3", "bn4"])).unwrap();
        let expected = "rank 2 (host n2) was started with another build of Tailback than rank 0 (and so were 2 others)";
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn another_build_is_told_from_other_options() {
        assert_eq!(Difference::between("1\ntcp\na", "1\ntcp\na"), Difference::None);
        assert_eq!(Difference::between("1\ntcp\na", "2\ntcp\na"), Difference::Build);
        assert_eq!(Difference::between("1\ntcp\na", "1\ntcp\nb"), Difference::Options);
        assert_eq!(Difference::between("", "1\ntcp"), Difference::Build);
    }
}
