//! Lists such as `key=value,key=value`, in which anything may be percent-encoded.

use percent_encoding::percent_decode_str;

/// Reads a list. Says which entry is none, by its number: its text may be secret.
pub(super) fn read(text: &str) -> Result<Vec<(String, String)>, String> {
    let entries = text.split(',').map(str::trim).enumerate();
    entries
        .filter(|(_, entry)| !entry.is_empty())
        .map(|(index, entry)| {
            let pair = pair(entry);
            pair.ok_or_else(|| format!("entry {} is not of the form key=value", index + 1))
        })
        .collect()
}

fn pair(entry: &str) -> Option<(String, String)> {
    let (key, value) = entry.split_once('=')?;
    let plain = |text: &str| {
        let decoded = percent_decode_str(text.trim()).decode_utf8().ok()?;
        (!decoded.contains(char::is_control)).then(|| decoded.into_owned())
    };
    let key = plain(key).filter(|key| !key.is_empty())?;
    Some((key, plain(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn lists_are_read_by_the_table() {
        let owned = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            Ok::<Vec<_>, String>(pairs.collect())
        };
        for (text, pairs) in [
            ("", &[][..]),
            (" , ,", &[]),
            ("a=b", &[("a", "b")]),
            ("a=b=c, d = e ", &[("a", "b=c"), ("d", "e")]),
            ("a=", &[("a", "")]),
            ("auth=Bearer%20x%2Cy,k%C3%A9y=%C3%A4", &[("auth", "Bearer x,y"), ("kéy", "ä")]),
            ("a=100%", &[("a", "100%")]),
        ] {
            assert_eq!(read(text), owned(pairs), "{text}");
        }
        for text in ["secret", "a=b,secret", "=secret", "a=%ff", "a=b%0d%0ac: d", "%00=x"] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("entry ") && !error.contains("secret"), "{text}: {error}");
        }
    }
}
