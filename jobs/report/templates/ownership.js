// Owners of each partition or task over time: a row a partition, a colour a member.
const COLOURS = 8;
const ROW = 17;

// A client that comes back under a new member id keeps its colour, as it keeps its lane in the timeline. Clients with most
// time come first; from the ninth on a pattern is laid over the same colours.
function memberColours(group) {
  const lanes = lanesOf(group.members, group.end);
  const clients = lanes.map((lane) => ({ name: laneLabel(lane, lanes, 60), ids: lane.members.map((each) => each.member_id), held: 0 }));
  const of = new Map(clients.flatMap((client) => client.ids.map((id) => [id, client])));
  for (const unit of group.owned) {
    for (const owner of unit.owners) {
      if (!of.has(owner.member_id)) of.set(owner.member_id, { name: owner.member_id, ids: [owner.member_id], held: 0 });
      of.get(owner.member_id).held += Math.max(1, (owner.until_ms ?? group.end) - owner.since.timestamp_ms);
    }
  }
  const order = [...new Set(of.values())].filter((client) => client.held).sort((a, b) => b.held - a.held);
  order.forEach((client, index) => { client.number = index; });
  return { order, of, number: (id) => of.get(id)?.number };
}

// Owners at the same time, as share groups have them, lie below each other.
function stacked(unit, end) {
  const free = [];
  const placed = unit.owners.map((owner) => {
    const until = owner.until_ms ?? end;
    let slot = free.findIndex((each) => each <= owner.since.timestamp_ms);
    if (slot < 0) slot = free.push(0) - 1;
    free[slot] = Math.max(until, owner.since.timestamp_ms + 1);
    return { owner, until, slot };
  });
  return { placed, slots: Math.max(1, free.length) };
}

const hatch = () => svg("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 1.6, height: 5, fill: "var(--card)" }));

function ownership(group, state, selected) {
  if (!group.owned.length) return null;
  const { end, colours } = group;
  const nameOf = (id) => colours.of.get(id).name;
  const tall = group.owned.map((unit) => stacked(unit, end));
  const place = el("div", { class: "lanes", tabindex: "0", role: "region", "aria-label": "Ownership by partition; the table below says the same" });
  let lit = null;
  const draw = () => {
    const width = lanesWidth(place);
    if (!place.isConnected) return;
    const [from, until] = state.range;
    const { side, x } = timeAxis(state.range, width);
    const height = tall.reduce((sum, { slots }) => sum + Math.max(ROW, slots * 7 + 3), 4);
    const root = svg("svg", { width, height, "aria-hidden": "true" }, svg("defs", {}, hatch()));
    for (const time of tickTimes(from, until, Math.max(2, (width - side) / 110)).times) root.append(svg("line", { class: "grid", x1: x(time), x2: x(time), y1: 0, y2: height }));
    drawBands(root, state, x, height);
    let top = 2;
    group.owned.forEach((unit, index) => {
      const { placed, slots } = tall[index];
      const high = Math.max(ROW, slots * 7 + 3);
      root.append(Object.assign(svg("text", { class: "lane-name", x: 12, y: top + 12 }, shortened(unit.name, Math.floor((side - 16) / 6.2))), { told: unit.name }));
      for (const { owner, until: ends, slot } of placed) {
        if (owner.since.timestamp_ms > until || ends < from) continue;
        const start = x(owner.since.timestamp_ms);
        const wide = Math.max(x(ends) - start - 1, 1);
        const tallness = (high - 3) / slots;
        const number = colours.number(owner.member_id);
        const dim = lit !== null && lit !== colours.of.get(owner.member_id);
        const box = { x: start, y: top + slot * tallness, width: wide, height: Math.max(tallness - (slots > 1 ? 1 : 0), 3), rx: 1.5 };
        const told = () => `${unit.name}\n${nameOf(owner.member_id)}\n${owner.member_id}\nfrom ${utc(owner.since.timestamp_ms)}, ${owner.until_ms === null ? "until now" : `for ${duration(owner.until_ms - owner.since.timestamp_ms)}`}\nlog ${position(owner.since)}`;
        root.append(Object.assign(svg("rect", { ...box, class: dim ? "own dim" : "own", fill: `var(--m${(number % COLOURS) + 1})` }), { told, member: owner.member_id }));
        if (Math.floor(number / COLOURS) % 2 && !dim) root.append(svg("rect", { ...box, fill: "url(#hatch)", "pointer-events": "none" }));
        const label = nameOf(owner.member_id).split(" at ")[0];
        if (slots === 1 && !dim && wide > label.length * 6.3 + 10) root.append(svg("text", { class: "own-text", x: start + 4, y: top + 11 }, label));
      }
      for (const span of group.two_owners) {
        const ends = span.until_ms ?? end;
        if (!span.units.includes(unit.name) || span.since.timestamp_ms > until || ends < from) continue;
        const start = x(span.since.timestamp_ms);
        root.append(Object.assign(svg("rect", { class: "twice-unit", x: start - 1, y: top - 1, width: Math.max(x(ends) - start + 1, 5), height: high - 1 }), { told: twiceText(span) }));
      }
      top += high;
    });
    drawMoments(root, state, x, height);
    if (selected.rebalance) root.append(svg("line", { class: "chosen", x1: x(selected.rebalance.at.timestamp_ms), x2: x(selected.rebalance.at.timestamp_ms), y1: 0, y2: height }));
    place.querySelector("svg")?.remove();
    place.prepend(root);
  };
  onTimeAxis(place, state, draw);
  const buttons = colours.order.slice(0, 2 * COLOURS).map((client, index) => {
    const button = el("button", { type: "button", class: "chip", "aria-pressed": "false", title: client.ids.join("\n") }, el("i", { class: index >= COLOURS ? "key hatched" : "key", style: `background-color:var(--m${(index % COLOURS) + 1})` }), shortened(client.name, 34));
    button.addEventListener("click", () => {
      lit = lit === client ? null : client;
      buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === button && lit !== null)));
      draw();
    });
    return button;
  });
  const more = colours.order.length - buttons.length;
  const legend = el("div", { class: "legend" }, el("span", {}, "Owner:"), buttons, more > 0 ? el("span", {}, `${more} more: the colours begin again`) : null, el("span", {}, "Gap: no owner, as far as the log shows"),
    group.two_owners.length ? el("span", { class: "keyed" }, el("i", { class: "key twice-key" }), "two owners") : null, bandKeys(state.bands));
  const rows = () => group.owned.flatMap((unit) => unit.owners.map((owner) => ({ cells: [unit.name, nameOf(owner.member_id), el("code", {}, owner.member_id), utc(owner.since.timestamp_ms), owner.until_ms === null ? "now" : utc(owner.until_ms), proof(owner.since)] })));
  const left = group.owned.reduce((sum, unit) => sum + unit.left_out, 0);
  const [first] = group.owned;
  const note = `${shown(group.owned, group.owned_seen)} partitions or tasks${group.owned.length < group.owned_seen ? ", those that changed owner most" : ""}${left ? `; ${number(left)} earlier owners are not shown` : ""}, UTC`;
  const command = group.owned.length < group.owned_seen || left ? el("p", { class: "quiet" }, "All owners: ", el("code", {}, `coordinator-audit owners ${quoted(first.name.replace(/^(active|standby|warmup|task|connector) /, "").replace(/ -?\d+$/, ""))} --history`)) : null;
  return el("div", { class: "panel" }, el("h4", {}, "Ownership by partition ", el("small", {}, note)), legend, place, command,
    lazyDetails("As a table", () => table(["Partition or task", "Owner", "Member id", "From (UTC)", "Until (UTC)", "Log"], rows(), { tabindex: "0", role: "region", "aria-label": "Owners: table" })));
}

const quoted = (text) => (/^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
