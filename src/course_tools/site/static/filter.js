// Above the symptoms of troubleshooting and the terms of the glossary a field, which hides those that lack a typed word;
// for each symptom an address.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const tables = [...document.querySelectorAll(".bd-article table")].filter((table) => table.rows[0].textContent.includes("Symptom"));
  const symptoms = tables.flatMap((table) => [...table.tBodies[0].rows]);
  symptoms.forEach((row) => {
    row.id = window.addressOfSymptom(row.cells[0].textContent);
    const link = Object.assign(document.createElement("a"), { href: `#${row.id}`, textContent: "#", title: "Link to this row" });
    (row.cells[0].querySelector("p") || row.cells[0]).append(" ", link);
  });
  const rows = symptoms.length ? symptoms : [...document.querySelectorAll(".bd-article p[id^='term-']")];
  if (!rows.length) return;
  if (symptoms.length && location.hash) location.replace(location.hash); // the row has its name only now
  const field = Object.assign(document.createElement("input"), { type: "search", autocomplete: "off" });
  const line = Object.assign(document.createElement("p"), { className: "filter" });
  const label = document.createElement("label"), said = document.createElement("span");
  said.setAttribute("role", "status");
  label.append(symptoms.length ? "Words of the message " : "A term, or words of its meaning ", field);
  line.append(label, " ", said);
  (rows[0].closest("section section") || rows[0]).before(line);
  const sections = [...line.parentElement.querySelectorAll(":scope > section")];
  // Of a pasted message the rows that have most of its words; quotes and colons do not count.
  const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\d+_]+/gu) || [];
  const texts = rows.map((row) => row.textContent), names = () => texts.flatMap((text) => text.toLowerCase().match(/[\p{L}\d]+/gu));
  field.addEventListener("input", () => {
    const asked = wordsOf(field.value), [nearest] = window.understood(asked, texts, names);
    const words = nearest.filter(Boolean), patterns = words.map(window.beginningWith);
    const hits = texts.map((text) => patterns.filter((pattern) => pattern.test(text)).length);
    const most = asked.length && Math.max(...hits);
    rows.forEach((row, place) => { row.hidden = asked.length && hits[place] < Math.max(1, most); });
    sections.forEach((section) => { // and what the contents of the page say of them
      section.hidden = asked.length && !rows.some((row) => !row.hidden && section.contains(row));
      document.querySelectorAll(`.page-toc a[href="#${section.id}"]`).forEach((link) => { link.parentElement.hidden = section.hidden; });
    });
    const left = rows.filter((row) => !row.hidden).length;
    const count = `${left} ${symptoms.length ? "row" : "term"}${left === 1 ? "" : "s"}`;
    said.replaceChildren();
    if (most) said.append(...window.saidOf(asked, nearest, most < words.length ? `${count} with ${most} of ${words.length} words` : count));
    if (most || !asked.length) return;
    said.append(`No ${symptoms.length ? "row" : "term"} has ${asked.map((word) => `“${word}”`).join(" or ")}. `);
    const href = `../search.html?q=${encodeURIComponent(field.value)}`;
    said.append(Object.assign(document.createElement("a"), { href, textContent: "Search the whole course" }));
  });
});
