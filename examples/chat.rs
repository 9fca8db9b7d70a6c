//! The program `rockbot` as an example: an agent in the terminal, which streams answers, shows tool
//! calls while they run, and asks for approval where a call needs it. Data is kept in `data/chat`.
//!
//! `cargo run --example chat`, or `cargo run --example chat -- "What is 6 * 7?"`. Works without a
//! key.

use std::process::ExitCode;

use rockbot_cli::Program;

#[tokio::main]
async fn main() -> ExitCode {
    let program = Program::of_user().with_data_folder("data/chat").without_settings_file();
    program.run(std::env::args_os()).await
}
