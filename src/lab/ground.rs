//! Whether what ranks stand on is still there: a lab's processes hold its namespaces, and a switch goes with its own.
//!
//! Ranks on a host keep its namespace alive, and one whose switch is gone only hears nothing any more. Whoever started
//! them can name the loss at once.

use super::process::ProcessId;

/// The processes of a lab that is up.
#[derive(Clone, Debug)]
pub struct Ground {
    lab: String,
    /// What each holds: the switches, or a host.
    holders: Vec<(String, ProcessId)>,
}

impl Ground {
    pub(super) fn new(lab: &str, holders: Vec<(String, ProcessId)>) -> Self {
        Ground { lab: lab.to_owned(), holders }
    }

    /// Looks whether all of it is there.
    ///
    /// # Errors
    /// What was lost, in one line.
    pub fn check(&self) -> Result<(), String> {
        let lost: Vec<&str> =
            self.holders.iter().filter(|(_, process)| !process.is_alive()).map(|(name, _)| name.as_str()).collect();
        match lost.as_slice() {
            [] => Ok(()),
            all if all.len() == self.holders.len() => {
                Err(format!("lab {} was taken down while it was in use", self.lab))
            }
            [one] => Err(format!("{one} of lab {} was lost: the process that holds it is gone", self.lab)),
            [first, rest @ ..] => {
                let (lab, rest) = (&self.lab, rest.join(", "));
                Err(format!("{first} of lab {lab} was lost, and with it {rest}: the processes that hold them are gone"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_named() {
        let here = ProcessId::of(std::process::id()).expect("this process runs");
        let gone = ProcessId { started: here.started.wrapping_sub(1), ..here };
        let check = |switch, first, second| {
            let names = ["the switch", "host h0", "host h1"];
            let holders = names.into_iter().zip([switch, first, second]).map(|(name, id)| (name.to_owned(), id));
            Ground::new("x", holders.collect()).check().err()
        };
        assert_eq!(check(here, here, here), None);
        let one = "host h1 of lab x was lost: the process that holds it is gone";
        assert_eq!(check(here, here, gone).as_deref(), Some(one));
        let two = "the switch of lab x was lost, and with it host h0: the processes that hold them are gone";
        assert_eq!(check(gone, gone, here).as_deref(), Some(two));
        assert_eq!(check(gone, gone, gone).as_deref(), Some("lab x was taken down while it was in use"));
    }
}
