// The page: its head, its sections, its foot.

function head() {
  const theme = el("button", { type: "button", title: "dark or light (d)" }, "Dark / light");
  theme.addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  const help = el("button", { type: "button", title: "keys (?)" }, "Keys ?");
  help.addEventListener("click", () => document.getElementById("help").showModal());
  const names = runs.map((run, i) =>
    el(
      "div",
      { className: "run" },
      swatch(lookOf(i)),
      el("span", {}, runs.length > 1 ? `${letter(i)}  ${run.path}` : run.path),
      verdictOf(run.proofs),
    ),
  );
  document
    .getElementById("top")
    .append(
      el("div", { className: "names" }, el("h1", {}, "dgrr report"), ...names),
      el("div", { className: "tools" }, ...watching(), theme, help),
    );
  const close = el("button", { type: "button" }, "Close");
  close.addEventListener("click", () => document.getElementById("help").close());
  document
    .getElementById("help")
    .append(
      el("h2", {}, "Keys"),
      el(
        "dl",
        { className: "keys" },
        ...KEYS.flatMap(([key, text]) => [
          el("dt", {}, ...key.split(" ").flatMap((k) => [k === "…" ? "…" : el("kbd", {}, k), " "])),
          el("dd", {}, text),
        ]),
      ),
      close,
    );
}

/** Of a run that goes on: the page loads itself again, and stands where it stood. */
function watching() {
  if (!report.refresh) return [];
  const stop = el("button", { type: "button" }, "Pause");
  stop.setAttribute("aria-pressed", "false");
  stop.addEventListener("click", () =>
    stop.setAttribute("aria-pressed", String(stop.getAttribute("aria-pressed") !== "true")),
  );
  setInterval(() => {
    if (stop.getAttribute("aria-pressed") !== "true") {
      remember();
      location.reload();
    }
  }, report.refresh * 1000);
  return [el("span", { className: "muted" }, `loads itself again every ${shown(report.refresh)} s`), stop];
}

function foot() {
  const text = `Made by dgrr ${report.version}, drawn by Bokeh. This file needs no network. Figures of tensors are rounded for people to read; the digests in the trace are what is exact.`;
  document.getElementById("foot").append(el("p", {}, text));
}

setTheme(state.theme);
head();
summarySection();
differenceSection();
lossSection();
ratesSection();
heatSection();
stepSection();
histogramSection();
pictureSection();
graphSection();
nodesSection();
aboutSection();
foot();
document.getElementById("steps").append(el("div", { className: "bar" }, navigation(), picker()));
document.addEventListener("keydown", pressed);
system.addEventListener("change", () => setTheme(state.theme));
if (state.scroll) window.scrollTo(0, state.scroll);
performance.mark("dgrr-ready");
document.documentElement.dataset.ready = "true";
