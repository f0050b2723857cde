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

const ownerText = (each) => `${each.client_id ?? each.member_id} ${number(each.units)}`;
const OWNERS_SEEN = 4;
function ownersText({ group_id, owners, owning }) {
  const said = (some) => some.map(ownerText).join(", ");
  if (owning <= OWNERS_SEEN + 1) return said(owners) || "–";
  const left = owning - owners.length;
  return [said(owners.slice(0, OWNERS_SEEN)), el("details", {}, el("summary", {}, `and ${number(owning - OWNERS_SEEN)} more`),
    el("span", {}, said(owners.slice(OWNERS_SEEN)), left ? [", ", goes(el("a", { href: address({ group: group_id }) }, `and ${number(left)} more`), { group: group_id })] : null))];
}
const stateText = (each) => (each.rebalancing_to === null ? (each.state === null ? "–" : words(each.state.toLowerCase())) : `rebalance to ${each.rebalancing_to}`);
const lagText = (each, time) => (each.lag === null ? "–" : el("span", { title: `end offsets of ${utc(each.lag_ms)}` }, `${number(each.lag)}${time === null || time - each.lag_ms < 1000 ? "" : `, ${duration(time - each.lag_ms)} before`}`));
const COMPARED = [["Epoch", (each) => each.epoch ?? "–"], ["State", stateText], ["Members", (each) => each.members], ["Lag", (each) => each.lag ?? "–"], ["Rebalances", (each) => each.rebalances]];
// Of the members that are named, those that own more or less; who is not named owns little, or nothing.
function ownersThatDiffer(then, later) {
  const [before, after] = [then, later].map(({ owners }) => new Map(owners.map((each) => [each.member_id, each])));
  return [...new Map([...before, ...after])].map(([id, each]) => [each.client_id ?? id, before.get(id)?.units, after.get(id)?.units])
    .filter(([, one, other]) => one !== undefined && other !== undefined ? one !== other : (one === undefined ? then : later).owning <= (one === undefined ? then : later).owners.length)
    .map(([name, one, other]) => `${name} owns ${number(one ?? 0)} → ${number(other ?? 0)}`);
}
const toGroup = (id) => goes(el("a", { href: address({ group: id }) }, id || "(empty id)"), { group: id, epoch: null, at: null });
function groupsAt(page, time, than) {
  const other = new Map(page.than.map((each) => [each.group_id, each]));
  const changed = (each, later) => [...COMPARED.map(([said, of]) => [said, of(each), of(later)]).filter(([, one, two]) => one !== two).map(([said, one, two]) => `${said}: ${one} → ${two}`), ...ownersThatDiffer(each, later)].join("; ") || "nothing of this";
  const alone = (...cells) => (than ? [] : cells);
  return table(["Group", "Type", "Epoch", ...alone("Since (UTC)"), "State", "#Members", "Who owns how much", "#Lag", ...alone("#Rebalances until then"), "#Findings", ...(than ? ["What differs at the other moment"] : [])], page.groups.map((each) => ({
    cells: [toGroup(each.group_id), each.group_type.toLowerCase(), each.epoch === null ? "–" : String(each.epoch), ...alone(each.since_ms === null ? "–" : utc(each.since_ms)),
      stateText(each), number(each.members), ownersText(each), lagText(each, time), ...alone(number(each.rebalances)), each.findings ? number(each.findings) : "–", ...(than ? [changed(each, other.get(each.group_id))] : [])],
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
    byId("groups-place").replaceChildren(page.groups.length ? groupsAt(page, time, than !== null) : el("p", {}, than === null ? `No group${wanted.find ? " has this in its id" : ""}.` : "No group changed between the two moments."));
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
