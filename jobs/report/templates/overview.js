// The overview: theme, findings, filters and the order of the groups.
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  redrawAll();
});

const allFindings = byId("all-findings");
if (allFindings) {
  allFindings.addEventListener("click", () => {
    const all = document.querySelector(".findings").classList.toggle("all");
    allFindings.setAttribute("aria-expanded", all);
  });
}

let rows = [...document.querySelectorAll("#groups tbody tr")];
const filters = document.querySelector(".filters");
function filter() {
  const text = byId("find").value.trim().toLowerCase();
  const types = new Set([...filters.querySelectorAll("[name=type]:checked")].map((box) => box.value));
  const onlyFound = byId("only-found").checked;
  let shown = 0;
  for (const row of rows) {
    const there = (!text || row.textContent.toLowerCase().includes(text))
      && (!types.size || types.has(row.dataset.type))
      && (!onlyFound || row.dataset.found !== "0");
    row.hidden = !there;
    shown += there;
  }
  byId("shown").textContent = `${shown} of ${rows.length} groups`;
}
filters.addEventListener("input", filter);
const moreRows = byId("more-rows");
if (moreRows) {
  unpackText(moreRows).then((text) => {
    document.querySelector("#groups tbody").insertAdjacentHTML("beforeend", text);
    rows = [...document.querySelectorAll("#groups tbody tr")];
    filter();
  });
}
filters.addEventListener("submit", (event) => event.preventDefault());

const heads = [...document.querySelectorAll("#groups thead th")];
heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
  const numeric = head.classList.contains("n");
  const first = numeric ? "descending" : "ascending";
  const order = head.getAttribute("aria-sort") === first ? (numeric ? "ascending" : "descending") : first;
  heads.forEach((each) => { if (each.hasAttribute("aria-sort")) each.setAttribute("aria-sort", "none"); });
  head.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const value = (row) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    return numeric ? parseFloat(text) || 0 : text;
  };
  const sorted = rows.map((row) => [value(row), row]);
  sorted.sort(([a], [b]) => sign * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true })));
  document.querySelector("#groups tbody").append(...sorted.map(([, row]) => row));
}));
