//! What a host's own devices count: InfiniBand and RoCE ports, network interfaces, cxi cards, TCP, and a command of the user's.
//!
//! A reader is told the devices of its host's ranks and gives readings; the difference of two is what happened between them.
//! Nothing here knows of phases, ranks or results. Whatever a device does not show is left out, never guessed; only the
//! user's command can fail.

mod command;
mod device;
mod reader;
mod reading;

pub use command::{MOST_TIME, UserCommand};
pub use device::{Device, Roots};
pub use reader::Reader;
pub use reading::{Counted, Difference, Reading, is_telling};
