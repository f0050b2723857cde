// One group: facts, findings, timeline, rebalances with their stories, members, broken rules, offsets.
// What is in a cell is one element: on a phone it stands beside the head of its column.
function table(heads, lines, attributes) {
  const head = heads.map((each) => el("th", { scope: "col", class: each.startsWith("#") ? "n" : null }, each.replace("#", "")));
  const body = lines.map(({ cells, ...rest }) => el("tr", rest, cells.map((cell, index) =>
    el(index ? "td" : "th", { class: heads[index].startsWith("#") ? "n" : null, scope: index ? null : "row", "data-head": heads[index].replace("#", "") }, Array.isArray(cell) ? el("div", {}, cell) : cell ?? "–"))));
  return el("div", { class: "scroll", ...attributes }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

const proof = (at, source) => el("code", { title: utc(at.timestamp_ms) }, source === "group log" || !source ? position(at) : `${source} ${position(at)}`);
const key = (kind, name) => el("span", { class: "keyed" }, el("i", { class: `key ${kind}-${slug(name)}` }), name);
const heading = (title, small) => el("h3", {}, title, small ? [" ", el("small", {}, small)] : null);
const section = (title, small, ...content) => el("section", {}, heading(title, small), ...content);
// A part of the page that can be folded; on a phone it begins so, unless it is `urgent`.
const onPhone = matchMedia("(max-width: 44rem)");
const part = (title, small, isUrgent, ...content) => el("details", { class: "part", open: isUrgent || !onPhone.matches ? "" : null }, el("summary", {}, heading(title, small)), ...content);

// Of a long table the first rows are seen, and those that are not fine; a button shows the others.
function folded(made, isSeen, noun) {
  const rows = [...made.querySelectorAll("tbody tr")];
  const hidden = rows.filter((row, index) => !isSeen(index));
  if (hidden.length < 5) return made;
  hidden.forEach((row) => row.classList.add("old"));
  const button = el("button", { type: "button", "aria-expanded": "false" }, `All ${number(rows.length)} ${noun}`);
  button.addEventListener("click", () => button.setAttribute("aria-expanded", String(made.classList.toggle("all"))));
  return [made, button];
}
const shown = (list, all) => (list.length < all ? `${list.length} of ${all}` : String(all));

function facts(line) {
  const pairs = line.group_type === "OFFSETS" ? [["Type", "committed offsets only: the log has no record of the group itself"]] : [
    ["Type", line.group_type.toLowerCase()], ["State", words(line.state.toLowerCase())], [capital(epochName(line)), line.epoch ?? "–"],
    ["Assignor", line.assignor ?? "not in the log (the broker's default, or none yet)"], ["Members", `${line.members} of ${line.members_seen} seen`],
    ...(line.clients ? [["Clients", line.clients]] : []), ["Rebalances", line.rebalances],
  ];
  pairs.push(["History", line.complete ? "complete" : "partial: the log does not contain its beginning"]);
  return el("dl", { class: "facts" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// Evidence that is the record of a rebalance leads to its story.
function findingList(group) {
  if (!group.findings.length) return null;
  const told = new Map(group.rebalances.map((each) => [`${each.log_topic} ${position(each.at)}`, each]));
  const evidence = (at, found) => {
    const rebalance = told.get(`${found.log_topic} ${position(at)}`);
    const shown = proof(at, logIn(group, found));
    return rebalance ? rebalanceLink(group, rebalance, shown) : shown;
  };
  const items = group.findings.map((each) => el("li", {}, el("span", { class: "score" }, each.score.toFixed(1)),
    el("span", { class: "what" }, el("em", { class: `level ${each.level}` }, each.level), " ", el("b", {}, words(each.kind)),
      el("span", { class: "detail" }, each.detail),
      el("span", { class: "detail" }, `For the records: ${each.meaning} To do: ${each.advice} How sure: ${each.certainty}`),
      whenOf(each)),
    el("span", { class: "proof" }, each.evidence.slice(0, 3).map((at) => [evidence(at, each), " "]))));
  return section("Findings", null, el("ol", { class: "findings all" }, items));
}

const rebalanceLink = (group, rebalance, ...content) => goes(el("a", { href: groupLink(group.line.group_id, rebalance) }, ...content), { epoch: String(rebalance.to_epoch), at: position(rebalance.at) });

const FINE = new Set(["identical", "equivalent", "sound", "unjudged", null]);
const NEWEST_SEEN = 12;
function rebalanceTable(group) {
  const days = new Set(group.rebalances.map((each) => utc(each.at.timestamp_ms).slice(0, 10)));
  const [day] = days;
  return table([`${capital(epochName(group.line))}s`, days.size === 1 ? `${day} UTC` : "Time (UTC)", "Why, and who", "Outcome", "#Took", "#Idle", "#Moved", "Target", "Log"], group.rebalances.map((each, index) => ({
    cells: [
      [rebalanceLink(group, each, `${each.from_epoch ?? "?"} → ${each.to_epoch}`), each.doubled ? el("em", { class: "flag worst" }, "two owners") : null, index === group.worst ? el("em", { class: "flag worst" }, "worst") : null],
      el("time", {}, utc(each.at.timestamp_ms).slice(days.size === 1 ? 11 : 5)), whyCell(each), each.outcome, took(each), figure(each, each.idle_ms === null ? null : duration(each.idle_ms)),
      figure(each, each.moved === null ? null : number(each.moved)), key("v", each.verdict ?? "unjudged"), proof(each.at, logIn(group, each)),
    ],
  })), { tabindex: "0", role: "region", "aria-label": "Rebalances", class: "scroll rebalances" });
}

function whyCell(rebalance) {
  const parts = whyParts(rebalance);
  if (!parts.length) return "unknown";
  return parts.map(({ kind, names }) => el("div", { class: "why" }, kind, names ? [": ", el("b", {}, names)] : null));
}

const initiatorNote = (group) => `${shown(group.initiators, group.initiators_seen)} members${group.memberless ? `; ${number(group.memberless)} of ${number(group.line.rebalances)} rebalances were caused by no member, as far as the log shows` : ""}`;

function initiatorTable(group) {
  return table(["Member", "#Rebalances caused", "#Follow-ups", "How", "#Delayed", "#Member ids", "Newest (UTC)", "Log"], group.initiators.map((each) => ({
    cells: [each.name, el("span", { class: "counted" }, el("i", { style: `width:${Math.round(60 * each.rebalances / group.initiators[0].rebalances)}px` }), number(each.rebalances)),
      number(each.follow_ups), each.kinds.map((kind) => `${words(kind.name)} ${kind.count}`).join(", "), number(each.delayed), number(each.member_ids), el("time", {}, utc(each.last.timestamp_ms)), proof(each.last)],
  })), { tabindex: "0", role: "region", "aria-label": "Members by the rebalances that they caused" });
}

function memberTable(members) {
  return table(["Member and client", "Id", "Joined", "Left", "#Assignments", "Owned, newest first"], members.map((each) => ({
    cells: [
      [each.name, el("div", { class: "quiet" }, clientText(each))], el("code", {}, each.member_id),
      [el("time", {}, utc(each.joined.timestamp_ms)), ` ${each.came_by} `, proof(each.joined)],
      each.left ? [el("time", {}, utc(each.left.timestamp_ms)), ` ${each.went_by ?? ""} `, proof(each.left), each.hint ? ` ${each.hint}` : ""] : "current member",
      String(each.spells.length),
      el("div", { class: "held" }, each.spells.length ? el("details", {}, el("summary", {}, each.spells[each.spells.length - 1].held),
        el("ul", { class: "plain" }, [...each.spells].reverse().map((spell) => el("li", {}, `${utc(spell.since.timestamp_ms)}: ${spell.held} `, proof(spell.since))))) : "nothing"),
    ],
  })), { tabindex: "0", role: "region", "aria-label": "Members", class: "scroll members" });
}

function offsetTable(offsets) {
  return table(["Topic", "#Partition", "#Offset", "#Lag", "Last commit (UTC)", "#Commits", "#Rewinds", "#Removed", "Log"], offsets.map((each) => ({
    cells: [each.topic, String(each.partition), each.offset === null ? "removed" : number(each.offset), each.lag === null ? "unknown" : number(each.lag),
      utc(each.last.timestamp_ms), number(each.commits), number(each.rewinds), number(each.removed), proof(each.last)],
  })), { tabindex: "0", role: "region", "aria-label": "Committed offsets" });
}

function offsetsNote(group) {
  const unknown = group.offsets.every((each) => each.lag === null);
  return `${shown(group.offsets, group.offsets_seen)} partitions; ${unknown ? "lag is unknown without end offsets, which the log lacks" : "lag to the end offsets that were given"}`;
}

function brokenTable(broken) {
  const told = new Map();
  for (const each of broken) {
    const key = `${each.rule} ${each.source} ${position(each.at)}`;
    told.set(key, [...(told.get(key) ?? []), each]);
  }
  return table(["Rule", "Severity", "Meaning", "Seen", "Log"], [...told.values()].map((all) => ({
    cells: [words(all[0].rule), all[0].severity, all[0].says, all.map((each) => el("div", {}, `${each.member_id ?? ""} ${each.detail}`.trim())), proof(all[0].at, all[0].source)],
  })), { tabindex: "0", role: "region", "aria-label": "Rules broken" });
}

function membersOverTime(group, state, selected) {
  const place = el("div", { class: "brushed" });
  const draw = () => {
    if (!place.isConnected) return;
    const hadFocus = place.contains(document.activeElement);
    place.querySelector(".timeline")?.remove();
    place.prepend(timeline(group, state, lanesWidth(place), selected.rebalance));
    if (hadFocus) place.querySelector(".axis .band[tabindex='0']")?.focus({ preventScroll: true });
  };
  onTimeAxis(place, state, draw);
  const verdicts = ["identical", "equivalent", "sound", "divergent", "invalid", "unknown", "unjudged"].filter((name) => group.rebalances.some((each) => (each.verdict ?? "unjudged") === name));
  const legend = el("div", { class: "legend" }, el("span", {}, "Rebalances by verdict on the target:"), verdicts.map((name) => key("v", name)),
    el("span", { class: "keyed" }, el("i", { class: "key low v-unknown" }), "low: superseded, or not finished"),
    group.two_owners.length ? el("span", { class: "keyed" }, el("i", { class: "key twice-key" }), "two owners") : null, bandKeys(state.bands));
  const note = `${shown(group.members, group.line.members_seen)} members; numbers are partitions or tasks owned; UTC`;
  return el("div", { class: "panel" }, el("h4", {}, "Members ", el("small", {}, note)), legend, place);
}

const MOST_LAG_LINES = 8;
function lagPanel(group, state) {
  if (!group.lag.length && group.offsets.some((each) => each.lag !== null)) {
    return el("div", { class: "panel" }, el("h4", {}, "Lag over time"), el("p", {}, "Not in this report, which has it for the groups with the highest lag. The table of committed offsets below has the newest lag."),
      el("pre", { tabindex: "0", role: "region", "aria-label": "Lag over time: commands" }, `coordinator-audit offsets ${quoted(group.line.group_id)} --lag-history --log LOGS --end-offsets cluster.jsonl`));
  }
  if (!group.lag.length) return group.offsets.length ? unknownPanel("h4", "Lag over time", "no end offsets were given, and the log has none. These commands give them:", ...LAG_COMMANDS) : null;
  const known = group.lag.filter((each) => each.lags.some((lag) => lag !== null));
  if (!known.length) return unknownPanel("h4", "Lag over time", "end offsets were given, but the log does not show which offsets were committed at those moments.");
  const lines = known.slice(0, MOST_LAG_LINES).map((each) => ({ name: `${each.topic} ${each.partition}`, times: each.times_ms, values: each.lags }));
  const panel = linesChart(lines, { title: "Lag over time", note: `records; ${shown(lines, known.length)} partitions, the highest lag first; UTC`, unit: "records of lag", state, left: true });
  const status = known.map((each) => ({ cells: [each.topic, String(each.partition), each.status[each.status.length - 1].toLowerCase(), number(each.lags[each.lags.length - 1]), utc(each.times_ms[each.times_ms.length - 1])] }));
  panel.append(lazyDetails("Status of each partition", () => table(["Topic", "#Partition", "Status", "#Newest lag", "At (UTC)"], status, { tabindex: "0", role: "region", "aria-label": "Status of each partition" })),
    el("p", { class: "quiet" }, "All partitions and snapshots: ", el("code", {}, `coordinator-audit offsets ${quoted(group.line.group_id)} --lag-history`)));
  return panel;
}

function overTime(group, state, selected) {
  const commits = commitChart(group.commits, state, true);
  const panels = [
    group.line.members_seen ? membersOverTime(group, state, selected) : null, ownership(group, state, selected), shareTimeline(group, state), commits,
    lagPanel(group, state),
  ].filter(Boolean);
  if (!panels.length) return null;
  return el("section", {}, el("div", { class: "headed" }, el("h3", {}, "Over time ", el("small", {}, "drag over a panel to zoom in, double-click to see all")), rangeTools(state)), panels);
}

let present = null;
function groupView(group) {
  const line = group.line;
  const selected = { rebalance: null };
  const times = [line.first_ms, line.last_ms, line.stands_still_ms, ...group.rebalances.flatMap((each) => [each.began_ms, each.ended_ms]), ...group.commits.map((each) => each.since_ms + each.length_ms), ...group.lag.flatMap((each) => [each.times_ms[0], each.times_ms[each.times_ms.length - 1]]),
    ...group.share_partitions.flatMap((each) => each.phases.flatMap((phase) => [phase.since.timestamp_ms, phase.until_ms]))].filter((each) => each !== null && each >= 0);
  const state = timeRange(times.reduce((a, b) => Math.min(a, b), times[0] ?? 0), times.reduce((a, b) => Math.max(a, b), times[0] ?? 0));
  [, group.end] = state.whole;
  state.bands = bandsOf(line.group_id);
  addressed(state);
  group.colours = memberColours(group);
  const storyBox = el("div", { class: "story", "aria-live": "polite", id: "story", tabindex: "0", role: "region", "aria-label": "Explanation of a rebalance" });
  const list = rebalanceTable(group);
  const thenBox = el("div", { class: "story then", id: "then", tabindex: "0", role: "region", "aria-label": "The group at a moment", hidden: "" });
  const form = gotoForm("group", state.whole);
  form.base = () => selected.rebalance?.at.timestamp_ms ?? null;
  const goTo = async () => {
    state.follows();
    form.shows();
    thenBox.hidden = state.moment === null;
    const shown = [state.moment, state.than];
    const then = (answers) => momentPanel(group, ...shown, (each, time) => withAnswers(thenOf(each, time), answers.get(time)));
    thenBox.replaceChildren(...(state.moment === null ? [] : then(new Map())));
    if (!source.isServed || state.moment === null) return;
    const failed = (error) => error;
    const answer = async (time) => {
      const [offsets, settings] = await Promise.all([source.offsets(line.group_id, time).catch(failed), state.than === null ? null : source.settings(line.group_id, time).catch(failed)]);
      return [time, { offsets, settings }];
    };
    const known = new Map(await Promise.all(shown.filter((time) => time !== null).map(answer)));
    if (shown[0] === state.moment && shown[1] === state.than) thenBox.replaceChildren(...then(known));
  };
  const choose = (rebalance, quietly) => {
    selected.rebalance = rebalance;
    state.centre = rebalance?.at.timestamp_ms ?? null;
    storyBox.replaceChildren(...story(group, rebalance));
    list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    state.redraw();
    if (!rebalance) return;
    const row = list.querySelectorAll("tbody tr")[group.rebalances.indexOf(rebalance)];
    row.setAttribute("aria-current", "true");
    row.classList.remove("old");
    if (quietly) return;
    row.scrollIntoView({ block: "nearest" });
    storyBox.scrollIntoView({ block: "nearest" });
  };
  const isFine = (each) => each.outcome === "converged" && FINE.has(each.verdict) && !each.doubled;
  const isSeen = (index) => index >= group.rebalances.length - NEWEST_SEEN || index === group.worst || !isFine(group.rebalances[index]);
  const drawn = overTime(group, state, selected);
  const main = [
    findingList(group),
    form,
    el("div", { class: "drawn" }, drawn, el("div", { class: "beside" }, thenBox, line.rebalances ? storyBox : null)),
    group.broken.length ? part("Rules broken", shown(group.broken, line.broken), true, brokenTable(group.broken)) : null,
    line.rebalances ? part("Rebalances", `${shown(group.rebalances, line.rebalances)}; Idle: time without an owner, summed over partitions or tasks`, false, folded(list, isSeen, "rebalances"),
      group.rebalances.length < line.rebalances ? el("p", { class: "quiet" }, "All of them: ", el("code", {}, `coordinator-audit rebalances --group ${quoted(line.group_id)}`)) : null) : null,
    group.initiators.length ? part("Members by the rebalances that they caused", initiatorNote(group), false, initiatorTable(group)) : null,
    group.members.length ? part("Members", `${shown(group.members, line.members_seen)}, with what each owned`, false,
      folded(memberTable(group.members), (index) => !group.members[index].left || index >= group.members.length - NEWEST_SEEN, "members")) : null,
    group.offsets.length ? part("Committed offsets", offsetsNote(group), false, folded(offsetTable(group.offsets), (index) => index < 2 * NEWEST_SEEN || group.offsets[index].rewinds || group.offsets[index].removed, "partitions")) : null,
  ];
  const element = el("div", {},
    el("p", { class: "crumb" }, goes(el("a", { href: "#" }, "← All groups"), { group: null, epoch: null, at: null })), el("h2", { tabindex: "-1", id: "group-title" }, line.group_id || "(empty id)"),
    facts(line), el("div", { class: "group-body" }, main));
  return { id: line.group_id, group, element, form, choose, goTo, state };
}
