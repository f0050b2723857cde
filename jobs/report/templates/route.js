// Deep links: #group=ID&epoch=N, with &at=PARTITION:OFFSET where a group had an epoch twice.
async function route() {
  const asked = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
  tip.hidden = true;
  const id = asked.get("group");
  if (id === null) {
    byId("group").hidden = true;
    byId("overview").hidden = false;
    present = null;
    return;
  }
  if (present?.id !== id) {
    const group = await unpack(id);
    present = group && groupView(group);
    byId("group").replaceChildren(present ? present.element : el("p", { class: "notice" }, `There is no group ${id} in this report. `, el("a", { href: "#" }, "All groups")));
    byId("overview").hidden = true;
    byId("group").hidden = false;
    scrollTo(0, 0);
    byId("group-title")?.focus({ preventScroll: true });
  }
  if (!present) return;
  const { rebalances } = present.group;
  const epoch = asked.get("epoch");
  const chosen = rebalances.findLast((each) => position(each.at) === asked.get("at"))
    ?? rebalances.findLast((each) => epoch !== null && String(each.to_epoch) === epoch);
  present.choose(chosen ?? null);
}
addEventListener("hashchange", route);
route();
