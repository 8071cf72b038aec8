//! Plots on the page, each with a link that saves its data.

use std::fmt::Write as _;

use super::plot::Plot;
use crate::text::escape;

/// Plots side by side, as many as fit, each with its data.
pub(super) fn gallery(plots: &[Plot]) -> String {
    let mut out = String::from("<div class=\"gallery\">");
    for plot in plots {
        let (id, title) = (&plot.id, escape(&plot.title));
        let _ = writeln!(
            out,
            "<figure id=\"{id}\"><figcaption>{title} <a class=\"data\" download=\"{id}.csv\" href=\"{}\" \
             aria-label=\"CSV data of {title}\">CSV</a></figcaption>{}</figure>",
            data_url(&plot.data.csv()),
            plot.inline()
        );
    }
    out + "</div>\n"
}

/// The text as an address that a page may have in quotes, and that is a file when it is followed.
fn data_url(csv: &str) -> String {
    let mut out = String::from("data:text/csv;charset=utf-8,");
    for byte in csv.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b',' | b'.' | b'-' | b'_' | b':' | b';' | b'/' | b'(' | b')' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_what_the_address_says() {
        assert_eq!(data_url("a b,\"é\"\n1%,#\n"), "data:text/csv;charset=utf-8,a%20b,%22%C3%A9%22%0A1%25,%23%0A");
    }
}
