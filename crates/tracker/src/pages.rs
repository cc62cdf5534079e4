//! Paginated lists and conditional requests.
//!
//! Trackers page in two ways: REST lists link to the next page in a header, other APIs return a cursor.
//! [`PageCache::read_all`] follows links and keeps pages with their `ETag`; an unchanged page costs a 304, which
//! GitHub does not count against the rate limit. [`Cursor`] bounds both: a list that repeats a
//! cursor, exceeds [`MAX_PAGES`] or [`MAX_LIST_BYTES`] is an error, never a partial list.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use carrel_domain::{ByteSize, sync};

use crate::api::{Api, ApiRequest, ApiResponse};
use crate::error::{Result, TrackerError};
use crate::issue_records::IssueRecords;

/// Pages of one list. A tracker that announces further pages forever is not followed forever.
const MAX_PAGES: usize = 1_000;

/// The size of the issues of one list as JSON, which bounds memory. Ten thousand issues with long
/// descriptions stay below.
const MAX_LIST_BYTES: ByteSize = ByteSize::mib(256);

/// The size of cached pages, as they were sent; about a hundred pages of a hundred issues.
const MAX_CACHED_BYTES: usize = 16 * 1024 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct IssuePage {
    pub(crate) records: IssueRecords,
    pub(crate) next: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct PageCache(Mutex<HashMap<String, CachedPage>>);

#[derive(Clone, Debug)]
struct CachedPage {
    etag: String,
    page: IssuePage,
    bytes: usize,
}

impl PageCache {
    /// Reads a list from its first page to its last, with conditional requests for cached pages.
    pub(crate) async fn read_all(
        &self,
        api: &Api,
        first: String,
        read: impl Fn(&ApiResponse) -> Result<IssuePage>,
    ) -> Result<IssueRecords> {
        let mut records = IssueRecords::default();
        let mut cursor = Cursor::new(api.provider);
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
        read: impl Fn(&ApiResponse) -> Result<IssuePage>,
    ) -> Result<IssuePage> {
        let cached = self.lock().get(&path).cloned();
        let etag = cached.as_ref().map(|cached| cached.etag.clone());
        let response = api.request(ApiRequest { etag, ..ApiRequest::get(path.clone()) }).await?;
        if let (304, Some(cached)) = (response.status, cached) {
            return Ok(cached.page);
        }
        let page = read(&response)?;
        if let Some(etag) = response.header("etag") {
            let (etag, bytes) = (etag.to_owned(), response.body.len());
            self.insert(path, CachedPage { etag, page: page.clone(), bytes });
        }
        Ok(page)
    }

    /// Caches a page. If it does not fit, all other pages are dropped.
    fn insert(&self, path: String, cached: CachedPage) {
        let mut pages = self.lock();
        pages.remove(&path);
        let kept: usize = pages.values().map(|cached| cached.bytes).sum();
        if kept + cached.bytes > MAX_CACHED_BYTES {
            pages.clear();
        }
        if cached.bytes <= MAX_CACHED_BYTES {
            pages.insert(path, cached);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CachedPage>> {
        sync::lock(&self.0)
    }
}

#[derive(Debug)]
pub(crate) struct Cursor {
    provider: &'static str,
    /// The cursor or path of the current page; `None` for the first.
    pub(crate) at: Option<String>,
    pages: usize,
}

impl Cursor {
    pub(crate) fn new(provider: &'static str) -> Self {
        Self { provider, at: None, pages: 1 }
    }

    /// Moves to the next page. Returns false after the last; `field` names the cursor in errors.
    pub(crate) fn advance(
        &mut self,
        so_far: &IssueRecords,
        more: bool,
        next: Option<String>,
        field: &str,
    ) -> Result<bool> {
        if !more {
            return Ok(false);
        }
        let refused = |what: String| Err(TrackerError::pagination(self.provider, &what));
        let Some(next) = next else { return refused(format!("without a {field}")) };
        if self.at.as_ref() == Some(&next) {
            return refused(format!("it repeats the {field}"));
        }
        if so_far.bytes > MAX_LIST_BYTES.as_u64() {
            return refused(format!("the list exceeds {MAX_LIST_BYTES}"));
        }
        if self.pages == MAX_PAGES {
            return refused(format!("the list has more than {MAX_PAGES} pages"));
        }
        self.at = Some(next);
        self.pages += 1;
        Ok(true)
    }
}

/// Returns the query of the next page from a `Link` header.
///
/// Only the query is used: a forged host or path must not receive the credential.
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
    fn the_page_cache_is_bounded() {
        let cache = PageCache::default();
        let insert = |name: usize, bytes| {
            let page = IssuePage { records: IssueRecords::default(), next: None };
            cache.insert(name.to_string(), CachedPage { etag: "v".to_owned(), page, bytes });
        };
        for name in 0..100 {
            insert(name, MAX_CACHED_BYTES / 10);
            let kept: usize = cache.lock().values().map(|cached| cached.bytes).sum();
            assert!((1..=MAX_CACHED_BYTES).contains(&kept), "{kept}");
        }
        insert(7, MAX_CACHED_BYTES + 1);
        assert!(!cache.lock().contains_key("7"));
    }

    #[test]
    fn a_list_beyond_the_size_limit_is_an_error() {
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
                Ok(_) => assert!(page < 100, "the list is not bounded"),
                Err(error) => break error,
            }
        };
        assert_eq!(
            (page, refused.message.as_str()),
            (26, "Linear announced another page, but the list exceeds 256.0 MiB")
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
