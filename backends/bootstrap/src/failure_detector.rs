//! Rank 0's view of the job: who lives, who makes progress, and what to say when it has to end.
//!
//! Pure bookkeeping over points in time given by the watcher, so that it is tested without waiting.

use std::time::{Duration, Instant};

use tailback_transport::{Rank, START_UP};

use crate::failure::{Ranks, lost_message};
use crate::message::{Beat, Report, State};
use crate::tree;

/// One rank, as last heard of.
#[derive(Clone, Debug)]
struct RankState {
    host: String,
    phase: String,
    ticks: u64,
    collectives: u64,
    state: State,
    heard: Instant,
    moved: Instant,
}

#[derive(Debug)]
pub(crate) struct FailureDetector {
    ranks: Vec<RankState>,
    fan_out: usize,
    reports: Vec<Report>,
}

impl FailureDetector {
    pub(crate) fn new(hosts: Vec<String>, fan_out: usize, now: Instant) -> Self {
        let entry = |host| RankState {
            host,
            phase: START_UP.to_owned(),
            ticks: 0,
            collectives: 0,
            state: State::Busy,
            heard: now,
            moved: now,
        };
        FailureDetector { ranks: hosts.into_iter().map(entry).collect(), fan_out, reports: Vec::new() }
    }

    pub(crate) fn note(&mut self, beat: &Beat, now: Instant) {
        // A rank out of range is nobody's: the sender proved the secret but not its arithmetic.
        let Some(entry) = self.ranks.get_mut(beat.rank.index()) else { return };
        entry.heard = now;
        let moved = (entry.ticks, entry.collectives, entry.state) != (beat.ticks, beat.collectives, beat.state);
        if moved || beat.phase.is_some() {
            entry.moved = now;
        }
        (entry.ticks, entry.collectives, entry.state) = (beat.ticks, beat.collectives, beat.state);
        if let Some(phase) = &beat.phase {
            entry.phase.clone_from(phase);
        }
    }

    pub(crate) fn report(&mut self, report: Report) {
        self.reports.push(report);
    }

    /// The one message about the reports so far. A lost rank explains why others gave up, so it comes first.
    pub(crate) fn verdict(&self) -> String {
        let lost: Vec<Rank> = self.reports.iter().filter_map(Report::lost).collect();
        let main = self.reports.iter().find(|r| r.lost().is_some()).or(self.reports.first());
        match main {
            None => "the job ended for an unknown reason".to_owned(),
            Some(Report::Abort { rank, host, phase, reason }) => {
                format!("rank {rank} (host {host}), phase \"{phase}\": {reason}")
            }
            Some(Report::Lost { rank, phase, detail }) => {
                let entry = self.ranks.get(rank.index());
                let host = entry.map_or("unknown", |s| s.host.as_str());
                let phase = phase.as_deref().or(entry.map(|s| s.phase.as_str())).unwrap_or("unknown");
                let mut others: Vec<Rank> = lost.into_iter().filter(|r| r != rank).collect();
                others.sort_unstable();
                others.dedup();
                let also = if others.is_empty() { String::new() } else { format!("; also lost: {}", Ranks(&others)) };
                format!("{}{also}", lost_message(*rank, host, phase, detail))
            }
        }
    }

    /// Forgets for how long ranks were silent: whoever could not listen cannot tell.
    pub(crate) fn forgive(&mut self, now: Instant) {
        for entry in &mut self.ranks {
            (entry.heard, entry.moved) = (now, now);
        }
    }

    /// The message to end the job with if ranks gave no sign of life for `limit`.
    pub(crate) fn silent(&self, limit: Duration, now: Instant) -> Option<String> {
        let age = |entry: &RankState| now.saturating_duration_since(entry.heard);
        // Signs of life come in batches, level by level: what fell silent together may be seen a moment apart.
        let is_silent = |entry: &RankState| entry.state != State::Done && age(entry) > limit * 3 / 4;
        if !self.ranks.iter().any(|s| is_silent(s) && age(s) > limit) {
            return None;
        }
        // A silent rank silences everyone below it in the tree: only the topmost ones are to blame.
        let above = |rank: &Rank| tree::parent(*rank, self.fan_out);
        let silenced = |rank| std::iter::successors(above(&rank), above).any(|r| is_silent(&self.ranks[r.index()]));
        let blamed = self.select(|rank, entry| is_silent(entry) && !silenced(rank));
        let entry = &self.ranks[blamed.first()?.index()];
        let detail = format!("no sign of life for {} s", limit.as_secs_f64());
        let also = if blamed.len() > 1 { format!("; also silent: {}", Ranks(&blamed[1..])) } else { String::new() };
        Some(format!("{}{also}", lost_message(blamed[0], &entry.host, &entry.phase, &detail)))
    }

    /// The message to end the job with if ranks live and made no progress for `limit`.
    pub(crate) fn stuck(&self, limit: Duration, now: Instant) -> Option<String> {
        // A rank that has fallen silent too explains why others wait: its own limit is about to pass.
        let quiet = |entry: &RankState| now.saturating_duration_since(entry.heard) > limit / 2;
        if self.ranks.iter().any(|s| s.state != State::Done && quiet(s)) {
            return None;
        }
        let idle = |entry: &RankState| now.saturating_duration_since(entry.moved) > limit;
        let mut blamed = self.select(|_, s| s.state == State::Busy && idle(s));
        let everybody = self.ranks.iter().all(|s| s.state == State::Done || idle(s));
        if blamed.is_empty() {
            if !everybody {
                return None;
            }
            // All wait for each other in collectives: those who entered the fewest keep the rest.
            blamed = self.select(|_, s| s.state == State::Waiting);
            let fewest = blamed.iter().map(|r| self.ranks[r.index()].collectives).min()?;
            blamed.retain(|r| self.ranks[r.index()].collectives == fewest);
        } else if everybody {
            // One rank stops the others soon: of those that stopped first, the least advanced are to blame.
            let earliest = blamed.iter().map(|r| self.ranks[r.index()].moved).min()?;
            let tolerance = (limit / 4).min(Duration::from_secs(3));
            blamed.retain(|r| self.ranks[r.index()].moved <= earliest + tolerance);
            let fewest = blamed.iter().map(|r| self.ranks[r.index()].ticks).min()?;
            blamed.retain(|r| self.ranks[r.index()].ticks == fewest);
        }
        Some(self.stuck_message(&blamed, limit))
    }

    fn stuck_message(&self, blamed: &[Rank], limit: Duration) -> String {
        let entry = &self.ranks[blamed[0].index()];
        let limit = limit.as_secs_f64();
        let (host, phase) = (&entry.host, &entry.phase);
        match blamed {
            [rank] => format!("rank {rank} (host {host}) made no progress for {limit} s in phase \"{phase}\""),
            _ => format!(
                "{} made no progress for {limit} s; rank {} (host {host}) is in phase \"{phase}\"",
                Ranks(blamed),
                blamed[0]
            ),
        }
    }

    fn select(&self, keep: impl Fn(Rank, &RankState) -> bool) -> Vec<Rank> {
        let ranks = self.ranks.iter().enumerate().map(|(r, s)| (Rank::from(r), s));
        ranks.filter(|(rank, entry)| keep(*rank, entry)).map(|(rank, _)| rank).collect()
    }
}

impl Report {
    fn lost(&self) -> Option<Rank> {
        match self {
            Report::Lost { rank, .. } => Some(*rank),
            Report::Abort { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn beat(rank: u32, ticks: u64, state: State) -> Beat {
        Beat { rank: Rank(rank), ticks, collectives: ticks, state, phase: None }
    }

    fn detector(size: usize, start: Instant) -> FailureDetector {
        FailureDetector::new((0..size).map(|r| format!("n{r}")).collect(), 2, start)
    }

    /// Plays `seconds` of beats: what `at` gives for (rank, second) is heard.
    fn play(size: u32, seconds: u64, at: impl Fn(u32, u64) -> Option<Beat>) -> Vec<Option<String>> {
        let start = Instant::now();
        let mut detector = detector(size as usize, start);
        (1..=seconds)
            .map(|second| {
                let now = start + Duration::from_secs(second);
                (0..size).filter_map(|rank| at(rank, second)).for_each(|b| detector.note(&b, now));
                detector.silent(LIMIT, now).or_else(|| detector.stuck(LIMIT, now))
            })
            .collect()
    }

    #[test]
    fn a_silent_rank_is_named_but_not_those_below_it() {
        // Fan-out 2: rank 1 carries the beats of 3 and 4.
        let said = play(7, 20, |rank, second| {
            (second < 3 || ![1, 3, 4].contains(&rank)).then(|| beat(rank, second, State::Busy))
        });
        assert_eq!(said[10], None);
        assert_eq!(
            said[12].as_deref(),
            Some("rank 1 (host n1) was lost in phase \"start-up\": no sign of life for 10 s")
        );
    }

    #[test]
    fn a_stuck_rank_is_named_while_others_go_on_or_wait() {
        let said = play(4, 20, |rank, second| {
            let (ticks, state) = match rank {
                1 => (second.min(2), State::Busy),
                2 => (5, State::Waiting),
                _ => (second, State::Busy),
            };
            Some(beat(rank, ticks, state))
        });
        assert_eq!(said[10], None);
        assert_eq!(said[12].as_deref(), Some("rank 1 (host n1) made no progress for 10 s in phase \"start-up\""));
    }

    #[test]
    fn when_all_stall_the_least_advanced_are_named() {
        let said = play(5, 20, |rank, second| {
            let ticks = second.min(3) * 100 - if rank == 2 || rank == 4 { 7 } else { 0 };
            Some(beat(rank, ticks, State::Busy))
        });
        let text = "ranks 2, 4 made no progress for 10 s; rank 2 (host n2) is in phase \"start-up\"";
        assert_eq!(said[13].as_deref(), Some(text));
    }

    #[test]
    fn when_all_wait_the_one_in_the_earliest_collective_is_named() {
        let said = play(3, 20, |rank, _| Some(beat(rank, if rank == 1 { 4 } else { 5 }, State::Waiting)));
        assert_eq!(said[11].as_deref(), Some("rank 1 (host n1) made no progress for 10 s in phase \"start-up\""));
    }

    #[test]
    fn progress_waiting_and_goodbyes_are_no_stall() {
        let said = play(3, 40, |rank, second| match rank {
            0 => Some(beat(0, second, State::Busy)),
            1 => Some(beat(1, 9, State::Waiting)),
            _ => (second == 1).then(|| beat(2, 1, State::Done)),
        });
        assert!(said.iter().all(Option::is_none), "{said:?}");
    }

    #[test]
    fn a_loss_explains_an_abort() {
        let mut detector = detector(5, Instant::now());
        let reason = "send: rank 3 is gone".to_owned();
        detector.report(Report::Abort { rank: Rank(2), host: "n2".into(), phase: "p".into(), reason });
        assert_eq!(detector.verdict(), "rank 2 (host n2), phase \"p\": send: rank 3 is gone");
        detector.report(Report::Lost { rank: Rank(3), phase: Some("q".into()), detail: "connection closed".into() });
        assert_eq!(detector.verdict(), "rank 3 (host n3) was lost in phase \"q\": connection closed");
        detector.report(Report::Lost { rank: Rank(4), phase: None, detail: "connection closed".into() });
        assert!(detector.verdict().ends_with("connection closed; also lost: rank 4"));
    }
}
