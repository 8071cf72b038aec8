//! Whatever a histogram inside a result holds. The input is the histogram before it is compressed and put into the result as
//! text: mutations of a result file would end at a wrong letter or checksum.

#![no_main]

use std::io::Write;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use libfuzzer_sys::fuzz_target;
use tailback::analysis::compare::{compare, render, sides};
use tailback::report::Report;
use tailback::result::{EncodedHistogram, ResultFile};
use tailback::stats::Statistic;

/// In front of a compressed histogram: HdrHistogram's own number for it.
const COMPRESSED: u32 = 0x1c84_9314;

static WHOLE: LazyLock<ResultFile> =
    LazyLock::new(|| tailback::result::parse(include_bytes!("../../result.json"), "result.json").expect("a result"));

fuzz_target!(|bytes: &[u8]| {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).expect("memory");
    let packed = packed.finish().expect("memory");
    let head = [COMPRESSED.to_be_bytes(), (packed.len() as u32).to_be_bytes()].concat();
    // Plain ones have their own number, and are read as well.
    for encoded in [STANDARD.encode([head, packed].concat()), STANDARD.encode(bytes)] {
        tailback_fuzz::within(128, || show(encoded));
    }
});

fn show(encoded: String) {
    let mut file = WHOLE.clone();
    let test = &mut file.runs[0].tests[0];
    test.histogram = Some(EncodedHistogram(encoded.clone()));
    for batch in &mut test.batches {
        batch.histogram = EncodedHistogram(encoded.clone());
    }
    let text = serde_json::to_vec(&file).expect("plain data");
    let file = match tailback::result::parse(&text, "x.json") {
        Ok(file) => file,
        Err(error) => return tailback_fuzz::one_line(&error),
    };
    let files = vec![("a.json".into(), file.clone()), ("b.json".into(), file)];
    let _ = render(&compare(&sides(&files), &[Statistic::P99]));
    let page = Report::new(&files, false).html();
    assert!(!page.contains("NaN"), "a plot holds no number");
}
