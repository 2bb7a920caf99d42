// Above the tables of symptoms a field, which hides the rows that lack a typed word; for each row an address.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const tables = [...document.querySelectorAll(".bd-article table")].filter((table) => table.rows[0].textContent.includes("Symptom"));
  if (!tables.length) return;
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
  rows.forEach((row) => {
    row.id = row.cells[0].textContent.toLowerCase().match(/[a-z0-9]+/g).slice(0, 7).join("-");
    const link = Object.assign(document.createElement("a"), { href: `#${row.id}`, textContent: "#", title: "Link to this row" });
    (row.cells[0].querySelector("p") || row.cells[0]).append(" ", link);
  });
  if (location.hash) location.replace(location.hash); // the row has its name only now
  const field = Object.assign(document.createElement("input"), { type: "search", autocomplete: "off" });
  const label = document.createElement("label"), said = document.createElement("p");
  label.append("Words of the message ", field);
  said.setAttribute("role", "status");
  tables[0].closest("section").before(label, said);
  const show = (part, isShown) => { part.style.display = isShown ? "" : "none"; };
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => words.every((word) => row.textContent.toLowerCase().includes(word)));
    rows.forEach((row) => show(row, found.includes(row)));
    tables.forEach((table) => show(table.closest("section"), found.some((row) => table.contains(row))));
    said.textContent = words.length ? `${found.length} ${found.length === 1 ? "row" : "rows"}` : "";
  });
});
