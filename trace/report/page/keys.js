// The keys.

const KEYS = [
  ["← →", "the step before, the next step; with Shift ten of them"],
  ["Home End", "the first step, the last one"],
  ["n p", "the next step that is marked, the one before"],
  ["l", "loss on a logarithmic axis, or a linear one"],
  ["t", "every chart as a table, and back"],
  ["d", "dark, or light"],
  ["1 … 9", "to a section"],
  ["↑ ↓", "in the gradients' map: the param above, the one below"],
  ["?", "these keys"],
];

const PRESSED = {
  ArrowLeft: (event) => goTo(state.step - (event.shiftKey ? 10 : 1)),
  ArrowRight: (event) => goTo(state.step + (event.shiftKey ? 10 : 1)),
  Home: () => goTo(0),
  End: () => goTo(mostSteps - 1),
  n: () => goToMark(1),
  p: () => goToMark(-1),
  l: () => {
    state.log = !state.log;
    tell("log");
  },
  t: () => {
    state.tables = !state.tables;
    tell("tables");
  },
  d: () => setTheme(isDark() ? "light" : "dark"),
  "?": () => document.getElementById("help").showModal(),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
  if (event.target.matches("input, select, textarea") && event.key.length > 1) return;
  if (event.target.matches('input[type="search"], input[type="number"]')) return;
  const chosen = /^[1-9]$/.test(event.key) ? sections[+event.key - 1] : null;
  if (chosen) {
    chosen.element.scrollIntoView();
    chosen.element.focus({ preventScroll: true });
    return;
  }
  const press = PRESSED[event.key];
  if (!press) return;
  if (event.target.closest(".scroll, .graph") && /Arrow|Home|End/.test(event.key)) return; // which scroll
  event.preventDefault();
  press(event);
}
