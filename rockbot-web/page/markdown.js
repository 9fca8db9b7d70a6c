// Markdown as nodes. The text is not trusted: it becomes elements of a fixed set with text in them,
// never markup. Links lead to http, https and mail alone, and images are links, so that nothing is
// loaded because a text says so. Every search for an end is bounded, so that time grows with the
// length of the text alone.

import { h } from "./dom.js";

/** Longest text that is formatted, in characters. A longer text is shown as it is. */
const MAX_FORMATTED = 200_000;

/** Longest distance to the end of an emphasis, a link or a piece of code, in characters. */
const MAX_SPAN = 2_000;

/** Deepest nesting of lists and quotes. */
const MAX_DEPTH = 8;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(\S.*)$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:\s+(.*)|\s*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const RULE = /^ {0,3}([-*_])\s*(?:\1\s*){2,}$/;
const DIVIDER = /^\s*\|?\s*:?-{1,}:?\s*(\|\s*:?-{1,}:?\s*)*\|?\s*$/;

/** Returns the nodes of a text. */
export function markdown(text) {
  if (text.length > MAX_FORMATTED) return [h("pre", { class: "plain" }, text)];
  return blocks(text.replace(/\r\n?/g, "\n").split("\n"), { level: 2 }, 0);
}

function blocks(lines, state, depth) {
  const nodes = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const read = fence(lines, at) ?? heading(line, at, state) ?? rule(line, at) ?? table(lines, at)
      ?? quote(lines, at, state, depth) ?? list(lines, at, state, depth) ?? paragraph(lines, at);
    nodes.push(read.node);
    at = read.next;
  }
  return nodes;
}

function fence(lines, at) {
  const opened = FENCE.exec(lines[at]);
  if (!opened) return undefined;
  const code = [];
  let next = at + 1;
  const isClosing = (line) => line.trimStart().startsWith(opened[1]) && line.trim() === opened[1][0].repeat(line.trim().length);
  while (next < lines.length && !isClosing(lines[next])) code.push(lines[next++]);
  const label = opened[2].trim() ? `Code: ${opened[2].trim().slice(0, 40)}` : "Code";
  // It scrolls, so a keyboard must reach it.
  const pre = h("pre", { tabindex: "0", role: "group", "aria-label": label }, h("code", {}, code.join("\n")));
  return { node: pre, next: next + 1 };
}

function heading(line, at, state) {
  const found = HEADING.exec(line);
  if (!found) return undefined;
  // Headings begin below those of the page, and skip no level.
  state.level = Math.min(2 + found[1].length, state.level + 1, 6);
  const text = found[2].trimEnd();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return { node: h(`h${state.level}`, {}, inline(text.slice(0, end).trimEnd() || text)), next: at + 1 };
}

function rule(line, at) {
  return RULE.test(line) ? { node: h("hr"), next: at + 1 } : undefined;
}

function table(lines, at) {
  const divider = lines[at + 1];
  if (!lines[at].includes("|") || divider === undefined || !divider.includes("-") || divider.length > MAX_SPAN
    || !DIVIDER.test(divider)) return undefined;
  const heads = cells(lines[at]);
  if (cells(divider).length !== heads.length) return undefined;
  let next = at + 2;
  const rows = [];
  while (next < lines.length && lines[next].includes("|")) {
    const row = cells(lines[next++]);
    rows.push(h("tr", {}, heads.map((_, column) => h("td", {}, inline(row[column] ?? "")))));
  }
  const head = h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, inline(text)))));
  const node = h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Table" }, h("table", {}, head, h("tbody", {}, rows)));
  return { node, next };
}

function cells(line) {
  const row = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return row.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function quote(lines, at, state, depth) {
  if (depth >= MAX_DEPTH || !QUOTE.test(lines[at])) return undefined;
  const inner = [];
  let next = at;
  for (let found; next < lines.length && (found = QUOTE.exec(lines[next])); next += 1) inner.push(found[1]);
  return { node: h("blockquote", {}, blocks(inner, state, depth + 1)), next };
}

function list(lines, at, state, depth) {
  const first = ITEM.exec(lines[at]);
  if (!first || depth >= MAX_DEPTH) return undefined;
  const indent = first[1].length;
  const isOrdered = /\d/.test(first[2]);
  const item = (line) => {
    const found = RULE.test(line) ? null : ITEM.exec(line);
    const isNext = found && found[1].length >= indent && found[1].length <= indent + 1 && /\d/.test(found[2]) === isOrdered;
    return isNext ? found : undefined;
  };
  const isInside = (line = "") => line.trim() !== "" && line.length - line.trimStart().length > indent;
  const items = [];
  let next = at;
  for (; next < lines.length; next += 1) {
    const line = lines[next];
    const found = item(line);
    if (found) {
      items.push([found[3] ?? ""]);
    } else if (line.trim() === "" && (isInside(lines[next + 1]) || item(lines[next + 1] ?? ""))) {
      items.at(-1).push("");
    } else if (isInside(line)) {
      items.at(-1).push(line.slice(Math.min(indent + 2, line.length - line.trimStart().length)));
    } else {
      break;
    }
  }
  const nodes = items.map((lines) => h("li", {}, tight(blocks(lines, state, depth + 1))));
  const start = isOrdered ? parseInt(first[2], 10) : 1;
  return { node: h(isOrdered ? "ol" : "ul", { start: start === 1 ? undefined : start }, nodes), next };
}

/** Returns the nodes of an item, whose only paragraph needs no element of its own. */
function tight(nodes) {
  return nodes.length > 0 && nodes[0].tagName === "P" ? [...nodes[0].childNodes, ...nodes.slice(1)] : nodes;
}

function paragraph(lines, at) {
  const text = [lines[at].trim()];
  let next = at + 1;
  const ends = (line) => line.trim() === "" || [FENCE, HEADING, ITEM, QUOTE, RULE].some((form) => form.test(line));
  while (next < lines.length && !ends(lines[next])) text.push(lines[next++].trimStart());
  return { node: h("p", {}, inline(text.join("\n"))), next };
}

/** Characters that may begin something other than text. */
const SPECIAL = /[\\`*_~![\n]|https?:\/\//g;

/** Returns the nodes of a text within a block. */
function inline(text, isLink = false) {
  const nodes = [];
  let plain = "";
  let at = 0;
  const flush = () => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
  };
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const found = SPECIAL.exec(text);
    const start = found ? found.index : text.length;
    plain += text.slice(at, start);
    if (!found) break;
    const read = span(text, start, isLink);
    if (read.node) {
      flush();
      nodes.push(read.node);
    } else {
      plain += read.text;
    }
    at = read.next;
  }
  flush();
  return nodes;
}

function span(text, at, isLink) {
  const one = text[at];
  const plain = (length = 1) => ({ text: text.slice(at, at + length), next: at + length });
  if (one === "\\") return /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "") ? { text: text[at + 1], next: at + 2 } : plain();
  if (one === "\n") return text.slice(at - 2, at) === "  " ? { node: h("br"), next: at + 1 } : { text: "\n", next: at + 1 };
  if (one === "`") return code(text, at) ?? plain(run(text, at));
  if (one === "h") return isLink ? plain() : address(text, at);
  if (one === "!") return text[at + 1] === "[" && !isLink ? link(text, at + 1, true) ?? plain() : plain();
  if (one === "[") return isLink ? plain() : link(text, at, false) ?? plain();
  return emphasis(text, at, isLink) ?? plain(run(text, at));
}

/** Returns the number of equal characters from a place on. */
function run(text, at) {
  let end = at + 1;
  while (text[end] === text[at]) end += 1;
  return end - at;
}

function code(text, at) {
  const mark = "`".repeat(run(text, at));
  const from = at + mark.length;
  const end = find(text, mark, from);
  return end < 0 ? undefined : { node: h("code", {}, text.slice(from, end).trim()), next: end + mark.length };
}

/** Returns the next place of a text within the bound of spans, or -1. */
function find(text, wanted, from) {
  const found = text.slice(from, from + MAX_SPAN).indexOf(wanted);
  return found < 0 ? -1 : from + found;
}

const EMPHASIS = { "**": "strong", "__": "strong", "*": "em", "_": "em", "~~": "del" };

function emphasis(text, at, isLink) {
  const mark = run(text, at) >= 2 ? text[at].repeat(2) : text[at];
  const tag = EMPHASIS[mark];
  const from = at + mark.length;
  const isWord = (place) => /[\p{L}\p{N}]/u.test(text[place] ?? "");
  if (!tag || /\s/.test(text[from] ?? " ") || (mark[0] === "_" && isWord(at - 1))) return undefined;
  let end = find(text, mark, from);
  // `*a **b** c*`: a single mark ends at no double one.
  while (mark.length === 1 && end > 0 && text[end + 1] === mark && end - from < MAX_SPAN) {
    const after = end + run(text, end);
    end = find(text, mark, after);
  }
  if (end <= from || /\s/.test(text[end - 1]) || (mark[0] === "_" && isWord(end + mark.length))) return undefined;
  return { node: h(tag, {}, inline(text.slice(from, end), isLink)), next: end + mark.length };
}

function link(text, at, isImage) {
  const middle = find(text, "](", at + 1);
  if (middle < 0) return undefined;
  const end = find(text, ")", middle + 2);
  if (end < 0) return undefined;
  const target = text.slice(middle + 2, end).trim().split(/\s/)[0].replace(/^<|>$/g, "");
  const label = text.slice(at + 1, middle);
  const url = followed(target);
  if (!url) return undefined;
  const shown = isImage ? [`Image: ${label || url.host}`] : inline(label, true);
  return { node: anchor(url, shown.length > 0 ? shown : [url.href]), next: end + 1 };
}

/** Returns an address in the text as a link to it. */
function address(text, at) {
  const found = /^https?:\/\/[^\s<>"'`|]*[^\s<>"'`|.,;:!?)\]}*_]/.exec(text.slice(at, at + MAX_SPAN));
  const url = found && followed(found[0]);
  return url ? { node: anchor(url, [found[0]]), next: at + found[0].length } : { text: text[at], next: at + 1 };
}

/** Returns the URL of a link that may be followed. */
function followed(target) {
  const url = URL.canParse(target) ? new URL(target) : undefined;
  return url && ["http:", "https:", "mailto:"].includes(url.protocol) ? url : undefined;
}

function anchor(url, shown) {
  // The address is shown on hover and to a screen reader's user who asks: a label may lie about it.
  return h("a", { href: url.href, title: url.href, rel: "noopener noreferrer", target: "_blank" }, shown);
}

/** A text that grows: blocks that are complete are formatted once. */
export class GrowingMarkdown {
  constructor() {
    this.node = h("div", { class: "markdown" });
    this.tail = h("div", { class: "tail" });
    this.node.append(this.tail);
    this.text = "";
    /** End of the blocks that are formatted for good. */
    this.done = 0;
    this.scanned = 0;
    this.isFenced = false;
    this.timer = undefined;
    this.pause = 30;
    /** Length of the text that is shown unformatted, since all of it is too long. */
    this.plain = 0;
  }

  append(piece) {
    this.text += piece;
    this.timer ??= setTimeout(() => this.render(), this.pause);
  }

  /** Replaces the whole text, which grows no more. */
  finish(text) {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.text = text;
    this.node.replaceChildren(...markdown(text));
  }

  render() {
    const begun = performance.now();
    this.timer = undefined;
    if (this.text.length > MAX_FORMATTED) {
      this.grow();
    } else {
      const boundary = this.boundary();
      if (boundary > this.done) {
        this.tail.before(...markdown(this.text.slice(this.done, boundary)));
        this.done = boundary;
      }
      this.tail.replaceChildren(...markdown(this.text.slice(this.done)));
    }
    // A long block takes its time: the page stays usable meanwhile.
    this.pause = Math.max(30, 4 * (performance.now() - begun));
  }

  /** Shows a text that is too long to be formatted, with what was formatted before. */
  grow() {
    const plain = this.tail.querySelector(":scope > pre.plain") ?? h("pre", { class: "plain" });
    if (!plain.isConnected) this.tail.replaceChildren(plain);
    plain.append(this.text.slice(this.done + this.plain));
    this.plain = this.text.length - this.done;
  }

  /** Returns the end of the last block that no further text changes. */
  boundary() {
    let boundary = this.done;
    for (let end; (end = this.text.indexOf("\n", this.scanned)) >= 0; this.scanned = end + 1) {
      const line = this.text.slice(this.scanned, end);
      if (FENCE.test(line)) this.isFenced = !this.isFenced;
      const next = this.text[end + 1];
      const goesOn = next === undefined || /[\s\d>|*+-]/.test(next);
      if (!this.isFenced && line.trim() === "" && !goesOn) boundary = end + 1;
    }
    return boundary;
  }
}
