//! The clock of real transports: the processor's time-stamp counter where it is reliable (about 20 ns a read).

use crate::Nanos;

/// A monotonic clock with an origin of its own. Cheap to clone; clones share the origin.
#[derive(Clone, Debug)]
pub struct Clock {
    source: quanta::Clock,
    origin: u64,
}

impl Clock {
    /// A clock that starts now. The first one in a process calibrates, which takes about a millisecond.
    #[must_use]
    pub fn start() -> Self {
        let source = quanta::Clock::new();
        let origin = source.raw();
        Clock { source, origin }
    }

    /// Time since the clock was started.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        Nanos(self.source.delta_as_nanos(self.origin, self.source.raw()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_system_clock() {
        let clock = Clock::start();
        let (before, system) = (clock.now(), std::time::Instant::now());
        std::thread::sleep(std::time::Duration::from_millis(200));
        let (ours, theirs) = (clock.now().since(before).as_secs_f64(), system.elapsed().as_secs_f64());
        assert!((ours / theirs - 1.0).abs() < 0.01, "{ours} s by our clock, {theirs} s by the system's");
    }
}
