//! Where a command runs: in the job this process belongs to, or on this machine.

use super::{Request, StudyRequest, local};
use crate::backend::in_job;
use crate::lab::LabSpec;

/// Runs the request in the job this process belongs to, or starts one.
pub fn start(request: &Request) -> Result<u8, String> {
    in_job(&request.work(&|networks, monitor| request.run(networks, monitor)), || local::run(request))
}

/// The same in an emulated cluster of this shape; in a rank of it, the request itself.
pub fn start_in_lab(request: &Request, spec: &LabSpec) -> Result<u8, String> {
    in_job(&request.work(&|networks, monitor| request.run(networks, monitor)), || local::run_in_lab(request, spec))
}

/// A study in the job this process belongs to, or on this machine.
pub fn start_study(request: &StudyRequest) -> Result<u8, String> {
    in_job(&request.work(&|networks, monitor| request.run(networks, monitor)), || local::run_study(request))
}
