//! A profile of Markdown files that is edited while the host runs.

use rockbot_core::testing::ScriptedModel;
use rockbot_host::profile::{AgentProfileOptions, DefaultSystemPromptBuilder};

use crate::support::host_of;

#[tokio::test]
async fn a_reloaded_profile_is_the_one_of_the_next_turn() {
    let folder = tempfile::tempdir().unwrap();
    let soul = folder.path().join("soul.md");
    std::fs::write(&soul, "Be kind.").unwrap();
    std::fs::write(folder.path().join("directives.md"), "Answer.").unwrap();
    let model = ScriptedModel::new().says("Yes.").says("Yes.").says("Yes.");
    let options = AgentProfileOptions::new(folder.path());
    let host = host_of(&model)
        .profile(options, DefaultSystemPromptBuilder)
        .build()
        .unwrap();
    let instructions = async |index: usize| {
        host.agent().ask("s", "Hi!").await.unwrap();
        model.requests()[index].messages[0].text().into_owned()
    };
    assert!(instructions(0).await.contains("Be kind."));
    assert!(!host.reload_profile().unwrap(), "the files have not changed");

    std::fs::write(&soul, "Be brief.").unwrap();
    assert!(instructions(1).await.contains("Be kind."), "the files are not watched");
    assert!(host.reload_profile().unwrap());
    assert!(instructions(2).await.contains("Be brief."));

    std::fs::remove_file(&soul).unwrap();
    let error = host.reload_profile().unwrap_err().to_string();
    assert!(error.contains("soul.md"), "{error}");
    assert!(host.profile().is_some(), "the last good profile stays");
}
