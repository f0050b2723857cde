// Share partitions over time (KIP-932), and what happened to their records.
const PHASES = { "no start offset yet": "--f8", "records wait for redelivery": "--f6", "records in flight": "--f5", "nothing waits": "--f1", unknown: "--f7" };

function shareTimeline(group, state) {
  if (!group.share_partitions.length) return null;
  const { end } = group;
  const place = el("div", { class: "lanes", tabindex: "0", role: "region", "aria-label": "Share partitions over time; the table below says the same" });
  const draw = () => {
    const width = lanesWidth(place);
    if (!place.isConnected) return;
    const [from, until] = state.range;
    const { side, x } = timeAxis(state.range, width);
    const height = group.share_partitions.length * ROW + 4;
    const root = svg("svg", { width, height, "aria-hidden": "true" });
    for (const time of tickTimes(from, until, Math.max(2, (width - side) / 110)).times) root.append(svg("line", { class: "grid", x1: x(time), x2: x(time), y1: 0, y2: height }));
    drawBands(root, state, x, height);
    group.share_partitions.forEach((unit, index) => {
      const top = 2 + index * ROW;
      root.append(Object.assign(svg("text", { class: "lane-name", x: 12, y: top + 12 }, shortened(unit.name, Math.floor((side - 16) / 6.2))), { told: unit.name }));
      const marked = { true: -Infinity, false: -Infinity };
      for (const phase of unit.phases) {
        const ends = phase.until_ms ?? end;
        if (phase.since.timestamp_ms > until || ends < from) continue;
        const start = x(phase.since.timestamp_ms);
        const told = `${unit.name}: ${phase.phase}\nfrom ${utc(phase.since.timestamp_ms)}, ${phase.until_ms === null ? "until now" : `for ${duration(ends - phase.since.timestamp_ms)}`}\n${shareCounts(phase)}\nlog ${position(phase.since)}`;
        root.append(Object.assign(svg("rect", { class: "own", x: start, y: top, width: Math.max(x(ends) - start - 1, 1.5), height: ROW - 4, rx: 1.5, fill: `var(${PHASES[phase.phase]})` }), { told }));
        const isGivenUp = phase.archived > 0;
        if ((isGivenUp || phase.redelivered || phase.released) && start - marked[isGivenUp] > 12) {
          marked[isGivenUp] = start;
          const mark = isGivenUp ? `M${start - 3} ${top + 3}l6 6m0 -6l-6 6` : `M${start - 3} ${top + 10}l3 -7l3 7z`;
          root.append(Object.assign(svg("path", { class: isGivenUp ? "mark" : "mark full", d: mark }), { told }));
        }
      }
    });
    drawMoments(root, state, x, height);
    place.querySelector("svg")?.remove();
    place.prepend(root);
  };
  onTimeAxis(place, state, draw);
  const there = Object.keys(PHASES).filter((name) => group.share_partitions.some((each) => each.phases.some((phase) => phase.phase === name)));
  const legend = el("div", { class: "legend" }, there.map((name) => el("span", { class: "keyed" }, el("i", { class: "key", style: `background:var(${PHASES[name]})` }), name)),
    el("span", {}, "▲ given back or delivered again"), el("span", {}, "✕ archived"), el("span", {}, "zoom in to see each of them"));
  const left = group.share_partitions.reduce((sum, each) => sum + each.left_out, 0);
  const note = `${shown(group.share_partitions, group.share_partitions_seen)} share partitions${left ? `; ${number(left)} earlier phases are not shown` : ""}, UTC`;
  const rows = () => group.share_partitions.flatMap((unit) => unit.phases.map((phase) => ({ cells: [unit.name, phase.phase, utc(phase.since.timestamp_ms), phase.until_ms === null ? "now" : utc(phase.until_ms),
    phase.start_offset === null ? "unknown" : number(phase.start_offset), number(phase.accepted), number(phase.released), number(phase.redelivered), number(phase.archived), proof(phase.since)] })));
  const command = left || group.share_partitions.length < group.share_partitions_seen ? el("p", { class: "quiet" }, "All of it: ", el("code", {}, `coordinator-audit history ${quoted(group.line.group_id)}`)) : null;
  return el("div", { class: "panel" }, el("h4", {}, "Share partitions ", el("small", {}, note)), legend, place, command,
    lazyDetails("As a table", () => table(["Share partition", "State", "From (UTC)", "Until (UTC)", "#Start offset", "#Accepted", "#Given back", "#Delivered again", "#Archived", "Log"], rows(), { tabindex: "0", role: "region", "aria-label": "Share partitions: table" })));
}

const shareCounts = (phase) => [`${number(phase.accepted)} accepted`, phase.released ? `${number(phase.released)} given back` : null, phase.redelivered ? `${number(phase.redelivered)} delivered again` : null,
  phase.archived ? `${number(phase.archived)} archived` : null].filter(Boolean).join(", ");
