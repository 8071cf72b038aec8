//! Links of a lab that are broken on purpose: slower than the others, late, or losing packets.
//!
//! A [`Degradation`] is one change of one link, or of one direction of it. Several of one link add up: shares of a rate
//! multiply, delays are summed, and what one lets pass another may lose.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tailback_transport::units;

use crate::units::Rate;

/// As users write one, for errors.
const FORM: &str = "expected PLACE:KEY=VALUE, as in h3:rate=50%, leaf0-leaf1:delay=2ms or h5:send.loss=1%";
const MILLION: f64 = 1e6;
/// Above it little but retransmissions is left to measure.
const MOST_LOSS: f64 = 0.5;
const MOST_DELAY_US: f64 = 1e6;

/// One change of one link, as `--degrade` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Degradation {
    /// A host, whose link is meant, or the two ends of a link.
    place: String,
    way: Way,
    change: Change,
}

/// Which direction of a link, as its host sees it, or the end that is named first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Both,
    Send,
    Receive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A part of the link's rate, in millionths.
    Part(u32),
    /// A rate of its own, if the link is not slower anyway.
    Rate(Rate),
    /// Added to the time of every packet.
    DelayUs(u32),
    /// How many of a million packets are lost.
    Loss(u32),
}

/// What is left of a port, all its degradations together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quality {
    pub rate: Rate,
    pub delay_us: u32,
    /// How many of a million packets are lost.
    pub loss: u32,
}

impl Quality {
    pub fn whole(rate: Rate) -> Self {
        Quality { rate, delay_us: 0, loss: 0 }
    }

    /// What one more degradation makes of it.
    fn with(self, change: Change) -> Self {
        match change {
            Change::Part(part) => Quality { rate: part_of(self.rate, part), ..self },
            Change::Rate(rate) => Quality { rate: self.rate.min(rate), ..self },
            Change::DelayUs(more) => Quality { delay_us: self.delay_us.saturating_add(more), ..self },
            Change::Loss(loss) => {
                let passed = (1.0 - f64::from(self.loss) / MILLION) * (1.0 - f64::from(loss) / MILLION);
                Quality { loss: (MILLION * (1.0 - passed)).round() as u32, ..self }
            }
        }
    }
}

impl Degradation {
    /// What it makes of the port through which `from` sends to `to`.
    pub(super) fn applied(&self, from: &str, to: &str, quality: Quality) -> Quality {
        if self.is_meant(from, to) { quality.with(self.change) } else { quality }
    }

    /// Whether there is such a link among `links`, one of whose ends is a host or both of which are switches.
    pub(super) fn is_of(&self, links: &[[String; 2]]) -> bool {
        links.iter().any(|[a, b]| self.is_meant(a, b) || self.is_meant(b, a))
    }

    /// The place it is about.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Whether it makes packets late.
    #[must_use]
    pub fn is_delay(&self) -> bool {
        matches!(self.change, Change::DelayUs(_))
    }

    /// Whether it loses packets.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(self.change, Change::Loss(_))
    }

    fn is_meant(&self, from: &str, to: &str) -> bool {
        let is_first = |name: &str, other: &str| match self.place.split_once('-') {
            Some((first, second)) => name == first && other == second,
            // A switch has many links.
            None => name == self.place && !name.starts_with("leaf") && name != "spine",
        };
        self.way != Way::Receive && is_first(from, to) || self.way != Way::Send && is_first(to, from)
    }
}

fn part_of(rate: Rate, part: u32) -> Rate {
    Rate::bits_per_second((u128::from(rate.bits()) * u128::from(part) / 1_000_000) as u64)
}

impl FromStr for Degradation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("invalid degradation '{}': {why}", units::shown(text));
        let (place, rest) = text.split_once(':').ok_or_else(|| wrong(FORM))?;
        let (key, value) = rest.split_once('=').ok_or_else(|| wrong(FORM))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if !(1..=32).contains(&place.len()) || !place.chars().all(plain) {
            return Err(wrong(FORM));
        }
        let (way, key) = match key.split_once('.') {
            Some(("send", key)) => (Way::Send, key),
            Some(("receive", key)) => (Way::Receive, key),
            _ => (Way::Both, key),
        };
        let change = Change::parse(key, value).map_err(|why| wrong(&why))?;
        Ok(Degradation { place: place.to_owned(), way, change })
    }
}

impl Change {
    fn parse(key: &str, value: &str) -> Result<Self, String> {
        let percent = |least: f64, most: f64| {
            let number: f64 = value.strip_suffix('%')?.trim().parse().ok()?;
            Some(MILLION * number / 100.0).filter(|part| (least..=most).contains(part)).map(|part| part.round() as u32)
        };
        match key {
            "rate" => percent(1.0, MILLION)
                .map(Change::Part)
                .or_else(|| value.parse().ok().map(Change::Rate))
                .ok_or_else(|| "expected a percentage up to 100% or a rate, as in rate=50% or rate=20mbit".into()),
            "delay" => units::duration(value)
                .ok()
                .filter(|_| value.ends_with('s'))
                .map(|time| (MILLION * time.as_secs_f64()).round())
                .filter(|us| (1.0..=MOST_DELAY_US).contains(us))
                .map(|us| Change::DelayUs(us as u32))
                .ok_or_else(|| "expected a time from 1us to 1s, as in delay=2ms".into()),
            "loss" => percent(1.0, MOST_LOSS * MILLION)
                .map(Change::Loss)
                .ok_or_else(|| "expected a percentage from 0.0001% to 50%, as in loss=1%".into()),
            _ => Err("expected the key rate, delay or loss, for one direction after 'send.' or 'receive.'".into()),
        }
    }
}

impl fmt::Display for Degradation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            Way::Both => "",
            Way::Send => "send.",
            Way::Receive => "receive.",
        };
        write!(f, "{}:{way}", self.place)?;
        let percent = |part: u32| f64::from(part) / 1e4;
        match self.change {
            Change::Part(part) => write!(f, "rate={}%", percent(part)),
            Change::Rate(rate) => write!(f, "rate={}", rate.to_string().replace(' ', "")),
            Change::DelayUs(us) if us.is_multiple_of(1000) => write!(f, "delay={}ms", us / 1000),
            Change::DelayUs(us) => write!(f, "delay={us}us"),
            Change::Loss(loss) => write!(f, "loss={}%", percent(loss)),
        }
    }
}

impl From<Degradation> for String {
    fn from(of: Degradation) -> String {
        of.to_string()
    }
}

impl TryFrom<String> for Degradation {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINK: Rate = Rate::bits_per_second(200_000_000);

    fn port(changes: &[&str], from: &str, to: &str) -> Quality {
        let all = changes.iter().map(|text| text.parse::<Degradation>().expect(text));
        all.fold(Quality::whole(LINK), |quality, of| of.applied(from, to, quality))
    }

    #[test]
    fn they_are_written_as_they_are_read() {
        for text in [
            "h3:rate=50%",
            "h3:send.rate=12.5%",
            "leaf0-spine:receive.rate=20Mbit/s",
            "h5:loss=1%",
            "h5:loss=0.0001%",
            "h0-leaf0:delay=2ms",
            "h0:delay=1500us",
        ] {
            let read: Degradation = text.parse().expect(text);
            assert_eq!(read.to_string(), text);
            assert_eq!(serde_json::to_string(&read).unwrap(), format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Degradation>(&format!("\"{text}\"")).unwrap(), read);
        }
        assert_eq!("h3:rate=20mbit".parse::<Degradation>(), "h3:rate=20 Mbit/s".parse());
        assert_eq!("h3:delay=0.002s".parse::<Degradation>(), "h3:delay=2ms".parse());
    }

    #[test]
    fn what_is_none_is_told() {
        for (text, named) in [
            ("h3", "PLACE:KEY=VALUE"),
            ("h3:rate", "PLACE:KEY=VALUE"),
            (":rate=50%", "PLACE:KEY=VALUE"),
            ("h 3:rate=50%", "PLACE:KEY=VALUE"),
            ("h3:speed=5", "the key rate, delay or loss"),
            ("h3:up.rate=50%", "the key rate, delay or loss"),
            ("h3:rate=0%", "up to 100%"),
            ("h3:rate=150%", "up to 100%"),
            ("h3:rate=50", "a rate"),
            ("h3:rate=NaN%", "a rate"),
            ("h3:delay=2", "1us to 1s"),
            ("h3:delay=2h", "1us to 1s"),
            ("h3:delay=5s", "1us to 1s"),
            ("h3:loss=0%", "0.0001% to 50%"),
            ("h3:loss=60%", "0.0001% to 50%"),
            ("h3:loss=0.01", "0.0001% to 50%"),
        ] {
            let message = text.parse::<Degradation>().expect_err(text);
            assert!(message.contains(named) && message.starts_with("invalid degradation '"), "{text}: {message}");
        }
    }

    #[test]
    fn directions_are_those_of_the_first_end() {
        let half = Quality { rate: Rate::bits_per_second(100_000_000), ..Quality::whole(LINK) };
        let whole = Quality::whole(LINK);
        for (text, sent, received) in [
            ("h3:rate=50%", half, half),
            ("h3:send.rate=50%", half, whole),
            ("h3:receive.rate=50%", whole, half),
            ("h3-leaf0:send.rate=50%", half, whole),
            ("leaf0-h3:send.rate=50%", whole, half),
        ] {
            assert_eq!((port(&[text], "h3", "leaf0"), port(&[text], "leaf0", "h3")), (sent, received), "{text}");
            assert_eq!(port(&[text], "h4", "leaf0"), whole, "{text}");
        }
        let links = [["h3".to_owned(), "leaf0".to_owned()], ["leaf0".to_owned(), "leaf1".to_owned()]];
        let known = |text: &str| text.parse::<Degradation>().unwrap().is_of(&links);
        assert!(["h3", "h3-leaf0", "leaf0-h3", "leaf1-leaf0"].iter().all(|place| known(&format!("{place}:rate=50%"))));
        assert!(["h4", "h3-leaf1", "leaf0", "h3-h3"].iter().all(|place| !known(&format!("{place}:rate=50%"))));
    }

    #[test]
    fn several_of_one_link_add_up() {
        let of = |changes: &[&str]| port(changes, "h3", "leaf0");
        assert_eq!(of(&["h3:rate=50%", "h3:send.rate=50%"]).rate.bits(), 50_000_000);
        assert_eq!(of(&["h3:rate=20mbit", "h3:rate=500mbit"]).rate.bits(), 20_000_000);
        assert_eq!(of(&["h3:delay=2ms", "h3:delay=500us"]).delay_us, 2500);
        assert_eq!(of(&["h3:loss=50%", "h3:loss=50%"]).loss, 750_000);
    }

    proptest! {
        #[test]
        fn any_text_is_one_or_none(text in "\\PC{0,20}|[hl0-9-]{1,6}:(send\\.|)(rate|loss|delay)=[0-9.]{1,8}(%|ms|us|mbit|)") {
            if let Ok(read) = text.parse::<Degradation>() {
                prop_assert_eq!(read.to_string().parse::<Degradation>(), Ok(read));
            }
        }
    }
}
