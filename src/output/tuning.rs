//! Settings that took turns: which is best, their ranking by each test, and every pair of them.

use super::summary;
use crate::analysis::tuning::{Choice, choice};
use crate::result::{Answer, RankedSetting, ResultFile, Run, TestRanking, TuningRecord};
use crate::stats::RankedPair;
use crate::text::{Table, rate, within, wrap};

/// The first screen.
pub(super) fn render(file: &ResultFile, record: &TuningRecord, columns: usize) -> String {
    let mut out = wrap(&verdict(file, record), columns);
    record.ranking.iter().for_each(|test| out += &summary::unindented(&ranking(file, test)));
    let why =
        record.ranking.iter().filter_map(|of| Some(format!("{} is not ranked: {}", of.kernel, of.why_not.as_ref()?)));
    let told = why.chain([loads(file), PLACES.to_owned(), put_back(record), summary::extent(file), TERMS.to_owned()]);
    told.for_each(|line| out += &wrap(&line, columns));
    out
}

pub(crate) const PLACES: &str = "Before each setting its place: 1, and 1 more for each setting with which load adds less time, \
                                 significantly at 5% over all pairs and tests. Equal places cannot be told apart";
const TERMS: &str = "Pairs with intervals: -v. Terms: tailback help terms";

/// What stands over the table of pairs.
pub(crate) const PAIRS_TITLE: &str =
    "Settings, pair by pair: time that load adds, with the interval of the corrected test";

/// Every pair with its interval.
pub(crate) fn pairs(record: &TuningRecord) -> Table {
    let rows = record.ranking.iter().flat_map(|test| test.pairs.iter().map(move |pair| (test, pair)));
    Table::of(rows)
        .column("test", |(test, _)| &test.title)
        .column("setting", |(test, pair)| test.settings[pair.second].setting.clone())
        .column("beside", |(test, pair)| test.settings[pair.first].setting.clone())
        .column("adds more by", |(test, pair)| difference(test, pair))
        .column("p, corrected", |(_, pair)| format!("{:.3}", pair.p_value))
        .column("", |(_, pair)| match pair.order() {
            Some((less, _)) if less == pair.second => "better *",
            Some(_) => "worse *",
            None => "not told apart",
        })
        .done()
}

/// The first line.
pub(crate) fn verdict(file: &ResultFile, record: &TuningRecord) -> String {
    let cut_short = summary::cut_short(file);
    match choice(record) {
        Choice::Best(best) => format!("BEST SETTING: {best}{cut_short}: {}", better(record, best).join("; ")),
        Choice::Mixed => format!("NO BEST SETTING{cut_short}: {}", by_test(record).join("; ")),
        Choice::Alike => {
            let names = record.ranking.first().map(names).unwrap_or_default();
            let ranked = record.ranking.iter().filter(|test| test.why_not.is_none());
            let tests: Vec<String> = ranked.map(|test| test.kernel.to_string()).collect();
            let open = widest(record).map(|of| format!("; {of}")).unwrap_or_default();
            format!("CANNOT BE TOLD APART{cut_short} by {}: {}{open}", tests.join(", "), names.join(", "))
        }
        Choice::CannotSay(why) => format!("CANNOT SAY{cut_short}: {why}"),
    }
}

fn names(test: &TestRanking) -> Vec<&str> {
    test.settings.iter().map(|of| of.setting.as_str()).collect()
}

/// By how much the best is better than each other, by the test that tells it most clearly.
fn better(record: &TuningRecord, best: &str) -> Vec<String> {
    let told = |test: &TestRanking, pair: &RankedPair| {
        let (less, greater) = pair.order()?;
        let names = names(test);
        (names[less] == best).then(|| (names[greater].to_owned(), pair.p_value, than(test, pair)))
    };
    let all = record.ranking.iter().flat_map(|test| test.pairs.iter().filter_map(move |pair| told(test, pair)));
    let mut clearest: Vec<(String, f64, String)> = Vec::new();
    for (other, p_value, text) in all {
        match clearest.iter_mut().find(|(known, ..)| *known == other) {
            Some(known) if p_value < known.1 => *known = (other, p_value, text),
            Some(_) => {}
            None => clearest.push((other, p_value, text)),
        }
    }
    clearest.into_iter().map(|(.., text)| text).collect()
}

/// By how much load adds less with one than with the other.
fn than(test: &TestRanking, pair: &RankedPair) -> String {
    let (less, greater) = pair.order().unwrap_or((pair.first, pair.second));
    let sign = if less == pair.first { 1.0 } else { -1.0 };
    let ends = [sign * pair.interval.low, sign * pair.interval.high];
    let time = |value: f64| summary::added_time(test.kernel, value);
    format!(
        "load adds {} [{}, {}] less to {} than with {}",
        time(sign * pair.difference),
        time(ends[0].min(ends[1])),
        time(ends[0].max(ends[1])),
        test.kernel,
        test.settings[greater].setting
    )
}

/// Which setting is better than which, by each test.
fn by_test(record: &TuningRecord) -> Vec<String> {
    let order = |test: &TestRanking| {
        let (names, orders) = (names(test), test.pairs.iter().filter_map(RankedPair::order).collect::<Vec<_>>());
        let before = |less: usize| {
            let others: Vec<&str> = orders.iter().filter(|of| of.0 == less).map(|of| names[of.1]).collect();
            (!others.is_empty()).then(|| format!("{} before {}", names[less], others.join(" and ")))
        };
        let all: Vec<String> = (0..names.len()).filter_map(before).collect();
        let all = if all.is_empty() { "cannot be told apart".to_owned() } else { all.join(", ") };
        format!("{}: {all}", test.kernel)
    };
    record.ranking.iter().filter(|test| test.why_not.is_none()).map(order).collect()
}

/// How much settings that cannot be told apart may still differ, at most.
fn widest(record: &TuningRecord) -> Option<String> {
    let reach = |pair: &RankedPair| pair.interval.low.abs().max(pair.interval.high.abs());
    let each = record.ranking.iter().filter_map(|test| {
        let most = test.pairs.iter().map(reach).max_by(f64::total_cmp)?;
        Some(format!("{} {}", test.kernel, summary::added_time(test.kernel, most)))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("they differ by at most {}", each.join(", ")))
}

fn difference(test: &TestRanking, pair: &RankedPair) -> String {
    within(pair.difference, Some(pair.interval), |value| summary::added_time(test.kernel, value))
}

/// The settings by one test, the best first, each with its place.
pub(crate) fn ranking(file: &ResultFile, test: &TestRanking) -> Table {
    let run = |setting: &str| file.runs.iter().find(|run| run.setting.as_deref() == Some(setting));
    let rows = test.settings.iter().filter_map(|of| Some((of, run(&of.setting)?.answer(test.kernel)?)));
    let mut rows: Vec<(&RankedSetting, Answer<'_>)> = rows.collect();
    let added = |answer: &Answer<'_>| answer.added.map_or(f64::INFINITY, |of| of.value);
    rows.sort_by(|(one, mine), (other, theirs)| {
        one.place.cmp(&other.place).then(added(mine).total_cmp(&added(theirs)))
    });
    let title = rows.first().map(|(_, answer)| answer.test.title.clone()).unwrap_or_default();
    let place = |of: &RankedSetting| of.place.map_or_else(|| "-".to_owned(), |place| place.to_string());
    let table = Table::of(rows).column(title, |(of, _)| format!("{} {}", place(of), of.setting));
    summary::columns(table, |(_, answer)| answer).done()
}

/// What congestors delivered with each setting: one that holds load back spares the canaries, too.
fn loads(file: &ResultFile) -> String {
    let of_run = |run: &Run| {
        let each: Vec<f64> = run
            .tests
            .iter()
            .filter(|test| !test.load.is_empty())
            .map(|test| test.load.iter().map(|load| load.delivered_mib_per_s).sum())
            .collect();
        let mean = each.iter().sum::<f64>() / each.len().max(1) as f64;
        Some(format!("{} with {}", rate(mean), run.setting.as_ref()?))
    };
    let loads: Vec<String> = file.runs.iter().filter_map(of_run).collect();
    format!("Load delivered: {}", loads.join(", "))
}

/// What became of the former setting.
fn put_back(record: &TuningRecord) -> String {
    let former: Vec<&str> = record.former.iter().map(|of| of.setting.as_str()).collect();
    let former = former.join(", ");
    match record.put_back {
        Some(true) => format!("Put back: {former}"),
        Some(false) => {
            format!("NOT PUT BACK everywhere: {former} was in force before (tuning.former of the result has the nodes)")
        }
        None => format!("Put back: not known; {former} was in force before"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tuning::rank;
    use crate::assemble::synthetic;
    use crate::kernel::Canary;
    use crate::result::FormerSetting;

    /// A file with a run for each setting whose figures are so many times worse under load: of lat, and of the others.
    fn shown(settings: &[(&str, f64, f64)]) -> String {
        let mut file = synthetic::file("tcp", None, 1.0);
        let run = |(setting, lat, others): &(&str, f64, f64)| {
            let impact = |kernel: Canary| if kernel == Canary::Lat { *lat } else { *others };
            let run = synthetic::file_of("tcp", None, impact).runs.remove(0);
            Run { setting: Some((*setting).to_owned()), ..run }
        };
        file.runs = settings.iter().map(run).collect();
        let former = vec![FormerSetting { setting: "a".into(), nodes: vec!["h0".into()] }];
        let record =
            TuningRecord { ranking: rank(&file.runs), former, put_back: Some(true), ..TuningRecord::default() };
        render(&file, &record, 80)
    }

    #[test]
    fn the_best_setting_is_named_with_what_it_spares() {
        let text = shown(&[("a", 5.0, 4.0), ("b", 2.0, 4.0), ("c", 9.0, 4.0)]);
        assert!(text.starts_with("BEST SETTING: b: load adds "), "{text}");
        let first = text.replace("\n  ", " ");
        assert!(
            first.contains("less to lat than with a; load adds ") && first.contains("less to lat than with c"),
            "{text}"
        );
        let places: Vec<&str> = text.lines().filter(|line| line.starts_with(['1', '2', '3'])).take(3).collect();
        assert!(["1 b ", "2 a ", "3 c "].iter().zip(&places).all(|(start, line)| line.starts_with(start)), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80) && text.contains("\nPut back: a\n"), "{text}");
    }

    #[test]
    fn what_is_not_shown_is_not_said() {
        let alike = shown(&[("a", 4.0, 4.0), ("b", 4.0, 4.0)]).replace("\n  ", " ");
        let said = "CANNOT BE TOLD APART by lat, bw-sync, allreduce: a, b; they differ by at most lat 0";
        assert!(alike.starts_with(said), "{alike}");
        let mixed = shown(&[("a", 2.0, 9.0), ("b", 9.0, 2.0), ("c", 9.0, 2.0)]).replace("\n  ", " ");
        let said = "NO BEST SETTING: lat: a before b and c; bw-sync: b before a, c before a; allreduce: b before a, c before a";
        assert!(mixed.starts_with(said), "{mixed}");
    }
}
