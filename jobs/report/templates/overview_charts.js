// The charts of the overview: rebalances by cause, commits, lag, and the trend between nights.
async function unpackText(element) {
  const bytes = Uint8Array.from(atob(element.textContent), (each) => each.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

const LAG_COMMANDS = ["coordinator-audit snapshot kafka://HOST:9092 --out cluster.jsonl", "coordinator-audit report --log LOGS --end-offsets cluster.jsonl"];

async function overviewCharts() {
  const place = byId("charts");
  const data = JSON.parse(await unpackText(byId("overview-data")));
  if (data.first_ms === null) return;
  const state = timeRange(data.first_ms, data.last_ms);
  const buckets = filled(data.activity, data.bucket_ms);
  const counted = (bucket, name) => (bucket.causes ?? []).find((each) => each.name === name)?.count ?? 0;
  const families = FAMILIES.filter((name) => data.families.some((each) => each.name === name));
  const panels = [
    buckets.length ? chart({
      title: "Rebalances by cause", note: `rebalances per ${duration(data.bucket_ms)}, UTC`, unit: "rebalances", times: buckets.map((each) => each.since_ms), length: data.bucket_ms,
      series: families.map((name) => ({ name, colour: familyColour(name), values: buckets.map((each) => counted(each, name)) })), kind: "bars", state,
    }) : el("div", { class: "panel" }, el("h3", {}, "Rebalances by cause"), el("p", {}, "No rebalance was seen.")),
    commitChart(data.commits, state) ?? el("div", { class: "panel" }, el("h3", {}, "Commits over time"), el("p", {}, "No commit was seen.")),
    unknownPanel("h3", "Lag over time", "no end offsets were given, and the log has none. These commands give them:", ...LAG_COMMANDS),
    unknownPanel("h3", "Trend between nights", "this report is about one set of logs. Tables that a nightly run fills have the trend:", "coordinator-audit nightly LOGS --tables TABLES --report report.html"),
  ];
  place.replaceChildren(el("div", { class: "panels" }, panels));
  byId("charts-tools").append(rangeTools(state));
}
overviewCharts();
