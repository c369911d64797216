"use strict";
// Sorting and filtering of long tables. The page says everything without this.
(() => {
  const numberOf = (cell) => {
    const given = cell.dataset.value ?? cell.textContent.replace(/,/g, "");
    return Number.parseFloat(given);
  };
  const compare = (column, sign) => (a, b) => {
    const [left, right] = [a.cells[column], b.cells[column]];
    const [x, y] = [numberOf(left), numberOf(right)];
    if (left.classList.contains("n") && !(Number.isNaN(x) && Number.isNaN(y))) {
      // What has no number stands last, whichever way the others are sorted.
      return Number.isNaN(x) ? 1 : Number.isNaN(y) ? -1 : sign * (x - y);
    }
    return sign * left.textContent.localeCompare(right.textContent, "en", { numeric: true });
  };
  const sortBy = (table, head) => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].sort(compare(head.cellIndex, descending ? -1 : 1));
    table.tBodies[0].append(...rows);
  };
  const addFilter = (table) => {
    const label = document.createElement("label");
    label.className = "filter";
    label.textContent = "Show rows with";
    const input = document.createElement("input");
    input.type = "search";
    label.append(input);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    (table.closest(".scroll") ?? table).before(label);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const head of table.tHead.rows[0].cells) {
      if (head.classList.contains("plain")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sortBy(table, head));
      head.append(button);
    }
    if (table.tBodies[0].rows.length > 10) addFilter(table);
  }
})();
