//! Which model the data speak for.

use super::Model;

/// Criteria closer than this are alike: the evidence is "not worth more than a bare mention" (R. E. Kass, A. E. Raftery, 1995).
pub const ALIKE: f64 = 2.0;

/// Of models with their information criteria, the one to take: the simplest of those that the best is not clearly ahead of.
pub fn choose(criteria: &[(Model, f64)]) -> Option<Model> {
    let best = criteria.iter().map(|(_, criterion)| *criterion).min_by(f64::total_cmp)?;
    let near = |model: &&Model| criteria.iter().any(|(of, criterion)| of == *model && *criterion <= best + ALIKE);
    Model::ALL.iter().find(near).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_of_the_best_is_taken() {
        assert_eq!(choose(&[]), None);
        let of = |postal, plain, hidden, extended| {
            let criteria = [postal, plain, hidden, extended];
            choose(&Model::ALL.into_iter().zip(criteria).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(of(-100.0, -300.0, -320.0, -310.0), Model::HiddenLatency);
        assert_eq!(of(-100.0, -319.0, -320.0, -310.0), Model::MaxRate);
        assert_eq!(of(-100.0, -300.0, -310.0, -320.0), Model::Extended);
        assert_eq!(of(-320.0, -320.0, -320.0, -320.0), Model::Postal);
    }
}
