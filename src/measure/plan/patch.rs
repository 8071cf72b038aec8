//! Changes to a plan, as a plan file or the command line writes them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::set::Set;
use super::{Application, Better, Burst, CanaryTest, Loop, Plan, PlanError, Preset, Swept};
use crate::input::Limit;
use crate::kernel::{Canary, Congestor};
use crate::layout::{Policy, Split};
use crate::units;

/// A number, or a text with a unit.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text.clone(),
        }
    }
}

/// What a layer changes; everything else stays.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Patch {
    pub preset: Option<Preset>,
    pub budget_s: Option<f64>,
    pub placements: Option<u32>,
    pub placement: Option<Policy>,
    pub blocks: Option<u32>,
    pub precision: Option<f64>,
    pub canary_loop: Option<Loop>,
    pub pace_s: Option<f64>,
    pub longest_s: Option<f64>,
    pub canary_fraction: Option<f64>,
    /// One, or several that take turns.
    pub load_fraction: Option<Vec<f64>>,
    pub split: Option<Split>,
    pub ranks_per_node: Option<usize>,
    pub congestors_alone: Option<bool>,
    pub each_congestor: Option<bool>,
    pub each_own_share: Option<bool>,
    pub ring_histograms: Option<bool>,
    pub sizes: Option<Vec<usize>>,
    pub canaries: Option<Vec<Canary>>,
    /// Kinds with their weights.
    pub congestors: Option<Vec<(Congestor, f64)>>,
    /// A program to measure before the canaries, and which of its figures are good.
    pub application: Option<(Application, Better)>,
    pub set: Vec<Set>,
    /// For how long load is on, and for how long it pauses, in seconds.
    pub burst: Option<(Option<f64>, Option<f64>)>,
    /// Keys to sweep.
    pub sweep: Option<Vec<Swept>>,
}

/// The file's own form.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    preset: Option<Preset>,
    budget: Option<Value>,
    placements: Option<u32>,
    placement: Option<Policy>,
    blocks: Option<u32>,
    precision: Option<Value>,
    #[serde(rename = "loop")]
    canary_loop: Option<Loop>,
    pace: Option<Value>,
    longest: Option<Value>,
    canary_fraction: Option<Value>,
    load_fraction: Option<Value>,
    split: Option<Split>,
    ranks_per_node: Option<usize>,
    congestors_alone: Option<bool>,
    each_congestor: Option<bool>,
    each_own_share: Option<bool>,
    ring_histograms: Option<bool>,
    canaries: Option<Vec<Canary>>,
    congestors: Option<BTreeMap<String, f64>>,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    burst: Option<BurstFile>,
    sweep: Option<BTreeMap<String, Values>>,
}

/// A burst and its pause.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BurstFile {
    on: Option<Value>,
    off: Option<Value>,
}

/// Several of them, or a text that has them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Values {
    Several(Vec<Value>),
    Text(String),
}

impl Values {
    fn text(&self) -> String {
        match self {
            Values::Several(values) => values.iter().map(Value::text).collect::<Vec<_>>().join(","),
            Values::Text(text) => text.clone(),
        }
    }
}

impl Patch {
    /// The patch in a plan file.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let name = path.display().to_string();
        let unreadable = |source| PlanError::Unreadable { path: name.clone(), source };
        // The launcher reads it, then rank 0: the second would find a pipe empty and run another plan.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(unreadable(std::io::Error::other("it is no regular file")));
        }
        let text = Limit::PLAN.read_text(path).map_err(unreadable)?;
        Self::parse(&text, &name)
    }

    /// The patch in the text of a plan file called `path`.
    pub fn parse(text: &str, path: &str) -> Result<Self, PlanError> {
        let malformed = |detail: String| PlanError::Malformed { path: path.into(), detail };
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            malformed(format!("{place}{}", error.message().replace('\n', " ")))
        })?;
        let seconds = |value: &Value| units::duration(&value.text()).map(|duration| duration.as_secs_f64());
        let fraction = |value: &Value| units::fraction(&value.text());
        let fractions = |value: &Value| value.text().split(',').map(units::fraction).collect();
        let congestors = file.congestors.map(|kinds| {
            kinds.iter().map(|(kind, &weight)| Ok((kind.parse()?, weight))).collect::<Result<Vec<_>, String>>()
        });
        let sweep = file.sweep.map(|keys| keys.iter().map(|(key, values)| Swept::of(key, &values.text())).collect());
        let of_burst = |value: &Option<Value>| value.as_ref().map(seconds).transpose().map_err(malformed);
        let burst = match &file.burst {
            Some(BurstFile { on, off }) => Some((of_burst(on)?, of_burst(off)?)),
            None => None,
        };
        Ok(Patch {
            preset: file.preset,
            budget_s: file.budget.as_ref().map(seconds).transpose().map_err(malformed)?,
            placements: file.placements,
            placement: file.placement,
            blocks: file.blocks,
            precision: file.precision.as_ref().map(fraction).transpose().map_err(malformed)?,
            canary_loop: file.canary_loop,
            pace_s: file.pace.as_ref().map(seconds).transpose().map_err(malformed)?,
            longest_s: file.longest.as_ref().map(seconds).transpose().map_err(malformed)?,
            canary_fraction: file.canary_fraction.as_ref().map(fraction).transpose().map_err(malformed)?,
            load_fraction: file.load_fraction.as_ref().map(fractions).transpose().map_err(malformed)?,
            split: file.split,
            ranks_per_node: file.ranks_per_node,
            congestors_alone: file.congestors_alone,
            each_congestor: file.each_congestor,
            each_own_share: file.each_own_share,
            ring_histograms: file.ring_histograms,
            sizes: None,
            canaries: file.canaries,
            congestors: congestors.transpose().map_err(malformed)?,
            application: None,
            set: file.set.iter().map(|(key, value)| Set::of(key, &value.text())).collect(),
            burst,
            sweep: sweep.transpose().map_err(malformed)?,
        })
    }

    /// Changes `plan`; the caller validates.
    pub(super) fn apply(&self, plan: &mut Plan) -> Result<(), PlanError> {
        let preset = plan.preset;
        plan.budget_s = self.budget_s.unwrap_or(plan.budget_s);
        plan.placements = self.placements.unwrap_or(plan.placements);
        plan.placement = self.placement.unwrap_or(plan.placement);
        plan.blocks = self.blocks.unwrap_or(plan.blocks);
        plan.precision = self.precision.or(plan.precision);
        match (self.canary_loop, self.pace_s) {
            (Some(Loop::Closed), Some(_)) => {
                return Err(PlanError::Invalid("a pace is for open loops: leave it out, or --loop closed".into()));
            }
            (Some(Loop::Closed), None) => (plan.canary_loop, plan.pace_s) = (Loop::Closed, None),
            (Some(Loop::Open), _) | (None, Some(_)) => {
                (plan.canary_loop, plan.pace_s) = (Loop::Open, self.pace_s.or(plan.pace_s));
            }
            (None, None) => {}
        }
        plan.longest_s = self.longest_s.unwrap_or(plan.longest_s);
        plan.canary_fraction = self.canary_fraction.unwrap_or(plan.canary_fraction);
        if let Some(fractions) = &self.load_fraction {
            plan.load_fraction = fractions.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            plan.load_fractions = if fractions.len() > 1 { fractions.clone() } else { Vec::new() };
        }
        plan.split = self.split.unwrap_or(plan.split);
        plan.ranks_per_node = self.ranks_per_node.or(plan.ranks_per_node);
        plan.congestors_alone = self.congestors_alone.unwrap_or(plan.congestors_alone);
        plan.each_congestor = self.each_congestor.unwrap_or(plan.each_congestor);
        plan.each_own_share = self.each_own_share.unwrap_or(plan.each_own_share);
        plan.ring_histograms = self.ring_histograms.unwrap_or(plan.ring_histograms);
        if let Some(sizes) = &self.sizes {
            plan.sizes.clone_from(sizes);
        }
        if let Some(kernels) = &self.canaries {
            let test = |&kernel: &Canary| -> CanaryTest {
                let known = plan.canaries.iter().find(|test| test.kernel == kernel);
                known.copied().unwrap_or_else(|| preset.canary(kernel))
            };
            plan.canaries = kernels.iter().map(test).collect();
        }
        if let Some((application, better)) = &self.application {
            plan.canaries.insert(0, preset.canary(better.canary()));
            plan.application = Some(application.clone());
        }
        if let Some(mix) = &self.congestors {
            let known = plan.congestors.clone();
            plan.congestors = mix
                .iter()
                .map(|&(kernel, weight)| {
                    let mut test = known
                        .iter()
                        .find(|test| test.kernel == kernel)
                        .copied()
                        .unwrap_or_else(|| preset.congestor(kernel));
                    test.weight = weight;
                    test
                })
                .collect();
        }
        if let Some((on_s, off_s)) = self.burst {
            let known = plan.burst;
            let missing =
                || PlanError::Invalid("bursts need how long load is on and how long it pauses: --on and --off".into());
            let on_s = on_s.or(known.map(|of| of.on_s)).ok_or_else(missing)?;
            let off_s = off_s.or(known.map(|of| of.off_s)).ok_or_else(missing)?;
            plan.burst = Some(Burst { on_s, off_s });
        }
        if let Some(sweep) = &self.sweep {
            plan.sweep.clone_from(sweep);
        }
        self.set.iter().try_for_each(|set| set.apply(plan)).map_err(PlanError::Invalid)
    }
}
