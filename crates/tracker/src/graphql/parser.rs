//! A parser for the GraphQL requests of agents.
//!
//! An agent's request is checked against the configured project before it is sent with the tracker's
//! credential. The text that is sent is not the agent's but the canonical text of the parsed document
//! ([`GraphqlDocument`]), so a difference between this parser and the tracker's cannot smuggle anything
//! past the check: what the check saw is what is sent. Everything outside the executable grammar (several
//! operations, subscriptions, type definitions, block strings) is refused. Length and depth are bounded.

use super::document::{
    Arguments, Field, Fragment, GraphqlDocument, GraphqlOperation, Kind, Literal, Selection,
    Variable, parenthesised,
};
use super::lexer::{Token, tokenize};

/// The length and the nesting depth of a request.
const MAX_BYTES: usize = 64 * 1024;
const MAX_DEPTH: usize = 32;

/// Parses a request. The error describes the problem for the agent.
pub(crate) fn parse(text: &str) -> Result<GraphqlDocument, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    let mut parser = Parser { tokens: tokenize(text)?, at: 0, depth: 0 };
    let (mut operations, mut fragments) = (Vec::new(), Vec::new());
    while let Some(word) = parser.peek() {
        if *word == Token::Name("fragment".to_owned()) {
            fragments.push(parser.fragment()?);
        } else {
            operations.push(parser.operation()?);
        }
    }
    match operations.pop() {
        Some(operation) if operations.is_empty() => Ok(GraphqlDocument { operation, fragments }),
        Some(_) => Err("it has more than one operation".to_owned()),
        None => Err("it has no operation".to_owned()),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

type Read<T> = Result<T, String>;

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self) -> Read<Token> {
        let word = self.tokens.get(self.at).cloned().ok_or("unexpected end")?;
        self.at += 1;
        Ok(word)
    }

    fn is(&self, mark: char) -> bool {
        self.peek() == Some(&Token::Mark(mark))
    }

    /// Consumes a mark if it is the next token.
    fn accept(&mut self, mark: char) -> bool {
        let found = self.is(mark);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: char) -> Read<()> {
        if self.accept(mark) { Ok(()) } else { Err(format!("expected `{mark}`")) }
    }

    fn name(&mut self) -> Read<String> {
        match self.take()? {
            Token::Name(name) => Ok(name),
            other => Err(format!("expected a name before {other:?}")),
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} levels"));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn operation(&mut self) -> Read<GraphqlOperation> {
        let kind = match self.peek() {
            Some(Token::Mark('{')) => Kind::Query,
            Some(Token::Name(word)) if word == "query" => Kind::Query,
            Some(Token::Name(word)) if word == "mutation" => Kind::Mutation,
            _ => return Err("it is neither a query nor a mutation".to_owned()),
        };
        // A query may consist of its selections alone.
        if !self.is('{') {
            self.take()?;
        }
        let is_named = matches!(self.peek(), Some(Token::Name(_)));
        let name = if is_named { format!(" {}", self.name()?) } else { String::new() };
        let mut variables = Vec::new();
        if self.accept('(') {
            while !self.accept(')') {
                variables.push(self.variable()?);
            }
        }
        let directives = self.directives()?;
        Ok(GraphqlOperation { kind, name, variables, directives, selections: self.selections()? })
    }

    fn variable(&mut self) -> Read<Variable> {
        self.expect('$')?;
        let name = self.name()?;
        self.expect(':')?;
        let kind = self.kind()?;
        let default = if self.accept('=') { Some(self.literal()?) } else { None };
        Ok(Variable { name, kind, default })
    }

    fn kind(&mut self) -> Read<String> {
        let inner = if self.accept('[') {
            let inner = self.deeper(Self::kind)?;
            self.expect(']')?;
            format!("[{inner}]")
        } else {
            self.name()?
        };
        Ok(if self.accept('!') { inner + "!" } else { inner })
    }

    fn fragment(&mut self) -> Read<Fragment> {
        self.take()?;
        let name = self.name()?;
        if self.name()? != "on" {
            return Err("expected `on` after the name of a fragment".to_owned());
        }
        let on = self.name()?;
        let directives = self.directives()?;
        Ok(Fragment { name, on, directives, selections: self.selections()? })
    }

    fn directives(&mut self) -> Read<String> {
        let mut directives = String::new();
        while self.accept('@') {
            let name = self.name()?;
            directives.extend([" @", &name, &parenthesised(&self.arguments()?)]);
        }
        Ok(directives)
    }

    fn arguments(&mut self) -> Read<Arguments> {
        if self.accept('(') { self.pairs(')') } else { Ok(Vec::new()) }
    }

    fn pairs(&mut self, end: char) -> Read<Arguments> {
        let mut pairs: Arguments = Vec::new();
        while !self.accept(end) {
            let name = self.name()?;
            self.expect(':')?;
            let value = self.literal()?;
            if pairs.iter().any(|(known, _)| *known == name) {
                return Err(format!("{name:?} is given twice"));
            }
            pairs.push((name, value));
        }
        Ok(pairs)
    }

    fn literal(&mut self) -> Read<Literal> {
        self.deeper(|parser| match parser.take()? {
            Token::Mark('$') => Ok(Literal::Variable(parser.name()?)),
            Token::Mark('{') => Ok(Literal::Object(parser.pairs('}')?)),
            Token::Mark('[') => {
                let mut values = Vec::new();
                while !parser.accept(']') {
                    values.push(parser.literal()?);
                }
                Ok(Literal::List(values))
            }
            Token::Text(text) => Ok(Literal::Text(text)),
            Token::Name(word) | Token::Number(word) => Ok(Literal::Word(word)),
            other => Err(format!("{other:?} is not a value")),
        })
    }

    fn selections(&mut self) -> Read<Vec<Selection>> {
        self.deeper(|parser| {
            parser.expect('{')?;
            let mut selections = Vec::new();
            while !parser.accept('}') {
                selections.push(parser.selection()?);
            }
            if selections.is_empty() {
                return Err("`{}` selects nothing".to_owned());
            }
            Ok(selections)
        })
    }

    fn selection(&mut self) -> Read<Selection> {
        if self.peek() != Some(&Token::Spread) {
            return self.field();
        }
        self.take()?;
        let mut condition = String::new();
        if matches!(self.peek(), Some(Token::Name(_))) {
            let name = self.name()?;
            if name != "on" {
                return Ok(Selection::Spread { name, directives: self.directives()? });
            }
            condition = format!(" on {}", self.name()?);
        }
        condition += &self.directives()?;
        Ok(Selection::Inline { condition, selections: self.selections()? })
    }

    fn field(&mut self) -> Read<Selection> {
        let first = self.name()?;
        let is_alias = self.accept(':');
        let name = if is_alias { self.name()? } else { first.clone() };
        let alias = if is_alias { first + ": " } else { String::new() };
        let arguments = self.arguments()?;
        let directives = self.directives()?;
        let selections = if self.is('{') { self.selections()? } else { Vec::new() };
        Ok(Selection::Field(Field { alias, name, arguments, directives, selections }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    #[test]
    fn the_canonical_text_parses_to_the_same_document() {
        let text = r#"
            # A question.
            query Find($id: String! = "a\"b", $all: [ID!]) @live {
              one: issue(id: $id, filter: {state: {in: ["x", 1, -2.5e3, true, NONE]}}) {
                id, title ... on Issue @include(if: $all) { url } ...Rest
              }
            }
            fragment Rest on Issue { state { name } }
        "#;
        let document = parse(text).unwrap();
        let written = document.to_string();
        assert_eq!(
            written,
            "query Find($id: String! = \"a\\\"b\" $all: [ID!]) @live { one: issue(id: $id filter: {state: \
             {in: [\"x\" 1 -2500.0 true NONE]}}) { id title ... on Issue @include(if: $all) { url } ...Rest } }\n\
             fragment Rest on Issue { state { name } }"
        );
        assert_eq!(parse(&written).unwrap(), document);
    }

    #[test]
    fn invalid_requests_are_refused() {
        for text in [
            "",
            "subscription { x }",
            "query { a } query { b }",
            "query {",
            "query { }",
            "{ a(b: 1, b: 2) }",
            "{ a(b: ) }",
            "{ a(b: {c: 1 c: 2}) }",
            "fragment F on T { a }",
            "{ a(b: \"x) }",
            "{ a(b: \"\"\"x\"\"\") }",
            "{ a(b: \"x\ny\") }",
            "{ a(b: 01) }",
            "{ a . b }",
            "schema { query: Q }",
            "\u{feff}{ a }",
            "{ a(b: 'x') }",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"{ a ".repeat(1000)).is_err());
        assert!(parse(&format!("{{ a(b: {}", "[".repeat(50_000))).is_err());
    }

    proptest! {
        #[test]
        fn no_input_makes_the_parser_panic(text in "[ -~\\n]{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn the_canonical_text_is_a_fixed_point(
            text in "(query|mutation)? ?\\{ ?(a|b: c|d\\(e: (1|\"x\\\\n\"|\\$f|\\[g\\]|\\{h: 2\\})\\)|\\.\\.\\.i|j ?\\{k\\}| ){1,8} ?\\}",
        ) {
            if let Ok(document) = parse(&text) {
                prop_assert_eq!(parse(&document.to_string()).unwrap(), document);
            }
        }
    }
}
