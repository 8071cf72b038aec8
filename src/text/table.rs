//! Tables, and their forms: aligned text, HTML, CSV.
//!
//! A column is added with its head and for all rows at once: no row can be of another length than the heads.

use std::fmt::Write as _;

use super::{escape, figure, with_interval};
use crate::stats::Factor;

/// What stands in one column of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing is known: a dash for people.
    Unknown,
    /// A text.
    Text(String),
    /// A name from elsewhere, which CSV has in quotes whatever it is.
    Name(String),
    /// A number: rounded for people, whole in CSV.
    Number {
        /// As people read it.
        shown: String,
        /// As it is.
        value: f64,
    },
}

impl Cell {
    /// A number, shown as `form` has it.
    pub fn number(value: f64, form: impl Fn(f64) -> String) -> Self {
        Cell::Number { shown: form(value), value }
    }

    fn or(&self, unknown: &str) -> String {
        match self {
            Cell::Unknown => unknown.to_owned(),
            Cell::Text(text) | Cell::Name(text) | Cell::Number { shown: text, .. } => text.clone(),
        }
    }

    fn field(&self) -> String {
        match self {
            Cell::Unknown => String::new(),
            Cell::Text(text) => field(text),
            Cell::Name(text) => quoted(text),
            Cell::Number { value, .. } if value.is_finite() => value.to_string(),
            Cell::Number { .. } => String::new(),
        }
    }

    /// As it is on a page; a number that is not told by its text alone, as one with a unit, has its value with it, to sort by.
    fn td(&self) -> String {
        match self {
            Cell::Number { shown, value } if value.is_finite() && shown.parse::<f64>().is_err() => {
                format!("<td data-v=\"{value}\">{}</td>", escape(shown))
            }
            _ => format!("<td>{}</td>", escape(&self.or("–"))),
        }
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::number(value, figure)
    }
}

impl From<Factor> for Cell {
    fn from(of: Factor) -> Self {
        Cell::Number { shown: with_interval(of), value: of.factor }
    }
}

impl<C: Into<Cell>> From<Option<C>> for Cell {
    fn from(of: Option<C>) -> Self {
        of.map_or(Cell::Unknown, Into::into)
    }
}

macro_rules! text_cells {
    ($($type:ty),*) => {$(
        impl From<$type> for Cell {
            fn from(of: $type) -> Self {
                Cell::Text(of.to_string())
            }
        }
    )*};
}

text_cells!(String, &str, &String, usize, u64, u32, tailback_transport::Bytes);

/// Columns of one length under their heads.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<(String, Vec<Cell>)>,
}

/// Rows that columns are made of, and the columns so far.
pub struct Rows<R> {
    rows: Vec<R>,
    table: Table,
}

impl Table {
    /// A table of these rows, without a column yet.
    pub fn of<R>(rows: impl IntoIterator<Item = R>) -> Rows<R> {
        Rows { rows: rows.into_iter().collect(), table: Table::default() }
    }

    /// Whether there are heads and nothing else.
    pub fn is_empty(&self) -> bool {
        self.columns.iter().all(|(_, cells)| cells.is_empty())
    }

    /// Heads and rows as people read them, with `unknown` for what is not known.
    pub fn cells(&self, unknown: &str) -> Vec<Vec<String>> {
        self.lines(|cell| cell.or(unknown))
    }

    /// Heads and rows, each cell as `form` has it.
    fn lines(&self, form: impl Fn(&Cell) -> String) -> Vec<Vec<String>> {
        let rows = self.columns.first().map_or(0, |(_, cells)| cells.len());
        let row = |at: usize| self.columns.iter().map(|(_, cells)| form(&cells[at])).collect();
        let heads = self.columns.iter().map(|(head, _)| head.clone()).collect();
        std::iter::once(heads).chain((0..rows).map(row)).collect()
    }

    /// For a terminal: the first column to the left, the others to the right.
    pub fn text(&self) -> String {
        let lines = self.cells("-");
        let length = |cell: &String| cell.chars().count();
        let width = |column: usize| lines.iter().map(|line| length(&line[column])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut out = String::new();
        for cells in &lines {
            let mut line = String::from(" ");
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width - length(cell));
                line += &if column == 0 { format!(" {cell}{pad}") } else { format!("  {pad}{cell}") };
            }
            out += line.trim_end();
            out.push('\n');
        }
        out
    }

    /// For a page; nothing without rows. The first column names its rows. Wide tables scroll inside themselves, by keyboard
    /// too; the page's script sorts them.
    pub fn html(&self, caption: &str) -> String {
        if self.is_empty() {
            return String::new();
        }
        let caption = escape(caption);
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table><caption><span>{caption}</span></caption><thead><tr>"
        );
        for (head, _) in &self.columns {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
        }
        out += "</tr></thead><tbody>";
        let rows = self.columns.first().map_or(0, |(_, cells)| cells.len());
        for row in 0..rows {
            for (column, (_, cells)) in self.columns.iter().enumerate() {
                let _ = match column {
                    0 => write!(out, "<tr><th scope=\"row\">{}</th>", escape(&cells[row].or("–"))),
                    _ => write!(out, "{}", cells[row].td()),
                };
            }
            out += "</tr>\n";
        }
        out + "</tbody></table></div>\n"
    }

    /// For programs: heads are keys.
    pub fn csv(&self) -> String {
        self.lines(Cell::field).iter().map(|line| line.join(",") + "\n").collect()
    }
}

impl<R> Rows<R> {
    /// The same with a column more, the last.
    #[must_use]
    pub fn column<C: Into<Cell>>(self, head: impl Into<String>, cell: impl Fn(&R) -> C) -> Self {
        self.with(head.into(), &|row| cell(row).into())
    }

    /// Compiled for each kind of row, not for each of hundreds of columns.
    fn with(mut self, head: String, cell: &dyn Fn(&R) -> Cell) -> Self {
        self.table.columns.push((head, self.rows.iter().map(cell).collect()));
        self
    }

    /// The same, where the column is wanted.
    #[must_use]
    pub fn column_if<C: Into<Cell>>(self, wanted: bool, head: impl Into<String>, cell: impl Fn(&R) -> C) -> Self {
        if wanted { self.column(head, cell) } else { self }
    }

    /// The same with the columns that each of `these` adds.
    #[must_use]
    pub fn columns<T>(self, these: impl IntoIterator<Item = T>, add: impl FnMut(Self, T) -> Self) -> Self {
        these.into_iter().fold(self, add)
    }

    /// The table.
    pub fn done(self) -> Table {
        self.table
    }
}

/// A table for a terminal under its title and above an empty line; nothing without rows.
pub fn section(title: &str, table: &Table) -> String {
    if table.is_empty() { String::new() } else { format!("{title}\n{}\n", table.text()) }
}

/// A field that may hold commas and quotes, or what a spreadsheet would take for a formula.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    format!("\"{}{}\"", if formula { "'" } else { "" }, text.replace('"', "\"\""))
}

/// The same, plain where it is plain.
fn field(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " ._:;/()%-+".contains(c);
    let formula = text.starts_with(['+', '-']);
    if text.chars().all(plain) && !formula { text.to_owned() } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    #[test]
    fn one_list_of_columns_has_three_forms() {
        let interval = Some(Interval { low: 1.0, high: 2.0 });
        let rows = [
            ("a<b", Some(1234.5678), Factor { factor: 1.5, interval }),
            ("c,d", None, Factor { factor: 2.0, interval: None }),
        ];
        let table = Table::of(rows)
            .column("name", |row| row.0)
            .column("figure", |row| row.1)
            .column_if(false, "not wanted", |row| row.0)
            .columns([1, 2], |table, times| {
                table.column(format!("{times} times"), move |row| Some(row.2).filter(|_| times == 1))
            })
            .done();
        assert_eq!(
            table.text(),
            "  name  figure             1 times  2 times\n  a<b     1235  1.50x [1.00, 2.00]        -\n  c,d        -               2.00x        -\n"
        );
        assert_eq!(table.csv(), "name,figure,1 times,2 times\n\"a<b\",1234.5678,1.5,\n\"c,d\",,2,\n");
        assert_eq!(Table::of([f64::NAN]).column("no number", |of| *of).done().csv(), "no number\n\n");
        let html = table.html("a & b");
        assert!(
            html.contains("aria-label=\"a &amp; b\"") && html.contains("<th scope=\"col\">2 times</th></tr></thead>"),
            "{html}"
        );
        assert!(
            html.contains("<tr><th scope=\"row\">c,d</th><td>–</td><td data-v=\"2\">2.00x</td><td>–</td></tr>"),
            "{html}"
        );
        let none = Table::of([0; 0]).column("head", |_| "").done();
        assert_eq!((none.is_empty(), none.html("").as_str(), none.text().as_str()), (true, "", "  head\n"));
    }

    #[test]
    fn foreign_text_is_one_field_and_no_formula() {
        assert_eq!((field("tcp"), field("MiB/s/rank"), field("")), ("tcp".into(), "MiB/s/rank".into(), String::new()));
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("say \"x\"\nplease"), "\"say \"\"x\"\"\nplease\"");
        assert_eq!((field("=1+1"), field("-x")), ("\"'=1+1\"".into(), "\"'-x\"".into()));
    }
}
