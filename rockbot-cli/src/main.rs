//! The program `rockbot`: an agent in the terminal.

use std::process::ExitCode;

use rockbot_cli::Program;

#[tokio::main]
async fn main() -> ExitCode {
    Program::of_user().run(std::env::args_os()).await
}
