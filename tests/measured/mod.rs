//! What only real time shows: budgets, rates and queues of shaped links, how soon a job ends. These have the machine to
//! themselves and may be tried again (ci/nextest.toml); what is logic does not belong here.

mod budget;
mod failures;
mod lab;
mod lab_calibrate;
mod lab_models;
mod protocols;
