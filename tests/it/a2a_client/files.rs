//! Files that go to an agent with a task, and files of its answer.

use rockbot::tools::a2a::A2aReceiver;
use rockbot::tools::files::FileTools;
use rockbot_core::chat::ChatRequest;
use rockbot_core::content::{Content, MediaSource};
use rockbot_core::messaging::Bus;
use rockbot_host::bus::InProcessBus;
use tempfile::TempDir;

use super::*;

const REPORT: &str = "Sold: seven books.";

/// A folder with a text, a picture and a file that is too large.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sales")).unwrap();
    std::fs::write(folder.path().join("sales/report"), REPORT).unwrap();
    std::fs::write(folder.path().join("chart.png"), [0x89, b'P', b'N', b'G', 0xff]).unwrap();
    std::fs::write(folder.path().join("large.bin"), vec![0; (1 << 20) + 1]).unwrap();
    folder
}

fn with_files(files: &[&str]) -> (&'static str, Value) {
    let (tool, mut call) = find("How many?");
    call["files"] = json!(files);
    (tool, call)
}

/// Returns the content of the last message of a request.
fn last_content(request: &ChatRequest) -> Content {
    request.messages.last().unwrap().content.clone()
}

#[tokio::test]
async fn files_of_the_folder_go_as_bytes_and_urls_as_references() {
    let working = ScriptedModel::new().says("Seven.");
    let (server, url) = serving(&working, false).await;
    let own = folder();
    let files = [
        "sales/report",
        "chart.png",
        "https://files.example.com/a/terms.pdf?key=1",
    ];
    let asking = asking([with_files(&files)]);
    let telling = ScriptedModel::new().says("Told.");
    let host = main_host(&asking, &telling).add(FileTools::new(own.path()));
    let main = started(host.add(A2aCaller::new().agent_at(far(&url)))).await;
    until_begun(&main, "Told.").await;
    let asked = last_content(&working.requests()[0]);
    let words = asked.words();
    assert!(words.contains(REPORT), "{words}");
    assert!(
        words.contains("[file by reference: https://files.example.com/a/terms.pdf?key=1 terms.pdf, application/pdf]"),
        "{words}"
    );
    let images: Vec<_> = asked.media().collect();
    assert_eq!((images.len(), &*images[0].media_type), (1, "image/png"));
    assert_eq!(images[0].name.as_deref(), Some("chart.png"));
    server.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn the_old_version_gets_files_in_its_own_form() {
    let peer = Peer::start(move |got, url| {
        if got.head.starts_with("GET") {
            return Said::json(&card(url, "JSONRPC", "0.3", false));
        }
        let done =
            json!({"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "Yes."}]});
        Said::result(&done)
    })
    .await;
    let own = folder();
    let asking = asking([with_files(&["chart.png"])]);
    let telling = ScriptedModel::new().says("Told.");
    let host = main_host(&asking, &telling).add(FileTools::new(own.path()));
    let main = started(host.add(A2aCaller::new().agent_at(far(&peer.url())))).await;
    until_begun(&main, "Told.").await;
    let got = peer.got();
    let sent = got.iter().find(|got| got.operation() == "message/send").unwrap();
    let expected = json!({"kind": "file", "file": {"bytes": "iVBOR/8=", "mimeType": "image/png", "name": "chart.png"}});
    assert_eq!(sent.json()["params"]["message"]["parts"][1], expected);
}

#[tokio::test]
async fn files_beyond_the_bounds_or_outside_of_the_folder_are_refused_and_nothing_is_sent() {
    let peer = Peer::speaking(false, |_, _| panic!("nothing is sent")).await;
    let own = folder();
    let nine = ["chart.png"; 9];
    let cases: [(&[&str], &str); 5] = [
        (&nine, "`files` must have at most 8 items"),
        (&["large.bin"], "more than 1048576 bytes together"),
        (&["none.txt"], "none.txt"),
        (&["../secret"], "it must not lead out of its folder"),
        (&["https://a.example/ b"], "has no spaces"),
    ];
    for (files, expected) in cases {
        let asking = asking([with_files(files)]);
        let host = main_host(&asking, &ScriptedModel::new()).add(FileTools::new(own.path()));
        let main = started(host.add(A2aCaller::new().agent_at(far(&peer.url())))).await;
        main.agent().ask("s", "Begin.").await.unwrap();
        let words = told(&asking).remove(0);
        assert!(words.contains(expected), "{expected}: {words}");
    }
    let asking = asking([with_files(&["chart.png"])]);
    let main =
        started(main_host(&asking, &ScriptedModel::new()).add(A2aCaller::new().agent_at(far(&peer.url())))).await;
    main.agent().ask("s", "Begin.").await.unwrap();
    assert!(told(&asking)[0].contains("this host has no folder of files"));
    assert!(peer.operations().is_empty());
}

#[tokio::test]
async fn an_agent_on_the_bus_gets_texts_alone() {
    let working = ScriptedModel::new().says("Seven.");
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let host = AgentHost::builder("far").chat(working.clone()).shared_bus(bus.clone());
    let _far = started(host.add(A2aReceiver::new().allow("main"))).await;
    let own = folder();
    let find = |files: &[&str]| {
        let (tool, mut call) = with_files(files);
        call["skill"] = json!("ask");
        (tool, call)
    };
    let first = asking([find(&["chart.png"]), find(&["sales/report"])]);
    let telling = ScriptedModel::new().says("Told.");
    let host = main_host(&first, &telling)
        .shared_bus(bus)
        .add(FileTools::new(own.path()));
    let main = started(host.add(A2aCaller::new())).await;
    let directory = main.parts().require::<dyn AgentDirectory>().unwrap();
    until(|| !directory.agents().is_empty()).await;
    main.agent().ask("s", "Begin.").await.unwrap();
    assert!(told(&first)[0].contains("agents on the bus take files that are texts"));
    until_told(&main, "Told.").await;
    let words = last_message(&working);
    assert!(words.contains(&format!("[file report]\n{REPORT}")), "{words}");
}

#[tokio::test]
async fn files_of_an_answer_reach_the_user_and_the_model_once() {
    let parts = json!([
        {"text": "Here."}, {"raw": "iVBOR/8=", "mediaType": "image/png", "filename": "chart.png"},
        {"raw": "UEsDBA==", "mediaType": "application/zip", "filename": "all.zip"},
    ]);
    let many: Vec<_> = (0..20)
        .map(|_| json!({"raw": "AAAA", "mediaType": "image/gif", "filename": "x"}))
        .collect();
    for (parts, files) in [(parts, 2), (json!(many), 8)] {
        let artifact = json!([{"artifactId": "a", "parts": parts}]);
        let peer = Peer::speaking(false, move |_, _| {
            let mut done = task("TASK_STATE_COMPLETED", "", "");
            done["artifacts"] = artifact.clone();
            Said::result(&json!({"task": done}))
        })
        .await;
        let asking = asking([find("How many?")]);
        let telling = ScriptedModel::new().says("Told.");
        let main = started(main_host(&asking, &telling).add(A2aCaller::new().agent_at(far(&peer.url())))).await;
        let agent = main.agent();
        let mut announcements = agent.announcements();
        agent.ask("s", "Begin.").await.unwrap();
        let mut given = Vec::new();
        loop {
            let told = timeout(PATIENCE, announcements.next()).await.unwrap().unwrap();
            if told.content.words() == "Told." {
                break;
            }
            given.push(told);
        }
        let given: Vec<_> = given.iter().filter(|told| told.content.has_media()).collect();
        assert_eq!(given.len(), 1);
        assert_eq!(given[0].label.sources(), ["agent:far".into()]);
        let media: Vec<_> = given[0].content.media().collect();
        assert_eq!(media.len(), files);
        // The journal of announcements has references; the bytes are in the store of media.
        assert!(media.iter().all(|file| matches!(file.source, MediaSource::Stored(_))));
        let shown = last_content(&telling.requests()[0]);
        let images = shown.media().filter(|file| file.is_image()).count();
        assert_eq!(images, shown.media().count());
        assert!(shown.words().contains("The user has its files."), "{}", shown.words());
        let is_cut = shown.words().contains("It is not kept: ask for it by reference");
        assert_eq!((images, is_cut), if files == 2 { (1, false) } else { (8, true) });
        main.shutdown(Duration::ZERO).await;
    }
}
