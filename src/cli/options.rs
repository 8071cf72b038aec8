//! Options shared by the commands that run something.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Args};

use crate::backend::{Backend, CongestorNetworks, RoleSettings, Roles, Settings};
use crate::job::{Checks, ControlSelection, CountersSelection, GroupsFrom, LocalRanks, Output, Request, Seed};
use crate::kernel::{Canary, Congestor};
use crate::layout::{Policy, Split};
use crate::output::Format;
use crate::plan::{Loop, Patch, Preset, Set, Swept};
use crate::result::Command;
use crate::units;

use super::sizes::Sizes;

/// Congestion without an end: a day is longer than any allocation that would not be interrupted.
const ENDLESS: Duration = Duration::from_secs(86_400);

/// Options of `tailback run`. The last of an option that is given twice counts: whoever starts ranks with the user's
/// command line adds to it.
#[derive(Clone, Debug, Args)]
#[command(args_override_self = true)]
#[allow(missing_docs)]
pub struct RunOptions {
    #[command(flatten)]
    pub plan: PlanOptions,
    #[command(flatten)]
    pub canaries: CanaryOptions,
    #[command(flatten)]
    pub congestors: CongestorOptions,
    #[command(flatten)]
    pub roles: RoleOptions,
    #[command(flatten)]
    pub local: LocalOptions,
    #[command(flatten)]
    pub common: CommonOptions,
    #[command(flatten)]
    pub checks: Checks,
}

/// Options of `tailback network`.
#[derive(Clone, Debug, Args)]
#[allow(missing_docs)]
pub struct NetworkOptions {
    /// Measure every canary with each of these message sizes, in turn: FROM..TO doubles, e.g. 8..4MiB or 8,64,512; each test
    /// takes --budget, latencies in a closed loop unless --loop or --pace says otherwise
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Plan")]
    pub sizes: Vec<Sizes>,
    #[command(flatten)]
    pub plan: PlanOptions,
    #[command(flatten)]
    pub canaries: CanaryOptions,
    #[command(flatten)]
    pub common: CommonOptions,
    #[command(flatten)]
    pub checks: Checks,
}

/// Options of `tailback congest`. There is no test whose time could be budgeted, so that option is not one of its own.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("budget", no_budget))]
#[allow(missing_docs)]
pub struct CongestOptions {
    /// How long to load the network; without it, until interrupted (Ctrl-C)
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Plan")]
    pub duration: Option<Duration>,
    #[command(flatten)]
    pub plan: PlanOptions,
    #[command(flatten)]
    pub congestors: CongestorOptions,
    #[command(flatten)]
    pub common: CommonOptions,
}

/// Hidden and, with a word about what to use instead, unknown.
fn no_budget(budget: Arg) -> Arg {
    const TIP: &str = "congest has no tests to budget: --duration says how long it loads the network";
    budget.hide(true).value_parser(UnknownArgumentValueParser::suggest(TIP))
}

/// What is run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Plan")]
#[allow(missing_docs)]
pub struct PlanOptions {
    /// The plan to start from [default: quick; lab where this command starts the emulated cluster, sim over a simulated network]
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,

    /// A TOML plan file, applied over the preset; the options below are applied over it
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,

    /// Wall time that each test may take, over all placements, e.g. 10s or 500ms [default: 10s in gpcnet, 2s in quick,
    /// 3.6s in lab; in sim, of virtual time, what a node's link takes for 128 MiB]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub budget: Option<Duration>,

    /// Seed of placements and rings, which repeats those of another job, or `time`: rank 0's clock, as GPCNeT [default:
    /// time in gpcnet, else drawn for each job; of a simulated one made of the node names]
    #[arg(long)]
    pub seed: Option<Seed>,

    /// Change one count of one kernel: bytes, window, iterations, warmup, rings or measurements, or the rate of a congestor;
    /// repeatable, e.g. lat.bytes=64, or congestor.a2a.bytes=64KiB where a canary has the same name, or congestor.rate=50% for
    /// all congestors; several values between commas are a sweep
    #[arg(long, value_name = "KERNEL.SETTING=VALUE")]
    pub set: Vec<Set>,

    /// Treat every N consecutive ranks as a node, whatever hosts they are on; with sim, put N on each node of the machine
    #[arg(long, value_name = "N")]
    pub ranks_per_node: Option<usize>,

    /// Print the plan, the placement and the expected duration; run nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What is measured.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Plan")]
#[allow(missing_docs)]
pub struct CanaryOptions {
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = measured())]
    pub canaries: Option<Vec<Canary>>,

    /// When latency canaries begin an iteration: at random moments (open), or one after the other, as GPCNeT (closed)
    /// [default: closed in gpcnet, else open]
    #[arg(long = "loop", value_name = "KIND", value_enum, hide_possible_values = true)]
    pub canary_loop: Option<Loop>,

    /// An open loop whose iterations begin TIME apart in the mean, however long the one before takes, and count from when
    /// they were due [default with --loop open: five times as far as an iteration takes]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub pace: Option<Duration>,

    /// Also keep a histogram of the samples on each ring, placement by placement
    #[arg(long)]
    pub ring_histograms: bool,
}

fn measured() -> String {
    format!("What is measured, in the order given: {}", Canary::keys())
}

/// Who measures and who loads.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Plan")]
#[allow(missing_docs)]
pub struct RoleOptions {
    /// Fraction of the nodes that measure, e.g. 0.25 or 25%; up to 100% with --congestors none [default: 20%]
    #[arg(long, value_name = "FRACTION", value_parser = units::fraction)]
    pub canary_fraction: Option<f64>,

    /// Fraction of the other nodes that load; remaining nodes stay idle, e.g. 0.5 or 50%. Several, such as 25%,50%,100%, are
    /// loads that take turns on every placement [default: 100%]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = units::fraction)]
    pub load_fraction: Vec<f64>,

    /// How roles are dealt out [default: auto]
    #[arg(long, value_enum)]
    pub split: Option<Split>,

    /// Also measure every congestor by itself, without canaries
    #[arg(long)]
    pub congestors_alone: bool,

    /// How many placements of the roles are measured; intervals are over them [default: 1 in gpcnet, else 5]
    #[arg(long, value_name = "K")]
    pub placements: Option<u32>,

    /// How roles are placed on nodes [default: random in gpcnet, else balanced]
    #[arg(long, value_enum, value_name = "POLICY")]
    pub placement: Option<Policy>,

    /// Repeat the placements and rings of another result, for comparisons pair by pair: its seed, on as many nodes and
    /// ranks, with the same groups and roles; of this and --seed the last counts
    #[arg(long, value_name = "FILE", overrides_with = "seed")]
    pub pair_with: Option<PathBuf>,

    /// Switch or rack of each host, for balanced placements: a file (`host group` lines, topology.conf, `ibnetdiscover`),
    /// or name:PATTERN, whose only group finds it in the host's name, e.g. 'name:^r([0-9]+)' [default: $TAILBACK_GROUP on
    /// each node; the leaves of the lab]
    #[arg(long, value_name = "FILE|name:PATTERN")]
    pub groups: Option<GroupsFrom>,

    /// How often each canary is measured in each state on a placement: 1, or an even number for idle, loaded,
    /// loaded, idle and its mirror [default: 1 in gpcnet, else 2]
    #[arg(long, value_name = "N")]
    pub blocks: Option<u32>,

    /// Measure more placements until the headline's interval is this narrow, e.g. 10%
    #[arg(long, value_name = "FRACTION", value_parser = units::fraction)]
    pub precision: Option<f64>,

    /// With --precision: time limit, on a simulated network in virtual time [default: 10m, simulated 1s]
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "precision")]
    pub longest: Option<Duration>,

    /// What congestors go over, each in turn: names of transports, or `same` as the canaries [default: with two
    /// transports and one protocol, both, so that victim and load can be told apart; else same]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Transport")]
    pub congestor_transport: Vec<CongestorTransport>,

    /// Traffic class of the canaries' packets, as --traffic-class, which it overrides
    #[arg(long, value_name = "CLASS", help_heading = "Transport")]
    pub canary_class: Option<String>,

    /// Traffic class of the congestors' packets, likewise
    #[arg(long, value_name = "CLASS", help_heading = "Transport")]
    pub congestor_class: Option<String>,

    /// TCP congestion control of the canaries' connections, over tcp: cubic, bbr, ... [default: the system's, or the
    /// emulated cluster's]
    #[arg(long, value_name = "NAME", help_heading = "Transport")]
    pub canary_congestion_control: Option<String>,

    /// TCP congestion control of the congestors' connections, likewise
    #[arg(long, value_name = "NAME", help_heading = "Transport")]
    pub congestor_congestion_control: Option<String>,
}

/// Without a launcher.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Without a launcher")]
#[allow(missing_docs)]
pub struct LocalOptions {
    /// In the emulated cluster, a bypass control: some placements again with canaries that meet no queue, which tells the
    /// network's impact from the processors' (on by default) [default: bypass where canaries use tcp, else unshaped]
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        conflicts_with = "no_control"
    )]
    pub control: Option<ControlSelection>,

    /// No bypass control
    #[arg(long)]
    pub no_control: bool,

    /// Run the job J times, each in fresh processes and with a seed of its own (all with that of --seed, if it is given),
    /// and show how much jobs differ; --out r.json gives r-1.json to r-J.json. Single jobs are shown with --verbose
    #[arg(long, value_name = "J", default_value_t = 1, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub launches: u32,

    /// This job is one of those.
    #[arg(long, hide = true)]
    pub one_of_several: bool,
}

/// How it is run and shown.
#[derive(Clone, Debug, Args)]
#[allow(missing_docs)]
pub struct CommonOptions {
    #[command(flatten)]
    pub local: LocalRanks,
    #[command(flatten)]
    pub settings: Settings,

    /// How many network ports a node has, for what is told of a port: its load, and the ranks that share it [default: the
    /// devices that a node's ranks use, where the transport tells, else the adapters that are up]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Transport")]
    pub ports_per_node: Option<u32>,

    #[command(flatten)]
    pub counters: CountersSelection,
    #[command(flatten)]
    pub output: Output,
}

impl PlanOptions {
    /// Takes those settings that have several values: the keys of a sweep.
    pub fn take_sweep(&mut self) -> Result<Vec<Swept>, String> {
        let swept = self.set.iter().filter_map(Swept::of_set).collect();
        self.set.retain(|set| Swept::of_set(set).is_none());
        swept
    }

    /// The patches of the plan file and of these options, in order.
    pub fn patches(&self, rest: Patch) -> Result<Vec<Patch>, String> {
        let file = self.plan.as_deref().map(Patch::read).transpose().map_err(|error| error.to_string())?;
        let own = Patch {
            preset: self.preset,
            budget_s: self.budget.map(|budget| budget.as_secs_f64()),
            ranks_per_node: self.ranks_per_node,
            set: self.set.clone(),
            ..rest
        };
        Ok(file.into_iter().chain([own]).collect())
    }
}

impl RunOptions {
    /// What is asked for, as plain values.
    pub fn request(mut self) -> Result<Request, String> {
        let keys = self.plan.take_sweep()?;
        self.request_over(keys)
    }

    /// The same, at several values of keys, if there are any.
    pub fn request_over(self, keys: Vec<Swept>) -> Result<Request, String> {
        let sweep = Some(keys).filter(|keys| !keys.is_empty());
        let command = if sweep.is_some() { Command::Sweep } else { Command::Run };
        let output = &self.common.output;
        let alone = self.roles.congestors_alone || (output.verbose && output.format == Format::Gpcnet);
        let patch = Patch {
            canaries: self.canaries.canaries,
            canary_loop: self.canaries.canary_loop,
            pace_s: self.canaries.pace.map(|pace| pace.as_secs_f64()),
            ring_histograms: self.canaries.ring_histograms.then_some(true),
            each_congestor: self.congestors.each().map(|_| true),
            each_own_share: self.congestors.each(),
            congestors: self.congestors.mix()?,
            canary_fraction: self.roles.canary_fraction,
            load_fraction: Some(self.roles.load_fraction).filter(|of| !of.is_empty()),
            split: self.roles.split,
            congestors_alone: alone.then_some(true),
            placements: self.roles.placements,
            placement: self.roles.placement,
            blocks: self.roles.blocks,
            precision: self.roles.precision,
            longest_s: self.roles.longest.map(|longest| longest.as_secs_f64()),
            sweep,
            ..Patch::default()
        };
        let mut request = request(command, &self.plan, patch, self.common)?;
        request.settings.congestors = congestor_networks(&self.roles.congestor_transport)?;
        let keys = request.patches.iter().rev().find_map(|patch| patch.sweep.as_deref());
        request.settings.go_over(keys.unwrap_or_default())?;
        let of_role = |class, congestion_control| RoleSettings { class, congestion_control };
        request.settings.roles = Roles {
            canary: of_role(self.roles.canary_class, self.roles.canary_congestion_control),
            congestor: of_role(self.roles.congestor_class, self.roles.congestor_congestion_control),
        };
        let control = if self.local.no_control { ControlSelection::No } else { self.local.control.unwrap_or_default() };
        let (launches, one_of_several) = (self.local.launches, self.local.one_of_several);
        let pair_with = self.roles.pair_with;
        Ok(Request {
            control,
            launches,
            one_of_several,
            pair_with,
            groups: self.roles.groups,
            checks: self.checks,
            ..request
        })
    }
}

impl NetworkOptions {
    /// What is asked for, as plain values.
    pub fn request(self) -> Result<Request, String> {
        let CanaryOptions { canaries, canary_loop, pace, ring_histograms } = self.canaries;
        let sizes = Sizes::all(&self.sizes);
        if !sizes.is_empty() && self.plan.set.iter().any(Set::is_of_bytes) {
            return Err("--sizes gives every canary its message sizes: leave out --set KERNEL.bytes".into());
        }
        // As OSU's benchmarks: on an idle network single messages at random moments tell no more, and are far fewer.
        let closed = (!sizes.is_empty() && pace.is_none()).then_some(Loop::Closed);
        let patch = Patch {
            sizes: (!sizes.is_empty()).then_some(sizes),
            canaries,
            canary_loop: canary_loop.or(closed),
            pace_s: pace.map(|pace| pace.as_secs_f64()),
            ring_histograms: ring_histograms.then_some(true),
            ..Patch::default()
        };
        let request = request(Command::Network, &self.plan, patch, self.common)?;
        Ok(Request { checks: self.checks, ..request })
    }
}

impl CongestOptions {
    /// What is asked for, as plain values.
    pub fn request(self) -> Result<Request, String> {
        if self.congestors.each().is_some() {
            return Err("congest runs all congestors at once: each is for run and app".into());
        }
        let patch = Patch { congestors: self.congestors.mix()?, ..Patch::default() };
        let request = request(Command::Congest, &self.plan, patch, self.common)?;
        if request.settings.machine.is_some() && self.duration.is_none() {
            return Err("congest over a simulated network needs --duration: nobody else is on it".into());
        }
        Ok(Request { duration: self.duration.unwrap_or(ENDLESS), ..request })
    }
}

fn request(command: Command, plan: &PlanOptions, patch: Patch, common: CommonOptions) -> Result<Request, String> {
    let patches = plan.patches(patch)?;
    Ok(Request {
        preset: plan.preset,
        seed: plan.seed,
        budget: plan.budget,
        patches,
        dry_run: plan.dry_run,
        ports_per_node: common.ports_per_node,
        counters: common.counters,
        ..Request::new(command, common.local, common.settings, common.output)
    })
}

/// What loads the network.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Plan")]
#[allow(missing_docs)]
pub struct CongestorOptions {
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = loading())]
    pub congestors: Option<Vec<Share>>,
}

fn loading() -> String {
    format!(
        "What loads the network: {}; with weights if the shares are not to be equal, e.g. incast=40,a2a=60; with `each` \
         among them, also every one by itself on all congestor nodes, with `each=share` on those that it has among all; or none, to measure beside whoever else uses the network [default: \
         a2a,incast,put-incast,get-bcast]",
        Congestor::keys()
    )
}

/// A congestor and its share of the congestor nodes, or a word for all of them.
#[derive(Clone, Copy, Debug)]
pub enum Share {
    Of {
        kernel: Congestor,
        weight: f64,
        /// Written with a percent sign, so that all of them are to make 100 at most.
        percent: bool,
    },
    /// No congestors at all.
    None,
    /// Every congestor also by itself: on all congestor nodes, or on its own share of them.
    Each { own_share: bool },
}

impl CongestorOptions {
    /// The kinds with their weights.
    pub fn mix(&self) -> Result<Option<Vec<(Congestor, f64)>>, String> {
        let Some(shares) = &self.congestors else { return Ok(None) };
        if let [Share::Each { .. }] = shares[..] {
            return Ok(None);
        }
        if shares.len() > 1 && shares.iter().any(|share| matches!(share, Share::None)) {
            return Err("--congestors none stands alone".into());
        }
        let (mut mix, mut percents) = (Vec::new(), false);
        for share in shares {
            if let Share::Of { kernel, weight, percent } = *share {
                mix.push((kernel, weight));
                percents |= percent;
            }
        }
        let sum: f64 = mix.iter().map(|(_, weight)| weight).sum();
        if percents && sum > 100.0 + 1e-6 {
            return Err(format!("the congestors' shares make {sum}%: more than all congestor nodes"));
        }
        Ok(Some(mix))
    }

    /// Whether every congestor is also to be run by itself, and then on its own share of the congestor nodes.
    pub fn each(&self) -> Option<bool> {
        self.congestors.iter().flatten().rev().find_map(|share| match share {
            Share::Each { own_share } => Some(*own_share),
            _ => None,
        })
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "none" => return Ok(Share::None),
            "each" => return Ok(Share::Each { own_share: false }),
            "each=share" => return Ok(Share::Each { own_share: true }),
            _ => {}
        }
        let (name, weight) = text.split_once('=').unwrap_or((text, "1"));
        let (weight, percent) = weight.strip_suffix('%').map_or((weight, false), |weight| (weight, true));
        let number = weight.trim().parse().map_err(|_| {
            format!("invalid weight '{weight}' in '{text}': expected a number, or a percentage of the congestor nodes")
        })?;
        Ok(Share::Of { kernel: name.trim().parse()?, weight: number, percent })
    }
}

/// A word of `--congestor-transport`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestorTransport {
    /// The canaries'.
    Same,
    /// A transport of its own.
    Over(Backend),
}

impl FromStr for CongestorTransport {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "same" => Ok(CongestorTransport::Same),
            word => word.parse().map(CongestorTransport::Over),
        }
    }
}

/// The congestors' networks, as plain values. Without a word, two networks make a 2x2 design.
fn congestor_networks(words: &[CongestorTransport]) -> Result<CongestorNetworks, String> {
    match words {
        [] => Ok(CongestorNetworks::Crossed),
        [CongestorTransport::Same] => Ok(CongestorNetworks::Same),
        words => {
            let backend = |word: &CongestorTransport| match word {
                CongestorTransport::Over(backend) => Ok(*backend),
                CongestorTransport::Same => Err("--congestor-transport same stands alone".to_owned()),
            };
            words.iter().map(backend).collect::<Result<_, _>>().map(CongestorNetworks::Over)
        }
    }
}
