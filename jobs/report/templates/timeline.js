// Members against time, with what each held; rebalances as bands behind them. The tables below it say the same.
const LANE = 24, AXIS = 54;
const DIGIT = 6.5;

const UNFINISHED = new Set(["superseded", "open"]);

// A client that restarts comes back under a new member id: its members share lanes where they do not overlap.
function lanesOf(members, end) {
  const lanes = [];
  for (const member of members) {
    const from = member.joined.timestamp_ms;
    const until = member.left ? member.left.timestamp_ms : end;
    let lane = lanes.find((each) => each.name === member.name && each.until <= from);
    if (!lane) lanes.push(lane = { name: member.name, members: [], until: 0 });
    lane.members.push(member);
    lane.until = Math.max(until, from + 1);
  }
  lanes.sort((a, b) => a.members[0].joined.timestamp_ms - b.members[0].joined.timestamp_ms || a.name.localeCompare(b.name));
  return lanes;
}

function shortened(name, most) {
  const text = name.length > most ? name.split(" at ")[0] : name;
  if (text.length <= most) return text;
  const tail = Math.ceil(most * 0.6);
  return `${text.slice(0, most - tail - 1)}…${text.slice(-tail)}`;
}

function bandText(rebalance) {
  return [
    `Rebalance ${rebalance.from_epoch ?? "?"} to ${rebalance.to_epoch}: ${rebalance.outcome}, took ${took(rebalance)}`,
    `Why: ${whyParts(rebalance).map(({ kind, names }) => (names ? `${kind} (${names})` : kind)).join("; ") || "unknown"}`,
    `Target: ${rebalance.verdict ?? "not judged"}`,
    rebalance.moved === null ? null : `Moved: ${rebalance.moved}${rebalance.lost ? `, without an owner: ${rebalance.lost}` : ""}`,
    rebalance.idle_ms ? `Idle time: ${duration(rebalance.idle_ms)}, summed over all that moved` : null,
    `Log ${position(rebalance.at)} at ${utc(rebalance.at.timestamp_ms)}`,
  ].filter(Boolean).join("\n");
}

// Several lanes can have one name: the part of the id that differs is added to it.
function laneLabel(lane, lanes, characters) {
  const alone = lanes.filter((each) => each.name === lane.name).length === 1;
  const [first, ...others] = lane.members;
  const suffix = alone ? "" : others.length ? ` · ${lane.members.length} ids` : ` · …${first.member_id.slice(-5)}`;
  return shortened(lane.name, characters - suffix.length) + suffix;
}

function timeline(group, state, width, selected) {
  const { range } = state;
  const [from, until] = range;
  const end = Math.max(group.end, until);
  const lanes = lanesOf(group.members, end);
  const height = Math.max(lanes.length, 1) * LANE + 12;
  const { side: name, x } = timeAxis(range, width);
  const within = (first, last) => first <= until && last >= from;

  const { step, times } = tickTimes(from, until, Math.max(2, (width - name) / 110));
  const axis = svg("svg", { class: "axis", width, height: AXIS, role: "group", "aria-label": "Rebalances: arrow keys move, Enter explains" });
  const lanesSvg = svg("svg", { width, height, "aria-hidden": "true" });
  for (const time of times) {
    const label = tickText(time, step);
    if (x(time) + 3 + label.length * DIGIT <= width) axis.append(svg("text", { class: "tick", x: x(time) + 3, y: 14 }, label));
    axis.append(svg("line", { class: "grid", x1: x(time), x2: x(time), y1: 4, y2: AXIS }));
    lanesSvg.append(svg("line", { class: "grid", x1: x(time), x2: x(time), y1: 0, y2: height }));
  }

  const day = width >= 560 ? `${utc(from).slice(0, 10)} UTC` : "UTC";
  [[day, 14], ["rebalance", 30], [epochName(group.line), 46]].forEach(([text, y]) => axis.append(svg("text", { class: "tick", x: 12, y, "aria-hidden": "true" }, text)));

  drawBands(lanesSvg, state, x, height);
  const bands = [];
  let written = 0;
  for (const rebalance of group.rebalances) {
    const ended = rebalance.ended_ms ?? (rebalance.outcome === "open" ? end : rebalance.began_ms);
    if (!within(rebalance.began_ms, ended)) continue;
    const left = x(rebalance.began_ms);
    const wide = Math.max(x(ended) - left - 1, 3);
    const unfinished = UNFINISHED.has(rebalance.outcome);
    const colour = `v-${rebalance.verdict ?? "unjudged"}`;
    const current = selected === rebalance ? "true" : null;
    const text = bandText(rebalance);
    const chosen = { epoch: String(rebalance.to_epoch), at: position(rebalance.at) };
    const band = goes(svg("a", {
      class: "band", href: groupLink(group.line.group_id, rebalance),
      tabindex: "-1", "aria-label": text, "aria-current": current,
    }, svg("rect", { class: `cap ${colour}`, x: left, y: unfinished ? 26 : 20, width: wide, height: unfinished ? 5 : 11, rx: 1.5 })), chosen);
    const number = String(rebalance.to_epoch);
    if (left >= written && left + number.length * DIGIT <= width) {
      axis.append(svg("text", { class: "epoch", x: left, y: 46, "aria-hidden": "true" }, number));
      written = left + (number.length + 1) * DIGIT;
    }
    const wash = svg("g", { class: "band", "aria-current": current }, svg("rect", { class: `wash ${colour}`, x: left, y: 0, width: wide, height }));
    wash.addEventListener("click", () => go(chosen));
    tells(band, text);
    tells(wash, text);
    axis.append(band);
    lanesSvg.append(wash);
    bands.push(band);
  }
  drawTwoOwners(group, axis, lanesSvg, { x, within, end, height });
  drawMoments(axis, state, x, AXIS);
  drawMoments(lanesSvg, state, x, height);
  const reachable = bands.find((band) => band.hasAttribute("aria-current")) || bands[0];
  reachable?.setAttribute("tabindex", "0");
  axis.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    const index = bands.indexOf(document.activeElement);
    if (move === undefined || index < 0) return;
    event.preventDefault();
    const next = bands[Math.min(Math.max(index + move, 0), bands.length - 1)];
    bands.forEach((band) => band.setAttribute("tabindex", band === next ? "0" : "-1"));
    next.focus();
  });

  const most = Math.max(1, ...group.members.flatMap((member) => member.spells.map((spell) => spell.units)));
  lanes.forEach((lane, index) => {
    const y = 6 + index * LANE;
    const characters = Math.floor((name - 16) / 6.2);
    const label = laneLabel(lane, lanes, characters);
    const ids = lane.members.slice(0, 6).map((member) => member.member_id);
    const shade = group.colours.number(lane.members[0].member_id);
    if (shade !== undefined) lanesSvg.append(svg("rect", { x: 4, y: y + 5, width: 4, height: LANE - 12, rx: 1, fill: `var(--m${(shade % COLOURS) + 1})` }));
    lanesSvg.append(tells(svg("text", { class: "lane-name", x: 12, y: y + 15 }, label),
      [lane.name, ...ids, lane.members.length > 6 ? `and ${lane.members.length - 6} more` : ""].join("\n")));
    for (const member of lane.members) drawMember(lanesSvg, member, y, { x, within, end, most, from, until });
  });
  if (!lanes.length) lanesSvg.append(svg("text", { class: "tick", x: 12, y: 22 }, "No member was seen."));
  return el("div", { class: "timeline", tabindex: height > 420 ? "0" : null, role: "group", "aria-label": "Members over time; the tables below say the same" }, axis, lanesSvg);
}

const twiceText = (span) => `Two owners: ${span.units.slice(0, 8).join(", ")}${span.units_seen > 8 ? ` and ${span.units_seen - 8} more` : ""}\n${span.members.join("\n")}\nfrom ${utc(span.since.timestamp_ms)}, ${span.until_ms === null ? "goes on" : `for ${duration(span.until_ms - span.since.timestamp_ms)}`}\nlog ${position(span.since)}`;
// The gravest that can be seen here keeps its size however far the time is zoomed out.
function drawTwoOwners(group, axis, lanes, { x, within, end, height }) {
  for (const span of group.two_owners) {
    const ends = span.until_ms ?? end;
    if (!within(span.since.timestamp_ms, ends)) continue;
    const left = x(span.since.timestamp_ms);
    const told = twiceText(span);
    lanes.append(tells(svg("rect", { class: "twice", x: left, y: 0, width: Math.max(x(ends) - left, 3), height }), told));
    axis.append(tells(svg("g", { class: "twice-mark", role: "img", "aria-label": told }, svg("path", { d: `M${left - 7} 5h14l-7 13z` }), svg("text", { x: left, y: 13 }, "2")), told));
  }
}

function drawMember(parent, member, y, { x, within, end, most, from, until }) {
  const joined = member.joined.timestamp_ms;
  const left = member.left ? member.left.timestamp_ms : end;
  if (!within(joined, left)) return;
  const middle = y + LANE / 2 - 1;
  parent.append(svg("line", { class: "life", x1: x(joined), x2: x(left), y1: middle, y2: middle }));
  for (const spell of member.spells) {
    const ends = Math.min(spell.until_ms ?? left, left);
    if (!within(spell.since.timestamp_ms, ends)) continue;
    const start = x(spell.since.timestamp_ms);
    const wide = Math.max(x(ends) - start - 1, 1.5);
    const bar = svg("rect", {
      class: "spell", x: start, y: y + 3, width: wide, height: LANE - 8, rx: 2, style: `--held: ${Math.round(24 + 28 * (spell.units / most))}%`,
    });
    parent.append(tells(bar, `${member.name}\n${spell.units} held: ${spell.held}\nfrom ${utc(spell.since.timestamp_ms)}, for ${duration(ends - spell.since.timestamp_ms)}\nlog ${position(spell.since)}`));
    if (wide > 16) parent.append(svg("text", { class: "spell-text", x: start + 5, y: y + 15 }, spell.units));
  }
  if (joined >= from && joined <= until) {
    parent.append(tells(svg("circle", { class: "start", cx: x(joined), cy: middle, r: 2.6 }),
      `${member.name} came (${member.came_by})\n${member.member_id}\n${utc(joined)}, log ${position(member.joined)}`));
  }
  if (member.left && left >= from && left <= until) {
    const at = x(left);
    parent.append(tells(svg("path", { class: "end", d: `M${at - 3} ${middle - 3}l6 6m0 -6l-6 6` }),
      `${member.name} went (${member.went_by ?? "unknown"})\n${member.hint ?? ""}\n${utc(left)}, log ${position(member.left)}`));
  }
}
