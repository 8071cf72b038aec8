//! Whatever a plan file holds: it is a plan that can be resolved over every preset, or an error of one line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tailback::plan::{Patch, Plan, Preset};

fuzz_target!(|text: &str| {
    tailback_fuzz::within(16, || match Patch::parse(text, "x.toml") {
        Err(error) => tailback_fuzz::one_line(&error),
        Ok(patch) => {
            for preset in [Preset::Gpcnet, Preset::Quick, Preset::Lab] {
                match Plan::resolve(preset, std::slice::from_ref(&patch)) {
                    Err(error) => tailback_fuzz::one_line(&error),
                    Ok(plan) => assert!(plan.block_s() > 0.0 && plan.placements > 0, "{plan:?}"),
                }
            }
        }
    });
});
