// The overview: theme, findings, and the field that goes to a moment.
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  redrawAll();
});

const overview = { state: null };
let overviewForm = null;
const found = [...document.querySelectorAll("#overview .findings > li")];
const allFindings = byId("all-findings");
const kinds = [...document.querySelectorAll("[name=kind]")];
allFindings?.addEventListener("click", () => go({ all: asked().get("all") ? null : "1" }));
kinds.forEach((box) => box.addEventListener("change", () => go({ kind: kinds.filter((each) => each.checked).map((each) => each.value).join(",") || null })));
function showFindings() {
  const parts = asked(), chosen = new Set((parts.get("kind") ?? "").split(",").filter(Boolean));
  kinds.forEach((box) => { box.checked = chosen.has(box.value); });
  document.querySelector("#overview .findings")?.classList.toggle("all", Boolean(parts.get("all")) || chosen.size > 0);
  allFindings?.setAttribute("aria-expanded", String(Boolean(parts.get("all"))));
  found.forEach((each) => { each.hidden = chosen.size > 0 && !chosen.has(each.dataset.kind); });
}

overviewCharts().then(() => overviewForm?.shows());
function showOverview() {
  overviewForm?.shows();
  overview.state?.follows();
  showFindings();
  showGroups();
}
document.querySelectorAll("#overview .findings a, .worst-list a").forEach((link) => {
  if (link.hash) goes(link, Object.fromEntries(new URLSearchParams(link.hash.slice(1).replaceAll("+", "%2B"))));
});
