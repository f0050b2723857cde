// Making elements; all text goes in as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    // A style that is set so is allowed where a page may have no inline styles.
    if (name === "style") element.style.cssText = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined));
  return element;
}
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
const byId = (id) => document.getElementById(id);

const words = (text) => String(text).replaceAll("_", " ");
const slug = (text) => String(text).replaceAll(" ", "-");
const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en-US"));
const epochName = (line) => (line.group_type === "CLASSIC" ? "generation" : "epoch");
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const position = (at) => `${at.partition}:${at.offset}`;

function utc(ms) {
  const date = new Date(ms);
  return isNaN(date) ? `${ms} ms` : date.toISOString().slice(0, 23).replace("T", " ");
}

function duration(ms) {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60000) return `${ms < 10000 ? (Math.floor(ms / 100) / 10).toFixed(1) : Math.floor(ms / 1000)} s`;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let rest = Math.floor(ms / 1000);
  const parts = [];
  for (const [name, seconds] of units) {
    if (rest >= seconds) parts.push(`${Math.floor(rest / seconds)} ${name}`);
    rest %= seconds;
  }
  return parts.slice(0, 2).join(" ");
}

// Idle time and moves have no meaning where a partition has several owners at a time.
const figure = (rebalance, value) => (value !== null ? value : rebalance.group_type === "SHARE" ? "–" : "unknown");

function took(rebalance) {
  const { duration_min_ms: least, duration_max_ms: most } = rebalance;
  if (least === null) return "unknown";
  if (least === most) return duration(least);
  return most === null ? `${duration(least)} or more` : `${duration(least)} to ${duration(most)}`;
}

// The log of what has a log_topic, where the group lives in two: Connect workers that moved from one protocol to the other.
const logIn = (group, each) => (group.rebalances.some((other) => other.log_topic !== each.log_topic) ? each.log_topic : null);

function groupLink(id, rebalance) {
  const link = `#group=${encodeURIComponent(id)}`;
  return rebalance ? `${link}&epoch=${rebalance.to_epoch}&at=${position(rebalance.at)}` : link;
}

const tip = byId("tip");
function showTip(element, text) {
  tip.textContent = text;
  tip.hidden = false;
  const target = element.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, target.left + target.width / 2 - own.width / 2), innerWidth - own.width - 8);
  const above = Math.max(target.top, 0) - own.height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : Math.min(target.bottom + 8, innerHeight - own.height - 8)}px`;
}
// Shapes tell when they are pointed at. A listener for the focus would make each of them a tab stop: only links get one.
function tells(element, text) {
  element.told = text;
  if (!element.hasAttribute("href")) return element;
  element.addEventListener("focus", () => showTip(element, text));
  element.addEventListener("blur", () => { tip.hidden = true; });
  return element;
}

// One listener tells what is pointed at, however many shapes there are.
function tellsAll(place) {
  place.addEventListener("pointermove", (event) => {
    let shape = event.target;
    while (shape !== place && shape.told === undefined) shape = shape.parentNode;
    if (shape === place) tip.hidden = true;
    else showTip(shape, typeof shape.told === "function" ? shape.told() : shape.told);
  });
  place.addEventListener("pointerleave", () => { tip.hidden = true; });
}

// Who: an instance id, or client id and host; the member id where the log has neither.
const who = (cause) => (cause.instance_id ? `instance ${cause.instance_id}` : cause.client_id ? `${cause.client_id} at ${cause.client_host ?? "unknown host"}` : cause.member_id);

// Causes of one kind, with the names of their members or topics.
function whyParts(rebalance) {
  const own = partsOf(rebalance.caused_by);
  if (rebalance.follows === null) return own;
  const [first, ...others] = partsOf(rebalance.origin);
  return first ? [...own, { ...first, kind: `after epoch ${rebalance.follows}: ${first.kind}` }, ...others] : own;
}
function partsOf(causes) {
  const byKind = new Map();
  for (const cause of causes) byKind.set(cause.kind, [...(byKind.get(cause.kind) ?? []), cause]);
  return [...byKind].map(([kind, same]) => {
    const names = [...new Set(same.map((each) => (each.member_id ? who(each) : each.topics.join(", "))).filter(Boolean))];
    const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
    return { kind: words(kind), names: names.slice(0, 3).join(", ") + more };
  });
}
addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
