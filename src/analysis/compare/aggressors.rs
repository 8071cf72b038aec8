//! Victims and aggressors: what each load does to each canary and application, in one table.
//!
//! Rows are what was measured, columns the congestors it was measured beside: the runs of one job that ran each by itself,
//! or files of several jobs.

use serde::Serialize;

use super::sides::Side;
use crate::engine::LoadState;
use crate::stats::Factor;
use crate::text::{Cell, Table};

/// What each load does to each victim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aggressors {
    /// The loads.
    pub loads: Vec<String>,
    /// The victims.
    pub victims: Vec<Victim>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Victim {
    /// What was measured.
    pub title: String,
    /// The impact by its headline beside each load, in their order.
    pub impacts: Vec<Option<Factor>>,
    /// Beside which loads there is one that may not be reported.
    #[serde(skip)]
    not_reportable: Vec<usize>,
}

impl Aggressors {
    /// Of these sides; nothing with a single load, or where two sides measured the same beside the same.
    pub fn of(sides: &[Side<'_>]) -> Option<Self> {
        let networks: Vec<String> = sides.iter().map(|side| side.run.transport.label()).collect();
        let several = networks.iter().any(|network| *network != networks[0]);
        let (mut loads, mut victims): (Vec<String>, Vec<Victim>) = (Vec::new(), Vec::new());
        for (side, network) in sides.iter().zip(&networks) {
            for impact in &side.run.impacts {
                let (load, kernel) = (load_of(side), impact.kernel);
                let Some(factor) = side.run.impact(kernel, kernel.headline()) else { continue };
                let name =
                    side.run.test(kernel, LoadState::Loaded).map_or(impact.title.clone(), |test| test.title.clone());
                let title = if several { format!("{name}, {network}") } else { name };
                let column = place(&mut loads, |of| *of == load, || load.clone());
                let fresh = || Victim { title: title.clone(), impacts: Vec::new(), not_reportable: Vec::new() };
                let row = place(&mut victims, |of| of.title == title, fresh);
                let impacts = &mut victims[row].impacts;
                impacts.resize(impacts.len().max(column + 1), None);
                if impacts[column].replace(factor).is_some() {
                    return None;
                }
                if !side.run.judgement(kernel).is_reportable() {
                    victims[row].not_reportable.push(column);
                }
            }
        }
        for victim in &mut victims {
            victim.impacts.resize(loads.len(), None);
            victim.not_reportable.iter().for_each(|&at| victim.impacts[at] = None);
        }
        (loads.len() > 1).then_some(Aggressors { loads, victims })
    }

    /// A row for each victim, a column for each load.
    pub fn table(&self) -> Table {
        let loads = self.loads.iter().enumerate();
        Table::of(&self.victims)
            .column("victim", |victim| &victim.title)
            .columns(loads, |table, (at, load)| {
                table.column(load, |victim| match victim.impacts[at] {
                    None if victim.not_reportable.contains(&at) => Some(Cell::from("not reportable")),
                    impact => impact.map(Cell::from),
                })
            })
            .done()
    }
}

/// What the table says.
pub const AGGRESSORS_TITLE: &str = "Victims and aggressors: times worse beside each load, with 95% interval";

/// What loads a side's network: what its run says, or all congestors of its plan.
fn load_of(side: &Side<'_>) -> String {
    side.run.beside.clone().unwrap_or_else(|| {
        let keys: Vec<&str> = side.file.plan.congestors.iter().map(|test| test.kernel.info().key).collect();
        keys.join("+")
    })
}

/// The place of an entry, made if it is not there.
fn place<T>(all: &mut Vec<T>, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> usize {
    all.iter().position(is).unwrap_or_else(|| {
        all.push(make());
        all.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::sides::{of_file, sides};
    use super::*;
    use crate::assemble::synthetic;

    #[test]
    fn runs_beside_each_load_are_columns() {
        let mut file = synthetic::file("tcp", None, 2.0);
        let mut other = synthetic::file("tcp", None, 6.0).runs.remove(0);
        file.runs[0].beside = Some("a2a".into());
        other.beside = Some("incast".into());
        file.runs.push(other);
        let found = Aggressors::of(&of_file(&file)).unwrap();
        assert_eq!((found.loads.join(" "), found.victims.len()), ("a2a incast".to_owned(), 3));
        let factors: Vec<f64> = found.victims[0].impacts.iter().map(|of| of.unwrap().factor.round()).collect();
        assert_eq!(factors, [2.0, 6.0]);
        assert!(found.table().text().contains("lat 8 B"));
    }

    #[test]
    fn what_may_not_be_reported_has_no_factor() {
        let mut file = synthetic::file("tcp", None, 2.0);
        let mut other = synthetic::file("tcp", None, 6.0).runs.remove(0);
        file.runs[0].beside = Some("a2a".into());
        other.beside = Some("incast".into());
        other.tests.iter_mut().for_each(|test| test.covered = Some(0.1));
        file.runs.push(other);
        let found = Aggressors::of(&of_file(&file)).unwrap();
        assert_eq!(found.victims[0].impacts[1], None);
        assert!(found.table().text().contains("not reportable"), "{}", found.table().text());
    }

    #[test]
    fn one_load_or_the_same_twice_is_no_table() {
        let file = synthetic::file("tcp", None, 2.0);
        assert_eq!(Aggressors::of(&of_file(&file)), None);
        let twice = [("a.json", file.clone()), ("b.json", file)].map(|(name, file)| (PathBuf::from(name), file));
        assert_eq!(Aggressors::of(&sides(&twice)), None);
    }
}
