//! What the books say when peers send more than is wanted.

use tailback_transport::Tag;

use super::super::bare::Bare;
use super::*;
use crate::Segment;

fn ledger() -> (Ledger<Bare>, Slot) {
    let mut ledger = Ledger::new(Rank(0), 2, Rails::default());
    let slot = ledger.groups.make(0, &[Rank(0), Rank(1)], Segment::plain(64).expect("memory"));
    (ledger, slot)
}

const RECEIVE: (Lane, Tag, Span) = (Lane::Data, Tag(0), Span { offset: 0, len: 8 });

#[test]
fn a_peer_pauses_while_much_of_it_is_held_and_nothing_of_it_is_wanted() {
    let (mut ledger, slot) = ledger();
    ledger.hold(1, HELD_LIMIT).expect("room");
    assert!(ledger.take_words().is_empty());
    ledger.hold(1, 1).expect("room");
    ledger.hold(1, 1).expect("room");
    assert_eq!(ledger.take_words(), [(1, Word::Pause)], "said once");
    ledger.begin_receive(1, slot, Rank(1), RECEIVE);
    assert_eq!(ledger.take_words(), [(1, Word::Resume)], "it is wanted");
    ledger.hold(1, HELD_LIMIT).expect("room");
    assert!(ledger.take_words().is_empty(), "it still is");
    ledger.end_receive(1, slot, Lane::Data);
    ledger.hold(1, 1).expect("room");
    assert_eq!(ledger.take_words(), [(1, Word::Pause)]);
    ledger.release(1, HELD_LIMIT);
    assert!(ledger.take_words().is_empty());
    ledger.release(1, HELD_LIMIT / 2 + 4);
    assert_eq!(ledger.take_words(), [(1, Word::Resume)], "most of it is taken");
}

#[test]
fn other_lanes_do_not_count_as_wanting() {
    let (mut ledger, slot) = ledger();
    ledger.begin_receive(1, slot, Rank(1), (Lane::Barrier, Tag(0), Span::new(0, 8)));
    ledger.hold(1, HELD_LIMIT + 1).expect("room");
    assert_eq!(ledger.take_words(), [(1, Word::Pause)]);
    assert!(ledger.needs(1));
    ledger.drop_group(slot);
    assert!(!ledger.needs(1));
}

#[test]
fn accesses_that_a_group_gives_up_are_over_and_others_are_not() {
    let (mut ledger, slot) = ledger();
    (0..3).for_each(|_| ledger.begin_access(1, slot));
    ledger.groups.at_mut(slot).members[1].far = 2;
    ledger.forget_accesses(slot, std::mem::take);
    ledger.drop_group(slot);
    assert!(ledger.needs(1), "one is under way");
    ledger.end_access(1, slot);
    assert!(!ledger.needs(1));
}

#[test]
fn what_is_held_has_an_end_whatever_is_wanted() {
    let (mut ledger, slot) = ledger();
    ledger.begin_receive(1, slot, Rank(1), RECEIVE);
    ledger.hold(1, HELD_MOST).expect("room");
    let error = ledger.hold(1, 1).expect_err("too much").to_string();
    assert!(error.contains("with rank 1") && error.contains("by put or get"), "{error}");
}

#[test]
fn messages_to_a_peer_that_wants_a_pause_wait_in_order() {
    let (mut ledger, slot) = ledger();
    let parcel = |tag| Parcel { slot, member: 1, lane: Lane::Data, tag: Tag(tag), span: Span::new(0, 8) };
    ledger.heard(1, Word::Pause);
    assert!(ledger.is_stopped(1));
    ledger.put_off(1, parcel(1));
    ledger.put_off(1, parcel(2));
    assert!(ledger.needs(1) && ledger.take_off(1).is_none() && !ledger.tidy());
    ledger.heard(1, Word::Resume);
    assert!(ledger.is_stopped(1), "others are before it");
    for tag in [1, 2] {
        assert_eq!(ledger.take_off(1), Some(parcel(tag)));
        ledger.unlend(slot);
    }
    assert!(!ledger.is_stopped(1) && !ledger.needs(1) && !ledger.tidy() && ledger.waiting() == 0);
}
