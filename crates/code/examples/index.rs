//! Measures the symbol index of a directory: `cargo run --release -p carrel-code --example index DIR [QUERY]`.
#![expect(clippy::print_stdout, reason = "an example for people")]

use std::path::Path;
use std::time::{Duration, Instant};

use carrel_code::{MapRequest, NamePath, SearchRequest, SymbolIndex, signature_of};
use carrel_fsroot::Root;
use carrel_search::Cancel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| ".".into());
    let query = arguments.next().unwrap_or_else(|| "parse".into());
    let root = Root::open(&Path::new(&directory).canonicalize()?)?;
    let index = SymbolIndex::new();
    let cancel = Cancel::new();
    let refresh = |index: &SymbolIndex| {
        index.refresh(&root, Instant::now() + Duration::from_hours(1), &cancel)
    };
    let timed = |what: &str, begun: Instant| println!("{what}: {:?}", begun.elapsed());
    let begun = Instant::now();
    let refreshed = refresh(&index)?;
    timed("cold", begun);
    println!("{refreshed:?}");
    println!("{:?}", index.view().statistics());
    let mut skipped = std::collections::BTreeMap::<_, usize>::new();
    for (_, reason) in index.view().skipped() {
        *skipped.entry(reason.as_str()).or_default() += 1;
    }
    println!("skipped: {skipped:?}");
    for _ in 0..3 {
        let begun = Instant::now();
        refresh(&index)?;
        timed("warm refresh", begun);
    }
    for _ in 0..2 {
        let begun = Instant::now();
        let request = SearchRequest { query: query.clone(), limit: 10, ..SearchRequest::default() };
        let hits = index.view().search(&request);
        timed("search", begun);
        for hit in hits {
            let at = &hit.definition;
            println!(
                "  {:.2} {}:{} {} {}",
                hit.score,
                at.file.display(),
                at.line,
                at.kind,
                at.path.join("::")
            );
        }
    }
    let begun = Instant::now();
    let map = index.view().map(&MapRequest { limit: 20, ..MapRequest::default() });
    timed("map", begun);
    for entry in map {
        let at = &entry.definition;
        println!(
            "  {:.4} {} {}:{} {}",
            entry.rank,
            entry.used_by,
            at.file.display(),
            at.line,
            at.path.join("::")
        );
    }
    if let Some(path) = NamePath::parse(&query) {
        let begun = Instant::now();
        let definitions = index.view().definitions(&path);
        timed("definitions", begun);
        let begun = Instant::now();
        let uses = index.view().uses(path.last());
        timed("uses", begun);
        let lines: usize = uses.iter().map(|file| file.lines.len()).sum();
        println!("{} definitions, {lines} lines in {} files", definitions.len(), uses.len());
        for definition in definitions.iter().take(3) {
            let source = root.read(&definition.file, 1 << 24)?;
            println!("  {}", signature_of(definition, &String::from_utf8_lossy(&source)));
        }
    }
    let begun = Instant::now();
    let bytes = index.to_bytes();
    timed("to bytes", begun);
    let begun = Instant::now();
    let again = SymbolIndex::of_bytes(&bytes)?;
    timed("of bytes", begun);
    println!("{} bytes stored", bytes.len());
    println!("parsed again: {}", refresh(&again)?.parsed);
    Ok(())
}
