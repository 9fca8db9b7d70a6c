//! The body of a response, bounded before and after decompression.
//!
//! gzip is decompressed by the client's own code (`egress/body.rs`): the decoders of `reqwest`
//! have no limit, and their features would change the requests to models, too, since features are
//! shared by all crates.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;

/// Number of bytes that are decoded before other tasks may run.
const PART: usize = 16 << 10;

/// A body while it is received.
pub(super) enum Body {
    Plain(Capped),
    Gzip {
        decoder: Box<MultiGzDecoder<Capped>>,
        received: usize,
        max: usize,
    },
}

/// A buffer that takes `max` bytes and no more.
#[derive(Debug, Default)]
pub(super) struct Capped {
    bytes: Vec<u8>,
    max: usize,
    is_full: bool,
}

/// The state of a body after a piece of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// More is welcome.
    More,
    /// The limit is reached; the rest is dropped.
    Full,
    /// The bytes are not in their encoding.
    Damaged,
}

impl Body {
    /// Creates an empty body in this encoding, or returns `None` if the encoding is not known.
    pub(super) fn new(encoding: &str, max: usize) -> Option<Self> {
        let buffer = Capped {
            max,
            ..Capped::default()
        };
        match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Plain(buffer)),
            "gzip" | "x-gzip" => Some(Self::Gzip {
                decoder: Box::new(MultiGzDecoder::new(buffer)),
                received: 0,
                max,
            }),
            _ => None,
        }
    }

    /// Takes the next piece. Other tasks run in between: small pieces can take long to decode.
    pub(super) async fn take(&mut self, piece: &[u8]) -> Received {
        for part in piece.chunks(PART) {
            let received = self.decode(part);
            if received != Received::More {
                return received;
            }
            tokio::task::yield_now().await;
        }
        Received::More
    }

    fn decode(&mut self, piece: &[u8]) -> Received {
        let taken = match self {
            Self::Plain(buffer) => buffer.write_all(piece),
            Self::Gzip { decoder, received, max } => {
                // A stream that decompresses to nothing must end, too.
                let allowed = piece.len().min(*max - *received);
                *received += allowed;
                let taken = decoder.write_all(&piece[..allowed]);
                if taken.is_ok() && allowed < piece.len() {
                    return Received::Full;
                }
                taken
            }
        };
        match taken {
            Ok(()) => Received::More,
            Err(_) if self.buffer().is_full => Received::Full,
            Err(_) => Received::Damaged,
        }
    }

    /// Returns the bytes of a body whose pieces were all taken, or `None` if it ends too early.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        match self {
            Self::Plain(buffer) => Some(buffer.bytes),
            // A response to HEAD and a response without content may name the encoding that a content would
            // have.
            Self::Gzip { received: 0, .. } => Some(Vec::new()),
            Self::Gzip { decoder, .. } => decoder.finish().ok().map(|buffer| buffer.bytes),
        }
    }

    /// Returns the bytes so far of a body whose pieces were not all taken.
    pub(super) fn cut(mut self) -> Vec<u8> {
        match &mut self {
            Self::Plain(buffer) => std::mem::take(&mut buffer.bytes),
            Self::Gzip { decoder, .. } => std::mem::take(&mut decoder.get_mut().bytes),
        }
    }

    fn buffer(&self) -> &Capped {
        match self {
            Self::Plain(buffer) => buffer,
            Self::Gzip { decoder, .. } => decoder.get_ref(),
        }
    }
}

impl Write for Capped {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let taken = piece.len().min(self.max - self.bytes.len());
        self.bytes.extend_from_slice(&piece[..taken]);
        self.is_full |= taken < piece.len();
        match taken {
            0 if !piece.is_empty() => Err(io::ErrorKind::FileTooLarge.into()),
            _ => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
