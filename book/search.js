// What the pages say comes before the names in the reference.
var Scorer = {
  objNameMatch: 4,
  objPartialMatch: 0,
  objPrio: { 0: 0, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
