//! The program: its command line, its folders, and the command that runs.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use rockbot::BoxError;
use tracing_subscriber::filter::LevelFilter;

use crate::agent::Setup;
use crate::arguments::{Arguments, Command};
use crate::chat::{self, terminal};
use crate::commands::{data, init, serve, tools};
use crate::doctor;
use crate::host::{log, telemetry};

/// The program `rockbot`, with its folders for data and settings.
///
/// ```no_run
/// # async fn example() -> std::process::ExitCode {
/// use rockbot_cli::Program;
///
/// let program = Program::of_user().with_data_folder("data/chat").without_settings_file();
/// program.run(std::env::args_os()).await
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Program {
    name: String,
    data_folder: PathBuf,
    settings_file: Option<PathBuf>,
}

impl Program {
    /// Creates the program with the folders of the user, on Linux `~/.local/share/rockbot` for data
    /// and `~/.config/rockbot/rockbot.toml` for settings; without a home, data is kept in `data`.
    pub fn of_user() -> Self {
        let name = AppStrategyArgs {
            app_name: "rockbot".to_owned(),
            ..AppStrategyArgs::default()
        };
        let folders = choose_app_strategy(name).ok();
        Self {
            name: "rockbot".to_owned(),
            data_folder: folders.as_ref().map_or_else(|| "data".into(), AppStrategy::data_dir),
            settings_file: folders.map(|folders| folders.config_dir().join("rockbot.toml")),
        }
    }

    /// Sets the name of an agent that the command line does not name. Default `rockbot`.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the folder for data that neither the command line nor the settings name.
    #[must_use]
    pub fn with_data_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_folder = folder.into();
        self
    }

    /// Looks for no settings besides the file of `--config` and the environment.
    #[must_use]
    pub fn without_settings_file(mut self) -> Self {
        self.settings_file = None;
        self
    }

    /// Runs the command that the words ask for; the first word is the name of the program.
    ///
    /// Returns 0 on success, 1 if the command failed or the question has no answer, and 2 if the
    /// command line is wrong.
    pub async fn run<Word: Into<OsString> + Clone>(self, words: impl IntoIterator<Item = Word>) -> ExitCode {
        let arguments = match Arguments::try_parse_from(words) {
            Ok(arguments) => arguments,
            Err(problem) => {
                // Help and version go to standard output, and are no failure.
                let _ = problem.print();
                return if problem.use_stderr() {
                    ExitCode::from(2)
                } else {
                    ExitCode::SUCCESS
                };
            }
        };
        match self.run_command(arguments).await {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("error: {}", with_causes(&*error));
                ExitCode::FAILURE
            }
        }
    }

    async fn run_command(self, mut arguments: Arguments) -> Result<bool, BoxError> {
        arguments.check()?;
        if arguments.command.as_ref().is_some_and(Command::is_service) {
            telemetry::install(None::<LevelFilter>)?;
        } else {
            log::install()?;
        }
        self.find_settings(&mut arguments);
        let setup = Setup::new(&arguments.agent, &self.data_folder, &self.name);
        match &arguments.command {
            None => return chat::run(&arguments, setup).await,
            Some(Command::Doctor) => return doctor::run(&setup).await,
            Some(Command::Init { file }) => init::write(file.as_deref().or(self.settings_file.as_deref()))?,
            Some(Command::Serve { probes }) => serve::run(&setup, probes.address()).await?,
            Some(Command::Tools) => tools::list(&setup).await?,
            #[cfg(feature = "mcp")]
            Some(Command::Mcp(command)) => return crate::commands::mcp::run(&setup, command).await,
            #[cfg(feature = "scheduling")]
            Some(Command::Schedule { words }) => chat::schedule::run(&setup, &words.join(" ")).await?,
            Some(Command::Data(command)) => data::run(&setup, command).await?,
            Some(Command::Trace { turn }) => chat::trace::of(&setup, turn).await?,
            Some(Command::Dreams { words }) => chat::dreams::run(&setup, &words.join(" ")).await?,
            #[cfg(feature = "eval")]
            Some(Command::Eval(options)) => return crate::commands::eval::run(&setup, options).await,
            Some(Command::Completions { shell }) => {
                let mut script = Vec::new();
                clap_complete::generate(*shell, &mut Arguments::command(), "rockbot", &mut script);
                terminal::print(&String::from_utf8_lossy(&script));
            }
        }
        Ok(true)
    }

    /// Takes the settings file of the user where the command line names none.
    fn find_settings(&self, arguments: &mut Arguments) {
        let found = self.settings_file.as_deref().filter(|file| Path::exists(file));
        if arguments.agent.config.is_none() {
            arguments.agent.config = found.map(Path::to_owned);
        }
    }
}

/// Returns the message of an error with the causes that it does not tell itself.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !told.contains(&next) {
            told = format!("{told}: {next}");
        }
        cause = error.source();
    }
    told
}
