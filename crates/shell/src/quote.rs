//! Quote removal on the source text.
//!
//! The ends of quoted pieces are checked here and not taken from the grammar: a piece that a shell would end
//! elsewhere could hide a command.

/// Returns the text between single quotes; `None` if the quote ends earlier.
pub(crate) fn single(source: &str) -> Option<&str> {
    let inner = source.strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.contains('\'')).then_some(inner)
}

/// Decodes `$'…'`. Returns `None` if the quote ends earlier than the text, and for values with a NUL byte,
/// which a shell cuts off.
pub(crate) fn ansi_c(source: &str) -> Option<String> {
    let inner = source.strip_prefix("$'")?.strip_suffix('\'')?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' => return None,
            '\\' => escape(&mut rest, &mut bytes)?,
            other => push(&mut bytes, other),
        }
    }
    if bytes.contains(&0) {
        return None;
    }
    String::from_utf8(bytes).ok()
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn escape(rest: &mut Rest<'_>, bytes: &mut Vec<u8>) -> Option<()> {
    match rest.next()? {
        'a' => bytes.push(0x07),
        'b' => bytes.push(0x08),
        'e' | 'E' => bytes.push(0x1b),
        'f' => bytes.push(0x0c),
        'n' => bytes.push(b'\n'),
        'r' => bytes.push(b'\r'),
        't' => bytes.push(b'\t'),
        'v' => bytes.push(0x0b),
        quoted @ ('\\' | '\'' | '"' | '?') => push(bytes, quoted),
        first @ '0'..='7' => bytes.push(octal(first, rest)),
        // At most two digits, so the value fits.
        'x' => bytes.push(u8::try_from(digits(rest, 2)?).ok()?),
        'u' => push(bytes, char::from_u32(digits(rest, 4)?)?),
        'U' => push(bytes, char::from_u32(digits(rest, 8)?)?),
        // `\c` and escapes that are not listed differ between shells.
        _ => return None,
    }
    Some(())
}

fn octal(first: char, rest: &mut Rest<'_>) -> u8 {
    let mut value = first.to_digit(8).unwrap_or(0);
    for _ in 0..2 {
        let Some(digit) = rest.peek().and_then(|c| c.to_digit(8)) else { break };
        value = value * 8 + digit;
        rest.next();
    }
    // A shell keeps the low eight bits.
    value.to_le_bytes()[0]
}

fn digits(rest: &mut Rest<'_>, limit: usize) -> Option<u32> {
    let mut value: Option<u32> = None;
    for _ in 0..limit {
        let Some(digit) = rest.peek().and_then(|c| c.to_digit(16)) else { break };
        value = Some(value.unwrap_or(0).checked_mul(16)?.checked_add(digit)?);
        rest.next();
    }
    value
}

/// Removes the quoting from literal text between double quotes. Returns `None` if the text is not literal to
/// a shell. `next` is the character after the text, which decides the meaning of a `$` at its end.
pub(crate) fn double(source: &str, next: Option<char>) -> Option<String> {
    let mut text = String::with_capacity(source.len());
    let mut rest = source.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' | '`' => return None,
            // A line continuation after `$` could hide an expansion.
            '$' if rest.peek() == Some(&'\\') => return None,
            '$' if starts_expansion(rest.peek().copied().or(next)) => return None,
            '\\' => match rest.next()? {
                '\n' => {}
                quoted @ ('$' | '`' | '"' | '\\') => text.push(quoted),
                other => text.extend(['\\', other]),
            },
            other => text.push(other),
        }
    }
    Some(text)
}

/// Returns whether a `$` before this character begins an expansion.
pub(crate) fn starts_expansion(next: Option<char>) -> bool {
    next.is_some_and(|c| c.is_alphanumeric() || "_({[*@#?$!-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ansi_c_quotes_end_where_a_shell_ends_them() {
        assert_eq!(ansi_c(r"$'sud\x6f\t\'\101'").as_deref(), Some("sudo\t'A"));
        assert_eq!(ansi_c(r"$'\u00e9\U1f600'").as_deref(), Some("é😀"));
        for hidden in [r"$'a\\' ; sudo ls ; echo '", r"$'a\0b'", r"$'\xff'", r"$'\cA'", r"$'a\'"] {
            assert_eq!(ansi_c(hidden), None, "{hidden}");
        }
    }

    #[test]
    fn double_quotes_keep_backslashes_before_ordinary_characters() {
        assert_eq!(double(r#"a\n\"\$x\`"#, Some('"')).as_deref(), Some(r#"a\n"$x`"#));
        assert_eq!(double("costs 5$", Some('"')).as_deref(), Some("costs 5$"));
        for active in ["$x", "`id`", "a\"b", "$(", "end\\", "$\\\n(id)"] {
            assert_eq!(double(active, Some('"')), None, "{active}");
        }
    }
}
