//! Refuses templates that the template engine cannot take.
//!
//! The engine parses by recursion, takes quadratic time for white space, and panics
//! on large numbers. The limits count over the whole text, so that no quoting inside
//! it can hide anything from them; each is far above what a prompt needs and below
//! what a stack of 2 MiB holds.

/// Bounds the time of parsing.
pub(crate) const MAX_BYTES: usize = 256 << 10;

/// Bounds the time that one run of white space takes.
pub(crate) const MAX_SPACES: usize = 256;

/// Bounds nested blocks and chains of `elsif`.
pub(crate) const MAX_TAGS: usize = 128;

/// Bounds nested `a[b[c…`.
const MAX_OPEN_BRACKETS: usize = 200;

/// Bounds chains of `and` and `or` in one condition.
const MAX_CONNECTIVES: usize = 3_000;

/// Keeps numbers within 64 bits.
const MAX_DIGITS: usize = 18;

/// What is too much, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excess {
    pub(super) reason: String,
    pub(super) offset: usize,
}

/// Checks a template against all limits.
pub(super) fn check(template: &str) -> Result<(), Excess> {
    if template.len() > MAX_BYTES {
        return Err(Excess { reason: format!("more than {MAX_BYTES} bytes"), offset: 0 });
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

fn check_spaces(template: &str) -> Result<(), Excess> {
    let mut offset = 0;
    for run in template.split_inclusive(|c: char| !c.is_whitespace()) {
        if run.trim_end_matches(|c: char| !c.is_whitespace()).len() > MAX_SPACES {
            let reason = format!("more than {MAX_SPACES} bytes of white space in a row");
            return Err(Excess { reason, offset });
        }
        offset += run.len();
    }
    Ok(())
}

fn is_end_tag(after: &str) -> bool {
    after.trim_start_matches('-').trim_start().starts_with("end")
}

fn limit(mut places: impl Iterator<Item = usize>, most: usize, what: &str) -> Result<(), Excess> {
    match places.nth(most) {
        None => Ok(()),
        Some(offset) => Err(Excess { reason: format!("more than {most} {what}"), offset }),
    }
}

fn check_brackets(template: &str) -> Result<(), Excess> {
    let mut open: usize = 0;
    for (offset, byte) in template.bytes().enumerate() {
        match byte {
            b'[' | b'(' => open += 1,
            b']' | b')' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_OPEN_BRACKETS {
            let reason = format!("more than {MAX_OPEN_BRACKETS} open brackets");
            return Err(Excess { reason, offset });
        }
    }
    Ok(())
}

fn check_numbers(template: &str) -> Result<(), Excess> {
    let mut offset = 0;
    for run in template.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = run.bytes().take_while(u8::is_ascii_digit).count();
        if digits > MAX_DIGITS && is_inside_markup(&template[..offset]) {
            return Err(Excess { reason: "the number has too many digits".to_owned(), offset });
        }
        offset += run.len();
    }
    Ok(())
}

/// Tells whether the text before a place opens a tag or an output and does not close it.
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
