//! What is said of figures that are a model's.

use crate::result::ResultFile;
use crate::text::figure;

/// What stands over every table of a simulated network; nothing over those of others.
pub(super) fn banner(file: &ResultFile) -> String {
    let Some(machine) = &file.machine else { return String::new() };
    let virtual_s = machine.virtual_s.map(|s| format!(", {} ms of virtual time", figure(1e3 * s))).unwrap_or_default();
    format!(
        "SIMULATED on the machine {} ({}){virtual_s}: figures of a model, on virtual time. No such network was measured.\n\n",
        machine.name, machine.about
    )
}
