// A table with pages, sorted by the column whose head is pressed.

const PAGE = 50;

/**
 * @param columns each `{label, text, value, kind}`: `text(i)` of row i, `value(i)` to sort by, kind "text" or "long" for words
 * @param count how many rows
 * @param options `caption`; `mark(i)`: whether a row is marked; `current(i)`: whether it is the chosen one; `pick(i)`;
 *   `keep`: an object of the caller that keeps sorting, search and page from one table to the next; `search(i)`: what a
 *   row is looked for by
 */
function dataTable(columns, count, options = {}) {
  const keep = options.keep || {};
  const body = el("tbody");
  const heads = columns.map((column, i) => {
    const head = el("th", { scope: "col", className: column.kind ? "text" : "" });
    if (!column.value) {
      head.append(column.label);
      return head;
    }
    const button = el("button", { type: "button" }, column.label);
    button.addEventListener("click", () => {
      keep.down = keep.by === i ? !keep.down : !column.kind;
      keep.by = i;
      keep.page = 0;
      fill();
    });
    head.append(button);
    return head;
  });
  const table = el(
    "table",
    { className: "data" },
    el("thead", {}, el("tr", {}, ...heads)),
    body,
  );
  const pages = el("div", { className: "pages" });
  const place = el("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": options.caption || "table" }, table);
  const more = el("span", { className: "more" });
  const made = el("div", {}, pages, el("p", { className: "caption" }, options.caption || "", more), place);
  const hint = () => {
    const wider = place.scrollWidth > place.clientWidth + 1;
    more.textContent = wider ? `scrolls sideways: ${columns.length} columns →` : "";
    place.classList.toggle("wider", wider && place.scrollLeft + place.clientWidth < place.scrollWidth - 1);
  };
  place.addEventListener("scroll", hint);
  new ResizeObserver(hint).observe(place);

  function rows() {
    let found = Array.from({ length: count }, (_, i) => i);
    const wanted = (keep.search || "").toLowerCase();
    if (wanted && options.search) found = found.filter((i) => options.search(i).toLowerCase().includes(wanted));
    if (keep.by === undefined) return found;
    const { value } = columns[keep.by];
    const sign = keep.down ? -1 : 1;
    const missing = (x) => x === null || x === undefined || Number.isNaN(x);
    return found.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      return x < y ? -sign : x > y ? sign : a - b;
    });
  }

  function fill() {
    const found = rows();
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    keep.page = Math.min(keep.page ?? firstPage(found), last);
    body.replaceChildren(...found.slice(keep.page * PAGE, (keep.page + 1) * PAGE).map(row));
    heads.forEach((head, i) =>
      head.setAttribute("aria-sort", keep.by !== i ? "none" : keep.down ? "descending" : "ascending"),
    );
    turn(found.length, last);
  }

  function firstPage(found) {
    const at = options.current ? found.findIndex((i) => options.current(i)) : -1;
    return at > 0 ? Math.floor(at / PAGE) : 0;
  }

  function row(i) {
    const made = el(
      "tr",
      { className: options.mark && options.mark(i) ? "marked" : "" },
      ...columns.map((column) =>
        el("td", { className: column.kind === "long" ? "text long" : column.kind || "" }, column.text(i)),
      ),
    );
    if (options.current && options.current(i)) made.setAttribute("aria-current", "true");
    if (options.pick) {
      made.style.cursor = "pointer";
      made.addEventListener("click", () => options.pick(i));
    }
    return made;
  }

  function turn(length, last) {
    const parts = [];
    if (options.search && count > 12) parts.push(finder());
    if (last > 0) {
      const go = (text, page) => {
        const button = el("button", { type: "button", disabled: page < 0 || page > last }, text);
        button.addEventListener("click", () => {
          keep.page = page;
          fill();
        });
        return button;
      };
      const first = keep.page * PAGE;
      parts.push(
        go("Previous", keep.page - 1),
        go("Next", keep.page + 1),
        `rows ${first + 1} to ${Math.min(first + PAGE, length)} of ${shown(length)}`,
      );
    } else if (length !== count) parts.push(`${length} of ${count} rows`);
    if (document.activeElement !== pages.querySelector("input") || !parts.length) pages.replaceChildren(...parts);
    else pages.replaceChildren(pages.firstChild, ...parts.slice(1));
  }

  function finder() {
    const input = el("input", {
      type: "search",
      placeholder: "name contains …",
      value: keep.search || "",
      ariaLabel: "show rows whose name contains",
    });
    input.addEventListener("input", () => {
      keep.search = input.value;
      keep.page = 0;
      fill();
    });
    return input;
  }

  fill();
  return made;
}

/** A column of numbers. */
function numbers(label, value, digits = 4) {
  return { label, value, text: (i) => shown(value(i), digits) };
}

/** A column of words. */
function words(label, value, kind = "text") {
  return { label, value, text: (i) => String(value(i)), kind };
}
