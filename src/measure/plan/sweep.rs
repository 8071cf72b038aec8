//! A sweep: keys of a plan with the values that each takes in turn. Every combination of values is a point, a plan of its own.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::set::Set;
use super::{Burst, Loop, Part, Plan, PlanError};
use crate::kernel::Congestor;
use crate::units;

/// More keys than this are no curve and no map.
const MOST_KEYS: usize = 2;
/// More points than this are not worth their time.
const MOST_POINTS: usize = 64;

/// A key and the values that it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Swept {
    /// A setting, as `--set` writes it, or one of `congestor.rate`, `load-fraction`, `canary-fraction`, `congestors`, `pace`,
    /// `protocol`, `transport`, `nodes`, `ranks-per-node`.
    pub key: String,
    /// As they were given, in that order.
    pub values: Vec<String>,
}

impl FromStr for Swept {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, values) = text
            .split_once('=')
            .ok_or_else(|| format!("invalid sweep '{text}': expected KEY=VALUES, e.g. congestor.rate=25%,50%,100%"))?;
        Swept::of(key, values)
    }
}

impl Swept {
    /// A key with values between commas; of a fraction also LOW..HIGH/COUNT, COUNT values at equal distances.
    pub fn of(key: &str, values: &str) -> Result<Self, String> {
        let key = key.trim().to_owned();
        if !is_known(&key) {
            return Err(unknown(&key));
        }
        let mut all = Vec::new();
        for value in values.split(',').map(str::trim) {
            match value.split_once("..") {
                Some(range) => all.extend(spaced(&key, value, range)?),
                None => all.push(value.to_owned()),
            }
        }
        Ok(Swept { key, values: all })
    }

    /// A setting as the key of a sweep, where it has several values.
    pub fn of_set(set: &Set) -> Option<Result<Self, String>> {
        set.value.contains(',').then(|| Swept::of(&set.key, &set.value))
    }

    /// Whether its values are parts of a whole.
    fn is_fraction(&self) -> bool {
        is_fraction(&self.key)
    }

    /// Whether a greater value means more load, so that a curve over it may have an onset.
    pub fn is_load(&self) -> bool {
        let of_congestors = self.key.starts_with("congestor.") && self.key.ends_with(".bytes");
        self.key == "load-fraction" || is_rate(&self.key) || of_congestors
    }

    /// A value as a number, where its key has numbers: bytes, seconds, counts, and fractions from 0 to 1.
    pub fn number(&self, value: &str) -> Option<f64> {
        match self.key.as_str() {
            "congestors" => None,
            "pace" | BURST_ON | BURST_OFF => units::duration(value).ok().map(|time| time.as_secs_f64()),
            _ if self.is_fraction() => units::fraction(value).ok(),
            key if key.ends_with(".bytes") => units::bytes(value).ok().map(|bytes| bytes as f64),
            _ => value.parse().ok(),
        }
    }

    fn apply(&self, value: &str, plan: &mut Plan) -> Result<(), String> {
        let wrong = |why: String| format!("{}={value}: {why}", self.key);
        match self.key.as_str() {
            "load-fraction" => plan.load_fraction = units::fraction(value).map_err(wrong)?,
            "canary-fraction" => plan.canary_fraction = units::fraction(value).map_err(wrong)?,
            "pace" => {
                let pace = units::duration(value).map_err(wrong)?;
                (plan.canary_loop, plan.pace_s) = (Loop::Open, Some(pace.as_secs_f64()));
            }
            BURST_ON | BURST_OFF => {
                let time = units::duration(value).map_err(wrong)?.as_secs_f64();
                let burst = plan.burst.ok_or_else(|| wrong("without bursts".into()))?;
                plan.burst = Some(match self.key.as_str() {
                    BURST_ON => Burst { on_s: time, ..burst },
                    _ => Burst { off_s: time, ..burst },
                });
            }
            "congestors" => {
                let kernels = value.split('+').map(str::parse).collect::<Result<Vec<Congestor>, String>>();
                let known = |kernel: &Congestor| plan.congestors.iter().find(|test| test.kernel == *kernel).copied();
                let test = |kernel| known(&kernel).unwrap_or_else(|| plan.preset.congestor(kernel));
                plan.congestors = kernels.map_err(wrong)?.into_iter().map(test).collect();
            }
            key if Part::KEYS.contains(&key) => plan.part.set(key, value).map_err(wrong)?,
            key if key.contains('.') => Set::of(key, value).apply(plan).map_err(wrong)?,
            key => return Err(unknown(key)),
        }
        Ok(())
    }
}

/// How long bursts are, and their pauses: `tailback burst` goes over lists of both.
pub const BURST_ON: &str = "burst.on";
/// See [`BURST_ON`].
pub const BURST_OFF: &str = "burst.off";

/// Keys that are no setting of a kernel.
const KEYS: [&str; 4] = ["load-fraction", "canary-fraction", "congestors", "pace"];

/// The values of a key, where it is swept.
pub fn values_of<'s>(sweep: &'s [Swept], key: &str) -> Option<&'s [String]> {
    sweep.iter().find(|swept| swept.key == key).map(|swept| &swept.values[..])
}

fn is_known(key: &str) -> bool {
    KEYS.contains(&key) || Part::KEYS.contains(&key) || key.contains('.')
}

fn unknown(key: &str) -> String {
    let known = [KEYS, Part::KEYS].concat().join(", ");
    format!("invalid key '{key}': expected congestor.rate, {known}, or KERNEL.SETTING as for --set")
}

fn is_rate(key: &str) -> bool {
    key.ends_with(".rate")
}

fn is_fraction(key: &str) -> bool {
    is_rate(key) || key.ends_with("-fraction")
}

/// So many values from the lowest to the highest.
fn spaced(key: &str, text: &str, (low, rest): (&str, &str)) -> Result<Vec<String>, String> {
    let wrong = || format!("invalid values '{text}' of {key}: expected LOW..HIGH/COUNT, e.g. 12.5%..100%/8");
    if !is_fraction(key) {
        return Err(format!("invalid values '{text}' of {key}: expected values between commas"));
    }
    let (high, count) = rest.split_once('/').ok_or_else(wrong)?;
    let (low, high) = (units::fraction(low).map_err(|_| wrong())?, units::fraction(high).map_err(|_| wrong())?);
    let count = count.parse().ok().filter(|count| (2..=MOST_POINTS).contains(count)).ok_or_else(wrong)?;
    let at = |step: usize| 100.0 * (low + (high - low) * step as f64 / (count - 1) as f64);
    Ok((0..count).map(|step| format!("{}%", units::short(at(step)))).collect())
}

/// A key with one of its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweptValue {
    /// The key.
    pub key: String,
    /// The value as it was given.
    pub value: String,
    /// The same as a number (bytes, seconds, counts, fractions from 0 to 1); absent where it is a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
}

impl fmt::Display for SweptValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}", self.key, self.value)
    }
}

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The values it has, in the order of the keys.
    pub values: Vec<SweptValue>,
    /// The plan with them.
    pub plan: Plan,
}

impl Plan {
    /// The points of the plan's sweep, the last key's values in turn under each of the first; none without a sweep.
    pub fn points(&self) -> Result<Vec<Point>, PlanError> {
        let invalid = PlanError::Invalid;
        let [first, rest @ ..] = &self.sweep[..] else { return Ok(Vec::new()) };
        if self.sweep.len() > MOST_KEYS || rest.iter().any(|other| other.key == first.key) {
            return Err(invalid(format!("a sweep has one key or two different ones, not {}", self.sweep.len())));
        }
        if self.each_congestor || self.load_fractions.len() > 1 || !self.sizes.is_empty() {
            return Err(invalid(
                "in a sweep only its points take turns: leave out each and several load fractions or sizes, or make them \
                 its key (congestors=, load-fraction=)"
                    .into(),
            ));
        }
        let count: usize = self.sweep.iter().map(|swept| swept.values.len()).product();
        if !(2..=MOST_POINTS).contains(&count) {
            return Err(invalid(format!("a sweep of {count} points: expected 2 to {MOST_POINTS}")));
        }
        let plain = Plan { sweep: Vec::new(), ..self.clone() };
        let mut points = vec![Point { values: Vec::new(), plan: plain }];
        for swept in &self.sweep {
            let mut next = Vec::new();
            for point in &points {
                for value in &swept.values {
                    next.push(point.with(swept, value)?);
                }
            }
            points = next;
        }
        let same = |at: usize| points[..at].iter().find(|of| of.plan == points[at].plan);
        match (1..points.len()).find_map(|at| Some((at, same(at)?))) {
            Some((at, other)) => Err(invalid(format!(
                "two points of the sweep are the same: {} and {}",
                other.name(),
                points[at].name()
            ))),
            None => Ok(points),
        }
    }
}

impl Point {
    /// Its values in words.
    pub fn name(&self) -> String {
        name(&self.values)
    }

    fn with(&self, swept: &Swept, value: &str) -> Result<Self, PlanError> {
        let mut plan = self.plan.clone();
        swept.apply(value, &mut plan).map_err(PlanError::Invalid)?;
        plan.validate().map_err(|error| PlanError::Invalid(format!("{}={value}: {error}", swept.key)))?;
        let value = SweptValue { key: swept.key.clone(), value: value.to_owned(), number: swept.number(value) };
        Ok(Point { values: self.values.iter().cloned().chain([value]).collect(), plan })
    }
}

/// The values of a point in words.
pub fn name(values: &[SweptValue]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use tailback_engine::Protocol;

    use super::*;
    use crate::plan::{Patch, Preset, TRANSPORT};

    fn plan(sweep: &[&str]) -> Result<Plan, String> {
        let sweep = sweep.iter().map(|text| text.parse()).collect::<Result<_, String>>()?;
        let patch = Patch { sweep: Some(sweep), ..Patch::default() };
        Plan::resolve(Preset::Lab, &[patch]).map_err(|error| error.to_string())
    }

    #[test]
    fn every_combination_is_a_point_with_its_own_plan() {
        let points = plan(&["congestor.rate=50%,100%", "lat.bytes=8,1KiB"]).unwrap().points().unwrap();
        let names: Vec<String> = points.iter().map(Point::name).collect();
        assert_eq!(names[..2], ["congestor.rate=50% lat.bytes=8", "congestor.rate=50% lat.bytes=1KiB"]);
        assert_eq!((names.len(), points[3].values[1].number), (4, Some(1024.0)));
        let of = |at: usize| (points[at].plan.congestors[1].rate, points[at].plan.canaries[0].counts.bytes);
        assert_eq!([of(0), of(3)], [(0.5, 8), (1.0, 1024)]);
        assert!(points.iter().all(|point| point.plan.sweep.is_empty()));
    }

    #[test]
    fn values_at_equal_distances_are_a_short_form() {
        let swept: Swept = "congestor.rate=12.5%..100%/8".parse().unwrap();
        assert_eq!(swept.values, ["12.5%", "25%", "37.5%", "50%", "62.5%", "75%", "87.5%", "100%"]);
        assert!(swept.is_load() && swept.number("12.5%") == Some(0.125));
        let sizes: Swept = "lat.bytes=8, 64".parse().unwrap();
        assert!(sizes.values == ["8", "64"] && !sizes.is_load());
    }

    #[test]
    fn congestors_are_points_too() {
        let points = plan(&["congestors=a2a,incast,a2a+incast,bcast"]).unwrap().points().unwrap();
        let counts: Vec<usize> = points.iter().map(|point| point.plan.congestors.len()).collect();
        assert_eq!((counts, points[0].values[0].number), (vec![1, 1, 2, 1], None));
    }

    #[test]
    fn points_may_use_a_part_of_the_job() {
        let points = plan(&["nodes=4,16", "protocol=eager,put"]).unwrap().points().unwrap();
        let numbers: Vec<Option<f64>> = points[3].values.iter().map(|of| of.number).collect();
        assert_eq!(
            (points.len(), points[3].name(), numbers),
            (4, "nodes=16 protocol=put".into(), vec![Some(16.0), None])
        );
        let part = &points[3].plan.part;
        assert_eq!((part.nodes, part.protocol, part.ranks_per_node), (Some(16), Some(Protocol::Put), None));
        let sweep = &plan(&["transport=tcp,mpi"]).unwrap().sweep;
        assert!(!sweep[0].is_load() && values_of(sweep, TRANSPORT).is_some_and(|of| of == ["tcp", "mpi"]));
        // A file has the keys, of which the points are made again.
        let text = serde_json::to_value(&points[3].plan).unwrap();
        assert!(text.get("part").is_none(), "{text}");
    }

    #[test]
    fn nothing_but_points_takes_turns() {
        let sweep = vec!["pace=1ms,2ms".parse().unwrap()];
        for plan in [
            Plan { each_congestor: true, ..Preset::Lab.plan() },
            Plan { load_fractions: vec![0.5, 1.0], ..Preset::Lab.plan() },
            Plan { sizes: vec![8, 64], ..Preset::Lab.plan() },
        ] {
            let said = Plan { sweep: sweep.clone(), ..plan }.points().unwrap_err().to_string();
            assert!(said.starts_with("in a sweep only its points take turns"), "{said}");
        }
    }

    #[test]
    fn a_point_that_is_impossible_is_refused_in_one_line() {
        for (sweep, expected) in [
            (&["congestor.rate"][..], "invalid sweep 'congestor.rate': expected KEY=VALUES"),
            (&["congestor.rate=50%,0%"], "congestor.rate=0%: "),
            (&["congestor.rate=50%,150%"], "congestor.rate=150%: "),
            (&["load-fraction=50%"], "a sweep of 1 points: expected 2 to 64"),
            (
                &["load-fraction=50%,0.5"],
                "two points of the sweep are the same: load-fraction=50% and load-fraction=0.5",
            ),
            (&["nodes=4,0"], "nodes=0: invalid count '0': expected 1 or more"),
            (&["nodes=4,04"], "two points of the sweep are the same: nodes=4 and nodes=04"),
            (&["protocol=put,rdma"], "protocol=rdma: unknown protocol 'rdma': expected eager, put or get"),
            (&["transport=tcp,tcp"], "two points of the sweep are the same: transport=tcp and transport=tcp"),
            (
                &["ranks=4,8"],
                "invalid key 'ranks': expected congestor.rate, load-fraction, canary-fraction, congestors, pace, protocol, transport, nodes, ranks-per-node, or ",
            ),
            (&["intensity=10%..100%/4"], "invalid key 'intensity': expected congestor.rate, load-fraction"),
            (&["lat.bytes=8,0"], "lat.bytes=0: lat: bytes = 0: a message has at least one byte"),
            (&["lat.bytes=8..64/3"], "invalid values '8..64/3' of lat.bytes: expected values between commas"),
            (&["lat.bytes=8,16", "pace=1ms,2ms", "a2a.bytes=1,2"], "a sweep has one key or two different ones, not 3"),
            (&["congestors=a2a,ab"], "congestors=ab: unknown congestor 'ab'"),
        ] {
            let said = plan(sweep).expect_err(&format!("{sweep:?}"));
            assert!(said.starts_with(expected) && !said.contains('\n'), "{sweep:?}: {said}");
        }
    }
}
