//! The pages of segments: whether huge ones are wanted, what there was of them, and whose memory they are in.
//!
//! Memory is a process's, and so is the request: it is made once, before there are segments. Huge pages are those that the
//! administrator has reserved (`vm.nr_hugepages`), or else what the kernel makes of usual ones (transparent). Pages are first
//! touched by the rank itself, so the kernel takes them from the memory that is nearest to the core it runs on.

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tailback_transport::cpu_list::core_numbers;

use crate::process_stat::running_on;

/// Whether segments should have huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HugePages {
    /// Whatever the kernel gives.
    #[default]
    No,
    /// Where there are any.
    Try,
    /// A segment without them is an error.
    Require,
}

impl fmt::Display for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HugePages::No => "no",
            HugePages::Try => "try",
            HugePages::Require => "require",
        })
    }
}

impl FromStr for HugePages {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = [HugePages::No, HugePages::Try, HugePages::Require];
        all.into_iter().find(|of| of.to_string() == word).ok_or_else(|| "say no, try or require".into())
    }
}

/// What the segments that this process has made were made of, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PagesHad {
    /// Usual pages.
    pub usual: usize,
    /// Huge pages that were reserved.
    pub reserved: usize,
    /// Huge pages that the kernel made.
    pub transparent: usize,
    /// Why a segment that should have had huge pages has not.
    pub why: Option<String>,
}

static REQUESTED: Mutex<HugePages> = Mutex::new(HugePages::No);
static HAD: Mutex<PagesHad> = Mutex::new(PagesHad { usual: 0, reserved: 0, transparent: 0, why: None });

/// From now on segments of this process are made so.
pub fn request(pages: HugePages) {
    *lock(&REQUESTED) = pages;
}

/// What was requested.
#[must_use]
pub fn requested() -> HugePages {
    *lock(&REQUESTED)
}

/// What there was, so far.
#[must_use]
pub fn had() -> PagesHad {
    lock(&HAD).clone()
}

/// Takes note of a segment.
pub fn note(add: impl FnOnce(&mut PagesHad)) {
    add(&mut lock(&HAD));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The size of a huge page; nothing where the kernel has none.
pub fn huge_page() -> Option<usize> {
    size_in(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "Hugepagesize:")
}

/// Bytes of this process that are in transparent huge pages.
pub fn transparent_bytes() -> usize {
    size_in(&fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default(), "AnonHugePages:").unwrap_or(0)
}

/// A size of the kernel's, which it tells in kB.
fn size_in(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|size| size << 10).filter(|size| *size > 0)
}

/// This process's own memory (not that of files) in bytes: near the core that the caller runs on, and elsewhere. Nothing where the
/// kernel does not say.
#[must_use]
pub fn near_and_away() -> Option<(usize, usize)> {
    let core = running_on()?;
    let nodes = fs::read_dir("/sys/devices/system/node").ok()?.flatten();
    let own = nodes.into_iter().find_map(|entry| {
        let number: usize = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        let list = fs::read_to_string(entry.path().join("cpulist")).ok()?;
        core_numbers(list.trim()).any(|of| of == core).then_some(number)
    })?;
    Some(by_node(&fs::read_to_string("/proc/self/numa_maps").ok()?, own))
}

fn by_node(maps: &str, own: usize) -> (usize, usize) {
    let (mut near, mut away) = (0, 0);
    for line in maps.lines().filter(|line| line.contains(" anon=")) {
        let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let size = field("kernelpagesize_kB").and_then(|kb| kb.parse::<usize>().ok()).unwrap_or(4) << 10;
        for word in line.split(' ') {
            let of_node = word.strip_prefix('N').and_then(|rest| rest.split_once('='));
            let of_node =
                of_node.and_then(|(node, pages)| Some((node.parse::<usize>().ok()?, pages.parse::<usize>().ok()?)));
            match of_node {
                Some((node, pages)) if node == own => near += pages * size,
                Some((_, pages)) => away += pages * size,
                None => {}
            }
        }
    }
    (near, away)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for pages in [HugePages::No, HugePages::Try, HugePages::Require] {
            assert_eq!(pages.to_string().parse(), Ok(pages));
        }
        assert!("perhaps".parse::<HugePages>().is_err());
    }

    #[test]
    fn the_kernels_tables_are_read() {
        assert_eq!(size_in("MemTotal: 8 kB\nHugepagesize:       2048 kB\n", "Hugepagesize:"), Some(2 << 20));
        assert_eq!(size_in("Hugepagesize: 0 kB", "Hugepagesize:"), None);
        let maps = "7f00 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n\
                    7f10 default huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048\n\
                    7f20 default file=/lib/x mapped=9 N0=9 kernelpagesize_kB=4\n";
        assert_eq!(by_node(maps, 1), (2 * 4096 + (4 << 20), 4096));
        assert_eq!(by_node("", 0), (0, 0));
        let (near, away) = near_and_away().expect("Linux says");
        assert!(near + away > 0);
    }
}
