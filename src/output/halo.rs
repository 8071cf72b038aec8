//! What halo exchanges take by the models of a max-rate study (the paper's section 3.1).

use std::fmt::Write as _;

use tailback_transport::Bytes;

use crate::models::maxrate::Halo;
use crate::result::{FitResult, MaxRateResult};
use crate::text::{Table, figure};

/// A table for every exchange: its time by each model of the regime that its messages are in.
pub fn halos(result: &MaxRateResult, halos: &[Halo]) -> Result<String, String> {
    halos.iter().map(|halo| table(result, halo)).collect()
}

fn table(result: &MaxRateResult, halo: &Halo) -> Result<String, String> {
    let nothing = || "the study has no fits: measure more sizes".to_owned();
    let (most, largest) = (*result.pairs().last().ok_or_else(nothing)?, *result.sizes().last().ok_or_else(nothing)?);
    let ranks = halo.ranks.unwrap_or(most);
    let beyond = result.regimes.last();
    let regime =
        result.regimes.iter().find(|regime| halo.bytes <= regime.largest_bytes).or(beyond).ok_or_else(nothing)?;
    let (size, who) = (Bytes(halo.bytes as u64), if ranks == 1 { "rank" } else { "ranks" });
    let mut out = format!("Halo exchange: {} messages of {size} from each of {ranks} {who} of a node\n", halo.messages);
    let mut table = Table::new(["model", "time us", "MB/s of a rank", "over postal, 1 pair"]);
    let postal = regime.postal_of_one_pair.as_ref();
    let seconds = |fit: &FitResult| halo.seconds(fit.model, &fit.values(), ranks);
    for (name, fit) in regime.shown(most) {
        let Some(fit) = fit else {
            table.row([name.as_str(), "not identifiable from the study's data"]);
            continue;
        };
        let seconds = seconds(fit);
        if !(seconds.is_finite() && seconds > 0.0) {
            // A rate of further pairs below zero leaves so many ranks none.
            table.row([name.as_str(), "no rate is left by this model"]);
            continue;
        }
        let over =
            postal.map_or_else(|| "-".into(), |of| figure(seconds / halo.seconds(of.model, &of.values(), ranks)));
        table.row([name, figure(seconds * 1e6), figure(halo.bytes_of_a_rank() / seconds * 1e-6), over]);
    }
    out += &table.render();
    if let Some(best) = regime.best_fit().filter(|best| seconds(best) > 0.0) {
        let _ =
            writeln!(out, "  The study's data speak for {}: {} us.", best.model.name(), figure(seconds(best) * 1e6));
    }
    for (what, asked, measured) in [("ranks", ranks, most), ("bytes", halo.bytes, largest)] {
        if asked > measured {
            let _ = writeln!(out, "  Note: beyond what was measured, up to {measured} {what}.");
        }
    }
    out.push('\n');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::how_many::tests::study;

    /// Four pairs of 1 GB/s, of which two fill the node.
    fn result() -> MaxRateResult {
        study(0.0)
    }

    #[test]
    fn an_exchange_takes_what_the_papers_formula_says() {
        let text = halos(&result(), &["6x1000000".parse().unwrap()]).unwrap();
        // 6 (10 us + 4 x 1 MB / 2 GB/s), and 6 (10 us + 1 MB / 1 GB/s) by the ping-pong.
        let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
        assert!(row("max-rate").contains("12060") && row("postal, 1 pair").contains("6060"), "{text}");
        assert!(row("max-rate").ends_with("1.990"), "the paper's ratio (6), k R_C / R_N, but for the latency: {text}");
        assert!(text.contains("speak for max-rate") && !text.contains("beyond"), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let text = halos(&result(), &["1x4MiBx8".parse().unwrap()]).unwrap();
        assert!(text.contains("up to 4 ranks") && text.contains("up to 1048576 bytes"), "{text}");
        let nothing = MaxRateResult { observations: Vec::new(), regimes: Vec::new(), ..result() };
        assert!(halos(&nothing, &["1x8".parse().unwrap()]).unwrap_err().contains("no fits"));
    }

    #[test]
    fn ratio_6_is_the_nodes_rate_over_that_of_all_pairs() {
        let result = result();
        assert!((result.postal_over_max_rate(4).unwrap() - 0.5).abs() < 1e-3);
        assert_eq!(result.postal_over_max_rate(1), None);
    }
}
