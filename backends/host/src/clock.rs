//! The clock of real transports: the processor's time-stamp counter where it is reliable (about 20 ns a read).

use tailback_transport::Nanos;

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
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn agrees_with_the_system_clock() {
        let clock = Clock::start();
        // A thread may lose its core between any two of these: what is measured lies between what the others measure.
        let (outer, before, inner) = (Instant::now(), clock.now(), Instant::now());
        std::thread::sleep(Duration::from_millis(200));
        let (least, ours, most) = (inner.elapsed(), clock.now().since(before), outer.elapsed());
        let ours = Duration::from_nanos(ours.0);
        assert!(
            (least.mul_f64(0.99)..=most.mul_f64(1.01)).contains(&ours),
            "{ours:?} by our clock, {least:?} to {most:?} by the system's"
        );
    }
}
