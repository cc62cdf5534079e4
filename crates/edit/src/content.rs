//! What the bytes of a file are good for.

use memchr::memchr;

/// Bounds how far into a file is looked for bytes that text does not have.
pub const SNIFFED_BYTES: usize = 8 * 1024;

/// What a file holds, judged by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text in some encoding.
    Text,
    /// An image that can be shown as it is.
    Image(ImageFormat),
    /// Anything else.
    Binary,
}

/// The image formats that agents can look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// Portable Network Graphics.
    Png,
    /// JPEG.
    Jpeg,
    /// Graphics Interchange Format.
    Gif,
    /// WebP.
    WebP,
}

impl ImageFormat {
    /// Returns the media type.
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
    /// Judges a file by its bytes, of which the first [`SNIFFED_BYTES`] are enough.
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
    fn content_is_told_by_the_first_bytes() {
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
