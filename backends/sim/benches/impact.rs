//! What congestion does to a canary on a simulated machine, in small: a fifth of the nodes exchange 8 B in a random ring,
//! alone and while the others load the network with 4 KiB as GPCNeT's congestors do, in four teams: everyone puts to one,
//! everyone gets from one, everyone puts to everyone in turn, and a team of idle nodes, in place of the incast by messages
//! that had no effect on the machine that this is compared with.
//!
//! Arguments: machine, ranks per node, and `none` to take its congestion control away.

use tailback_engine::Collective;
use tailback_sim::Simulation;
use tailback_sim::machine::{Control, Machine};
use tailback_sim::rng::Rng;
use tailback_transport::{Bootstrap, Error, Group, Rank, Result, Span, Tag, Transport};

/// Exchanges of a canary, per phase; and puts of a congestor before canaries begin.
const EXCHANGES: usize = 100;
const WARM_UP: usize = 4;
const TEAMS: usize = 4;
const BYTES: usize = 4096;

#[allow(clippy::print_stdout)]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let name = arguments.first().map_or("malbec", String::as_str);
    let mut machine = Machine::load(name).unwrap_or_else(|error| panic!("{error}"));
    let per_node = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    if arguments.iter().any(|argument| argument == "none") {
        machine.control = Control::None;
    }
    let cast = Cast::new(machine.nodes.count, per_node);
    let started = std::time::Instant::now();
    let job = Simulation::new(machine).ranks_per_node(per_node);
    let finished = job.run(|bootstrap, transport| rank(&cast, bootstrap, transport)).unwrap_or_else(|e| panic!("{e}"));
    let mean = |phase: usize| {
        let all: Vec<f64> = finished.results.iter().filter_map(|times| times.map(|times| times[phase])).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let (quiet, loaded) = (mean(0), mean(1));
    println!(
        "{name}, {per_node} per node: 8 B {:.2} us alone, {:.2} us under load, impact {:.1}; {} hops, {:.0} us simulated, {:.1} s",
        quiet / 1e3,
        loaded / 1e3,
        loaded / quiet,
        finished.work.hops,
        finished.now_ps as f64 / 1e6,
        started.elapsed().as_secs_f64()
    );
}

/// Who does what, the same on every rank.
struct Cast {
    everyone: Vec<Rank>,
    per_node: usize,
    /// Nodes in a random order; the first fifth are canaries.
    nodes: Vec<usize>,
    canaries: usize,
}

impl Cast {
    fn new(nodes: usize, per_node: usize) -> Self {
        let mut rng = Rng::new(5);
        let mut order: Vec<usize> = (0..nodes).collect();
        for at in (1..nodes).rev() {
            order.swap(at, rng.below(at as u32 + 1) as usize);
        }
        let everyone = (0..nodes * per_node).map(Rank::from).collect();
        Cast { everyone, per_node, nodes: order, canaries: nodes / 5 }
    }

    /// The team of a rank, which are the ranks of one number on nodes of one role, and the role.
    fn team(&self, rank: Rank) -> (Vec<Rank>, usize) {
        let (node, local) = (rank.index() / self.per_node, rank.index() % self.per_node);
        let at = self.nodes.iter().position(|&other| other == node).expect("every node has a role");
        let role = |at: usize| if at < self.canaries { TEAMS } else { at % TEAMS };
        let members = (0..self.nodes.len()).filter(|&other| role(other) == role(at));
        (members.map(|at| Rank::from(self.nodes[at] * self.per_node + local)).collect(), role(at))
    }
}

fn rank<B: Bootstrap, E: tailback_engine::Engine>(
    cast: &Cast,
    mut bootstrap: B,
    engine: E,
) -> Result<Option<[f64; 2]>> {
    let mut transport = Collective::new(engine);
    let (members, role) = cast.team(bootstrap.rank());
    let canary = role == TEAMS;
    let mut world = transport.group(&cast.everyone, 0)?;
    let mut team = transport.group(&members, members.len() * BYTES)?;
    drop(members);
    bootstrap.barrier()?;
    let mut times = [0.0; 2];
    if canary {
        times[0] = exchange(&mut team)?;
    }
    world.barrier()?;
    // Everyone agrees twice: on the release of the canaries, and on the end.
    let agree = |world: &mut <Collective<E> as Transport>::Group| {
        world.start_agreement([0; 4])?;
        world.wait_agreement().map(drop)
    };
    let (me, size) = (team.rank().index(), team.size());
    if canary || role == 3 || (role < 2 && me == 0) {
        agree(&mut world)?;
        if canary {
            times[1] = exchange(&mut team)?;
        }
        agree(&mut world)?;
        return Ok(canary.then_some(times));
    }
    let mut released = false;
    for round in 0.. {
        let peer = Rank::from(if role == 2 { (me + 1 + round % (size - 1)) % size } else { 0 });
        match role {
            1 => team.get(peer, Span::new(me * BYTES, BYTES), 0)?,
            _ => team.put(peer, Span::new(0, BYTES), me * BYTES)?,
        }
        team.flush(peer)?;
        if round == WARM_UP {
            world.start_agreement([0; 4])?;
        }
        if round > WARM_UP && world.poll_agreement()?.is_some() {
            if released {
                return Ok(None);
            }
            released = true;
            world.start_agreement([0; 4])?;
        }
    }
    Err(Error::Setup("the load never ends".into()))
}

/// Mean time of an exchange with both neighbours of a ring, by half, as GPCNeT counts.
fn exchange<G: Group>(team: &mut G) -> Result<f64> {
    let (me, size) = (team.rank().index(), team.size());
    let (left, right) = (Rank::from((me + size - 1) % size), Rank::from((me + 1) % size));
    team.barrier()?;
    let start = team.now();
    for _ in 0..EXCHANGES {
        team.post_recv(left, Tag(0), Span::new(8, 8))?;
        team.post_recv(right, Tag(1), Span::new(16, 8))?;
        team.post_send(right, Tag(0), Span::new(0, 8))?;
        team.post_send(left, Tag(1), Span::new(0, 8))?;
        team.wait_all()?;
    }
    Ok(team.now().since(start).0 as f64 / EXCHANGES as f64 / 2.0)
}
