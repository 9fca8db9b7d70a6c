//! Shared parts of the benches and the drivers: the work, its floor, a mock model server, and CPU
//! time.

pub mod allocated;
pub mod amqp_floor;
pub mod callgrind;
pub mod chunking;
pub mod dialogues;
pub mod dispatch;
pub mod dreams;
pub mod floor;
pub mod function_suite;
pub mod load;
pub mod mcp;
pub mod mock;
pub mod nested;
pub mod ours;
pub mod planted;
pub mod search;
pub mod stream;
pub mod talk;
pub mod whole;

use serde::Deserialize;

/// The arguments of every tool.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub struct Args {
    /// a small integer
    pub a: i64,
    /// some text
    pub b: String,
}

/// Runs the body of every tool.
pub fn work(args: &Args) -> String {
    format!("result {} len {}", args.a, args.b.len())
}

/// The user's message.
pub const USER: &str = "Please work out the answer with the tools and report it.";

/// Returns a system prompt of 1 KiB.
pub fn instructions() -> String {
    let mut text = String::from("You are a helpful agent. ");
    while text.len() < 1024 {
        text.push_str("Follow the rules of the house. ");
    }
    text
}

/// Returns the description of tool number `index`.
pub fn description(index: usize) -> String {
    format!("Tool number {index}: does a small deterministic thing with its two arguments and returns a short text.")
}

/// Returns the CPU seconds of the calling thread so far.
pub fn thread_seconds() -> f64 {
    // SAFETY: `clock_gettime` fills the struct that it is given; both its fields are plain numbers.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time
    };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the CPU seconds of this process so far, and its peak memory in MiB.
pub fn process_usage() -> (f64, f64) {
    // SAFETY: `getrusage` fills the struct that it is given; all its fields are plain numbers.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (
        seconds(usage.ru_utime) + seconds(usage.ru_stime),
        usage.ru_maxrss as f64 / 1024.0,
    )
}

/// Returns the median of some figures.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
