//! Files that begin with a word for their format and end with a checksum of everything before it.

use carrel_domain::encoding::Reader;

use crate::object_id::ObjectId;

/// Returns the bytes with their checksum.
pub(crate) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = ObjectId::of(&bytes);
    bytes.extend_from_slice(checksum.as_bytes());
    bytes
}

/// Returns a reader of what follows the word for the format; `None` if the bytes are damaged or of another format.
pub(crate) fn open<'a>(bytes: &'a [u8], magic: &[u8]) -> Option<Reader<'a>> {
    let (body, checksum) = bytes.split_last_chunk::<{ ObjectId::LENGTH }>()?;
    let is_whole = ObjectId::of(body).as_bytes() == checksum;
    body.strip_prefix(magic).filter(|_| is_whole).map(Reader::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_bytes_of_the_format_are_read() {
        let sealed = seal(b"word-1 and the rest".to_vec());
        assert_eq!(open(&sealed, b"word-1").unwrap().rest(), b" and the rest");
        assert!(open(&sealed, b"word-2").is_none());
        for place in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[place] ^= 1;
            assert!(open(&damaged, b"word-1").is_none(), "{place}");
            assert!(open(&sealed[..place], b"").is_none(), "{place}");
        }
    }
}
