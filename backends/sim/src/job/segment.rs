//! A member's memory: pages that are made when they are written, shared when they are equal, and copied when a shared one
//! is changed.
//!
//! A job of thousands of ranks has tens of gigabytes of segments, most of them never touched, and the rest full of a few
//! patterns sent around: whole pages that travel are shared, not copied.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;

use tailback_transport::Span;

use crate::hash::Mixer;
use crate::rng::mix;

const PAGE: usize = 4096;

/// Pages that are named together: most of a long segment is never touched, and its names should take no memory either.
const TABLE: usize = 32;

type Table = [Option<Rc<[u8]>>; TABLE];

/// Known pages kept before those that nobody uses are forgotten.
const MOST_KNOWN: usize = 1 << 16;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    len: usize,
    /// Made with the first write, as are the tables; a page that is missing is zero.
    tables: Vec<Option<Box<Table>>>,
}

/// Pages that were written whole, by what is in them.
#[derive(Debug, Default)]
pub(super) struct Known {
    pages: HashMap<u64, Rc<[u8]>, BuildHasherDefault<Mixer>>,
}

impl Known {
    /// A page with these bytes: a known one if there is one.
    fn page(&mut self, bytes: &[u8]) -> Rc<[u8]> {
        if self.pages.len() > MOST_KNOWN {
            self.pages.retain(|_, page| Rc::strong_count(page) > 1);
        }
        let (words, _) = bytes.as_chunks::<8>();
        let name = words.iter().fold(0, |name, word| mix(name ^ u64::from_le_bytes(*word)));
        match self.pages.get(&name) {
            Some(page) if **page == *bytes => Rc::clone(page),
            _ => {
                let page: Rc<[u8]> = bytes.into();
                self.pages.insert(name, Rc::clone(&page));
                page
            }
        }
    }
}

/// The parts of a range of bytes, page by page: page, first byte in it, bytes.
fn parts(offset: usize, len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let mut at = offset;
    std::iter::from_fn(move || {
        let left = offset + len - at;
        let (page, first) = (at / PAGE, at % PAGE);
        let count = left.min(PAGE - first);
        at += count;
        (count > 0).then_some((page, first, count))
    })
}

impl Segment {
    pub(super) fn new(len: usize) -> Self {
        Segment { len, tables: Vec::new() }
    }

    /// # Panics
    /// If the range is not inside.
    fn check(&self, offset: usize, len: usize) {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(inside, "{len} bytes at {offset} are not in a segment of {}", self.len);
    }

    pub(super) fn read(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        let mut done = 0;
        for (page, first, count) in parts(offset, into.len()) {
            let into = &mut into[done..done + count];
            match self.page(page) {
                Some(page) => into.copy_from_slice(&page[first..first + count]),
                None => into.fill(0),
            }
            done += count;
        }
    }

    pub(super) fn write(&mut self, known: &mut Known, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        let mut done = 0;
        for (page, first, count) in parts(offset, from.len()) {
            let from = &from[done..done + count];
            if count == PAGE {
                *self.slot(page) = Some(known.page(from));
            } else {
                let whole = PAGE.min(self.len - page * PAGE);
                let slot = self.slot(page).get_or_insert_with(|| vec![0; whole].into());
                Rc::make_mut(slot)[first..first + count].copy_from_slice(from);
            }
            done += count;
        }
    }

    fn page(&self, page: usize) -> Option<&Rc<[u8]>> {
        self.tables.get(page / TABLE)?.as_ref()?[page % TABLE].as_ref()
    }

    fn slot(&mut self, page: usize) -> &mut Option<Rc<[u8]>> {
        if self.tables.is_empty() {
            self.tables = vec![None; self.len.div_ceil(PAGE).div_ceil(TABLE)];
        }
        &mut self.tables[page / TABLE].get_or_insert_default()[page % TABLE]
    }

    /// What is in a span, on its way to another segment.
    pub(super) fn extract(&self, span: Span) -> Extract {
        self.check(span.offset, span.len);
        if span.len >= PAGE && span.offset.is_multiple_of(PAGE) && span.len.is_multiple_of(PAGE) {
            let first = span.offset / PAGE;
            return Extract::Pages((first..first + span.len / PAGE).map(|at| self.page(at).cloned()).collect());
        }
        let mut bytes = vec![0; span.len];
        self.read(span.offset, &mut bytes);
        Extract::Bytes(bytes.into())
    }

    /// Puts it at `offset`.
    pub(super) fn insert(&mut self, known: &mut Known, offset: usize, extract: Extract) {
        match extract {
            Extract::Pages(pages) if offset.is_multiple_of(PAGE) => {
                self.check(offset, pages.len() * PAGE);
                for (at, page) in pages.into_iter().enumerate() {
                    *self.slot(offset / PAGE + at) = page;
                }
            }
            Extract::Pages(pages) => {
                for (at, page) in pages.iter().enumerate() {
                    self.write(known, offset + at * PAGE, page.as_deref().unwrap_or(&[0; PAGE]));
                }
            }
            Extract::Bytes(bytes) => self.write(known, offset, &bytes),
        }
    }
}

/// Bytes between two segments.
#[derive(Debug)]
pub(super) enum Extract {
    /// Whole pages; a missing one is zero.
    Pages(Vec<Option<Rc<[u8]>>>),
    Bytes(Box<[u8]>),
}

impl Extract {
    pub(super) fn len(&self) -> usize {
        match self {
            Extract::Pages(pages) => pages.len() * PAGE,
            Extract::Bytes(bytes) => bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn segments_behave_as_plain_memory() {
        const LEN: usize = 5 * PAGE + 100;
        let (mut known, mut rng) = (Known::default(), Rng::new(1));
        let mut segments = [Segment::new(LEN), Segment::new(LEN)];
        let mut plain = [vec![0u8; LEN], vec![0u8; LEN]];
        for round in 0..5000u32 {
            let which = rng.below(2) as usize;
            let aligned = rng.below(2) == 0;
            let pick = |rng: &mut Rng| match aligned {
                true => (rng.below(3) as usize * PAGE, (1 + rng.below(2)) as usize * PAGE),
                false => (rng.below(2 * PAGE as u32) as usize, rng.below(3 * PAGE as u32) as usize),
            };
            let ((from, len), (to, _)) = (pick(&mut rng), pick(&mut rng));
            if rng.below(2) == 0 {
                let bytes = vec![round as u8; len];
                segments[which].write(&mut known, from, &bytes);
                plain[which][from..from + len].copy_from_slice(&bytes);
            } else {
                let extract = segments[which].extract(Span::new(from, len));
                assert_eq!(extract.len(), len);
                segments[1 - which].insert(&mut known, to, extract);
                let bytes = plain[which][from..from + len].to_vec();
                plain[1 - which][to..to + len].copy_from_slice(&bytes);
            }
            let mut found = vec![1; LEN];
            segments[which].read(0, &mut found);
            assert!(found == plain[which], "round {round}");
        }
    }

    #[test]
    fn a_long_segment_takes_what_is_touched_of_it() {
        let mut segment = Segment::new(1000 * PAGE);
        segment.write(&mut Known::default(), 777 * PAGE + 5, &[1, 2]);
        let mut found = [9; 4];
        segment.read(777 * PAGE + 4, &mut found);
        assert_eq!(found, [0, 1, 2, 0]);
        segment.read(999 * PAGE, &mut found);
        assert_eq!(found, [0; 4]);
        let tables: Vec<&Table> = segment.tables.iter().flatten().map(|table| &**table).collect();
        assert_eq!((tables.len(), tables[0].iter().flatten().count()), (1, 1));
    }

    #[test]
    fn equal_pages_are_one_page() {
        let mut known = Known::default();
        let mut segments = vec![Segment::new(8 * PAGE); 10];
        for segment in &mut segments {
            segment.write(&mut known, 0, &vec![7; 8 * PAGE]);
        }
        assert_eq!(known.pages.len(), 1);
        let pages: Vec<_> = segments.iter().flat_map(|segment| (0..8).map(|at| segment.page(at).unwrap())).collect();
        assert!(pages.iter().all(|page| Rc::ptr_eq(page, pages[0])));
    }
}
