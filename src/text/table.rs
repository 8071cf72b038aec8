//! Aligned columns: the first to the left, the others to the right.

/// Rows under a header, each cell a text.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// No rows yet.
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        Table { rows: vec![header.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether there is a header and nothing else.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The text, a line a row.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::from(" ");
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - cell.chars().count());
                line += &if column == 0 { format!(" {cell}{pad}") } else { format!("  {pad}{cell}") };
            }
            out += line.trim_end();
            out.push('\n');
        }
        out
    }
}
