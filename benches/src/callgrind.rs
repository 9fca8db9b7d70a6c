//! Counts of instructions: the one figure that a busy machine does not change.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

/// The argument in place of which a driver gets the length of its run.
pub const LENGTH: &str = "LENGTH";

/// A driver of this crate with arguments, one of which is the length of its run.
#[derive(Debug, Clone)]
pub struct Driver<'a> {
    /// Name of the binary.
    pub name: &'a str,
    /// Arguments; [`LENGTH`] stands for the length of the run.
    pub arguments: Vec<&'a str>,
    /// Variables of its environment.
    pub environment: Vec<(&'a str, &'a str)>,
}

impl Driver<'_> {
    /// Returns the command that runs the driver for `length`, behind `wrapper` and its arguments if
    /// there are any.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder of this program is unknown.
    pub fn command(&self, wrapper: &[&str], length: usize) -> Result<Command, Box<dyn Error>> {
        let binary = binary(self.name)?;
        let mut command = match wrapper {
            [] => Command::new(binary),
            [program, options @ ..] => {
                let mut command = Command::new(program);
                command.args(options).arg(binary);
                command
            }
        };
        let length = length.to_string();
        command.args(self.arguments.iter().map(|argument| match *argument {
            LENGTH => &*length,
            other => other,
        }));
        command.envs(self.environment.iter().copied());
        Ok(command)
    }

    /// Counts the instructions of a run of `length`.
    fn instructions(&self, length: usize) -> Result<f64, Box<dyn Error>> {
        let valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
        let output = self.command(&valgrind, length)?.output();
        let output = output.map_err(|error| format!("valgrind cannot be started; install it: {error}"))?;
        let report = String::from_utf8_lossy(&output.stderr);
        let collected = report.lines().find_map(|line| line.split_once("Collected : "));
        match collected {
            Some((_, count)) if output.status.success() => Ok(count.trim().parse()?),
            _ => Err(format!("`{}` failed under valgrind: {report}", self.name).into()),
        }
    }

    /// Counts the instructions of one unit of the run: the difference of a run of `short` and one of
    /// `long`, divided by theirs. What a run does once does not count.
    ///
    /// # Errors
    ///
    /// Returns an error if valgrind cannot be started, or if the driver fails.
    pub fn per_unit(&self, short: usize, long: usize) -> Result<f64, Box<dyn Error>> {
        Ok((self.instructions(long)? - self.instructions(short)?) / (long - short) as f64)
    }
}

/// Returns the path of a binary of this crate, which stands beside this program.
fn binary(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    Ok(std::env::current_exe()?.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}
