//! The forms in which kernels show counters: a number a file, and the tables of `/proc/net`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Every file of a folder that holds a number; of `number@time`, the number. What cannot be read or is none is left out: some
/// drivers answer "N/A", and files that reset counters give nothing.
pub(super) fn numbers(folder: &Path) -> BTreeMap<String, f64> {
    let of = |name: String| {
        let text = word(&folder.join(&name))?;
        let number = text.split_once('@').map_or(text.as_str(), |(number, _)| number);
        Some((name, number.parse::<u64>().ok()? as f64))
    };
    names(folder).into_iter().filter_map(of).collect()
}

/// The names in a folder, in order; none where there is no such folder.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// What a small file holds, without the line's end.
pub(super) fn word(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What TCP counts in this network namespace.
pub(super) fn tcp(proc: &Path) -> BTreeMap<String, f64> {
    /// Settings and the state of the moment, which stand among the counters.
    const NO_COUNTERS: [&str; 5] = ["RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn", "CurrEstab"];
    let mut counters = BTreeMap::new();
    for (file, prefix) in [("net/snmp", "Tcp:"), ("net/netstat", "TcpExt:")] {
        let text = fs::read_to_string(proc.join(file)).unwrap_or_default();
        counters.extend(table(&text, prefix));
    }
    counters.retain(|name, _| !NO_COUNTERS.contains(&name.as_str()));
    counters
}

/// Two lines with the same first word: names, and their values.
fn table(text: &str, prefix: &str) -> BTreeMap<String, f64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse::<u64>().ok()? as f64))).collect()
}
