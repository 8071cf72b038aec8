//! Whatever the bytes are: the reader gives a result or an error of one line, and what it gives can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tailback::analysis::compare::{compare, render, sides};
use tailback::output::Format;
use tailback::report::Report;
use tailback::stats::Statistic;

/// Larger inputs are only read: their views take long enough to keep the fuzzer from others.
const MOST_SHOWN: usize = 20_000;

fuzz_target!(|bytes: &[u8]| tailback_fuzz::within(256, || show(bytes)));

fn show(bytes: &[u8]) {
    let file = match tailback::result::parse(bytes, "x.json") {
        Ok(file) => file,
        Err(error) => return tailback_fuzz::one_line(&error),
    };
    if bytes.len() > MOST_SHOWN {
        return;
    }
    for format in [Format::Table, Format::Gpcnet, Format::Csv, Format::Json] {
        let _ = format.render(&file, true);
    }
    let files = vec![("a.json".into(), file.clone()), ("b.json".into(), file)];
    let sides = sides(&files);
    if sides.len() > 1 {
        let _ = render(&compare(&sides, &[Statistic::P99]));
    }
    if !sides.is_empty() {
        let page = Report::new(&files, false).html();
        assert!(!page.contains("NaN"), "a plot holds no number");
    }
}
