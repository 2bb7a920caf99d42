// Above the tables of symptoms a field, which hides the rows that lack a typed word; for each row an address.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const tables = [...document.querySelectorAll(".bd-article table")].filter((table) => table.rows[0].textContent.includes("Symptom"));
  if (!tables.length) return;
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
  rows.forEach((row) => {
    row.id = window.addressOfSymptom(row.cells[0].textContent);
    const link = Object.assign(document.createElement("a"), { href: `#${row.id}`, textContent: "#", title: "Link to this row" });
    (row.cells[0].querySelector("p") || row.cells[0]).append(" ", link);
  });
  if (location.hash) location.replace(location.hash); // the row has its name only now
  const field = Object.assign(document.createElement("input"), { type: "search", autocomplete: "off" });
  const line = Object.assign(document.createElement("p"), { className: "filter" });
  const label = document.createElement("label"), said = document.createElement("span");
  said.setAttribute("role", "status");
  label.append("Words of the message ", field);
  line.append(label, " ", said);
  tables[0].closest("section").before(line);
  const sections = [...line.parentElement.querySelectorAll(":scope > section")];
  // Of a pasted message the rows that have most of its words; quotes and colons do not count.
  const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\d+_]+/gu) || [];
  const STANDS_STILL = /^(hang|hung|stuck|freez|froze|stall|wait)/; // readers have many words for one symptom
  const isSame = (word, other) => other.startsWith(word) || (STANDS_STILL.test(word) && STANDS_STILL.test(other));
  field.addEventListener("input", () => {
    const words = wordsOf(field.value), hits = rows.map((row) => {
      const said = wordsOf(row.textContent);
      return words.filter((word) => said.some((other) => isSame(word, other))).length;
    });
    const most = Math.max(...hits);
    rows.forEach((row, place) => { row.hidden = words.length && hits[place] < Math.max(1, most); });
    sections.forEach((section) => { // and what the contents of the page say of them
      section.hidden = words.length && !section.querySelector("tr[id]:not([hidden])");
      document.querySelectorAll(`.page-toc a[href="#${section.id}"]`).forEach((link) => { link.parentElement.hidden = section.hidden; });
    });
    const left = rows.filter((row) => !row.hidden).length, count = `${left} ${left === 1 ? "row" : "rows"}`;
    said.textContent = !words.length ? "" : most === words.length ? count
      : most ? `${count} with ${most} of ${words.length} words` : "No row has these words. ";
    if (most || !words.length) return;
    const href = `../search.html?q=${encodeURIComponent(field.value)}`;
    said.append(Object.assign(document.createElement("a"), { href, textContent: "Search the whole course" }));
  });
});
