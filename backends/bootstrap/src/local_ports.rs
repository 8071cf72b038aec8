//! Which of a rank's local ends carries the data: an address, a port, a domain. Chosen the same way on every backend.
//!
//! 1. A rank lists its candidates, best first: what the user named, or all that work here.
//! 2. All ranks tell each other theirs.
//! 3. A rank takes its first candidate that shares a network with a candidate of every other host; if none does, the first
//!    that may reach them through routers.
//! 4. All ranks tell each other what they took. Two that cannot reach each other are an error, on both, that names them.
//! 5. What every rank took is recorded.
//!
//! Over rails a rank takes several, each of another name. Rail by rail they are taken after those of rank 0: its rail 1 is
//! in the network of rank 0's rail 1 where it can be. What a rank has too few of is an error, on all, that names them.

use std::collections::HashMap;

use tailback_transport::cpu_list::number_list;
use tailback_transport::{Bootstrap, Error, Rank, Result};

/// What was chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Which of the candidates.
    pub index: usize,
    /// Why this one.
    pub reason: String,
    /// How well it reaches the host that it reaches worst.
    pub reach: Reach,
    /// What every rank took: `mlx5_0 port 1: ranks 0-7; mlx5_1 port 1: ranks 8-15`.
    pub record: String,
    /// The first rank whose end is called otherwise than that of the rank in its place on the first host, with what keeps it
    /// from taking the same; absent where hosts are alike.
    pub unlike: Option<String>,
}

/// Chooses one of `candidates`, of which there is at least one; `obstacles` say why what else there is cannot be used, and
/// `asked` whether the user named it. Collective over the job. `advice` ends the errors.
///
/// # Errors
/// If a rank cannot reach another, or is lost.
pub fn choose<E: LocalPort>(
    bootstrap: &mut dyn Bootstrap,
    candidates: &[E],
    obstacles: &[String],
    asked: bool,
    advice: &str,
) -> Result<Chosen> {
    let chosen = choose_rails(bootstrap, candidates, obstacles, asked, 1, advice)?;
    chosen.into_iter().next().ok_or_else(|| unclear(bootstrap.rank().index(), "takes nothing"))
}

/// Chooses one for each of so many rails, in their order; if they were `asked` for, they are the candidates as they are.
///
/// # Errors
/// As [`choose`]; or if ranks have unlike numbers of rails, or fewer ends than rails.
pub fn choose_rails<E: LocalPort>(
    bootstrap: &mut dyn Bootstrap,
    candidates: &[E],
    obstacles: &[String],
    asked: bool,
    rails: usize,
    advice: &str,
) -> Result<Vec<Chosen>> {
    let obstacles = obstacles.iter().map(|text| format!("{OBSTACLE}{}", text.replace('\n', " ")));
    let several = (rails > 1).then(|| format!("{RAILS}{rails}"));
    let lines = candidates.iter().map(E::encode).chain(obstacles).chain(several);
    let mine = lines.fold(bootstrap.host().to_owned(), |text, line| text + "\n" + &line);
    let told = bootstrap.allgather(mine.as_bytes())?;
    let offers = told.iter().enumerate().map(|(rank, bytes)| parse(rank, bytes)).collect::<Result<Vec<_>>>()?;
    if let Some(rank) = offers.iter().position(|offer| offer.rails != offers[0].rails) {
        let (other, first) = (offers[rank].rails, offers[0].rails);
        return Err(Error::Setup(format!("rank {rank} has {other} rails, rank 0 {first}: all ranks have as many")));
    }
    let picked = match rails {
        1 => vec![pick(candidates, asked, bootstrap.host(), &offers)],
        _ => pick_rails(candidates, asked, bootstrap.host(), rails, &offers)?,
    };
    let mine: Vec<u8> = picked.iter().flat_map(|(index, ..)| (*index as u32).to_le_bytes()).collect();
    let told = bootstrap.allgather(&mine)?;
    let mut taken = Vec::new();
    for (rank, (bytes, offer)) in told.iter().zip(&offers).enumerate() {
        let index = |word: &[u8]| word.try_into().map_or(u32::MAX, u32::from_le_bytes) as usize;
        let ends: Option<Vec<&E>> = bytes.chunks(4).map(|word| offer.ends.get(index(word))).collect();
        let ends = ends.filter(|ends| ends.len() == rails);
        taken.push(ends.ok_or_else(|| unclear(rank, "takes what it did not offer"))?);
    }
    let mut chosen = Vec::new();
    for (rail, (index, reach, reason)) in picked.into_iter().enumerate() {
        let ends: Vec<&E> = taken.iter().map(|ends| ends[rail]).collect();
        for (rank, end) in ends.iter().enumerate() {
            if candidates[index].reach(end) == Reach::Never {
                return Err(Error::Setup(format!(
                    "rank {rank} uses {}, this rank {}: they cannot reach each other; {advice}",
                    end.describe(),
                    candidates[index].describe()
                )));
            }
        }
        chosen.push(Chosen { index, reason, reach, record: record(&ends), unlike: unlike(&offers, &ends) });
    }
    Ok(chosen)
}

/// See [`Chosen::unlike`].
fn unlike<E: LocalPort>(offers: &[Offer<E>], ends: &[&E]) -> Option<String> {
    let first = &offers.first()?.host;
    let on_first: Vec<usize> = (0..offers.len()).filter(|&rank| offers[rank].host == *first).collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (rank, offer) in offers.iter().enumerate() {
        let place = places.entry(&offer.host).or_default();
        let twin = on_first.get(*place).copied();
        *place += 1;
        let Some(twin) = twin.filter(|&twin| ends[twin].name() != ends[rank].name()) else { continue };
        let obstacle = |rank: usize| {
            let Offer { host, obstacles, .. } = &offers[rank];
            if obstacles.is_empty() { String::new() } else { format!("; on {host} {}", obstacles.join(", ")) }
        };
        return Some(format!(
            "rank {rank} on {} uses {}, but rank {twin} on {first} uses {}{}{}",
            offer.host,
            ends[rank].name(),
            ends[twin].name(),
            obstacle(rank),
            obstacle(twin)
        ));
    }
    None
}

/// Which candidate to take, how well it reaches the others, and why.
fn pick<E: LocalPort>(candidates: &[E], asked: bool, host: &str, offers: &[Offer<E>]) -> (usize, Reach, String) {
    let worst = |end: &E| worst(end, host, offers);
    let first = |level| candidates.iter().position(|end| worst(end) >= level);
    let (at, reason) = match () {
        () if offers.iter().all(|offer| offer.host == host) => (Some(0), "all ranks share one host"),
        () if first(Reach::Near).is_some() => {
            (first(Reach::Near), "the first that shares a network with every other host")
        }
        () => (first(Reach::Routed), "the first that may reach every host; none shares a network with all"),
    };
    let at = at.or(first(Reach::Local)).unwrap_or_default();
    (at, worst(&candidates[at]), if asked { "as asked for" } else { reason }.to_owned())
}

/// The ends' names, each with its ranks.
fn record<E: LocalPort>(ends: &[&E]) -> String {
    let mut names: Vec<(String, Vec<usize>)> = Vec::new();
    for (rank, name) in ends.iter().map(|end| end.name()).enumerate() {
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, ranks)) => ranks.push(rank),
            None => names.push((name, vec![rank])),
        }
    }
    let text = |(name, ranks): &(String, Vec<usize>)| format!("{name}: ranks {}", number_list(ranks.iter().copied()));
    names.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// How one end gets to another, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Not at all: they are of different kinds.
    Never,
    /// If both are on the same machine.
    Local,
    /// Through routers, if there are any.
    Routed,
    /// They share a network.
    Near,
}

/// One end, as other ranks need to know it.
pub trait LocalPort: Sized {
    /// In one line.
    fn encode(&self) -> String;

    /// From such a line.
    fn decode(line: &str) -> Option<Self>;

    /// How this one gets to `other`, which is another rank's.
    fn reach(&self, other: &Self) -> Reach;

    /// Whether both are of one network, as far as they tell: where they may be of several that reach each other, a rail
    /// keeps to one.
    fn shares_network(&self, other: &Self) -> bool {
        self.reach(other) == Reach::Near
    }

    /// What people call it, without what differs from host to host.
    fn name(&self) -> String;

    /// What errors call it.
    fn describe(&self) -> String {
        self.encode()
    }
}

/// Begins a line that says why something cannot be used.
const OBSTACLE: char = '!';
/// Begins the line that says how many rails there are, where it is not one.
const RAILS: char = '#';

/// What a rank could take.
struct Offer<E> {
    host: String,
    ends: Vec<E>,
    obstacles: Vec<String>,
    rails: usize,
}

/// The offer of a rank, as it told it.
fn parse<E: LocalPort>(rank: usize, bytes: &[u8]) -> Result<Offer<E>> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let host = lines.next().unwrap_or_default().to_owned();
    let (mut ends, mut obstacles, mut rails) = (Vec::new(), Vec::new(), 1);
    for line in lines {
        let unknown = || unclear(rank, &format!("offers \"{line}\""));
        if let Some(text) = line.strip_prefix(OBSTACLE) {
            obstacles.push(text.to_owned());
        } else if let Some(count) = line.strip_prefix(RAILS) {
            rails = count.parse().map_err(|_| unknown())?;
        } else {
            ends.push(E::decode(line).ok_or_else(unknown)?);
        }
    }
    Ok(Offer { host, ends, obstacles, rails })
}

/// The error for what no correct rank says.
fn unclear(rank: usize, what: &str) -> Error {
    Error::Protocol { operation: "choice of local ends", peer: Some(Rank::from(rank)), detail: what.to_owned() }
}

/// How well an end of a rank on `host` reaches the other host that it reaches worst.
fn worst<E: LocalPort>(end: &E, host: &str, offers: &[Offer<E>]) -> Reach {
    let others = offers.iter().filter(|offer| offer.host != host);
    others.map(|offer| best_of(end, &offer.ends)).min().unwrap_or(Reach::Near)
}

fn best_of<E: LocalPort>(end: &E, others: &[E]) -> Reach {
    others.iter().map(|other| end.reach(other)).max().unwrap_or(Reach::Never)
}

/// A candidate's index, how well it reaches the host that it reaches worst, and why it is taken.
type Picked = (usize, Reach, String);

/// What a rank takes for each of so many rails, in their order.
fn pick_rails<E: LocalPort>(
    candidates: &[E],
    asked: bool,
    host: &str,
    rails: usize,
    offers: &[Offer<E>],
) -> Result<Vec<Picked>> {
    for (rank, offer) in offers.iter().enumerate() {
        let ends = usable(&offer.ends, asked, &offer.host, offers);
        if ends.len() < rails {
            return Err(Error::Setup(too_few(rank, offer, &ends, rails)));
        }
    }
    let mut mine = usable(candidates, asked, host, offers);
    if let Some(leader) = offers.first().filter(|_| !asked) {
        let lead = usable(&leader.ends, asked, &leader.host, offers);
        let lead: Vec<&E> = lead.iter().take(rails).map(|(at, ..)| &leader.ends[*at]).collect();
        let network = |end: &E, lead: &E| (end.reach(lead), end.shares_network(lead));
        align(&mut mine, candidates, &lead, network);
        // Names only order what was taken: who took by name would take what the leader has, and equals be dealt out in vain.
        mine.truncate(rails);
        align(&mut mine, candidates, &lead, |end, lead| (network(end, lead), end.name() == lead.name()));
    }
    mine.truncate(rails);
    Ok(mine)
}

/// The ends of a rank on `host` that can be rails, best first: one of each name that may reach every other host; if they were
/// asked for, all.
fn usable<E: LocalPort>(ends: &[E], asked: bool, host: &str, offers: &[Offer<E>]) -> Vec<Picked> {
    if asked {
        let reach = |end: &E| worst(end, host, offers);
        return ends.iter().enumerate().map(|(at, end)| (at, reach(end), "as asked for".to_owned())).collect();
    }
    let mut usable: Vec<Picked> = Vec::new();
    for (level, reason) in [
        (Reach::Near, "of those that share a network with every other host"),
        (Reach::Routed, "of those that may reach every host"),
    ] {
        for (at, end) in ends.iter().enumerate() {
            let known = usable.iter().any(|(of, ..)| ends[*of].name() == end.name());
            if !known && worst(end, host, offers) >= level {
                usable.push((at, level, reason.to_owned()));
            }
        }
    }
    usable
}

/// Orders ends so that in the place of each of the leader's is the first that fits it best.
fn align<E: LocalPort, F: Ord>(mine: &mut [Picked], candidates: &[E], lead: &[&E], fit: impl Fn(&E, &E) -> F) {
    for (rail, lead) in lead.iter().enumerate() {
        let fit = |(at, ..): &Picked| fit(&candidates[*at], lead);
        let best = mine[rail..].iter().map(fit).max();
        if let Some(at) = mine[rail..].iter().position(|of| Some(fit(of)) == best) {
            mine[rail..=rail + at].rotate_right(1);
        }
    }
}

fn too_few<E: LocalPort>(rank: usize, offer: &Offer<E>, usable: &[Picked], rails: usize) -> String {
    let list = |texts: Vec<String>| if texts.is_empty() { "none".to_owned() } else { texts.join(", ") };
    let ends = list(usable.iter().map(|(at, ..)| offer.ends[*at].describe()).collect());
    let is_other = |end: &&E| usable.iter().all(|(at, ..)| offer.ends[*at].name() != end.name());
    let others: Vec<String> = offer.ends.iter().filter(is_other).map(LocalPort::describe).collect();
    let others = match &others[..] {
        [] => String::new(),
        others => format!("; not to every other host: {}", others.join(", ")),
    };
    let obstacles = offer.obstacles.iter().fold(String::new(), |text, obstacle| text + "; " + obstacle);
    format!("--rails {rails}: rank {rank} on {} has too few ends for that: {ends}{others}{obstacles}", offer.host)
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback;
    use tailback_transport::Rank;

    use super::*;

    /// A network by its number; 0 is the machine's own, odd ones have no router.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Net(u32);

    impl LocalPort for Net {
        fn encode(&self) -> String {
            self.0.to_string()
        }

        fn decode(line: &str) -> Option<Self> {
            line.parse().ok().map(Net)
        }

        fn reach(&self, other: &Self) -> Reach {
            match (self.0, other.0) {
                (0, _) | (_, 0) => Reach::Local,
                (a, b) if a == b => Reach::Near,
                (a, b) if a % 2 == 0 && b % 2 == 0 => Reach::Routed,
                _ => Reach::Never,
            }
        }

        fn name(&self) -> String {
            format!("net {}", self.0)
        }
    }

    fn nets(list: &[u32]) -> Vec<Net> {
        list.iter().copied().map(Net).collect()
    }

    #[test]
    fn the_first_that_reaches_every_other_host_is_taken() {
        let here = nets(&[0, 3, 2, 4]);
        let at = |others: &[(&str, &[u32])]| {
            let offer = |(host, list): &(&str, &[u32])| Offer {
                host: (*host).to_owned(),
                ends: nets(list),
                obstacles: Vec::new(),
                rails: 1,
            };
            let offers: Vec<Offer<Net>> = others.iter().map(offer).collect();
            here[pick(&here, false, "a", &offers).0].0
        };
        assert_eq!(at(&[("a", &[0, 3, 2, 4]), ("a", &[0])]), 0, "one host");
        assert_eq!(at(&[("a", &[0]), ("b", &[0, 4]), ("c", &[4, 2])]), 4, "shared by all");
        assert_eq!(at(&[("b", &[0, 3]), ("c", &[3])]), 3);
        assert_eq!(at(&[("b", &[4]), ("c", &[6])]), 2, "routed");
        assert_eq!(at(&[("b", &[0]), ("c", &[0])]), 0, "nothing but hope");
    }

    #[test]
    fn every_rank_learns_what_every_rank_took() {
        let chosen = loopback::run(4, |mut bootstrap, _| {
            let own = if bootstrap.rank() == Rank(2) { nets(&[4, 2]) } else { nets(&[2, 4]) };
            choose(&mut bootstrap, &own, &[], false, "")
        });
        for chosen in chosen.expect("a choice") {
            assert_eq!(chosen.record, "net 2: ranks 0-1,3; net 4: ranks 2");
            assert_eq!(chosen.reason, "all ranks share one host");
        }
    }

    #[test]
    fn hosts_that_are_not_alike_are_named_with_the_reason() {
        let offer = |host: &str, obstacles: &[&str]| Offer::<Net> {
            host: host.into(),
            ends: Vec::new(),
            obstacles: obstacles.iter().map(|text| (*text).to_owned()).collect(),
            rails: 1,
        };
        let offers = [offer("a", &[]), offer("a", &[]), offer("b", &["net 2 is down"]), offer("b", &["net 2 is down"])];
        let told = |taken: [u32; 4]| {
            let ends = taken.map(Net);
            unlike(&offers, &ends.iter().collect::<Vec<_>>())
        };
        assert_eq!(told([2, 4, 2, 4]), None);
        assert_eq!(
            told([2, 4, 4, 4]).as_deref(),
            Some("rank 2 on b uses net 4, but rank 0 on a uses net 2; on b net 2 is down")
        );
    }

    #[test]
    fn obstacles_travel_beside_candidates() {
        let told = parse::<Net>(0, b"host\n2\n!net 4 is down\n6").expect("an offer");
        assert_eq!((told.ends, told.obstacles, told.rails), (nets(&[2, 6]), vec!["net 4 is down".to_owned()], 1));
        assert_eq!(parse::<Net>(0, b"host\n2\n#3").expect("an offer").rails, 3);
    }

    fn rails(ranks: &[(&str, &[u32])], asked: bool) -> Result<Vec<Vec<u32>>> {
        let hosts = ranks.iter().map(|(host, _)| (*host).to_owned()).collect();
        loopback::Job::new(ranks.len()).hosts(hosts).run(|mut bootstrap, _| -> Result<Vec<u32>> {
            let own = nets(ranks[bootstrap.rank().index()].1);
            let chosen = choose_rails(&mut bootstrap, &own, &["net 9 is down".to_owned()], asked, 2, "choose others")?;
            Ok(chosen.iter().map(|of| own[of.index].0).collect())
        })
    }

    #[test]
    fn a_rail_is_one_network_at_all_ranks() {
        let (a, b) = (vec![2, 4], vec![4, 2]);
        assert_eq!(rails(&[("a", &[0, 2, 4]), ("b", &[0, 4, 2])], false).expect("rails"), [a.clone(), a.clone()]);
        assert_eq!(rails(&[("a", &[2, 4, 6]), ("b", &[6, 4, 2])], false).expect("rails"), [a.clone(), a.clone()]);
        assert_eq!(rails(&[("a", &[2, 4]), ("b", &[4, 2])], true).expect("rails"), [a, b], "as asked for");
        assert_eq!(rails(&[("a", &[0, 2]), ("a", &[0, 2])], false).expect("rails"), [[0, 2], [0, 2]], "one host");
    }

    #[test]
    fn ranks_have_as_many_rails() {
        let outcome = loopback::run(2, |mut bootstrap, _| {
            let rails = 1 + bootstrap.rank().index();
            choose_rails(&mut bootstrap, &nets(&[2, 4]), &[], false, rails, "")
        });
        let message = outcome.expect_err("unlike numbers").to_string();
        assert!(message.contains("rank 1 has 2 rails, rank 0 1: all ranks have as many"), "{message}");
    }

    #[test]
    fn a_rank_with_fewer_ends_than_rails_is_named_with_what_it_has() {
        let error = rails(&[("a", &[0, 2, 4]), ("b", &[0, 4, 4])], false).expect_err("too few").to_string();
        let expected = "--rails 2: rank 1 on b has too few ends for that: 4; not to every other host: 0; net 9 is down";
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn ends_that_cannot_reach_each_other_are_an_error_that_names_both() {
        let outcome = loopback::run(2, |mut bootstrap, _| {
            let own = nets(&[3 + bootstrap.rank().0]);
            choose(&mut bootstrap, &own, &[], true, "choose others")
        });
        let message = outcome.expect_err("an odd and an even network").to_string();
        assert!(message.contains("cannot reach each other; choose others"), "{message}");
        assert!(message.contains("uses 3") || message.contains("uses 4"), "{message}");
    }
}
