//! Images of one pixel, padded in the way of their format.

/// The formats that have a body of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageFormat {
    Png,
    Gif,
    Jpeg,
    WebP,
    Ico,
    Svg,
    /// Another format. Browsers go by the content of an image, not by its type.
    Any,
}

impl ImageFormat {
    /// The format of MIME type `image/<name>`.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "png" | "x-png" | "apng" => Self::Png,
            "gif" => Self::Gif,
            "jpeg" | "jpg" | "pjpeg" => Self::Jpeg,
            "webp" => Self::WebP,
            "x-icon" | "vnd.microsoft.icon" | "ico" => Self::Ico,
            "svg+xml" | "svg" => Self::Svg,
            _ => Self::Any,
        }
    }
}

/// An image of `size` bytes. If the format has none so small, the smallest GIF; if not even that fits, its first
/// bytes.
pub(super) fn body(format: ImageFormat, size: usize) -> Vec<u8> {
    let made = match format {
        ImageFormat::Png | ImageFormat::Any => png(size),
        ImageFormat::Gif => gif(size),
        ImageFormat::Jpeg => jpeg(size),
        ImageFormat::WebP => webp(size),
        ImageFormat::Ico => ico(size),
        ImageFormat::Svg => svg(size),
    };
    let mut out = made
        .or_else(|| gif(size))
        .unwrap_or_else(|| GIF_SMALLEST.to_vec());
    out.resize(size, 0);
    out
}

const PNG_HEAD: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55";
const PNG_PIXEL: &[u8] = b"\x78\x9c\x63\x60\0\0\0\x02\0\x01";
const PNG_CHUNK: usize = 12;

/// PNG (ISO/IEC 15948): padded with a private ancillary chunk, or past its end where no chunk fits.
fn png(size: usize) -> Option<Vec<u8>> {
    let mut padding = size.checked_sub(PNG_HEAD.len() + PNG_CHUNK + PNG_PIXEL.len() + PNG_CHUNK)?;
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(PNG_HEAD);
    while padding >= PNG_CHUNK {
        let data = (padding - PNG_CHUNK).min(i32::MAX as usize);
        png_chunk(&mut out, *b"ffPd", &vec![0; data]);
        padding -= data + PNG_CHUNK;
    }
    png_chunk(&mut out, *b"IDAT", PNG_PIXEL);
    png_chunk(&mut out, *b"IEND", &[]);
    Some(out)
}

fn png_chunk(out: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    let checked = out.len();
    out.extend_from_slice(&kind);
    out.extend_from_slice(data);
    let crc = crc32fast::hash(&out[checked..]);
    out.extend_from_slice(&crc.to_be_bytes());
}

/// A GIF without a colour table: the smallest tracking pixel that servers send.
const GIF_SMALLEST: &[u8] = b"GIF89a\x01\0\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\0;";
const GIF_HEAD: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff";
const GIF_PIXEL: &[u8] = b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// GIF, version 89a: padded with a comment extension (section 24), or past its end where none fits.
fn gif(size: usize) -> Option<Vec<u8>> {
    let Some(padding) = size.checked_sub(GIF_HEAD.len() + GIF_PIXEL.len()) else {
        return (size >= GIF_SMALLEST.len()).then(|| GIF_SMALLEST.to_vec());
    };
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(GIF_HEAD);
    if padding >= 5 {
        out.extend_from_slice(b"!\xfe");
        let mut left = padding - 3;
        while left > 0 {
            // A sub-block is a length and 1 to 255 bytes: never leave a single byte for the last one.
            let block = if left == 257 { 255 } else { left.min(256) };
            out.push((block - 1) as u8);
            out.resize(out.len() + block - 1, b'.');
            left -= block;
        }
        out.push(0);
    }
    out.extend_from_slice(GIF_PIXEL);
    Some(out)
}

/// JPEG (ITU-T T.81), baseline, grey: quantisation table of ones, two Huffman tables of one code each.
fn jpeg(size: usize) -> Option<Vec<u8>> {
    const HUFFMAN: &[u8] = b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut rest = b"\xff\xdb\0\x43\0".to_vec();
    rest.extend_from_slice(&[1; 64]);
    rest.extend_from_slice(b"\xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0");
    rest.extend_from_slice(b"\xff\xc4\0\x14\0");
    rest.extend_from_slice(HUFFMAN);
    rest.extend_from_slice(b"\xff\xc4\0\x14\x10");
    rest.extend_from_slice(HUFFMAN);
    rest.extend_from_slice(b"\xff\xda\0\x08\x01\x01\0\0\x3f\0\x3f\xff\xd9");
    let mut padding = size.checked_sub(2 + rest.len())?;
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(b"\xff\xd8");
    while padding >= 4 {
        let length = (padding - 2).min(65_535);
        out.extend_from_slice(b"\xff\xfe");
        out.extend_from_slice(&(length as u16).to_be_bytes());
        out.resize(out.len() + length - 2, b'.');
        padding -= length + 2;
    }
    out.extend_from_slice(&rest);
    Some(out)
}

/// WebP, lossless, padded past the end of its RIFF container.
fn webp(size: usize) -> Option<Vec<u8>> {
    const WEBP: &[u8] = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0";
    (size >= WEBP.len()).then(|| WEBP.to_vec())
}

/// ICO with one 32-bit bitmap at its end; the directory entry has its offset.
fn ico(size: usize) -> Option<Vec<u8>> {
    const BITMAP: usize = 40 + 4 + 4;
    let start = size.checked_sub(BITMAP).filter(|&start| start >= 22)?;
    let mut out = b"\0\0\x01\0\x01\0\x01\x01\0\0\x01\0\x20\0".to_vec();
    out.extend_from_slice(&(BITMAP as u32).to_le_bytes());
    out.extend_from_slice(&(start as u32).to_le_bytes());
    out.resize(start, 0);
    out.extend_from_slice(b"\x28\0\0\0\x01\0\0\0\x02\0\0\0\x01\0\x20\0");
    out.resize(size, 0);
    Some(out)
}

fn svg(size: usize) -> Option<Vec<u8>> {
    const SVG: &str = r#"<svg xmlns="http://www.w3.org/2000/svg"/>"#;
    let padding = size.checked_sub(SVG.len())?;
    Some(format!("{SVG}{}", super::place::comment("<!--", "-->", padding)).into_bytes())
}
