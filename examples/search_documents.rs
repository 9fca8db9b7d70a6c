//! Questions about a folder of documents, which the model lists, searches and reads.
//!
//! `cargo run --example search_documents --features files`: no key needed; the folder is made
//! for the example, and goes with it.

use std::io::{Write, stdout};

use rockbot::prelude::*;
use rockbot::tools::files::FileTools;
use rockbot::turn::TurnPolicies;

const DOCUMENTS: [(&str, &str); 3] = [
    (
        "lease.md",
        "# Lease\n\nThe rent is 900 euros, due on the first of a month.\n",
    ),
    ("boiler.md", "# Boiler\n\nServiced in March. The pressure is 1.5 bar.\n"),
    (
        "garden.md",
        "# Garden\n\nThe hedge may be cut from October to February.\n",
    ),
];

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    for (name, text) in DOCUMENTS {
        std::fs::write(folder.path().join(name), text)?;
    }
    let host = AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .instructions("You answer questions about the documents of a house.")
        .add(FileTools::new(folder.path()))
        // The model sees the tools from the beginning, and need not activate them.
        .policies(TurnPolicies::new().with_tools_on_demand(false))
        .build()?;
    host.start().await?;
    for text in ["File search \"rent\"", "File read \"boiler.md\""] {
        writeln!(stdout(), "> {text}\n{}\n", host.agent().ask("session", text).await?)?;
    }
    Ok(())
}
