use std::time::{Duration, Instant};

use carrel_search::{
    Cancel, Error, FileMatches, GrepReport, GrepRequest, Line, Mode, Scope, Truncation,
    TruncationReason, grep,
};
use pretty_assertions::assert_eq;

use crate::{TestTree, find};

/// A tree with directories and files in between each other, each file with some matches.
fn tree() -> TestTree {
    let tree_fixture = TestTree::new();
    for n in 0..300 {
        let path = match n % 3 {
            0 => format!("d{}/e{}/f{n}", n % 7, n % 5),
            1 => format!("d{}/f{n}", n % 7),
            _ => format!("f{n}"),
        };
        let contents: String = (0..n % 9).map(|line| format!("needle {line}\nhay\n")).collect();
        tree_fixture.file(path, contents);
    }
    tree_fixture
}

/// Returns all lines with their paths.
fn lines(report: &GrepReport) -> Vec<(String, Line)> {
    let with_path = |file: &FileMatches| {
        let path = file.path.display().to_string();
        file.lines.clone().into_iter().map(move |line| (path.clone(), line)).collect::<Vec<_>>()
    };
    report.files.iter().flat_map(with_path).collect()
}

/// Reads page after page until nothing is cut.
fn pages(scope: &Scope<'_>, request: &GrepRequest) -> Vec<GrepReport> {
    let mut pages = Vec::new();
    let mut offset = 0;
    loop {
        let page = find(scope, &GrepRequest { offset, ..request.clone() });
        let cut = page.truncation;
        pages.push(page);
        match cut {
            None => return pages,
            Some(Truncation { next_offset, .. }) => {
                assert!(next_offset > offset, "every page goes on");
                offset = next_offset;
            }
        }
    }
}

#[test]
fn the_order_is_that_of_paths_and_the_same_in_every_run() {
    let tree_fixture = tree();
    let request = GrepRequest { limit: Some(100), ..GrepRequest::new("needle") };
    let whole = GrepRequest::new("needle");
    let (first, all) = (find(&tree_fixture.scope(), &request), find(&tree_fixture.scope(), &whole));
    assert!(all.files.is_sorted_by(|a, b| a.path < b.path));
    for _ in 0..20 {
        assert_eq!(find(&tree_fixture.scope(), &request), first);
        assert_eq!(find(&tree_fixture.scope(), &whole), all);
    }
    assert_eq!(lines(&first), lines(&all)[..100]);
}

#[test]
fn pages_put_together_are_the_whole() {
    let tree_fixture = tree();
    for context in [0, 1] {
        for limit in [1, 7, 64, 10_000] {
            if limit == 1 && context == 1 {
                continue;
            }
            let whole =
                GrepRequest { before: context, after: context, ..GrepRequest::new("needle 3") };
            let request = GrepRequest { limit: Some(limit), ..whole.clone() };
            let parts: Vec<_> =
                pages(&tree_fixture.scope(), &request).iter().flat_map(lines).collect();
            assert_eq!(
                parts,
                lines(&find(&tree_fixture.scope(), &whole)),
                "{limit} with {context}"
            );
        }
    }
}

#[test]
fn pages_of_files_and_counts_are_the_whole_too() {
    let tree_fixture = tree();
    for mode in [Mode::FilesWithMatches, Mode::Count] {
        let whole = GrepRequest { mode, ..GrepRequest::new("needle") };
        let request = GrepRequest { limit: Some(13), ..whole.clone() };
        let parts: String =
            pages(&tree_fixture.scope(), &request).iter().map(GrepReport::text).collect();
        assert_eq!(parts, find(&tree_fixture.scope(), &whole).text());
    }
}

#[test]
fn a_file_of_100k_lines_is_paged_to_its_end() {
    let tree_fixture = TestTree::with(&[("a", "needle first\n"), ("z", "needle last\n")]);
    let contents: String = (0..100_000).map(|n| format!("needle {n}\n")).collect();
    tree_fixture.file("big", contents);
    let output_bytes = 1024 * 1024;
    let request = GrepRequest { limit: Some(29_999), output_bytes, ..GrepRequest::new("needle") };
    let pages = pages(&tree_fixture.scope(), &request);
    assert_eq!(pages.len(), 4);
    let parts: Vec<_> = pages.iter().flat_map(lines).collect();
    assert_eq!(parts.len(), 100_002);
    assert_eq!(parts[0].1.text, "needle first");
    assert_eq!(parts[100_001].1.text, "needle last");
    for (n, (path, line)) in parts[1..=100_000].iter().enumerate() {
        assert_eq!((path.as_str(), line.number), ("big", n as u64 + 1));
        assert_eq!(line.text, format!("needle {n}"));
    }
}

#[test]
fn the_byte_budget_holds_and_the_rest_can_be_had() {
    let tree_fixture = tree();
    let whole = GrepRequest { before: 1, ..GrepRequest::new("needle") };
    let request = GrepRequest { output_bytes: 1000, ..whole.clone() };
    let pages = pages(&tree_fixture.scope(), &request);
    assert!(pages.len() > 10);
    for page in &pages {
        assert!(page.text().len() <= 1000);
        assert!(page.truncation.is_none_or(|cut| cut.reason == TruncationReason::Bytes));
    }
    let parts: Vec<_> = pages.iter().flat_map(lines).collect();
    assert_eq!(parts, lines(&find(&tree_fixture.scope(), &whole)));
    let files = GrepRequest { mode: Mode::Count, output_bytes: 300, ..GrepRequest::new("needle") };
    assert!(find(&tree_fixture.scope(), &files).text().len() <= 300);
}

#[test]
fn a_budget_smaller_than_one_line_still_gives_one() {
    let tree_fixture = TestTree::with(&[("f", "needle one\nneedle two\n")]);
    let request = GrepRequest { output_bytes: 6, ..GrepRequest::new("needle") };
    let page = find(&tree_fixture.scope(), &request);
    assert_eq!(page.text(), "f:1:needle[… 4 bytes …]\n");
    assert_eq!(
        page.truncation,
        Some(Truncation { reason: TruncationReason::Bytes, next_offset: 1 })
    );
    let tiny = find(&tree_fixture.scope(), &GrepRequest { output_bytes: 0, ..request.clone() });
    assert_eq!((tiny.text().as_str(), tiny.truncation), ("f:1:[… 10 bytes …]\n", page.truncation));
    let none = find(&tree_fixture.scope(), &GrepRequest { limit: Some(0), ..request });
    assert_eq!(
        none.truncation,
        Some(Truncation { reason: TruncationReason::Limit, next_offset: 0 })
    );
}

#[test]
fn totals_are_complete_or_absent() {
    let tree_fixture = tree();
    let whole = find(&tree_fixture.scope(), &GrepRequest::new("needle"));
    let cut = GrepRequest { limit: Some(3), ..GrepRequest::new("needle") };
    let page = find(&tree_fixture.scope(), &cut);
    assert_eq!((lines(&page).len(), page.totals), (3, None));
    assert_eq!(
        page.truncation,
        Some(Truncation { reason: TruncationReason::Limit, next_offset: 3 })
    );
    let counted = find(&tree_fixture.scope(), &GrepRequest { totals: true, ..cut });
    assert_eq!((lines(&counted), counted.totals), (lines(&page), whole.totals));
    assert_eq!(counted.truncation, page.truncation);
}

#[test]
fn a_page_that_is_just_full_is_not_cut() {
    let tree_fixture = TestTree::with(&[("f", "needle\n".repeat(10).as_str())]);
    let request = GrepRequest { limit: Some(10), ..GrepRequest::new("needle") };
    let page = find(&tree_fixture.scope(), &request);
    assert_eq!((lines(&page).len(), page.truncation), (10, None));
    let beyond = find(&tree_fixture.scope(), &GrepRequest { offset: 10, ..request });
    assert_eq!((lines(&beyond).len(), beyond.truncation), (0, None));
}

#[test]
fn a_small_page_does_not_search_everything() {
    let tree_fixture = slow_tree();
    tree_fixture.file("a", "needle\nneedle\n");
    let whole = GrepRequest::new("(x+x+)+y|needle");
    let request = GrepRequest { limit: Some(1), ..whole.clone() };
    let started = Instant::now();
    assert_eq!(find(&tree_fixture.scope(), &request).text(), "a:1:needle\n");
    let page = started.elapsed();
    assert_eq!(lines(&find(&tree_fixture.scope(), &whole)).len(), 2);
    let all = started.elapsed().saturating_sub(page);
    assert!(page * 2 < all, "{page:?} for a page, {all:?} for all");
}

/// A file without line ends or NUL bytes that takes long to search, as often as there are workers.
fn slow_tree() -> TestTree {
    let tree_fixture = TestTree::with(&[("a", "needle\n")]);
    let line = "x".repeat(99) + "\n";
    let block = line.repeat(10_000);
    for n in 0..8 {
        tree_fixture.file(format!("slow{n}"), block.repeat(4));
    }
    tree_fixture
}

#[test]
fn time_that_is_over_gives_what_is_certain_so_far() {
    let tree_fixture = slow_tree();
    let request =
        GrepRequest { time: Duration::from_millis(30), ..GrepRequest::new("(x+x+)+y|needle") };
    let started = Instant::now();
    let page = find(&tree_fixture.scope(), &request);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(page.truncation.map(|cut| cut.reason), Some(TruncationReason::Time));
    assert!(["", "a:1:needle\n"].contains(&page.text().as_str()));
    assert_eq!(page.totals, None);
    let none = find(&tree_fixture.scope(), &GrepRequest { time: Duration::ZERO, ..request });
    assert_eq!(none.text(), "");
    assert_eq!(
        none.truncation,
        Some(Truncation { reason: TruncationReason::Time, next_offset: 0 })
    );
}

#[test]
fn cancelling_ends_a_search_quickly() {
    let tree_fixture = slow_tree();
    let cancel = Cancel::new();
    // No literal in it that could be searched for first, so each byte passes through the engine.
    let request = GrepRequest::new("([a-x]+[a-x]+)+[^a-x]");
    let waited = std::thread::scope(|threads| {
        let search = threads.spawn(|| grep(&tree_fixture.scope(), &request, &cancel));
        std::thread::sleep(Duration::from_millis(5));
        cancel.cancel();
        let started = Instant::now();
        assert!(matches!(search.join().unwrap(), Err(Error::Cancelled)));
        started.elapsed()
    });
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}

#[test]
fn results_that_wait_for_a_slow_file_are_shed_and_found_again() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("a_slow", ("x".repeat(99) + "\n").repeat(100_000) + "needle slow\n");
    let contents: String = (0..1000).map(|n| format!("needle {n} {}\n", "y".repeat(400))).collect();
    for n in 0..60 {
        tree_fixture.file(format!("f{n:02}"), &contents);
    }
    let request = GrepRequest { output_bytes: usize::MAX, ..GrepRequest::new("(x+x+)+z|needle") };
    let report = find(&tree_fixture.scope(), &request);
    assert_eq!(lines(&report).len(), 60 * 1000 + 1);
    assert_eq!(report.files[0].lines[0].number, 100_001);
}
