use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rockbot_core::tool::{Tool, ToolInvokeRequest};
use rockbot_core::{AgentIdentity, CallContext, SystemClock};
use serde_json::json;

use super::*;

/// The tools of a temporary folder, with a file outside of it.
struct Desk {
    root: tempfile::TempDir,
    tools: Vec<Tool>,
}

impl Desk {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("secret"), "secret").unwrap();
        let parts = Parts::new(AgentIdentity::new("clerk"), Arc::new(SystemClock), None);
        let mut declarations = Declarations::new(parts);
        FileTools::new(root.path().join("files"))
            .declare(&mut declarations)
            .unwrap();
        let tools = declarations.merge().tools;
        Self { root, tools }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join("files").join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    async fn call_in(&self, session: &str, tool: &str, arguments: serde_json::Value) -> Result<String, String> {
        let tool = self
            .tools
            .iter()
            .find(|known| known.registration.name.as_str() == tool)
            .unwrap();
        let request = ToolInvokeRequest::new("c1", tool.registration.name.clone(), arguments.to_string());
        let answer = tool.executor.execute(request, &CallContext::new(session)).await;
        answer
            .map(|response| response.content.text().into_owned())
            .map_err(|error| error.to_string())
    }

    async fn call(&self, tool: &str, arguments: serde_json::Value) -> Result<String, String> {
        self.call_in("s", tool, arguments).await
    }
}

#[tokio::test]
async fn files_are_written_read_edited_listed_and_deleted() {
    let desk = Desk::new();
    let written = desk
        .call("file_write", json!({"path": "a/b.md", "content": "one\ntwo\nthree\n"}))
        .await;
    assert_eq!(written, Ok("Wrote `a/b.md`: 3 lines.".into()));
    let read = desk.call("file_read", json!({"path": "a/b.md"})).await;
    assert_eq!(read, Ok("one\ntwo\nthree\n[lines 1–3 of 3; the end]".into()));
    let page = desk
        .call("file_read", json!({"path": "a/b.md", "offset": 2, "limit": 1}))
        .await;
    assert_eq!(page, Ok("two\n[lines 2–2 of 3; next offset: 3]".into()));
    let edited = desk
        .call(
            "file_edit",
            json!({"path": "a/b.md", "old_string": "two", "new_string": "2"}),
        )
        .await;
    assert_eq!(edited, Ok("Changed `a/b.md`: 1 place(s).".into()));
    assert_eq!(
        (desk.text("a/b.md"), desk.text(".prev/a%2Fb.md")),
        ("one\n2\nthree\n".into(), "one\ntwo\nthree\n".into())
    );
    desk.call("file_write", json!({"path": "c.txt", "content": "Three"}))
        .await
        .unwrap();
    assert_eq!(
        desk.call("file_list", json!({})).await,
        Ok("a/b.md (12)\nc.txt (5)\n".into())
    );
    assert_eq!(
        desk.call("file_list", json!({"prefix": "a/"})).await,
        Ok("a/b.md (12)\n".into())
    );
    let found = desk.call("file_search", json!({"query": "THREE"})).await;
    assert_eq!(found, Ok("a/b.md:3: three\nc.txt:1: Three\n".into()));
    let deleted = desk.call("file_delete", json!({"path": "c.txt"})).await;
    assert_eq!(
        deleted,
        Ok("Deleted `c.txt`. Its last version is `.prev/c.txt`.".into())
    );
    let read = desk.call("file_read", json!({"path": ".prev/c.txt"})).await;
    assert_eq!(read, Ok("Three\n[lines 1–1 of 1; the end]".into()));
    let missing = desk.call("file_read", json!({"path": "x/b.md"})).await;
    assert_eq!(missing, Err("there is no file `x/b.md`: there is `a/b.md`".into()));
}

#[tokio::test]
async fn a_file_is_overwritten_by_a_model_that_has_read_its_present_version_whole() {
    let desk = Desk::new();
    fs::write(desk.path("a"), "1\n2\n3\n").unwrap();
    let write = json!({"path": "a", "content": "new\n"});
    let refused = "not written: `a` exists, and you have not read all of its present version (3 lines). Read it to its end \
        with file_read, or change a part with file_edit";
    assert_eq!(desk.call("file_write", write.clone()).await, Err(refused.into()));
    desk.call("file_read", json!({"path": "a", "limit": 2})).await.unwrap();
    assert_eq!(desk.call("file_write", write.clone()).await, Err(refused.into()));
    desk.call("file_read", json!({"path": "a", "offset": 3})).await.unwrap();
    assert_eq!(
        desk.call_in("other", "file_write", write.clone()).await,
        Err(refused.into())
    );
    fs::write(desk.path("a"), "1\n2\n4\n").unwrap();
    assert_eq!(desk.call("file_write", write.clone()).await, Err(refused.into()));
    desk.call("file_read", json!({"path": "a"})).await.unwrap();
    desk.call("file_write", write.clone()).await.unwrap();
    // What it wrote itself it knows.
    desk.call("file_write", json!({"path": "a", "content": "newer\n"}))
        .await
        .unwrap();
    assert_eq!(
        (desk.text("a"), desk.text(".prev/a")),
        ("newer\n".into(), "new\n".into())
    );
}

#[tokio::test]
async fn an_edit_is_exact_and_shows_what_is_near() {
    let desk = Desk::new();
    fs::write(desk.path("a"), "let x = 1;\nlet y = 2;\nlet y = 2;\n").unwrap();
    let edit = async |old: &str, new: &str, all: bool| {
        desk.call(
            "file_edit",
            json!({"path": "a", "old_string": old, "new_string": new, "replace_all": all}),
        )
        .await
    };
    assert_eq!(
        edit("let  x = 1;", "", false).await,
        Err("not changed: old_string does not occur in `a`; the nearest region is\n1: let x = 1;\n2: let y = 2;\n3: let y = 2;\n".into())
    );
    assert_eq!(
        edit("let y", "let z", false).await,
        Err("not changed: old_string occurs 2 times in `a`, in the lines 2, 3: give more of the text around it, or set replace_all".into())
    );
    assert_eq!(
        edit("let y", "let z", true).await,
        Ok("Changed `a`: 2 place(s).".into())
    );
    assert!(edit("", "x", false).await.is_err());
    fs::write(desk.path("a"), "a\r\nb\r\n").unwrap();
    edit("a\nb", "c\nd", false).await.unwrap();
    assert_eq!(desk.text("a"), "c\r\nd\r\n");
}

#[tokio::test]
async fn no_path_and_no_link_leads_out() {
    let desk = Desk::new();
    symlink(desk.root.path().join("secret"), desk.path("link")).unwrap();
    symlink(desk.root.path(), desk.path("up")).unwrap();
    symlink("../secret", desk.path("relative")).unwrap();
    symlink("inner", desk.path("own")).unwrap();
    fs::write(desk.path("inner"), "inner").unwrap();
    for path in [
        "../secret",
        "/etc/passwd",
        "link",
        "up/secret",
        "relative",
        "a/../../secret",
        "up/../secret",
        "missing/../secret",
        "missing/../../secret",
        "..%2fsecret/..",
    ] {
        for (tool, arguments) in [
            ("file_read", json!({"path": path})),
            ("file_write", json!({"path": path, "content": "x"})),
            (
                "file_edit",
                json!({"path": path, "old_string": "secret", "new_string": "x"}),
            ),
            ("file_delete", json!({"path": path})),
        ] {
            let refused = desk.call(tool, arguments).await;
            assert!(refused.is_err(), "{tool} {path}: {refused:?}");
        }
    }
    assert_eq!(fs::read_to_string(desk.root.path().join("secret")).unwrap(), "secret");
    assert_eq!(desk.call("file_list", json!({})).await, Ok("inner (5)\n".into()));
    assert_eq!(
        desk.call("file_search", json!({"query": "secret"})).await,
        Ok("No line contains that.".into())
    );
    assert!(
        desk.call("file_read", json!({"path": "own"}))
            .await
            .unwrap()
            .starts_with("inner\n")
    );
    assert!(
        desk.call("file_write", json!({"path": ".prev/x", "content": ""}))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn mode_and_encoding_are_kept_and_what_is_no_text_is_refused() {
    let desk = Desk::new();
    fs::write(desk.path("a"), b"\xFF\xFEa\0\n\0").unwrap();
    fs::set_permissions(desk.path("a"), fs::Permissions::from_mode(0o640)).unwrap();
    desk.call("file_edit", json!({"path": "a", "old_string": "a", "new_string": "ß"}))
        .await
        .unwrap();
    assert_eq!(fs::read(desk.path("a")).unwrap(), b"\xFF\xFE\xDF\0\n\0");
    assert_eq!(
        fs::metadata(desk.path("a")).unwrap().permissions().mode() & 0o777,
        0o640
    );
    fs::write(desk.path("b"), [0, 1, 2]).unwrap();
    let refused = Err("`b` is not text, or in an encoding that is not known".into());
    assert_eq!(desk.call("file_read", json!({"path": "b"})).await, refused);
    fs::write(desk.path("c"), vec![b'x'; 5 << 20]).unwrap();
    assert_eq!(
        desk.call("file_read", json!({"path": "c"})).await,
        Err("`c`: it is longer than 4 MiB".into())
    );
    fs::create_dir(desk.path("d")).unwrap();
    assert_eq!(
        desk.call("file_read", json!({"path": "d"})).await,
        Err("`d`: it is not a file".into())
    );
}

#[tokio::test]
async fn long_files_are_read_in_pages() {
    let desk = Desk::new();
    fs::write(desk.path("lines"), "0123456789\n".repeat(5_000)).unwrap();
    let page = desk
        .call("file_read", json!({"path": "lines", "limit": 10_000}))
        .await
        .unwrap();
    assert!(
        page.ends_with("[lines 1–3636 of 5000; next offset: 3637]"),
        "{}",
        &page[page.len() - 60..]
    );
    fs::write(desk.path("line"), "x".repeat(100_000)).unwrap();
    let page = desk.call("file_read", json!({"path": "line"})).await.unwrap();
    assert!(page.ends_with("… [the line is longer]\n[lines 1–1 of 1; the end]"));
    assert!(
        desk.call("file_write", json!({"path": "line", "content": ""}))
            .await
            .is_err(),
        "it was not read whole"
    );
}

#[test]
fn what_a_killed_process_left_is_removed_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 60 * 60);
    let write = |name: &str, is_old: bool| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = fs::File::create(path).unwrap();
        if is_old {
            file.set_modified(long_ago).unwrap();
        }
    };
    let kept = ["a/.draft-notes", ".draft-1", ".prev/.draft-1", "a/%draft-1", ".prev/a"];
    kept.iter().for_each(|name| write(name, true));
    write(".prev/%draft-1", true);
    // Another host may be about to rename it.
    write(".prev/%draft-2", false);
    Folder::open(root.path()).unwrap();
    let exists = |name: &str| Path::exists(&root.path().join(name));
    assert!(!exists(".prev/%draft-1") && exists(".prev/%draft-2"));
    assert_eq!(kept.map(exists), [true; 5]);
}

#[tokio::test]
async fn what_cannot_be_read_is_left_out_of_lists() {
    let desk = Desk::new();
    for name in ["locked/a", "open/a"] {
        desk.call("file_write", json!({"path": name, "content": "text"}))
            .await
            .unwrap();
    }
    let locked = desk.path("locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&locked).is_ok() {
        println!("SKIPPED: this user may read every folder");
        return;
    }
    let listed = desk.call("file_list", json!({})).await;
    let found = desk.call("file_search", json!({"query": "text"})).await;
    let opened = Folder::open(&desk.path(""));
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(listed, Ok("open/a (4)\n".into()));
    assert_eq!(found, Ok("open/a:1: text\n".into()));
    assert!(opened.is_ok(), "{opened:?}");
}

#[tokio::test]
async fn a_file_may_become_a_folder_and_a_folder_a_file() {
    let desk = Desk::new();
    let write = async |path: &str, content: &str| {
        desk.call("file_write", json!({"path": path, "content": content}))
            .await
            .unwrap();
    };
    let delete = async |path: &str| desk.call("file_delete", json!({"path": path})).await.unwrap();
    write("notes", "1").await;
    delete("notes").await;
    write("notes/today", "2").await;
    write("notes/today", "3").await;
    assert_eq!(
        delete("notes/today").await,
        "Deleted `notes/today`. Its last version is `.prev/notes%2Ftoday`."
    );
    fs::remove_dir(desk.path("notes")).unwrap();
    write("notes", "4").await;
    write("notes", "5").await;
    assert_eq!(
        (desk.text(".prev/notes"), desk.text(".prev/notes%2Ftoday")),
        ("4".into(), "3".into())
    );
    let long = vec!["ß".repeat(90); 5].join("/");
    write(&long, "6").await;
    let deleted = delete(&long).await;
    let backup = deleted.split('`').nth(3).unwrap();
    assert_eq!(
        desk.call("file_read", json!({ "path": backup })).await,
        Ok("6\n[lines 1–1 of 1; the end]".into())
    );
}
