// The charts of the overview: rebalances by cause, commits, lag, and the trend between nights.
const LAG_COMMANDS = ["coordinator-audit snapshot kafka://HOST:9092 --out cluster.jsonl", "coordinator-audit report --log LOGS --end-offsets cluster.jsonl"];

const NIGHTS = [["new_rebalances", "new rebalances"], ["findings", "findings"], ["new_violations", "new violations"], ["unstable", "unstable groups"], ["lagging", "lagging partitions"]];

// Nights have their own time: they may reach back much further than the log.
function trends(nights) {
  if (!nights.length) return [unknownPanel("h3", "Trend between nights", "no night was counted. Tables that a nightly run fills have the trend:", "coordinator-audit nightly LOGS --tables TABLES --report report.html")];
  const state = timeRange(nights[0].ended_ms, nights[nights.length - 1].ended_ms);
  const times = nights.map((each) => each.ended_ms);
  const line = (names) => names.filter(([field]) => nights.some((each) => each[field] !== null)).map(([field, name]) => ({ name, times, values: nights.map((each) => each[field]) }));
  const panels = [linesChart(line(NIGHTS), { title: "Trend between nights", note: `a number a night; ${nights.length} ${nights.length === 1 ? "night" : "nights"}; UTC`, unit: "numbers of each night", state })];
  const lag = line([["max_lag", "highest lag of a partition"], ["total_lag", "lag of all partitions"]]);
  if (lag.length) panels.push(linesChart(lag, { title: "Lag between nights", note: "records at the end of each night; UTC", unit: "records of lag", state }));
  return panels;
}

async function overviewCharts() {
  const place = byId("charts");
  const data = await source.overview();
  if (data.first_ms === null) return;
  const moments = data.lag.flatMap((each) => each.times_ms);
  const state = timeRange(moments.reduce((a, b) => Math.min(a, b), data.first_ms), moments.reduce((a, b) => Math.max(a, b), data.last_ms));
  state.bands = bandsOf();
  overview.state = addressed(state);
  const buckets = filled(data.activity, data.bucket_ms);
  // Of very many rebalances only the outcomes are counted.
  const byCause = data.families.length > 0 || !buckets.length;
  const counted = (bucket, name) => ((byCause ? bucket.causes : bucket.outcomes) ?? []).find((each) => each.name === name)?.count ?? 0;
  const families = byCause ? FAMILIES.filter((name) => data.families.some((each) => each.name === name)) : data.outcomes.map((each) => each.name);
  const colours = (name, index) => (byCause ? familyColour(name) : `--f${(index % 8) + 1}`);
  const panels = [
    buckets.length ? chart({
      title: byCause ? "Rebalances by cause" : "Rebalances by outcome", note: `rebalances per ${duration(data.bucket_ms)}, UTC${byCause ? "" : "; of so many, causes are not counted here: the page of a group has them"}`, unit: "rebalances", times: buckets.map((each) => each.since_ms), length: data.bucket_ms,
      series: families.map((name, index) => ({ name, colour: colours(name, index), values: buckets.map((each) => counted(each, name)) })), kind: "bars", state,
    }) : el("div", { class: "panel" }, el("h3", {}, "Rebalances by cause"), el("p", {}, "No rebalance was seen.")),
    commitChart(data.commits, state) ?? el("div", { class: "panel" }, el("h3", {}, "Commits over time"), el("p", {}, "No commit was seen.")),
    data.lag.length ? linesChart(data.lag.map((each) => ({ name: each.group_id, times: each.times_ms, values: each.highest })),
      { title: "Lag over time", note: "highest lag of a partition, in records; the groups with most; UTC", unit: "records of lag", state })
      : data.has_ends ? unknownPanel("h3", "Lag over time", "end offsets were given, but the log does not reach to the times at which they were taken.")
      : unknownPanel("h3", "Lag over time", "no end offsets were given, and the log has none. These commands give them:", ...LAG_COMMANDS),
    ...trends(data.nights),
  ];
  place.replaceChildren(el("div", { class: "panels" }, panels));
  byId("charts-tools").append(rangeTools(state));
  overviewForm = gotoForm("all", state.whole);
  byId("goto-all").append(overviewForm);
}
