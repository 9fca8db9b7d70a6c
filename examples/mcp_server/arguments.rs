//! The command line of the MCP server.

use std::net::SocketAddr;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
A program whose tools any MCP client can use: an agent, an editor, a desktop client.

    mcp_server [OPTIONS]

Without options it serves the client that started it, over standard input and output, until that closes them. In a client's
file of servers: { \"mcpServers\": { \"notes\": { \"command\": \"mcp_server\" } } }

Options:
    --http ADDRESS   serve at http://ADDRESS/mcp instead, such as 127.0.0.1:8931, until Ctrl-C; with port 0 at any free
                     one, which is printed
    --token TOKEN    accept only clients over HTTP that send this bearer token; an address that others reach needs one
    --tools NAMES    serve only the tools of these names, separated by commas; `*` stands for any text (default: *)
    --list           print the tools, and end
    --help           print this";

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) http: Option<SocketAddr>,
    pub(crate) token: Option<String>,
    pub(crate) tools: Vec<String>,
    pub(crate) list: bool,
    pub(crate) help: bool,
}

impl Arguments {
    /// Parses the command line; the error names the wrong argument.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            http: None,
            token: None,
            tools: vec!["*".to_owned()],
            list: false,
            help: false,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("`{word}` needs a value; see --help"))
            };
            match word.as_str() {
                "--http" => arguments.http = Some(address(&value()?)?),
                "--token" => arguments.token = Some(value()?),
                "--tools" => arguments.tools = value()?.split(',').map(|name| name.trim().to_owned()).collect(),
                "--list" => arguments.list = true,
                "--help" | "-h" => arguments.help = true,
                other => return Err(format!("there is no argument `{other}`; see --help")),
            }
        }
        Ok(arguments)
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no address: give one with a port, such as 127.0.0.1:8931"))
}
