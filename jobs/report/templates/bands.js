// What lay over a time, behind every chart: a coordinator that was away, hosts that stood still, deploys.
const BANDS = JSON.parse(byId("bands-data").textContent);
const BAND_NAMES = { coordinator_away: "coordinator away", stood_still: "hosts stood still", no_coordinator: "no coordinator", rolling_deploy: "deploy" };
const bandName = (band) => BAND_NAMES[band.kind];
const bandColour = (band) => `--band-${band.kind.replaceAll("_", "-")}`;
const bandTold = (band) => `${capital(bandName(band))}${band.group_id === null ? "" : ` of ${band.group_id}`}\n${utc(band.since_ms)}${band.is_open ? ", goes on" : `, for ${duration(band.until_ms - band.since_ms)}`}\n${band.detail}`;
// A group shows those of the cluster, and its own deploys.
const bandsOf = (groupId) => BANDS.filter((each) => each.group_id === null || groupId === undefined || each.group_id === groupId);

// What lay over a moment or within a minute of it: people name a moment by its minute.
const NEAR_MS = 60_000;
const bandWhen = (band, time) => (band.since_ms > time ? `, ${duration(band.since_ms - time)} later` : band.is_open || band.until_ms >= time ? "" : `, ${duration(time - band.until_ms)} before`);
const liesOver = (band, time) => bandWhen(band, time) === "";
const bandsNear = (time, groupId) => bandsOf(groupId).filter((each) => each.since_ms <= time + NEAR_MS && (each.is_open || each.until_ms >= time - NEAR_MS));
const bandNote = (time, groupId) => (each) => [capital(bandName(each)), `${each.group_id === null || groupId !== undefined ? "" : ` of ${each.group_id}`}${bandWhen(each, time)}: ${each.detail}`];
const bandNotes = (time) => noteList(bandsNear(time).map(bandNote(time)));
const noteList = (notes) => (notes.length ? el("ul", { class: "plain notes" }, notes.map(([name, text]) => el("li", {}, el("b", {}, name), text))) : null);

function bandKeys(bands) {
  const first = new Map(bands.map((band) => [bandName(band), band]));
  return [...first].map(([name, band]) => el("span", { class: "keyed" }, el("i", { class: "key washed", style: `background:var(${bandColour(band)})` }), name));
}

// A band is seen at any zoom: it has a least width, and a cap.
const BAND_LEAST = 3;
function drawBands(root, state, x, height) {
  const [from, until] = state.range;
  for (const band of state.bands) {
    if (band.since_ms > until || band.until_ms < from) continue;
    const left = x(band.since_ms), wide = Math.max(x(band.until_ms) - left, BAND_LEAST);
    const fill = `var(${bandColour(band)})`;
    root.append(tells(svg("g", {}, svg("rect", { class: "over", x: left, y: 0, width: wide, height, fill }), svg("rect", { x: left, y: 0, width: wide, height: 3, fill })), bandTold(band)));
  }
}

// The moments that were gone to.
function drawMoments(root, state, x, height) {
  for (const [time, name] of [[state.moment, "moment"], [state.than, "moment than"]]) {
    if (time !== null && time >= state.range[0] && time <= state.range[1]) root.append(svg("line", { class: name, x1: x(time), x2: x(time), y1: 0, y2: height }));
  }
}
