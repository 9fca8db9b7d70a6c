//! The conformance suite of [`ToolRegistry`].

use serde_json::json;

use crate::ToolName;
use crate::testing::mock_tool;
use crate::tool::{Owner, RegistryError, Tool, ToolRegistry};

/// Checks that the values that `make` creates keep the contract of [`ToolRegistry`].
///
/// The registry must be empty.
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn tool_registry<R: ToolRegistry>(make: impl AsyncFn() -> R) {
    registers_and_finds(&make().await);
    a_snapshot_never_changes(&make().await);
    a_name_stands_once(&make().await);
    only_the_owner_removes(&make().await);
    replaces_a_source_in_one_step(&make().await);
    arranges_sources(&make().await);
    refuses_what_a_model_cannot_use(&make().await);
    tells_of_every_generation(&make().await).await;
}

fn registers_and_finds(registry: &impl ToolRegistry) {
    let owner = Owner::new("owner");
    for name in ["b", "c", "a"] {
        registry
            .register(&owner, tool(name))
            .expect("a new name can be registered");
    }
    assert_eq!(
        names(registry),
        ["b", "c", "a"],
        "the tools are in the order of their registration"
    );
    let snapshot = registry.snapshot();
    let found = snapshot.find("b").expect("a registered tool is found");
    assert_eq!((found.registration().name.as_str(), found.owner()), ("b", &owner));
    assert!(snapshot.find("d").is_none(), "what is not registered is not found");
    assert!(
        snapshot.view().names().eq(["b", "c", "a"]),
        "a model sees the tools in the same order"
    );
}

fn a_snapshot_never_changes(registry: &impl ToolRegistry) {
    let owner = Owner::new("owner");
    registry
        .register(&owner, tool("a"))
        .expect("a new name can be registered");
    let before = registry.snapshot();
    registry
        .register(&owner, tool("b"))
        .expect("a new name can be registered");
    assert!(before.find("b").is_none(), "an older snapshot stays as it was");
    assert!(
        registry.snapshot().generation() > before.generation(),
        "a change makes a higher generation"
    );
}

fn a_name_stands_once(registry: &impl ToolRegistry) {
    let first = Owner::new("first");
    let second = Owner::new("second");
    registry
        .register(&first, tool("a"))
        .expect("a new name can be registered");
    let before = registry.snapshot().generation();
    for owner in [&first, &second] {
        let refused = registry.register(owner, tool("a"));
        assert!(
            matches!(refused, Err(RegistryError::Duplicate(name)) if name == "a"),
            "a name stands once"
        );
    }
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.generation(), before, "a refused tool changes nothing");
    assert_eq!(
        snapshot.find("a").map(|entry| entry.owner()),
        Some(&first),
        "the first tool stays"
    );
}

fn only_the_owner_removes(registry: &impl ToolRegistry) {
    let (owner, namesake) = (Owner::new("owner"), Owner::new("owner"));
    let name = ToolName::from("a");
    registry
        .register(&owner, tool("a"))
        .expect("a new name can be registered");
    let refused = registry.unregister(&namesake, &name);
    assert!(
        matches!(refused, Err(RegistryError::NotOwner { .. })),
        "only the owner can remove a tool"
    );
    assert_eq!(names(registry), ["a"], "a refused removal changes nothing");
    assert!(
        registry.unregister(&owner, &name).expect("the owner can"),
        "there was a tool"
    );
    assert!(
        !registry
            .unregister(&owner, &name)
            .expect("removing nothing is no error"),
        "there is none left"
    );
    assert_eq!(names(registry), [] as [&str; 0]);
    registry
        .register(&namesake, tool("a"))
        .expect("a name that was given back is free");
}

fn replaces_a_source_in_one_step(registry: &impl ToolRegistry) {
    let owner = Owner::new("owner");
    let other = Owner::new("other");
    registry
        .register(&other, tool("theirs"))
        .expect("a new name can be registered");
    registry
        .replace_source(&owner, vec![tool("a"), tool("b")])
        .expect("new names can be registered");
    let before = registry.snapshot().generation();
    registry
        .replace_source(&owner, vec![tool("b"), tool("c")])
        .expect("an owner can replace its tools");
    assert_eq!(names(registry), ["theirs", "b", "c"], "others keep their tools");
    assert_eq!(
        registry.snapshot().generation(),
        before + 1,
        "a replacement is one step"
    );

    registry
        .register(&other, tool("more"))
        .expect("a new name can be registered");
    registry
        .replace_source(&owner, vec![tool("e"), tool("c"), tool("b")])
        .expect("an owner can replace its tools");
    assert_eq!(
        names(registry),
        ["theirs", "b", "c", "more", "e"],
        "a tool keeps the place of its namesake, and new ones come last"
    );

    for tools in [
        vec![tool("d"), tool("theirs")],
        vec![tool("d"), tool("d")],
        vec![tool("d"), tool("not valid")],
    ] {
        assert!(
            registry.replace_source(&owner, tools).is_err(),
            "a set with a tool that cannot be registered is refused"
        );
        assert_eq!(
            names(registry),
            ["theirs", "b", "c", "more", "e"],
            "a refused replacement changes nothing"
        );
    }
}

fn arranges_sources(registry: &impl ToolRegistry) {
    let owners = ["first", "second", "third"].map(Owner::new);
    let own = Owner::new("own");
    for (owner, name) in [
        (&own, "a"),
        (&owners[1], "c"),
        (&own, "d"),
        (&owners[0], "b"),
        (&owners[1], "e"),
    ] {
        registry
            .register(owner, tool(name))
            .expect("a new name can be registered");
    }
    registry.arrange(&owners);
    assert_eq!(
        names(registry),
        ["a", "b", "c", "e", "d"],
        "the tools of the owners stand together, in their order"
    );
    let generation = registry.snapshot().generation();
    registry.arrange(&owners);
    registry.arrange(&[]);
    assert_eq!(
        registry.snapshot().generation(),
        generation,
        "what stands so already is no change"
    );
}

fn refuses_what_a_model_cannot_use(registry: &impl ToolRegistry) {
    let owner = Owner::new("owner");
    let invalid = registry.register(&owner, tool("with space"));
    assert!(
        matches!(invalid, Err(RegistryError::InvalidName(_))),
        "a name that no provider accepts is refused"
    );
    let silent = registry.register(
        &owner,
        change(tool("a"), |tool| tool.registration.description = "  ".into()),
    );
    assert!(
        matches!(silent, Err(RegistryError::NoDescription(_))),
        "a tool without a description is refused"
    );
    let stuck = change(tool("a"), |tool| tool.registration.hints.max_concurrency = Some(0));
    assert!(
        matches!(registry.register(&owner, stuck), Err(RegistryError::NoConcurrency(_))),
        "a tool that no call could run is refused"
    );
    let schema = json!({"type": "string"});
    let shapeless = registry.register(
        &owner,
        change(tool("a"), |tool| tool.registration.parameters_schema = schema),
    );
    assert!(
        matches!(shapeless, Err(RegistryError::InvalidSchema { .. })),
        "arguments are always an object"
    );
    assert_eq!(names(registry), [] as [&str; 0]);
}

async fn tells_of_every_generation(registry: &impl ToolRegistry) {
    let owner = Owner::new("owner");
    let mut generations = registry.watch();
    assert_eq!(
        *generations.borrow_and_update(),
        registry.snapshot().generation(),
        "a watch begins with the present"
    );
    registry
        .register(&owner, tool("a"))
        .expect("a new name can be registered");
    generations.changed().await.expect("the registry is still there");
    assert_eq!(
        *generations.borrow_and_update(),
        registry.snapshot().generation(),
        "a watch shows the new generation"
    );
    registry
        .unregister(&owner, &ToolName::from("b"))
        .expect("removing nothing is no error");
    assert!(
        !generations.has_changed().expect("the registry is still there"),
        "what changes nothing is not told"
    );
}

fn tool(name: &str) -> Tool {
    mock_tool(name).0
}

fn change(mut tool: Tool, change: impl FnOnce(&mut Tool)) -> Tool {
    change(&mut tool);
    tool
}

fn names(registry: &impl ToolRegistry) -> Vec<String> {
    let snapshot = registry.snapshot();
    snapshot
        .entries()
        .iter()
        .map(|entry| entry.registration().name.to_string())
        .collect()
}
