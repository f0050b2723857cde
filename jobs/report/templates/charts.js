// Charts of numbers over time, drawn by uPlot. Each says its unit, has a legend, and can be read with arrow keys.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const FAMILIES = ["members joined", "members left or expired", "members changed", "topics or connectors changed", "follow-up of a rebalance", "group changed", "several of these", "unknown"];
const familyColour = (name) => `--f${Math.max(0, FAMILIES.indexOf(name)) + 1}`;
const short = (value) => (value >= 1e9 ? `${+(value / 1e9).toFixed(1)} G` : value >= 1e6 ? `${+(value / 1e6).toFixed(1)} M` : value >= 1e4 ? `${+(value / 1e3).toFixed(1)} k` : value.toLocaleString("en-US"));

// Intervals without a record are zero, and not missing.
function filled(intervals, length) {
  if (!intervals.length) return [];
  const known = new Map(intervals.map((each) => [each.since_ms, each]));
  const times = [];
  for (let time = intervals[0].since_ms; time <= intervals[intervals.length - 1].since_ms; time += length) times.push(time);
  return times.map((time) => known.get(time) ?? { since_ms: time });
}

// series: {name, colour (a CSS variable), values}; bars are stacked in this order, from below.
function chart({ title, note, unit, times, length, series, kind, state, left, height = 150 }) {
  const place = el("div", { class: "plot" });
  const readout = el("output", { class: "readout quiet", "aria-live": "polite" });
  const total = (index) => series.reduce((sum, each) => sum + (each.values[index] ?? 0), 0);
  const told = (index) => {
    const known = series.filter((each) => each.values[index] !== null && each.values[index] !== undefined);
    const parts = known.filter((each) => kind === "lines" || each.values[index]).map((each) => `${short(each.values[index])} ${each.name}`);
    return `${utc(times[index]).slice(0, 19)} UTC${length ? ` (${duration(length)})` : ""}: ${parts.join(", ") || (known.length ? `0 ${unit}` : "unknown")}`;
  };
  let plot = null;
  const draw = () => {
    const width = widthOf(place);
    if (!place.isConnected || !width) return;
    plot?.destroy();
    plot = new uPlot(options(width), plotted(), place);
  };
  const plotted = () => {
    if (kind === "lines") return [times, ...series.map((each) => each.values)];
    const sums = series.map((_, upTo) => times.map((_, index) => series.slice(0, upTo + 1).reduce((sum, each) => sum + (each.values[index] ?? 0), 0)));
    return [times, ...sums.reverse()];
  };
  const drawn = kind === "lines" ? series : [...series].reverse();
  const options = (width) => {
    const axis = { stroke: colour("--soft"), font: "11px system-ui, sans-serif", grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1, size: 4 } };
    const side = left ? gutter(width) : 58;
    return {
      width, height, ms: 1, padding: [8, RIGHT, 0, 0], legend: { show: false },
      cursor: { y: false, points: { show: kind === "lines" }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => { state.fit(); } } },
      scales: { x: { time: false, range: () => state.range }, y: { range: (_, low, high) => [0, Math.max(high || 0, 1) * 1.08] } },
      axes: [
        { ...axis, size: 26, splits: (self, index, from, until) => tickTimes(from, until, Math.max(2, (width - side) / 110)).times,
          values: (self, splits) => { const step = splits.length > 1 ? splits[1] - splits[0] : 1e3; return splits.map((time) => tickText(time, step)); } },
        { ...axis, size: side, values: (self, splits) => splits.map((value) => (Number.isInteger(value) ? short(value) : "")), space: 28 },
      ],
      series: [{}, ...drawn.map((each) => (kind === "lines"
        ? { stroke: colour(each.colour), width: 2, dash: each.dash, spanGaps: false, points: { show: times.length < 60, size: 5, fill: colour(each.colour) } }
        : { fill: colour(each.colour), stroke: colour("--card"), width: 0.5, paths: uPlot.paths.bars({ size: [0.92, Infinity], align: 1 }), points: { show: false } }))],
      hooks: {
        drawClear: [(self) => {
          const { left: from, top, width: wide, height: high } = self.bbox;
          const at = (time) => Math.min(Math.max(self.valToPos(time, "x", true), from), from + wide);
          self.ctx.save();
          for (const band of state.bands) {
            if (band.since_ms > state.range[1] || band.until_ms < state.range[0]) continue;
            const begin = at(band.since_ms), width = Math.max(at(band.until_ms) - begin, BAND_LEAST);
            self.ctx.fillStyle = colour(bandColour(band));
            self.ctx.fillRect(begin, top, width, 3);
            self.ctx.globalAlpha = 0.16;
            self.ctx.fillRect(begin, top, width, high);
            self.ctx.globalAlpha = 1;
          }
          self.ctx.fillStyle = colour("--ink");
          for (const time of [state.moment, state.than]) if (time !== null && time >= state.range[0] && time <= state.range[1]) self.ctx.fillRect(at(time), top, 1.5, high);
          self.ctx.restore();
        }],
        setCursor: [(self) => { readout.textContent = self.cursor.idx === null || self.cursor.idx === undefined ? "" : told(self.cursor.idx); }],
        setSelect: [(self) => {
          const { left: from, width: wide } = self.select;
          if (wide < 5) return;
          const times = [self.posToVal(from, "x"), self.posToVal(from + wide, "x")];
          self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          setTimeout(() => state.set(...times));
        }],
      },
    };
  };
  let index = -1;
  place.setAttribute("tabindex", "0");
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", `${title}, ${unit}. Arrow keys read the values; the table below has all of them`);
  place.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (move === undefined || !plot || !times.length) return;
    event.preventDefault();
    index = Math.min(Math.max((index < 0 && move === -1 ? times.length : index) + move, 0), times.length - 1);
    plot.setCursor({ left: plot.valToPos(times[index] + (kind === "bars" ? length / 2 : 0), "x"), top: 10 }, false);
    readout.textContent = told(index);
  });
  const rowsOf = () => times.map((time, at) => ({ at, cells: [utc(time).slice(0, 19), ...series.map((each) => (each.values[at] === null || each.values[at] === undefined ? "unknown" : number(each.values[at]))), ...(kind === "bars" && series.length > 1 ? [number(total(at))] : [])] }))
    .filter(({ at }) => kind === "lines" || total(at)).map(({ cells }) => ({ cells }));
  const asTable = lazyDetails("As a table", () => table(["From (UTC)", ...series.map((each) => `#${each.name}`), ...(kind === "bars" && series.length > 1 ? ["#All"] : [])], rowsOf(), { tabindex: "0", role: "region", "aria-label": `${title}: table` }));
  const legend = el("div", { class: "legend" }, series.map((each) => el("span", { class: "keyed" }, el("i", { class: "key", style: `background:var(${each.colour})` }), each.name)),
    bandKeys(state.bands));
  redrawn.add(draw);
  state.follow(() => { if (plot && place.isConnected) { plot.setScale("x", { min: state.range[0], max: state.range[1] }); plot.redraw(); } });
  new ResizeObserver(() => { if (!onPaper && plot?.width !== widthOf(place)) draw(); }).observe(place);
  return el("div", { class: "panel" }, el(left ? "h4" : "h3", {}, title, " ", el("small", {}, note)), legend, place, el("div", { class: "under" }, readout, asTable));
}

function lazyDetails(summary, make) {
  const details = el("details", { class: "as-table" }, el("summary", {}, summary));
  details.addEventListener("toggle", () => { if (details.open && details.childElementCount === 1) details.append(make()); });
  return details;
}

function commitChart(commits, state, left) {
  if (!commits.length) return null;
  const length = commits[0].length_ms;
  const all = filled(commits, length);
  return chart({
    title: "Commits over time", note: `commit records per ${duration(length)}, UTC`, unit: "commit records", times: all.map((each) => each.since_ms), length,
    series: [{ name: "commit records", colour: "--f1", values: all.map((each) => each.records ?? 0) }], kind: "bars", state, left, height: left ? 120 : 150,
  });
}

// Lines of values at moments that may differ from line to line: null is a gap, undefined is a moment of other lines.
function linesChart(lines, options) {
  const times = [...new Set(lines.flatMap((each) => each.times))].sort((a, b) => a - b);
  const series = lines.map((each, index) => {
    const known = new Map(each.times.map((time, at) => [time, each.values[at]]));
    return { name: each.name, colour: `--m${(index % 8) + 1}`, dash: index >= 8 ? [5, 3] : undefined, values: times.map((time) => known.get(time)) };
  });
  return chart({ times, series, kind: "lines", ...options });
}

function unknownPanel(level, title, text, ...commands) {
  return el("div", { class: "panel" }, el(level, {}, title), el("p", { class: "unknown" }, el("b", {}, "unknown"), `: ${text}`), commands.length ? el("pre", { tabindex: "0", role: "region", "aria-label": `${title}: commands` }, commands.join("\n")) : null);
}
