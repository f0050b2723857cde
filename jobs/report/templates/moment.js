// A group at a moment, and two moments side by side: from its history, as the timeline shows it.
const isThen = (from, until, time) => from <= time && (until === null || until > time);

function thenOf(group, time) {
  const { line } = group;
  const begun = group.rebalances.filter((each) => each.at.timestamp_ms <= time);
  const isCut = group.rebalances.length < line.rebalances && begun.length < 2;
  const last = begun[begun.length - 1] ?? null;
  const goesOn = group.rebalances.find((each) => each.began_ms <= time && (each.ended_ms ?? (each.outcome === "open" ? Infinity : each.at.timestamp_ms)) > time) ?? null;
  const members = group.members.filter((each) => isThen(each.joined.timestamp_ms, each.left?.timestamp_ms ?? null, time))
    .map((each) => ({ ...each, held: each.spells.findLast((spell) => isThen(spell.since.timestamp_ms, spell.until_ms, time)) ?? null }));
  const owners = new Map(group.owned.map((unit) => [unit.name, unit.owners.filter((each) => isThen(each.since.timestamp_ms, each.until_ms, time)).map((each) => each.member_id)]));
  return {
    time, members, owners, goesOn, last: isCut ? null : last, isCut, epoch: isCut ? "unknown" : last?.to_epoch ?? "–",
    membersAreCut: group.members.length < line.members_seen && time < (group.members[0]?.joined.timestamp_ms ?? 0),
    twice: group.two_owners.filter((each) => isThen(each.since.timestamp_ms, each.until_ms, time)),
    without: [...owners].filter(([name, ids]) => !ids.length && group.owned.find((unit) => unit.name === name).owners[0].since.timestamp_ms <= time).map(([name]) => name),
    findings: group.findings.filter((each) => each.since_ms <= time && (each.is_open || each.until_ms >= time)),
    offsets: new Map(group.offsets.map((each) => [`${each.topic} ${each.partition}`, committedThen(each, time)])),
  };
}

// The offset that was committed at a moment: the page has some commits of each partition, with their numbers. Between two
// that follow each other it is known; between others it is not, and both are named.
function committedThen(each, time) {
  const { times_ms: times, offsets, log_offsets: places, numbers, begins } = each.over_time;
  const hasLast = times.length ? time >= times[times.length - 1] : each.offset !== null;
  if (time >= each.last.timestamp_ms && hasLast) return { offset: each.offset, proof: [each.last] };
  const index = times.findLastIndex((from) => from <= time), isLast = index === times.length - 1;
  if (index < 0) return { offset: undefined, why: begins ? "none yet" : undefined };
  const proofs = [index, index + 1].filter((place) => place in places).map((place) => ({ partition: each.last.partition, offset: places[place], timestamp_ms: times[place] }));
  if (isLast || numbers[index + 1] === numbers[index] + 1) return { offset: offsets[index], proof: [proofs[0]] };
  const [before, after] = proofs.map((_, step) => offsetText({ offset: offsets[index + step] }));
  return { offset: undefined, why: `between ${before} and ${after}`, proof: proofs, isBetween: true };
}

const noAnswer = (error) => `no answer: ${error.message}`;
// The server knows what was committed at any moment, or that the log does not show it; until it answers, nothing is claimed.
function withAnswers(then, { offsets, settings } = {}) {
  if (!source.isServed) return then;
  if (Array.isArray(offsets)) return { ...then, settings, offsets: new Map(offsets.map((each) => [`${each.topic} ${each.partition}`, { offset: each.offset ?? undefined, why: "unknown", proof: each.log_offset === null ? null : [{ partition: each.log_partition, offset: each.log_offset, timestamp_ms: each.committed_ms }] }])) };
  const why = offsets ? noAnswer(offsets) : "asked for …";
  return { ...then, settings, offsets: new Map([...then.offsets.keys()].map((name) => [name, { offset: undefined, why }])) };
}

function stateThen(then, line) {
  if (then.goesOn) return `rebalance ${then.goesOn.from_epoch ?? "?"} → ${then.goesOn.to_epoch} in progress for ${duration(then.time - then.goesOn.began_ms)}`;
  if (then.isCut) return "unknown: this page has the newest rebalances only";
  if (!then.last) return line.rebalances ? "before its first rebalance" : "no rebalance was seen";
  return `${then.members.length || then.membersAreCut ? "" : "no members; "}last rebalance ${then.last.from_epoch ?? "?"} → ${then.last.to_epoch}: ${then.last.outcome}`;
}

const offsetText = ({ offset, why }) => (offset === undefined ? why ?? "not in this page" : offset === null ? "removed" : number(offset));
const clientText = (each) => (each.client === "unknown" ? "unknown" : `${each.client}${each.client_release ? ` ${each.client_release}` : ""}, ${each.client_certainty}`);

const memberName = (group, id) => group.members.findLast((each) => each.member_id === id)?.name ?? id;
function momentTables(group, then) {
  const { line } = group;
  const near = bandsNear(then.time, line.group_id), said = bandNote(then.time, line.group_id);
  const beside = near.filter((each) => !liesOver(each, then.time));
  const some = (names, seen, most) => `${names.slice(0, most).join(", ")}${seen > most ? ` and ${seen - most} more` : ""}`;
  const notes = [
    ...then.twice.map((span) => ["Two owners", `: ${some(span.units, span.units_seen, 6)}: ${span.members.map((id) => memberName(group, id)).join(" and ")}`]),
    ...near.filter((each) => liesOver(each, then.time)).map(said),
    ...(then.without.length ? [["No owner now, one before", `: ${some(then.without, then.without.length, 8)}`]] : []),
    ...then.findings.filter((each) => each.kind !== "two_owners").map((each) => [capital(words(each.kind)), `: ${each.detail}`]),
  ];
  const offsets = [...then.offsets];
  const exact = `coordinator-audit offsets ${quoted(line.group_id)} --at ${iso(then.time)}`;
  return [
    el("dl", { class: "facts" }, [[capital(epochName(line)), then.epoch], ["State", stateThen(then, line)], ["Members", then.membersAreCut ? `at least ${then.members.length}` : then.members.length]]
      .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    noteList(notes),
    then.members.length ? table(["Member", "Owned"], then.members.map((each) => ({
      cells: [[el("span", { title: each.member_id }, each.name), el("div", { class: "quiet" }, `client: ${clientText(each)}`)],
        el("div", { class: "held" }, each.held ? [each.held.held, el("div", { class: "quiet" }, `since ${utc(each.held.since.timestamp_ms)} `, proof(each.held.since))] : "nothing")],
    })), { tabindex: "0", role: "region", "aria-label": "Members at the moment", class: "scroll short" }) : el("p", { class: "quiet" }, "No member, as far as the log shows."),
    beside.length ? el("details", {}, el("summary", {}, `Within a minute: ${beside.map((each) => `${bandName(each)}${bandWhen(each, then.time)}`).join("; ")}`), noteList(beside.map(said))) : null,
    offsets.length ? el("details", { open: offsets.length <= 12 ? "" : null }, el("summary", {}, `Committed offsets of ${number(offsets.length)} partitions`),
      table(["Partition", "#Committed", "Since (UTC)"], offsets.map(([name, each]) => ({ cells: [name, offsetText(each), each.proof ? each.proof.map((at, index) => [index ? " and " : "", utc(at.timestamp_ms), " ", proof(at)]) : "–"] })), { tabindex: "0", role: "region", "aria-label": "Committed offsets at the moment", class: "scroll short" }),
      offsets.some(([, each]) => each.offset === undefined && (!each.why || each.isBetween)) ? el("p", { class: "quiet" }, "All of them: ", el("code", {}, exact)) : null) : null,
  ];
}

// What differs between two moments, a line each: what, then, and at the other moment.
function differences(group, one, other) {
  const lines = [];
  const differ = (what, before, after) => { if (String(before) !== String(after)) lines.push([what, String(before), String(after)]); };
  const named = (ids) => (ids.length ? ids.map((id) => memberName(group, id)).join(" and ") : "no owner");
  differ(capital(epochName(group.line)), one.epoch, other.epoch);
  differ("State", stateThen(one, group.line), stateThen(other, group.line));
  const ids = (then) => new Map(then.members.map((each) => [each.member_id, each]));
  const [before, after] = [ids(one), ids(other)];
  for (const [id, each] of before) if (!after.has(id)) lines.push([`Member ${each.name}`, "in the group", `gone${each.went_by ? ` (${each.went_by})` : ""}`]);
  for (const [id, each] of after) if (!before.has(id)) lines.push([`Member ${each.name}`, "not in the group", `in the group (${each.came_by})`]);
  for (const [name, owners] of one.owners) differ(`Owner of ${name}`, named(owners), named(other.owners.get(name) ?? []));
  for (const [name, offset] of one.offsets) {
    const later = other.offsets.get(name);
    const step = typeof offset.offset === "number" && typeof later?.offset === "number" ? ` (${later.offset >= offset.offset ? "+" : ""}${number(later.offset - offset.offset)})` : "";
    if (later) differ(`Offset of ${name}`, offsetText(offset), offsetText(later) + (offset.offset === later.offset ? "" : step));
  }
  if (one.settings && other.settings) lines.push(...settingsThatDiffer(one.settings, other.settings));
  return lines;
}

// A setting that no snapshots show at one of the moments is not known to differ.
function settingsThatDiffer(one, other) {
  const failed = [one, other].find((each) => each instanceof Error);
  if (failed) return [["Settings", noAnswer(failed), ""]];
  const named = (settings) => new Map(settings.map((each) => [each.name, each.value]));
  const shown = (of, before, after) => [...before.keys()].filter((name) => after.has(name)).map((name) => [`Setting of the ${of}: ${name}`, before.get(name), after.get(name)]);
  const lines = shown("brokers", named(one.brokers), named(other.brokers));
  const unlogged = one.group === null || other.group === null;
  const inSnapshots = unlogged ? shown("group", named(one.shown), named(other.shown)) : [];
  if (inSnapshots.length) {
    lines.unshift(...inSnapshots);
  } else if (unlogged) {
    const told = (settings) => (settings === null ? "unknown" : settings.length ? settings.map((each) => `${each.name}=${each.value}`).join(", ") : "none set");
    lines.unshift(["Settings of the group", told(one.group), told(other.group)]);
  } else {
    const [own, later] = [named(one.group), named(other.group)];
    lines.unshift(...[...new Set([...own.keys(), ...later.keys()])].map((name) => [`Setting of the group: ${name}`, own.get(name) ?? "not set", later.get(name) ?? "not set"]));
  }
  return lines.filter(([, then, now]) => then !== now);
}

const momentHead = (time) => `${utc(time)} UTC`;

function momentPanel(group, time, than, thenAt) {
  const then = thenAt(group, time);
  const compare = than === null ? null : differences(group, then, thenAt(group, than));
  return [
    el("h3", {}, `${group.line.group_id} at ${momentHead(time)}`),
    ...momentTables(group, then),
    compare === null ? null : [el("h4", {}, `What differs at ${momentHead(than)}`),
      compare.length ? table(["What", utc(time).slice(11), utc(than).slice(11)], compare.map((cells) => ({ cells })), { tabindex: "0", role: "region", "aria-label": "What differs between the two moments" }) : el("p", {}, "Nothing that this page has.")],
  ].flat().filter(Boolean);
}
