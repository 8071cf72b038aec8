//! Pieces of a page: sections and figures.

use std::fmt::Write as _;

use super::plot::Plot;
use crate::text::escape;

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
