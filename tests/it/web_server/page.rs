//! The page for people, in a browser: each test serves an agent, and a flow of `browser/flows.mjs`
//! uses the page as a person does.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::config::Config;
use rockbot::prelude::FromConfig as _;
use rockbot::web_server::{WebEndpoint, WebServer};
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatResponse, MicroUsd, ModelInfo, ModelTier, Usage,
};
use rockbot_core::content::Provenance;
use rockbot_core::store::{
    LongTermMemory, MemoryEntry, Rule, RulesStore, Skill, SkillStore, StorePath, WorkingMemory, WorkingNote,
};
use rockbot_core::testing::{ScriptedModel, outside_part};
use rockbot_core::{Principal, Timestamp};
use rockbot_host::AgentHost;
use rockbot_memory::Memory;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::client::User;
use super::insights::{MERGE, dreamt, fill, kitchen};
use super::{Serving, server, waiting};
use crate::support::{calls, noting_tool};

/// Maximum time of a step of a flow: a browser begins slowly on a busy machine.
const STEP: Duration = Duration::from_secs(240);

/// Returns the folder of the browser's driver, if it is installed.
fn browser() -> Option<PathBuf> {
    let advice = "`.ci/browser` installs a browser with its driver and names the folder";
    outside_part("ROCKBOT_TEST_BROWSER", advice)
}

/// A flow of a person at the page.
struct Flow {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Flow {
    fn begin(name: &str, serving: &Serving) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/web_server/browser/flows.mjs");
        let mut child = Command::new("node")
            .arg(program)
            .args([name, &format!("http://{}/", serving.address)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, said }
    }

    /// Waits until the flow has reached a point.
    async fn reached(&mut self, point: &str) {
        let said = timeout(STEP, self.said.next_line()).await.unwrap().unwrap();
        if said.as_deref() != Some(point) {
            panic!("{said:?} instead of {point}: {}", self.errors().await);
        }
    }

    /// Lets the flow go on.
    async fn go_on(&mut self) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(b"\n").await.unwrap();
    }

    async fn errors(&mut self) -> String {
        let mut errors = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        let _ = timeout(STEP, stderr.read_to_string(&mut errors)).await;
        errors
    }

    /// Waits for the end of the flow, which has checked everything.
    async fn end(mut self) {
        let ended = timeout(STEP, self.child.wait()).await;
        assert!(
            ended.is_ok_and(|ended| ended.unwrap().success()),
            "{}",
            self.errors().await
        );
    }
}

#[tokio::test]
async fn the_page_says_what_a_browser_may_do_for_it() {
    let serving = Serving::of(&ScriptedModel::new()).await;
    let anyone = User::new(serving.address, "");
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/page/app.js", "text/javascript; charset=utf-8"),
        ("/page/page.css", "text/css; charset=utf-8"),
        ("/page/icon.svg", "image/svg+xml"),
    ] {
        let answer = anyone.request("GET", path).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), kind);
        let policy = header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"),
            "{policy}"
        );
        assert!(
            !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        let text = answer.text().await.unwrap();
        let remote =
            ["http://", "https://"].map(|scheme| text.replace("http://www.w3.org/2000/svg", "").contains(scheme));
        assert_eq!(remote, [false; 2], "{path} names another site");
    }
    // The page alone is for everyone.
    assert_eq!(anyone.get("/api/me").await.summary(), "401 unauthorized");
    serving.stop().await;
}

#[tokio::test]
async fn a_server_has_no_page_where_the_settings_say_so_and_a_program_mounts_it_where_it_likes() {
    let settings =
        "[WebServer]\nAddress = \"127.0.0.1:0\"\nPage = false\nUsers = [{ Name = \"ann\", Token = \"sesame\" }]\n";
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new().with_text("agent.toml", settings).unwrap();
    let host = AgentHost::configured(&config, folder.path()).unwrap();
    let serving = Serving::start(host.chat(ScriptedModel::new())).await;
    let ann = serving.ann();
    assert_eq!(ann.get("/").await.summary(), "404 not_found");
    assert_eq!(ann.get("/api/me").await.status, 200);

    let endpoint = serving.host.parts().require::<WebEndpoint>().unwrap();
    let app = axum::Router::new().nest("/agent/", endpoint.page_router().merge(endpoint.api_router()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mounted = User::new(listener.local_addr().unwrap(), "sesame");
    let task = tokio::spawn(axum::serve(listener, app).into_future());
    assert_eq!(mounted.get("/agent/").await.status, 200);
    assert_eq!(mounted.get("/agent/page/app.js").await.status, 200);
    assert_eq!(mounted.get("/agent/api/me").await.status, 200);
    task.abort();
    serving.stop().await;
}

const DRINKS: &str = "# Drinks\n\nWe have **both**, see [the list](https://tea.example/).\n\n- Tea, *green*\n- Coffee\n\n\
                      | what | cups |\n|---|---|\n| Tea | 2 |\n\n```js\nbrew(\"tea\");\n```\n";

#[tokio::test]
async fn a_person_signs_in_asks_searches_and_forgets() {
    if browser().is_none() {
        return;
    }
    let model = ScriptedModel::new()
        .says(DRINKS)
        .with_usage(Usage::new(10, 5))
        .with_cost(MicroUsd(1200))
        .says("Cake.");
    let serving = Serving::of(&model).await;
    Flow::begin("chat", &serving).end().await;
    serving.stop().await;
}

#[tokio::test]
async fn a_person_approves_denies_and_stops() {
    if browser().is_none() {
        return;
    }
    let (pay, paid) = noting_tool("pay");
    let model = ScriptedModel::new()
        .calls("pay", json!({"n": 7}))
        .says("Paid.")
        .calls("pay", json!({"n": 8}))
        .says("Not paid.")
        .calls("clerk", json!({"task": "Pay 9."}))
        .calls("pay", json!({"n": 9}))
        .says("Done.")
        .says("The clerk has paid.")
        .hangs();
    let host = AgentHost::in_memory().chat(model.clone()).tool(pay.needs_approval());
    let serving = Serving::start(host.add(server())).await;
    let clerk = serving.host.agent().as_tool("clerk", "Pays.");
    serving.host.add_tool(clerk).unwrap();
    Flow::begin("approvals", &serving).end().await;
    assert_eq!(paid.all(), ["pay 7", "pay 9"]);
    let denied = model.requests()[3].messages.last().unwrap().text().into_owned();
    assert!(denied.contains("too much"), "{denied}");
    serving.stop().await;
}

#[tokio::test]
async fn a_page_that_is_loaded_again_goes_on_reading() {
    if browser().is_none() {
        return;
    }
    let (wait, gate) = waiting("wait");
    let answer = calls([("c1", "wait", "{}")]).with_text("Let me look.");
    let model = ScriptedModel::new().answers(answer).says("It is open.");
    let serving = Serving::start(AgentHost::in_memory().chat(model).tool(wait).add(server())).await;
    let mut flow = Flow::begin("reload", &serving);
    flow.reached("reloaded").await;
    gate.add_permits(1);
    flow.go_on().await;
    flow.end().await;
    serving.stop().await;
}

/// A model that writes the next piece of its answer once a permit is added.
struct Writing(&'static [&'static str], Arc<Semaphore>);

#[async_trait]
impl ChatClient for Writing {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let deltas = call.deltas.as_ref();
        for (at, piece) in self.0.iter().enumerate() {
            if at > 0 {
                self.1.acquire().await.unwrap().forget();
            }
            deltas.inspect(|deltas| deltas.send(ChatDelta::Text(piece)));
        }
        Ok(ChatResponse::text(self.0.concat()))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test]
async fn an_answer_grows_as_it_is_written() {
    if browser().is_none() {
        return;
    }
    let gate = Arc::new(Semaphore::new(0));
    let pieces = &["One **two", " three", "**\n\nfour", " five"];
    let host = AgentHost::in_memory().chat(Writing(pieces, gate.clone()));
    let serving = Serving::start(host.add(server())).await;
    let mut flow = Flow::begin("growing", &serving);
    for point in ["One **two", "two three", "four"] {
        flow.reached(point).await;
        gate.add_permits(1);
        flow.go_on().await;
    }
    flow.end().await;
    serving.stop().await;
}

/// A text that tries to be more than a text.
const HOSTILE: &str = r#"<img src=x onerror="pwned=1"><script>pwned = 1</script>
<svg onload="pwned=1"></svg><iframe src="https://evil.example/"></iframe>
<style>@import "https://evil.example/a.css";</style><base href="https://evil.example/">

![tracker](https://evil.example/a.png) ![x](javascript:pwned=1) ![x](data:image/svg+xml,<svg/onload=pwned=1>)
[a](javascript:pwned=1) [b](JaVaScRiPt:pwned=1) [c]( javascript:pwned=1 ) [d](data:text/html,<script>pwned=1</script>)
[e](vbscript:pwned=1) [f](<javascript:pwned=1>) [g](&#106;avascript:pwned=1) [h](//evil.example) [i](blob:x) [j](file:///etc)
[k](https://ok.example/"onmouseover="pwned=1) <https://ok.example/> https://ok.example/?a=<b>"onclick=pwned=1

| <img src=x onerror="pwned=1"> | [l](javascript:pwned=1) |
|---|---|
| <script>pwned=1</script> | ![m](https://evil.example/b.png) |

> # <img src=x onerror="pwned=1">

```"><img src=x onerror="pwned=1">
</code></pre><script>pwned = 1</script>
```
"#;

#[tokio::test]
async fn hostile_texts_stay_texts() {
    if browser().is_none() {
        return;
    }
    let model = ScriptedModel::new()
        .calls("pay", json!({"n": 1, "<b>": HOSTILE}))
        .says(HOSTILE);
    let host = AgentHost::in_memory().chat(model).tool(noting_tool("pay").0);
    let serving = Serving::start(host.add(Memory::default()).add(server())).await;
    let (ann, now) = (Principal::from("ann"), Timestamp::default());
    let parts = serving.host.parts();
    let path = |text| StorePath::new(text).unwrap();
    let memories = parts.require::<dyn LongTermMemory>().unwrap();
    let entry = MemoryEntry::new("m1", HOSTILE, now, Provenance::TOOL).with_tags(vec![HOSTILE.to_owned()]);
    memories.save(&ann, entry).await.unwrap();
    let name = path("<img src=x onerror=pwned=1>");
    let skill = Skill::new(name.clone(), HOSTILE, now, Provenance::TOOL).with_summary(HOSTILE);
    parts
        .require::<dyn SkillStore>()
        .unwrap()
        .save(&ann, skill)
        .await
        .unwrap();
    let rules = parts.require::<dyn RulesStore>().unwrap();
    rules.add(&ann, Rule::new(HOSTILE).unwrap()).await.unwrap();
    let note = WorkingNote::new(path("session/<img src=x onerror=pwned=1>"), HOSTILE, Provenance::TOOL);
    let working = parts.require::<dyn WorkingMemory>().unwrap();
    working.put(&ann, vec![note]).await.unwrap();
    serving
        .host
        .agent()
        .for_principal("ann")
        .announce(HOSTILE, HOSTILE)
        .await
        .unwrap();
    Flow::begin("hostile", &serving).end().await;
    serving.stop().await;
}

#[tokio::test]
async fn long_texts_keep_the_page_usable() {
    if browser().is_none() {
        return;
    }
    let word = format!("{} ", "word".repeat(12));
    let long = [
        ("words", word.repeat(20_000)),
        ("brackets", "[![".repeat(60_000)),
        ("stars", "*a **b _c `d ~~e".repeat(12_000)),
        ("quotes", format!("\n{}", "> > > > > > > > > > a\n".repeat(7_000))),
        ("hashes", format!("\n# {}#", " ".repeat(150_000))),
        (
            "table",
            format!("\n| a | b |\n|---|---|\n{}", "| c | d |\n".repeat(15_000)),
        ),
        ("fence", format!("\n```\n{}", "let a = 1;\n".repeat(15_000))),
    ];
    let model = ScriptedModel::new();
    let says = |model: ScriptedModel, (kind, text): &(&str, String)| model.says(format!("{kind}: {text}."));
    let serving = Serving::of(&long.iter().fold(model, says)).await;
    Flow::begin("long", &serving).end().await;
    serving.stop().await;
}

#[tokio::test]
async fn a_person_looks_into_what_the_agent_knows() {
    if browser().is_none() {
        return;
    }
    let model = ScriptedModel::new().says("Hello.").says(MERGE);
    let serving = Serving::start(kitchen(&model).add(server().operator("ann"))).await;
    fill(&serving.host).await;
    dreamt(&serving).await;
    Flow::begin("browse", &serving).end().await;
    serving.stop().await;
}

#[tokio::test]
async fn a_person_hears_what_the_agent_says_unasked() {
    if browser().is_none() {
        return;
    }
    let serving = Serving::of(&ScriptedModel::new()).await;
    let agent = serving.host.agent().for_principal("ann");
    agent.announce("main", "The tea is ready.").await.unwrap();
    let mut flow = Flow::begin("news", &serving);
    flow.reached("one").await;
    agent.announce("main", "The tea is cold.").await.unwrap();
    flow.go_on().await;
    flow.reached("two").await;
    agent.announce("main", "More tea?").await.unwrap();
    flow.go_on().await;
    flow.end().await;
    serving.stop().await;
}

#[tokio::test]
async fn a_person_asks_an_agent_beside_the_own_one() {
    if browser().is_none() {
        return;
    }
    let cook = ScriptedModel::new().says("Soup.");
    let host = AgentHost::in_memory()
        .chat(ScriptedModel::new().says("The agent."))
        .agent("cook", |agent| agent.chat(cook));
    let serving = Serving::start(host.add(server().agent("cook"))).await;
    Flow::begin("beside", &serving).end().await;
    serving.stop().await;
}

#[tokio::test]
async fn the_person_at_the_machine_needs_no_token_and_attaches_an_image() {
    if browser().is_none() {
        return;
    }
    let open = WebServer::new().listen("127.0.0.1:0");
    let host = AgentHost::in_memory().chat(ScriptedModel::new().says("A dot."));
    let serving = Serving::start(host.add(open)).await;
    Flow::begin("open", &serving).end().await;
    serving.stop().await;
}
