// One group: facts, findings, timeline, rebalances with their stories, members, broken rules, offsets.
// Ids are percent-encoded in the page: HTML has no way to write some characters, such as NUL.
async function unpack(id) {
  const packed = [...document.querySelectorAll("script[data-group]")].find((each) => decodeURIComponent(each.dataset.group) === id);
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.textContent), (each) => each.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

function table(heads, lines, attributes) {
  const head = heads.map((each) => el("th", { scope: "col", class: each.startsWith("#") ? "n" : null }, each.replace("#", "")));
  const body = lines.map(({ cells, ...rest }) => el("tr", rest, cells.map((cell, index) =>
    el(index ? "td" : "th", { class: heads[index].startsWith("#") ? "n" : null, scope: index ? null : "row" }, cell ?? "–"))));
  return el("div", { class: "scroll", ...attributes }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

const proof = (at, source) => el("code", { title: utc(at.timestamp_ms) }, source === "group log" || !source ? position(at) : `${source} ${position(at)}`);
const key = (kind, name) => el("span", { class: "keyed" }, el("i", { class: `key ${kind}-${slug(name)}` }), name);
const section = (title, small, ...content) => el("section", {}, el("h3", {}, title, small ? [" ", el("small", {}, small)] : null), ...content);
const shown = (list, all) => (list.length < all ? `${list.length} of ${all}` : String(all));

function story(rebalance) {
  if (!rebalance) return [el("h4", {}, "Explanation of a rebalance"), el("p", { class: "quiet" }, "Select a rebalance in the timeline or in the table.")];
  const sentences = rebalance.story.map((each) => el("li", {}, each.text, each.evidence.map((at) => proof(at, each.source))));
  return [
    el("h4", {}, `${capital(epochName(rebalance))} ${rebalance.from_epoch ?? "?"} to ${rebalance.to_epoch}`),
    el("p", { class: "quiet" }, `${utc(rebalance.at.timestamp_ms)} · ${rebalance.outcome} · took ${took(rebalance)} · target `, key("v", rebalance.verdict ?? "unjudged")),
    rebalance.judged ? el("p", { class: "quiet" }, rebalance.judged) : null,
    el("ol", {}, sentences),
  ].filter(Boolean);
}

function facts(line) {
  const pairs = line.group_type === "OFFSETS" ? [["Type", "committed offsets only: the log has no record of the group itself"]] : [
    ["Type", line.group_type.toLowerCase()], ["State", words(line.state.toLowerCase())], [capital(epochName(line)), line.epoch ?? "–"],
    ["Assignor", line.assignor ?? "not in the log (the broker's default, or none yet)"], ["Members", `${line.members} of ${line.members_seen} seen`],
    ["Rebalances", line.rebalances],
  ];
  pairs.push(["History", line.complete ? "complete" : "partial: the log does not contain its beginning"]);
  return el("dl", { class: "facts" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// Evidence that is the record of a rebalance leads to its story.
function findingList(group) {
  if (!group.findings.length) return null;
  const told = new Map(group.rebalances.map((each) => [`${each.log_topic} ${position(each.at)}`, groupLink(group.line.group_id, each)]));
  const evidence = (at, found) => {
    const link = told.get(`${found.log_topic} ${position(at)}`);
    const shown = proof(at, logIn(group, found));
    return link ? el("a", { href: link }, shown) : shown;
  };
  const items = group.findings.map((each) => el("li", {}, el("span", { class: "score" }, each.score.toFixed(1)),
    el("span", { class: "what" }, el("b", {}, words(each.kind)), el("span", { class: "detail" }, each.detail)),
    el("span", { class: "proof" }, each.evidence.slice(0, 3).map((at) => [evidence(at, each), " "]))));
  return section("Findings", null, el("ol", { class: "findings all" }, items));
}

function rebalanceTable(group) {
  return table([`${capital(epochName(group.line))}s`, "Time (UTC)", "Why", "Outcome", "#Took", "#Moved", "Target", "Log"], group.rebalances.map((each) => ({
    cells: [
      el("a", { href: groupLink(group.line.group_id, each) }, `${each.from_epoch ?? "?"} → ${each.to_epoch}`),
      el("time", {}, utc(each.at.timestamp_ms).slice(5)), each.causes.map(words).join(", "), each.outcome, took(each),
      number(each.moved), key("v", each.verdict ?? "unjudged"), proof(each.at, logIn(group, each)),
    ],
  })), { tabindex: "0", role: "region", "aria-label": "Rebalances" });
}

function memberTable(members) {
  return table(["Member", "Id", "Joined", "Left", "#Assignments", "Owned, newest first"], members.map((each) => ({
    cells: [
      each.name, el("code", {}, each.member_id),
      [el("time", {}, utc(each.joined.timestamp_ms)), ` ${each.came_by} `, proof(each.joined)],
      each.left ? [el("time", {}, utc(each.left.timestamp_ms)), ` ${each.went_by ?? ""} `, proof(each.left), each.hint ? ` ${each.hint}` : ""] : "current member",
      String(each.spells.length),
      el("div", { class: "held" }, each.spells.length ? el("details", {}, el("summary", {}, each.spells[each.spells.length - 1].held),
        el("ul", { class: "plain" }, [...each.spells].reverse().map((spell) => el("li", {}, `${utc(spell.since.timestamp_ms)}: ${spell.held} `, proof(spell.since))))) : "nothing"),
    ],
  })));
}

function offsetTable(offsets) {
  return table(["Topic", "#Partition", "#Offset", "#Lag", "Last commit (UTC)", "#Commits", "#Rewinds", "#Removed", "Log"], offsets.map((each) => ({
    cells: [each.topic, String(each.partition), each.offset === null ? "removed" : number(each.offset), each.lag === null ? "unknown" : number(each.lag),
      utc(each.last.timestamp_ms), number(each.commits), number(each.rewinds), number(each.removed), proof(each.last)],
  })));
}

function offsetsNote(group) {
  const unknown = group.offsets.every((each) => each.lag === null);
  return `${shown(group.offsets, group.offsets_seen)} partitions; ${unknown ? "lag is unknown without end offsets, which the log lacks" : "lag to the end offsets that were given"}`;
}

function brokenTable(broken) {
  return table(["Rule", "Severity", "Meaning", "Seen", "Log"], broken.map((each) => ({
    cells: [words(each.rule), each.severity, each.says, `${each.member_id ?? ""} ${each.detail}`.trim(), proof(each.at)],
  })));
}

function zoomable(group, selected) {
  const line = group.line;
  const first = line.first_ms ?? 0;
  const margin = Math.max(1, ((line.last_ms ?? first) - first) * 0.02);
  const whole = [first - margin, (line.last_ms ?? first) + margin];
  let range = [...whole];
  const place = el("div", {});
  const draw = () => {
    const hadFocus = place.contains(document.activeElement);
    place.replaceChildren(timeline(group, range, Math.max(320, place.clientWidth - 2), selected.rebalance));
    if (hadFocus) place.querySelector(".axis .band[tabindex='0']")?.focus({ preventScroll: true });
  };
  const zoom = (factor) => () => {
    const [from, until] = range;
    const chosen = selected.rebalance?.at.timestamp_ms;
    const centre = chosen >= from && chosen <= until ? chosen : (from + until) / 2;
    const half = Math.max((until - from) * factor / 2, 5);
    range = [Math.max(whole[0], centre - half), Math.min(whole[1], centre + half)];
    draw();
  };
  const move = (share) => () => {
    const length = range[1] - range[0];
    const from = Math.min(Math.max(whole[0], range[0] + length * share), whole[1] - length);
    range = [from, from + length];
    draw();
  };
  const tool = (text, label, action) => {
    const button = el("button", { type: "button", "aria-label": label, title: label }, text);
    button.addEventListener("click", action);
    return button;
  };
  const tools = el("span", { class: "tools" }, tool("←", "Earlier", move(-0.4)), tool("→", "Later", move(0.4)), tool("+", "Zoom in", zoom(0.4)),
    tool("−", "Zoom out", zoom(2.5)), tool("Fit", "Fit the whole history", () => { range = [...whole]; draw(); }));
  const verdicts = ["identical", "equivalent", "divergent", "invalid", "unknown", "unjudged"];
  const legend = el("div", { class: "legend" }, el("span", {}, "Rebalances by verdict on the target:"), verdicts.map((name) => key("v", name)),
    el("span", { class: "keyed" }, el("i", { class: "key low v-unknown" }), "low: superseded, or not finished"), tools);
  new ResizeObserver(draw).observe(place);
  return { element: el("div", {}, legend, place), draw };
}

let present = null;
function groupView(group) {
  const line = group.line;
  const selected = { rebalance: null };
  const chart = zoomable(group, selected);
  const storyBox = el("div", { class: "story", "aria-live": "polite", id: "story", tabindex: "0", role: "region", "aria-label": "Explanation of a rebalance" });
  const list = rebalanceTable(group);
  const choose = (rebalance) => {
    selected.rebalance = rebalance;
    storyBox.replaceChildren(...story(rebalance));
    list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    chart.draw();
    if (!rebalance) return;
    const row = list.querySelectorAll("tbody tr")[group.rebalances.indexOf(rebalance)];
    row.setAttribute("aria-current", "true");
    row.scrollIntoView({ block: "nearest" });
    storyBox.scrollIntoView({ block: "nearest" });
  };
  const element = el("div", {},
    el("p", { class: "crumb" }, el("a", { href: "#" }, "← All groups")), el("h2", { tabindex: "-1", id: "group-title" }, line.group_id || "(empty id)"),
    facts(line), findingList(group),
    line.members_seen ? section("Members over time", `${shown(group.members, line.members_seen)} members; numbers are partitions or tasks owned`, chart.element) : null,
    line.rebalances ? section("Rebalances", shown(group.rebalances, line.rebalances), el("div", { class: "columns" }, list, storyBox)) : null,
    group.broken.length ? section("Rules broken", shown(group.broken, line.broken), brokenTable(group.broken)) : null,
    group.members.length ? section("Members", "the timeline as a table", memberTable(group.members)) : null,
    group.offsets.length ? section("Committed offsets", offsetsNote(group), offsetTable(group.offsets)) : null);
  return { id: line.group_id, group, element, choose };
}
