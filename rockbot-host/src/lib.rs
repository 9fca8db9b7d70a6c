//! x

pub mod bus;
