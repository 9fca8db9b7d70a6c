//! Processes of one agent that are killed and stopped under load: the example `cluster`.

use crate::example_programs::{run, text};
use crate::support::networks::broker::Exchange;

use super::with_schema;

#[tokio::test]
async fn processes_that_are_killed_lose_and_repeat_nothing() {
    with_schema(async |schema| {
        let Some(exchange) = Exchange::open().await else { return };
        let folder = tempfile::tempdir().unwrap();
        let servers = ["--bus", exchange.url.as_str(), "--database", schema.url.as_str()];
        let load = [
            "--sessions",
            "12",
            "--messages",
            "6",
            "--seconds",
            "12",
            "--work",
            "300",
        ];
        let trouble = ["--kill-every", "3", "--pause"];
        let arguments = [&servers[..], &load, &trouble].concat();
        let output = run("cluster", &arguments, folder.path()).await;
        exchange.delete(&[]).await;
        let (table, told) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{table}\n{told}");
        for row in [
            "| messages | 72 |",
            "| replies | 72 |",
            "| out of order | 0 |",
            "| side effects that happened twice | 0 |",
            "| processes stopped for longer than a lease | 1 |",
        ] {
            assert!(table.contains(row), "{table}\n{told}");
        }
        assert!(!table.contains("| processes killed | 0 |"), "{table}");
    })
    .await;
}
