//! The objects of a document.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::budget::Budget;
use super::filters;
use super::object::{Dict, Object, is_of_type};
use super::syntax::{Lexer, is_space};

/// Maximum size of all object streams together, decoded.
const MAX_OBJECT_STREAMS: usize = 32 << 20;

/// Maximum number of objects. Objects behind them are not found.
const MAX_OBJECTS: usize = 1 << 18;

/// Number of bytes in front of the word `obj` that may hold its number and generation.
const BEFORE_OBJ: usize = 32;

/// A document, with the places of its objects.
///
/// The places come from a search for `1 0 obj` and its like, from the first byte to the last, and
/// not from the table at the end: so damaged and incomplete documents are read as far as they go,
/// and no table leads the reader in circles. Of several objects with one number the last counts,
/// as it does where a document was changed by appending to it. An object is read whenever it is
/// asked for.
#[derive(Debug)]
pub(super) struct File<'a> {
    bytes: &'a [u8],
    pub(super) budget: &'a Budget,
    places: HashMap<u32, Place>,
    /// The decoded streams that hold objects.
    object_streams: Vec<Vec<u8>>,
    /// The dictionary where the document begins.
    pub(super) trailer: Dict,
    pub(super) is_encrypted: bool,
}

/// The place of an object.
#[derive(Debug, Clone)]
struct Place {
    /// The index of the stream that holds the object, or `None` for the file itself.
    stream: Option<usize>,
    at: usize,
    /// The bytes of the stream that the object is.
    data: Option<Range<usize>>,
}

impl<'a> File<'a> {
    /// Finds the objects of a document.
    pub(super) fn new(bytes: &'a [u8], budget: &'a Budget) -> Self {
        let mut file = Self {
            bytes,
            budget,
            places: HashMap::new(),
            object_streams: Vec::new(),
            trailer: Dict::new(),
            is_encrypted: false,
        };
        let mut at = 0;
        while at < bytes.len() && file.places.len() < MAX_OBJECTS {
            let rest = &bytes[at..];
            at = match rest[0] {
                b'o' if rest.starts_with(b"obj") => match number_before(bytes, at) {
                    Some(id) => file.register(id, at + 3),
                    None => at + 3,
                },
                b't' if rest.starts_with(b"trailer") => {
                    let mut lexer = Lexer::new(bytes, at + 7, budget);
                    let trailer = lexer.object();
                    file.note(trailer.as_ref().and_then(Object::dict));
                    lexer.at()
                }
                _ => at + 1,
            };
        }
        file
    }

    /// Returns the object of this number.
    pub(super) fn get(&self, id: u32) -> Option<Object> {
        let place = self.places.get(&id)?;
        let bytes = match place.stream {
            Some(stream) => self.object_streams.get(stream)?.as_slice(),
            None => self.bytes,
        };
        Lexer::new(bytes, place.at, self.budget).object()
    }

    /// Returns the object itself, or the object that it refers to.
    pub(super) fn resolve<'o>(&self, object: &'o Object) -> Option<Cow<'o, Object>> {
        match object.reference() {
            Some(id) => self.get(id).map(Cow::Owned),
            None => Some(Cow::Borrowed(object)),
        }
    }

    /// Returns an entry of a dictionary, or the object that it refers to.
    pub(super) fn entry<'o>(&self, dict: &'o Dict, key: &str) -> Option<Cow<'o, Object>> {
        self.resolve(dict.get(key)?)
    }

    /// Returns the dictionary and the decoded bytes of a stream.
    pub(super) fn stream(&self, object: &Object) -> Option<(Dict, Vec<u8>)> {
        let id = object.reference()?;
        let Object::Dict(dict) = self.get(id)? else { return None };
        let data = self.places.get(&id)?.data.clone()?;
        let decoded = filters::decode(&dict, &self.bytes[data], self.budget)?;
        Some((dict, decoded))
    }

    /// Returns the numbers of the objects of this type, in the order of the file.
    pub(super) fn of_type(&self, name: &str) -> Vec<u32> {
        let mut placed: Vec<_> = self
            .places
            .iter()
            .map(|(id, place)| (place.stream, place.at, *id))
            .collect();
        placed.sort_unstable();
        let is_one = |id: &u32| {
            self.get(*id)
                .as_ref()
                .and_then(Object::dict)
                .is_some_and(|dict| is_of_type(dict, name))
        };
        placed.into_iter().map(|(_, _, id)| id).filter(is_one).collect()
    }

    /// Takes up the object that begins at `at`, and returns the place behind it.
    fn register(&mut self, id: u32, at: usize) -> usize {
        let mut lexer = Lexer::new(self.bytes, at, self.budget);
        let object = lexer.object();
        let dict = object.as_ref().and_then(Object::dict);
        let data = dict.and_then(|dict| self.data(dict, lexer.at()));
        let end = data.as_ref().map_or(lexer.at(), |data| data.end);
        let place = Place {
            stream: None,
            at,
            data: data.clone(),
        };
        self.places.insert(id, place);
        if let (Some(dict), Some(data)) = (dict, data) {
            if is_of_type(dict, "ObjStm") && !self.is_encrypted {
                self.open(dict, &self.bytes[data]);
            } else if is_of_type(dict, "XRef") {
                self.note(Some(dict));
            }
        }
        end
    }

    /// Returns the bytes of the stream whose dictionary ends at `at`, or `None` if it is no stream.
    fn data(&self, dict: &Dict, at: usize) -> Option<Range<usize>> {
        let rest = &self.bytes[at..];
        let at = at + rest.iter().position(|byte| !is_space(*byte))?;
        let rest = self.bytes[at..].strip_prefix(b"stream")?;
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        let start = self.bytes.len() - rest.len();
        let stated = dict.get("Length").and_then(Object::natural).filter(|length| {
            let behind = rest.get(*length..).unwrap_or_default();
            let behind = &behind[..behind.len().min(11)];
            behind.trim_ascii_start().starts_with(b"endstream")
        });
        let length = stated.or_else(|| rest.windows(9).position(|window| window == b"endstream"));
        Some(start..start + length.unwrap_or(rest.len()))
    }

    /// Takes up the objects of an object stream.
    fn open(&mut self, dict: &Dict, raw: &[u8]) {
        let kept: usize = self.object_streams.iter().map(Vec::len).sum();
        let first = dict.get("First").and_then(Object::natural);
        let decoded =
            filters::decode(dict, raw, self.budget).filter(|decoded| kept + decoded.len() <= MAX_OBJECT_STREAMS);
        let (Some(first), Some(decoded)) = (first, decoded) else {
            return;
        };
        let index = &decoded[..first.min(decoded.len())];
        let mut lexer = Lexer::new(index, 0, self.budget);
        let mut next = || lexer.object().as_ref().and_then(Object::natural);
        let stream = Some(self.object_streams.len());
        while let (Some(id), Some(offset)) = (next(), next())
            && self.places.len() < MAX_OBJECTS
        {
            let at = first.saturating_add(offset);
            self.places.insert(id as u32, Place { stream, at, data: None });
        }
        self.object_streams.push(decoded);
    }

    /// Takes the entries of a trailer over. Entries of the last trailer count.
    fn note(&mut self, trailer: Option<&Dict>) {
        let Some(trailer) = trailer else { return };
        self.is_encrypted |= trailer.contains_key("Encrypt");
        for key in ["Root", "Info"] {
            let entry = trailer.get(key).map(|value| (key.to_owned(), value.clone()));
            self.trailer.extend(entry);
        }
    }
}

/// Returns the number of the object whose word `obj` is at `at`.
fn number_before(bytes: &[u8], at: usize) -> Option<u32> {
    let before = &bytes[at.saturating_sub(BEFORE_OBJ)..at];
    let mut words = before.rsplit(|byte| is_space(*byte)).filter(|word| !word.is_empty());
    let generation = words.next()?;
    let id = words.next()?;
    let start = id
        .iter()
        .rposition(|byte| !byte.is_ascii_digit())
        .map_or(0, |last| last + 1);
    let is_number = generation.iter().all(u8::is_ascii_digit) && before.last().is_some_and(|byte| is_space(*byte));
    std::str::from_utf8(&id[start..])
        .ok()?
        .parse()
        .ok()
        .filter(|_| is_number)
}
