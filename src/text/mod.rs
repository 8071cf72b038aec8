//! What every view is written with: numbers at the width a reader needs, tables in their forms, text inside markup.

mod markup;
mod number;
mod table;
mod terminal;

pub use markup::escape;
pub use number::{factor, figure, percent, with_interval, within};
pub use table::{Cell, Rows, Table, section};
pub use terminal::printable;
