//! As much XML as test reports hold: elements, attributes and text.
//!
//! It forgives what is wrong and never builds a tree, so no file can exhaust memory or stack.

/// A part of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// An element begins.
    Start {
        /// Its name.
        name: &'a str,
        /// What stands behind the name.
        attributes: Attributes<'a>,
    },
    /// An element ends.
    End(&'a str),
    /// Text between elements.
    Text(String),
}

/// The attributes of an element, not taken apart yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attributes<'a>(&'a str);

impl Attributes<'_> {
    /// Returns the value of an attribute.
    pub(crate) fn get(self, name: &str) -> Option<String> {
        let mut rest = self.0.trim_start();
        while let Some((key, value)) = rest.split_once('=') {
            let value = value.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (inner, after) = value[1..].split_once(quote)?;
            if key.trim() == name {
                return Some(decode(inner));
            }
            rest = after.trim_start();
        }
        None
    }
}

/// Reads a document from front to back.
pub(crate) fn events(text: &str) -> impl Iterator<Item = Event<'_>> {
    let mut rest = text;
    // An element without contents is two events.
    let mut pending: Option<Event<'_>> = None;
    std::iter::from_fn(move || {
        if let Some(event) = pending.take() {
            return Some(event);
        }
        loop {
            if rest.is_empty() {
                return None;
            }
            let Some(tag) = rest.strip_prefix('<') else {
                let end = rest.find('<').unwrap_or(rest.len());
                let (inner, after) = rest.split_at(end);
                rest = after;
                return Some(Event::Text(decode(inner)));
            };
            if let Some(data) = tag.strip_prefix("![CDATA[") {
                let (inner, after) = data.split_once("]]>").unwrap_or((data, ""));
                rest = after;
                return Some(Event::Text(inner.to_owned()));
            }
            if let Some(comment) = tag.strip_prefix("!--") {
                rest = comment.split_once("-->").map_or("", |(_, after)| after);
                continue;
            }
            let end = tag_end(tag);
            let inner = &tag[..end];
            rest = tag.get(end + 1..).unwrap_or_default();
            if inner.starts_with(['?', '!']) {
                continue;
            }
            if let Some(name) = inner.strip_prefix('/') {
                return Some(Event::End(name.trim()));
            }
            let (inner, closed) =
                inner.strip_suffix('/').map_or((inner, false), |inner| (inner, true));
            let at = inner.find(char::is_whitespace).unwrap_or(inner.len());
            let (name, attributes) = inner.split_at(at);
            if closed {
                pending = Some(Event::End(name));
            }
            return Some(Event::Start { name, attributes: Attributes(attributes) });
        }
    })
}

/// Finds the end of a tag; a `>` in quotes is none.
fn tag_end(tag: &str) -> usize {
    let mut quote = None;
    for (at, c) in tag.char_indices() {
        match (quote, c) {
            (None, '>') => return at,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// Puts characters in the place of their names.
fn decode(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let named = after.split_once(';').and_then(|(name, tail)| Some((character(name)?, tail)));
        if let Some((c, tail)) = named {
            plain.push(c);
            rest = tail;
        } else {
            plain.push('&');
            rest = after;
        }
    }
    plain.push_str(rest);
    plain
}

fn character(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_attributes_and_text_are_read_in_order() {
        let text = "<?xml version='1.0'?><!-- a > b --><s a=\"x > &quot;y&#10;\" b='1'><t/>a &lt; b<![CDATA[<raw>]]></s>";
        let all: Vec<Event<'_>> = events(text).collect();
        let Event::Start { name: "s", attributes } = &all[0] else { panic!("{all:?}") };
        assert_eq!(attributes.get("a").as_deref(), Some("x > \"y\n"));
        assert_eq!(attributes.get("b").as_deref(), Some("1"));
        assert_eq!(attributes.get("c"), None);
        assert!(matches!(all[1], Event::Start { name: "t", .. }));
        assert_eq!(
            all[2..],
            [
                Event::End("t"),
                Event::Text("a < b".into()),
                Event::Text("<raw>".into()),
                Event::End("s"),
            ]
        );
    }

    #[test]
    fn what_is_no_xml_ends_without_a_panic() {
        for text in [
            "<",
            "<a",
            "<a b=",
            "<a b='",
            "</",
            "<![CDATA[",
            "<!--",
            "&",
            "&#;",
            "<a ä='ö",
            "\u{0}",
        ] {
            let _ = events(text)
                .map(|event| match event {
                    Event::Start { attributes, .. } => attributes.get("b"),
                    Event::End(_) | Event::Text(_) => None,
                })
                .count();
        }
    }
}
