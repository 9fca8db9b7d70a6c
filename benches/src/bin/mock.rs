//! The mock model server as a process of its own, for the drivers: its conversations have TURNS
//! tool turns.
//!
//! Usage: `mock TURNS`. Prints the base URL that drivers take, and serves until it is killed.

fn main() {
    let turns = std::env::args()
        .nth(1)
        .and_then(|turns| turns.parse().ok())
        .unwrap_or(2);
    println!("http://{}/v1", rockbot_benches::mock::start(turns));
    loop {
        std::thread::park();
    }
}
