//! Files for an agent: a folder where it reads and writes texts.

mod folder;
mod ledger;
mod nearest;
mod path;
#[cfg(test)]
mod tests;
mod text;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, Subsystem};

use crate::agent_files::AgentFiles;
use folder::Folder;
use tools::FileState;

/// The default folder, below the host's data folder.
const FOLDER: &str = "files";

/// Tools for text files in one folder: `file_read`, `file_list`, `file_search`, `file_write`,
/// `file_edit`, `file_delete`.
///
/// The folder is opened once, and everything happens below its handle: no path, no link and no
/// folder that is exchanged meanwhile leads out of it. A file is replaced atomically, in its
/// encoding and with its permissions, and its version before the change stays in `.prev/`, where
/// the name of `a/b.md` is `a%2Fb.md`. A model overwrites a file only if it was shown all of its
/// present version, since a model that "restores" what it has read in part destroys the rest.
///
/// All users of a host share the folder. The setting `FileTools.BasePath` names it; default
/// `files`, below the host's data folder. The tools stand in a group with a guide, which a model
/// activates when it needs files.
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_tools::files::FileTools;
///
/// # let root = tempfile::tempdir()?;
/// # let folder = root.path();
/// // A host calls this for `.add(FileTools::new(folder))`.
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// FileTools::new(folder).declare(&mut declarations)?;
/// assert_eq!(declarations.merge().tools.len(), 6);
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct FileTools {
    folder: Option<PathBuf>,
}

impl FileTools {
    /// Creates the tools of this folder, which is created if it is missing.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: Some(folder.into()),
        }
    }

    /// Creates the tools of the folder that the settings name.
    pub fn from_settings() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Subsystem for FileTools {
    fn name(&self) -> &str {
        "files"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        let set = config.section("FileTools")?.get_or("BasePath", PathBuf::from(FOLDER))?;
        let below = match declarations.parts().data_dir() {
            Some(data) => Some(data.join(set)),
            None => set.is_absolute().then_some(set),
        };
        let path = self.folder.clone().or(below);
        let path =
            path.ok_or("the file tools need a folder: give the host a data folder, or set `FileTools.BasePath`")?;
        let opened = Folder::open(&path);
        let folder = opened.map_err(|error| {
            format!(
                "the folder `{}` of the file tools cannot be opened: {error}",
                path.display()
            )
        })?;
        let state = FileState {
            folder: Arc::new(folder),
            ledger: Arc::default(),
            changing: Arc::default(),
        };
        declarations.provide::<dyn AgentFiles>(Arc::new(state.clone()));
        let tools = tools::tools(&state);
        let names = tools.iter().map(|tool| tool.registration.name.clone());
        declarations.cost(
            PartCost::on("files")
                .with_switch("`FileTools.Enabled`")
                .with_tools(names),
        );
        tools.into_iter().for_each(|tool| declarations.tool(tool));
        Ok(())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Ok(Box::new(Idle))
    }
}
