//! Whatever an output of HPC Challenge holds: it is a result that can be shown and read again, or an error of one line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tailback::output::Format;
use tailback::report::Report;

fuzz_target!(|bytes: &[u8]| {
    tailback_fuzz::within(64, || match tailback::import::hpcc(&String::from_utf8_lossy(bytes)) {
        Err(error) => tailback_fuzz::one_line(&error),
        Ok(file) => {
            for format in [Format::Table, Format::Csv] {
                let _ = format.render(&file, true);
            }
            let text = serde_json::to_vec(&file).expect("plain data");
            let file = tailback::result::parse(&text, "x.json").expect("an imported result is one");
            let page = Report::new(&[("a.json".into(), file)], false).html();
            assert!(!page.contains("NaN"), "a plot holds no number");
        }
    });
});
