//! Classification of files by their first bytes: text, an image that a model can be shown, or
//! binary.

use memchr::memchr;

/// Length of the prefix that is searched for NUL bytes; git uses 8,000 bytes for the same test.
pub const SNIFFED_BYTES: usize = 8 * 1024;

/// The kind of a file, judged by its first [`SNIFFED_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// No NUL byte was found; [`Document`](crate::Document) can decode it.
    Text,
    /// An image that starts with the magic number of its format.
    Image(ImageFormat),
    /// A file with NUL bytes that are not part of UTF-16 text.
    Binary,
}

/// The image formats that models accept as input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the name of the format")]
pub enum ImageFormat {
    Png,
    Jpeg,
    Gif,
    WebP,
}

impl ImageFormat {
    /// Returns the media type, such as `image/png`.
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
        }
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let starts = |magic: &[u8]| bytes.starts_with(magic);
        if starts(b"\x89PNG\r\n\x1A\n") {
            Some(Self::Png)
        } else if starts(b"\xFF\xD8\xFF") {
            Some(Self::Jpeg)
        } else if starts(b"GIF87a") || starts(b"GIF89a") {
            Some(Self::Gif)
        } else if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Self::WebP)
        } else {
            None
        }
    }
}

impl Content {
    /// Classifies a file by its bytes, of which the first [`SNIFFED_BYTES`] are enough.
    pub fn of(bytes: &[u8]) -> Self {
        if let Some(format) = ImageFormat::of(bytes) {
            return Self::Image(format);
        }
        let head = &bytes[..bytes.len().min(SNIFFED_BYTES)];
        if has_nul(head) { Self::Binary } else { Self::Text }
    }
}

fn has_nul(head: &[u8]) -> bool {
    // In UTF-16 every other byte of plain text is zero, but no pair of bytes is.
    match head.strip_prefix(b"\xFF\xFE").or_else(|| head.strip_prefix(b"\xFE\xFF")) {
        Some(rest) => rest.as_chunks::<2>().0.contains(&[0, 0]),
        None => memchr(0, head).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn content_is_classified_by_the_first_bytes() {
        let far = [vec![b'x'; SNIFFED_BYTES], vec![0]].concat();
        let cases: [(&[u8], Content); 12] = [
            (b"", Content::Text),
            (b"plain\n", Content::Text),
            (b"caf\xE9", Content::Text),
            (b"\x7FELF\0", Content::Binary),
            (b"\xFF\xFEa\0b\0", Content::Text),
            (b"\xFF\xFE\0\0a\0\0\0", Content::Binary),
            (b"\x89PNG\r\n\x1A\n\0\0", Content::Image(ImageFormat::Png)),
            (b"\xFF\xD8\xFF\xE0\0", Content::Image(ImageFormat::Jpeg)),
            (b"GIF89a\0", Content::Image(ImageFormat::Gif)),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Content::Image(ImageFormat::WebP)),
            (b"RIFF\x10\0\0\0WAVEfmt ", Content::Binary),
            (&far, Content::Text),
        ];
        for (bytes, want) in cases {
            assert_eq!(Content::of(bytes), want, "{:?}", &bytes[..bytes.len().min(12)]);
        }
    }

    #[test]
    fn image_formats_have_media_types() {
        assert_eq!(ImageFormat::WebP.mime_type(), "image/webp");
        assert_eq!(ImageFormat::Jpeg.mime_type(), "image/jpeg");
    }
}
