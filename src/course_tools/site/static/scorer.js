// Sphinx's scores of what the search finds; and chapters come before handbooks, handbooks before the reference.
var Scorer = {
  score: ([page, , , , score]) => score + (/^notebooks\//.test(page) ? 20 : /^(reference|docs\/(?!glossary))/.test(page) ? -10 : 10),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
