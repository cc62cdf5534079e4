//! The names of an index, each stored once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::words;

/// A name of an index.
pub(crate) type NameId = u32;

/// All names of an index, and the words that they consist of.
#[derive(Debug, Default)]
pub(crate) struct Names {
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, NameId>,
    /// The names that have a word.
    by_word: HashMap<Box<str>, Vec<NameId>>,
    bytes: usize,
}

/// The memory of a name beside its text: two pointers with lengths, counts and the slot of a map.
const NAME_OVERHEAD: usize = 64;

/// The memory of the entry of a name under one of its words.
const WORD_BYTES: usize = 8;

impl Names {
    /// Returns the id of a name, which is new if it is not known.
    pub(crate) fn intern(&mut self, name: &str) -> NameId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = NameId::try_from(self.texts.len()).unwrap_or(NameId::MAX);
        let text: Arc<str> = name.into();
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        self.bytes += name.len() + NAME_OVERHEAD;
        let (by_word, bytes) = (&mut self.by_word, &mut self.bytes);
        words::of_name(name, |word| {
            *bytes += WORD_BYTES;
            match by_word.get_mut(word) {
                Some(ids) => {
                    if ids.last() != Some(&id) {
                        ids.push(id);
                    }
                }
                None => {
                    by_word.insert(word.into(), vec![id]);
                }
            }
        });
        id
    }

    pub(crate) fn id(&self, name: &str) -> Option<NameId> {
        self.ids.get(name).copied()
    }

    pub(crate) fn text(&self, id: NameId) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn with_word(&self, word: &str) -> &[NameId] {
        self.by_word.get(word).map_or(&[], Vec::as_slice)
    }

    /// Drops all but the oldest names.
    pub(crate) fn truncate(&mut self, count: usize) {
        while self.texts.len() > count {
            let Some(name) = self.texts.pop() else { return };
            self.ids.remove(&name);
            self.bytes -= name.len() + NAME_OVERHEAD;
            let (by_word, bytes) = (&mut self.by_word, &mut self.bytes);
            words::of_name(&name, |word| {
                *bytes -= WORD_BYTES;
                let Some(ids) = by_word.get_mut(word) else { return };
                // Ids are in order, so that those of dropped names are at the end.
                while ids.last().is_some_and(|id| *id as usize >= self.texts.len()) {
                    ids.pop();
                }
                if ids.is_empty() {
                    by_word.remove(word);
                }
            });
        }
    }

    /// Keeps the names that are used, in their order, and returns the new id of each old one.
    pub(crate) fn retain(&mut self, is_used: &[bool]) -> Vec<NameId> {
        let old = std::mem::take(self);
        let keep = |(text, is_used): (Arc<str>, &bool)| {
            if *is_used { self.intern(&text) } else { NameId::MAX }
        };
        old.texts.into_iter().zip(is_used).map(keep).collect()
    }

    /// Returns the memory in use, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
