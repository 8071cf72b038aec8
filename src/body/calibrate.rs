//! A search for the mix of congestors that does what a recorded run shows, in one job: rank 0 chooses the next mix of all that
//! was measured so far, the others are told, and all run it.
//!
//! After every run the plan file and the draft of the result are written, so whatever ends the search, what was found until
//! then stands.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::load_test::Runs;
use crate::assemble;
use crate::backend::{Networks, give_up};
use crate::calibration::{Found, Mix, Observed, Range, Search, Sight, Space};
use crate::job::{self, CalibrationSelection, Request, Session, handed_over, show, tell};
use crate::output;
use crate::plan::Plan;
use crate::result::{
    self, CalibrationRecord, CalibrationRun, Command, Comparison, PartFound, ResultFile, Share, ShareFound,
};
use crate::text::figure;

/// What rank 0 tells the others.
#[derive(Serialize, Deserialize)]
enum Order {
    /// Run this.
    Measure(Box<Plan>),
    /// That was all: end with this code.
    End(u8),
}

/// Searches, and gives the exit code.
pub(crate) fn calibrate(mut session: Session<'_>, networks: &mut Networks<'_>) -> u8 {
    let several = networks.variants().len() > 1;
    let mut desk = session.root.then(|| Desk::open(session.request, &session, several));
    loop {
        let mine = desk.as_mut().map(|desk| match desk {
            Ok(desk) => desk.order(),
            Err(message) => {
                eprintln!("tailback: error: {message}");
                Order::End(2)
            }
        });
        let told = tell(networks.bootstrap(), mine.as_ref());
        let plan = match told.unwrap_or_else(|error| give_up(networks.bootstrap(), &error)) {
            Order::Measure(plan) => *plan,
            Order::End(code) => return code,
        };
        session.mixes = job::Mix::all_of(&plan);
        session.decision.plan = plan;
        let shown = Runs::new(&session).measured(networks);
        session.monitor.tick();
        if let (Some(Ok(desk)), Some(shown)) = (&mut desk, shown) {
            desk.take(shown);
        }
    }
}

/// What a dry run says of a search.
pub(crate) fn expected(request: &Request) -> String {
    let Some(selection) = &request.calibration else { return String::new() };
    format!("Up to {} such runs, under load only, each with another mix of these congestors\n", selection.runs)
}

/// Where rank 0 keeps the search.
struct Desk<'r> {
    request: &'r Request,
    selection: &'r CalibrationSelection,
    like: String,
    /// With all kinds that are chosen among.
    plan: Plan,
    search: Search,
    /// What is being run.
    under_way: Option<Mix>,
    /// What each run left.
    files: Vec<ResultFile>,
    /// Why there is no next run.
    ended: Option<String>,
    notes: Vec<String>,
    started: String,
    clock: Instant,
}

impl<'r> Desk<'r> {
    fn open(request: &'r Request, session: &Session<'_>, several: bool) -> Result<Self, String> {
        let selection = request.calibration.as_ref().expect("this is a search");
        if several {
            return Err("calibrate searches over one network: name one transport and one protocol".into());
        }
        let recorded = selection.recorded()?;
        let target = Observed::of(&recorded, selection.by)?;
        let plan = session.decision.plan.clone();
        let layout = session.layout(0, &plan).map_err(|error| error.to_string())?;
        let kinds = plan.congestors.iter().map(|test| test.kernel).collect();
        let space = Space { kinds, nodes: layout.other_nodes(), sizes: selection.sizes.clone() };
        let weights: Vec<f64> = plan.congestors.iter().map(|test| test.weight).collect();
        let mut notes = vec![format!("seed {}", session.seed)];
        let (then, now) = (recorded.system.nodes.len(), layout.nodes().len());
        if then != now {
            notes.push(format!("the recorded run had {then} nodes, this job has {now}: shares are of this job's"));
        }
        if recorded.interrupted {
            notes.push("the recorded run is incomplete".into());
        }
        notes.iter().for_each(|note| request.say(note));
        if let Some(folder) = &selection.keep {
            std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        }
        let search = Search::new(space, target, &weights, session.seed, selection.runs)?;
        let (files, started, clock) = (Vec::new(), assemble::now_rfc3339(), Instant::now());
        let like = selection.name(&recorded);
        Ok(Desk { request, selection, like, plan, search, under_way: None, files, ended: None, notes, started, clock })
    }

    /// What is next. At the end, shows what was found.
    fn order(&mut self) -> Order {
        if self.ended.is_none() {
            self.under_way = self.search.next();
            if let Some(mix) = &self.under_way {
                return Order::Measure(Box::new(self.search.space().plan(&self.plan, mix)));
            }
        }
        let Some(mut file) = self.file() else {
            eprintln!("tailback: error: {}", self.ended.as_deref().unwrap_or("nothing was measured"));
            return Order::End(2);
        };
        if let Some(why) = &self.ended {
            file.interrupted = true;
            file.notes.push(why.clone());
            self.request.say(why);
        }
        let written =
            result::write_text(&self.selection.write, &self.plan_file(&file)).map_err(|error| error.to_string());
        let code = show(self.request, &file);
        match written {
            Ok(()) => {
                self.request.say(&format!("the plan is in {}", self.selection.write.display()));
                Order::End(if self.ended.is_some() { 2 } else { code })
            }
            Err(problem) => {
                eprintln!("tailback: error: {problem}");
                Order::End(2)
            }
        }
    }

    /// Takes what a run left. One that was cut short would be held against whole ones: nothing is made of it.
    fn take(&mut self, shown: ResultFile) {
        let Some(mix) = self.under_way.take() else { return };
        let number = self.files.len() + 1;
        if shown.interrupted {
            self.ended = Some(format!("interrupted in run {number}: what was found by then is kept"));
            return;
        }
        let observed = match Observed::of(&shown, self.selection.by) {
            Ok(observed) => observed,
            Err(why) => {
                self.ended = Some(format!("run {number} cannot be compared: {why}"));
                return;
            }
        };
        if let Some(folder) = &self.selection.keep
            && let Err(problem) = result::write(&folder.join(format!("run-{number:02}.json")), &shown)
        {
            self.ended = Some(problem.to_string());
        }
        self.search.add(mix, observed);
        self.files.push(shown);
        let Some(mut draft) = self.file() else { return };
        if let Some(record) = &draft.calibration {
            let run = &record.runs[number - 1];
            self.request.say(&format!(
                "run {number} of at most {}: {}: distance {}",
                self.selection.runs,
                output::mix(run),
                figure(run.distance)
            ));
        }
        draft.interrupted = true;
        draft.notes.push(format!("the search ended after {number} runs, before it was complete"));
        // The last of these is said, should it fail.
        let _ = result::write_draft_text(&self.selection.write, &self.plan_file(&draft));
        if let Some(path) = handed_over().or_else(|| self.request.output.out.clone()) {
            let _ = result::write_draft(&path, &draft);
        }
    }

    /// The result of the run that was found, with the search.
    fn file(&self) -> Option<ResultFile> {
        let found = self.search.found()?;
        let mut file = self.files[found.run].clone();
        file.command = Command::Calibrate;
        file.calibration = Some(self.record(&found));
        (file.started, file.duration_s) = (self.started.clone(), self.clock.elapsed().as_secs_f64());
        file.label.clone_from(&self.request.output.label);
        file.notes.extend(self.notes.iter().cloned());
        Some(file)
    }

    fn record(&self, found: &Found) -> CalibrationRecord {
        let space = self.search.space();
        let mixes: Vec<&Mix> = self.search.runs().collect();
        let share = |mix: &Mix, kind: usize| {
            let own = self.plan.congestors[kind].counts.bytes;
            let bytes = space.sizes.get(mix.size).copied().unwrap_or(own);
            Share { kernel: space.kinds[kind], share: space.share(mix.nodes[kind]), bytes }
        };
        let congestors = |mix: &Mix| {
            (0..space.kinds.len()).filter(|&kind| mix.nodes[kind] > 0).map(|kind| share(mix, kind)).collect()
        };
        let runs = mixes.iter().zip(&found.distances);
        let runs = runs.map(|(mix, &distance)| CalibrationRun { congestors: congestors(mix), distance }).collect();
        let part =
            |nodes: usize, range: Range| PartFound { share: space.share(nodes), low: range.low, high: range.high };
        let best = mixes[found.run];
        let shares = (0..space.kinds.len())
            .map(|kind| ShareFound { kernel: space.kinds[kind], part: part(best.nodes[kind], found.ranges[kind]) });
        let possible = if space.sizes.is_empty() { &[][..] } else { &found.sizes[..] };
        CalibrationRecord {
            like: self.like.clone(),
            nodes: space.nodes,
            compared: compared(&self.search.sight(), found.run),
            runs,
            found: found.run,
            shares: shares.collect(),
            resting: part(space.nodes - best.loading(), found.resting),
            possible_bytes: possible.iter().map(|&size| space.sizes[size]).collect(),
            alike: found.alike.iter().map(|kinds| kinds.iter().map(|&kind| space.kinds[kind]).collect()).collect(),
        }
    }

    /// The plan that was found, with what is known of it.
    fn plan_file(&self, file: &ResultFile) -> String {
        let mut text = format!("# The load of {}, as `tailback calibrate` found it: weights are nodes.\n", self.like);
        if let Some(record) = &file.calibration {
            let (before, after) = record.distances().unwrap_or_default();
            text += &format!(
                "# Distance {}; before, {}. 1 is that of two runs under the same load.\n",
                figure(after),
                figure(before)
            );
            for ShareFound { kernel, part } in &record.shares {
                let [share, low, high] = [part.share, part.low, part.high].map(|of| 100.0 * of);
                text += &format!(
                    "# {kernel}: {share:.0}% of {} nodes; {low:.0}% to {high:.0}% are not ruled out\n",
                    record.nodes
                );
            }
            for alike in &record.alike {
                let names: Vec<String> = alike.iter().map(ToString::to_string).collect();
                text += &format!("# {} could not be told apart.\n", names.join(" and "));
            }
        }
        text + &file.plan.to_file()
    }
}

/// How far the first run and the found one are in each canary and counter alone.
fn compared(sight: &Sight, found: usize) -> Vec<Comparison> {
    let mut rows: Vec<(Comparison, f64)> = Vec::new();
    for at in 0..sight.names.len() {
        let square =
            |run: usize| sight.weight[at] * (sight.runs[run][at] - sight.target[at]).powi(2) / sight.variance[at];
        match rows.last_mut().filter(|(row, _)| row.name == sight.names[at]) {
            Some((row, weight)) => {
                row.before += square(0);
                row.after += square(found);
                *weight += sight.weight[at];
            }
            None => {
                let row = Comparison { name: sight.names[at].clone(), before: square(0), after: square(found) };
                rows.push((row, sight.weight[at]));
            }
        }
    }
    let root = |sum: f64, weight: f64| (sum / weight).sqrt();
    let rows = rows.into_iter();
    rows.map(|(row, weight)| Comparison { before: root(row.before, weight), after: root(row.after, weight), ..row })
        .collect()
}
