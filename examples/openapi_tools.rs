//! Tools from an OpenAPI document: each operation is a tool, and every request obeys one policy.
//!
//! `cargo run --example openapi_tools --features rest`: no key needed. The shop is a server of this
//! program; `OpenApi::file("shop.yaml")` and `OpenApi::url(…)` read documents of others.

use std::io::{Write, stdout};
use std::net::SocketAddr;

use rockbot::prelude::*;
use rockbot::tools::egress::EgressPolicy;
use rockbot::tools::rest::{OpenApi, RestTools};
use rockbot::turn::TurnPolicies;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const DOCUMENT: &str = r#"
openapi: 3.1.0
info: {title: Shop, version: "1"}
paths:
  /products/{product}/stock:
    get:
      operationId: get_stock
      summary: Tells how many of a product are left.
      parameters:
        - {name: product, in: path, required: true, schema: {type: string}, description: "The product, such as chairs"}
      responses: {"200": {description: The stock}}
"#;

/// Starts the shop, which answers each request alike.
async fn shop() -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = client.read(&mut request).await;
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\
                          connection: close\r\n\r\n{\"left\":3}";
            let _ = client.write_all(answer.as_bytes()).await;
        }
    });
    Ok(address)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let address = shop().await?;
    // Addresses of this machine and of private networks are refused unless the program names them.
    let egress = EgressPolicy::new().allow_host(&address.to_string())?;
    let shop = OpenApi::text(DOCUMENT).server(format!("http://{address}"));
    let host = AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .add(RestTools::new().egress(egress).openapi(shop))
        // The model sees the tools from the beginning, and need not activate them.
        .policies(TurnPolicies::new().with_tools_on_demand(false))
        .build()?;
    host.start().await?;
    let text = "Get stock of product \"chairs\"";
    writeln!(stdout(), "> {text}\n{}", host.agent().ask("session", text).await?)?;
    Ok(())
}
