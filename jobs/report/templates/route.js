// What the address asks for is shown: the overview, or a group with one of its rebalances.
const title = document.title;
let opener = null;
let shownAddress = null;
let isStale = false;
// What is shown is asked for again, and stays where it is.
function again() {
  shownAddress = null;
  isStale = true;
  return route();
}
async function route() {
  if (location.hash === shownAddress) return;
  shownAddress = location.hash;
  const parts = asked();
  tip.hidden = true;
  const id = parts.get("group");
  document.title = id === null ? title : `${id} · ${title}`;
  if (id === null) {
    const cameBack = byId("overview").hidden;
    byId("group").hidden = true;
    byId("overview").hidden = false;
    present = null;
    byId("news")?.replaceChildren();
    showOverview();
    if (!cameBack) return;
    redrawAll();
    opener?.focus();
    return;
  }
  if (byId("overview").contains(document.activeElement)) opener = document.activeElement;
  // A group that is longer than the page is asked for again where the window changes.
  const window = `${parts.get("since")} ${parts.get("until")}`;
  const isOther = present?.id !== id;
  if (isOther || isStale || (source.isServed && window !== present.window && present.group.rebalances.length < present.group.line.rebalances)) {
    const { hash } = location;
    const group = await source.group(id);
    if (location.hash !== hash) return;
    const hadFocus = document.activeElement === byId("group-title");
    isStale = false;
    byId("news")?.replaceChildren();
    present = group && { ...groupView(group), window };
    byId("group").replaceChildren(present ? present.element : el("p", { class: "notice" }, `This report has no group ${id}. `, el("a", { href: "#" }, "All groups")));
    byId("overview").hidden = true;
    byId("group").hidden = false;
    if (isOther) {
      scrollTo(0, 0);
    }
    if (isOther || hadFocus) byId("group-title")?.focus({ preventScroll: true });
  }
  if (!present) return;
  const isOtherMoment = parts.get("moment") !== null && (isOther || parts.get("moment") !== present.moment || parts.get("than") !== present.than);
  present.moment = parts.get("moment");
  present.than = parts.get("than");
  const { rebalances } = present.group;
  const epoch = parts.get("epoch"), moment = timeIn(parts.get("moment"));
  const ofEpoch = (each) => epoch !== null && String(each.to_epoch) === epoch;
  const isThere = (each) => position(each.at) === parts.get("at");
  const isOver = (each) => moment !== null && each.began_ms <= moment;
  const chosen = rebalances.findLast((each) => isThere(each) && ofEpoch(each)) ?? rebalances.findLast(isThere) ?? rebalances.findLast(ofEpoch);
  const near = chosen ?? rebalances.findLast(isOver) ?? (moment === null ? null : rebalances[0]);
  present.goTo();
  present.choose(near ?? (epoch === null && present.group.worst !== null ? rebalances[present.group.worst] : null), !chosen || moment !== null);
  tip.hidden = true;
  // The answer to a link is what is seen first.
  if (isOtherMoment) present.form.scrollIntoView();
}
// The fragment is the place within the report, so the way to the content may not change it.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
addEventListener("hashchange", route);
addEventListener("popstate", route);
route();
