"use strict";
// The page is complete without this: tables are sorted, values stand beside the pointer, folded parts open for paper.

/** A cell's value: a number where its text begins with one, none where it is a dash. */
function valueOf(row, column) {
  const cell = row.cells[column], text = cell.textContent.trim();
  if (text === "–" || text === "") return null;
  const number = Number.parseFloat(cell.dataset.v ?? text);
  return Number.isFinite(number) ? number : text;
}

function sorted(rows, column, way) {
  const values = new Map(rows.map((row) => [row, valueOf(row, column)]));
  const numbers = [...values.values()].filter((value) => typeof value === "number").length;
  const sign = way === "ascending" ? 1 : -1;
  const compare = (a, b) => numbers ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  // What has no value, or is no number among numbers, comes last either way.
  const isLast = (value) => value === null || (numbers && typeof value !== "number");
  return [...rows].sort((a, b) => {
    const [x, y] = [values.get(a), values.get(b)];
    return isLast(x) || isLast(y) ? isLast(x) - isLast(y) : sign * compare(x, y);
  });
}

const NEXT = { null: "ascending", ascending: "descending", descending: null };
for (const table of document.querySelectorAll("main table")) {
  const body = table.tBodies[0], rows = [...body.rows];
  if (rows.length < 2 || table.closest(".facts")) continue;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const way = NEXT[head.getAttribute("aria-sort")];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (way) head.setAttribute("aria-sort", way);
      body.append(...(way ? sorted(rows, column, way) : rows));
    });
  });
}

const tip = document.createElement("div");
tip.className = "tip";
tip.setAttribute("role", "status");
tip.hidden = true;
document.body.append(tip);
/** The mark under the pointer and its title, which is taken out meanwhile: the browser would show it too. */
let mark = null, title = null;

function hide() {
  mark?.prepend(title);
  mark = title = null;
  tip.hidden = true;
}

function place(event) {
  const edge = 8, beside = 14, { width, height } = tip.getBoundingClientRect();
  const most = document.documentElement.clientWidth - width - edge;
  const above = event.clientY - height - beside;
  tip.style.left = `${Math.max(edge, Math.min(event.clientX + beside, most))}px`;
  tip.style.top = `${above < edge ? event.clientY + beside : above}px`;
}

document.addEventListener("pointerover", (event) => {
  if (mark?.contains(event.target)) return;
  hide();
  for (let at = event.target; at?.closest?.(".plot") && !at.matches(".plot"); at = at.parentNode) {
    title = [...at.children].find((child) => child.localName === "title") ?? null;
    if (!title) continue;
    mark = at;
    title.remove();
    tip.textContent = title.textContent;
    tip.hidden = false;
    place(event);
    return;
  }
});
document.addEventListener("pointermove", (event) => mark && place(event));
document.documentElement.addEventListener("pointerleave", hide);
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
addEventListener("scroll", hide, { passive: true });

let folded = [];
addEventListener("beforeprint", () => {
  hide();
  folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((part) => { part.open = true; });
});
addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));
