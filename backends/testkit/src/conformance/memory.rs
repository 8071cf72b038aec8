//! How much memory a rank needs that has few peers: no case, for no number is right on every machine; backends' tests compare.

use tailback_engine::{Engine, Lane};
use tailback_transport::{Bootstrap, Rank, Result, Span, Tag};

/// What the system says of a process.
const KEYS: [&str; 3] = ["VmHWM", "RssAnon", "VmPin"];

/// Each rank talks to the two next to it and to nobody else; then rank 0 is told how much memory the largest has, in KiB.
pub fn ring_memory<B: Bootstrap, E: Engine>(bootstrap: &mut B, engine: &mut E) -> Result<Option<String>> {
    const LEN: usize = 65_536;
    let (me, size) = (bootstrap.rank().index(), bootstrap.size());
    let members: Vec<Rank> = (0..size).map(Rank::from).collect();
    let slot = engine.make_group(&members, 4 * LEN)?.slot;
    let sides = [Rank::from((me + size - 1) % size), Rank::from((me + 1) % size)];
    for _ in 0..64 {
        for (side, &peer) in sides.iter().enumerate() {
            engine.post_recv(slot, Lane::Data, peer, Tag(1 - side as u32), Span::new((2 + side) * LEN, LEN))?;
            engine.post_send(slot, Lane::Data, peer, Tag(side as u32), Span::new(side * LEN, LEN))?;
        }
        engine.wait(slot, Lane::Data)?;
    }
    bootstrap.barrier()?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |key: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
    };
    let mine: Vec<u8> = KEYS.iter().flat_map(|key| of(key).to_le_bytes()).collect();
    let all = bootstrap.allgather(&mine)?;
    let number = |bytes: &[u8], at: usize| bytes[8 * at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let most = |at: usize| all.iter().map(|bytes| number(bytes, at)).max().unwrap_or_default();
    let said: Vec<String> = KEYS.iter().enumerate().map(|(at, key)| format!("{key} {}", most(at))).collect();
    bootstrap.barrier()?;
    engine.drop_group(slot);
    Ok((me == 0).then(|| format!("{size} ranks: {}", said.join(", "))))
}
