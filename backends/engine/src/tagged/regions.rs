//! The memory of groups: registered, and counted while operations refer to it.

use tailback_transport::Span;

use super::library::RegionId;
use crate::{Registration, Segment};

/// A group's memory, and how many operations refer to it.
struct Region<R: Registration> {
    segment: Segment<R>,
    in_flight: usize,
    given_up: bool,
}

/// All regions of an endpoint.
pub struct Regions<R: Registration> {
    slots: Vec<Option<Region<R>>>,
}

impl<R: Registration> Default for Regions<R> {
    fn default() -> Self {
        Regions { slots: Vec::new() }
    }
}

impl<R: Registration> Regions<R> {
    /// Takes a segment, and gives it a number.
    pub fn add(&mut self, segment: Segment<R>) -> RegionId {
        let region = Region { segment, in_flight: 0, given_up: false };
        let at = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(region);
        RegionId(u32::try_from(at).expect("fewer than 2^32 groups"))
    }

    /// The segment of a region in use.
    #[inline]
    pub fn at(&self, id: RegionId) -> &Segment<R> {
        &self.slots[id.0 as usize].as_ref().expect("a region in use").segment
    }

    /// See [`Regions::at`].
    pub fn at_mut(&mut self, id: RegionId) -> &mut Segment<R> {
        &mut self.slots[id.0 as usize].as_mut().expect("a region in use").segment
    }

    /// The address of a span of the region, and its registration.
    ///
    /// # Panics
    /// If the span is not inside it.
    #[inline]
    pub fn place(&self, id: RegionId, span: Span) -> (*mut u8, &R) {
        let segment = self.at(id);
        (segment.place(span.offset, span.len), segment.registration())
    }

    /// One more operation refers to the region.
    #[inline]
    pub fn hold(&mut self, id: RegionId) {
        self.slots[id.0 as usize].as_mut().expect("a region in use").in_flight += 1;
    }

    /// One operation less does.
    #[inline]
    pub fn release(&mut self, id: RegionId) {
        let slot = &mut self.slots[id.0 as usize];
        let region = slot.as_mut().expect("a region in use");
        region.in_flight -= 1;
        if region.given_up && region.in_flight == 0 {
            *slot = None;
        }
    }

    /// Nobody will name the region again.
    pub fn give_up(&mut self, id: RegionId) {
        let slot = &mut self.slots[id.0 as usize];
        if let Some(region) = slot {
            region.given_up = true;
            if region.in_flight == 0 {
                *slot = None;
            }
        }
    }

    /// Ends all registrations, for libraries that want that before they are closed.
    pub fn deregister_all(&mut self) {
        self.slots.iter_mut().flatten().for_each(|region| region.segment.deregister());
    }

    /// Leaves the memory to the process's end: something may still write to it.
    pub fn leak(&mut self) {
        self.slots.drain(..).for_each(std::mem::forget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(len: usize) -> Segment {
        Segment::plain(len).expect("memory")
    }

    #[test]
    fn a_region_lives_while_operations_refer_to_it() {
        let mut regions = Regions::default();
        let id = regions.add(segment(16));
        regions.hold(id);
        regions.give_up(id);
        assert_eq!(regions.at(id).len(), 16);
        assert_ne!(regions.add(segment(1)), id);
        regions.release(id);
        assert_eq!(regions.add(segment(1)), id);
    }

    #[test]
    #[should_panic(expected = "9 bytes at offset 8 are not inside the segment of 16 bytes")]
    fn spans_outside_are_refused() {
        let mut regions = Regions::default();
        let id = regions.add(segment(16));
        regions.place(id, Span::new(8, 9));
    }
}
