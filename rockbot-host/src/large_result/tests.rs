use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use rockbot_core::CallContext;
use rockbot_core::store::{InMemoryWorkingMemory, Namespace};
use rockbot_core::testing::ManualClock;
use rockbot_core::tool::{Effect, ToolError, ToolErrorCode, ToolInvokeRequest};

fn chunked(content: &str, policy: &LargeResultPolicy) -> ChunkedResult {
    let tool = "list_models".into();
    let large = LargeResult::of(&tool, content, policy).expect("a large result");
    large.split(&keys(&large))
}

fn keys(large: &LargeResult<'_>) -> ChunkKeys {
    large
        .keys(&StorePath::new("session/abc123").unwrap(), "a1b2c3")
        .unwrap()
}

/// A section of `length` bytes.
fn section(heading: &str, length: usize) -> String {
    format!("{heading}\n{}\n", "x".repeat(length - heading.len() - 2))
}

fn values(chunked: &ChunkedResult) -> Vec<&str> {
    chunked.notes.iter().map(|note| note.value.as_str()).collect()
}

#[test]
fn what_is_short_enough_stays_as_it_is() {
    let policy = LargeResultPolicy::default();
    let is_large = |content: &str| LargeResult::of(&"t".into(), content, &policy).is_some();
    assert!(!is_large(""));
    assert!(!is_large(&"ä".repeat(64_000)));
    assert!(is_large(&"ä".repeat(64_001)));
}

#[test]
fn the_message_for_the_model() {
    let content = [section("# Models | `all`", 40_000), section("## Pricing", 40_000)].concat();
    let chunked = chunked(&content, &LargeResultPolicy::default());
    let expected = "\
Tool result for 'list_models' is large (80 000 chars) and has been split into 2 chunk(s) stored in working memory.
A document outline is stored at key `session/abc123/tool-list_models-a1b2c3-index` — retrieve it with get_from_working_memory to navigate the content by section heading.
Call get_from_working_memory(key) for each relevant chunk BEFORE drawing conclusions. Do not summarise based on this index alone.
To find something in it, call search_tool_output(query, key: `session/abc123/tool-list_models-a1b2c3-index`).

| # | Heading | Key |
|---|---------|-----|
| 0 | Models \\| 'all' | `session/abc123/tool-list_models-a1b2c3-chunk0` |
| 1 | Pricing | `session/abc123/tool-list_models-a1b2c3-chunk1` |
";
    assert_eq!(chunked.message, expected);
    let outline = "\
## Document Outline

- **Models \\| 'all'** → `session/abc123/tool-list_models-a1b2c3-chunk0`
  - **Pricing** → `session/abc123/tool-list_models-a1b2c3-chunk1`
";
    assert_eq!(values(&chunked), [&content[..40_000], &content[40_000..], outline]);
}

#[test]
fn what_is_kept_says_where_it_came_from_and_for_how_long() {
    let chunked = chunked(&"x".repeat(70_000), &LargeResultPolicy::default());
    for note in &chunked.notes {
        assert_eq!(note.provenance.source, "tool:list_models");
        assert_eq!(note.provenance.trust, Provenance::TOOL.trust);
        assert_eq!(
            (note.tags.join(","), note.ttl),
            ("list_models".to_owned(), Duration::from_secs(1_200))
        );
        assert_eq!(note.category.as_ref().map(StorePath::as_str), Some("tool-result"));
    }
}

#[test]
fn chunks_have_at_least_20_000_characters_where_nothing_else_cuts() {
    let policy = LargeResultPolicy {
        threshold: 16_000,
        ..LargeResultPolicy::default()
    };
    let chunked = chunked(&"x".repeat(462_000), &policy);
    assert!(
        chunked
            .message
            .contains("(462 000 chars) and has been split into 24 chunk(s)")
    );
    assert!(chunked.message.contains("| 23 | Part 23 |"));
}

#[test]
fn a_heading_without_text_goes_with_what_follows() {
    let content = ["# Models\n\n## All\n".to_owned(), section("### Pricing", 70_000)].concat();
    let chunked = chunked(&content, &LargeResultPolicy::default());
    assert!(
        chunked
            .message
            .contains("| 0 | Models … and 1 more | `session/abc123/tool-list_models-a1b2c3-chunk0` |")
    );
    let outline = values(&chunked).pop().unwrap();
    assert!(outline.contains("- **Models** → `session/abc123/tool-list_models-a1b2c3-chunk0`\n  - **All** → "));
}

#[test]
fn many_small_sections_share_chunks() {
    let content: String = (0..1_000)
        .map(|index| section(&format!("## Section {index}"), 640))
        .collect();
    let chunked = chunked(&content, &LargeResultPolicy::default());
    assert_eq!(chunked.notes.len(), 11);
    assert!(chunked.message.contains("| 1 | Section 100 … and 99 more |"));
    assert!(
        chunked.notes[10].value.len() < 2 * OUTLINE_LEN,
        "the outline is bounded"
    );
}

#[test]
fn the_table_is_bounded() {
    let chunked = chunked(&"x".repeat(20_000_000), &LargeResultPolicy::default());
    assert_eq!(chunked.notes.len(), 314);
    assert!(chunked.message.len() < 20_000);
    assert!(
        chunked
            .message
            .ends_with("… and 213 more, up to `session/abc123/tool-list_models-a1b2c3-chunk312`.\n")
    );
}

#[test]
fn older_keys_are_shown_without_the_namespace() {
    let policy = LargeResultPolicy {
        key_form: ChunkKeyForm::Colons,
        ..LargeResultPolicy::default()
    };
    let chunked = chunked(&"x".repeat(70_000), &policy);
    assert!(
        chunked
            .message
            .contains("| 1 | Part 1 | `tool:list_models:a1b2c3:chunk1` |")
    );
    assert_eq!(
        chunked.notes[1].key.as_str(),
        "session/abc123/tool:list_models:a1b2c3:chunk1"
    );
}

#[test]
fn truncation_counts_characters() {
    let tool = "t".into();
    let content = "ä".repeat(65_500);
    let policy = LargeResultPolicy::default();
    let large = LargeResult::of(&tool, &content, &policy).unwrap();
    let expected = format!("{}\n[result truncated — 1 500 chars omitted]", "ä".repeat(64_000));
    assert_eq!(large.truncated(), expected);
}

#[tokio::test]
async fn all_chunks_are_kept_or_the_model_is_told_what_is_missing() {
    let tool = "t".into();
    let content = "x".repeat(640_001);
    let policy = LargeResultPolicy::default();
    let large = LargeResult::of(&tool, &content, &policy).unwrap();
    let me = Principal::default();
    let keys = keys(&large);
    let clock = ManualClock::default();
    let memory = |limit| {
        InMemoryWorkingMemory::new()
            .with_clock(Arc::new(clock.clone()))
            .with_limit(limit)
    };

    let small = memory(11);
    let answer = large.keep_in(&small, &me, &keys).await;
    assert!(answer.contains("[result truncated — 576 001 chars omitted]\n[the rest could not be kept: "));
    assert_eq!(small.list(&me, None).await.unwrap(), []);

    let enough = memory(12);
    assert_eq!(large.keep_in(&enough, &me, &keys).await, large.split(&keys).message);
    assert_eq!(enough.list(&me, None).await.unwrap().len(), 12);
    clock.advance(Duration::from_secs(20 * 60));
    assert_eq!(enough.list(&me, None).await.unwrap(), []);
}

/// A conversation that keeps its large results, and reads them.
struct Conversation {
    memory: Arc<InMemoryWorkingMemory>,
    cx: CallContext,
}

impl Conversation {
    fn new(session: &str) -> Self {
        Self {
            memory: Arc::new(InMemoryWorkingMemory::new()),
            cx: CallContext::new(session),
        }
    }

    async fn keep(&self, tool: &str, run: &str, content: &str, policy: &LargeResultPolicy) -> String {
        let tool = tool.into();
        let large = LargeResult::of(&tool, content, policy).unwrap();
        let keys = large.keys(Namespace::of(&self.cx).path(), run).unwrap();
        large.keep_in(&*self.memory, self.cx.principal(), &keys).await
    }

    async fn call(&self, tool: usize, arguments: serde_json::Value) -> Result<String, ToolError> {
        let tool = &result_readers(self.memory.clone())[tool];
        let request = ToolInvokeRequest::new("call-1", tool.registration.name.clone(), arguments.to_string())
            .with_session_id(self.cx.session().clone());
        Ok(tool.executor.execute(request, &self.cx).await?.content.into_words())
    }

    async fn read(&self, key: &str, offset: usize) -> Result<String, ToolError> {
        self.call(0, json!({"key": key, "offset": offset})).await
    }

    async fn search(&self, query: &str, key: Option<&str>) -> Result<String, ToolError> {
        self.call(1, json!({"query": query, "key": key})).await
    }
}

/// The keys that a message shows.
fn shown_keys(message: &str) -> BTreeSet<&str> {
    message
        .split('`')
        .filter(|text| text.contains("tool"))
        .filter(|text| !text.contains(' '))
        .collect()
}

#[test]
fn readers_only_read_and_keep_their_results_whole() {
    for tool in result_readers(Arc::new(InMemoryWorkingMemory::new())) {
        assert_eq!(tool.registration.effect, Effect::Pure);
        assert!(tool.registration.hints.keeps_results_whole);
    }
}

#[tokio::test]
async fn a_fact_in_a_large_result_is_found() {
    let fact = "The vault of Ålesund opens with the C# key 4711-äöü.";
    let filler = |number: usize| format!("Line {number} speaks of the usual things: weather, vaults and other keys.\n");
    let mut content: String = (0..160_000).map(filler).collect();
    let middle = content.char_indices().nth(7_654_321).unwrap().0;
    content.insert_str(middle, fact);
    assert!(content.len() > 10_000_000);
    for key_form in [ChunkKeyForm::Path, ChunkKeyForm::Colons] {
        let policy = LargeResultPolicy {
            key_form,
            ..LargeResultPolicy::default()
        };
        let conversation = Conversation::new("../a");
        let message = conversation.keep("dump", "run-1", &content, &policy).await;
        let index = *shown_keys(&message).iter().find(|key| key.ends_with("index")).unwrap();
        let found = conversation
            .search("code of the vault in alesund", Some(index))
            .await
            .unwrap();
        let first = found.split("\n\n").next().unwrap();
        assert!(first.contains(fact), "{first}");
        assert!(found.chars().count() < 9_000);

        let key = first.split('`').nth(1).unwrap();
        let chunk = conversation.read(key, 0).await.unwrap();
        assert!(chunk.contains(fact) && chunk.chars().count() <= 64_000);
    }
}

#[tokio::test]
async fn a_fact_across_the_border_of_two_chunks_is_found_whole() {
    let fact = "The vault of Lindenau opens with the key 4711.";
    let filler = "Nothing of interest stands here. ".repeat(4_000);
    for (cut, in_border) in [(5, 64_000), (20, 64_000), (40, 128_000)] {
        let conversation = Conversation::new("abc");
        let content = [&filler[..in_border - cut], fact, &filler].concat();
        conversation
            .keep("dump", "1", &content, &LargeResultPolicy::default())
            .await;
        let found = conversation
            .search("How does the Lindenau vault open?", None)
            .await
            .unwrap();
        assert!(found.contains(fact), "{cut}: {found}");
    }
}

#[tokio::test]
async fn a_section_is_found_by_its_heading_and_a_line_far_below_it() {
    let section = |town: &str, key: usize| {
        let filler = "Nothing of interest stands here.\n".repeat(60);
        format!("## Vault of {town}\n\n{filler}\n- opened by: key {key}\n- guard: none\n\n")
    };
    let towns = [
        "Ahrenau", "Lindenau", "Steinau", "Birkenau", "Eichenau", "Falkenau", "Goldau", "Haselau",
    ];
    let sections = towns
        .iter()
        .enumerate()
        .map(|(number, town)| section(town, 4_000 + number));
    let content = [sections.collect::<String>(), "The end.\n".repeat(9_000)].concat();
    let conversation = Conversation::new("abc");
    conversation
        .keep("dump", "1", &content, &LargeResultPolicy::default())
        .await;
    let found = conversation
        .search("Which key opens the vault of Lindenau?", None)
        .await
        .unwrap();
    let first = found.split("\n\n[from").next().unwrap();
    assert!(first.contains("key 4001"), "{found}");
    assert!(
        first.lines().next().unwrap().ends_with(", under: Vault of Lindenau]"),
        "{found}"
    );
}

#[tokio::test]
async fn every_key_that_is_shown_can_be_read_and_searched() {
    for key_form in [ChunkKeyForm::Path, ChunkKeyForm::Colons] {
        let policy = LargeResultPolicy {
            key_form,
            ..LargeResultPolicy::default()
        };
        let conversation = Conversation::new("abc");
        let content = [section("# Models", 30_000), section("## Prices", 50_000)].concat();
        let message = conversation.keep("list", "1", &content, &policy).await;
        let keys = shown_keys(&message);
        assert_eq!(keys.len(), 3, "{keys:?}");
        for key in keys {
            assert!(!conversation.read(key, 0).await.unwrap().is_empty(), "{key}");
            let found = conversation.search("prices", Some(key)).await.unwrap();
            assert!(found.contains("## Prices\n"), "{key}: {found}");
        }
    }
}

#[tokio::test]
async fn a_search_stays_in_its_result_or_its_conversation() {
    let conversation = Conversation::new("abc");
    let policy = LargeResultPolicy::default();
    for (run, word) in [("1", "apple"), ("10", "apple"), ("2", "pear")] {
        conversation
            .keep("list", run, &format!("{word} {}", "x ".repeat(40_000)), &policy)
            .await;
    }
    let other = Conversation {
        memory: conversation.memory.clone(),
        cx: CallContext::new("other"),
    };
    other
        .keep("list", "3", &format!("apple {}", "x ".repeat(40_000)), &policy)
        .await;
    let passages = async |query: &str, key: Option<&str>| {
        let found = conversation.search(query, key).await.unwrap();
        found.matches("[from `").count()
    };
    assert_eq!(passages("apple", None).await, 2);
    assert_eq!(passages("apple", Some("tool-list-1-chunk0")).await, 1);
    assert_eq!(passages("apple", Some("session/abc/tool-list-1-index")).await, 1);
    assert_eq!(passages("plum", None).await, 0);
}

#[tokio::test]
async fn further_pages_show_what_the_first_does_not() {
    let line = |number: usize| {
        format!(
            "{}The apple of tree {number} is ripe.\n",
            "Nothing stands here. ".repeat(60)
        )
    };
    let content: String = (0..60).map(line).collect();
    let conversation = Conversation::new("abc");
    conversation
        .keep("dump", "1", &content, &LargeResultPolicy::default())
        .await;
    let page = async |page: usize| {
        let arguments = json!({"query": "ripe apple", "page": page});
        conversation.call(1, arguments).await.unwrap()
    };
    let pages = [
        page(1).await,
        page(2).await,
        page(3).await,
        page(4).await,
        page(5).await,
    ];
    let mut trees = BTreeSet::new();
    let mut lengths = Vec::new();
    for text in &pages {
        let found = text.split("apple of tree ").skip(1);
        let found: Vec<_> = found.filter_map(|rest| rest.split(' ').next()).collect();
        lengths.push(found.len());
        trees.extend(found);
    }
    assert_eq!((lengths, trees.len()), (vec![14, 14, 14, 14, 4], 60));
    assert!(
        pages[0].ends_with("[more passages: search again with page 2]"),
        "{}",
        pages[0]
    );
    assert!(pages[4].trim_end().ends_with("is ripe."), "{}", pages[4]);
    assert_eq!(page(6).await, "There are no more passages: the last page is 5.");
}

#[tokio::test]
async fn a_statement_of_another_kind_is_not_hidden_behind_records_with_the_same_name() {
    let record = |number: usize| {
        let filler = "Nothing of interest stands here.\n".repeat(50);
        format!(
            "The bridge of town{number} was built in {} by Anna Brandt.\n{filler}",
            1_800 + number
        )
    };
    let (before, behind): (String, String) = ((0..40).map(record).collect(), (40..60).map(record).collect());
    let fact = "For Anna Brandt, the night porter, ring +49 47 11.\n";
    let conversation = Conversation::new("abc");
    conversation
        .keep(
            "dump",
            "1",
            &[&before, fact, &behind].concat(),
            &LargeResultPolicy::default(),
        )
        .await;
    let found = conversation.search("How do I reach Anna Brandt?", None).await.unwrap();
    assert!(found.contains(fact.trim()), "{found}");
}

/// Each other record has a `customer`, which has the stem of `customs`.
#[tokio::test]
async fn a_word_as_written_finds_more_than_its_stem() {
    let record = |number: usize, status: &str| {
        let filler = "Nothing of interest stands here.\n".repeat(20);
        format!("{{\"order\": \"R-{number}\", \"status\": \"{status}\"}},\n{filler}")
    };
    let records: Vec<_> = (0..80)
        .map(|number| record(number, if number == 60 { "at customs" } else { "with customer" }))
        .collect();
    let conversation = Conversation::new("abc");
    conversation
        .keep(
            "dump",
            "1",
            &records.concat(),
            &LargeResultPolicy::default().with_threshold(4_000),
        )
        .await;
    let found = conversation.search("order status customs", None).await.unwrap();
    let first = found.split("\n\n").next().unwrap();
    assert!(first.contains("at customs"), "{found}");
}

#[tokio::test]
async fn long_entries_are_read_in_parts() {
    let conversation = Conversation::new("abc");
    let text = "äb".repeat(40_000);
    let note = WorkingNote::new(
        StorePath::new("session/abc/long").unwrap(),
        text.clone(),
        Provenance::MODEL,
    );
    conversation
        .memory
        .put(conversation.cx.principal(), vec![note])
        .await
        .unwrap();
    let first = conversation.read("long", 0).await.unwrap();
    let (part, notice) = first.rsplit_once('\n').unwrap();
    assert_eq!(notice, "[16000 more characters: read on with offset 64000]");
    let rest = conversation.read("long", 64_000).await.unwrap();
    assert!([part, &rest].concat() == text);
    assert_eq!(conversation.read("long", 99_999).await.unwrap(), "");
}

#[tokio::test]
async fn keys_that_lead_nowhere() {
    let conversation = Conversation::new("abc");
    for (key, code) in [
        ("gone", ToolErrorCode::ExecutionFailed),
        ("session/abc/tool-x-1-index", ToolErrorCode::ExecutionFailed),
        ("../secret", ToolErrorCode::InvalidArguments),
        ("", ToolErrorCode::InvalidArguments),
    ] {
        assert_eq!(conversation.read(key, 0).await.unwrap_err().code(), code, "{key}");
        assert_eq!(
            conversation.search("x", Some(key)).await.unwrap_err().code(),
            code,
            "{key}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_lost_and_every_key_leads_somewhere(
        lines in proptest::collection::vec(("#{0,4} ?[a-zä|`]{0,9}", 1_usize..3_000), 1..60),
        max_sections in 1_usize..60,
    ) {
        let content: String = lines.iter().map(|(line, times)| format!("{line}\n{}", "ä x\n\n".repeat(*times))).collect();
        let policy = LargeResultPolicy { threshold: 10, max_sections, ..LargeResultPolicy::default() };
        prop_assume!(content.chars().count() > 10);
        let chunked = chunked(&content, &policy);
        let (index, chunks) = chunked.notes.split_last().unwrap();
        let whole: String = chunks.iter().map(|note| note.value.as_str()).collect();
        prop_assert!(whole == content, "the chunks are the content");
        prop_assert!(chunks.iter().all(|note| note.value.chars().count() <= 20_000));
        let keys: BTreeSet<_> = chunked.notes.iter().map(|note| note.key.as_str()).collect();
        prop_assert_eq!(keys.len(), chunked.notes.len());
        for text in [&index.value, &chunked.message] {
            let shown = text.split('`').filter(|text| text.starts_with("session/"));
            for key in shown {
                prop_assert!(keys.contains(key), "{key}");
            }
        }
    }
}
