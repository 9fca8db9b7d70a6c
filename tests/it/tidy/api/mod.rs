//! The public API of all crates, listed from their sources and compared with the checked-in
//! listings.
//!
//! A change of the API is thus a change of a text file in the same commit, which a reviewer
//! reads. Items that a macro of ours creates are listed as the call of that macro.

mod crates;
mod items;
mod tokens;

use std::fmt::Write;
use std::fs;

use self::crates::Crates;
use self::items::Api;
use super::source::{LIBRARIES, root};

/// The variable that makes the test write the listings instead of comparing them.
const UPDATE: &str = "UPDATE_PUBLIC_API";

#[test]
fn the_public_api_is_the_listed_one() {
    let crates = Crates::read(root(), &LIBRARIES);
    let api = Api::of(&crates);
    let folder = root().join("tests/it/tidy/public_api");
    let mut changed = String::new();
    for name in LIBRARIES.into_iter().chain(["rockbot"]) {
        let listing = api.listing(&name.replace('-', "_"));
        let file = folder.join(format!("{name}.txt"));
        if std::env::var_os(UPDATE).is_some() {
            fs::create_dir_all(&folder).expect("the folder of the listings");
            fs::write(&file, &listing).expect("a listing is written");
        }
        let listed = fs::read_to_string(&file).unwrap_or_default();
        for line in difference(&listed, &listing) {
            let _ = writeln!(changed, "{name} {line}");
        }
    }
    assert!(
        changed.is_empty(),
        "the public API has changed. If you mean it, run `{UPDATE}=1 cargo test --all-features --test it public_api`, \
         and say why in the commit:\n{changed}"
    );
}

#[test]
fn an_item_is_listed_under_its_public_path() {
    let crates = Crates::of([(
        "a",
        "mod inner { #[derive(Clone)] pub struct Seen<T> { pub of: Vec<T>, hidden: u8 } \
         impl<T> Seen<T> { pub fn new(of: &[T]) -> Self { todo!() } fn own(&self) {} } \
         impl<T: Copy> From<T> for Seen<T> { fn from(of: T) -> Self { todo!() } } \
         pub struct Unseen; pub(crate) struct Own; } \
         pub use inner::Seen as Shown; use inner::Unseen; \
         pub trait Act { fn act(&self, by: &dyn Act) -> u8; fn idle(&self) {} } \
         #[non_exhaustive] pub enum Kind { One, Two { of: u8 }, Three(u8) } pub use std::fmt; \
         pub use other::other; struct Made; impl Made { pub fn with(mut self) -> Self { self } } pub type Make = Made;",
    )]);
    assert_eq!(
        Api::of(&crates).listing("a"),
        "\
enum a::Kind
  #[non_exhaustive]
  One
  Two { of: u8 }
  Three(u8)

struct a::Shown<T>
  #[derive(Clone)]
  of: Vec<T>
  (private fields)
  fn new(of: &[T]) -> Self
  impl<T: Copy> From<T> for Seen<T>

trait a::Act
  fn act(&self, by: &dyn Act) -> u8
  fn idle(&self) (provided)

type a::Make = Made
  fn with(self) -> Self

use a::fmt = std::fmt
use a::other = other::other
"
    );
}

/// Structs that will never grow: each is one value with a name.
const CLOSED: [&str; 4] = ["MicroUsd", "LogOffset", "JsonOutput<T>", "Fence"];

/// A struct whose fields are all public can be written as a literal, which a new field would break.
#[test]
fn a_struct_with_public_fields_can_grow() {
    let crates = Crates::read(root(), &LIBRARIES);
    let api = Api::of(&crates);
    let listings = LIBRARIES.map(|name| api.listing(&name.replace('-', "_")));
    let closed: Vec<_> = listings.iter().flat_map(|listing| literals(listing)).collect();
    let names = closed.iter().map(|path| path.rsplit("::").next().unwrap_or_default());
    let names: std::collections::BTreeSet<_> = names.collect();
    assert_eq!(
        names,
        CLOSED.into(),
        "mark these structs with `#[non_exhaustive]` and give them `new` and `with_…`: {closed:?}"
    );
}

#[test]
fn a_literal_needs_public_fields_alone() {
    let crates = Crates::of([(
        "a",
        "pub struct Open { pub of: u8 } #[non_exhaustive] pub struct Marked { pub of: u8 } \
         pub struct Kept { pub of: u8, own: u8 } pub struct Unit;",
    )]);
    assert_eq!(literals(&Api::of(&crates).listing("a")), ["a::Open"]);
}

/// Returns the paths of the structs that other crates can write as literals.
fn literals(listing: &str) -> Vec<String> {
    let structs = listing.split("\n\n").filter_map(|entry| entry.strip_prefix("struct "));
    let open = structs.filter(|entry| {
        let is_field = |line: &str| line.strip_prefix("  ").is_some_and(is_field);
        let is_closed = |line: &str| matches!(line.trim(), "#[non_exhaustive]" | "(private fields)");
        entry.lines().skip(1).any(is_field) && !entry.lines().any(is_closed)
    });
    open.filter_map(|entry| entry.lines().next().map(str::to_owned))
        .collect()
}

/// Returns `true` for a line such as `name: Type`.
fn is_field(line: &str) -> bool {
    line.split_once(": ")
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

/// A provided method that is not forwarded would silently do what the trait does by default.
#[test]
fn an_arc_forwards_every_method() {
    let forwarded = items::forwarded(&Crates::read(root(), &LIBRARIES));
    assert!(forwarded.len() > 20, "the implementations were found: {forwarded:?}");
    for (name, methods, given) in forwarded {
        assert_eq!(given, methods, "{name} for Arc<T>");
    }
}

/// Returns the lines that only one of the texts has, each under the item that it belongs to.
fn difference(before: &str, after: &str) -> Vec<String> {
    let old = in_context(before);
    let new = in_context(after);
    let gone = old
        .iter()
        .filter(|line| !new.contains(*line))
        .map(|line| format!("- {line}"));
    let come = new
        .iter()
        .filter(|line| !old.contains(*line))
        .map(|line| format!("+ {line}"));
    gone.chain(come).collect()
}

/// Puts the name of its item before each line.
fn in_context(text: &str) -> std::collections::BTreeSet<String> {
    let mut item = "";
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| match line.strip_prefix("  ") {
            Some(member) => format!("{item}: {member}"),
            None => {
                item = line;
                line.to_owned()
            }
        })
        .collect()
}
