// Sphinx's scores of what the search finds; and what has the words in its title comes first, chapters come before
// handbooks, and handbooks before the reference.
var Scorer = {
  score: ([page, title, , , score]) => {
    const query = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
    const ofPage = /^notebooks\//.test(page) ? 20 : /^(reference|docs\/(?!glossary))/.test(page) ? -10 : 10;
    return score + ofPage + (title.toLowerCase().includes(query) ? 5 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
