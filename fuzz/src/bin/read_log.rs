//! Whatever a log holds: each output in it is a result that can be shown, or an error of one line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tailback::output::Format;

fuzz_target!(|bytes: &[u8]| {
    tailback_fuzz::within(64, || {
        let text = String::from_utf8_lossy(bytes);
        let outputs = match tailback::import::gpcnet(&text) {
            Err(error) => return tailback_fuzz::one_line(&error),
            Ok(outputs) => outputs,
        };
        for output in outputs {
            output.warnings().iter().for_each(|warning| tailback_fuzz::one_line(warning));
            match output.file() {
                Err(error) => tailback_fuzz::one_line(&error),
                Ok(file) => {
                    for format in [Format::Table, Format::Gpcnet, Format::Csv] {
                        let _ = format.render(&file, true);
                    }
                    // What was imported is written, and must be read again.
                    let text = serde_json::to_vec(&file).expect("plain data");
                    tailback::result::parse(&text, "x.json").expect("an imported result is one");
                }
            }
        }
    });
});
