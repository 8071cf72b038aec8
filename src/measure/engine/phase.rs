//! What a phase is: a state, what is measured in it, over which network, on which placement.
//!
//! Inside the program a phase is a [`PhaseId`]; words are made of it, and read again, only where it leaves: in the result
//! file, on the way to the process that started the ranks, in the simulator, for people.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::plain_name;
use crate::stats::TestState;

/// The state a phase measures in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadState {
    /// Canaries without load.
    Isolated,
    /// One kind of congestor, nothing else.
    Alone,
    /// Canaries under load.
    Loaded,
    /// All congestors, no canary.
    Congest,
}

impl LoadState {
    const ALL: [LoadState; 4] = [LoadState::Isolated, LoadState::Alone, LoadState::Loaded, LoadState::Congest];

    /// The state of a canary's test in it, where one is measured.
    pub fn of_test(self) -> Option<TestState> {
        match self {
            LoadState::Isolated => Some(TestState::Idle),
            LoadState::Loaded => Some(TestState::Loaded),
            LoadState::Alone | LoadState::Congest => None,
        }
    }

    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            LoadState::Isolated => "idle",
            _ => self.key(),
        }
    }

    /// As files have it: with GPCNeT's word for a network without load.
    pub fn key(self) -> &'static str {
        match self {
            LoadState::Isolated => "isolated",
            LoadState::Alone => "alone",
            LoadState::Loaded => "loaded",
            LoadState::Congest => "congest",
        }
    }
}

/// One phase among those of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct PhaseId {
    /// In what state; none in a study, and in steps between phases.
    pub state: Option<LoadState>,
    /// What is measured, by its title.
    pub test: String,
    /// What it goes over, where the job has several runs.
    pub over: Option<String>,
    /// Which placement it is, from 1, and of how many, where there are several.
    pub placement: Option<(u32, u32)>,
}

impl PhaseId {
    /// What the phase is called in which canary follows canary.
    pub const ALL_CANARIES: &str = "all canaries";
    /// What a network's name begins with; files before 0.3 have "sim" of a simulated one.
    const NETWORKS: [&str; 6] = ["mpi", "libfabric", "verbs", "tcp", "simulated", "sim"];
    const OVER: &str = " over ";
    const PLACEMENT: &str = ", placement ";

    /// The only run's, on its only placement.
    pub fn new(state: LoadState, test: impl Into<String>) -> Self {
        PhaseId { state: Some(state), test: test.into(), ..PhaseId::default() }
    }

    /// Whether it measures in this state.
    pub fn is(&self, state: LoadState) -> bool {
        self.state == Some(state)
    }

    /// The same on whatever placement, and the number of its own.
    pub fn on_any_placement(&self) -> (PhaseId, u32) {
        (PhaseId { placement: None, ..self.clone() }, self.placement.map_or(1, |(at, _)| at))
    }

    /// The same in whatever state: what its isolated and its loaded phase have in common.
    pub fn in_any_state(&self) -> PhaseId {
        PhaseId { state: None, ..self.clone() }
    }

    fn with(&self, state: Option<&'static str>) -> String {
        let words = state.into_iter().chain(Some(&*self.test).filter(|test| !test.is_empty()));
        let mut out = words.collect::<Vec<&str>>().join(" ");
        if let Some(over) = &self.over {
            out += &format!("{}{over}", PhaseId::OVER);
        }
        if let Some((at, of)) = self.placement {
            out += &format!("{}{at} of {of}", PhaseId::PLACEMENT);
        }
        out
    }

    /// As files and programs have it; it is read again from this.
    pub fn key(&self) -> String {
        self.with(self.state.map(LoadState::key))
    }
}

/// As people read it.
impl fmt::Display for PhaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with(self.state.map(LoadState::word)))
    }
}

/// Any text is a phase, and is written again as it was read: files may come from elsewhere. Only what files before 0.3 called a
/// test gets the name that it has now.
impl From<&str> for PhaseId {
    fn from(text: &str) -> Self {
        let placed = text.rsplit_once(PhaseId::PLACEMENT).and_then(|(rest, placement)| {
            let (at, of) = placement.split_once(" of ")?;
            Some((rest, Some((at.parse().ok()?, of.parse().ok()?))))
        });
        let (text, placement) = placed.unwrap_or((text, None));
        // An application may have any name; what stands after a network's has to begin with one.
        let is_network = |label: &str| {
            let first = label.split([',', ' ']).next().unwrap_or_default();
            PhaseId::NETWORKS.contains(&first)
        };
        let run = text.rsplit_once(PhaseId::OVER).filter(|(_, label)| is_network(label));
        let (text, over) = run.map_or((text, None), |(rest, label)| (rest, Some(label.to_owned())));
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        let state = LoadState::ALL.into_iter().find(|state| state.key() == first && !text.ends_with(' '));
        let test = if state.is_some() { rest } else { text };
        PhaseId { state, test: plain_name(test.to_owned()), over, placement }
    }
}

impl From<String> for PhaseId {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<PhaseId> for String {
    fn from(phase: PhaseId) -> Self {
        phase.key()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_of_a_phase_are_read_again() {
        let phase = PhaseId::new(LoadState::Loaded, "lat 8 B");
        let before = PhaseId::from("loaded RR Two-sided Lat (8 B)");
        assert_eq!((phase.to_string().as_str(), before), ("loaded lat 8 B", phase.clone()));
        let phase = PhaseId { over: Some("tcp, put under mpi beside a2a".into()), placement: Some((2, 15)), ..phase };
        let text = "loaded lat 8 B over tcp, put under mpi beside a2a, placement 2 of 15";
        assert_eq!((phase.to_string().as_str(), PhaseId::from(text)), (text, phase.clone()));
        assert_eq!(phase.on_any_placement(), (PhaseId { placement: None, ..phase }, 2));
        let study = PhaseId::from("maxrate");
        assert_eq!((study.state, study.test.as_str(), study.on_any_placement().1), (None, "maxrate", 1));
    }

    #[test]
    fn an_application_may_be_called_anything() {
        let phase = PhaseId::new(LoadState::Isolated, "Application flow over wings, placement of parts");
        assert_eq!(PhaseId::from(phase.key()), phase);
        assert!(phase.to_string().starts_with("idle Application flow"), "{phase}");
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_it_was_read(text in "((isolated|loaded|alone) ?)?.{0,12}( over (tcp|sim, put|x))?(, placement [1-9][0-9]? of [1-9][0-9]?)?") {
            prop_assert_eq!(PhaseId::from(text.as_str()).key(), text);
        }
    }
}
