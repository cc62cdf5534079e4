//! The order among the candidates of a try.
//!
//! | compared in this order | better |
//! |---|---|
//! | verdict | passed, failed, not verified, disqualified |
//! | tests that passed | more |
//! | score | larger; none is worst |
//! | lines of the diff, then its bytes | fewer |
//! | time of the run | shorter |
//! | number | smaller |
//!
//! The number makes the order total: no two candidates are equal.

use std::cmp::{Ordering, Reverse};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::candidate::{Candidate, DiffSize, Score, Verdict};

/// A candidate's place in the order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialRanked")]
pub struct Ranked {
    /// The place, from 1.
    pub rank: u8,
    /// The number of the candidate.
    pub candidate: u8,
    /// The rule that puts it before the next one; absent for the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// Orders candidates, the best first, each with the reason for which it is before the next.
pub fn rank(candidates: &[Candidate]) -> Vec<Ranked> {
    let mut order: Vec<&Candidate> = candidates.iter().collect();
    order.sort_by(|a, b| compare(a, b).0);
    let mut ranked = Vec::with_capacity(order.len());
    for (index, candidate) in order.iter().enumerate() {
        let next = order.get(index + 1);
        ranked.push(Ranked {
            rank: u8::try_from(index + 1).unwrap_or(u8::MAX),
            candidate: candidate.number,
            because: next.map(|next| compare(candidate, next).1.to_owned()),
        });
    }
    ranked
}

/// Returns the best candidate, if one may be promoted.
pub fn winner(candidates: &[Candidate]) -> Option<&Candidate> {
    let eligible = candidates.iter().filter(|candidate| candidate.is_eligible());
    eligible.min_by(|a, b| compare(a, b).0)
}

/// Compares two candidates; the better one is less. Returns what decided.
fn compare(a: &Candidate, b: &Candidate) -> (Ordering, &'static str) {
    let score = |candidate: &Candidate| candidate.score.as_ref().and_then(Score::value);
    let diff = |candidate: &Candidate| candidate.diff.unwrap_or_default();
    let time = |candidate: &Candidate| candidate.ran.as_ref().map_or(0, |ran| ran.millis);
    let size = |size: DiffSize| (size.lines(), size.bytes);
    let orders = [
        (class(a).cmp(&class(b)), "its verdict is better"),
        (Reverse(a.tests_passed()).cmp(&Reverse(b.tests_passed())), "more tests pass"),
        (compare_scores(score(a), score(b)), "its score is larger"),
        (size(diff(a)).cmp(&size(diff(b))), "its diff is smaller"),
        (time(a).cmp(&time(b)), "its run was shorter"),
        (a.number.cmp(&b.number), "its number is smaller"),
    ];
    let decided = orders.into_iter().find(|(order, _)| order.is_ne());
    decided.unwrap_or((Ordering::Equal, "it is the same"))
}

/// Orders numbers with the largest first, and none last.
fn compare_scores(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        // Both zeros are the same score, which `total_cmp` alone would tell apart.
        (Some(a), Some(b)) => (b + 0.0).total_cmp(&(a + 0.0)),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

fn class(candidate: &Candidate) -> u8 {
    if candidate.disqualified.is_some() {
        return 4;
    }
    match candidate.verification.as_ref().map(|verification| verification.verdict) {
        Some(Verdict::Passed) => 0,
        Some(Verdict::Failed) => 1,
        Some(Verdict::CouldNotRun) => 2,
        None => 3,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::candidate::{Ran, Reason, Step, TestCounts, Verification};
    use crate::spec::Run;

    fn verified(number: u8, verdict: Verdict, passed: u64) -> Candidate {
        let tests = TestCounts { passed, ..TestCounts::default() };
        Candidate {
            step: Step::Judged,
            verification: Some(Verification {
                verdict,
                reason: None,
                tests,
                failures: Vec::new(),
                millis: 5,
                output: String::new(),
            }),
            ran: Some(Ran { exit: Some(0), millis: 10, output: String::new() }),
            diff: Some(DiffSize { files: 1, added: 10, removed: 0, bytes: 100 }),
            ..Candidate::new(number, Run::Command { line: "true".into() })
        }
    }

    #[test]
    fn each_rule_decides_among_candidates_that_are_equal_before_it() {
        let base = verified(2, Verdict::Passed, 3);
        let later = |number| Candidate { number, ..base.clone() };
        let mut shorter = later(3);
        shorter.ran.as_mut().unwrap().millis = 9;
        let mut smaller = later(4);
        smaller.diff.as_mut().unwrap().added = 9;
        let scored = Candidate { score: Some(Score::Value(1.0)), ..later(5) };
        let better = Candidate { score: Some(Score::Value(1.5)), ..later(6) };
        let more = verified(7, Verdict::Passed, 4);
        let failed = verified(8, Verdict::Failed, 100);
        let unknown = verified(9, Verdict::CouldNotRun, 0);
        let mut large = verified(10, Verdict::Passed, 100);
        large.disqualify(Reason::TooLarge, "it is");
        let all = [base, shorter, smaller, scored, better, more, failed, unknown, large];
        let ranked = rank(&all);
        let order: Vec<_> =
            ranked.iter().map(|one| (one.candidate, one.because.as_deref())).collect();
        let expected = [
            (7, Some("more tests pass")),
            (6, Some("its score is larger")),
            (5, Some("its score is larger")),
            (4, Some("its diff is smaller")),
            (3, Some("its run was shorter")),
            (2, Some("its verdict is better")),
            (8, Some("its verdict is better")),
            (9, Some("its verdict is better")),
            (10, None),
        ];
        assert_eq!(order, expected);
        assert_eq!(winner(&all).unwrap().number, 7);
        assert_eq!(winner(&all[6..]), None, "none of them passed");
    }

    #[test]
    fn candidates_that_differ_in_nothing_are_told_apart_by_their_numbers() {
        let all = [verified(2, Verdict::Passed, 1), verified(1, Verdict::Passed, 1)];
        let expected =
            Ranked { rank: 1, candidate: 1, because: Some("its number is smaller".into()) };
        assert_eq!(rank(&all)[0], expected);
    }

    prop_compose! {
        fn any_candidate()(
            number in 0..6_u8,
            verdict in prop_oneof![Just(None), Just(Some(Verdict::Passed)), Just(Some(Verdict::Failed)), Just(Some(Verdict::CouldNotRun))],
            passed in 0..3_u64,
            score in prop_oneof![
                Just(None),
                Just(Some(Score::None(String::new()))),
                prop_oneof![Just(0.0), Just(-0.0), Just(1.0), any::<f64>().prop_filter("finite", |value| value.is_finite())].prop_map(|value| Some(Score::Value(value))),
            ],
            added in 0..3_u64,
            millis in 0..3_u64,
            disqualified in any::<bool>(),
        ) -> Candidate {
            let mut candidate = verified(number, verdict.unwrap_or(Verdict::Failed), passed);
            if verdict.is_none() {
                candidate.verification = None;
            }
            candidate.score = score;
            candidate.diff.as_mut().unwrap().added = added;
            candidate.ran.as_mut().unwrap().millis = millis;
            if disqualified {
                candidate.disqualify(Reason::Unchanged, "it changed nothing");
            }
            candidate
        }
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in any_candidate(), b in any_candidate(), c in any_candidate()) {
            let order = |one: &Candidate, other: &Candidate| compare(one, other).0;
            prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
            prop_assert_eq!(order(&a, &a), Ordering::Equal);
            if order(&a, &b).is_eq() {
                prop_assert_eq!(a.number, b.number);
                prop_assert_eq!(order(&a, &c), order(&b, &c));
            }
            if order(&a, &b).is_le() && order(&b, &c).is_le() {
                prop_assert!(order(&a, &c).is_le());
            }
        }

        #[test]
        fn ranks_do_not_depend_on_the_order_of_arrival(mut all in prop::collection::vec(any_candidate(), 1..8), seed in any::<u64>()) {
            for (index, candidate) in all.iter_mut().enumerate() {
                candidate.number = u8::try_from(index + 1).unwrap();
            }
            let ranked = rank(&all);
            let mut shuffled = all.clone();
            fastrand::Rng::with_seed(seed).shuffle(&mut shuffled);
            prop_assert_eq!(&rank(&shuffled), &ranked);
            let places: Vec<u8> = ranked.iter().map(|one| one.rank).collect();
            prop_assert_eq!(places, (1..=u8::try_from(all.len()).unwrap()).collect::<Vec<_>>());
            // A winner is the first of all, since what is eligible comes before the rest.
            if let Some(winner) = winner(&all) {
                prop_assert_eq!(winner.number, ranked[0].candidate);
            }
        }
    }
}
