// Deep links: #group=ID&epoch=N, with &at=PARTITION:OFFSET where a group had an epoch twice.
const title = document.title;
let opener = null;
async function route() {
  const asked = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
  tip.hidden = true;
  const id = asked.get("group");
  document.title = id === null ? title : `${id} · ${title}`;
  if (id === null) {
    byId("group").hidden = true;
    byId("overview").hidden = false;
    present = null;
    redrawAll();
    opener?.focus();
    return;
  }
  if (byId("overview").contains(document.activeElement)) opener = document.activeElement;
  if (present?.id !== id) {
    const { hash } = location;
    const group = await unpack(id);
    if (location.hash !== hash) return;
    present = group && groupView(group);
    byId("group").replaceChildren(present ? present.element : el("p", { class: "notice" }, `This report has no group ${id}. `, el("a", { href: "#" }, "All groups")));
    byId("overview").hidden = true;
    byId("group").hidden = false;
    scrollTo(0, 0);
    byId("group-title")?.focus({ preventScroll: true });
  }
  if (!present) return;
  const { rebalances } = present.group;
  const epoch = asked.get("epoch");
  const ofEpoch = (each) => epoch !== null && String(each.to_epoch) === epoch;
  const isThere = (each) => position(each.at) === asked.get("at");
  const chosen = rebalances.findLast((each) => isThere(each) && ofEpoch(each)) ?? rebalances.findLast(isThere) ?? rebalances.findLast(ofEpoch);
  present.choose(chosen ?? (epoch === null && present.group.worst !== null ? rebalances[present.group.worst] : null), !chosen);
  tip.hidden = true;
}
// The fragment is the place within the report, so the way to the content may not change it.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
addEventListener("hashchange", route);
route();
