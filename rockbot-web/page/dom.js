// Nodes of the page. Texts become nodes of text alone: nothing here reads markup.

/** Creates an element. Properties that begin with `on` are listeners; others are attributes. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== undefined && value !== null) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

/** Creates a button that does something. Its failure is told beside it by `report`. */
export function button(label, act, properties = {}) {
  return h("button", { type: "button", onclick: act, ...properties }, label);
}

/** Tells a screen reader something, without moving its focus. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

/** Shows an error in a place for errors, or takes it away. */
export function report(place, error) {
  place.replaceChildren(...(error ? [h("p", { class: "error", role: "alert" }, error.message)] : []));
}

/** Moves the focus on when the element that had it is gone: to what is in a place, or to the view. */
export function focusIn(place) {
  (place?.querySelector("button, textarea") ?? document.getElementById("message") ?? document.getElementById("main")).focus();
}

/** Formats a time, which is a number of milliseconds or a text of RFC 3339. */
export function time(value) {
  if (value === undefined || value === null) return "";
  const date = new Date(value);
  const shown = date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return h("time", { datetime: date.toISOString() }, shown);
}

/** Formats the tokens and the cost of answers. A price that is unknown is not zero. */
export function cost(spent) {
  const usage = spent.usage ?? {};
  const tokens = (usage.input ?? 0) + (usage.output ?? 0);
  const parts = [`${tokens.toLocaleString()} tokens`];
  if (spent.cost) parts.push(`$${(spent.cost / 1e6).toFixed(spent.cost < 10_000 ? 5 : 2)}`);
  if (spent.unpriced) parts.push("price unknown");
  return parts.join(" · ");
}

/** Returns the text of a content: a text, or a list of parts. */
export function textOf(content) {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").filter(Boolean).join("\n\n");
}
