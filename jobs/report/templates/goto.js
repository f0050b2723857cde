// The parts of the address for moments: a window in which one of them is not seen gives way to the whole history.
function momentsShown(...times) {
  const [since, until] = ["since", "until"].map((name) => timeIn(asked().get(name)));
  const isOutside = times.some((time) => time !== null && (time < (since ?? time) || time > (until ?? time)));
  const names = ["moment", "than"].slice(0, times.length);
  return { ...Object.fromEntries(names.map((name, index) => [name, times[index] === null ? null : iso(times[index])])), ...(isOutside ? { since: null, until: null } : {}) };
}

// The field that goes to a moment, and the field of the other moment to compare it with.
function gotoForm(place, span) {
  const field = (id, label, hint) => [el("label", { for: id }, label), el("input", { id, type: "text", autocomplete: "off", placeholder: hint, size: "22", "aria-describedby": `${place}-said` })];
  const said = el("output", { id: `${place}-said`, class: "quiet" });
  const form = el("form", { class: "goto", "aria-label": "Go to a moment" }, field(`${place}-moment`, "Go to", "01:08:13 or -10 min"), field(`${place}-than`, "compare with", "+5 min"),
    el("button", {}, "Go"), el("button", { type: "button", class: "clear" }, "Clear"), el("input", { type: "range", class: "slider", min: Math.floor(span[0]), max: Math.ceil(span[1]), step: Math.max(1, Math.round((span[1] - span[0]) / 2000)), "aria-label": "Moment" }), said);
  const [moment, than] = form.querySelectorAll("input[type=text]");
  const slider = form.querySelector(".slider");
  slider.addEventListener("input", () => { moment.value = utc(Number(slider.value)); slider.setAttribute("aria-valuetext", moment.value); });
  slider.addEventListener("change", () => go(momentsShown(Number(slider.value)), "slider"));
  const base = () => timeIn(asked().get("moment")) ?? form.base?.() ?? null;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const read = (input, from) => (input.value.trim() === "" ? null : momentOf(input.value.trim(), from, span));
    const chosen = read(moment, base());
    const other = read(than, chosen ?? base());
    const wrong = [moment, than].find((each) => each.value.trim() && (each === moment ? chosen : other) === null);
    said.textContent = wrong ? `“${wrong.value.trim()}” is no time: write 01:08:13, 2026-11-22 01:08:13 or -10 min${base() === null ? " (a distance needs a rebalance or a moment to count from)" : ""}, in UTC` : "";
    if (wrong) { wrong.focus(); return; }
    go(momentsShown(chosen, other));
  });
  form.querySelector(".clear").addEventListener("click", () => go({ moment: null, than: null }));
  // What the address says is what the fields say.
  form.shows = () => {
    const parts = asked();
    for (const [input, name] of [[moment, "moment"], [than, "than"]]) {
      const time = timeIn(parts.get(name));
      input.value = time === null ? "" : utc(time);
    }
    slider.value = timeIn(parts.get("moment")) ?? span[1];
    slider.setAttribute("aria-valuetext", utc(Number(slider.value)));
    form.querySelector(".clear").hidden = !parts.get("moment") && !parts.get("than");
    said.textContent = "";
  };
  form.shows();
  return form;
}

// A finding is linked to its moment: its record, and a window with what was before and after it.
const recordOf = (finding) => (finding.evidence.length ? position(finding.evidence[0]) : null);
const momentOfFinding = (finding) => ({ moment: iso(finding.since_ms), epoch: null, at: recordOf(finding), ...around(finding.since_ms, finding.until_ms) });
function whenOf(finding) {
  const begin = el("a", { href: address(momentOfFinding(finding)) }, el("time", {}, utc(finding.since_ms)));
  const earlier = { ...momentOfFinding(finding), at: null, moment: iso(finding.since_ms - 6e5), ...around(finding.since_ms - 6e5, finding.until_ms) };
  return el("span", { class: "detail when" }, "From ", goes(begin, momentOfFinding(finding)),
    finding.is_open ? el("span", {}, ", ", el("b", {}, "goes on")) : finding.until_ms > finding.since_ms ? ` until ${utc(finding.until_ms)} (${duration(finding.until_ms - finding.since_ms)})` : null,
    " · ", goes(el("a", { href: address(earlier) }, "10 min before"), earlier));
}
