use proptest::prelude::*;

use super::*;

/// What a histogram counted, whatever its bounds.
fn counts(batch: &Batch) -> Vec<(u64, u64)> {
    batch.histogram().iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value())).collect()
}

#[test]
fn what_grew_past_the_longest_comes_back() {
    for ns in [34_000_000_000, 35_000_000_000, LONGEST_NS, 3 * LONGEST_NS] {
        let mut grown = Samples::growing(1);
        grown.record(ns);
        let mut back = Samples::decode(&grown.encode()).unwrap();
        back.merge_encoded(&grown.encode()).unwrap();
        assert_eq!(back.batches().map(|batch| batch.histogram().len()).sum::<u64>(), 2, "{ns}");
        Samples::decode(&back.encode()).unwrap();
    }
}

#[test]
fn growing_samples_are_the_same_and_smaller() {
    for batches in [1, MAX_BATCHES] {
        let (mut fixed, mut growing) = (Samples::new(), Samples::growing(batches));
        for pass in 0..40u64 {
            for sample in 0..50 {
                let ns = 900 + 37 * sample + if pass == 20 { 5_000_000 } else { 0 };
                fixed.record(ns);
                growing.record(ns);
            }
            fixed.close_pass(Some(1.0));
            growing.close_pass(Some(1.0));
        }
        let words = |batch: &Batch| match &batch.counts {
            Counts::Few(few) => few.capacity(),
            Counts::Many(histogram) => histogram.distinct_values(),
        };
        let size = |samples: &Samples| samples.batches.iter().map(words).sum::<usize>();
        assert!(size(&growing) < size(&fixed));
        let (one, other) = (fixed.total(), growing.total());
        assert_eq!(counts(&one), counts(&other));
        assert_eq!((one.extremes_ns, one.sum_ns, one.passes), (other.extremes_ns, other.sum_ns, other.passes));
        let decoded = Samples::decode(&growing.clone().in_one().encode()).unwrap();
        assert_eq!(counts(&decoded.total()), counts(&one));
        // A rank that saw less takes in one that saw more.
        let mut little = Samples::growing(batches);
        (0..40).for_each(|_| little.close_pass(None));
        little.record(5);
        little.merge_encoded(&growing.encode()).unwrap();
        assert_eq!(little.total().histogram().len(), 2001);
        growing.clear();
        growing.record(7);
        assert_eq!((growing.passes(), growing.total().histogram().len()), (0, 1));
    }
}

#[test]
fn passes_without_samples_come_back_wherever_they_are() {
    // A pass of nothing, one of a figure alone, and one with a sample; then nothing more.
    let mut some = Samples::new();
    some.close_pass(None);
    some.close_pass(Some(2.0));
    some.record(7);
    some.close_pass(None);
    let back = Samples::decode(&some.encode()).unwrap();
    assert_eq!((back.passes(), back.total().histogram().len()), (3, 1));
    let closed = |samples: &Samples| samples.batches.iter().map(Batch::closed).collect::<Vec<_>>();
    assert_eq!(closed(&back), [0, 1, 0]);
    let mut figures = Samples::new();
    figures.close_pass(Some(2.0));
    assert_eq!(closed(&Samples::decode(&figures.encode()).unwrap()), [1]);
}

#[test]
fn one_batch_has_the_same_samples_and_passes_and_merges_with_its_like() {
    let whole = filled(6, 10);
    let mut one = whole.clone().in_one();
    assert_eq!((one.batches().count(), one.passes()), (1, 6));
    assert_eq!(one.total().histogram(), whole.total().histogram());
    one.merge_encoded(&filled(6, 10).in_one().encode()).unwrap();
    assert_eq!((one.total().histogram().len(), one.total().closed()), (120, 12));
    assert!(one.merge(&filled(5, 10).in_one()).is_err(), "other passes");
}

#[test]
fn teams_out_of_step_are_one_pass_each_and_merge() {
    let mut flat = filled(7, 3).flatten();
    assert_eq!((flat.passes(), flat.batches().count()), (1, 1));
    assert_eq!(counts(&flat.total()), counts(&filled(7, 3).total()));
    flat.merge(&filled(40, 2).flatten()).unwrap();
    assert_eq!(counts(&flat.total()).iter().map(|(_, count)| count).sum::<u64>(), 7 * 3 + 40 * 2);
}

#[test]
fn a_handful_of_samples_takes_no_histogram_and_is_the_same_when_there_are_more() {
    let of = |samples: &[u64]| {
        let mut growing = Samples::growing(1);
        samples.iter().for_each(|&ns| growing.record(ns));
        growing
    };
    let (some, more): (Vec<u64>, Vec<u64>) =
        ((1..300).map(|at| 7 * at * at).collect(), (1..400).map(|at| 13 * at).collect());
    let handful = of(&some);
    assert!(matches!(handful.batches[0].counts, Counts::Few(_)));
    // Up the tree: what arrives is a histogram, and stays a handful where it is one.
    let mut little = of(&[5, 6]);
    little.merge_encoded(&handful.encode()).unwrap();
    assert!(matches!(little.batches[0].counts, Counts::Few(_)));
    let decoded = Samples::decode(&handful.encode()).unwrap();
    assert!(matches!(decoded.batches[0].counts, Counts::Few(_)));
    assert_eq!(decoded.encode(), handful.encode());
    let few = |samples| matches!(Counts::of(of(&vec![7; samples]).total().histogram().into_owned()), Counts::Few(_));
    assert!(few(512) && !few(513));
    assert_eq!(counts(&little.total()), counts(&of(&[&[5, 6], &some[..]].concat()).total()));
    for merge in [Samples::merge, |a: &mut Samples, b: &Samples| a.merge_encoded(&b.encode())] {
        let mut both = handful.clone();
        merge(&mut both, &of(&more)).unwrap();
        assert!(matches!(both.batches[0].counts, Counts::Many(_)));
        let whole = of(&[&some[..], &more[..]].concat());
        assert_eq!(counts(&both.total()), counts(&whole.total()));
        assert_eq!((both.total().len(), both.total().sum_ns), (698, whole.total().sum_ns));
    }
}

fn filled(passes: u64, per_pass: u64) -> Samples {
    let mut samples = Samples::new();
    for pass in 0..passes {
        (0..per_pass).for_each(|i| samples.record(1000 + 10 * pass + i));
        samples.close_pass(Some(pass as f64));
    }
    samples
}

#[test]
fn batches_stay_bounded_and_lose_nothing() {
    let samples = filled(1000, 3);
    assert!(samples.batches().count() <= MAX_BATCHES);
    let total = samples.total();
    assert_eq!((total.histogram().len(), samples.passes()), (3000, 1000));
    assert_eq!(total.pass_mean(), Some(499.5));
    assert_eq!(total.extremes_ns(), Some((1000, 1000 + 9990 + 2)));
    assert!((total.mean_ns() - (1000.0 + 4995.0 + 1.0)).abs() < 1e-9);
}

#[test]
fn joined_batches_keep_their_order() {
    let samples = filled(MAX_BATCHES as u64, 1);
    let means: Vec<f64> = samples.batches().map(|batch| batch.pass_mean().unwrap()).collect();
    assert_eq!(means, (0..8).map(|at| f64::from(at) * 2.0 + 0.5).collect::<Vec<_>>());
}

#[test]
fn a_single_batch_stays_one_however_many_passes_there_are() {
    let mut samples = Samples::single();
    for ns in 1..=100u64 {
        samples.record(ns);
        samples.close_pass(Some(ns as f64));
    }
    assert_eq!((samples.batches.len(), samples.passes(), samples.total().len()), (1, 100, 100));
    assert_eq!((samples.total().mean_ns(), samples.total().pass_mean()), (50.5, Some(50.5)));
    samples.clear();
    (0..100).for_each(|_| samples.close_pass(None));
    assert_eq!((samples.batches.len(), samples.passes(), samples.batches().count()), (1, 100, 0));
}

#[test]
fn histograms_of_other_bounds_and_bytes_too_many_are_refused() {
    let with = |low, high, digits| {
        let histogram = Histogram::<u64>::new_with_bounds(low, high, digits).unwrap();
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
        // Width, passes, one batch of so many bytes; then low and high, sum, and the sum and the number of passes.
        let head = [1, 1, 1, bytes.len() as u64].map(u64::to_le_bytes).concat();
        [head, bytes, [u64::MAX, 0, 0, 0, 0].map(u64::to_le_bytes).concat()].concat()
    };
    let header = |width: u64, batches: u64| [width, 1, batches].map(u64::to_le_bytes).concat();
    assert!(Samples::decode(&header(1, 0)).is_ok());
    for said in [header(0, 0), header(1, 17)].map(|of| Samples::decode(&of).unwrap_err().to_string()) {
        assert!(said.contains("batches of"), "{said}");
    }
    let accepted = |bytes: &[u8]| {
        let mut mine = Samples::decode(&with(1, LONGEST_NS, DIGITS)).unwrap();
        let merged = mine.merge_encoded(bytes).is_ok();
        assert_eq!(Samples::decode(bytes).is_ok(), merged);
        merged
    };
    assert!(accepted(&with(1, LONGEST_NS, DIGITS)) && accepted(&with(1, 2 * LONGEST_NS, DIGITS)));
    assert!(!accepted(&with(2, LONGEST_NS, DIGITS)) && !accepted(&with(1, LONGEST_NS, DIGITS - 1)));
    assert!(!accepted(&with(1, 5 * LONGEST_NS, DIGITS)));
    assert!(!accepted(&[&with(1, LONGEST_NS, DIGITS)[..], &[0]].concat()));
}

#[test]
fn very_long_samples_keep_their_exact_maximum() {
    let mut samples = Samples::new();
    samples.record(2 * LONGEST_NS);
    assert_eq!(samples.total().extremes_ns(), Some((2 * LONGEST_NS, 2 * LONGEST_NS)));
    assert_eq!(samples.total().histogram().len(), 1);
}

#[test]
fn ranks_with_different_passes_do_not_merge() {
    assert!(filled(5, 1).merge_encoded(&filled(6, 1).encode()).is_err());
}

proptest! {
    #[test]
    fn encoding_round_trips_and_merging_adds(passes in 0u64..70, per_pass in 0u64..5) {
        let samples = filled(passes, per_pass);
        let mut back = Samples::decode(&samples.encode()).unwrap();
        prop_assert_eq!(back.encode(), samples.encode());
        back.merge_encoded(&samples.encode()).unwrap();
        let mut twice = samples.clone();
        twice.merge(&samples).unwrap();
        prop_assert_eq!(back.encode(), twice.encode());
        prop_assert_eq!(back.total().histogram().len(), 2 * passes * per_pass);
    }

    #[test]
    fn garbage_is_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Samples::decode(&bytes);
    }

    #[test]
    fn cut_encodings_are_refused(cut in 0usize..100) {
        let whole = filled(3, 2).encode();
        let length = whole.len() * cut / 100;
        prop_assert!(Samples::decode(&whole[..length]).is_err());
    }
}
