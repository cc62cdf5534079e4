//! Lists that come in pages, and pages that have not changed.

use std::collections::HashMap;
use std::sync::Mutex;

use carrel_domain::{ByteSize, sync};

use crate::api::{Api, ApiRequest, ApiResponse};
use crate::error::TrackerError;
use crate::issue_records::IssueRecords;

/// How many pages a list may have. A tracker that never stops saying "more" is not followed forever.
const MAX_PAGES: usize = 1_000;

/// What the issues of a list may have, as JSON. Ten thousand with long descriptions have less; a tracker
/// that sends more does not fill the memory.
const MAX_LIST: ByteSize = ByteSize::mib(256);

/// What pages may have that are kept for the next time, as they were sent.
const MAX_REMEMBERED_BYTES: usize = 16 * 1024 * 1024;

/// A page as it was when it was last read.
#[derive(Clone, Debug)]
pub(crate) struct IssuePage {
    pub(crate) records: IssueRecords,
    /// Where the rest is.
    pub(crate) next: Option<String>,
}

/// Pages by where they were read.
#[derive(Debug, Default)]
pub(crate) struct PageCache(Mutex<HashMap<String, CachedPage>>);

/// A page that is kept, its version, and how long it was.
#[derive(Clone, Debug)]
struct CachedPage {
    version: String,
    page: IssuePage,
    bytes: usize,
}

impl PageCache {
    /// Reads a list from its first page to its last. A page that has not changed is not sent again.
    pub(crate) async fn read_all(
        &self,
        api: &Api,
        first: String,
        read: impl Fn(&ApiResponse) -> Result<IssuePage, TrackerError>,
    ) -> Result<IssueRecords, TrackerError> {
        let mut records = IssueRecords::default();
        let mut cursor = Cursor::new(api.provider());
        loop {
            let path = cursor.at.clone().unwrap_or_else(|| first.clone());
            let page = self.page(api, path, &read).await?;
            records.append(page.records);
            if !cursor.advance(&records, page.next.is_some(), page.next, "next page")? {
                return Ok(records);
            }
        }
    }

    async fn page(
        &self,
        api: &Api,
        path: String,
        read: impl Fn(&ApiResponse) -> Result<IssuePage, TrackerError>,
    ) -> Result<IssuePage, TrackerError> {
        let known = self.lock().get(&path).cloned();
        let version = known.as_ref().map(|known| known.version.clone());
        let answer =
            api.ask(ApiRequest { known: version, ..ApiRequest::get(path.clone()) }).await?;
        if let (true, Some(known)) = (answer.is_unchanged(), known) {
            return Ok(known.page);
        }
        let page = read(&answer)?;
        if let Some(version) = answer.version() {
            self.keep(path, CachedPage { version, page: page.clone(), bytes: answer.body.len() });
        }
        Ok(page)
    }

    /// Keeps a page. Where there is no room, those that were kept before give way.
    fn keep(&self, path: String, known: CachedPage) {
        let mut pages = self.lock();
        pages.remove(&path);
        let kept: usize = pages.values().map(|known| known.bytes).sum();
        if kept + known.bytes > MAX_REMEMBERED_BYTES {
            pages.clear();
        }
        if known.bytes <= MAX_REMEMBERED_BYTES {
            pages.insert(path, known);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, CachedPage>> {
        sync::lock(&self.0)
    }
}

/// A place in a list that is read from page to page.
#[derive(Debug)]
pub(crate) struct Cursor {
    provider: &'static str,
    /// Where the page begins; nothing for the first.
    pub(crate) at: Option<String>,
    pages: usize,
}

impl Cursor {
    pub(crate) fn new(provider: &'static str) -> Self {
        Self { provider, at: None, pages: 1 }
    }

    /// Goes on to the next page if there is one. `field` is what would say where it is.
    pub(crate) fn advance(
        &mut self,
        so_far: &IssueRecords,
        more: bool,
        next: Option<String>,
        field: &str,
    ) -> Result<bool, TrackerError> {
        if !more {
            return Ok(false);
        }
        let missing =
            || TrackerError::lost(self.provider, &format!("not where: there is no {field}"));
        let next = next.ok_or_else(missing)?;
        if self.at.as_ref() == Some(&next) {
            return Err(TrackerError::lost(
                self.provider,
                &format!("it gives the same {field} again"),
            ));
        }
        if so_far.bytes() > MAX_LIST.as_u64() {
            return Err(TrackerError::lost(
                self.provider,
                &format!("it has said {MAX_LIST} already"),
            ));
        }
        self.at = Some(next);
        self.pages += 1;
        if self.pages > MAX_PAGES { Err(too_long(self.provider)) } else { Ok(true) }
    }
}

fn too_long(provider: &str) -> TrackerError {
    TrackerError::lost(provider, &format!("it has said so {MAX_PAGES} times"))
}

/// Returns the query of the next page, as a `Link` header gives it.
///
/// Only the query is taken: the rest of the address is ours to know.
pub(crate) fn next_page(link: &str) -> Option<String> {
    let entry = link.split(',').find(|entry| entry.contains("rel=\"next\""))?;
    let address = entry.trim().strip_prefix('<')?.split('>').next()?;
    let query = address.split_once('?')?.1;
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    query.bytes().all(plain).then(|| query.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn what_is_kept_is_bounded() {
        let remembered = PageCache::default();
        let keep = |name: usize, bytes| {
            let page = IssuePage { records: IssueRecords::default(), next: None };
            remembered.keep(name.to_string(), CachedPage { version: "v".to_owned(), page, bytes });
        };
        for name in 0..100 {
            keep(name, MAX_REMEMBERED_BYTES / 10);
            let kept: usize = remembered.lock().values().map(|known| known.bytes).sum();
            assert!((1..=MAX_REMEMBERED_BYTES).contains(&kept), "{kept}");
        }
        keep(7, MAX_REMEMBERED_BYTES + 1);
        assert!(!remembered.lock().contains_key("7"));
    }

    #[test]
    fn a_list_that_fills_the_memory_is_not_read_on() {
        let mut cursor = Cursor::new("Linear");
        let description = "x".repeat(10 << 20);
        let issue = json!({
            "id": "1", "identifier": "ABC-1", "title": "t", "state": "Todo", "labels": [],
            "blocked_by": [], "dispatchable": true, "description": description,
        });
        let issue: crate::Issue = serde_json::from_value(issue).unwrap();
        let (mut records, mut page) = (IssueRecords::default(), 0);
        let refused = loop {
            let mut more = IssueRecords::default();
            more.add(Some(issue.clone()));
            records.append(more);
            page += 1;
            match cursor.advance(&records, true, Some(page.to_string()), "cursor") {
                Ok(_) => assert!(page < 100, "it is read on"),
                Err(fault) => break fault,
            }
        };
        assert_eq!(
            (page, refused.message.as_str()),
            (26, "Linear says that there is more, but it has said 256.0 MiB already")
        );
    }

    #[test]
    fn only_the_query_of_a_link_is_followed() {
        let link = "<https://evil.example/x?page=2&state=open>; rel=\"next\", <https://a/?page=9>; rel=\"last\"";
        assert_eq!(next_page(link).as_deref(), Some("page=2&state=open"));
        assert_eq!(next_page("<https://a/?page=9>; rel=\"last\""), None);
        assert_eq!(next_page("<https://a/?page=9#x>; rel=\"next\""), None);
    }
}
