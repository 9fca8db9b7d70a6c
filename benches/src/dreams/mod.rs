//! Measures whether dreams help: a library of conversations, questions about it, and a week of
//! dreams in between.
//!
//! The library is made by a grammar of tuples (person, property, value), so the judge compares
//! texts, and the scripted model that dreams knows the tuple behind each text.

mod grammar;
mod library;
mod model;
mod reader;
mod story;
mod week;

pub use library::Library;
pub use model::Dreamer;
pub use reader::Score;
pub use week::{MEASURED, before, searched, week, whole};
