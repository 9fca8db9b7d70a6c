#![doc = include_str!("telemetry.md")]

mod book;
mod describe;

pub(crate) use book::MeterBook;
pub use describe::describe_metrics;
