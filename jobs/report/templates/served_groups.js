// The table of groups of the served page, now or at a moment: a page of it at a time; and what a search finds.
const MOST = 100;
const filters = document.querySelector("form.filters");
const types = [...filters.querySelectorAll("[name=type]")];
filters.addEventListener("submit", (event) => { event.preventDefault(); go({ find: byId("find").value.trim() || null, first: null }); });
filters.addEventListener("change", (event) => {
  if (event.target === byId("find")) return;
  types.forEach((box) => { if (box !== event.target && event.target.name === "type") box.checked = false; });
  go({ type: types.find((box) => box.checked)?.value ?? null, found: byId("only-found").checked ? "1" : null, first: null });
});
const turn = (step) => go({ first: String(Math.max(0, Number(asked().get("first") ?? 0) + step)) });
byId("groups-before").addEventListener("click", () => turn(-MOST));
byId("groups-after").addEventListener("click", () => turn(MOST));

const COMPARED = [["epoch", "Epoch"], ["members", "Members"], ["rebalances", "Rebalances"], ["rebalancing_to", "In progress"]];
const toGroup = (id) => goes(el("a", { href: address({ group: id }) }, id || "(empty id)"), { group: id, epoch: null, at: null });
function groupsAt(page, than) {
  const other = new Map(page.than.map((each) => [each.group_id, each]));
  const changed = (each) => COMPARED.filter(([name]) => other.get(each.group_id)[name] !== each[name]).map(([name, said]) => `${said}: ${each[name] ?? "–"} → ${other.get(each.group_id)[name] ?? "–"}`).join("; ") || "nothing of this";
  return table(["Group", "Type", "Epoch", "Since (UTC)", "In progress", "#Members", "#Rebalances until then", "#Findings", ...(than ? ["What differs at the other moment"] : [])], page.groups.map((each) => ({
    cells: [toGroup(each.group_id), each.group_type.toLowerCase(), each.epoch === null ? "–" : String(each.epoch), each.since_ms === null ? "–" : utc(each.since_ms),
      each.rebalancing_to === null ? "–" : `rebalance to ${each.rebalancing_to}`, number(each.members), number(each.rebalances), each.findings ? number(each.findings) : "–", ...(than ? [changed(each)] : [])],
  })), { tabindex: "0", role: "region", "aria-label": "Table of groups" });
}

let shownSearch = null, shownGroups = null;
async function showSearch(text) {
  if (text === shownSearch) return;
  shownSearch = text;
  byId("found").replaceChildren();
  if (!text) return;
  const rows = await ask("search", { find: text });
  if (text !== shownSearch) return;
  const others = rows.filter((row) => row.kind !== "group");
  if (!others.length) return;
  byId("found").replaceChildren(table(["What", "Name", "Group", "Newest (UTC)"], others.map((row) => ({
    cells: [row.kind, row.name, row.group_id === null ? "–" : toGroup(row.group_id),
      row.at_ms === null ? "–" : goes(el("a", { href: address({ group: row.group_id, moment: iso(row.at_ms) }) }, utc(row.at_ms)), { group: row.group_id, moment: iso(row.at_ms) })],
  })), { tabindex: "0", role: "region", "aria-label": "What the search finds" }));
}

async function showGroups() {
  const parts = asked();
  byId("find").value = parts.get("find") ?? "";
  types.forEach((box) => { box.checked = parts.get("type") === box.value; });
  byId("only-found").checked = parts.get("found") === "1";
  showSearch((parts.get("find") ?? "").trim());
  const wanted = { at: parts.get("moment"), than: parts.get("than"), find: parts.get("find"), type: parts.get("type"), found: parts.get("found"), changed: parts.get("than") ? "1" : null, first: parts.get("first") ?? "0", most: String(MOST) };
  const key = JSON.stringify(wanted);
  if (key === shownGroups) return;
  shownGroups = key;
  try {
    const page = await ask("groups", wanted);
    if (key !== shownGroups) return;
    const time = timeIn(wanted.at), than = timeIn(wanted.than);
    byId("groups-title").replaceChildren(time === null ? "Groups " : `Groups at ${momentHead(time)} `, el("small", {}, than === null ? "by id" : `those in which an epoch began, or a member came or went, until ${momentHead(than)}`));
    byId("groups-place").replaceChildren(page.groups.length ? groupsAt(page, than !== null) : el("p", {}, than === null ? `No group${wanted.find ? " has this in its id" : ""}.` : "No group changed between the two moments."));
    byId("shown").textContent = page.groups.length ? `${number(page.first + 1)} to ${number(page.first + page.groups.length)} of ${number(page.seen)} groups` : "";
    byId("groups-before").hidden = page.first === 0;
    byId("groups-after").hidden = page.first + page.groups.length >= page.seen;
    const place = byId("then-all");
    place.hidden = time === null;
    place.replaceChildren(...(time === null ? [] : [el("h2", { id: "then-all-title" }, `At ${momentHead(time)}`),
      bandNotes(time) ?? el("p", {}, "Within a minute of it no coordinator was away, no hosts stood still, and nothing was deployed. The groups are below.")]));
  } catch (error) {
    byId("groups-place").replaceChildren(el("p", { class: "notice" }, error.message));
  }
}
