//! Where ranks meet for a call of the bootstrap: everyone brings bytes, and everyone is told all of them.
//!
//! A meeting takes no time of its own: who comes early waits for the latest clock.

use std::rc::Rc;

/// The meeting under way and the one before.
#[derive(Debug)]
pub(super) struct Meeting {
    brought: Vec<Option<Vec<u8>>>,
    missing: usize,
    latest: u64,
    /// What was brought to the last one. Nobody can end a meeting that another has not left, so it stays until read.
    pub(super) told: Rc<Vec<Vec<u8>>>,
}

impl Meeting {
    pub(super) fn new(size: usize) -> Self {
        Meeting { brought: vec![None; size], missing: size, latest: 0, told: Rc::default() }
    }

    /// A rank comes at its time; when it is the last, the time at which all leave.
    pub(super) fn bring(&mut self, rank: usize, clock: u64, bytes: Vec<u8>) -> Option<u64> {
        self.brought[rank] = Some(bytes);
        self.latest = self.latest.max(clock);
        self.missing -= 1;
        if self.missing > 0 {
            return None;
        }
        self.told = Rc::new(self.brought.iter_mut().filter_map(Option::take).collect());
        self.missing = self.brought.len();
        Some(self.latest)
    }

    /// Who has not come, for a message to the user.
    pub(super) fn absent(&self) -> String {
        let absent = self.brought.iter().enumerate().filter(|(_, bytes)| bytes.is_none());
        let mut names: Vec<String> = absent.map(|(rank, _)| rank.to_string()).take(9).collect();
        if names.len() > 8 {
            names[8] = "others".into();
        }
        names.join(", ")
    }
}
