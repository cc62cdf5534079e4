//! Limits of templates, which protect the process from the template engine.
//!
//! The engine parses by recursion, takes quadratic time for white space, and panics
//! on large numbers. The limits count over the whole text, so that no quoting inside
//! it can hide anything from them; each is far above what a prompt needs and below
//! what a stack of 2 MiB holds.

/// Bytes of a template, which bound the time of parsing.
pub(crate) const MAX_BYTES: usize = 256 << 10;

/// Bytes of white space in a row, which the engine parses in quadratic time.
pub(crate) const MAX_SPACES: usize = 256;

/// Tags, which bound nested blocks and chains of `elsif`.
pub(crate) const MAX_TAGS: usize = 128;

/// Brackets that are open at once, which bound nested `a[b[c…`.
const MAX_OPEN_BRACKETS: usize = 200;

/// `and` and `or` in the whole text, which bound the chains in one condition.
const MAX_CONNECTIVES: usize = 3_000;

/// Digits of a number in markup, so that it fits 64 bits.
const MAX_DIGITS: usize = 18;

/// The limit that a template exceeds, and the byte where it does.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LimitExceeded {
    pub(super) reason: String,
    pub(super) offset: usize,
}

pub(super) fn check(template: &str) -> Result<(), LimitExceeded> {
    if template.len() > MAX_BYTES {
        return Err(LimitExceeded { reason: format!("more than {MAX_BYTES} bytes"), offset: 0 });
    }
    check_spaces(template)?;
    let tags = template.match_indices("{%").filter(|(at, _)| !is_end_tag(&template[at + 2..]));
    limit(tags.map(|(at, _)| at), MAX_TAGS, "tags")?;
    let and = template.match_indices("and").map(|(at, _)| at);
    let or = template.match_indices("or").map(|(at, _)| at);
    limit(and.chain(or), MAX_CONNECTIVES, "times `and` or `or`")?;
    check_brackets(template)?;
    check_numbers(template)
}

fn check_spaces(template: &str) -> Result<(), LimitExceeded> {
    let mut offset = 0;
    for run in template.split_inclusive(|c: char| !c.is_whitespace()) {
        if run.trim_end_matches(|c: char| !c.is_whitespace()).len() > MAX_SPACES {
            let reason = format!("more than {MAX_SPACES} bytes of white space in a row");
            return Err(LimitExceeded { reason, offset });
        }
        offset += run.len();
    }
    Ok(())
}

fn is_end_tag(after: &str) -> bool {
    after.trim_start_matches('-').trim_start().starts_with("end")
}

fn limit(
    mut offsets: impl Iterator<Item = usize>,
    max: usize,
    what: &str,
) -> Result<(), LimitExceeded> {
    match offsets.nth(max) {
        None => Ok(()),
        Some(offset) => Err(LimitExceeded { reason: format!("more than {max} {what}"), offset }),
    }
}

fn check_brackets(template: &str) -> Result<(), LimitExceeded> {
    let mut open: usize = 0;
    for (offset, byte) in template.bytes().enumerate() {
        match byte {
            b'[' | b'(' => open += 1,
            b']' | b')' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_OPEN_BRACKETS {
            let reason = format!("more than {MAX_OPEN_BRACKETS} open brackets");
            return Err(LimitExceeded { reason, offset });
        }
    }
    Ok(())
}

fn check_numbers(template: &str) -> Result<(), LimitExceeded> {
    let mut offset = 0;
    for run in template.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = run.bytes().take_while(u8::is_ascii_digit).count();
        if digits > MAX_DIGITS && is_inside_markup(&template[..offset]) {
            return Err(LimitExceeded {
                reason: "the number has too many digits".to_owned(),
                offset,
            });
        }
        offset += run.len();
    }
    Ok(())
}

/// Returns whether the text opens a tag or an output that it does not close.
fn is_inside_markup(before: &str) -> bool {
    let opened = before.rfind("{{").max(before.rfind("{%"));
    let closed = before.rfind("}}").max(before.rfind("%}"));
    opened > closed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_bounded_by_the_run() {
        let spaces = |count| format!("a{}b", " ".repeat(count));
        assert_eq!(check(&spaces(MAX_SPACES).repeat(10)), Ok(()));
        assert_eq!(check(&spaces(MAX_SPACES + 1)).map_err(|excess| excess.offset), Err(1));
        assert!(check(&"\n".repeat(MAX_SPACES + 1)).is_err());
    }

    #[test]
    fn long_numbers_are_refused_in_markup_only() {
        let digits = "1".repeat(30);
        assert_eq!(check(&format!("id {digits} {{{{ a }}}} {digits}")), Ok(()));
        assert!(check(&format!("{{{{ {digits} }}}}")).is_err());
        assert!(check(&format!("{{% if a == {digits}")).is_err());
    }
}
