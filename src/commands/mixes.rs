//! The loads that take turns on every placement: the plan's congestors together, or each of them by itself first.

use crate::plan::{CongestorTest, Plan};

/// What all congestors together are called beside single ones.
pub(super) const TOGETHER: &str = "all";

/// A load.
pub(super) struct Mix {
    /// What it is called, where there are several.
    pub name: Option<String>,
    /// The plan with its congestors only.
    pub plan: Plan,
}

impl Mix {
    /// Those of a plan. The same nodes measure under each.
    pub(super) fn all_of(plan: &Plan) -> Vec<Mix> {
        if !plan.each_congestor || plan.congestors.len() < 2 {
            return vec![Mix { name: None, plan: plan.clone() }];
        }
        let single =
            |test: CongestorTest| Mix::named(test.kernel.to_string(), Plan { congestors: vec![test], ..plan.clone() });
        let together = Mix::named(TOGETHER.to_owned(), plan.clone());
        plan.congestors.iter().copied().map(single).chain([together]).collect()
    }

    fn named(name: String, plan: Plan) -> Self {
        Mix { name: Some(name), plan }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Preset;

    #[test]
    fn each_congestor_has_a_turn_and_then_all_have() {
        let plan = Plan { each_congestor: true, ..Preset::Lab.plan() };
        let mixes = Mix::all_of(&plan);
        let names: Vec<&str> = mixes.iter().filter_map(|mix| mix.name.as_deref()).collect();
        assert_eq!(names, ["a2a", "incast", "all"]);
        let counts: Vec<usize> = mixes.iter().map(|mix| mix.plan.congestors.len()).collect();
        assert_eq!(counts, [1, 1, 2]);
        let plain = Mix::all_of(&Preset::Lab.plan());
        assert!(plain.len() == 1 && plain[0].name.is_none());
    }
}
