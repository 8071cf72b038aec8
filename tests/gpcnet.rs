//! `--format gpcnet`: the letter of GPCNeT 1.3's tables, checked line by line against its printf formats.

use crate::common::succeed;

const LEGEND: [&str; 4] = [
    "   RR = random ring communication pattern",
    "   Lat = latency",
    "   BW = bandwidth",
    "   BW+Sync = bandwidth with barrier",
];
const LOAD_TEST: [&str; 3] = ["RR Two-sided Lat (8 B)", "RR Two-sided BW+Sync (131072 B)", "Multiple Allreduce (8 B)"];

/// A table's lines, taken one by one and compared with what printf would have made of the same values.
struct Reader<'a>(std::iter::Peekable<std::str::Lines<'a>>);

impl<'a> Reader<'a> {
    fn expect(&mut self, line: &str) {
        assert_eq!(self.0.next(), Some(line));
    }

    fn head(&mut self, title: &str, columns: &[&str]) {
        let width = 33 + 15 * columns.len();
        self.expect(&format!("+{}+", "-".repeat(width)));
        let shown = self.0.next().expect("a title");
        assert_eq!((shown.len(), shown.trim_matches(['|', ' '])), (width + 2, title));
        let inner = &shown[1..=width];
        let (left, right) = (inner.len() - inner.trim_start().len(), inner.len() - inner.trim_end().len());
        assert!(right == left || right == left + 1, "'{shown}' is centred");
        self.rule(columns.len());
        let names: String = columns.iter().map(|name| format!("| {name:>12} ")).collect();
        self.expect(&format!("| {:>31} {names}|", "Name"));
        self.rule(columns.len());
    }

    fn rule(&mut self, columns: usize) {
        self.expect(&format!("+{}{}+", "-".repeat(33), format!("+{}", "-".repeat(14)).repeat(columns)));
    }

    /// `| %31.31s | %12.1f ... | %12.12s |`
    fn row(&mut self, name: &str, numbers: usize, unit: &str) -> Vec<f64> {
        let line = self.0.next().expect("a row");
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), numbers + 2, "{line}");
        let values: Vec<f64> = cells[1..=numbers].iter().map(|cell| cell.parse().expect(line)).collect();
        let figures: String = values.iter().map(|value| format!("| {value:>12.1} ")).collect();
        assert_eq!(line, format!("| {name:>31.31} {figures}| {unit:>12.12} |"));
        self.rule(numbers + 1);
        values
    }

    fn key_results(&mut self, rows: &[&str]) {
        const RULE: &str = "+---------------------------------+----------------------+---------------------+";
        self.expect(&format!("+{}+", "-".repeat(78)));
        self.expect("|          Network Tests running with Congestion Tests - Key Results           |");
        self.expect("+---------------------------------+--------------------------------------------+");
        self.expect("|                            Name |                   Congestion Impact Factor |");
        self.expect(RULE);
        self.expect("|                                 |                  Avg |                 99% |");
        self.expect(RULE);
        for name in rows {
            let line = self.0.next().expect("a row");
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let value = |at: usize| cells[at].strip_suffix('X').and_then(|n| n.parse::<f64>().ok()).expect(line);
            assert_eq!(line, format!("| {name:>31.31} | {:>19.1}X | {:>18.1}X |", value(1), value(2)));
            self.expect(RULE);
        }
    }
}

fn unit_of(name: &str) -> &'static str {
    if name.contains("Lat") || name.contains("Allreduce") { "usec" } else { "MiB/s/rank" }
}

fn load_test_heading(reader: &mut Reader<'_>) {
    reader.expect("NetworkLoad Tests v1.3");
    reader.expect("  Test with 10 MPI ranks (10 nodes)");
    reader.expect("  2 nodes running Network Tests");
    reader.expect("  8 nodes running Congestion Tests (min 2 nodes per congestor)");
    reader.expect("");
    reader.expect("  Legend");
    LEGEND.iter().for_each(|line| reader.expect(line));
}

#[test]
fn the_load_test_prints_three_tables_of_80_columns() {
    let text = succeed("run --budget 150ms --format gpcnet").stdout;
    let mut reader = Reader(text.lines().peekable());
    load_test_heading(&mut reader);
    for title in ["Isolated Network Tests", "Network Tests running with Congestion Tests"] {
        reader.head(title, &["Avg", "99%", "Units"]);
        LOAD_TEST.iter().for_each(|name| drop(reader.row(name, 2, unit_of(name))));
        reader.expect("");
    }
    reader.key_results(&LOAD_TEST);
    assert_eq!(reader.0.next(), None, "nothing follows the tables");
    let table = text.lines().filter(|line| line.starts_with(['|', '+']));
    assert!(table.clone().count() > 20 && table.clone().all(|line| line.len() == 80));
}

#[test]
fn verbose_tables_have_140_columns_and_congestors() {
    const COLUMNS: [&str; 7] = ["Min", "Max", "Avg", "Avg(Worst)", "99%", "99.9%", "Units"];
    const CONGESTORS: [&str; 4] =
        ["Alltoall (4096 B)", "Two-sided Incast (4096 B)", "Put Incast (4096 B)", "Get Bcast (4096 B)"];
    let text = succeed("run --budget 150ms --format gpcnet --verbose").stdout;
    let mut reader = Reader(text.lines().peekable());
    load_test_heading(&mut reader);
    reader.head("Isolated Network Tests", &COLUMNS);
    for name in LOAD_TEST {
        let values = reader.row(name, 6, unit_of(name));
        let (min, max) = (values[0], values[1]);
        assert!(min <= max && values[2..].iter().all(|v| (min..=max).contains(v) || name.contains("BW")), "{values:?}");
    }
    reader.expect("");
    reader.head("Isolated Congestion Tests", &COLUMNS);
    CONGESTORS.iter().for_each(|name| drop(reader.row(name, 6, "MiB/s/rank")));
    reader.expect("");
    for canary in LOAD_TEST {
        let short = canary.split(" (").next().unwrap();
        reader.head(&format!("Network Tests running with Congestion Tests ({short:>20.20} Network Test)"), &COLUMNS);
        reader.row(canary, 6, unit_of(canary));
        while reader.0.peek().is_some_and(|line| !line.is_empty()) {
            let name = reader.0.peek().unwrap()[2..33].trim().to_owned();
            assert!(CONGESTORS.contains(&name.as_str()), "{name}");
            reader.row(&name, 6, "MiB/s/rank");
        }
        reader.expect("");
    }
    reader.key_results(&LOAD_TEST);
    assert_eq!(reader.0.next(), None, "nothing follows the tables");
}

#[test]
fn the_network_test_prints_one_table_of_eight_rows() {
    let text = succeed("network --budget 150ms -n 4 --format gpcnet").stdout;
    let mut reader = Reader(text.lines().peekable());
    reader.expect("Network Tests v1.3");
    reader.expect("  Test with 4 MPI ranks (4 nodes)");
    reader.expect("");
    reader.expect("  Legend");
    reader.expect(LEGEND[0]);
    reader.expect("   Nat = natural ring communication pattern");
    LEGEND[1..].iter().for_each(|line| reader.expect(line));
    reader.head("Isolated Network Tests", &["Avg", "99%", "Units"]);
    for name in [
        "RR Two-sided Lat (8 B)",
        "RR Get Lat (8 B)",
        "RR Two-sided BW (131072 B)",
        "RR Put BW (131072 B)",
        "RR Two-sided BW+Sync (131072 B)",
        "Nat Two-sided BW (131072 B)",
        "Multiple Allreduce (8 B)",
        "Multiple Alltoall (4096 B)",
    ] {
        reader.row(name, 2, unit_of(name));
    }
    assert_eq!(reader.0.next(), None, "nothing follows the table");
}

/// Rings that a loaded test does not see would be no part of its average, and of the isolated one they are.
#[test]
fn gpcnets_preset_visits_every_ring_in_both_states_whatever_its_budget() {
    let counts = "--set lat.iterations=40 --set lat.warmup=40";
    let line = format!("run -n 8 --no-lab --preset gpcnet --canaries lat --congestors a2a {counts} --budget 50ms -q");
    let result = succeed(&format!("{line} --format json")).json();
    let tests = result["runs"][0]["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 2);
    for test in tests {
        assert!(test["summary"]["passes"].as_u64().unwrap() >= 30, "{test}");
    }
}
