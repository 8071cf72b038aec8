//! Where a command runs: in the job this process belongs to, or on this machine.

use super::{Request, local};
use crate::backend::in_job;
use crate::lab::LabSpec;

/// Runs the request in the job this process belongs to, or starts one.
pub fn start(request: &Request) -> Result<u8, String> {
    request.as_work(|work| in_job(work, || local::run(request)))
}

/// The same in an emulated cluster of this shape; in a rank of it, the request itself.
pub fn start_in_lab(request: &Request, spec: &LabSpec) -> Result<u8, String> {
    request.as_work(|work| in_job(work, || local::run_in_lab(request, spec)))
}
