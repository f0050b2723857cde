// The explanation of one rebalance: what and how long, why and who, then each sentence with its evidence.
function story(group, rebalance) {
  if (!rebalance) return [el("h3", {}, "Explanation of a rebalance"), el("p", { class: "quiet" }, "Select a rebalance in the timeline or in the table.")];
  const isWorst = group.rebalances[group.worst] === rebalance;
  const sentences = rebalance.story.map((each) => el("li", {}, each.text, each.evidence.map((at) => [" ", proof(at, each.source)])));
  const figures = [
    ...(rebalance.doubled ? [["Two owners", `${number(rebalance.doubled)} ${rebalance.doubled === 1 ? "partition or task" : "partitions or tasks"}`]] : []),
    ["Took", took(rebalance)], ["Idle", figure(rebalance, rebalance.idle_ms === null ? null : duration(rebalance.idle_ms))],
    ["Moved", figure(rebalance, rebalance.moved === null ? null : number(rebalance.moved))], ["Outcome", rebalance.outcome], ["Target", key("v", rebalance.verdict ?? "unjudged")],
  ];
  return [
    isWorst ? el("p", { class: "worst-note" }, el("em", { class: "flag worst" }, "worst"), ` of ${number(group.line.rebalances)}: ${group.worst_because}`) : null,
    rebalance.doubled ? el("p", { class: "twice-note" }, el("em", { class: "flag worst" }, "two owners"), ` It gave ${number(rebalance.doubled)} partitions or tasks to a second member: what both do is done twice.`) : null,
    el("h3", {}, `${capital(epochName(rebalance))} ${rebalance.from_epoch ?? "?"} to ${rebalance.to_epoch}`),
    el("p", { class: "quiet" }, `${utc(rebalance.at.timestamp_ms)} UTC`),
    el("dl", { class: "figures" }, figures.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    whyList(rebalance),
    rebalance.judged ? el("p", { class: "quiet" }, rebalance.judged) : null,
    el("ol", {}, sentences),
  ].filter(Boolean);
}

function whyList(rebalance) {
  if (!rebalance.caused_by.length) return el("div", { class: "causes" }, el("h4", {}, "Why"), el("p", {}, "unknown"));
  const lines = (causes) => causes.map((each) => el("li", {}, el("b", {}, words(each.kind)),
    each.member_id ? [": ", who(each), who(each) === each.member_id ? null : el("code", { class: "id" }, each.member_id)] : each.topics.length ? `: ${each.topics.join(", ")}` : null,
    each.hint ? el("span", { class: "quiet" }, ` (${each.hint})`) : null, " ", proof(each.at, each.source)));
  return el("div", { class: "causes" }, el("h4", {}, "Why"), el("ul", {}, lines(rebalance.caused_by)),
    rebalance.follows === null ? null : [el("h4", {}, `It goes on with the rebalance to ${epochName(rebalance)} ${rebalance.follows}. Why that began`), el("ul", {}, lines(rebalance.origin))],
    rebalance.more_causes ? el("p", { class: "quiet" }, `and ${number(rebalance.more_causes)} more causes: coordinator-audit explain prints all`) : null);
}
