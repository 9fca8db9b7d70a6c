//! Scripts in the sandbox of the machine: a program told to end, killed and started again.

use std::collections::BTreeMap;
use std::time::Duration;

use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use rockbot_tools::scripts::{Guarantees, Scripts};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::agent::{Agent, PATIENCE, ended, ready, signal, skip};

#[tokio::test]
async fn a_program_that_is_killed_and_started_again_answers_each_request_once() {
    let Some(mut agent) = Agent::open().await else { return };
    let Some(mut program) = agent.start().await else { return };
    for id in 0..6 {
        agent
            .send(&id.to_string(), &format!("import time\ntime.sleep(2)\nprint({id})"))
            .await;
    }
    agent.until(Agent::is_running).await;
    program.kill().await.unwrap();
    agent.until(|agent| !agent.is_running()).await;
    let mut program = agent.start().await.unwrap();
    let mut answers = BTreeMap::new();
    for _ in 0..6 {
        let answer = agent.answer().await;
        let before = answers.insert(answer.tool_call_id.clone(), answer.into_output().unwrap());
        assert!(before.is_none(), "one answer for each request");
    }
    for (id, output) in &answers {
        assert_eq!(output.stdout, format!("{id}\n"));
        assert_eq!(output.guarantees, Some(Guarantees::ALL));
    }
    // A further request is the fence: no second answer came before its answer.
    agent.send("fence", "print('last')").await;
    assert_eq!(agent.answer().await.tool_call_id, "fence");
    signal(&program, "TERM");
    assert_eq!(ended(&mut program).await.code(), Some(0));
    agent.until(|agent| !agent.is_running()).await;
    agent.close().await;
}

#[tokio::test]
async fn an_agent_has_the_answer_of_the_program_that_comes_after_the_kill() {
    let Some(agent) = Agent::open().await else { return };
    let Some(mut program) = agent.start().await else { return };
    let script = json!({"script": "import time\ntime.sleep(2)\nprint(6 * 7)"});
    let model = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "scripts"}))
        .calls("execute_python_script", script)
        .says("42");
    let host = AgentHost::builder("butler")
        .chat(model.clone())
        .bus(agent.bus.clone())
        .add(Scripts::remote());
    let host = host.build().unwrap();
    host.start().await.unwrap();
    let butler = host.agent();
    let turn = butler.ask("main", "Calculate.").start().await.unwrap();
    agent.until(Agent::is_running).await;
    program.kill().await.unwrap();
    agent.until(|agent| !agent.is_running()).await;
    let mut next = agent.start().await.unwrap();
    assert_eq!(timeout(PATIENCE, turn.outcome()).await.unwrap().unwrap().text, "42");
    let request = model.requests().pop().unwrap();
    let results: Vec<_> = request
        .messages
        .iter()
        .filter(|message| message.tool_call_id.is_some())
        .collect();
    let told = results.last().unwrap().text().into_owned();
    assert!(told.starts_with("42\n[scripts manager: no network, "), "{told}");
    next.kill().await.unwrap();
    agent.bus.delete_subscription("scripts-manager").await.unwrap();
    agent.listening.close().await;
    agent.bus.delete_topology().await.unwrap();
    host.shutdown(PATIENCE).await;
}

#[tokio::test]
async fn a_program_that_is_told_to_end_ends_its_scripts_first() {
    let Some(mut agent) = Agent::open().await else { return };
    let Some(mut program) = agent.start().await else { return };
    agent.send("slow", "import time\ntime.sleep(2)\nprint('done')").await;
    agent.until(Agent::is_running).await;
    signal(&program, "TERM");
    assert_eq!(agent.answer().await.into_output().unwrap().stdout, "done\n");
    assert_eq!(ended(&mut program).await.code(), Some(0));
    // What comes later waits in the queue for the next program.
    agent.send("later", "print('later')").await;
    let Some(mut next) = agent.start().await else { return };
    assert_eq!(agent.answer().await.into_output().unwrap().stdout, "later\n");
    signal(&next, "INT");
    assert_eq!(ended(&mut next).await.code(), Some(0));
    agent.close().await;
}

/// Asks the program at its probes.
async fn probe(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    answer
}

#[tokio::test]
async fn a_program_tells_a_cluster_whether_it_takes_requests() {
    let Some(mut agent) = Agent::open().await else { return };
    let mut command = agent.command();
    command.env("ROCKBOT_SCRIPTSMANAGER__PROBEPORT", "0");
    let (mut program, ready) = match ready(&mut command).await {
        Ok(started) => started,
        Err(why) => return skip(&why),
    };
    let (_, port) = ready.trim().split_once("; probes at port ").unwrap();
    let port = port.parse().unwrap();
    for (path, expected) in [
        ("/livez", "HTTP/1.1 200 OK"),
        ("/readyz", "HTTP/1.1 200 OK"),
        ("/", "HTTP/1.1 404 Not Found"),
    ] {
        let answer = probe(port, path).await;
        assert!(answer.starts_with(expected), "{path}: {answer}");
    }
    // It ends what runs, and takes nothing more.
    agent.send("slow", "import time\ntime.sleep(2)\nprint('done')").await;
    agent.until(Agent::is_running).await;
    signal(&program, "TERM");
    let ending = async {
        loop {
            let answer = probe(port, "/readyz").await;
            if answer.starts_with("HTTP/1.1 503 Service Unavailable") {
                return answer;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let answer = timeout(PATIENCE, ending).await.unwrap();
    assert!(answer.ends_with("the manager takes no requests any more\n"), "{answer}");
    assert!(probe(port, "/livez").await.starts_with("HTTP/1.1 200 OK"));
    assert_eq!(agent.answer().await.into_output().unwrap().stdout, "done\n");
    assert_eq!(ended(&mut program).await.code(), Some(0));
    agent.close().await;
}

#[tokio::test]
async fn scripts_that_outlast_the_program_are_killed_and_run_at_the_next() {
    let Some(agent) = Agent::open().await else { return };
    let mut command = agent.command();
    command.env("ROCKBOT_SCRIPTSMANAGER__SHUTDOWNSECONDS", "0");
    let mut program = match ready(&mut command).await {
        Ok((program, _)) => program,
        Err(why) => return skip(&why),
    };
    // It does not end by itself while this test waits.
    agent.send("slow", "import time\ntime.sleep(250)").await;
    agent.until(Agent::is_running).await;
    signal(&program, "TERM");
    assert_eq!(ended(&mut program).await.code(), Some(0));
    // A killed script may be seen for a moment.
    agent.until(|agent| !agent.is_running()).await;
    let mut next = agent.start().await.unwrap();
    agent.until(Agent::is_running).await;
    next.kill().await.unwrap();
    agent.until(|agent| !agent.is_running()).await;
    agent.close().await;
}

#[tokio::test]
async fn a_program_that_cannot_start_says_why_and_fails() {
    let run = |settings: &'static [(&str, &str)], arguments: &'static [&str]| async move {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rockbot-scripts-manager"));
        command
            .env_clear()
            .envs(settings.iter().copied())
            .args(arguments)
            .kill_on_drop(true);
        let output = timeout(PATIENCE, command.output()).await.unwrap().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (settings, arguments, expected) in [
        (
            &[("ROCKBOT_SCRIPTSMANAGER__BACKEND", "cloud")][..],
            &[][..],
            "error: `ScriptsManager.Backend` is `sandbox` or `kubernetes`, not `cloud`\n",
        ),
        (
            &[("ROCKBOT_SCRIPTSMANAGER__MAXCONCURRENTSCRIPTS", "0")],
            &[],
            "error: `ScriptsManager.MaxConcurrentScripts` is between 1 and 256\n",
        ),
        (&[], &["--confg"], "error: there is no argument `--confg`; see --help\n"),
    ] {
        let (code, error) = run(settings, arguments).await;
        assert_eq!((code, &*error), (Some(1), expected));
    }
    let (code, error) = run(&[("ROCKBOT_RABBITMQ__PORT", "1")], &[]).await;
    assert!(code == Some(1) && error.contains("error: "), "{error}");
    assert!(!error.contains("panicked"), "{error}");
}
