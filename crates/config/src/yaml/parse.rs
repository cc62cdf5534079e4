//! The tree builder over the events of the YAML parser.

use std::borrow::Cow;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput, Tag};

use super::scalar;
use crate::diagnostic::{Diagnostic, Position};
use crate::value_tree::{Map, MapEntry, Node, Value};

/// The deepest nesting, which bounds recursion. Settings need a handful of levels.
const MAX_DEPTH: usize = 32;

/// The most values in a file. A value takes far more memory than the two bytes that can write one.
const MAX_NODES: usize = 10_000;

/// Parses one YAML document. `start` is the position of its first character in the file.
pub(crate) fn parse(text: &str, start: Position) -> Result<Node, Diagnostic> {
    Loader { events: Parser::new_from_str(text), start, nodes: 0 }.document()
}

struct Loader<'a> {
    events: Parser<'a, StrInput<'a>>,
    start: Position,
    nodes: usize,
}

type Located<'a> = (Event<'a>, Position);

impl<'a> Loader<'a> {
    fn document(&mut self) -> Result<Node, Diagnostic> {
        let mut root = None;
        loop {
            let (event, position) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(Diagnostic::at(position, "only one YAML document is allowed"));
                }
                Event::Nothing
                | Event::StreamStart
                | Event::DocumentStart(_)
                | Event::DocumentEnd => {}
                content => root = Some(self.node((content, position), 0)?),
            }
        }
        Ok(root.unwrap_or(Node { position: self.start, value: Value::Null }))
    }

    fn node(&mut self, (event, position): Located<'a>, depth: usize) -> Result<Node, Diagnostic> {
        self.count(position, depth)?;
        let value = match event {
            Event::Scalar(text, style, _, tag) => read_scalar(text, style, tag.as_deref())
                .map_err(|message| Diagnostic::at(position, message))?,
            Event::SequenceStart(_, None) => Value::List(self.list(depth)?),
            Event::MappingStart(_, None) => Value::Map(self.map(depth)?),
            Event::SequenceStart(_, Some(tag)) | Event::MappingStart(_, Some(tag)) => {
                return Err(Diagnostic::at(position, refused_tag(&tag)));
            }
            Event::Alias(_) => {
                let message = "aliases (`*name`) are not supported; write the value out";
                return Err(Diagnostic::at(position, message));
            }
            // Ends and document marks never stand where the parser announces a node.
            _ => return Err(Diagnostic::at(position, "a value was expected here")),
        };
        Ok(Node { position, value })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Diagnostic> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                item => items.push(self.node(item, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Map, Diagnostic> {
        let mut map = Map::default();
        loop {
            let (event, position) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(map);
            }
            let key = read_key(event).map_err(|message| Diagnostic::at(position, message))?;
            if let Some(first) = map.get(&key) {
                return Err(Diagnostic::at(position, duplicate(&key, first.position)));
            }
            let value = self.next()?;
            map.0.push(MapEntry { key, position, value: self.node(value, depth + 1)? });
        }
    }

    fn count(&mut self, position: Position, depth: usize) -> Result<(), Diagnostic> {
        self.nodes += 1;
        if depth > MAX_DEPTH {
            let message = format!("values are nested deeper than {MAX_DEPTH} levels");
            return Err(Diagnostic::at(position, message));
        }
        if self.nodes > MAX_NODES {
            let message = format!("there are more than {MAX_NODES} values");
            return Err(Diagnostic::at(position, message));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Located<'a>, Diagnostic> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, self.locate(span.start))),
            Some(Err(error)) => {
                let message = format!("this is not valid YAML: {}", error.info());
                Err(Diagnostic::at(self.locate(*error.marker()), message))
            }
            None => Ok((Event::StreamEnd, self.start)),
        }
    }

    fn locate(&self, marker: Marker) -> Position {
        Position { line: marker.line(), column: marker.col() + 1 }.within(self.start)
    }
}

/// Returns a key as written, so that `1` and `true` are keys like any other.
fn read_key(event: Event<'_>) -> Result<String, String> {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<" => {
            Err("merge keys (`<<`) are not supported; write the settings out".to_owned())
        }
        Event::Scalar(text, _, _, None) => Ok(text.into_owned()),
        _ => Err("a key must be plain text".to_owned()),
    }
}

fn read_scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    match tag {
        None if style == ScalarStyle::Plain => Ok(scalar::resolve(&text)),
        None => Ok(Value::Text(text.into_owned())),
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => {
            Ok(Value::Text(text.into_owned()))
        }
        Some(tag) => Err(refused_tag(tag)),
    }
}

fn refused_tag(tag: &Tag) -> String {
    let shown =
        if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
    format!("the tag `{shown}` is not supported; leave it out")
}

fn duplicate(key: &str, first: Position) -> String {
    format!("the key {key:?} is given twice; it is first given on line {}", first.line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn json(text: &str) -> serde_json::Value {
        parse(text, Position::START).unwrap().to_json()
    }

    fn refusal(text: &str) -> (usize, usize, String) {
        let diagnostic = parse(text, Position { line: 2, column: 1 }).unwrap_err();
        let position = diagnostic.position.unwrap();
        (position.line, position.column, diagnostic.message)
    }

    #[test]
    fn documents_become_trees() {
        assert_eq!(json(""), json!(null));
        assert_eq!(json("# only a comment"), json!(null));
        assert_eq!(json("a: {b: [1, x, null], c: ~}"), json!({"a": {"b": [1, "x", null]}}));
        assert_eq!(json("a: '1'\nb: !!str 2\n3: x"), json!({"a": "1", "b": "2", "3": "x"}));
        assert_eq!(json("a: |\n  one\n  two\n"), json!({"a": "one\ntwo\n"}));
        assert_eq!(json("Å: х 入"), json!({"Å": "х 入"}));
    }

    #[test]
    fn keys_and_values_have_positions() {
        let node = parse("a: 1\nÅb:\n  c: x\n", Position { line: 2, column: 1 }).unwrap();
        let Value::Map(map) = node.value else { panic!("a map was written") };
        assert_eq!(map.get("Åb").unwrap().position, Position { line: 3, column: 1 });
        assert_eq!(map.find("Åb.c").unwrap().position, Position { line: 4, column: 6 });
    }

    #[test]
    fn hostile_documents_are_refused_with_their_position() {
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\n";
        let table = [
            (bomb, 3, 8, "aliases (`*name`) are not supported"),
            ("a: 1\na: 2", 3, 1, "the key \"a\" is given twice; it is first given on line 2"),
            ("a: 1\n---\nb: 2", 3, 1, "only one YAML document is allowed"),
            ("a: !!python/object x", 2, 4, "the tag `!!python/object` is not supported"),
            ("a: !own x", 2, 4, "the tag `!own` is not supported"),
            ("a: !!map {}", 2, 4, "the tag `!!map` is not supported"),
            ("base: &b {a: 1}\n<<: *b", 3, 1, "merge keys (`<<`) are not supported"),
            ("? [a]\n: b", 2, 3, "a key must be plain text"),
            ("a:\n\t- b", 3, 2, "this is not valid YAML: tabs disallowed"),
            ("a: [1", 3, 1, "this is not valid YAML"),
            ("a: 'x", 2, 4, "this is not valid YAML"),
        ];
        for (text, line, column, message) in table {
            let refusal = refusal(text);
            assert_eq!((refusal.0, refusal.1), (line, column), "{text:?}: {refusal:?}");
            assert!(refusal.2.starts_with(message), "{text:?}: {refusal:?}");
        }
    }

    #[test]
    fn depth_and_size_are_bounded() {
        for text in ["[".repeat(500_000), "- ".repeat(400_000), "{a: ".repeat(200_000)] {
            parse(&text, Position::START).unwrap_err();
        }
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(MAX_DEPTH), Position::START).is_ok());
        assert!(refusal(&nested(MAX_DEPTH + 2)).2.contains("nested deeper"));
        assert!(refusal(&"- x\n".repeat(MAX_NODES)).2.contains("more than 10000 values"));
        assert!(parse(&"- x\n".repeat(MAX_NODES - 1), Position::START).is_ok());
        assert!(parse(&format!("a: {}", "x".repeat(900_000)), Position::START).is_ok());
    }
}
