(() => {
"use strict";
const rows = [...document.querySelectorAll(".d")];
const where = document.getElementById("where");
let at = -1;
const told = () => { where.textContent = at < 0 ? `${rows.length} differences` : `${at + 1} of ${rows.length}`; };
const go = (to) => {
  const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "center" });
};
if (!rows.length) return;
rows[0].tabIndex = 0; // one stop of the tabulator for all of them
document.getElementById("go").hidden = false;
document.getElementById("back").onclick = () => go(at - 1);
document.getElementById("on").onclick = () => go(at + 1);
document.addEventListener("focusin", (event) => {
  const found = rows.indexOf(event.target);
  if (found < 0) return;
  rows[Math.max(at, 0)].tabIndex = -1;
  rows[at = found].tabIndex = 0;
  told();
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const row = rows.includes(event.target);
  const by = event.key === "j" || (row && event.key === "ArrowDown") ? 1 : event.key === "k" || (row && event.key === "ArrowUp") ? -1 : 0;
  if (!by) return;
  event.preventDefault();
  go(at + by);
});
told();
})();
