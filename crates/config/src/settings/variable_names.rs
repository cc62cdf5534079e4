//! Lists of environment variables that hooks and agents may see.

use crate::environment;
use crate::schema::{Setting, SettingReader};
use crate::secrets;

/// Variables with this prefix are set by Carrel itself.
const OWN_PREFIX: &str = "CARREL_";

pub(super) const HOLDS_SECRET: &str = "which holds a secret of a tracker or the server; they never see it, so give them a credential of \
     their own under another name";

/// Reads a list of variable names; withheld and reserved ones are errors.
pub(super) fn read(reader: &mut SettingReader<'_>, key: &Setting) -> Vec<String> {
    let names = reader.texts(key).unwrap_or_default();
    for name in &names {
        if let Some(complaint) = rejection_reason(name) {
            reader.problem(key, format!("lists {name:?}, {complaint}"));
        }
    }
    names
}

fn rejection_reason(name: &str) -> Option<&'static str> {
    if !environment::is_variable_name(name) {
        return Some("which is not the name of a variable");
    }
    if secrets::is_withheld(name) {
        return Some(HOLDS_SECRET);
    }
    name.starts_with(OWN_PREFIX).then_some("which Carrel sets itself")
}
