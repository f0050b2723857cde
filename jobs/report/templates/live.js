// Live rows: the server sends what its watch sees. A browser connects again by itself.
const LIVE_ROWS = 50;
const liveRows = byId("live-rows");
function liveRow(row) {
  const at = row.at?.timestamp_ms ?? row.until_ms ?? row.timestamp_ms ?? null;
  const what = row.event === "finding" ? `${words(row.kind)} ${row.change}` : row.event === "lag" ? `lag ${row.status}` : `${words(row.event)}: ${row.from_epoch ?? "?"} → ${row.to_epoch}${row.event === "rebalance_ended" ? `, ${row.outcome}` : ""}`;
  const why = row.detail ?? (row.causes ?? []).map((each) => words(each.kind) + (each.detail ? `, ${each.detail}` : "")).join("; ");
  const then = { group: row.group_id, ...(at === null ? {} : { moment: iso(at) }) };
  return el("li", {}, row.group_id === null ? el("b", {}, "whole cluster") : goes(el("a", { href: address(then) }, row.group_id), then),
    el("span", { class: "when" }, at === null ? "" : utc(at)), el("span", { class: "detail" }, el("b", {}, what), why ? `: ${why}` : ""));
}
// What shows the present follows it: the list of groups, and a group of which there is a new row. What somebody chose, or
// has under the hands, stays as it is: a link says what is new.
const FOLLOW_MS = 1000;
const isHeld = (place) => !getSelection().isCollapsed || (place.contains(document.activeElement) && document.activeElement.id !== "group-title");
const isPresent = () => !["moment", "epoch", "at", "since", "until"].some((name) => asked().get(name));
let follows = null;
function followGroup(what) {
  if (!present || follows) return;
  follows = setTimeout(() => {
    follows = null;
    if (!present) return;
    if (isPresent() && !isHeld(byId("group"))) return again();
    const show = el("a", { href: location.hash }, "show it");
    show.addEventListener("click", (event) => { event.preventDefault(); again(); });
    byId("news").replaceChildren(`New in this group${what && `: ${what}`} `, show);
  }, FOLLOW_MS);
}
function followList() {
  const reload = el("a", { href: location.href }, "reload");
  reload.addEventListener("click", (event) => { event.preventDefault(); location.reload(); });
  byId("live-older").replaceChildren("Findings and charts are as they were when this page was opened: ", reload);
  if (!present && isPresent() && !isHeld(byId("groups-place"))) { shownGroups = null; showGroups(); }
}
if (liveRows) {
  const events = new EventSource("api/live");
  const say = (text) => { byId("live-state").textContent = text; };
  events.addEventListener("open", () => { liveRows.replaceChildren(); say("Connected: nothing has happened since the watch began."); });
  events.addEventListener("error", () => say("The connection is gone; the browser tries again."));
  // Rows before "now" were there when the page began, or came while it was not connected.
  let isNow = false, wasAway = false;
  events.addEventListener("open", () => { isNow = false; });
  events.addEventListener("now", () => { isNow = true; if (wasAway) followGroup(""); wasAway = true; });
  events.addEventListener("news", followList);
  events.addEventListener("message", (event) => {
    const row = JSON.parse(event.data);
    liveRows.prepend(liveRow(row));
    if (isNow && row.group_id === present?.id) followGroup(liveRows.firstElementChild.querySelector("b:last-of-type").textContent);
    while (liveRows.childElementCount > LIVE_ROWS) liveRows.lastElementChild.remove();
    say(`${number(liveRows.childElementCount)} rows, the newest first.`);
  });
}
