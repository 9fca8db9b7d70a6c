//! The public API of all crates, listed from their sources and compared with the checked-in listings.
//!
//! A change of the API is thus a change of a text file in the same commit, which a reviewer reads. Items that a macro
//! of ours creates are listed as the call of that macro.

mod crates;
mod items;
mod tokens;

use std::fmt::Write;
use std::fs;

use self::crates::Crates;
use self::items::Api;
use super::source::root;

/// The variable that makes the test write the listings instead of comparing them.
const UPDATE: &str = "UPDATE_PUBLIC_API";

const LIBRARIES: [&str; 5] = [
    "rockbot-core",
    "rockbot-text-calls",
    "rockbot-host",
    "rockbot-llm",
    "rockbot-memory",
];

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
         and note a breaking change in CHANGELOG.md:\n{changed}"
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
    let (old, new) = (in_context(before), in_context(after));
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
