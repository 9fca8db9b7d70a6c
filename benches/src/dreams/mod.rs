//! Measures whether dreams help: a library of conversations, a week of dreams, and questions.
//!
//! The library is made by a grammar of tuples (person, property, value), so the judge compares
//! texts, and the scripted model that dreams knows the tuple behind each text.

mod grammar;
mod library;
mod model;
mod plot;
mod reader;
mod week;
mod work;

pub use library::Library;
pub use model::Scripted;
pub use reader::Score;
pub use week::{MEASURED, searched, week, whole};
pub use work::{SKILL_PASSES, skills};
