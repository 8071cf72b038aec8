//! The shape of a machine file.

use serde::Deserialize;
use tailback_transport::units::Rate;

use super::fault::Fault;
use super::quantity::{self, Ps, Size};

/// A machine to simulate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name, as results show it.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// Its nodes.
    pub nodes: Nodes,
    /// How they are joined.
    pub topology: Topology,
    /// What every switch does.
    pub switch: Switch,
    /// How messages are cut.
    pub packet: Packet,
    /// How packets find their way.
    pub routing: Routing,
    /// What sends and receives cost at a node.
    pub nic: Nic,
    /// Who slows down when the network is full.
    #[serde(default)]
    pub control: Control,
    /// What is broken.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Fault>,
    /// The file it was read from, so that a result can say what was simulated. Changes made by hand are not in it.
    #[serde(skip)]
    pub text: String,
}

/// Nodes and what is in them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// How many.
    pub count: usize,
    /// Network ports of each; local ranks take turns over them.
    #[serde(default = "one")]
    pub nics: usize,
    /// Ranks on each when the user does not say.
    #[serde(default = "one")]
    pub ranks_per_node: usize,
    /// One way between two ranks of a node.
    pub memory: Link,
}

/// A link, in each direction.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// How fast.
    #[serde(deserialize_with = "quantity::rate")]
    pub rate: Rate,
    /// Time of flight.
    pub latency: Ps,
}

/// How nodes are joined.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Topology {
    /// All nodes on one switch.
    Single(Single),
    /// Leaf switches, two joined directly, more through one spine: the lab's network.
    Leaves(Leaves),
    /// Two or three levels of switches.
    FatTree(FatTree),
    /// Groups, each joined to each.
    Dragonfly(Dragonfly),
}

/// See [`Topology::Single`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Single {
    /// Links of nodes.
    pub host: Link,
}

/// See [`Topology::Leaves`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaves {
    /// Leaf switches.
    pub leaves: usize,
    /// Links of nodes.
    pub host: Link,
    /// Links between switches.
    pub spine: Link,
}

/// See [`Topology::FatTree`]. A tree of two levels has one pod and no cores.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Pods; one for a tree of two levels.
    #[serde(default = "one")]
    pub pods: usize,
    /// Leaf switches of a pod.
    pub leaves: usize,
    /// Network ports of nodes on a leaf.
    pub ports_per_leaf: usize,
    /// Second-level switches of a pod. Fewer than ports per leaf is oversubscription.
    pub spines: usize,
    /// Links between a leaf and each spine of its pod.
    #[serde(default = "one")]
    pub leaf_links: usize,
    /// Core switches that each spine of a pod is joined to; none for a tree of two levels.
    #[serde(default)]
    pub cores_per_spine: usize,
    /// Links of nodes.
    pub host: Link,
    /// Links between switches.
    pub up: Link,
}

/// See [`Topology::Dragonfly`]. A group's switches form a grid in which rows and columns are joined all to all: one row
/// is a dragonfly of two levels, several are one of three.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dragonfly {
    /// Groups.
    pub groups: usize,
    /// Rows of a group's grid.
    #[serde(default = "one")]
    pub rows: usize,
    /// Columns of it.
    pub columns: usize,
    /// Network ports of nodes on a switch.
    pub ports_per_switch: usize,
    /// Links between two switches of a row.
    #[serde(default = "one")]
    pub row_links: usize,
    /// Links between two switches of a column.
    #[serde(default = "one")]
    pub column_links: usize,
    /// Links between two groups: this is where a dragonfly is tapered.
    pub global_links: usize,
    /// Links of nodes.
    pub host: Link,
    /// Links inside a group.
    pub local: Link,
    /// Links between groups.
    pub global: Link,
}

/// What every switch does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// From the arrival of a packet's head to its departure, when nothing is in the way.
    pub latency: Ps,
    /// Room at a port, for each traffic class: at the input, shared evenly by the virtual channels, where flow control is
    /// by credits or pauses; at the output where it is by drops.
    pub buffer: Size,
    /// When a packet may leave.
    #[serde(default)]
    pub switching: Switching,
    /// What happens when there is no room.
    pub flow_control: FlowControl,
    /// Traffic classes, each with buffers of its own. Lower numbers do not wait for higher ones.
    #[serde(default = "one")]
    pub classes: usize,
    /// Marks on packets that leave a long queue.
    pub ecn: Option<Ecn>,
}

/// When a packet may leave a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switching {
    /// As soon as its head is there.
    #[default]
    CutThrough,
    /// When all of it is there.
    StoreAndForward,
}

/// What happens when a switch has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowControl {
    /// A sender knows the room at the other end and sends nothing that does not fit.
    Credit,
    /// A full buffer asks its sender to pause, and to go on when it is half empty.
    Pause,
    /// What does not fit is dropped and sent again.
    Drop,
}

/// Marks: none below `from`, all above `to`, with a probability that grows to `probability` in between.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ecn {
    /// Queue length at which marking begins.
    pub from: Size,
    /// Queue length from which on everything is marked.
    pub to: Size,
    /// Probability of a mark just below `to`.
    #[serde(default = "whole")]
    pub probability: f64,
}

/// How messages are cut.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packet {
    /// Payload of a full packet.
    pub payload: Size,
    /// Header and framing of every packet.
    pub header: Size,
    /// An acknowledgement on the wire.
    pub ack: Size,
    /// Packets of a message that are acknowledged together; the last one of a message always is. Controls by windows, and
    /// networks that drop, need every packet acknowledged.
    #[serde(default = "one")]
    pub ack_every: usize,
    /// Whether acknowledgements wait behind data instead of having a class of their own.
    #[serde(default)]
    pub ack_in_data_class: bool,
    /// Where packets are dropped: the least silence after which a flow sends again.
    #[serde(default = "millisecond")]
    pub least_silence: Ps,
}

/// How packets find their way.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Routing {
    /// The shortest way, always the same one to a destination.
    Minimal,
    /// The shortest way, chosen by a hash of source and destination.
    Ecmp,
    /// The shortest way, chosen anew for each packet.
    Spray,
    /// Through a random other group (dragonfly only).
    Valiant,
    /// By the queues seen where a packet enters the network and, where there are several links, at each switch (UGAL).
    Adaptive {
        /// How many bytes longer than the detour's the queue of the shortest way may be.
        #[serde(default)]
        bias: Option<Size>,
    },
}

/// What sends and receives cost at a node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    /// Time of a rank's processor for starting a message (o).
    pub send_overhead: Ps,
    /// Time of a rank's processor for a message received (o).
    pub receive_overhead: Ps,
    /// Time of a rank's processor for a look that finds nothing.
    pub poll: Ps,
    /// Least time between two messages at a network port, each way (g).
    pub gap: Ps,
    /// From a processor to the network port, and back.
    pub latency: Ps,
    /// Sends of at most this are complete once they are copied; longer ones when they are acknowledged.
    pub eager_limit: Size,
}

/// Who slows down when the network is full: a part that can be exchanged.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Control {
    /// Nobody: flow control alone holds senders back.
    #[default]
    None,
    /// Rates, cut by marks.
    Dcqcn(Dcqcn),
    /// A window, cut by the fraction of marks, or halved by a loss.
    Window(Window),
    /// A window that holds the delay at a target.
    Swift(Swift),
    /// Pairs of endpoints that congest an endpoint are held back, and only they.
    Pair(PairThrottle),
}

/// DCQCN's parameters, with the defaults of its paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dcqcn {
    /// Weight of the newest observation.
    pub g: f64,
    /// At most one cut per flow and this time.
    pub cnp_interval: Ps,
    /// Without a cut for this time, the estimate of congestion falls.
    pub alpha_interval: Ps,
    /// A rate rises once per this time.
    pub increase_interval: Ps,
    /// By how much the target rises after fast recovery, as a fraction of the link's rate.
    pub additive: f64,
    /// Rises in fast recovery.
    pub recovery_rounds: usize,
}

impl Default for Dcqcn {
    fn default() -> Self {
        Dcqcn {
            g: 1.0 / 256.0,
            cnp_interval: Ps::ns(50_000),
            alpha_interval: Ps::ns(55_000),
            increase_interval: Ps::ns(55_000),
            additive: 0.001,
            recovery_rounds: 5,
        }
    }
}

/// The parameters of a window.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Window {
    /// Bytes that a flow may have under way at its start.
    pub initial: Size,
    /// And at most.
    pub most: Size,
    /// Weight of the newest observation.
    pub g: f64,
}

impl Default for Window {
    fn default() -> Self {
        Window { initial: Size(64 << 10), most: Size(4 << 20), g: 1.0 / 16.0 }
    }
}

/// The parameters of delay-based control.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Swift {
    /// The delay to hold, above that of an empty network, from a packet's departure to its acknowledgement.
    pub target: Ps,
    /// Bytes added per round trip below the target.
    pub additive: Size,
    /// How hard a window is cut, per part of the delay above the target.
    pub beta: f64,
    /// The hardest cut.
    pub most_cut: f64,
    /// Bytes that a flow may have under way at its start, and at most.
    pub most: Size,
}

impl Default for Swift {
    fn default() -> Self {
        Swift { target: Ps::ns(5_000), additive: Size(1024), beta: 0.8, most_cut: 0.5, most: Size(256 << 10) }
    }
}

/// The parameters of endpoint-pair throttling.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PairThrottle {
    /// Bytes that a pair may have under way when its endpoint is free.
    pub most: Size,
    /// Queue in front of an endpoint above which the pairs that feed it are held back.
    pub threshold: Size,
    /// What a held pair's allowance is multiplied with.
    pub cut: f64,
    /// Bytes added per round trip when the endpoint is free.
    pub additive: Size,
    /// The least allowance, in bytes: below a packet it means pauses between packets.
    pub least: Size,
}

impl Default for PairThrottle {
    fn default() -> Self {
        PairThrottle {
            most: Size(64 << 10),
            threshold: Size(16 << 10),
            cut: 0.5,
            additive: Size(1024),
            least: Size(64),
        }
    }
}

fn one() -> usize {
    1
}

fn millisecond() -> Ps {
    Ps::ns(1_000_000)
}

fn whole() -> f64 {
    1.0
}
