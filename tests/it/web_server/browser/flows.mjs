// Flows of a person at the page: `node flows.mjs FLOW URL`. A failed check ends the program.

import assert from "node:assert/strict";

import { Window, reached } from "./browser.mjs";

const flows = { chat, approvals, reload, growing, hostile, long, browse, news, beside, open };

async function chat(url) {
  const window = await Window.open(url);
  const { page } = window;
  await window.check("sign-in");
  await window.signIn("wrong");
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").innerText(), /no user's/);
  await window.signIn();
  await page.getByRole("heading", { name: "agent", level: 1 }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "BODY", "no focus is stolen at the start");
  await window.check("empty");

  await window.ask("What is there to drink?");
  assert.match(await window.answered(), /^Drinks\n/);
  const answer = page.locator(".log .message.assistant").last();
  assert.equal(await answer.getByRole("heading", { level: 3 }).innerText(), "Drinks");
  assert.deepEqual(await answer.locator("ul > li").allInnerTexts(), ["Tea, green", "Coffee"]);
  assert.deepEqual(await answer.locator("td").allInnerTexts(), ["Tea", "2"]);
  assert.equal(await answer.locator("pre code").innerText(), "brew(\"tea\");");
  assert.equal(await answer.getByRole("link").getAttribute("href"), "https://tea.example/");
  assert.match(await answer.locator(".cost").innerText(), /^15 tokens · \$0\.00120$/);
  await page.getByText("This session: 15 tokens").waitFor();
  await window.check("answer");

  const first = await page.locator("#session-title").innerText();
  await page.getByRole("link", { name: "New session" }).click();
  await page.waitForFunction((first) => document.getElementById("session-title").textContent !== first, first);
  assert.equal(await page.evaluate(() => document.activeElement.id), "message");
  await window.ask("And to eat?");
  assert.equal(await window.answered(), "Cake.");
  const second = await page.locator("#session-title").innerText();
  const sessions = page.getByRole("navigation", { name: "Sessions" });
  await sessions.getByRole("link", { name: first, exact: true }).waitFor();

  await window.view("Search");
  await page.getByLabel("Words").fill("drink");
  await page.keyboard.press("Enter");
  await page.getByText("What is there to drink?").waitFor();
  await window.check("search");
  await page.getByRole("main").getByRole("link", { name: first }).first().click();
  await page.getByText("What is there to drink?").waitFor();
  assert.match(await window.answered(), /^Drinks\n/);

  await sessions.getByRole("button", { name: `Delete the session ${second}` }).click();
  await sessions.getByRole("link", { name: second, exact: true }).waitFor({ state: "detached" });
  assert.match(window.asked, /cannot be undone/);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Your token").waitFor();
  await page.reload();
  await page.getByLabel("Your token").waitFor();
  await window.close();
}

async function approvals(url) {
  const window = await Window.open(url);
  const { page } = window;
  await window.signIn();
  await window.ask("Pay 7.");
  const asked = page.getByRole("article", { name: "May the agent call pay?" });
  await asked.waitFor();
  assert.equal(await asked.getByRole("group", { name: "Arguments of pay" }).innerText(), "{\n  \"n\": 7\n}");
  await window.check("approval");
  await asked.getByRole("button", { name: "Approve" }).click();
  assert.equal(await window.answered(), "Paid.");
  await asked.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement.id), "message", "the focus is not lost");
  const call = page.locator(".call").last();
  assert.equal(await call.locator(".state").innerText(), "done");
  await call.locator("summary").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("group", { name: "Result of pay" }).waitFor();
  await window.check("call");

  await window.ask("Pay 8.");
  await asked.waitFor();
  await asked.getByLabel("Reason for a denial").fill("too much");
  await asked.getByRole("button", { name: "Deny" }).click();
  assert.equal(await window.answered(), "Not paid.");

  await window.ask("Ask the clerk to pay 9.");
  await asked.waitFor();
  assert.match(await asked.locator(".chain").innerText(), /clerk → pay/);
  // The call waits also in a new tab, and is decided there.
  await page.reload();
  await asked.waitFor();
  await asked.getByRole("button", { name: "Approve" }).click();
  assert.equal(await window.answered(), "The clerk has paid.");

  await window.ask("Think.");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".log").getByText("Cancelled.", { exact: true }).waitFor();
  await window.close();
}

async function reload(url) {
  const window = await Window.open(url);
  const { page } = window;
  await window.signIn();
  await window.ask("Is it open?");
  await page.getByText("Let me look.").waitFor();
  await page.locator(".call .state", { hasText: "runs" }).waitFor();
  await window.check("running");
  await page.reload();
  await page.getByText("Is it open?").waitFor();
  await page.getByText("Let me look.").waitFor();
  await page.locator(".call .state", { hasText: "runs" }).waitFor();
  await reached("reloaded");
  assert.equal(await window.answered(), "It is open.");
  assert.equal(await page.locator(".log .message.user").count(), 1);
  assert.equal(await page.locator(".call .state").innerText(), "done");
  await page.reload();
  assert.equal(await window.answered(), "It is open.");
  await window.close();
}

async function growing(url) {
  const window = await Window.open(url);
  const { page } = window;
  await window.signIn();
  await window.ask("Tell me.");
  for (const piece of ["One **two", "two three", "four"]) {
    await page.locator(".message.assistant .markdown", { hasText: piece }).waitFor();
    await reached(piece);
  }
  assert.equal(await window.answered(), "One two three\n\nfour five");
  assert.equal(await page.locator(".message.assistant .markdown strong").innerText(), "two three");
  await window.close();
}

/** Checks that no text became more than text. */
async function assertHarmless(window) {
  const found = await window.page.evaluate(() => ({
    pwned: globalThis.pwned,
    scripts: [...document.scripts].map((script) => script.getAttribute("src")),
    elements: [...document.querySelectorAll("iframe, object, embed, svg, base, link:not([href^='page/']), style, video, audio, form[action]")].map((node) => node.outerHTML),
    images: [...document.images].map((image) => image.src).filter((src) => !src.startsWith("blob:")),
    links: [...document.links].map((link) => link.protocol).filter((protocol) => !["http:", "https:", "mailto:"].includes(protocol)),
    handlers: [...document.querySelectorAll("*")].flatMap((node) => node.getAttributeNames().filter((name) => name.startsWith("on"))),
  }));
  const expected = { pwned: undefined, scripts: ["page/app.js"], elements: [], images: [], links: [], handlers: [] };
  assert.deepEqual({ pwned: undefined, ...found }, expected);
}

async function hostile(url) {
  const window = await Window.open(url);
  const { page } = window;
  await window.signIn();
  await window.ask("Show me.<script>pwned=1</script>");
  const answer = await window.answered();
  assert.match(answer, /<script>pwned = 1<\/script>/, "the text is shown as it is");
  assert.match(answer, /Image: tracker/);
  await page.locator(".call summary").first().click();
  await assertHarmless(window);
  await window.check("hostile");
  // Links lead out of the page, which no opened page can reach.
  for (const link of await page.locator(".markdown a").all()) {
    assert.equal(await link.getAttribute("rel"), "noopener noreferrer");
  }
  for (const view of ["Memory", "Skills", "Rules", "Working memory", /^Said unasked/]) {
    await window.view(view);
    await page.getByText("<img src=x onerror=").first().waitFor();
    await assertHarmless(window);
  }
  await page.reload();
  await page.getByText("<img src=x onerror=").first().waitFor();
  await assertHarmless(window);
  await window.close();
}

async function long(url) {
  const window = await Window.open(url);
  const { page } = window;
  await window.signIn();
  for (const kind of ["words", "brackets", "stars", "quotes", "hashes", "table", "fence"]) {
    await window.ask(kind);
    await page.waitForFunction((kind) => document.getElementById("said").textContent.includes(`${kind}:`), kind);
    const length = await page.evaluate(() => [...document.querySelectorAll(".message.assistant .markdown")].at(-1).textContent.length);
    // Marks of lists and quotes are no text, and spaces are one space.
    const least = { words: 900_000, quotes: 30_000, hashes: 5, table: 30_000 }[kind] ?? 100_000;
    assert(length >= least, `${kind}: ${length}`);
    // The page is usable. Where formatting took quadratic time, this step would run into its time limit.
    await page.getByLabel("Message", { exact: true }).fill("x");
  }
  await window.close();
}

async function browse(url) {
  const window = await Window.open(url);
  const { page } = window;
  await window.signIn();
  const main = page.getByRole("main");
  await window.view("Memory");
  await main.getByText("Ann likes tea").waitFor();
  await window.check("memory");
  await main.getByLabel("Words").fill("coffee");
  await page.keyboard.press("Enter");
  await main.getByText("There is nothing here.").waitFor();
  await window.view("Skills");
  await main.getByRole("button", { name: "Read tea/brew" }).click();
  await main.getByText("Warm the pot.").waitFor();
  await window.check("skills");
  await window.view("Rules");
  await main.getByText("Your time zone: Europe/Oslo").waitFor();
  await window.check("rules");
  await window.view("Working memory");
  await main.getByRole("button", { name: "Read all of session/a/tea" }).click();
  await page.waitForFunction(() => [...document.querySelectorAll("main pre")].some((pre) => pre.textContent.length > 2000));
  await window.check("working-memory");
  await window.view("Schedules");
  await main.getByText("0 16 * * *").waitFor();
  await window.check("schedules");
  await window.view("Runs");
  await main.getByText("There is nothing here.").waitFor();
  await window.view("Dreams");
  await main.getByRole("button", { name: /^Apply the plan/ }).click();
  await main.getByRole("button", { name: /^Undo the plan/ }).waitFor();
  await window.check("dreams");
  await main.getByRole("button", { name: /^Undo the plan/ }).click();
  await main.getByRole("button", { name: /^Apply the plan/ }).waitFor();
  assert.equal(await main.locator("dd").first().innerText(), "undone");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Apply", "the focus is not lost");

  // By keyboard alone, on a narrow screen.
  await page.setViewportSize({ width: 380, height: 800 });
  await page.reload();
  await main.getByRole("button", { name: /^Apply the plan/ }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.getByRole("button", { name: "Menu" }).focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.getByRole("button", { name: "Menu" }).getAttribute("aria-expanded"), "true");
  await page.getByRole("link", { name: "Memory", exact: true }).focus();
  await page.keyboard.press("Enter");
  await main.getByRole("heading", { name: "Memory", level: 2 }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await window.close();
}

async function news(url) {
  const window = await Window.open(url);
  const { page } = window;
  await window.signIn();
  const badge = page.getByLabel("1 unread");
  await badge.waitFor();
  await reached("one");
  await page.getByLabel("2 unread").waitFor();
  await window.view(/^Said unasked/);
  await page.getByText("The tea is cold.").waitFor();
  await window.check("news");
  // Another window dismisses one while this one is in the background.
  const other = await window.context.newPage();
  await other.goto(url);
  await other.getByLabel("Your token").fill("sesame");
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByRole("link", { name: /^Said unasked/ }).click();
  await other.getByText("The tea is cold.").waitFor();
  const hide = (isHidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
  await hide(true);
  await other.getByRole("button", { name: /^Dismiss/ }).first().click();
  await other.getByText("The tea is cold.").waitFor({ state: "detached" });
  await page.getByText("The tea is cold.").waitFor();
  await hide(false);
  await page.getByText("The tea is cold.").waitFor({ state: "detached" });
  await badge.waitFor();
  // The window that is shown hears at once what the other one does.
  await reached("two");
  await page.getByText("More tea?").waitFor();
  await other.getByText("More tea?").waitFor();
  await page.getByRole("button", { name: /^Dismiss/ }).first().click();
  await other.getByText("More tea?").waitFor({ state: "detached" });
  await page.reload();
  await page.getByText("The tea is ready.").waitFor();
  assert.equal(await page.getByText("The tea is cold.").count(), 0);
  await window.close();
}

async function beside(url) {
  const window = await Window.open(url);
  const { page } = window;
  await window.signIn();
  await window.ask("Who are you?");
  assert.equal(await window.answered(), "The agent.");
  const own = await page.locator("#session-title").innerText();
  const agent = page.getByRole("combobox", { name: "Agent" });
  await agent.selectOption("cook");
  await page.getByRole("heading", { name: `cook/${own}` }).waitFor();
  await window.ask("What is for dinner?");
  assert.equal(await window.answered(), "Soup.");
  await page.reload();
  await page.getByText("What is for dinner?").waitFor();
  assert.equal(await agent.inputValue(), "cook");
  assert.equal(await page.getByText("Who are you?").count(), 0, "an agent has conversations of its own");
  await window.check("beside");
  await agent.selectOption("agent");
  await page.getByText("Who are you?").waitFor();
  await window.close();
}

/** A server without users: no sign-in, and an operator. */
async function open(url) {
  const window = await Window.open(url);
  const { page } = window;
  await page.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Sign out" }).count(), 0);
  const image = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
  await page.getByLabel("Image").setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: image });
  await window.ask("What is this?");
  assert.equal(await window.answered(), "A dot.");
  await page.reload();
  const shown = page.locator(".message.user img");
  await shown.waitFor();
  await page.waitForFunction(() => document.querySelector(".message.user img").naturalWidth === 1);
  assert.match(await shown.getAttribute("src"), /^blob:/);
  await window.close();
}

const [flow, url] = process.argv.slice(2);
flows[flow](url).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
