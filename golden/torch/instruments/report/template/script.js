// Sorting and filtering. The page is whole without them.
"use strict";
const number = (cell) => parseFloat(cell.dataset.value ?? cell.textContent.replace(/[,\s]/g, ""));
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = head.classList.contains("num");
      const order = (a, b) => numeric
        ? number(a.cells[at]) - number(b.cells[at])
        : a.cells[at].textContent.localeCompare(b.cells[at].textContent, "en", { numeric: true });
      body.append(...[...body.rows].sort((a, b) => (down ? -order(a, b) : order(a, b))));
    });
  });
}
for (const part of document.querySelectorAll("[data-filter]")) {
  const rows = part.tBodies ? [...part.tBodies[0].rows] : [...part.children];
  if (rows.length < 8) continue;
  const label = document.createElement("label"), input = document.createElement("input");
  const said = document.createElement("output");
  label.className = "filter";
  input.type = "search";
  input.placeholder = "part of a name";
  label.append("Filter layers ", input, " ", said);
  (part.closest(".scroll") ?? part).before(label);
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const name = (row.tagName === "TR" ? row.cells[0] : row.firstElementChild).textContent.toLowerCase();
      row.hidden = !name.includes(wanted);
      shown += !row.hidden;
    }
    said.textContent = wanted ? `${shown} of ${rows.length}` : "";
  });
}
