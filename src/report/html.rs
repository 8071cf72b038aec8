//! Pieces of a page: tables and figures.

use std::fmt::Write as _;

use super::plot::Plot;
use crate::text::escape;

/// A table whose first column names its rows. Wide ones scroll inside themselves, by keyboard too.
pub(super) struct HtmlTable {
    caption: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl HtmlTable {
    pub(super) fn new<S: Into<String>>(caption: &str, header: impl IntoIterator<Item = S>) -> Self {
        HtmlTable {
            caption: caption.to_owned(),
            header: header.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub(super) fn render(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let caption = escape(&self.caption);
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table><caption><span>{caption}</span></caption><thead><tr>"
        );
        for cell in &self.header {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(cell));
        }
        out += "</tr></thead><tbody>";
        for row in &self.rows {
            out += "<tr>";
            for (at, cell) in row.iter().enumerate() {
                let text = escape(cell);
                let _ =
                    if at == 0 { write!(out, "<th scope=\"row\">{text}</th>") } else { write!(out, "<td>{text}</td>") };
            }
            out += "</tr>\n";
        }
        out + "</tbody></table></div>\n"
    }
}

/// Plots side by side, as many as fit.
pub(super) fn gallery(plots: &[Plot]) -> String {
    let mut out = String::from("<div class=\"gallery\">");
    for plot in plots {
        let _ = writeln!(
            out,
            "<figure id=\"{}\"><figcaption>{}</figcaption>{}</figure>",
            plot.id,
            escape(&plot.title),
            plot.inline()
        );
    }
    out + "</div>\n"
}

/// A section with its heading; nothing when there is nothing in it.
pub(super) fn section(id: &str, title: &str, lead: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    let lead = if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{lead}</p>\n") };
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{title}</h2>\n{lead}{content}</section>\n"
    )
}
