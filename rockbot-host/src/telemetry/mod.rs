#![doc = include_str!("telemetry.md")]

mod book;
mod describe;
mod traces;

pub(crate) use book::MeterBook;
pub use describe::describe_metrics;
pub use traces::TraceBridge;
pub(crate) use traces::Traces;
