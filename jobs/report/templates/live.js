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
if (liveRows) {
  const events = new EventSource("api/live");
  const say = (text) => { byId("live-state").textContent = text; };
  events.addEventListener("open", () => { liveRows.replaceChildren(); say("Connected: nothing has happened since the watch began."); });
  events.addEventListener("error", () => say("The connection is gone; the browser tries again."));
  events.addEventListener("message", (event) => {
    liveRows.prepend(liveRow(JSON.parse(event.data)));
    while (liveRows.childElementCount > LIVE_ROWS) liveRows.lastElementChild.remove();
    say(`${number(liveRows.childElementCount)} rows, the newest first.`);
  });
}
