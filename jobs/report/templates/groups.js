// The table of groups: search, filters and order; and all groups at a moment.
let rows = [...document.querySelectorAll("#groups tbody tr")];
const filters = document.querySelector("form.filters");
const types = [...filters.querySelectorAll("[name=type]")];
const heads = [...document.querySelectorAll("#groups thead th")];
filters.addEventListener("input", (event) => {
  const type = types.filter((box) => box.checked).map((box) => box.value).join(",") || null;
  go({ find: byId("find").value.trim() || null, type, found: byId("only-found").checked ? "1" : null }, event.target === byId("find") ? "find" : null);
});
filters.addEventListener("submit", (event) => event.preventDefault());

// Members, hosts, clients and topics of each group, as text; made once something is looked for.
let indexed = null;
function index() {
  indexed ??= source.all().then((groups) => new Map(groups.map((group) => [group.line.group_id, [
    ...group.members.flatMap((each) => [each.member_id, each.name, each.rack_id ?? "", each.client]), ...group.owned.map((each) => each.name), ...group.offsets.map((each) => `${each.topic} ${each.partition}`),
  ].join("\n").toLowerCase()])));
  return indexed;
}

const idOf = (row) => new URLSearchParams((row.querySelector("th a")?.hash ?? "").slice(1).replaceAll("+", "%2B")).get("group");
let lastSearch = 0;
async function filter() {
  const parts = asked(), text = (parts.get("find") ?? "").toLowerCase(), number = ++lastSearch;
  const chosen = new Set((parts.get("type") ?? "").split(",").filter(Boolean));
  if (document.activeElement !== byId("find")) byId("find").value = parts.get("find") ?? "";
  types.forEach((box) => { box.checked = chosen.has(box.value); });
  byId("only-found").checked = parts.get("found") === "1";
  const show = (inside) => {
    let shown = 0, within = 0;
    for (const row of rows) {
      const own = !text || row.textContent.toLowerCase().includes(text);
      const there = (own || inside.get(idOf(row))?.includes(text)) && (!chosen.size || chosen.has(row.dataset.type)) && (!byId("only-found").checked || row.dataset.found !== "0");
      row.hidden = !there;
      shown += Boolean(there);
      within += Boolean(there) && !own;
    }
    byId("shown").textContent = `${shown} of ${rows.length} groups${within ? `, ${within} by a member, host or topic` : ""}`;
  };
  show(new Map());
  if (text.length < 2) return;
  const inside = await index();
  if (number === lastSearch) show(inside);
}
const moreRows = byId("more-rows");
if (moreRows) {
  unpackText(moreRows).then((text) => {
    document.querySelector("#groups tbody").insertAdjacentHTML("beforeend", text);
    rows = [...document.querySelectorAll("#groups tbody tr")];
    ordered = "";
    order();
    filter();
  });
}

// The order is a part of the address: the number of a column, and "up" or "down".
heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
  const first = head.classList.contains("n") ? "descending" : "ascending";
  const isFirst = head.getAttribute("aria-sort") === first;
  go({ order: `${column}.${(first === "ascending") === isFirst ? "down" : "up"}` });
}));
let ordered = "";
function order() {
  const asks = asked().get("order") ?? "";
  if (asks === ordered) return;
  ordered = asks;
  const [column, way] = asks.split(".");
  const chosen = heads[Number(column)];
  heads.forEach((each) => { if (each.hasAttribute("aria-sort")) each.setAttribute("aria-sort", "none"); });
  if (asks && chosen) chosen.setAttribute("aria-sort", way === "up" ? "ascending" : "descending");
  const numeric = chosen?.classList.contains("n"), sign = way === "up" ? 1 : -1;
  const value = (row) => {
    const cell = row.cells[Number(column)];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    return numeric ? parseFloat(text) || 0 : text;
  };
  const sorted = asks && chosen ? rows.map((row) => [value(row), row]).sort(([a], [b]) => sign * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }))).map(([, row]) => row) : rows;
  document.querySelector("#groups tbody").append(...sorted);
}

// All groups at a moment: those in which something happens first.
const nearest = (group, time) => group.rebalances.reduce((best, each) => (best === null || Math.abs(each.at.timestamp_ms - time) < Math.abs(best.at.timestamp_ms - time) ? each : best), null);
function groupsTable(groups, time, than) {
  const lines = groups.map((group) => ({ group, then: thenOf(group, time), other: than === null ? null : thenOf(group, than) }))
    .sort((a, b) => Boolean(b.then.twice.length) - Boolean(a.then.twice.length) || Boolean(b.then.goesOn) - Boolean(a.then.goesOn) || b.then.without.length - a.then.without.length || a.group.line.group_id.localeCompare(b.group.line.group_id));
  const link = ({ group }) => goes(el("a", { href: address({ group: group.line.group_id }) }, group.line.group_id || "(empty id)"), { group: group.line.group_id });
  const changed = (each) => (each.other === null ? [] : [(() => { const lines = differences(each.group, each.then, each.other); return lines.length ? `${number(lines.length)}: ${lines.slice(0, 3).map(([what]) => what).join(", ")}${lines.length > 3 ? " …" : ""}` : "nothing"; })()]);
  return folded(table(["Group", "Epoch", "State then", "#Members", "#No owner now, one before", "Two owners", "Nearest rebalance", ...(than === null ? [] : ["What differs at the other moment"])], lines.map((each) => {
    const near = nearest(each.group, time);
    return { cells: [link(each), String(each.then.epoch), stateThen(each.then, each.group.line), String(each.then.members.length), String(each.then.without.length), each.then.twice.length ? el("em", { class: "flag worst" }, "two owners") : "–",
      near ? `${near.from_epoch ?? "?"} → ${near.to_epoch}, ${duration(Math.abs(near.at.timestamp_ms - time))} ${near.at.timestamp_ms <= time ? "before" : "after"}` : "none", ...changed(each)] };
  }), { tabindex: "0", role: "region", "aria-label": "All groups at the moment" }), (index) => index < 25 || lines[index].then.goesOn || lines[index].then.twice.length, "groups");
}

let shownMoment = "";
async function overviewMoment() {
  const [time, than] = [timeIn(asked().get("moment")), timeIn(asked().get("than"))];
  const place = byId("then-all"), wanted = `${time} ${than}`;
  if (wanted === shownMoment) return;
  shownMoment = wanted;
  place.hidden = time === null;
  if (time === null) { place.replaceChildren(); return; }
  const groups = (await source.all()).filter((each) => each.line.group_type !== "OFFSETS");
  if (wanted !== shownMoment) return;
  place.replaceChildren(el("h2", { id: "then-all-title" }, `At ${momentHead(time)}`),
    ...[bandNotes(time), groupsTable(groups, time, than)].flat().filter(Boolean));
}


function showGroups() {
  order();
  filter();
  overviewMoment();
}
