//! The model's tools about the servers themselves.

use rockbot_core::tool::{Effect, ToolErrorCode, ToolInvokeRequest};
use serde_json::{Value, json};

use super::peer::Peer;
use super::{Host, tools_of};

async fn ask(host: &Host, tool: &str, arguments: Value) -> Result<String, (ToolErrorCode, String)> {
    host.manage(tool, arguments).await
}

#[tokio::test(start_paused = true)]
async fn a_model_finds_its_way_to_any_tool() {
    let peers = [
        Peer::new("mail", &["send_mail", "echo"]),
        Peer::new("files", &["read_file"]),
    ];
    let host = Host::start(tools_of(&[&peers[0], &peers[1]])).await;
    let list: Value = serde_json::from_str(&ask(&host, "mcp_list_services", json!({})).await.unwrap()).unwrap();
    assert_eq!(
        list[1],
        json!({"serverName": "mail", "state": "connected", "summary": "Echoes texts.", "toolCount": 2,
            "toolNames": ["send_mail", "echo"]})
    );
    let asked = json!({"server_name": "MAIL", "tool_name": "echo"});
    let details: Value = serde_json::from_str(&ask(&host, "mcp_get_service_details", asked).await.unwrap()).unwrap();
    assert_eq!(
        details,
        json!([{"name": "echo", "typedName": "mail__echo", "description": "Does echo.",
            "parametersSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}])
    );
    let call = json!({"server_name": "mail", "tool_name": "echo", "arguments": "{\"text\": \"hi\"}"});
    assert_eq!(ask(&host, "mcp_invoke_tool", call).await.unwrap(), "hi");
}

#[tokio::test(start_paused = true)]
async fn a_search_gives_the_tools_that_it_finds() {
    let peer = Peer::new("mail", &["send_mail", "read_file"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let executor = host.managing("mcp_find_tools").executor;
    let find = |query: &str| ToolInvokeRequest::new("c", "mcp_find_tools", json!({"query": query}).to_string());
    let cx = rockbot_core::CallContext::new("s");
    let found = executor.execute(find("send a mail"), &cx).await.unwrap();
    assert_eq!(found.activates[0], *"mail__send_mail");
    let text = found.content.into_words();
    assert!(
        text.starts_with("You have these tools now:\n- mail__send_mail {\"text\"?: string}: Does send_mail."),
        "{text}"
    );
    let none = executor.execute(find("zebra"), &cx).await.unwrap();
    assert!(none.activates.is_empty());
}

#[tokio::test(start_paused = true)]
async fn errors_name_what_there_is() {
    let peer = Peer::new("mail", &["send_mail"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let invoke = async |server: &str, tool: &str, arguments: Value| {
        let call = json!({"server_name": server, "tool_name": tool, "arguments": arguments});
        ask(&host, "mcp_invoke_tool", call).await.unwrap_err()
    };
    let invalid = ToolErrorCode::InvalidArguments;
    assert_eq!(
        invoke("mial", "x", json!({})).await,
        (
            invalid,
            "there is no MCP server named `mial`. There are: `mail`.".to_owned()
        )
    );
    assert_eq!(
        invoke("mail", "send_mails", json!({})).await,
        (
            invalid,
            "there is no tool of `mail` named `send_mails`. Did you mean `send_mail`? There are: `send_mail`."
                .to_owned()
        )
    );
    let (code, message) = invoke("mail", "send_mail", json!({"text": 1})).await;
    assert_eq!(code, invalid);
    assert!(message.contains("`text` must be a string"), "{message}");
    assert!(peer.seen("tools/call").is_empty(), "nothing of it reached the server");
}

#[tokio::test(start_paused = true)]
async fn nulls_for_optional_arguments_are_left_out_of_a_call_by_name_that_only_reads() {
    let peer = Peer::new("mail", &[]);
    let mut tool = super::peer::described("find_mail");
    tool["annotations"] = json!({"readOnlyHint": true});
    peer.set_tools(vec![tool]);
    let call = json!({"server_name": "mail", "tool_name": "find_mail", "arguments": {"text": null}});
    let host = Host::start(crate::McpTools::default().server(peer.server())).await;
    let (code, text) = ask(&host, "mcp_invoke_tool", call.clone()).await.unwrap_err();
    assert_eq!(code, ToolErrorCode::InvalidArguments);
    assert!(
        text.contains("`text` must be a string, got null; leave it out instead"),
        "{text}"
    );
    assert_eq!(peer.seen("tools/call").len(), 0);

    let host = Host::start(crate::McpTools::default().server(peer.server().trusted(true))).await;
    ask(&host, "mcp_invoke_tool", call).await.unwrap();
    assert_eq!(peer.seen("tools/call")[0]["arguments"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn the_effect_of_a_call_by_name_is_that_of_the_tool() {
    let peer = Peer::new("s", &[]);
    let mut tool = super::peer::described("echo");
    tool["annotations"] = json!({"readOnlyHint": true});
    peer.set_tools(vec![tool]);
    let call = json!({"server_name": "s", "tool_name": "echo"}).to_string();
    let request = ToolInvokeRequest::new("c", "mcp_invoke_tool", call);
    for (is_trusted, effect) in [(true, Effect::Pure), (false, Effect::Mutating)] {
        let host = Host::start(crate::McpTools::default().server(peer.server().trusted(is_trusted))).await;
        assert_eq!(
            host.managing("mcp_invoke_tool").executor.effect_of(&request),
            Some(effect)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_registers_only_where_it_may_and_never_a_program() {
    let peer = Peer::new("mail", &["send_mail"]);
    let host = Host::start(tools_of(&[&peer])).await;
    assert!(!host.manages("mcp_register_server") && !host.manages("mcp_unregister_server"));

    let host = Host::start(tools_of(&[&peer]).allow_registration(["127.0.0.1", "mcp.example"])).await;
    assert!(host.managing("mcp_register_server").registration.hints.needs_approval);
    let marker = std::env::temp_dir().join(format!("rockbot-mcp-{}", std::process::id()));
    let program = json!({"name": "x", "url": "https://x.example", "command": "touch", "args": [marker]});
    let (code, message) = ask(&host, "mcp_register_server", program).await.unwrap_err();
    assert_eq!(code, ToolErrorCode::Denied, "{message}");
    assert!(!marker.exists());
    for url in ["file:///etc/passwd", "javascript:alert(1)", "stdio:x", ""] {
        let (code, _) = ask(&host, "mcp_register_server", json!({"name": "x", "url": url}))
            .await
            .unwrap_err();
        assert_eq!(code, ToolErrorCode::InvalidArguments, "{url}");
    }
    // Neither another host, nor one that only looks like an allowed one.
    for url in [
        "http://10.0.0.1/mcp",
        "http://169.254.169.254/",
        "http://mcp.example@evil.example/",
        "http://mcp.example.:80/",
    ] {
        let (code, _) = ask(&host, "mcp_register_server", json!({"name": "x", "url": url}))
            .await
            .unwrap_err();
        assert_eq!(code, ToolErrorCode::Denied, "{url}");
    }
    let taken = json!({"name": "Mail", "url": "http://127.0.0.1:9"});
    assert!(
        ask(&host, "mcp_register_server", taken)
            .await
            .unwrap_err()
            .1
            .contains("cannot be replaced")
    );
    let (code, message) = ask(&host, "mcp_unregister_server", json!({"server_name": "mail"}))
        .await
        .unwrap_err();
    assert_eq!(
        (code, &*message),
        (
            ToolErrorCode::Denied,
            "`mail` belongs to the operator: only the user can remove it"
        )
    );
}
