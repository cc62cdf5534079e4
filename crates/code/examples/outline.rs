//! Prints the symbols of source files: `cargo run -p carrel-code --example outline FILE…`.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "an example for people")]

use carrel_code::{FileSymbols, Language, SyntaxTree, signature};

fn main() {
    for path in std::env::args().skip(1) {
        let Some(language) = Language::of_path(path.as_ref()) else { continue };
        let Ok(source) = std::fs::read_to_string(&path) else { continue };
        let Ok(tree) = SyntaxTree::parse(language, &source) else { continue };
        let found = FileSymbols::of(&tree, &source);
        println!("{path} ({language}, {} errors)", tree.errors().len());
        for (index, symbol) in found.symbols.iter().enumerate() {
            let (first, last) = symbol.lines;
            let path = found.path(index).join("::");
            println!("  {first}-{last} {} {path} | {}", symbol.kind, signature(symbol, &source));
        }
    }
}
