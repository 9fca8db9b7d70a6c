//! Evaluations of agents, and recordings of model servers for tests.
//!
//! * A [`Dataset`] has cases: questions, and [expectations](Expect) of the answers: facts, JSON
//!   of a schema, calls of tools, a statement that a model judges. It is a file with a case in each
//!   line.
//! * An [`Evaluation`] runs them against a [`Subject`], such as an agent, several at a time and
//!   several times each.
//! * A [`Report`] is a table, JSON, or JUnit for a service that runs tests. [`Report::compare`] says
//!   which cases got better or worse, and how much of it may be chance.
//! * A [`Cassette`] records a model server once, and replays it in tests without a server.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod cassette;
mod compare;
mod cut;
mod dataset;
mod evaluation;
mod expect;
mod facts;
mod judge;
mod junit;
mod report;
mod subject;

#[cfg(test)]
mod tests;

pub use cassette::{Cassette, CassetteError};
pub use compare::{ComparedCase, Comparison};
pub use dataset::{Case, CaseTurn, Dataset, DatasetError};
pub use evaluation::{Evaluation, EvaluationError};
pub use expect::{Expect, ExpectedCall};
pub use report::{CaseResult, Report};
pub use subject::{Answer, Approving, MadeCall, Subject};
