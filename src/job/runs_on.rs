//! On which nodes a command of the user's runs.

/// Where the user's command runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum RunsOn {
    /// On the job's first node: for switches, which are all nodes'
    #[default]
    First,
    /// On every node
    Every,
}
