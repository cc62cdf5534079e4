//! The lines of a file that a text to find resembles most, with the characters that differ.
//!
//! A text of several lines is placed by its lines that the file has too: each votes for the line at which
//! the text would then begin. A text without such a line is placed by its longest line, at the line of the
//! file that shares most of its trigrams. The first line that differs there is aligned with the file's by
//! edit distance, and the difference is the part between their common beginning and end.
//!
//! Like a near match it is a hint in an error message and never changes the file.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::error::{Difference, NearMatch};
use crate::lines::lines;

/// Bounds the size of a searched text.
const MAX_SEARCHED_BYTES: usize = 1024 * 1024;

/// Bounds the lines of the text to find that are compared.
const MAX_LINES: usize = 200;

/// Bounds the characters of a line that are aligned, since the cost is quadratic.
const MAX_CHARACTERS: usize = 300;

/// Bounds the part of a line that is quoted in a message.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// Shorter lines, such as a closing brace, occur everywhere and place nothing.
const MIN_LINE_CHARACTERS: usize = 4;

/// The least share, in percent, of a line's trigrams that the file's line must have.
const MIN_SHARED_PERCENT: usize = 40;

type Trigram = [char; 3];

/// Finds the lines that resemble `old` most; none if no line does.
pub(super) fn closest_lines(text: &str, old: &str) -> Option<NearMatch> {
    if text.len() > MAX_SEARCHED_BYTES {
        return None;
    }
    let wanted: Vec<&str> = lines(old).take(MAX_LINES).map(|line| line.text).collect();
    let has: Vec<&str> = lines(text).map(|line| line.text).collect();
    let start = voted(&has, &wanted).or_else(|| resembling(&has, &wanted))?;
    let pairs = has[start..].iter().zip(&wanted);
    let same = pairs.take_while(|(has, wanted)| has.trim_end() == wanted.trim_end()).count();
    let first_partial = usize::from(same == 0 && has[start].ends_with(wanted[0]));
    let differs = (same + first_partial).min(wanted.len() - 1);
    let line = has.get(start + differs)?;
    Some(NearMatch {
        line: start + 1,
        differs: start + differs + 1,
        text: line.chars().take(MAX_SHOWN_CHARACTERS).collect(),
        difference: difference(line, wanted[differs]),
    })
}

/// Returns the first line of the place for which most lines of the text vote.
fn voted(has: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in wanted.iter().map(|line| line.trim()).enumerate() {
        if line.len() >= MIN_LINE_CHARACTERS {
            places.entry(line).or_default().push(index);
        }
    }
    let mut votes: BTreeMap<usize, usize> = BTreeMap::new();
    for (number, line) in has.iter().enumerate() {
        let indices = places.get(line.trim()).into_iter().flatten();
        for start in indices.filter_map(|index| number.checked_sub(*index)) {
            *votes.entry(start).or_default() += 1;
        }
    }
    // Of places with as many votes, the first.
    votes.into_iter().rev().max_by_key(|(_, votes)| *votes).map(|(start, _)| start)
}

/// Returns the first line of the place where the longest line of the text resembles the file's line.
fn resembling(has: &[&str], wanted: &[&str]) -> Option<usize> {
    let (index, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let trigrams: HashSet<Trigram> = trigrams(longest.trim()).collect();
    let needed = (trigrams.len() * MIN_SHARED_PERCENT).div_ceil(100).max(1);
    let shared = |line: &str| {
        let shared: HashSet<_> =
            self::trigrams(line).filter(|one| trigrams.contains(one)).collect();
        shared.len()
    };
    let scores = has.iter().enumerate().skip(index).map(|(number, line)| (shared(line), number));
    let (best, number) = scores.rev().max_by_key(|(score, _)| *score)?;
    (best >= needed).then(|| number - index)
}

fn trigrams(line: &str) -> impl Iterator<Item = Trigram> {
    let characters = line.chars();
    let (second, third) = (characters.clone().skip(1), characters.clone().skip(2));
    characters.zip(second).zip(third).map(|((first, second), third)| [first, second, third])
}

fn difference(line: &str, wanted: &str) -> Difference {
    let line: Vec<char> = line.chars().take(MAX_CHARACTERS).collect();
    let wanted: Vec<char> = wanted.chars().take(MAX_CHARACTERS).collect();
    let file = &line[aligned(&line, &wanted)];
    let prefix = file.iter().zip(&wanted).take_while(|(file, wanted)| file == wanted).count();
    let (file, wanted) = (&file[prefix..], &wanted[prefix..]);
    let ends = file.iter().rev().zip(wanted.iter().rev());
    let suffix = ends.take_while(|(file, wanted)| file == wanted).count();
    let shown = |part: &[char]| part[..part.len() - suffix].iter().collect();
    Difference::Characters { file: shown(file), wanted: shown(wanted) }
}

/// Returns the part of `line` with the least edit distance from `wanted`.
fn aligned(line: &[char], wanted: &[char]) -> Range<usize> {
    // For each end in the line, the distance and the start of the best part that ends there.
    let mut best: Vec<(usize, usize)> = (0..=line.len()).map(|start| (0, start)).collect();
    for wants in wanted {
        let mut next = Vec::with_capacity(best.len());
        next.push((best[0].0 + 1, best[0].1));
        for (end, has) in line.iter().enumerate() {
            let replaced = (best[end].0 + usize::from(has != wants), best[end].1);
            let left_out = (best[end + 1].0 + 1, best[end + 1].1);
            let added = (next[end].0 + 1, next[end].1);
            next.push(replaced.min(left_out).min(added));
        }
        best = next;
    }
    // Of parts with the same distance, the one that ends as the text does.
    let shared_end = |end: usize| {
        let ends = line[..end].iter().rev().zip(wanted.iter().rev());
        ends.take_while(|(has, wants)| has == wants).count()
    };
    let parts = best.into_iter().enumerate();
    let closest = parts.min_by_key(|(end, (distance, _))| (*distance, Reverse(shared_end(*end))));
    let (end, (_, start)) = closest.unwrap_or_default();
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const TEXT: &str = "fn first() {\n    let total = 1;\n}\n\nfn second() {\n    let total = compute(a, b);\n    report(total);\n}\n";

    fn near(old: &str) -> Option<(usize, usize, String, String)> {
        let near = closest_lines(TEXT, old)?;
        match near.difference {
            Difference::Characters { file, wanted } => {
                Some((near.line, near.differs, file, wanted))
            }
            Difference::WhiteSpace => None,
        }
    }

    #[test]
    fn the_differing_characters_of_the_closest_line_are_found() {
        let cases = [
            ("compute(a, c)", (6, 6, "b", "c")),
            ("let total = computed(a, b);", (6, 6, "", "d")),
            ("    let totl = compute(a, b);", (6, 6, "a", "")),
            ("fn second() {\n    let total = compute(b);", (5, 6, "a, ", "")),
            ("fn second() {\n    let total = compute(a, b);\n    reprt(total);", (5, 7, "o", "")),
            ("second() {\n    let total = compute(x, b);\n    report(total);", (5, 6, "a", "x")),
        ];
        for (old, (line, differs, file, wanted)) in cases {
            let expected = (line, differs, file.to_owned(), wanted.to_owned());
            assert_eq!(near(old), Some(expected), "{old}");
        }
    }

    #[test]
    fn a_text_that_resembles_nothing_has_no_closest_line() {
        for old in ["x", "unrelated words", "}\n}", "", "\n\n"] {
            assert_eq!(near(old), None, "{old:?}");
        }
    }
}
