//! What one rank of a job does for a request, whatever brought the ranks together: the load test and its parts, a search, or a
//! study.

mod application;
mod calibrate;
mod dry_run;
mod load_test;
mod study;
mod tuning;

use std::sync::Arc;
use std::time::Duration;

use tailback_transport::Monitor;

use crate::backend::{Networks, Settings, Work, give_up};
use crate::job::{COMMAND_TIME, Prepared, Request, Session, interrupt_flag};
use crate::output;
use crate::plan::Application;
use crate::result::Command;

use calibrate::{calibrate, expected};
use load_test::Runs;
use study::{expect_study, run_study};

pub use application::{check_pattern, guard};
pub(crate) use dry_run::seconds;
pub use tuning::setter;

impl Request {
    /// Has `then` start this as the work of a job.
    pub(crate) fn as_work<R>(&self, then: impl FnOnce(&Work<'_>) -> R) -> R {
        let body = |networks: &mut Networks<'_>, monitor: &Arc<Monitor>| self.run(networks, monitor);
        let (stall_limit, asks) = (self.stall_limit(), self.asks());
        let build = concat!(env!("CARGO_PKG_VERSION"), " ", env!("TAILBACK_GIT"), " ", env!("TAILBACK_FEATURES"));
        then(&Work { settings: &self.settings, stall_limit, interrupt: interrupt_flag, build, asks, body: &body })
    }

    fn stall_limit(&self) -> Option<Duration> {
        let budget = self.budget.unwrap_or(Duration::from_secs(10));
        self.settings.stall_limit.or(match self.command {
            // A rank without partners waits for as long as the others load.
            Command::Congest => None,
            _ if self.study.is_some() => Some(Duration::from_secs(120)),
            _ => {
                let commands = self.tuning.as_ref().map_or(Duration::ZERO, |_| 2 * COMMAND_TIME);
                let program = self.application().map_or(Duration::ZERO, Application::limit);
                Some(Duration::from_secs(60) + 4 * budget + program + commands)
            }
        })
    }

    fn asks(&self) -> String {
        let Request {
            command,
            preset,
            seed,
            pair_with,
            groups,
            budget,
            patches,
            duration,
            dry_run,
            calibration,
            tuning,
            counters,
            ..
        } = self;
        let Settings { protocols, copies, eager_threshold, roles, rails, .. } = &self.settings;
        let study = self.study.as_ref().map(|of| (&of.study, of.ranks_per_node));
        let files = (groups.is_some(), pair_with.is_some());
        let plan = (command, preset, seed, files, budget, patches, duration, dry_run, calibration, tuning);
        format!("{plan:?} {study:?} {counters:?} {:?}", (protocols, copies, eager_threshold, roles, rails))
    }

    fn run(&self, networks: &mut Networks<'_>, monitor: &Arc<Monitor>) -> u8 {
        interrupt_flag();
        let session = match Session::prepare(self, networks, monitor) {
            Ok(Prepared::Ready(session)) => *session,
            Ok(Prepared::Told(code)) => return code,
            Err(error) => give_up(networks.bootstrap(), &error),
        };
        if let (true, Some(study)) = (session.decision.dry_run, &session.decision.study) {
            return expect_study(&session, study, networks);
        }
        if session.decision.dry_run {
            if session.root {
                let plan = dry_run::render(&session, networks.variants(), self.settings.machine.as_deref());
                let _ = output::print(&(plan + &expected(self)));
            }
            return 0;
        }
        if self.calibration.is_some() {
            return calibrate(session, networks);
        }
        match &session.decision.study {
            Some(study) => run_study(&session, study, networks),
            None => Runs::new(&session).make(networks),
        }
    }
}
