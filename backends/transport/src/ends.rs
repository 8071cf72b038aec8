//! Which of a rank's local ends carries the data: an address, a port, a domain. Chosen the same way on every backend.
//!
//! 1. A rank lists its candidates, best first: what the user named, or all that work here.
//! 2. All ranks tell each other theirs.
//! 3. A rank takes its first candidate that shares a network with a candidate of every other host; if none does, the first
//!    that may reach them through routers.
//! 4. All ranks tell each other what they took. Two that cannot reach each other are an error, on both, that names them.
//! 5. What every rank took is recorded.

use std::collections::HashMap;

use crate::{Bootstrap, Error, Rank, Result};

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
pub trait End: Sized {
    /// In one line.
    fn encode(&self) -> String;

    /// From such a line.
    fn decode(line: &str) -> Option<Self>;

    /// How this one gets to `other`, which is another rank's.
    fn reach(&self, other: &Self) -> Reach;

    /// What people call it, without what differs from host to host.
    fn name(&self) -> String;

    /// What errors call it.
    fn describe(&self) -> String {
        self.encode()
    }
}

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
pub fn choose<E: End>(
    bootstrap: &mut impl Bootstrap,
    candidates: &[E],
    obstacles: &[String],
    asked: bool,
    advice: &str,
) -> Result<Chosen> {
    let obstacles = obstacles.iter().map(|text| format!("{OBSTACLE}{}", text.replace('\n', " ")));
    let lines = candidates.iter().map(E::encode).chain(obstacles);
    let mine = lines.fold(bootstrap.host().to_owned(), |text, line| text + "\n" + &line);
    let told = bootstrap.allgather(mine.as_bytes())?;
    let offers = told.iter().enumerate().map(|(rank, bytes)| parse(rank, bytes)).collect::<Result<Vec<_>>>()?;
    let (index, reach, reason) = pick(candidates, asked, bootstrap.host(), &offers);
    let taken = bootstrap.allgather(&(index as u32).to_le_bytes())?;
    let mut ends = Vec::new();
    for (rank, (bytes, offer)) in taken.iter().zip(&offers).enumerate() {
        let index = bytes.as_slice().try_into().map(u32::from_le_bytes).unwrap_or(u32::MAX);
        ends.push(offer.ends.get(index as usize).ok_or_else(|| unclear(rank, "takes what it did not offer"))?);
    }
    for (rank, end) in ends.iter().enumerate() {
        if candidates[index].reach(end) == Reach::Never {
            return Err(Error::Setup(format!(
                "rank {rank} uses {}, this rank {}: they cannot reach each other; {advice}",
                end.describe(),
                candidates[index].describe()
            )));
        }
    }
    Ok(Chosen { index, reason, reach, record: record(&ends), unlike: unlike(&offers, &ends) })
}

/// Begins a line that says why something cannot be used.
const OBSTACLE: char = '!';

/// What a rank could take.
struct Offer<E> {
    host: String,
    ends: Vec<E>,
    obstacles: Vec<String>,
}

fn parse<E: End>(rank: usize, bytes: &[u8]) -> Result<Offer<E>> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let host = lines.next().unwrap_or_default().to_owned();
    let (mut ends, mut obstacles) = (Vec::new(), Vec::new());
    for line in lines {
        match line.strip_prefix(OBSTACLE) {
            Some(text) => obstacles.push(text.to_owned()),
            None => ends.push(E::decode(line).ok_or_else(|| unclear(rank, &format!("offers \"{line}\"")))?),
        }
    }
    Ok(Offer { host, ends, obstacles })
}

/// See [`Chosen::unlike`].
fn unlike<E: End>(offers: &[Offer<E>], ends: &[&E]) -> Option<String> {
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

fn unclear(rank: usize, what: &str) -> Error {
    Error::Protocol { operation: "choice of local ends", peer: Some(Rank::from(rank)), detail: what.to_owned() }
}

/// Which candidate to take, how well it reaches the others, and why.
fn pick<E: End>(candidates: &[E], asked: bool, host: &str, offers: &[Offer<E>]) -> (usize, Reach, String) {
    let others: Vec<&[E]> =
        offers.iter().filter(|offer| offer.host != host).map(|offer| offer.ends.as_slice()).collect();
    // How well a candidate reaches the host that it reaches worst.
    let worst = |end: &E| others.iter().map(|host| best_of(end, host)).min().unwrap_or(Reach::Near);
    let first = |level| candidates.iter().position(|end| worst(end) >= level);
    let (at, reason) = match () {
        () if others.is_empty() => (Some(0), "all ranks share one host"),
        () if first(Reach::Near).is_some() => {
            (first(Reach::Near), "the first that shares a network with every other host")
        }
        () => (first(Reach::Routed), "the first that may reach every host; none shares a network with all"),
    };
    let at = at.or(first(Reach::Local)).unwrap_or_default();
    (at, worst(&candidates[at]), if asked { "as asked for" } else { reason }.to_owned())
}

fn best_of<E: End>(end: &E, others: &[E]) -> Reach {
    others.iter().map(|other| end.reach(other)).max().unwrap_or(Reach::Never)
}

/// The ends' names, each with its ranks.
fn record<E: End>(ends: &[&E]) -> String {
    let mut names: Vec<(String, Vec<usize>)> = Vec::new();
    for (rank, name) in ends.iter().map(|end| end.name()).enumerate() {
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, ranks)) => ranks.push(rank),
            None => names.push((name, vec![rank])),
        }
    }
    let text = |(name, ranks): &(String, Vec<usize>)| format!("{name}: ranks {}", ranges(ranks));
    names.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// `0-3,7` of ascending numbers.
fn ranges(ranks: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let text = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loopback;

    /// A network by its number; 0 is the machine's own, odd ones have no router.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Net(u32);

    impl End for Net {
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
        assert_eq!((told.ends, told.obstacles), (nets(&[2, 6]), vec!["net 4 is down".to_owned()]));
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
