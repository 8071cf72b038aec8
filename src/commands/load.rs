//! The load test and its parts, as one rank of a job does them, on whatever backend it runs.

use std::sync::Arc;
use std::time::Duration;

use tailback_transport::{Monitor, Rank};

use super::calibrate::{calibrate, expected};
use super::prepare::{Prepared, Session};
use super::runs::Runs;
use super::{Request, dry_run, interrupt};
use crate::backend::{Networks, Settings, Work, give_up};
use crate::output;
use crate::plan::Application;
use crate::result::Command;

impl Request {
    /// Has `does` it in a job.
    pub(super) fn work<'a>(&'a self, body: &'a dyn Fn(&mut Networks<'_>, &Arc<Monitor>) -> u8) -> Work<'a> {
        let (stall_limit, asks) = (self.stall_limit(), self.asks());
        Work { settings: &self.settings, stall_limit, interrupt: interrupt::flag, asks, body }
    }

    fn stall_limit(&self) -> Option<Duration> {
        let budget = self.budget.unwrap_or(Duration::from_secs(10));
        self.settings.stall_limit.or(match self.command {
            // A rank without partners waits for as long as the others load.
            Command::Congest => None,
            _ => Some(
                Duration::from_secs(60) + 4 * budget + self.application().map_or(Duration::ZERO, Application::limit),
            ),
        })
    }

    fn asks(&self) -> String {
        let Request {
            command, preset, seed, groups, budget, patches, duration, dry_run, calibration, counters, ..
        } = self;
        let Settings { protocols, copies, eager_threshold, roles, rails, .. } = &self.settings;
        let plan = (command, preset, seed, groups.is_some(), budget, patches, duration, dry_run, calibration);
        format!("{plan:?} {counters:?} {:?}", (protocols, copies, eager_threshold, roles, rails))
    }

    pub(super) fn run(&self, networks: &mut Networks<'_>, monitor: &Arc<Monitor>) -> u8 {
        interrupt::flag();
        let root = networks.bootstrap().rank() == Rank(0);
        match Session::prepare(self, networks) {
            Ok(Prepared::Ready(session)) if session.decision.dry_run => {
                if root {
                    let plan = dry_run::render(&session, networks.variants(), self.settings.machine.as_deref());
                    let _ = output::print(&(plan + &expected(self)));
                }
                0
            }
            Ok(Prepared::Ready(session)) if self.calibration.is_some() => {
                calibrate(self, *session, networks, monitor, root)
            }
            Ok(Prepared::Ready(session)) => Runs::new(&session, self, monitor, root).make(networks),
            Ok(Prepared::Told(code)) => code,
            Err(error) => give_up(networks.bootstrap(), &error),
        }
    }
}
