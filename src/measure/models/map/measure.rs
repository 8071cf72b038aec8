//! Measures the rounds of a design on any transport.
//!
//! A slice begins when its two ranks are ready: the one that leads says so, the other has its buffers posted and answers. The
//! leader then times by its own clock, up to the answer to all that was sent, so that clocks of two nodes are never compared.
//! It also decides after each slice whether there is another. All ranks that measure meet before each step, which are so alike
//! in time, and agree after each round on whether to go on.
//!
//! What was found goes up to rank 0 every few seconds. Ranks that do not measure wait there.

use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tailback_transport::{Bootstrap, Error, Group, Nanos, Rank, Result, Span, Tag, Transport};

use super::{Design, LATENCY_BYTES, MapFigure, MapHost, MapPair, Settings};
use crate::kernel::fill_pattern;
use crate::models::measure::{Control, StudyJob, check, forget};
use crate::stats::median;

const FLAG: Tag = Tag(6);
const READY: Tag = Tag(7);
const DATA: Tag = Tag(8);
const ANSWER: Tag = Tag(9);
/// Of short words between the two ranks of a pair: sent from the first bytes, received after them.
const WORDS: usize = 64;
/// As few slices have a middle one.
const FEWEST_SLICES: usize = 3;
/// So often results go up: what a job that is killed loses at most, beside the round under way.
const GATHERED_EVERY: Nanos = Nanos(2_000_000_000);
/// Memory that a node copies to itself: more than its near caches hold.
const COPIED: usize = 4 << 20;

/// What is to be measured.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Task<'a> {
    pub settings: &'a Settings,
    pub design: &'a Design,
    /// Rounds that are known already.
    pub first: usize,
    /// Whether time is virtual, and no memory is copied in it.
    pub is_simulated: bool,
    /// What TCP of this node has sent again so far, where that is this node's alone.
    pub sent_again: &'a dyn Fn() -> Option<u64>,
}

/// What was found since rank 0 last heard of it.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Of complete rounds, each with its round, in no order.
    pub pairs: Vec<(usize, MapPair)>,
    /// Nodes that told of themselves.
    pub hosts: Vec<MapHost>,
    /// Rounds that are complete, those known before among them.
    pub complete: usize,
}

/// What one rank tells.
#[derive(Serialize, Deserialize)]
enum Told {
    Pair(usize, MapPair),
    Host(MapHost),
}

/// What rank 0 says when it has heard.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Heard {
    complete: usize,
    is_last: bool,
}

/// Measures rounds until all are complete or the user interrupts; rank 0 is told what was found as it comes. Collective; every
/// rank gets the number of complete rounds.
pub fn measure<T: Transport>(
    StudyJob { bootstrap, nodes, control, .. }: StudyJob<'_>,
    transport: &mut T,
    task: Task<'_>,
    tell: &mut dyn FnMut(Progress),
) -> Result<usize> {
    if nodes.len() < 2 {
        return Err(Error::Setup(
            "a map needs at least 2 nodes, and there is 1: use more hosts, or --ranks-per-node for nodes of so many ranks".into(),
        ));
    }
    let members: Vec<Rank> = (0..nodes.len()).map(|node| nodes.ranks(node)[0]).collect();
    let me = bootstrap.rank();
    if !members.contains(&me) {
        control.monitor.enter("waiting for those that measure");
        loop {
            let heard = hear(bootstrap, control, Vec::new(), None, tell)?;
            if heard.is_last {
                return Ok(heard.complete);
            }
        }
    }
    let bytes = task.settings.message_bytes(task.is_simulated);
    let payload = bytes.max(LATENCY_BYTES);
    let received = payload + 2 * WORDS;
    let mut group = transport.group(&members, received + payload * task.settings.messages)?;
    fill_pattern(&mut group, 0, payload);
    let node = group.rank().index();
    let mut bench = Bench { group, task, control, bytes, payload, received, members: &members, node };
    let mut told: Vec<Told> = bench.host()?.into_iter().map(Told::Host).collect();
    let (mut complete, mut gathered) = (task.first, bench.group.now());
    loop {
        let is_over = complete >= task.design.rounds();
        if !is_over {
            control.monitor.enter(&format!("round {} of {}", complete + 1, task.design.rounds()));
            told.extend(bench.round(complete)?.map(|pair| Told::Pair(complete, pair)));
            complete += 1;
        }
        let is_cut = control.interrupt.load(Ordering::Relaxed);
        let is_due = bench.group.now().since(gathered) >= GATHERED_EVERY;
        control.monitor.wait();
        bench.group.start_agreement([u64::from(is_cut), u64::from(is_due), 0, 0])?;
        let [cut, due, ..] = bench.group.wait_agreement()?;
        control.monitor.tick();
        let is_last = cut != 0 || complete >= task.design.rounds();
        if is_last || due != 0 {
            gathered = bench.group.now();
            let heard = Heard { complete, is_last };
            hear(bootstrap, control, std::mem::take(&mut told), Some(heard), tell)?;
        }
        if is_last {
            return Ok(complete);
        }
    }
}

/// What every rank found goes to rank 0, which says how far the job is. Collective over the job.
fn hear(
    bootstrap: &mut dyn Bootstrap,
    control: Control<'_>,
    mine: Vec<Told>,
    heard: Option<Heard>,
    tell: &mut dyn FnMut(Progress),
) -> Result<Heard> {
    // A value is a line: lines need not be read on the way.
    let mut lines = Vec::new();
    for told in mine {
        serde_json::to_writer(&mut lines, &told).expect("plain data");
        lines.push(b'\n');
    }
    control.monitor.wait();
    let all = bootstrap.reduce(lines, &mut |mine, theirs| {
        mine.extend(theirs);
        Ok(())
    })?;
    control.monitor.tick();
    if let (Some(lines), Some(heard)) = (all, heard) {
        let mut progress = Progress { complete: heard.complete, ..Progress::default() };
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line).map_err(|error| unreadable(&error))? {
                Told::Pair(round, pair) => progress.pairs.push((round, pair)),
                Told::Host(host) => progress.hosts.push(host),
            }
        }
        tell(progress);
    }
    control.monitor.wait();
    let said = heard.map(|heard| serde_json::to_vec(&heard).expect("plain data"));
    let said = bootstrap.broadcast(said.unwrap_or_default())?;
    control.monitor.tick();
    serde_json::from_slice(&said).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::Protocol { operation: "reading what ranks tell", peer: None, detail: error.to_string() }
}

/// What all pairs of a round do at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Latency,
    /// From the node that comes first.
    There,
    Back,
    Both,
}

struct Bench<'a, G> {
    group: G,
    task: Task<'a>,
    control: Control<'a>,
    /// Of a message.
    bytes: usize,
    /// Of what is sent: the longest message.
    payload: usize,
    /// Where received data begins.
    received: usize,
    members: &'a [Rank],
    node: usize,
}

impl<G: Group> Bench<'_, G> {
    /// What a node measures of itself, all at the same time. Nothing in virtual time.
    fn host(&mut self) -> Result<Option<MapHost>> {
        if self.task.is_simulated {
            return Ok(None);
        }
        let (from, mut to) = (vec![1u8; COPIED], vec![2u8; COPIED]);
        self.together()?;
        let mut slices: Vec<f64> = Vec::new();
        for _ in 0..self.task.settings.slices.max(FEWEST_SLICES) {
            let begin = Instant::now();
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
            slices.push(COPIED as f64 / begin.elapsed().as_secs_f64().max(1e-9));
        }
        // The best: who waits for a processor is late in some slices, and slow memory is slow in all.
        let best = slices.iter().copied().fold(0.0, f64::max);
        let worst = slices.iter().copied().fold(f64::INFINITY, f64::min);
        let (copy_bytes_per_s, copy_worst_bytes_per_s) = (short(best), short(worst));
        Ok(Some(MapHost { node: self.node as u32, copy_bytes_per_s, copy_worst_bytes_per_s }))
    }

    /// All steps of a round; what this node is told of it, as the one that sends.
    fn round(&mut self, round: usize) -> Result<Option<MapPair>> {
        let partner = self.task.design.partner(round, self.node);
        let before = (self.task.sent_again)();
        let mut found = partner.map(|to| MapPair { from: self.node as u32, to, ..MapPair::default() });
        for step in [Step::Latency, Step::There, Step::Back, Step::Both] {
            self.together()?;
            let Some(pair) = &mut found else { continue };
            let is_first = self.task.design.is_first(round, self.node);
            let slices = self.step(step, Rank(pair.to), is_first)?;
            let rates = || {
                figure(slices.iter().map(|seconds| (self.task.settings.messages * self.bytes) as f64 / seconds), false)
            };
            match step {
                Step::Latency => pair.latency_s = figure(slices.iter().copied(), true),
                Step::There | Step::Back if !slices.is_empty() => pair.one_way_bytes_per_s = rates(),
                Step::There | Step::Back => {}
                Step::Both => pair.both_ways_bytes_per_s = rates(),
            }
        }
        if let (Some(pair), Some(before)) = (&mut found, before) {
            pair.retransmitted = (self.task.sent_again)().map(|now| now.saturating_sub(before));
        }
        Ok(found)
    }

    fn together(&mut self) -> Result<()> {
        self.control.monitor.wait();
        self.group.barrier()?;
        self.control.monitor.tick();
        Ok(())
    }

    /// The seconds of each slice that this rank times: of a way there or back its sender does, of both ways each.
    fn step(&mut self, step: Step, peer: Rank, is_first: bool) -> Result<Vec<f64>> {
        let leads = is_first != (step == Step::Back);
        let is_data = step != Step::Latency;
        let receives = is_data && (!leads || step == Step::Both);
        if receives {
            forget(&mut self.group, self.received, self.payload * self.task.settings.messages);
        }
        let slices = if leads { self.lead(step, peer)? } else { self.follow(step, peer)? };
        if receives {
            for at in 0..self.task.settings.messages {
                let sender = self.members[peer.index()];
                let place = (self.received + at * self.payload, self.bytes);
                check_from(&self.group, (peer, sender), place)?;
            }
        }
        Ok(slices)
    }

    fn lead(&mut self, step: Step, peer: Rank) -> Result<Vec<f64>> {
        let (settings, begun) = (self.task.settings, self.group.now());
        let mut slices = Vec::new();
        // The first one finds caches and connections cold, and is not kept.
        for at in 0.. {
            let is_enough = at > settings.slices
                || (at > FEWEST_SLICES
                    && u128::from(self.group.now().since(begun).0) >= settings.step_time().as_nanos());
            self.word(peer, u8::from(!is_enough))?;
            if is_enough {
                break;
            }
            self.group.recv(peer, READY, Span::new(self.payload + WORDS, 1))?;
            let begin = self.group.now();
            match step {
                Step::Latency => self.round_trips(peer, true)?,
                Step::There | Step::Back => {
                    self.send_all(peer)?;
                    self.group.recv(peer, ANSWER, Span::new(self.payload + WORDS, 1))?;
                }
                Step::Both => self.exchange(peer)?,
            }
            let seconds = self.group.now().since(begin).0.max(1) as f64 * 1e-9;
            let trips = if step == Step::Latency { 2.0 * settings.round_trips as f64 } else { 1.0 };
            slices.extend((at > 0).then_some(seconds / trips));
            self.control.monitor.tick();
        }
        Ok(slices)
    }

    fn follow(&mut self, step: Step, peer: Rank) -> Result<Vec<f64>> {
        let mut slices = Vec::new();
        for at in 0.. {
            self.group.recv(peer, FLAG, Span::new(self.payload + WORDS, 1))?;
            let mut word = [0];
            self.group.read(self.payload + WORDS, &mut word);
            if word == [0] {
                break;
            }
            match step {
                Step::Latency => {
                    self.group.send(peer, READY, Span::new(self.payload, 1))?;
                    self.round_trips(peer, false)?;
                }
                Step::There | Step::Back => {
                    self.post_receives(peer)?;
                    self.group.send(peer, READY, Span::new(self.payload, 1))?;
                    self.group.send(peer, ANSWER, Span::new(self.payload, 1))?;
                }
                Step::Both => {
                    self.group.send(peer, READY, Span::new(self.payload, 1))?;
                    let begin = self.group.now();
                    self.exchange(peer)?;
                    let seconds = self.group.now().since(begin).0.max(1) as f64 * 1e-9;
                    slices.extend((at > 0).then_some(seconds));
                }
            }
            self.control.monitor.tick();
        }
        Ok(slices)
    }

    /// Says whether there is another slice.
    fn word(&mut self, peer: Rank, word: u8) -> Result<()> {
        self.group.write(self.payload, &[word]);
        self.group.send(peer, FLAG, Span::new(self.payload, 1))
    }

    fn round_trips(&mut self, peer: Rank, leads: bool) -> Result<()> {
        let (sent, got) = (Span::new(0, LATENCY_BYTES), Span::new(self.received, LATENCY_BYTES));
        for _ in 0..self.task.settings.round_trips {
            if leads {
                self.group.send(peer, DATA, sent)?;
            }
            self.group.recv(peer, DATA, got)?;
            if !leads {
                self.group.send(peer, DATA, sent)?;
            }
        }
        Ok(())
    }

    fn post_receives(&mut self, peer: Rank) -> Result<()> {
        let place = |at: usize| Span::new(self.received + at * self.payload, self.bytes);
        let places: Vec<Span> = (0..self.task.settings.messages).map(place).collect();
        places.into_iter().try_for_each(|place| self.group.post_recv(peer, DATA, place))
    }

    fn send_all(&mut self, peer: Rank) -> Result<()> {
        for _ in 0..self.task.settings.messages {
            self.group.post_send(peer, DATA, Span::new(0, self.bytes))?;
        }
        self.group.wait_all()
    }

    fn exchange(&mut self, peer: Rank) -> Result<()> {
        self.post_receives(peer)?;
        self.send_all(peer)
    }
}

/// Checks that what came from `peer` is what it sends, and names its rank of the job if it is not.
fn check_from<G: Group>(group: &G, (peer, sender): (Rank, Rank), (offset, bytes): (usize, usize)) -> Result<()> {
    check(group, peer, offset, bytes).map_err(|error| match error {
        Error::Protocol { operation, detail, .. } => Error::Protocol { operation, peer: Some(sender), detail },
        other => other,
    })
}

/// The middle and the worst; none without a slice.
fn figure(slices: impl Iterator<Item = f64>, is_time: bool) -> Option<MapFigure> {
    let mut slices: Vec<f64> = slices.collect();
    let count = slices.len() as u32;
    let worst = slices.iter().copied().reduce(if is_time { f64::max } else { f64::min })?;
    Some(MapFigure { median: short(median(&mut slices)?), worst: short(worst), count })
}

/// Five digits: more would only make large files larger.
fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tailback_engine::Lane;
    use tailback_testkit::loopback::{Fault, Job, Transfer};
    use tailback_transport::Operation;

    use super::*;
    use crate::layout::Nodes;
    use crate::models::measure::testing::study;

    fn settings() -> Settings {
        let (messages, round_trips, slices) = (2, 3, 3);
        Settings { bytes: Some(3000), messages, round_trips, slices, step: 1000, rounds: None, all_pairs: true }
    }

    /// The rounds that are complete and what rank 0 was told, on so many ranks with so many on a node.
    fn run(job: Job, nodes: &Nodes, first: usize, interrupted: Option<Rank>) -> Result<Vec<(usize, Progress)>> {
        let settings = settings();
        study(job, nodes, interrupted, |job, transport| {
            let design = Design::new(&vec![0; job.nodes.len()], &settings, 3);
            let sent_again = || None;
            let task =
                Task { settings: &settings, design: &design, first, is_simulated: false, sent_again: &sent_again };
            let told = RefCell::new(Progress::default());
            let complete = measure(job, transport, task, &mut |part| {
                let mut told = told.borrow_mut();
                told.pairs.extend(part.pairs);
                told.hosts.extend(part.hosts);
                told.complete = part.complete;
            })?;
            Ok((complete, told.into_inner()))
        })
    }

    #[test]
    fn every_pair_has_its_figures_both_ways() {
        for (ranks, per_node) in [(2, 1), (3, 1), (7, 1), (7, 3), (8, 2)] {
            let nodes = Nodes::virtual_nodes(ranks, per_node);
            let count = nodes.len();
            let all = run(Job::new(ranks), &nodes, 0, None).unwrap();
            let rounds = count.next_multiple_of(2) - 1;
            assert!(all.iter().all(|(complete, _)| *complete == rounds), "{ranks} ranks, {per_node} on each");
            let told = &all[0].1;
            assert_eq!((told.pairs.len(), told.hosts.len(), told.complete), (count * (count - 1), count, rounds));
            assert!(all[1..].iter().all(|(_, other)| other.pairs.is_empty()), "only rank 0 is told");
            for (_, pair) in &told.pairs {
                assert_eq!(pair.latency_s.is_some(), pair.from < pair.to, "{pair:?}");
                let rates = [pair.one_way_bytes_per_s, pair.both_ways_bytes_per_s];
                for figure in rates.into_iter().chain([pair.latency_s]).flatten() {
                    assert!(figure.count == 3 && figure.median > 0.0, "{pair:?}");
                }
                assert!(rates.iter().all(Option::is_some) && pair.retransmitted.is_none(), "{pair:?}");
                assert!(rates[0].unwrap().worst <= rates[0].unwrap().median, "{pair:?}");
            }
        }
    }

    #[test]
    fn a_map_goes_on_where_it_ended_and_ends_with_a_whole_round() {
        let nodes = Nodes::virtual_nodes(4, 1);
        let all = run(Job::new(4), &nodes, 2, None).unwrap();
        assert_eq!((all[0].0, all[0].1.pairs.len()), (3, 4), "one round of three is left");
        for by in [0, 3] {
            let all = run(Job::new(4), &nodes, 0, Some(Rank(by))).unwrap();
            assert!(all.iter().all(|(complete, _)| *complete == 1), "{by}: all end after the same round");
            assert_eq!(all[0].1.pairs.len(), 4);
        }
        let known = run(Job::new(4), &nodes, 3, None).unwrap();
        assert_eq!((known[0].0, known[0].1.pairs.len()), (3, 0));
    }

    #[test]
    fn one_node_is_too_few() {
        let said = run(Job::new(2), &Nodes::virtual_nodes(2, 2), 0, None).unwrap_err().to_string();
        assert!(said.contains("at least 2 nodes"), "{said}");
    }

    /// Flips a bit of data messages from the second rank of the group.
    struct BadCard;

    impl Fault for BadCard {
        fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
            let data = transfer.label.is_some_and(|(lane, _)| lane == Lane::Data);
            if data && transfer.operation == Operation::TwoSided && transfer.from == Rank(2) && payload.len() == 3000 {
                payload[1500] ^= 0x10;
            }
        }
    }

    #[test]
    fn corruption_names_the_rank_of_the_job() {
        let said = run(Job::new(4).fault(BadCard), &Nodes::virtual_nodes(4, 2), 0, None).unwrap_err().to_string();
        assert!(said.contains("with rank 2") && said.contains("byte 1500 of"), "{said}");
    }

    #[test]
    fn figures_are_short_and_the_worst_is_known() {
        let times = figure([3e-6, 1e-6, 2e-6].into_iter(), true).unwrap();
        assert_eq!(times, MapFigure { median: 2e-6, worst: 3e-6, count: 3 });
        let rates = figure([3.0, 1.234_567_8, 2.0].into_iter(), false).unwrap();
        assert_eq!((rates.median, rates.worst), (2.0, 1.2346));
        assert_eq!(figure(std::iter::empty(), true), None);
    }
}
