// The address of the page holds all that is seen: group, rebalance, window of time, moments, search, filters.
// Times are UTC, so that a link means the same everywhere.
const asked = () => new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
const iso = (ms) => new Date(Math.round(ms)).toISOString();
const timeIn = (text) => (text === null || isNaN(Date.parse(text)) ? null : Date.parse(text));
const asLink = (pairs) => `#${pairs.filter(([, value]) => value !== null && value !== "").map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%3A", ":")}`).join("&")}`;

// The address with some of its parts changed; null takes a part away.
function address(changes) {
  const parts = new Map(asked());
  for (const [name, value] of Object.entries(changes)) parts.set(name, value);
  return asLink([...parts].filter(([name, value]) => name === "group" || value !== ""));
}

const latest = new Map();
// What follows soon after a change of the same kind is one step of the way back.
function go(changes, kind = null) {
  const link = address(changes);
  if (link === (location.hash || "#")) return;
  const before = latest.get(kind);
  if (kind !== null && before && before.link === location.hash && performance.now() - before.at < 1500) history.replaceState(null, "", link);
  else history.pushState(null, "", link);
  if (kind !== null) latest.set(kind, { link: location.hash, at: performance.now() });
  route();
}

// A link that changes parts of the address as it is when it is followed.
function goes(link, changes) {
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(changes);
  });
  return link;
}

// The window of time of a view is part of the address.
function addressed(state) {
  state.chosen = () => {
    const isWhole = state.range.every((each, index) => Math.abs(each - state.whole[index]) < 1);
    go(isWhole ? { since: null, until: null } : { since: iso(state.range[0]), until: iso(state.range[1]) }, "window");
  };
  state.follows = () => {
    const [since, until] = [timeIn(asked().get("since")), timeIn(asked().get("until"))];
    state.moment = timeIn(asked().get("moment"));
    state.than = timeIn(asked().get("than"));
    const [from, end] = [since ?? state.whole[0], until ?? state.whole[1]];
    if (end < state.whole[0] || from > state.whole[1] || end <= from) state.show(...state.whole);
    else state.show(from, end);
  };
  state.follows();
  return state;
}

const PAD_MS = 10_000;
// The window in which a finding is seen with what was before and after it.
function around(sinceMs, untilMs) {
  const pad = Math.max(PAD_MS, (untilMs - sinceMs) / 4);
  return { since: iso(sinceMs - pad), until: iso(untilMs + pad) };
}

const UNIT_MS = { ms: 1, s: 1e3, min: 6e4, h: 36e5, d: 864e5 };
// A moment that was typed: a time of day, a date with a time, or a distance from `base` (ms). Null: it is none of these.
function momentOf(text, base, [first, last]) {
  const distance = /^([+-])\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)$/.exec(text);
  if (distance) return base === null ? null : base + (distance[1] === "-" ? -1 : 1) * distance[2] * UNIT_MS[distance[3]];
  const clock = /^(\d{1,2}):(\d\d)(?::(\d\d)(\.\d{1,3})?)?$/.exec(text);
  if (clock) {
    const ofDay = clock[1] * 36e5 + clock[2] * 6e4 + (clock[3] ?? 0) * 1e3 + Math.round((clock[4] ?? 0) * 1e3);
    const days = [];
    for (let day = Math.floor(first / 864e5) * 864e5; day <= last && days.length < 4000; day += 864e5) if (day + ofDay >= first - 6e4 && day + ofDay <= last + 6e4) days.push(day + ofDay);
    const near = base ?? last;
    return days.sort((a, b) => Math.abs(a - near) - Math.abs(b - near))[0] ?? Math.floor(near / 864e5) * 864e5 + ofDay;
  }
  if (!/^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text)) return null;
  const time = Date.parse(`${text.replace(" ", "T")}${/T.*(Z|[+-]\d\d:\d\d)$/.test(text.replace(" ", "T")) || text.length === 10 ? "" : "Z"}`);
  return isNaN(time) ? null : time;
}
