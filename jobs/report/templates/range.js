// The time that all panels of a view show: buttons, a drag over a panel, or the keyboard change it.
const NAME = 190, RIGHT = 14;
const gutter = (width) => (width < 560 ? 96 : NAME);

function timeRange(first, last) {
  const margin = Math.max(1, (last - first) * 0.02);
  const whole = [first - margin, last + margin];
  const state = { whole, range: [...whole], centre: null, moment: null, than: null, bands: [] };
  const listeners = [];
  state.follow = (listener) => listeners.push(listener);
  state.redraw = () => listeners.forEach((listener) => listener());
  state.show = (from, until) => {
    const half = Math.max((until - from) / 2, 5);
    const middle = (from + until) / 2;
    state.range = [Math.max(whole[0], middle - half), Math.min(whole[1], middle + half)];
    state.redraw();
  };
  // What a person chooses is part of the address, where the view has one.
  state.set = (from, until) => { state.show(from, until); state.chosen?.(); };
  state.fit = () => state.set(...whole);
  state.zoom = (factor) => {
    const [from, until] = state.range;
    const chosen = state.centre;
    const centre = chosen !== null && chosen >= from && chosen <= until ? chosen : (from + until) / 2;
    const half = (until - from) * factor / 2;
    state.set(centre - half, centre + half);
  };
  state.move = (share) => {
    const length = state.range[1] - state.range[0];
    const from = Math.min(Math.max(whole[0], state.range[0] + length * share), whole[1] - length);
    state.set(from, from + length);
  };
  return state;
}

function rangeTools(state) {
  const tool = (text, label, action) => {
    const button = el("button", { type: "button", "aria-label": label, title: label }, text);
    button.addEventListener("click", action);
    return button;
  };
  return el("span", { class: "tools", role: "group", "aria-label": "Time shown" }, tool("←", "Earlier", () => state.move(-0.4)), tool("→", "Later", () => state.move(0.4)),
    tool("+", "Zoom in", () => state.zoom(0.4)), tool("−", "Zoom out", () => state.zoom(2.5)), tool("Fit", "Fit the whole history", state.fit));
}

// A drag over a panel selects the time to show; a double click shows all of it.
function brush(element, state, timeAt) {
  let from = null;
  const shade = el("div", { class: "brush", hidden: "" });
  element.append(shade);
  const place = (event) => event.clientX - element.getBoundingClientRect().left;
  element.addEventListener("dragstart", (event) => event.preventDefault());
  element.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.pointerType === "mouse" && place(event) > gutter(element.clientWidth)) from = place(event);
  });
  element.addEventListener("pointermove", (event) => {
    if (from === null || Math.abs(place(event) - from) < 5) return;
    shade.hidden = false;
    shade.style.left = `${Math.min(from, place(event))}px`;
    shade.style.width = `${Math.abs(place(event) - from)}px`;
  });
  const end = (event) => {
    if (from === null) return;
    const [first, last] = [from, place(event)].sort((a, b) => a - b);
    from = null;
    shade.hidden = true;
    if (last - first < 5) return;
    element.addEventListener("click", (click) => { click.preventDefault(); click.stopPropagation(); }, { capture: true, once: true });
    setTimeout(() => state.set(timeAt(first), timeAt(last)));
  };
  addEventListener("pointerup", end);
  element.addEventListener("dblclick", state.fit);
  return () => removeEventListener("pointerup", end);
}

function tickTimes(from, until, most) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5,
    216e5, 432e5, 864e5, 1728e5, 6048e5, 12096e5, 24192e5, 72576e5, 314496e5];
  const step = steps.find((each) => (until - from) / each <= most) || steps[steps.length - 1];
  const times = [];
  for (let time = Math.ceil(from / step) * step; time <= until; time += step) times.push(time);
  return { step, times };
}
const tickText = (time, step) => (step >= 864e5 || time % 864e5 === 0 ? utc(time).slice(5, 10) : step >= 6e4 ? utc(time).slice(11, 16)
  : step >= 1e3 ? utc(time).slice(11, 19) : utc(time).slice(14, 23));

// On paper nothing has the width of the window: all panels are drawn again for the sheet.
let onPaper = false;
const PAPER = 660;
let themeOnScreen;
const widthOf = (place) => (onPaper ? PAPER : Math.max(300, place.clientWidth));
const redrawn = new Set();
const redrawAll = () => redrawn.forEach((draw) => draw());
function toPaper(paper) {
  if (onPaper === paper) return;
  onPaper = paper;
  unfold(paper);
  const { dataset } = document.documentElement;
  if (paper) themeOnScreen = dataset.theme;
  if (paper) dataset.theme = "light";
  else if (themeOnScreen) dataset.theme = themeOnScreen;
  else delete dataset.theme;
  redrawAll();
}
// The time axis of a panel that has names at its left. A time that is not shown lies at the edge.
function timeAxis([from, until], width) {
  const side = gutter(width), length = width - side - RIGHT;
  return {
    side,
    x: (time) => side + ((Math.min(Math.max(time, from), until) - from) / (until - from || 1)) * length,
    timeAt: (px) => from + ((px - side) / length) * (until - from),
  };
}

// A panel of lanes, within its border of 1 px: a drag over it selects the time, and another time or width draws it again.
const lanesWidth = (place) => widthOf(place) - 2;
function onTimeAxis(place, state, draw) {
  tellsAll(place);
  brush(place, state, (px) => timeAxis(state.range, lanesWidth(place)).timeAt(px));
  state.follow(draw);
  redrawn.add(draw);
  let width = 0;
  new ResizeObserver(() => { if (!onPaper && width !== place.clientWidth) { width = place.clientWidth; draw(); } }).observe(place);
}

// On paper nothing is folded.
function unfold(paper) {
  for (const each of document.querySelectorAll("details.part")) {
    if (paper) { each.dataset.open = each.open; each.open = true; }
    else if (each.dataset.open) each.open = each.dataset.open === "true";
  }
}

addEventListener("beforeprint", () => toPaper(true));
addEventListener("afterprint", () => toPaper(false));
matchMedia("print").addEventListener("change", (event) => toPaper(event.matches));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
