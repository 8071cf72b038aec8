//! Parameters that somebody gives: a vendor's latency and rates (the paper's section 5), a file of them, or those of Blue Waters.

use std::path::Path;

use super::{Model, Values};
use crate::input::Limit;
use crate::units;

/// The paper's table 1.
const BLUE_WATERS: &str = include_str!("../../../../data/maxrate-table1.csv");
const HEAD: &str =
    "system,phase,largest_bytes,latency_s,node_bytes_per_s,first_pair_bytes_per_s,further_pair_bytes_per_s";

/// Models of a system that was not measured here.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// Whose they are.
    pub system: String,
    /// Protocol regimes, by ascending message size.
    pub regimes: Vec<GivenRegime>,
}

/// One protocol regime.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenRegime {
    /// Its name; empty where there is but one.
    pub phase: String,
    /// The largest message in it; none for the last.
    pub largest_bytes: Option<usize>,
    /// Latency and rates.
    pub values: Values,
    /// The model whose parameters they are: extended where further pairs have a rate of their own.
    pub model: Model,
}

impl Given {
    /// The regime of a message size.
    pub fn regime(&self, bytes: usize) -> &GivenRegime {
        let fits = |of: &&GivenRegime| of.largest_bytes.is_none_or(|largest| bytes <= largest);
        self.regimes.iter().find(fits).unwrap_or(&self.regimes[self.regimes.len() - 1])
    }

    /// What a word of the user names: `blue-waters`, a file, or `LATENCY,R_C[,R_N]`.
    pub fn read(text: &str) -> Result<Given, String> {
        if text == "blue-waters" {
            return table(BLUE_WATERS);
        }
        if Path::new(text).exists() {
            let read =
                Limit::PARAMETERS.read_text(Path::new(text)).map_err(|error| format!("cannot read {text}: {error}"))?;
            return table(&read).map_err(|error| format!("{text}: {error}"));
        }
        plain(text).ok_or_else(|| {
            format!(
                "--parameters: '{text}' is neither a file nor blue-waters nor LATENCY,R_C,R_N, such as 1.6us,5.9GB,5.5GB (rates are \
                 a second's bytes)"
            )
        })
    }
}

/// `LATENCY,R_C[,R_N]`.
fn plain(text: &str) -> Option<Given> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    let (latency, first, node) = match words[..] {
        [latency, first] => (latency, first, None),
        [latency, first, node] => (latency, first, Some(node)),
        _ => return None,
    };
    let rate = |text: &str| units::size(text.trim_end_matches("/s")).ok().map(|bytes| bytes as f64);
    let (latency, first) = (units::duration(latency).ok()?.as_secs_f64(), rate(first)?);
    let node = match node {
        Some(node) => Some(rate(node)?),
        None => None,
    };
    let values = Values { latency, first, further: first, node };
    let regime = GivenRegime { phase: String::new(), largest_bytes: None, values, model: Model::MaxRate };
    is_sound(&values).then(|| Given { system: "parameters given".to_owned(), regimes: vec![regime] })
}

/// A further rate may be below zero, as the paper's own for short messages.
fn is_sound(of: &Values) -> bool {
    let is_rate = |rate: f64| rate > 0.0 && rate < 1e30;
    (0.0..1e9).contains(&of.latency) && is_rate(of.first) && of.further.abs() < 1e30 && of.node.is_none_or(is_rate)
}

fn table(text: &str) -> Result<Given, String> {
    let mut lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    if lines.next().map(|(_, line)| line) != Some(HEAD) {
        return Err(format!("expected the columns {HEAD} in its first line"));
    }
    let (mut system, mut regimes): (String, Vec<GivenRegime>) = Default::default();
    for (at, line) in lines {
        let wrong = |what: &str| format!("line {}: {what}", at + 1);
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [name, phase, largest, latency, node, first, further] = cells[..] else {
            return Err(wrong("expected 7 columns"));
        };
        let number = |text: &str| text.parse::<f64>().map_err(|_| wrong(&format!("invalid number '{text}'")));
        let (first, node) = (number(first)?, number(node)?);
        let largest_bytes =
            if largest.is_empty() { None } else { Some(units::message(largest).map_err(|error| wrong(&error))?) };
        let model = if further.is_empty() { Model::MaxRate } else { Model::Extended };
        let further = if further.is_empty() { first } else { number(further)? };
        let values = Values { latency: number(latency)?, first, further, node: node.is_finite().then_some(node) };
        if !is_sound(&values) {
            return Err(wrong("a latency of 0 or more and rates above 0 are expected"));
        }
        let ascends = regimes.last().is_none_or(|last: &GivenRegime| {
            last.largest_bytes.is_some_and(|before| largest_bytes.is_none_or(|largest| largest > before))
        });
        if !ascends || (!system.is_empty() && system != name) {
            return Err(wrong("expected one system, with phases by ascending size, the last without a largest"));
        }
        name.clone_into(&mut system);
        regimes.push(GivenRegime { phase: phase.to_owned(), largest_bytes, values, model });
    }
    if regimes.is_empty() { Err("no phase is in it".to_owned()) } else { Ok(Given { system, regimes }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::maxrate::Halo;

    #[test]
    fn blue_waters_is_shipped() {
        let given = Given::read("blue-waters").unwrap();
        assert_eq!((given.system.as_str(), given.regimes.len()), ("Blue Waters (Cray XE6)", 3));
        let phase = |bytes| given.regime(bytes).phase.as_str();
        assert_eq!([32, 33, 1024, 1025, 1 << 30].map(phase), ["short", "eager", "eager", "rendezvous", "rendezvous"]);
        // Section 2's exchange of 2048 doubles on nodes of 16 ranks: the paper measured 380 MB/s of a rank, where its ping-pong has
        // 5.9 GB/s. The model of its table 1 has 242: of a rank, R_N / 16 less the latency.
        let halo: Halo = "1x16384x16".parse().unwrap();
        let regime = given.regime(halo.bytes);
        let rate = halo.bytes_of_a_rank() / halo.seconds(regime.model, &regime.values, 16);
        assert!((rate / 2.42e8 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn a_vendors_numbers_are_read() {
        let given = Given::read("1.6us,5.9GB,5.5GB/s").unwrap();
        let values = Values { latency: 1.6e-6, first: 5.9e9, further: 5.9e9, node: Some(5.5e9) };
        assert_eq!((given.regimes[0].values, given.regimes[0].model), (values, Model::MaxRate));
        assert_eq!(Given::read("2us,1GB").unwrap().regimes[0].values.node, None);
        for wrong in ["", "fast", "1us", "1us,0B", "1us,1GB,1GB,1GB", "/nowhere/file"] {
            assert!(Given::read(wrong).unwrap_err().contains("blue-waters"), "{wrong}");
        }
    }

    #[test]
    fn a_table_with_a_mistake_says_where() {
        let with = |rows: &str| table(&format!("{HEAD}\n{rows}"));
        assert_eq!(with("x,all,,1e-6,inf,1e9,").unwrap().regimes[0].model, Model::MaxRate);
        for (rows, said) in [
            ("", "no phase"),
            ("x,all,,1e-6,inf,1e9", "line 2: expected 7 columns"),
            ("x,all,,soon,inf,1e9,", "invalid number 'soon'"),
            ("x,all,,1e-6,inf,-1e9,", "rates above 0"),
            ("x,a,8,0,inf,1e9,\nx,b,8,0,inf,1e9,", "line 3: expected one system"),
            ("x,a,,0,inf,1e9,\nx,b,,0,inf,1e9,", "line 3: expected one system"),
        ] {
            let error = with(rows).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert!(table("hello").unwrap_err().contains("expected the columns"));
    }
}
