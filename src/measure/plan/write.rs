//! A plan as the text of a plan file, which gives the same plan again.

use std::fmt::Write as _;

use super::{Burst, Counts, Plan};

impl Plan {
    /// The text of a plan file. A program is none of its business.
    pub fn to_file(&self) -> String {
        let mut out = String::new();
        let mut line = |text: String| {
            let _ = writeln!(out, "{text}");
        };
        line(format!("preset = \"{}\"", self.preset));
        line(format!("budget = \"{}ms\"", 1e3 * self.budget_s));
        line(format!("placements = {}", self.placements));
        line(format!("placement = \"{}\"", self.placement));
        line(format!("blocks = {}", self.blocks));
        line(format!("loop = \"{}\"", self.canary_loop));
        self.pace_s.iter().for_each(|pace| line(format!("pace = \"{}ms\"", 1e3 * pace)));
        if let Some(precision) = self.precision {
            line(format!("precision = {precision}\nlongest = \"{}s\"", self.longest_s));
        }
        line(format!("canary_fraction = {}", self.canary_fraction));
        let fractions: Vec<String> = self.load_fractions.iter().map(f64::to_string).collect();
        match &fractions[..] {
            [] => line(format!("load_fraction = {}", self.load_fraction)),
            several => line(format!("load_fraction = \"{}\"", several.join(","))),
        }
        line(format!("split = \"{}\"", self.split));
        self.ranks_per_node.iter().for_each(|ranks| line(format!("ranks_per_node = {ranks}")));
        let kernels = self.canaries.iter().filter(|test| !test.kernel.is_application());
        let names: Vec<String> = kernels.clone().map(|test| format!("\"{}\"", test.kernel)).collect();
        line(format!("canaries = [{}]", names.join(", ")));
        line("\n[congestors]".into());
        self.congestors.iter().for_each(|test| line(format!("{} = {}", test.kernel, test.weight)));
        let canaries = kernels
            .map(|test| (format!("canary.{}", test.kernel), test.counts, self.preset.canary(test.kernel).counts));
        let congestors = self.congestors.iter();
        let congestors = congestors
            .map(|test| (format!("congestor.{}", test.kernel), test.counts, self.preset.congestor(test.kernel).counts));
        let changed = canaries.chain(congestors).flat_map(|(name, is, was)| changes(&name, &is, &was));
        let slowed = self.congestors.iter().filter(|test| test.rate != 1.0);
        let rates = slowed.map(|test| format!("\"congestor.{}.rate\" = {}", test.kernel, test.rate));
        let changed: Vec<String> = changed.chain(rates).collect();
        if !changed.is_empty() {
            line("\n[set]".into());
            changed.into_iter().for_each(&mut line);
        }
        if let Some(Burst { on_s, off_s }) = self.burst {
            line(format!("\n[burst]\non = \"{}ms\"\noff = \"{}ms\"", 1e3 * on_s, 1e3 * off_s));
        }
        if !self.sweep.is_empty() {
            line("\n[sweep]".into());
            self.sweep.iter().for_each(|of| line(format!("\"{}\" = \"{}\"", of.key, of.values.join(","))));
        }
        out
    }
}

/// The counts that are not the preset's.
fn changes(name: &str, is: &Counts, was: &Counts) -> Vec<String> {
    let all = [
        ("bytes", is.bytes, was.bytes),
        ("window", is.window, was.window),
        ("iterations", is.iterations as usize, was.iterations as usize),
        ("warmup", is.warmup as usize, was.warmup as usize),
        ("rings", is.rings as usize, was.rings as usize),
        ("measurements", is.measurements as usize, was.measurements as usize),
    ];
    let changed = all.into_iter().filter(|(_, is, was)| is != was);
    changed.map(|(setting, is, _)| format!("\"{name}.{setting}\" = {is}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::kernel::{Canary, Congestor};
    use crate::plan::{CongestorTest, Patch, Plan, Preset};

    #[test]
    fn a_written_plan_is_read_as_it_was() {
        let patch = Patch {
            congestors: Some(vec![(Congestor::AllToAll, 7.0), (Congestor::Incast, 2.5)]),
            canaries: Some(vec![Canary::Lat, Canary::AllToAll]),
            ranks_per_node: Some(2),
            pace_s: Some(0.002),
            set: ["canary.a2a.bytes=64KiB", "congestor.a2a.bytes=1KiB", "lat.rings=7", "congestor.incast.rate=25%"]
                .map(|of| of.parse().unwrap())
                .into(),
            ..Patch::default()
        };
        let fractions = Patch { load_fraction: Some(vec![0.25, 0.75]), ..patch.clone() };
        let sweep = Some(vec!["congestor.rate=25%,50%".parse().unwrap()]);
        let sweep = Patch { load_fraction: Some(vec![0.25]), sweep, ..patch.clone() };
        for preset in [Preset::Gpcnet, Preset::Quick, Preset::Lab, Preset::Sim] {
            let pace_s = patch.pace_s.filter(|_| preset != Preset::Sim);
            let patched = |patch: &Patch| Plan::resolve(preset, &[Patch { pace_s, ..patch.clone() }]).unwrap();
            for plan in [preset.plan(), patched(&fractions), patched(&sweep)] {
                let text = plan.to_file();
                let mut read = Plan::resolve(Preset::Gpcnet, &[Patch::parse(&text, "written").unwrap()]).unwrap();
                // A file has them in the order of their names.
                let order = |test: &CongestorTest| plan.congestors.iter().position(|of| of.kernel == test.kernel);
                read.congestors.sort_by_key(order);
                assert_eq!(read, plan, "{text}");
            }
        }
    }
}
